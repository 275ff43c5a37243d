package keyspace

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/zsetd/zsetd/server/internal/values/packed"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// Keyspace is a set of databases with one clock and one journal.
//
// A Keyspace is not safe for concurrent use.
type Keyspace struct {
	dbs        []*DB
	internal   *DB // see InternalDB
	now        int64
	due        int64 // deadlines before it have passed; now, unless Reveal changes it
	hooks      Hooks
	rec        *recorder // nil if changes are not recorded
	edited     []edited  // entries opened for writing since the last Seal
	spaces     uint64    // number of spaces assigned so far
	sequence   uint64    // number of records in earlier journals
	cleared    int64
	moved      bool      // a deadline changed since the last call of Next
	snapshot   *Snapshot // nil if there is none
	savepoint  *savepoint
	effects    uint64 // see EffectCount
	hits       int64
	usedBytes  int64     // see UsedBytes
	growing    []weighed // values opened for writing; see weight.go
	prefetched uint64    // keeps the compiler from removing reads; see DB.Prefetch
	Limits     Limits

	// NoTouch disables the update of access times.
	NoTouch bool

	// Frequency configures the counting of accesses (LFU).
	Frequency frequencies

	visibility
}

// Hooks are functions that the keyspace calls on events. Each may be nil. They run
// synchronously within the operation.
type Hooks struct {
	Expired func(db *DB, key string) // an expired key was removed
	Added   func(db *DB, key string) // a new key was created
	Missed  func(db *DB, key []byte) // a reader requested a key that does not exist
	Swept   func(deadline int64)     // Sweep removed a key or members with this deadline

	// Dropped runs when a string of at least largeString bytes is removed, with its
	// size.
	Dropped func(bytes int)

	// ExpiredMembers runs when expired members of a sorted set, or fields of a
	// hash, were removed. The members are valid during the call. If none remains,
	// the key was removed too, and emptied is true.
	ExpiredMembers func(db *DB, key string, value any, members []string, emptied bool)
}

// Limits are the maximum sizes of compact encodings, named after Redis's
// parameters. The unit is entries or bytes.
type Limits struct {
	HashMaxListpackEntries int
	HashMaxListpackValue   int
	SetMaxIntsetEntries    int
	SetMaxListpackEntries  int
	SetMaxListpackValue    int
	ZsetMaxListpackEntries int
	ZsetMaxListpackValue   int
	ListMaxListpackSize    int
	Stream                 sequence.StreamLimits
}

// DefaultLimits returns the default limits of Redis 7.2.
func DefaultLimits() Limits {
	return Limits{
		HashMaxListpackEntries: 512, HashMaxListpackValue: 64,
		SetMaxIntsetEntries: 512, SetMaxListpackEntries: 128, SetMaxListpackValue: 64,
		ZsetMaxListpackEntries: 128, ZsetMaxListpackValue: 64,
		ListMaxListpackSize: -2,
		Stream:              sequence.DefaultStreamLimits(),
	}
}

// New returns a keyspace with n empty databases.
func New(n int, hooks Hooks) *Keyspace {
	ks := &Keyspace{hooks: hooks, Limits: DefaultLimits()}
	for i := range n {
		ks.dbs = append(ks.dbs, newDB(ks, i, ks.newSpace()))
	}
	ks.internal = newDB(ks, InternalDB, InternalSpace)
	return ks
}

// Empty returns an empty keyspace with as many databases and the same settings, but no
// hooks.
func (ks *Keyspace) Empty() *Keyspace {
	n := New(len(ks.dbs), Hooks{})
	n.Limits, n.Frequency = ks.Limits, ks.Frequency
	n.CountMemory(ks.internal.memory != nil)
	return n
}

// InternalDB is the number of the server's internal database, which clients cannot
// access. It stores data that must be saved together with the keyspace. It has no
// deadlines and causes no calls of hooks, and [Keyspace.Len] excludes it. Its space
// is always InternalSpace.
const (
	InternalDB    = -1
	InternalSpace = 0
)

// Len returns the number of databases.
func (ks *Keyspace) Len() int { return len(ks.dbs) }

// DBs returns the databases.
func (ks *Keyspace) DBs() []*DB { return ks.dbs }

// HasKeys reports whether any database has a key.
func (ks *Keyspace) HasKeys() bool {
	return slices.ContainsFunc(ks.dbs, func(db *DB) bool { return db.Len() > 0 })
}

