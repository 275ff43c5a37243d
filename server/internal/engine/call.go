package engine

import (
	"math/rand/v2"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

// Call is one execution of a command: its arguments, its reply and access to the
// keyspace. It is all that a handler sees.
//
// A handler reads all its arguments, checks OK, opens the keys that it needs
// (Read, Edit, Create), modifies the values, calls Changed once per changed key,
// and writes exactly one reply. It must not retain the Call or any argument after
// its return.
type Call struct {
	protocol.Args
	Reply *protocol.Reply

	Command *Command
	Argv    [][]byte // the whole command line, name included
	Session *Session
	Engine  *Engine
	DB      *keyspace.DB

	Nested       bool // inside EXEC: must not block
	OfScript     bool // a command of a script: its request is that of the script
	Observing    bool // for a live query: it leaves no trace
	Again        bool // retried for a waiter
	stillBlocked bool // and the retry changed nothing again
	Large        bool // it took longer than other commands of its name; see fastbatch.go
	Edited       []Opened
	mark         int   // where the reply begins
	secret       []int // indexes of arguments to redact; see redact
	Counted      bool  // the error that it replies has been counted, with the command of a script
	Invented     bool  // the error that it replies is one of a script's own
}

// ErrWrongType is the error of a command on a key of another type; ErrNoSuchKey, of a
// missing key.
const (
	ErrWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrNoSuchKey = "ERR no such key"
)

// OK reports whether all arguments were read without an error. If not, it has
// replied the error, and the handler must return.
func (c *Call) OK() bool {
	if e := c.Err(); e != "" {
		c.Reply.Error(e)
		return false
	}
	return true
}

// End reports whether all arguments have been read without an error: any that remain are
// a syntax error.
func (c *Call) End() bool {
	if c.Len() > 0 {
		c.Fail(protocol.ErrSyntax)
	}
	return c.OK()
}

// Now returns the time of the turn in milliseconds since 1970.
func (c *Call) Now() int64 { return c.Engine.Keys.Now() }

// Past reports whether a deadline, in milliseconds since 1970, that the command sets has
// passed, so that it removes the key. A command of the primary does not: the primary
// removes the key by another one.
func (c *Call) Past(ms int64) bool { return ms <= c.Now() && !c.Engine.Keys.Revealed() }

// Rand returns the server's random source.
func (c *Call) Rand() *rand.Rand { return c.Engine.Rand }

// Seeded reports whether a test has set the seed of the random source.
func (c *Call) Seeded() bool { return c.Engine.Seeded }

// Instant returns the time of the turn in microseconds since 1970.
func (c *Call) Instant() int64 { return c.Engine.Turn.Instant }

// Config returns the parameters.
func (c *Call) Config() *config.Settings { return &c.Engine.Config }

// Keys returns all databases.
func (c *Call) Keys() *keyspace.Keyspace { return c.Engine.Keys }

// Codec returns the codec of Redis's format of values.
func (c *Call) Codec() *rdb.Codec { return c.Engine.Codec() }

// RunID returns the identifier of the running server.
func (c *Call) RunID() string { return c.Engine.Identity.RunID }

// Paused reports whether CLIENT PAUSE holds commands back.
func (c *Call) Paused() bool { return c.Engine.Pauses.Until != 0 }

// Sweeps reports whether the timer removes what has expired.
func (c *Call) Sweeps() bool { return c.Engine.Sweeps() }

// Owns reports whether an argument is in memory that no other code uses after the command.
func (c *Call) Owns(arg []byte) bool { return c.Session.Owns(arg) }

// CountExpired counts keys and members that the command has removed because their new deadline
// has passed.
func (c *Call) CountExpired(keys, members int) {
	c.Engine.Stats.ExpiredKeys += int64(keys)
	c.Engine.Stats.ExpiredMembers += int64(members)
}

// Uncounted leaves a change of the command out of INFO's rdb_changes_since_last_save.
func (c *Call) Uncounted() { c.Engine.Stats.Uncounted++ }

// Freed tells the garbage collection about a value that the command has removed.
func (c *Call) Freed(v any) { c.Engine.ValueFreed(v) }

// Flush empties databases. lazily says that Redis would free their memory in the background.
func (c *Call) Flush(lazily bool, dbs ...*keyspace.DB) {
	srv := c.Engine
	for _, db := range dbs {
		srv.Turn.Scope.Replacing(db, nil)
		srv.Freeing.DatabaseFreed(db, lazily)
		srv.Stats.Changes += int64(db.Clear())
	}
	srv.Collect()
	srv.Turn.Scope.Flushed()
}

// Swap exchanges the contents of two databases.
func (c *Call) Swap(i, j int) {
	srv := c.Engine
	if i != j {
		a, b := srv.Keys.DB(i), srv.Keys.DB(j)
		srv.Turn.Scope.Replacing(a, b)
		srv.Turn.Scope.Replacing(b, a)
		srv.Keys.Swap(i, j)
	}
	srv.Stats.Changes++
}

// EndOfWait returns the instant at which a wait of ms milliseconds ends: see [Engine.After].
func (c *Call) EndOfWait(ms int64) int64 { return c.Engine.After(ms) }

// Limits returns the sizes up to which values keep their compact encoding.
func (c *Call) Limits() *keyspace.Limits { return &c.Engine.Keys.Limits }

// Value constrains type parameters to the types of values.
type Value interface {
	keyspace.String | sequence.List | keyspace.Set | keyspace.Hash | sequence.Stream | zset.Set
}

// Read opens a key for reading. The value is nil if the key does not exist. If the
// key holds another type, Read has replied the error and ok is false.
func Read[T Value](c *Call, key []byte) (v *T, ok bool) {
	e := c.DB.Get(key)
	if e == nil {
		return nil, true
	}
	return As[T](c, e)
}

// Edit opens a key for modification; its results are those of read. A collection
// that the handler leaves empty is removed, with a del event, when the handler
// returns.
func Edit[T Value](c *Call, key []byte) (v *T, ok bool) {
	e := c.DB.Edit(key)
	if e == nil {
		return nil, true
	}
	if v, ok = As[T](c, e); !ok {
		return nil, false
	}
	if isCollection(v) {
		e = c.DB.Unpacked(e)
		v = e.Value().(*T)
		c.Edited = append(c.Edited, Opened{Entry: e})
	}
	return v, true
}

// Create opens a key for writing, and adds an empty value if the key does not exist. If the
// handler leaves that empty, the key is removed again without an event.
func Create[T Value](c *Call, key []byte) (v *T, ok bool) {
	if v, ok = Edit[T](c, key); v != nil || !ok {
		return v, ok
	}
	e := c.DB.Unpacked(c.DB.Add(key, new(T)))
	v = e.Value().(*T)
	if isCollection(v) {
		c.Edited = append(c.Edited, Opened{e, true})
	}
	return v, true
}

// isCollection reports whether v must not be empty.
func isCollection(v any) bool { return !keyspace.MayBeEmpty(v) }

// As returns the value of an entry, or replies that it has another type.
func As[T Value](c *Call, e *keyspace.Entry) (*T, bool) {
	v, ok := e.Value().(*T)
	if !ok {
		c.Reply.Error(ErrWrongType)
	}
	return v, ok
}

// Put sets key to this value, whatever it held, and removes its deadline.
func (c *Call) Put(key []byte, v any) *keyspace.Entry {
	if old, there := c.Overwritten(c.DB, key); there {
		c.Overwrote(c.DB, key, old, keyspace.KindOf(v))
	}
	c.Engine.Queries.replaced(c.DB.ID(), key)
	return c.DB.Put(key, v, false)
}

// Overwritten returns the kind of the value at a key that is about to get another one, for
// Overwrote; false if there is none, or events of that class are not published.
func (c *Call) Overwritten(db *keyspace.DB, key []byte) (keyspace.Kind, bool) {
	if c.Engine.events.notify&(classOverwritten|classTypeChanged) == 0 {
		return 0, false
	}
	e := db.Peek(key)
	if e == nil {
		return 0, false
	}
	return keyspace.KindOf(e.Value()), true
}

// Overwrote records the events of a value that takes the place of another one, of kind old.
func (c *Call) Overwrote(db *keyspace.DB, key []byte, old, kind keyspace.Kind) {
	c.Engine.Turn.Scope.event(db.ID(), protocol.View(key), classOverwritten, "overwritten")
	if old != kind {
		c.Engine.Turn.Scope.event(db.ID(), protocol.View(key), classTypeChanged, "type_changed")
	}
}

// Drop removes key, with a del event, and reports whether it existed.
func (c *Call) Drop(key []byte) bool {
	if !c.DB.Delete(key) {
		return false
	}
	c.Changed(key, ClassGeneric, "del")
	return true
}

// DropPast removes a key whose new deadline is in the past. The event is that of a deletion, or
// in Valkey that of an expiry.
func (c *Call) DropPast(key []byte) {
	if !c.Engine.Config.Valkey() {
		c.Drop(key)
	} else if c.DB.Delete(key) {
		c.Engine.Stats.ExpiredKeys++
		c.Changed(key, classExpired, "expired")
	}
}

// RemoveEmpty removes each collection that was opened for modification and is now
// empty, with a del event unless this call has created it. It runs when the handler
// has returned; a handler calls it itself where the del event must come earlier.
func (c *Call) RemoveEmpty() {
	if u := &c.Engine.Turn.Scope; u.MembersTaken < len(u.Members) {
		panic("BUG: " + c.Command.Name + " changed members without an event that names them")
	}
	for i, o := range c.Edited {
		c.Edited[i] = Opened{}
		if !isEmpty(o.Entry.Value()) {
			continue
		}
		key := protocol.BytesOf(o.Entry.Key())
		if c.DB.Peek(key) != o.Entry {
			continue // replaced or removed already
		}
		c.DB.Delete(key)
		if o.Created {
			c.Engine.Turn.Scope.forget(c.DB.ID(), o.Entry.Key())
		} else {
			c.Followed(key, ClassGeneric, "del")
		}
	}
	c.Edited = c.Edited[:0]
	c.Engine.Keys.Seal()
}

// isEmpty reports whether a value is a collection without elements. Every command that
// writes asks, so it names the types.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case *zset.Set:
		return v.Len() == 0
	case *keyspace.Hash:
		return v.Len() == 0
	case *keyspace.Set:
		return v.Len() == 0
	case *sequence.List:
		return v.Len() == 0
	}
	return false
}

