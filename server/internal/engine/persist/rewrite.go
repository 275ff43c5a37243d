package persist

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
)

// Rewrite is a rewrite in progress: it writes bases of keys, in the order of the
// file.
type Rewrite struct {
	Keys     []keyID
	at       int
	Fresh    bool   // into a fresh file
	FullSave bool   // because each save writes everything, see track
	upTo     uint64 // the last checkpoint whose journal is obsolete when all keys have new bases
	Began    time.Time
}

// keyID names a key of a space.
type keyID struct {
	space uint64
	key   string
}

// compareID compares in the order of the file.
func compareID(a, b keyID) int { return snapshot.Compare(a.space, a.key, b.space, b.key) }

const (
	// pieceTime is the longest time that the lock is held for a piece, and
	// pieceBytes the size of a piece.
	pieceTime  = 200 * time.Microsecond
	pieceBytes = 1 << 20
)

// BeginRewrite starts a rewrite of the file.
func (k *Keeper) BeginRewrite(r *Rewrite) {
	slices.SortFunc(r.Keys, compareID)
	k.Rewrite = r
}

// beginFresh begins a fresh file. It lists the keys while clients run commands;
// keys that are created meanwhile are in the journal. If a checkpoint takes that
// journal during the listing, because a client has requested a save, the fresh file
// would lack these keys, so beginFresh lists the keys again.
func (k *Keeper) beginFresh() {
	for began := false; !began; {
		var epoch uint64
		k.host.Maintain(func() {
			epoch = k.epoch
			if !k.o.Keys.Recording() {
				k.o.Keys.Record(true)
			}
		})
		keys := k.AllKeys(k.host.Maintain)
		k.host.Maintain(func() {
			if began = k.epoch == epoch; began {
				k.BeginRewrite(&Rewrite{Keys: keys, Fresh: true, FullSave: !k.Automatic() && !k.WantsFresh, Began: time.Now()})
				k.WantsFresh = false
			}
		})
	}
}

// AllKeys lists all keys that exist throughout the call. hold runs a function under
// the lock.
func (k *Keeper) AllKeys(hold func(func())) (keys []keyID) {
	var spaces []uint64
	hold(func() { spaces = append([]uint64{keyspace.InternalSpace}, k.o.Keys.Spaces()...) })
	for _, space := range spaces {
		for cursor, more := uint64(0), true; more; {
			hold(func() {
				more = false
				if db := databases(k.o.Keys)[space]; db != nil { // it may have been cleared
					cursor = db.Scan(cursor, 500, func(e *keyspace.Entry) { keys = append(keys, keyID{space, e.Key()}) })
					more = cursor != 0
				}
			})
		}
	}
	return keys
}

// databases returns the databases by their spaces.
func databases(keys *keyspace.Keyspace) map[uint64]*keyspace.DB {
	dbs := map[uint64]*keyspace.DB{}
	for i := keyspace.InternalDB; i < keys.Len(); i++ {
		dbs[keys.DB(i).Space()] = keys.DB(i)
	}
	return dbs
}

// considerRewrite begins to rewrite a part of the file, or all of it, if that is
// worth its cost, and reports whether it has. With the default parameters it bounds the
// file to about two to three times the size of the data, or 100 MB, and each byte of a
// journal is rewritten about once at most.
func (k *Keeper) considerRewrite() bool {
	var idle, wanted, outgrown bool
	var s Figures
	var live, cleared int64
	var epoch uint64
	var limits Limits
	k.host.Maintain(func() {
		idle = k.Loading == nil && !k.suspended && k.Rewrite == nil && k.ObsoleteUpTo == 0 && !k.NeedsFresh && k.Failed == nil &&
			(k.WantsFresh || k.RewriteFailedAt.IsZero() || time.Since(k.RewriteFailedAt) > rewriteRetryDelay)
		wanted, s, epoch = k.WantsFresh && idle, k.Stats, k.epoch
		for i := range k.o.Keys.Len() {
			live += int64(k.o.Keys.DB(i).Len())
		}
		cleared = k.o.Keys.Cleared() - k.cleared
		outgrown, limits = k.outgrown(), k.Limits
	})
	switch {
	case !idle:
		return false
	case wanted || s.Size-s.Used > max(limits.Waste, s.Used) || cleared > max(limits.Cleared, live):
		k.beginFresh()
		return true
	case outgrown && s.Bases <= limits.Small:
		k.beginFresh() // costs little more, and leaves a file without free pages
		return true
	case outgrown:
		r, err := k.journaled()
		if errors.Is(err, snapshot.ErrReplaced) {
			return false // the next checkpoint fails, and reports it
		}
		if err != nil {
			k.host.Maintain(func() { k.miss(err) })
			return true
		}
		k.host.Maintain(func() {
			if k.epoch == epoch {
				k.BeginRewrite(r)
			}
		})
		return true
	}
	return false
}

// outgrown reports whether the journals are to be dropped, by the two parameters of
// Redis: the file of which they speak is here the bases and the journals.
func (k *Keeper) outgrown() bool {
	c, journal, bases := k.o.Settings, k.Stats.Journal, k.Stats.Bases
	return c.RewritePercentage > 0 && journal > 0 && journal+bases > c.RewriteMinSize &&
		float64(journal) >= float64(bases)/100*float64(c.RewritePercentage)
}

// journaled lists the keys that the journals in the file name.
func (k *Keeper) journaled() (*Rewrite, error) {
	k.io.Lock()
	defer k.io.Unlock()
	seen := map[keyID]struct{}{}
	if k.file == nil {
		return nil, errors.New("the data file is missing")
	}
	if err := k.file.Intact(); err != nil {
		return nil, err
	}
	r := &Rewrite{upTo: k.file.Manifest().Generation, Began: time.Now()}
	err := k.file.Journals(func(_ uint64, records []byte) error {
		for len(records) > 0 {
			record, rest, err := journal.NextRecord(records)
			if err != nil {
				return err
			}
			seen[keyID{record.Space, string(record.Key)}] = struct{}{}
			records = rest
		}
		return nil
	})
	r.Keys = slices.Collect(maps.Keys(seen))
	return r, err
}

// piece adds to a checkpoint the bases of the next keys, as they are at this
// instant.
func (r *Rewrite) piece(keys *keyspace.Keyspace, c *Checkpoint) {
	dbs := databases(keys)
	c.fresh, c.begins = r.Fresh, r.Fresh && r.at == 0
	start, bytes := time.Now(), 0
	for ; r.at < len(r.Keys) && bytes < pieceBytes; r.at++ {
		if r.at%16 == 15 && time.Since(start) > pieceTime {
			break
		}
		id := r.Keys[r.at]
		base := snapshot.Base{Space: id.space, Key: id.key}
		if db := dbs[id.space]; db != nil {
			// The journal has changes of expired keys, too: the primary of a replica may
			// not have removed them yet.
			if e := db.Stored(protocol.BytesOf(id.key)); e != nil {
				p := db.Pin(e)
				base.Chunks = p.Chunks
				bytes += p.Size()
			}
		}
		// A record that a key is gone is needed only where an older record may have
		// the key.
		if base.Chunks != nil || !r.Fresh {
			c.Bases = append(c.Bases, base)
		}
	}
	if r.at < len(r.Keys) {
		return
	}
	if r.Fresh {
		c.ends = true
	} else {
		c.Forget = r.upTo
	}
}