// Freeze stops the removal of expired keys and members by readers: expired data is
// hidden from readers but stays in memory. Writers still remove it from the keys
// that they open. The server freezes the keyspace during scripts and CLIENT PAUSE.
func (ks *Keyspace) Freeze() { ks.frozen = true }

// Thaw ends Freeze, unless Standby lasts.
func (ks *Keyspace) Thaw() {
	ks.frozen = ks.standby
	ks.forgetViews()
}

// forgetViews drops what readers see of keys with expired members.
func (ks *Keyspace) forgetViews() {
	for _, db := range ks.dbs {
		db.views = nil
	}
}

// Standby freezes the keyspace for as long as it is on: the keyspace is a copy of
// another one, which decides when expired data are removed. Keys with deadlines that are
// set meanwhile, but for those of Reveal, are not in the other one: Next and Sweep concern
// these alone.
func (ks *Keyspace) Standby(on bool) {
	ks.standby, ks.frozen, ks.moved = on, on, true
	for _, db := range ks.dbs {
		db.dropOwn()
	}
	ks.forgetViews()
}

// OnStandby reports whether Standby is on.
func (ks *Keyspace) OnStandby() bool { return ks.standby }

// Reveal makes expired data visible, for the commands by which a copy follows the other
// keyspace: nothing expires until Reveal is called with false. Then readers see the data
// as before.
func (ks *Keyspace) Reveal(on bool) {
	ks.revealed, ks.due = on || ks.exposed, ks.now
	if ks.revealed {
		ks.due = math.MinInt64
	}
	ks.forgetViews()
}

// Expose makes expired data visible to all commands for as long as it is on. Sweep removes
// nothing then.
func (ks *Keyspace) Expose(on bool) {
	ks.exposed = on
	ks.Reveal(on)
}

// Exposed reports whether Expose is on.
func (ks *Keyspace) Exposed() bool { return ks.exposed }

// Revealed reports whether expired data are visible.
func (ks *Keyspace) Revealed() bool { return ks.revealed }

// DB returns database i, which must be in [0, Len), or be InternalDB.
func (ks *Keyspace) DB(i int) *DB {
	if i == InternalDB {
		return ks.internal
	}
	return ks.dbs[i]
}

// SetNow sets the clock, in milliseconds since 1970.
func (ks *Keyspace) SetNow(ms int64) {
	if ks.now = ms; !ks.revealed {
		ks.due = ms
	}
}

// Now returns the time of the last SetNow, in milliseconds since 1970.
func (ks *Keyspace) Now() int64 { return ks.now }

// Swap exchanges the contents of databases i and j. O(1), plus the values that are
// open for writing.
func (ks *Keyspace) Swap(i, j int) {
	a, b := ks.dbs[i], ks.dbs[j]
	for k := range ks.growing {
		exchange(&ks.growing[k].db, a, b)
	}
	for k := range ks.edited {
		exchange(&ks.edited[k].db, a, b)
	}
	a.entries, b.entries = b.entries, a.entries
	a.deadlines, b.deadlines = b.deadlines, a.deadlines
	a.members, b.members = b.members, a.members
	a.own, b.own = b.own, a.own
	a.expired, b.expired = b.expired, a.expired
	a.space, b.space = b.space, a.space
	a.usedBytes, b.usedBytes = b.usedBytes, a.usedBytes
	a.sizes, b.sizes = b.sizes, a.sizes
	a.memory, b.memory = b.memory, a.memory
	a.slots, b.slots = b.slots, a.slots
	swapSnapshots(a, b)
	ks.moved = true
	if ks.rec != nil {
		ks.rec.swapped(i, j)
	}
}

// exchange replaces a by b, and b by a.
func exchange(db **DB, a, b *DB) {
	switch *db {
	case a:
		*db = b
	case b:
		*db = a
	}
}

// Next returns the earliest deadline at which Sweep removes something, or math.MaxInt64. If
// no deadline changed since the last call, it returns 0 and false without a lookup.
func (ks *Keyspace) Next() (ms int64, changed bool) {
	if !ks.moved {
		return 0, false
	}
	ks.moved = false
	return ks.Head(), true
}

// Head is Next whether or not a deadline changed.
func (ks *Keyspace) Head() int64 {
	head := int64(math.MaxInt64)
	for _, db := range ks.dbs {
		if e, ok := db.firstToSweep(); ok {
			head = min(head, deadlineOf(e.Score))
		}
		if ks.standby {
			continue
		}
		if e, ok := db.members.First(); ok {
			head = min(head, int64(e.Score))
		}
	}
	return head
}