// Opened is a key that the current call has opened for modification.
type Opened struct {
	Entry   *keyspace.Entry
	Created bool
}

// InPlace is a value opened for modification in place, through its entry. Each change
// may replace the entry, because a small value and its key can share one
// allocation.
type InPlace[T Value] struct {
	Call  *Call
	Entry *keyspace.Entry // nil if the key does not exist
}

// Open opens a key for writing and does not unpack the value.
func Open[T Value](c *Call, key []byte) (d InPlace[T], ok bool) {
	d.Call = c
	e := c.DB.Edit(key)
	if e == nil {
		return d, true
	}
	if _, ok = As[T](c, e); ok {
		c.Edited = append(c.Edited, Opened{Entry: e})
		d.Entry = e
	}
	return d, ok
}

// Value returns the value, nil if the key does not exist. It is valid until the
// next change.
func (d *InPlace[T]) Value() *T {
	if d.Entry == nil {
		return nil
	}
	return d.Entry.Value().(*T)
}

// Replaced records the entry that a change returned.
func (d *InPlace[T]) Replaced(e *keyspace.Entry) {
	if d.Entry == e {
		return
	}
	for i := range d.Call.Edited {
		if d.Call.Edited[i].Entry == d.Entry {
			d.Call.Edited[i].Entry = e
		}
	}
	d.Entry = e
}

