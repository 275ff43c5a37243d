package keyspace

import (
	"iter"
	"math"
	"math/rand/v2"
	"unsafe"

	"github.com/zsetd/zsetd/zset"
)

// Keyspace is a number of databases under one clock.
//
// A Keyspace is not safe for concurrent use.
type Keyspace struct {
	dbs      []*DB
	own      *DB // see Own
	now      int64
	hooks    Hooks
	rec      *recorder // nil if changes are not recorded
	edited   []edited  // opened for changing since the last Seal
	spaces   uint64    // given out so far
	sequence uint64    // of what earlier journals have recorded
	cleared  int64
	moved    bool       // a deadline was set or removed since Next was last asked
	slots    *slotIndex // nil if nobody asks
	hits     int64
	held     int64     // see Held
	growing  []growing // changed since the last Seal; see weight.go
	warmed   uint64    // means nothing; see DB.Warm
	Limits   Limits

	// NoTouch leaves the access times of keys alone.
	NoTouch bool

	// Frequency has the uses of keys counted.
	Frequency Frequency

	frozen bool
}

// Hooks are told what happens in the doors. They may be nil.
type Hooks struct {
	Expired func(db *DB, key string) // the key was removed because its deadline had passed
	Added   func(db *DB, key string) // the key did not exist and now does
	Missed  func(db *DB, key []byte) // a reader asked for a key that does not exist
	Swept   func(deadline int64)     // a sweep has removed a key, or members that were due since then

	// Dropped is told that a string of so many bytes, of largeString at least, is gone.
	Dropped func(bytes int)

	// ExpiredMembers is told which members of a sorted set, or fields of a hash,
	// were removed because their deadlines had passed. They are borrowed. If they
	// were all, the key was removed with them, and emptied is true.
	ExpiredMembers func(db *DB, key string, value any, members []string, emptied bool)
}

// Limits are the sizes up to which small values keep their small shape, by
// the names of Redis's parameters.
type Limits struct {
	HashMaxListpackEntries int
	HashMaxListpackValue   int
	SetMaxIntsetEntries    int
	SetMaxListpackEntries  int
	SetMaxListpackValue    int
	ZsetMaxListpackEntries int
	ZsetMaxListpackValue   int
	ListMaxListpackSize    int
	StreamNodeMaxBytes     int
	StreamNodeMaxEntries   int
}

// DefaultLimits returns the limits of a Redis 7.2 that was told nothing.
func DefaultLimits() Limits {
	return Limits{
		HashMaxListpackEntries: 512, HashMaxListpackValue: 64,
		SetMaxIntsetEntries: 512, SetMaxListpackEntries: 128, SetMaxListpackValue: 64,
		ZsetMaxListpackEntries: 128, ZsetMaxListpackValue: 64,
		ListMaxListpackSize: -2,
		StreamNodeMaxBytes:  4096, StreamNodeMaxEntries: 100,
	}
}

// New returns a keyspace of n empty databases.
func New(n int, hooks Hooks) *Keyspace {
	ks := &Keyspace{hooks: hooks, Limits: DefaultLimits()}
	for i := range n {
		ks.dbs = append(ks.dbs, &DB{ks: ks, id: i, space: ks.newSpace()})
	}
	ks.own = &DB{ks: ks, id: Own, space: OwnSpace}
	return ks
}

// Own is the number of a database that is not one of clients: whoever has the
// keyspace keeps there what must be kept with it. It has no deadlines, and no
// hooks hear of it; [Keyspace.Len] does not count it. Its space is always
// OwnSpace.
const (
	Own      = -1
	OwnSpace = 0
)

// Len returns the number of databases.
func (ks *Keyspace) Len() int { return len(ks.dbs) }

// DBs returns the databases.
func (ks *Keyspace) DBs() []*DB { return ks.dbs }

// Freeze makes readers leave keys and members whose deadline has passed where
// they are: gone for whoever asks, but not yet removed. Those who change a key
// do remove them.
func (ks *Keyspace) Freeze() { ks.frozen = true }

// Thaw ends that.
func (ks *Keyspace) Thaw() {
	ks.frozen = false
	for _, db := range ks.dbs {
		db.views = nil
	}
}

// DB returns database i, which must be in [0, Len), or Own.
func (ks *Keyspace) DB(i int) *DB {
	if i == Own {
		return ks.own
	}
	return ks.dbs[i]
}

// SetNow tells the keyspace the time, in milliseconds since 1970.
func (ks *Keyspace) SetNow(ms int64) { ks.now = ms }

// Now returns the time that the keyspace was told last.
func (ks *Keyspace) Now() int64 { return ks.now }