// deadlineOf converts a score of the deadline index to a deadline. Deadlines more
// than 285 000 years ahead are rounded, the last ones beyond int64.
func deadlineOf(score float64) int64 {
	if score >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(score)
}

// Cleared returns the number of keys removed by Clear, in all databases.
func (ks *Keyspace) Cleared() int64 { return ks.cleared }

// Adopt replaces the contents and spaces of all databases by those of from, and
// ends the journal. It discards all effects that were not taken; see
// [Effects.Replaced]. from must not be used afterwards.
func (ks *Keyspace) Adopt(from *Keyspace) {
	ks.Record(false)
	if ks.Following() {
		ks.rec.follower.adopted()
	}
	ks.growing = nil
	from.weighLast()
	for i, db := range ks.dbs {
		of := from.dbs[i]
		db.detachSnapshot()
		db.dropOwn()
		db.addUsedBytes(of.usedBytes - db.usedBytes)
		db.entries, db.deadlines, db.members, db.space = of.entries, of.deadlines, of.members, of.space
		db.sizes, db.memory = of.sizes, of.memory
	}
	ks.internal.detachSnapshot()
	ks.internal.entries = from.internal.entries
	ks.internal.addUsedBytes(from.internal.usedBytes - ks.internal.usedBytes)
	ks.internal.sizes, ks.internal.memory = from.internal.sizes, from.internal.memory
	ks.spaces, ks.moved = max(ks.spaces, from.spaces), true
	for _, db := range ks.dbs {
		if db.slots != nil {
			db.slots.Reset(db.keys)
		}
	}
}

// seconds returns the clock in the unit of access times.
func (ks *Keyspace) seconds() uint32 { return uint32(ks.now / 1000) }

// Hits returns the number of reads that found their key.
func (ks *Keyspace) Hits() int64 { return ks.hits }

// Sweep removes at most limit expired keys and members, and returns the number of
// removals. O(log n) for each. See Standby.
func (ks *Keyspace) Sweep(limit int) int {
	n := 0
	for _, db := range ks.dbs {
		for n < limit {
			e, ok := db.firstToSweep()
			if !ok || deadlineOf(e.Score) >= ks.due {
				break
			}
			db.expire(e.Member)
			ks.swept(e.Score)
			n++
		}
		for n < limit && !ks.standby {
			first, ok := db.members.First()
			if !ok || int64(first.Score) >= ks.due {
				break
			}
			e := db.entries.get(first.Member)
			got, _ := db.purge(e, limit-n)
			if got == 0 { // an open command changed its deadlines
				db.schedule(e)
				continue
			}
			n += got
			ks.swept(first.Score)
		}
	}
	return n
}

func (ks *Keyspace) swept(deadline float64) {
	if ks.hooks.Swept != nil {
		ks.hooks.Swept(deadlineOf(deadline))
	}
}

// DB is one database. Like its Keyspace, it is not safe for concurrent use.
type DB struct {
	ks        *Keyspace
	id        int
	space     uint64
	entries   keyTable
	deadlines *zset.Set // keys with their deadlines as scores
	members   *zset.Set // keys with the earliest deadline of their members as scores
	own       *zset.Set // those of deadlines that Sweep removes on a standby; nil if there are none
	views     map[string]view
	snapshot  *snapshotTable // nil if no snapshot needs the keys any more
	expired   int64
	usedBytes int64          // the part of this database in Keyspace.usedBytes
	sizes     SizeHistogram  // of the keys, by length
	memory    *SizeHistogram // by memory, unless that is not counted; see CountMemory
	slots     *slotIndex     // keys by cluster slot, or nil
}

// newDB returns an empty database.
func newDB(ks *Keyspace, id int, space uint64) *DB {
	return &DB{ks: ks, id: id, space: space, entries: newKeyTable(), deadlines: new(zset.Set), members: new(zset.Set)}
}

// ID returns the number of the database.
func (db *DB) ID() int { return db.id }

// Len returns the number of keys, including expired keys that are not removed yet.
func (db *DB) Len() int { return db.entries.n }

// Overhead estimates the memory of the database's tables in bytes, without entries
// and values: the table of keys, and the index of deadlines.
func (db *DB) Overhead() (keys, deadlines int) { return db.entries.bytes(), db.deadlines.Bytes() }

// Volatile returns the number of keys with a deadline.
func (db *DB) Volatile() int { return db.deadlines.Len() }

