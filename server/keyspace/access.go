package keyspace

import "math/rand/v2"

// An entry remembers one of two things in its 32 bits of access: when it was
// used last, in seconds since 1970; or, with a Frequency, how often, in the 24
// bits in which Redis does (evict.c of Redis 7, LFU): 16 of the minute, and
// 8 of a counter that grows the slower the larger it is, and shrinks with time.
// Which of them it is, is the same for all; after a change of that the old
// ones mean something else until the keys are used, as in Redis.

// Frequency is how uses are counted.
type Frequency struct {
	On        bool
	LogFactor int64 // the larger, the more uses a step of the counter takes
	DecayTime int64 // the minutes after which a counter falls by one; 0: never
	Rand      *rand.Rand
}

const (
	firstFrequency = 5 // of a new key
	maxFrequency   = 255
)

// used notes that e is used now.
func (ks *Keyspace) used(e *Entry) {
	if !ks.Frequency.On {
		e.access = ks.seconds()
		return
	}
	e.access = ks.frequency(ks.Frequency.more(ks.Frequent(e)))
}

// firstAccess is the access of a new key.
func (ks *Keyspace) firstAccess() uint32 {
	if !ks.Frequency.On {
		return ks.seconds()
	}
	return ks.frequency(firstFrequency)
}

// more returns a counter after one more use.
func (f *Frequency) more(counter uint8) uint8 {
	if counter == maxFrequency {
		return counter
	}
	base := max(0, int64(counter)-firstFrequency)
	if f.Rand.Float64() < 1/(float64(base)*float64(f.LogFactor)+1) {
		counter++
	}
	return counter
}

func (ks *Keyspace) minutes() uint16 { return uint16(ks.now / 60000) }

func (ks *Keyspace) frequency(counter uint8) uint32 { return uint32(ks.minutes())<<8 | uint32(counter) }

// Frequent returns the counter of a key's uses, as it is after the time that has
// passed since the last of them.
func (ks *Keyspace) Frequent(e *Entry) uint8 {
	counter := uint8(e.access)
	if ks.Frequency.DecayTime == 0 {
		return counter
	}
	passed := ks.minutes() - uint16(e.access>>8)
	if periods := int64(passed) / ks.Frequency.DecayTime; periods < int64(counter) {
		return counter - uint8(periods)
	}
	return 0
}

// SetFrequent sets the counter of a key's uses.
func (ks *Keyspace) SetFrequent(e *Entry, counter uint8) { e.access = ks.frequency(counter) }

// RawAccess returns what e remembers of its uses.
func (e *Entry) RawAccess() uint32 { return e.access }

// Sample appends to buf n keys picked at random, of those with a deadline only
// if volatile; some may be the same. Keys that have expired are among them, if
// nobody has removed them yet. Without a deadline several are neighbours in the table,
// which says nothing but how their hashes begin, and is faster by half than to look for
// each of them apart.
func (db *DB) Sample(r *rand.Rand, n int, volatile bool, buf []*Entry) []*Entry {
	if volatile {
		for range min(n, db.deadlines.Len()) {
			at, _ := db.deadlines.Random(r)
			buf = append(buf, db.entries.get(at.Member))
		}
		return buf
	}
	return db.entries.some(r, min(n, db.entries.n), buf)
}

// AnyKey returns a key as Sample picks one, every one being equally likely, nil if
// there is none.
func (db *DB) AnyKey(r *rand.Rand, volatile bool) *Entry {
	if !volatile {
		return db.entries.random(r)
	}
	if db.deadlines.Len() == 0 {
		return nil
	}
	at, _ := db.deadlines.Random(r)
	return db.entries.get(at.Member)
}

// Soonest returns the key that expires first, or nil if none does.
func (db *DB) Soonest() *Entry {
	first, ok := db.deadlines.First()
	if !ok {
		return nil
	}
	return db.entries.get(first.Member)
}

// Evict removes a key, even one that has expired.
func (db *DB) Evict(e *Entry) { db.remove(e.Key()) }