// Changed records that the value at key has changed, and by which event, named as
// in keyspace notifications. At commit all consequences of a change follow from
// this call. The key is borrowed until then.
func (c *Call) Changed(key []byte, class EventClass, event string) {
	c.Engine.Turn.Scope.changed(c.DB.ID(), protocol.View(key), class, event)
}

// Followed is Changed for a change that counts together with the one before it, as both keys
// of a move do.
func (c *Call) Followed(key []byte, class EventClass, event string) {
	c.Engine.Turn.Scope.followed(c.DB.ID(), protocol.View(key), class, event)
}

// ChangedUnwatched is Changed for changes that Redis does not count as changes of the
// key, such as those to the groups of a stream: WATCH does not see it, and no
// waiter of the key is retried, but those for pending entries are when their time comes.
// With an empty event it only counts.
func (c *Call) ChangedUnwatched(key []byte, class EventClass, event string) {
	u := &c.Engine.Turn.Scope
	c.Engine.Stats.Changes++
	if len(c.Engine.Queries.byKey) > 0 {
		c.Engine.Queries.mark(WaitKey{c.DB.ID(), protocol.View(key)}, nil)
	}
	if c.Engine.Waits.claiming > 0 {
		c.Engine.setAlarms(WaitKey{c.DB.ID(), protocol.View(key)})
	}
	if event != "" {
		u.event(c.DB.ID(), protocol.View(key), class, event)
	}
}