// DueKeys returns how many keys are expired, and how many have expired members, and are not
// removed yet. O(log n).
func (db *DB) DueKeys() (keys, withMembers int) {
	due := zset.ScoreRange{Min: 0, Max: float64(db.ks.due), MaxExclusive: true}
	return db.deadlines.CountScore(due), db.members.CountScore(due)
}

// Timed returns the number of keys whose values have members with deadlines.
func (db *DB) Timed() int { return db.members.Len() }

// AverageTTL estimates the mean remaining time of keys with a deadline, in
// milliseconds, from a sample of about 20 keys, or returns 0 if there are none.
func (db *DB) AverageTTL() int64 {
	n, sum := 0, 0.0
	step := max(1, db.deadlines.Len()/20)
	for i := 0; i < db.deadlines.Len(); i += step {
		e, _ := db.deadlines.At(i)
		sum += max(0, e.Score-float64(db.ks.now))
		n++
	}
	if n == 0 {
		return 0
	}
	return int64(sum / float64(n))
}

// find returns the entry of a key, nil if there is none. It removes an expired key
// and expired members.
func (db *DB) find(key []byte) *Entry {
	e := db.entries.get(packed.View(key))
	if e == nil {
		return nil
	}
	if e.volatile() && e.Deadline() < db.ks.due {
		db.expire(e.Key())
		return nil
	}
	if e.timed() {
		return db.withoutExpired(e)
	}
	return e
}

// look returns the entry of a key for reading, or nil. While the keyspace is frozen it removes
// no key that is past its deadline.
func (db *DB) look(key []byte) *Entry {
	if db.ks.frozen {
		e := db.entries.get(packed.View(key))
		if e != nil && db.Due(e) {
			return nil
		}
		if e != nil && e.timed() {
			return db.withoutDue(e)
		}
	}
	return db.find(key)
}

func (db *DB) expire(key string) {
	db.remove(key)
	db.expired++
	if db.ks.hooks.Expired != nil {
		db.ks.hooks.Expired(db, key)
	}
}

// Get opens a key for reading. It returns nil if the key does not exist. The entry
// is valid until the key changes.
func (db *DB) Get(key []byte) *Entry {
	e := db.Look(key)
	if e != nil && !db.ks.NoTouch {
		db.ks.used(e)
	}
	return e
}

// Look is Get without an update of the access time.
func (db *DB) Look(key []byte) *Entry {
	e := db.look(key)
	switch {
	case e != nil:
		db.ks.hits++
	case db.ks.hooks.Missed != nil && db.id != InternalDB:
		db.ks.hooks.Missed(db, key)
	}
	return e
}

// Peek is Look without hit and miss statistics.
func (db *DB) Peek(key []byte) *Entry { return db.look(key) }

// Stored returns the entry of a key even if it is expired, or nil. It has no side
// effects.
func (db *DB) Stored(key []byte) *Entry {
	return db.entries.get(packed.View(key))
}

// Has reports whether a key exists. Unlike Peek it does not remove expired members,
// which makes it suitable for visiting many keys.
func (db *DB) Has(key []byte) bool {
	e := db.entries.get(packed.View(key))
	if e != nil && e.timed() && (!e.volatile() || e.Deadline() >= db.ks.due) {
		return !db.Due(e)
	}
	return e != nil && db.look(key) != nil
}

// Edit opens a key for writing. It returns nil if the key does not exist.
func (db *DB) Edit(key []byte) *Entry {
	e := db.find(key)
	if e == nil {
		return nil
	}
	db.opened(e)
	if !db.ks.NoTouch {
		db.ks.used(e)
	}
	return e
}

// Add creates a key, which must not exist, with a value and without a deadline. It
// takes ownership of value, which [Entry.Value] returns from then on: the elements of a
// sorted set move to the entry.
func (db *DB) Add(key []byte, value any) *Entry {
	return db.add(newEntry(packed.View(key), value, false))
}

// AddString is Add for a copy of b, without the allocation of a String. If timed is
// true, the entry has space for a deadline.
func (db *DB) AddString(key, b []byte, timed bool) *Entry {
	return db.add(newString(packed.View(key), b, timed))
}

// AddOwnedString is AddString that takes ownership of a long b instead of copying it.
func (db *DB) AddOwnedString(key, b []byte) *Entry {
	if packable(len(key), len(b)) {
		return db.AddString(key, b, false)
	}
	return db.add(boxString(packed.View(key), b))
}

