package server

import (
	"math/rand/v2"
	"strings"
	"unsafe"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// Call is one execution of a command: its arguments, its reply and the
// keyspace. It is all that a handler sees.
//
// A handler reads all its arguments, asks c.ok(), opens the doors it needs
// (read, edit, create), changes what it finds, says Changed for each key it has
// changed, and writes exactly one reply. It must not keep a Call, nor any
// argument, beyond its return.
type Call struct {
	protocol.Args
	Reply *protocol.Reply

	cmd  *Command
	argv [][]byte // the whole command line, name included
	sess *Session
	srv  *Server
	db   *keyspace.DB

	nested       bool // inside EXEC: must not block
	again        bool // run again for a waiter
	stillBlocked bool // and could do nothing again
	large        bool // it took longer than other commands of its name; see series
	edited       []opened
	secret       []int // arguments that are nobody's business; see redact
	counted      bool  // the error that it replies was counted before, with the command of a script
}

const (
	errWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errNoSuchKey = "ERR no such key"
)

// ok reports whether all arguments were read without an error; if not, the
// error has been replied and the handler must return.
func (c *Call) ok() bool {
	if e := c.Err(); e != "" {
		c.Reply.Error(e)
		return false
	}
	return true
}

// end is ok for commands that take no further arguments: what is left over is
// a syntax error.
func (c *Call) end() bool {
	if c.Len() > 0 {
		c.Fail(protocol.ErrSyntax)
	}
	return c.ok()
}

// now returns the time of the unit in milliseconds since 1970.
func (c *Call) now() int64 { return c.srv.keys.Now() }

// rand returns the unit's source of chance.
func (c *Call) rand() *rand.Rand { return c.srv.rand }

// limits returns the sizes up to which values keep their small shape.
func (c *Call) limits() *keyspace.Limits { return &c.srv.keys.Limits }

// value is what a key can hold.
type value interface {
	keyspace.String | keyspace.List | keyspace.Set | keyspace.Hash | keyspace.Stream | zset.Set
}

// read opens a key for reading. The value is nil if there is no such key. If
// the key holds another type, the error has been replied and ok is false.
func read[T value](c *Call, key []byte) (v *T, ok bool) {
	e := c.db.Get(key)
	if e == nil {
		return nil, true
	}
	return as[T](c, e)
}

// edit opens a key for changing; otherwise it is as read. A collection that
// the handler empties is dropped, with a del event, when the handler returns.
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

// create is edit that makes an empty value where there is none. If the handler
// leaves it empty, the key vanishes again without an event.
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

// isCollection reports whether v may not be empty.
func isCollection(v any) bool { return !keyspace.MayBeEmpty(v) }

func as[T value](c *Call, e *keyspace.Entry) (*T, bool) {
	v, ok := e.Value().(*T)
	if !ok {
		c.Reply.Error(errWrongType)
	}
	return v, ok
}

// put gives key this value, whatever it held before, and removes its deadline.
func (c *Call) put(key []byte, v any) *keyspace.Entry { return c.db.Put(key, v, false) }

// drop removes key, says so with a del event, and reports whether it existed.
func (c *Call) drop(key []byte) bool {
	if !c.db.Delete(key) {
		return false
	}
	c.Changed(key, classGeneric, "del")
	return true
}

// settle drops every collection that was opened for changing and has become
// empty, with a del event unless it was created by this very call. It runs
// when the handler has returned; a handler calls it itself where the del event
// must come earlier.
func (c *Call) settle() {
	if u := &c.srv.unit; u.told < len(u.members) {
		panic("BUG: " + c.cmd.Name + " touched members, and no event tells of them")
	}
	for i, o := range c.edited {
		c.edited[i] = opened{}
		v, ok := o.entry.Value().(interface{ Len() int })
		if !ok || v.Len() > 0 {
			continue
		}
		key := bytesOf(o.entry.Key())
		if c.db.Peek(key) != o.entry {
			continue // replaced or gone already
		}
		c.db.Delete(key)
		if o.created {
			c.srv.unit.forget(c.db.ID(), o.entry.Key())
		} else {
			c.Changed(key, classGeneric, "del")
		}
	}
	c.edited = c.edited[:0]
	c.srv.keys.Seal()
}

// opened is a key that was opened for changing in the current call.
type opened struct {
	entry   *keyspace.Entry
	created bool
}

// door is a value that is open for changing through its entry, which may become
// another with each change: so a small value and its key can be one.
type door[T value] struct {
	c *Call
	e *keyspace.Entry // nil if there is no such key
}

// open is edit that leaves the value where it is.
func open[T value](c *Call, key []byte) (d door[T], ok bool) {
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

// value returns the value, nil if there is none. It is good until the next change.
func (d *door[T]) value() *T {
	if d.e == nil {
		return nil
	}
	return d.e.Value().(*T)
}

// now notes what the entry is after a change.
func (d *door[T]) now(e *keyspace.Entry) {
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

// bytesOf returns the bytes of s without copying. They must not be written to.
// They are never nil, which as an argument would say that there is none.
func bytesOf(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// Changed says that the value at key was changed, and by what event, in the
// words of keyspace notifications. Everything that follows from a change
// follows from this line, when the unit commits. The key is borrowed until
// then.
func (c *Call) Changed(key []byte, class class, event string) {
	c.srv.unit.changed(c.db.ID(), protocol.View(key), class, event)
}

// ChangedAside is Changed for what Redis does not call a change of the key, such
// as what happens to the groups of a stream: WATCH does not see it, and nobody
// who waits for the key is tried again. Without an event it is only counted.
func (c *Call) ChangedAside(key []byte, class class, event string) {
	u := &c.srv.unit
	u.changes++
	if event != "" {
		u.event(c.db.ID(), protocol.View(key), class, event)
	}
}

// Touched says which member, or field of a hash, the next Changed of that class
// tells of: one line for each, in the order in which they were changed. It is
// copied; while nobody listens it costs a comparison.
func (c *Call) Touched(class class, member []byte) {
	if c.tells(class) {
		c.srv.unit.touched(class, member)
	}
}

// TouchedOnce is Touched for commands that may change a member twice before
// they say Changed. It borrows the member until then.
func (c *Call) TouchedOnce(class class, member []byte) {
	if c.tells(class) {
		c.srv.unit.touchedOnce(class, member)
	}
}

// tells reports whether it matters what Touched says of that class, for those
// who would have to go and see.
func (c *Call) tells(class class) bool { return c.srv.subkeys&class != 0 }

// ChangedIn is Changed for a key of another database.
func (c *Call) ChangedIn(db *keyspace.DB, key []byte, class class, event string) {
	c.srv.unit.changed(db.ID(), protocol.View(key), class, event)
}

// wait is how a command blocks: it could do nothing now, and is to be tried
// again whenever one of keys, holding a value of the given kind, is changed.
// At the deadline (milliseconds since 1970, 0 for never), or at once where
// blocking is not allowed, the reply is what timeout writes.
//
// The handler must have changed and replied nothing, and return.
func (c *Call) wait(deadline int64, kind kind, timeout func(*protocol.Reply), keys ...[]byte) {
	c.waitFor(deadline, want{kind: kind}, timeout, keys)
}

// waitFor is wait for what may be more than a key of a kind.
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

// help replies the lines of a HELP subcommand between Redis's first and last
// ones.
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

// unknownSubcommand is Redis's reply to a subcommand that exists, with
// arguments that it does not take.
func (c *Call) unknownSubcommand() {
	name, _, _ := strings.Cut(c.cmd.Name, "|")
	c.Reply.Error("ERR unknown subcommand or wrong number of arguments for '" + clip(c.argv[1], 128) + "'. Try " +
		strings.ToUpper(name) + " HELP.")
}
