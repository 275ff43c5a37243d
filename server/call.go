package server

import (
	"math/rand/v2"
	"strings"
	"unsafe"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// Call is one execution of a command: its arguments, its reply and access to the
// keyspace. It is all that a handler sees.
//
// A handler reads all its arguments, checks c.ok(), opens the keys that it needs
// (read, edit, create), modifies the values, calls Changed once per changed key,
// and writes exactly one reply. It must not retain the Call or any argument after
// its return.
type Call struct {
	protocol.Args
	Reply *protocol.Reply

	cmd  *Command
	argv [][]byte // the whole command line, name included
	sess *Session
	srv  *Server
	db   *keyspace.DB

	nested       bool // inside EXEC: must not block
	again        bool // retried for a waiter
	stillBlocked bool // and the retry changed nothing again
	large        bool // it took longer than other commands of its name; see series
	edited       []opened
	secret       []int // indexes of arguments to redact; see redact
	counted      bool  // the error that it replies has been counted, with the command of a script
}

const (
	errWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errNoSuchKey = "ERR no such key"
)

// ok reports whether all arguments were read without an error. If not, it has
// replied the error, and the handler must return.
func (c *Call) ok() bool {
	if e := c.Err(); e != "" {
		c.Reply.Error(e)
		return false
	}
	return true
}

// end is ok for commands without further arguments: any that remain are a syntax
// error.
func (c *Call) end() bool {
	if c.Len() > 0 {
		c.Fail(protocol.ErrSyntax)
	}
	return c.ok()
}

// now returns the time of the turn in milliseconds since 1970.
func (c *Call) now() int64 { return c.srv.keys.Now() }

// rand returns the server's random source.
func (c *Call) rand() *rand.Rand { return c.srv.rand }

// limits returns the sizes up to which values keep their compact encoding.
func (c *Call) limits() *keyspace.Limits { return &c.srv.keys.Limits }

// value constrains type parameters to the types of values.
type value interface {
	keyspace.String | keyspace.List | keyspace.Set | keyspace.Hash | keyspace.Stream | zset.Set
}

// read opens a key for reading. The value is nil if the key does not exist. If the
// key holds another type, read has replied the error and ok is false.
func read[T value](c *Call, key []byte) (v *T, ok bool) {
	e := c.db.Get(key)
	if e == nil {
		return nil, true
	}
	return as[T](c, e)
}

// edit opens a key for modification; its results are those of read. A collection
// that the handler leaves empty is removed, with a del event, when the handler
// returns.
func edit[T value](c *Call, key []byte) (v *T, ok bool) {
	e := c.db.Edit(key)
	if e == nil {
		return nil, true
	}
	if v, ok = as[T](c, e); !ok {
		return nil, false
	}
	if isCollection(v) {
		e = c.db.Unpacked(e)
		v = e.Value().(*T)
		c.edited = append(c.edited, opened{entry: e})
	}
	return v, true
}

// create is edit, but adds an empty value if the key does not exist. If the handler
// leaves that empty, the key is removed again without an event.
func create[T value](c *Call, key []byte) (v *T, ok bool) {
	if v, ok = edit[T](c, key); v != nil || !ok {
		return v, ok
	}
	e := c.db.Unpacked(c.db.Add(key, new(T)))
	v = e.Value().(*T)
	if isCollection(v) {
		c.edited = append(c.edited, opened{e, true})
	}
	return v, true
}

// isCollection reports whether v must not be empty.
func isCollection(v any) bool { return !keyspace.MayBeEmpty(v) }

func as[T value](c *Call, e *keyspace.Entry) (*T, bool) {
	v, ok := e.Value().(*T)
	if !ok {
		c.Reply.Error(errWrongType)
	}
	return v, ok
}

// put sets key to this value, whatever it held, and removes its deadline.
func (c *Call) put(key []byte, v any) *keyspace.Entry { return c.db.Put(key, v, false) }

// drop removes key, with a del event, and reports whether it existed.
func (c *Call) drop(key []byte) bool {
	if !c.db.Delete(key) {
		return false
	}
	c.Changed(key, classGeneric, "del")
	return true
}

// removeEmpty removes each collection that was opened for modification and is now
// empty, with a del event unless this call has created it. It runs when the handler
// has returned; a handler calls it itself where the del event must come earlier.
func (c *Call) removeEmpty() {
	if u := &c.srv.scope; u.membersTaken < len(u.members) {
		panic("BUG: " + c.cmd.Name + " changed members without an event that names them")
	}
	for i, o := range c.edited {
		c.edited[i] = opened{}
		v, ok := o.entry.Value().(interface{ Len() int })
		if !ok || v.Len() > 0 {
			continue
		}
		key := bytesOf(o.entry.Key())
		if c.db.Peek(key) != o.entry {
			continue // replaced or removed already
		}
		c.db.Delete(key)
		if o.created {
			c.srv.scope.forget(c.db.ID(), o.entry.Key())
		} else {
			c.Changed(key, classGeneric, "del")
		}
	}
	c.edited = c.edited[:0]
	c.srv.keys.Seal()
}

// opened is a key that the current call has opened for modification.
type opened struct {
	entry   *keyspace.Entry
	created bool
}

// inPlace is a value opened for modification in place, through its entry. Each change
// may replace the entry, because a small value and its key can share one
// allocation.
type inPlace[T value] struct {
	c *Call
	e *keyspace.Entry // nil if the key does not exist
}

// open is edit that does not unpack the value.
func open[T value](c *Call, key []byte) (d inPlace[T], ok bool) {
	d.c = c
	e := c.db.Edit(key)
	if e == nil {
		return d, true
	}
	if _, ok = as[T](c, e); ok {
		c.edited = append(c.edited, opened{entry: e})
		d.e = e
	}
	return d, ok
}

// value returns the value, nil if the key does not exist. It is valid until the
// next change.
func (d *inPlace[T]) value() *T {
	if d.e == nil {
		return nil
	}
	return d.e.Value().(*T)
}

// replaced records the entry that a change returned.
func (d *inPlace[T]) replaced(e *keyspace.Entry) {
	if d.e == e {
		return
	}
	for i := range d.c.edited {
		if d.c.edited[i].entry == d.e {
			d.c.edited[i].entry = e
		}
	}
	d.e = e
}

// bytesOf returns the bytes of s without copying; they must not be written to. The
// result is never nil, since a nil argument means an absent one.
func bytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// Changed records that the value at key has changed, and by which event, named as
// in keyspace notifications. At commit all consequences of a change follow from
// this call. The key is borrowed until then.
func (c *Call) Changed(key []byte, class class, event string) {
	c.srv.scope.changed(c.db.ID(), protocol.View(key), class, event)
}

// ChangedUnwatched is Changed for changes that Redis does not count as changes of the
// key, such as those to the groups of a stream: WATCH does not see it, and no
// waiter of the key is retried. With an empty event it only counts.
func (c *Call) ChangedUnwatched(key []byte, class class, event string) {
	u := &c.srv.scope
	u.changes++
	if event != "" {
		u.event(c.db.ID(), protocol.View(key), class, event)
	}
}

// Touched records a member, or field of a hash, that the next Changed of that class
// reports: one line for each, in the order of the changes. It copies the member.
// Without a subscriber it costs one comparison.
func (c *Call) Touched(class class, member []byte) {
	if c.reportsMembers(class) {
		c.srv.scope.touched(class, member)
	}
}

// TouchedOnce is Touched for commands that may change a member twice before they
// call Changed. It borrows the member until then.
func (c *Call) TouchedOnce(class class, member []byte) {
	if c.reportsMembers(class) {
		c.srv.scope.touchedOnce(class, member)
	}
}

// reportsMembers reports whether any subscriber needs what Touched records for that class.
// Handlers ask it before they compute members only for that purpose.
func (c *Call) reportsMembers(class class) bool { return c.srv.subkeys&class != 0 }

// ChangedIn is Changed for a key of another database.
func (c *Call) ChangedIn(db *keyspace.DB, key []byte, class class, event string) {
	c.srv.scope.changed(db.ID(), protocol.View(key), class, event)
}

// wait blocks the call: the command cannot complete now, and is retried whenever
// one of keys changes and holds a value of the given kind. At the deadline
// (milliseconds since 1970, 0 for never), or at once where blocking is not allowed,
// timeout writes the reply.
//
// The handler must not have changed or replied anything, and must return.
func (c *Call) wait(deadline int64, kind kind, timeout func(*protocol.Reply), keys ...[]byte) {
	c.waitFor(deadline, want{kind: kind}, timeout, keys)
}

// waitFor is wait for a more specific condition than a kind.
func (c *Call) waitFor(deadline int64, want want, timeout func(*protocol.Reply), keys [][]byte) {
	switch {
	case c.again:
		c.stillBlocked = true
	case c.nested || c.sess.noBlock:
		timeout(c.Reply)
	default:
		c.srv.block(c, deadline, want, timeout, keys)
	}
}

// help replies the lines of a HELP subcommand between Redis's first and last ones.
func (c *Call) help(lines ...string) {
	name, _, _ := strings.Cut(c.cmd.Name, "|")
	c.Reply.Array(len(lines) + 3)
	c.Reply.Status(strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, line := range lines {
		c.Reply.Status(line)
	}
	c.Reply.Status("HELP")
	c.Reply.Status("    Prints this help.")
}

// unknownSubcommand is Redis's error for a subcommand that exists but does not
// accept these arguments.
func (c *Call) unknownSubcommand() {
	name, _, _ := strings.Cut(c.cmd.Name, "|")
	c.Reply.Error("ERR unknown subcommand or wrong number of arguments for '" + clip(c.argv[1], 128) + "'. Try " +
		strings.ToUpper(name) + " HELP.")
}