func (db *DB) add(e *Entry) *Entry {
	if db.ks.frozen {
		db.find(packed.Bytes(e.Key())) // remove an expired key that readers left in place
	}
	e.access = db.ks.firstAccess()
	db.insert(e, db.Hash(e.Key()))
	if x := db.slots; x != nil {
		x.Add(e.Key())
	}
	if db.ks.rec != nil {
		db.ks.rec.added(db, e)
	}
	db.trackWeight(e, figures{class: noClass})
	db.noteEdited(e)
	if db.ks.hooks.Added != nil && db.id != InternalDB {
		db.ks.hooks.Added(db, e.Key())
	}
	return e
}

// Put sets the value of a key, and creates the key if necessary. It removes the
// deadline unless keep is true. It takes ownership of value as Add does.
func (db *DB) Put(key []byte, value any, keep bool) *Entry {
	e := db.Edit(key)
	if e == nil {
		return db.Add(key, value)
	}
	if db.ks.rec != nil {
		attach(e.Value(), nil)
		db.ks.rec.replaced(db, e)
	}
	if e.timed() {
		db.unschedule(e)
	}
	e = db.relocate(e, newEntry(e.Key(), value, e.volatile()))
	db.noteEdited(e)
	if !keep {
		e, _ = db.SetDeadline(e, 0)
	}
	return e
}

// Delete removes a key and reports whether it existed.
func (db *DB) Delete(key []byte) bool {
	e := db.find(key)
	if e == nil {
		return false
	}
	db.remove(e.Key())
	return true
}

func (db *DB) remove(key string) {
	tables := db.entries.bytes()
	e := db.entries.remove(key)
	if e == nil {
		return
	}
	if db.snapshot != nil {
		db.snapshot.removed(e)
	}
	if db.ks.savepoint != nil {
		db.ks.savepoint.save(db, e)
	}
	db.addUsedBytes(int64(db.entries.bytes() - tables))
	db.unweigh(e)
	if x := db.slots; x != nil {
		x.Remove(e.Key())
	}
	if e.volatile() {
		db.setDeadline(key, 0)
	}
	if e.timed() {
		db.unschedule(e)
	}
	if db.ks.rec != nil {
		db.ks.rec.deleted(db, e)
	}
	if db.ks.hooks.Dropped != nil && e.kind() == isString && !e.packed() {
		if n := e.asString().Bytes(); n >= largeString {
			db.ks.hooks.Dropped(n)
		}
	}
}

// largeString is the minimum number of bytes of a string whose removal calls
// Hooks.Dropped: large enough to justify a garbage collection.
const largeString = 1 << 20

// SetDeadline sets the deadline of a key, in milliseconds since 1970; 0 removes it.
// It returns the current entry, and whether the key had a deadline. O(log n).
func (db *DB) SetDeadline(e *Entry, ms int64) (now *Entry, had bool) {
	had = e.volatile()
	if ms == 0 && !had {
		return e, false
	}
	db.changing(e)
	if !e.setDeadline(ms) { // a packed entry without space for a deadline
		e = db.relocate(e, e.resized(e.valueSize(), true))
		e.setDeadline(ms)
	}
	db.setDeadline(e.Key(), ms)
	if db.ks.standby {
		db.noteOwn(e.Key(), ms)
	}
	if db.ks.rec != nil {
		db.ks.rec.deadline(db, e)
	}
	return e, had
}

// noteOwn records the new deadline of a key of a standby: whether its writer is a client
// of its own, or the other keyspace.
func (db *DB) noteOwn(key string, ms int64) {
	switch {
	case ms != 0 && !db.ks.revealed:
		if db.own == nil {
			db.own = new(zset.Set)
			db.addUsedBytes(int64(db.own.Internal().Weight()))
		}
		before := db.own.Internal().Weight()
		db.own.Add(key, float64(ms))
		db.addUsedBytes(int64(db.own.Internal().Weight() - before))
	case db.own != nil:
		db.removeOwn(key)
	}
}

func (db *DB) removeOwn(key string) {
	before := db.own.Internal().Weight()
	db.own.Remove(key)
	db.addUsedBytes(int64(db.own.Internal().Weight() - before))
}

// dropOwn forgets which keys have deadlines of the standby's own.
func (db *DB) dropOwn() {
	if db.own != nil {
		db.addUsedBytes(-int64(db.own.Internal().Weight()))
		db.own = nil
	}
}

