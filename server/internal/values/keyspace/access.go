package keyspace

import (
	"math/rand/v2"
)

// The access field of an entry has 32 bits and one of two meanings: the time of the
// last access in seconds since 1970 (LRU), or with Frequency a counter of accesses
// (frequency.go). The meaning is the same for all entries. After a change of
// Frequency the existing fields are misread until the keys are accessed, as in Redis.

// used records an access to e.
func (ks *Keyspace) used(e *Entry) {
	if !ks.Frequency.On {
		e.access = ks.seconds()
		return
	}
	e.access = ks.Frequency.Used(e.access, ks.now)
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
	return newFrequency(ks.now)
}

// Frequent returns the LFU counter of a key after decay.
func (ks *Keyspace) Frequent(e *Entry) uint8 { return ks.Frequency.Count(e.access, ks.now) }

// SetFrequent sets the LFU counter of a key.
func (ks *Keyspace) SetFrequent(e *Entry, counter uint8) { e.access = frequencyOf(ks.now, counter) }

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