// Touched records a member, or field of a hash, that the next Changed of that class
// reports: one line for each, in the order of the changes. It copies the member.
// Without a subscriber it costs one comparison.
func (c *Call) Touched(class EventClass, member []byte) {
	if c.ReportsMembers(class) {
		c.Engine.Turn.Scope.touched(class, member)
	}
}

// TouchedOnce is Touched for commands that may change a member twice before they
// call Changed. It borrows the member until then.
func (c *Call) TouchedOnce(class EventClass, member []byte) {
	if c.ReportsMembers(class) {
		c.Engine.Turn.Scope.touchedOnce(class, member)
	}
}

// ReportsMembers reports whether any subscriber needs what Touched records for that class.
// Handlers ask it before they compute members only for that purpose.
func (c *Call) ReportsMembers(class EventClass) bool { return c.Engine.events.subkeys&class != 0 }

// ChangedIn is Changed for a key of another database.
func (c *Call) ChangedIn(db *keyspace.DB, key []byte, class EventClass, event string) {
	c.Engine.Turn.Scope.changed(db.ID(), protocol.View(key), class, event)
}

// Wait blocks the call: the command cannot complete now, and is retried whenever
// one of keys changes and holds a value of the given kind. At the deadline
// (milliseconds since 1970, 0 for never), or at once where blocking is not allowed,
// timeout writes the reply.
//
// The handler must not have changed or replied anything, and must return.
func (c *Call) Wait(deadline int64, kind keyspace.Kind, timeout func(*protocol.Reply), keys ...[]byte) {
	c.WaitFor(deadline, Want{Kind: kind}, timeout, keys)
}

// WaitFor blocks the client until the keys meet a condition or the deadline passes, when it replies
// what timeout writes.
func (c *Call) WaitFor(deadline int64, want Want, timeout func(*protocol.Reply), keys [][]byte) {
	switch {
	case c.Again:
		c.stillBlocked = true
	case c.Nested || c.Session.Modes.NoBlock:
		timeout(c.Reply)
	default:
		c.Engine.block(c, deadline, want, timeout, keys)
	}
}

// Help replies the lines of a HELP subcommand between Redis's first and last ones.
func (c *Call) Help(lines ...string) {
	name, _, _ := strings.Cut(c.Command.Name, "|")
	c.Reply.Array(len(lines) + 3)
	c.Reply.Status(strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, line := range lines {
		c.Reply.Status(line)
	}
	c.Reply.Status("HELP")
	c.Reply.Status("    Prints this help.")
}

// UnknownSubcommand is Redis's error for a subcommand that exists but does not
// accept these arguments.
func (c *Call) UnknownSubcommand() {
	name, _, _ := strings.Cut(c.Command.Name, "|")
	c.Reply.Error("ERR unknown subcommand or wrong number of arguments for '" + Clip(c.Argv[1], 128) + "'. Try " +
		strings.ToUpper(name) + " HELP.")
}