// Swap exchanges the contents of databases i and j.
func (ks *Keyspace) Swap(i, j int) {
	a, b := ks.dbs[i], ks.dbs[j]
	for k := range ks.growing {
		switch x := &ks.growing[k]; x.db {
		case a:
			x.db = b
		case b:
			x.db = a
		}
	}
	a.entries, b.entries = b.entries, a.entries
	a.deadlines, b.deadlines = b.deadlines, a.deadlines
	a.members, b.members = b.members, a.members
	a.expired, b.expired = b.expired, a.expired
	a.space, b.space = b.space, a.space
	a.held, b.held = b.held, a.held
	ks.moved = true
	if ks.rec != nil {
		ks.rec.respace()
	}
}

// Next returns the earliest deadline of all keys and members, and whether there is one.
// The second return says whether it may have changed since the last call; if
// not, the first was not looked up and is 0.
func (ks *Keyspace) Next() (ms int64, changed bool) {
	if !ks.moved {
		return 0, false
	}
	ks.moved = false
	return ks.Head(), true
}

// Head returns the earliest deadline of all keys and members, or math.MaxInt64.
func (ks *Keyspace) Head() int64 {
	head := int64(math.MaxInt64)
	for _, db := range ks.dbs {
		if e, ok := db.deadlines.First(); ok {
			head = min(head, deadlineOf(e.Score))
		}
		if e, ok := db.members.First(); ok {
			head = min(head, int64(e.Score))
		}
	}
	return head
}

// deadlineOf returns the deadline that stands in the index as a score. Those
// in 285 000 years and more are rounded there, the last of them beyond int64.
func deadlineOf(score float64) int64 {
	if score >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(score)
}

// Cleared returns how many keys were removed by clearing databases.
func (ks *Keyspace) Cleared() int64 { return ks.cleared }

// Adopt gives the databases what those of from hold, with their spaces, and
// ends the journal. from must not be used afterwards.
func (ks *Keyspace) Adopt(from *Keyspace) {
	ks.Record(false)
	ks.growing = nil
	for i, db := range ks.dbs {
		of := from.dbs[i]
		db.hold(of.held - db.held)
		db.entries, db.deadlines, db.members, db.space = of.entries, of.deadlines, of.members, of.space
	}
	ks.own.entries = from.own.entries
	ks.own.hold(from.own.held - ks.own.held)
	ks.spaces, ks.moved = max(ks.spaces, from.spaces), true
	if ks.slots != nil {
		ks.slots.rebuild(ks.dbs[0])
	}
}

// seconds is the time as entries keep it.
func (ks *Keyspace) seconds() uint32 { return uint32(ks.now / 1000) }

// Hits returns how often Get has found a key.
func (ks *Keyspace) Hits() int64 { return ks.hits }