// firstToSweep returns the key that Sweep removes first, and its deadline.
func (db *DB) firstToSweep() (first zset.Element, ok bool) {
	switch {
	case !db.ks.standby:
		return db.deadlines.First()
	case db.own != nil:
		return db.own.First()
	}
	return first, false
}

// setDeadline adds a key to the deadline index, or removes it if ms is 0.
func (db *DB) setDeadline(key string, ms int64) {
	before := db.deadlines.Internal().Weight()
	if ms != 0 {
		db.deadlines.Add(key, float64(ms))
	} else {
		db.deadlines.Remove(key)
		if db.own != nil {
			db.removeOwn(key)
		}
	}
	db.addUsedBytes(int64(db.deadlines.Internal().Weight() - before))
	db.ks.moved = true
}

// insert adds the entry of a new key to the table.
func (db *DB) insert(e *Entry, hash uint64) {
	before := db.entries.bytes()
	db.entries.insert(e, hash)
	if db.snapshot != nil {
		db.snapshot.created(e.Key())
	}
	if db.ks.savepoint != nil {
		db.ks.savepoint.absent(db, e.Key())
	}
	db.addUsedBytes(int64(db.entries.bytes() - before))
}

// Move makes e, an entry of db, the entry of key in database to, which may be db.
// It keeps deadline and access time, replaces an existing key, and returns the new
// entry.
func (db *DB) Move(e *Entry, to *DB, key []byte) *Entry {
	if old := to.find(key); old == e {
		return e
	} else if old != nil {
		to.remove(old.Key())
	}
	db.remove(e.Key())
	moved := to.add(newEntry(packed.View(key), e.Value(), e.volatile()))
	moved.access = e.access
	moved, _ = to.SetDeadline(moved, e.Deadline())
	return moved
}

// Clear removes all keys and returns their number. O(1), plus the values that are
// open for writing.
func (db *DB) Clear() int {
	n := db.entries.n
	db.detachSnapshot()
	db.dropOwn()
	db.clearWeights()
	db.entries.clear()
	db.deadlines.Clear()
	db.members.Clear()
	db.ks.moved = true
	db.ks.cleared += int64(n)
	if db.ks.rec != nil {
		db.ks.rec.cleared(db.space)
	}
	db.space = db.ks.newSpace()
	if x := db.slots; x != nil {
		x.Reset(db.keys)
	}
	return n
}

// All yields all keys that are not expired, in unspecified order. The database must
// not be modified during the iteration.
func (db *DB) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for e := range db.entries.all() {
			if !db.Due(e) && !yield(e) {
				return
			}
		}
	}
}

// Scan yields about count keys and returns the next cursor. A scan begins with
// cursor 0 and ends when Scan returns 0. A key that exists during the whole scan is
// yielded exactly once, regardless of other changes. It may yield expired keys. Any
// cursor value is safe.
func (db *DB) Scan(cursor uint64, count int, yield func(*Entry)) uint64 {
	return db.entries.scan(cursor, count, yield)
}

// Due reports whether the key, or all of its members, are expired.
func (db *DB) Due(e *Entry) bool {
	return e.volatile() && e.Deadline() < db.ks.due ||
		e.timed() && !db.keepsFields(e) && dueMembers(e.Value(), db.ks.due) == sizeOf(e.Value())
}

// Random returns a key that is not expired with uniform probability, or nil if
// there is none. O(1) on average, unless expired keys cannot be removed.
func (db *DB) Random(r *rand.Rand) *Entry {
	for db.entries.n > 0 {
		e := db.entries.random(r)
		if !db.Due(e) {
			return e
		}
		if db.ks.frozen || e.timed() && sizeOf(e.Value()) > expiredAtOnce {
			return db.randomAlive(r)
		}
		db.find(packed.Bytes(e.Key())) // removes the expired key
	}
	return nil
}

// randomAlive is Random without removal of expired keys. O(n), by reservoir
// sampling.
func (db *DB) randomAlive(r *rand.Rand) (pick *Entry) {
	n := 0
	for e := range db.All() {
		if n++; r.IntN(n) == 0 {
			pick = e
		}
	}
	return pick
}

// Expired returns the number of keys of this database that expired.
func (db *DB) Expired() int64 { return db.expired }

// Check verifies the invariants of the keyspace and its indexes, and returns an
// error if one is violated. For tests. O(n).
func (ks *Keyspace) Check() error {
	for _, db := range ks.dbs {
		if err := db.check(); err != nil {
			return err
		}
	}
	return ks.internal.check()
}
