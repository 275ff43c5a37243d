package keyspace

import "math/rand/v2"

// The access field of an entry has 32 bits and one of two meanings: the time of the
// last access in seconds since 1970 (LRU), or with Frequency the 24 bits of Redis's
// LFU counter (evict.c): 16 bits for the minute of the last access, and 8 bits for
// a logarithmic counter that decays with time. The meaning is the same for all
// entries. After a change of Frequency the existing fields are misread until the
// keys are accessed, as in Redis.

// Frequency configures LFU counting.
type Frequency struct {
	On        bool
	LogFactor int64 // larger values make the counter grow more slowly
	DecayTime int64 // minutes after which a counter decreases by one; 0: never
	Rand      *rand.Rand
}

const (
	firstFrequency = 5 // counter of a new key
	maxFrequency   = 255
)

// used records an access to e.
func (ks *Keyspace) used(e *Entry) {
	if !ks.Frequency.On {
		e.access = ks.seconds()
		return
	}
	e.access = ks.frequency(ks.Frequency.more(ks.Frequent(e)))
}

// Written records a change of a key as its last access, whatever NoTouch says.
func (db *DB) Written(key []byte) {
	if e := db.Peek(key); e != nil {
		db.ks.used(e)
	}
}

// firstAccess returns the access field of a new key.
func (ks *Keyspace) firstAccess() uint32 {
	if !ks.Frequency.On {
		return ks.seconds()
	}
	return ks.frequency(firstFrequency)
}

// more returns the counter after one more access, a probabilistic increment.
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

// Frequent returns the LFU counter of a key after decay.
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

// SetFrequent sets the LFU counter of a key.
func (ks *Keyspace) SetFrequent(e *Entry, counter uint8) { e.access = ks.frequency(counter) }

// RawAccess returns the access field: seconds since 1970, or minute and counter.
func (e *Entry) RawAccess() uint32 { return e.access }

// Sample appends n random keys to buf, possibly with duplicates; with volatile,
// only keys that have a deadline. It may return expired keys that are not removed
// yet. Without volatile it returns runs of adjacent entries of the key table. Their
// hashes are similar and their keys independent, and this takes half the time of
// independent draws.
func (db *DB) Sample(r *rand.Rand, n int, volatile bool, buf []*Entry) []*Entry {
	if volatile {
		for range min(n, db.deadlines.Len()) {
			at, _ := db.deadlines.Random(r)
			buf = append(buf, db.entries.get(at.Member))
		}
		return buf
	}
	return db.entries.sampleRuns(r, min(n, db.entries.n), buf)
}

// AnyKey returns a random key with uniform probability, or nil if there is none;
// with volatile, only a key that has a deadline.
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

// FirstToExpire returns the key with the earliest deadline, or nil if none has a
// deadline.
func (db *DB) FirstToExpire() *Entry {
	first, ok := db.deadlines.First()
	if !ok {
		return nil
	}
	return db.entries.get(first.Member)
}

// Evict removes a key, even an expired one, without calling Expired.
func (db *DB) Evict(e *Entry) { db.remove(e.Key()) }