// Sweep removes keys and members whose deadline has passed, at most limit of
// them, and returns how many it removed.
func (ks *Keyspace) Sweep(limit int) int {
	n := 0
	for _, db := range ks.dbs {
		for n < limit {
			e, ok := db.deadlines.First()
			if !ok || deadlineOf(e.Score) >= ks.now {
				break
			}
			db.expire(e.Member)
			ks.swept(e.Score)
			n++
		}
		for n < limit {
			first, ok := db.members.First()
			if !ok || int64(first.Score) >= ks.now {
				break
			}
			e := db.entries.get(first.Member)
			got, _ := db.purge(e, limit-n)
			if got == 0 { // the command that changed its deadlines is not done
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

// DB is one database.
type DB struct {
	ks        *Keyspace
	id        int
	space     uint64
	entries   keyTable
	deadlines zset.Set // key by deadline
	members   zset.Set // key by the earliest deadline of its members
	views     map[string]view
	expired   int64
	held      int64 // what it takes, of Keyspace.held
}

// ID returns the number of the database.
func (db *DB) ID() int { return db.id }

// Len returns the number of keys, those not yet swept included.
func (db *DB) Len() int { return db.entries.n }

// Overhead estimates the memory that the tables of the database take, without
// that of entries and values: the table of keys, and the index of deadlines.
func (db *DB) Overhead() (keys, deadlines int) { return db.entries.bytes(), db.deadlines.Bytes() }

// Volatile returns the number of keys with a deadline.
func (db *DB) Volatile() int { return db.deadlines.Len() }

// DueKeys returns how many keys are past their deadlines, or have members that
// are, and are not removed yet. O(log n).
func (db *DB) DueKeys() int {
	due := zset.ScoreRange{Min: 0, Max: float64(db.ks.now), MaxExclusive: true}
	return db.deadlines.CountScore(due) + db.members.CountScore(due)
}

// Timed returns the number of keys whose values have members with deadlines.
func (db *DB) Timed() int { return db.members.Len() }

// AverageTTL returns the mean of the times left in milliseconds over the keys
// with a deadline, judged by at most 20 of them, or 0.
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

// find returns the entry of a key that is not past its deadline.
func (db *DB) find(key []byte) *Entry {
	e := db.entries.get(viewOf(key))
	if e == nil {
		return nil
	}
	if e.volatile() && e.Deadline() < db.ks.now {
		db.expire(e.Key())
		return nil
	}
	if e.timed() {
		if _, emptied := db.purge(e, math.MaxInt); emptied {
			return nil
		}
	}
	return e
}

// look is find for readers.
func (db *DB) look(key []byte) *Entry {
	if db.ks.frozen {
		e := db.entries.get(viewOf(key))
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

// Get opens a key for reading. It returns nil if there is no such key.
func (db *DB) Get(key []byte) *Entry {
	e := db.Look(key)
	if e != nil && !db.ks.NoTouch {
		db.ks.used(e)
	}
	return e
}

// Look is Get that leaves the access time alone.
func (db *DB) Look(key []byte) *Entry {
	e := db.look(key)
	switch {
	case e != nil:
		db.ks.hits++
	case db.ks.hooks.Missed != nil && db.id != Own:
		db.ks.hooks.Missed(db, key)
	}
	return e
}

// Peek is Look that tells nobody of a hit or a miss.
func (db *DB) Peek(key []byte) *Entry { return db.look(key) }

// Stored returns the entry of a key as it lies there, even past its deadline.
func (db *DB) Stored(key []byte) *Entry {
	return db.entries.get(viewOf(key))
}

// Has reports whether there is a key. Other than Peek it leaves members past
// their deadlines where they are: it is for those who go through many keys.
func (db *DB) Has(key []byte) bool {
	e := db.entries.get(viewOf(key))
	if e != nil && e.timed() && (!e.volatile() || e.Deadline() >= db.ks.now) {
		return !db.Due(e)
	}
	return e != nil && db.look(key) != nil
}

// Edit opens a key for changing. It returns nil if there is no such key.
func (db *DB) Edit(key []byte) *Entry {
	e := db.find(key)
	if e == nil {
		return nil
	}
	if !db.ks.NoTouch {
		db.ks.used(e)
	}
	db.opened(e)
	return e
}

// Add makes a key, which must not exist, with a value and no deadline. The value
// is the entry's from now on.
func (db *DB) Add(key []byte, value any) *Entry { return db.add(newEntry(viewOf(key), value, false)) }

// AddString is Add of a copy of b, without a String that would be for nothing.
// If the key is to get a deadline, there is room for it.
func (db *DB) AddString(key, b []byte, timed bool) *Entry {
	return db.add(newString(viewOf(key), b, timed))
}

// AddOwnString is AddString with b itself in place of a copy, if it is long: nobody
// else may change it from now on.
func (db *DB) AddOwnString(key, b []byte) *Entry {
	if packable(len(key), len(b)) {
		return db.AddString(key, b, false)
	}
	return db.add(boxString(viewOf(key), b))
}

func (db *DB) add(e *Entry) *Entry {
	if db.ks.frozen {
		db.find(bytesOf(e.Key())) // what readers have left
	}
	e.access = db.ks.firstAccess()
	db.insert(e)
	if x := db.indexed(); x != nil {
		x.add(e.Key())
	}
	if db.ks.rec != nil {
		db.ks.rec.anew(db, e)
	}
	db.grows(e, 0)
	db.noteEdited(e)
	if db.ks.hooks.Added != nil && db.id != Own {
		db.ks.hooks.Added(db, e.Key())
	}
	return e
}

// Put gives a key, new or not, this value. The deadline of the key, if it has
// one, is removed unless keep is true.
func (db *DB) Put(key []byte, value any, keep bool) *Entry {
	e := db.Edit(key)
	if e == nil {
		return db.Add(key, value)
	}
	if db.ks.rec != nil {
		attach(e.Value(), nil)
		db.ks.rec.anew(db, e)
	}
	if e.timed() {
		db.unschedule(e)
	}
	if n := newEntry(e.Key(), value, e.volatile()); e.packed() || n.packed() || n.kind() == isString || e.kind() == isString {
		e = db.relocate(e, n)
	} else {
		e.setValue(value)
	}
	db.noteEdited(e)
	if !keep {
		e, _ = db.SetDeadline(e, 0)
	}
	return e
}

// Delete removes a key and reports whether there was one.
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
	db.hold(int64(db.entries.bytes() - tables))
	db.unweigh(e)
	if x := db.indexed(); x != nil {
		x.remove(e.Key())
	}
	if e.volatile() {
		db.setDeadline(key, 0)
	}
	if e.timed() {
		db.unschedule(e)
	}
	if db.ks.rec != nil {
		db.ks.rec.gone(db, e)
	}
	if db.ks.hooks.Dropped != nil && e.kind() == isString && !e.packed() {
		if n := (*String)(unsafe.Pointer(e)).Bytes(); n >= largeString {
			db.ks.hooks.Dropped(n)
		}
	}
}

// largeString is how many bytes it takes that others are told of the end of a string:
// so many that the garbage collector may have to be called for it.
const largeString = 1 << 20

// SetDeadline sets when the key expires, in milliseconds since 1970; 0 takes
// the deadline away. It returns the entry as it is now, and whether the key had a
// deadline before.
func (db *DB) SetDeadline(e *Entry, ms int64) (now *Entry, had bool) {
	had = e.volatile()
	if ms == 0 && !had {
		return e, false
	}
	if !e.setDeadline(ms) { // a packed entry, in which there is no room
		e = db.relocate(e, e.resized(e.used(), true))
		e.setDeadline(ms)
	}
	db.setDeadline(e.Key(), ms)
	if db.ks.rec != nil {
		db.ks.rec.deadline(db, e)
	}
	return e, had
}

// setDeadline puts a key into the index of deadlines, or with 0 takes it out.
func (db *DB) setDeadline(key string, ms int64) {
	before := db.deadlines.Weight()
	if ms != 0 {
		db.deadlines.Add(key, float64(ms))
	} else {
		db.deadlines.Remove(key)
	}
	db.hold(int64(db.deadlines.Weight() - before))
	db.ks.moved = true
}

// insert puts the entry of a new key into the table.
func (db *DB) insert(e *Entry) {
	before := db.entries.bytes()
	db.entries.insert(e)
	db.hold(int64(db.entries.bytes() - before))
}

// Move makes e, an entry of db, the entry of key in database to, which may be
// db itself, with its deadline and its time of access. Whatever key held there
// is gone. It returns the new entry.
func (db *DB) Move(e *Entry, to *DB, key []byte) *Entry {
	if old := to.find(key); old == e {
		return e
	} else if old != nil {
		to.remove(old.Key())
	}
	db.remove(e.Key())
	moved := to.add(newEntry(viewOf(key), e.Value(), e.volatile()))
	moved.access = e.access
	moved, _ = to.SetDeadline(moved, e.Deadline())
	return moved
}

// Clear removes every key and returns how many there were.
func (db *DB) Clear() int {
	n := db.entries.n
	db.forgetWeights()
	db.entries.clear()
	db.deadlines.Clear()
	db.members.Clear()
	db.ks.moved = true
	db.ks.cleared += int64(n)
	if db.ks.rec != nil {
		db.ks.rec.cleared(db.space)
	}
	db.space = db.ks.newSpace()
	if x := db.indexed(); x != nil {
		x.rebuild(db)
	}
	return n
}

// All yields every key that is not past its deadline, in no order. The
// database must not be changed meanwhile.
func (db *DB) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for e := range db.entries.all() {
			if !db.Due(e) && !yield(e) {
				return
			}
		}
	}
}

// Scan yields about count keys from cursor on and returns the cursor to go on
// with, 0 at the end. Keys that are there throughout a scan are all yielded,
// whatever happens to others meanwhile.
func (db *DB) Scan(cursor uint64, count int, yield func(*Entry)) uint64 {
	return db.entries.scan(cursor, count, yield)
}

// Due reports whether the deadline of e has passed, or those of all its members.
func (db *DB) Due(e *Entry) bool {
	return e.volatile() && e.Deadline() < db.ks.now || e.timed() && dueMembers(e.Value(), db.ks.now) == sizeOf(e.Value())
}

// Random returns a key picked uniformly from those that are not past their
// deadline, or nil if there is none.
func (db *DB) Random(r *rand.Rand) *Entry {
	for db.entries.n > 0 {
		e := db.entries.random(r)
		if !db.Due(e) {
			return e
		}
		if db.ks.frozen || e.timed() && sizeOf(e.Value()) > expiredAtOnce {
			return db.randomAlive(r)
		}
		db.find(bytesOf(e.Key())) // removes it
	}
	return nil
}

// randomAlive is Random where keys past their deadline may not be removed. It
// looks at all keys.
func (db *DB) randomAlive(r *rand.Rand) (pick *Entry) {
	n := 0
	for e := range db.All() {
		if n++; r.IntN(n) == 0 {
			pick = e
		}
	}
	return pick
}

// Expired returns how many keys of this database have expired.
func (db *DB) Expired() int64 { return db.expired }

// Check verifies the invariants of the keyspace and its indexes.
func (ks *Keyspace) Check() error {
	for _, db := range ks.dbs {
		if err := db.check(); err != nil {
			return err
		}
	}
	return ks.own.check()
}
