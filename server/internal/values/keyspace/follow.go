package keyspace

import (
	"encoding/binary"

	"github.com/zsetd/zsetd/server/internal/values/journal"
)

// Effects are the second reader of the journal. The first is the data file, whose
// records name spaces and do not say of which kind a value is: a base has that. The
// list of effects is for readers that have only the order of the changes, such as
// the replicas of a server. For them a record has, in addition,
//
//   - the number of the database that has the space at this position of the list,
//   - the kind of the value, whether the key has a deadline, and whether it existed
//     when the record began,
//   - for operations whose meaning depends on the value, a hint. It is computed when
//     the operation is recorded, while the value is at hand; see [Operation].
//
// Clearing and swapping databases are effects, too. The two readers have buffers of
// their own, so that each takes what it needs at its own times. The rejected
// alternative, one buffer with two positions, saves the copy of a small record but
// forces both readers to the pace of the slower one, and the file to skip over
// hints.
//
// Some operations cannot be expressed without the whole value: then the value is
// recorded as new (journal.OpNew) for both readers while there is a follower. They are the
// clearing of a sorted set, a list that a command empties and fills again, and
// removals and insertions in the middle of a list that no command makes.

// follower collects effects.
type follower struct {
	ks       *Keyspace
	parts    []effectPart
	buf      []byte // the effects since the last part
	size     int    // bytes in parts, those of pinned values estimated
	room     int    // capacity of the next buffer
	db       int    // database of the last effect
	replaced bool   // the contents were replaced without records
}

// effectPart is a piece of the list: encoded effects, or one with a value that is
// too large to be encoded under the lock.
type effectPart struct {
	effects []byte
	about   about
	db      int
	pinned  *Pinned
}

// about is what an effect says of its record: the kind of the value in the lowest
// bits, and flags. An effect is encoded as
//
//	about db key operations hints    changes of a key; texts as in a journal
//	about db                         all keys of the database are removed
//	about db db                      two databases are swapped
//	about db key message how         a message, or a move whose changes follow; how is one byte
//
// with uvarints for databases: the number plus 1, so that InternalDB is 0.
type about uint8

const (
	aboutKind     about = kindBits
	aboutExisted  about = 1 << 3 // the key existed
	aboutVolatile about = 1 << 4 // the key has a deadline
	aboutFlush    about = 1 << 5
	aboutSwap     about = 1 << 6
	aboutMessage  about = 1 << 7
	aboutMove     about = aboutSwap | aboutMessage
)

// Follow begins or ends the list of effects. It is independent of Record: with both
// on, each gets every change. Beginning it twice keeps the list.
func (ks *Keyspace) Follow(on bool) {
	if on == ks.Following() {
		return
	}
	ks.Seal()
	if !on {
		ks.rec.follower = nil
		ks.recordFor()
		return
	}
	if ks.rec == nil {
		ks.rec = new(recorder)
	}
	ks.rec.follower = &follower{ks: ks}
}

// recordFor removes the recorder if neither the file nor a follower reads it.
func (ks *Keyspace) recordFor() {
	if r := ks.rec; !r.file && r.follower == nil {
		ks.sequence = ks.Sequence()
		ks.rec = nil
	}
}

// Following reports whether there is a list of effects.
func (ks *Keyspace) Following() bool { return ks.rec != nil && ks.rec.follower != nil }

// EffectCount returns the number of effects so far, in all lists and those included that
// were taken. The effects of values that are open count once they are sealed.
func (ks *Keyspace) EffectCount() uint64 { return ks.effects }

// TakeEffects removes and returns the effects since the last call; nil if there are
// none. O(1).
func (ks *Keyspace) TakeEffects() *Effects {
	if !ks.Following() {
		return nil
	}
	ks.Seal()
	f := ks.rec.follower
	if len(f.buf) == 0 && len(f.parts) == 0 && !f.replaced {
		return nil
	}
	f.room = min(len(f.buf)+len(f.buf)/4, 64<<10)
	f.flush()
	e := &Effects{f.parts, f.size, len(ks.dbs), f.replaced}
	f.parts, f.size, f.replaced = nil, 0, false
	return e
}

func (f *follower) flush() {
	if len(f.buf) > 0 {
		f.parts = append(f.parts, effectPart{effects: f.buf})
		f.size += len(f.buf)
		f.buf = nil
	}
}

// begin appends the beginning of an effect.
func (f *follower) begin(a about, db int) {
	if f.buf == nil {
		f.buf = make([]byte, 0, max(f.room, 64))
	}
	f.ks.effects++
	f.buf = binary.AppendUvarint(append(f.buf, byte(a)), uint64(db+1))
}

// database returns the number of the database that has a space.
func (f *follower) database(space uint64) int {
	if space == InternalSpace {
		return InternalDB
	}
	if f.ks.dbs[f.db].space == space {
		return f.db
	}
	for i, db := range f.ks.dbs {
		if db.space == space {
			f.db = i
			return i
		}
	}
	panic("BUG: a record of a space that no database has")
}

// record adds the changes of a key.
func (f *follower) record(space uint64, key string, a about, ops, hints []byte) {
	f.begin(a, f.database(space))
	f.buf = journal.AppendText(journal.AppendText(journal.AppendText(f.buf, key), ops), hints)
	f.flushLarge()
}

// pin adds a whole value that was pinned.
func (f *follower) pin(space uint64, a about, p *Pinned) {
	f.flush()
	f.ks.effects++
	f.parts = append(f.parts, effectPart{about: a, db: f.database(space), pinned: p})
	f.size += p.bytes
}

// cleared adds that a database has no keys any more.
func (f *follower) cleared(space uint64) { f.begin(aboutFlush, f.database(space)) }

// swapped adds that two databases were swapped.
func (f *follower) swapped(i, j int) {
	if i != j {
		f.begin(aboutSwap, i)
		f.buf = binary.AppendUvarint(f.buf, uint64(j+1))
	}
}

// Note adds a ChangeMessage or a ChangeMove to the list of effects, with the fields of Effect.
// Without a list it does nothing. Before a move no value has changed since the last Seal.
func (ks *Keyspace) Note(c Change, db int, key, message []byte, how byte) {
	if !ks.Following() {
		return
	}
	a, f := aboutMove, ks.rec.follower
	if c == ChangeMessage {
		ks.Seal()
		a = aboutMessage
	}
	f.begin(a, db)
	f.buf = append(journal.AppendText(journal.AppendText(f.buf, key), message), how)
	f.flushLarge()
}

// flushLarge ends the part if it is large.
func (f *follower) flushLarge() {
	if len(f.buf) >= flushAt {
		f.flush()
		f.room = flushAt + flushAt/4
	}
}

// adopted replaces all effects by a mark that records do not lead to the contents.
func (f *follower) adopted() {
	*f = follower{ks: f.ks, replaced: true}
	f.ks.effects++
}
