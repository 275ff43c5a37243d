package replication

import (
	"bytes"
	"math"
	"strconv"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/operation"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

const (
	// chunkBytes is the size at which a chunk of commands is yielded.
	chunkBytes = 64 << 10

	// batchElements and batchBytes are the maximum number of elements, and the number
	// of bytes after which no element is added, of one command.
	batchElements = 64
	batchBytes    = 64 << 10
)

// multi opens a transaction.
const multi = "*1\r\n$5\r\nMULTI\r\n"

// A Translator turns effects into commands of Redis. It remembers the database that
// its commands have selected. The zero value is ready to use, and selects a database
// before its first command. A Translator is not safe for concurrent use.
type Translator struct {
	Fields bool // the deadlines of fields are commands that all replicas understand

	selected int // database + 1; 0 if unknown
}

// Reset makes the next command that depends on the selected database be preceded by
// SELECT.
func (t *Translator) Reset() { t.selected = 0 }

// Commands yields the commands that repeat the effects, as RESP arrays of bulk
// strings, in chunks of about 64 KB plus one command. More than one command that
// writes are a transaction: MULTI … EXEC. A chunk is valid until yield returns.
// If yield returns false, the rest is not yielded, and the translator is reset.
//
// Values that the effects have pinned are encoded during the call, for which no lock
// is needed.
func (t *Translator) Commands(e *keyspace.Effects, yield func([]byte) bool) {
	w := writer{selected: &t.selected, fields: t.Fields, yield: yield, databases: e.Databases(), buf: []byte(multi)}
	for x := range e.All {
		w.effect(x)
		if w.stopped {
			t.Reset()
			return
		}
	}
	w.writeDeferred(nil)
	switch {
	case w.commands > 1:
		w.commands, w.db = 0, anyDB
		w.command("EXEC")
		w.flush()
	case w.commands == 1:
		w.buf = w.buf[len(multi):]
		w.flush()
	}
	if w.stopped {
		t.Reset()
	}
}

// anyDB is the database of commands that do not depend on the selected one.
const anyDB = -1

// writer writes the commands of one set of effects.
type writer struct {
	selected  *int
	fields    bool // see Translator.Fields
	yield     func([]byte) bool
	stopped   bool
	databases int

	buf      []byte // begins with MULTI until it is yielded
	commands int    // that write, so far
	db       int    // to which the next command applies, or anyDB

	batch    batch
	timed    timed
	flushed  []int // databases flushed by the last effects
	deferred deferred
	moved    int // effects to skip

	// The group and the consumer to which operations on a stream apply.
	group, consumer []byte
	newGroup        bool
}

// batch is a command that collects elements: head, body and tail are encoded
// arguments.
type batch struct {
	head, body, tail []byte
	args, elements   int
	next             []byte // head and tail of the next element
}

// deferred is an effect that sets a string or a deadline and is not written yet. The
// next effect often is the deadline of the same key: SET of a key that has a
// deadline then needs no KEEPTTL.
type deferred struct {
	any      bool
	effect   keyspace.Effect
	set      bool // the string is text
	text     []byte
	timed    bool // the deadline is this, 0 for none
	deadline int64
}

// flush yields the buffer.
func (w *writer) flush() {
	if len(w.buf) > 0 && !w.stopped {
		w.stopped = !w.yield(w.buf)
	}
	w.buf = w.buf[:0]
}

// begin appends the header of a command with n arguments, after SELECT if necessary.
func (w *writer) begin(n int) {
	if w.commands > 0 && len(w.buf) >= chunkBytes {
		w.flush()
	}
	w.commands++
	db := w.db
	if db == anyDB && *w.selected == 0 {
		db = 0 // as Redis, which selects a database before any command
	}
	if db != anyDB && *w.selected != db+1 {
		*w.selected = db + 1
		w.buf = appendArgs(appendHeader(w.buf, '*', 2), "SELECT", int64(db))
	}
	w.buf = appendHeader(w.buf, '*', n)
}

func appendHeader(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), '\r', '\n')
}

func appendBulk[T string | []byte](b []byte, arg T) []byte {
	return append(append(appendHeader(b, '$', len(arg)), arg...), '\r', '\n')
}

func appendArgs(b []byte, args ...any) []byte {
	for _, a := range args {
		switch a := a.(type) {
		case string:
			b = appendBulk(b, a)
		case []byte:
			b = appendBulk(b, a)
		case int64:
			var d [20]byte
			b = appendBulk(b, strconv.AppendInt(d[:0], a, 10))
		case float64:
			var d [32]byte
			b = appendBulk(b, appendScore(d[:0], a))
		case sequence.StreamID:
			var d [41]byte
			b = appendBulk(b, a.Append(d[:0]))
		default:
			panic("BUG: an argument of another type")
		}
	}
	return b
}

// appendScore appends a score so that it is read back exactly.
func appendScore(b []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(b, "inf"...)
	case math.IsInf(score, -1):
		return append(b, "-inf"...)
	}
	return strconv.AppendFloat(b, score, 'g', 17, 64)
}

// command writes a command after those that are collected.
func (w *writer) command(args ...any) {
	w.endBatch()
	w.begin(len(args))
	w.buf = appendArgs(w.buf, args...)
}

// add adds an element, of some arguments, to a command with the arguments head before
// all elements, and tail after them. Equal ones of subsequent elements share a command.
func (w *writer) add(head []any, element []any, tail ...any) {
	b := &w.batch
	b.next = appendArgs(b.next[:0], head...)
	at := len(b.next)
	b.next = appendArgs(b.next, tail...)
	if b.elements == batchElements || len(b.body) >= batchBytes || !bytes.Equal(b.head, b.next[:at]) || !bytes.Equal(b.tail, b.next[at:]) {
		w.endBatch()
		b.head, b.tail = append(b.head[:0], b.next[:at]...), append(b.tail[:0], b.next[at:]...)
		b.args = len(head) + len(tail)
	}
	b.body = appendArgs(b.body, element...)
	b.args += len(element)
	b.elements++
}

// endBatch writes the command that collects elements.
func (w *writer) endBatch() {
	b := &w.batch
	if b.elements == 0 {
		return
	}
	w.begin(b.args)
	w.buf = append(append(append(w.buf, b.head...), b.body...), b.tail...)
	b.head, b.body, b.tail, b.args, b.elements = b.head[:0], b.body[:0], b.tail[:0], 0, 0
}

// effect writes an effect, or defers it.
func (w *writer) effect(x *keyspace.Effect) {
	if w.moved > 0 { // the command of the move does it
		w.moved--
		return
	}
	if w.deferEffect(x) {
		return
	}
	w.writeDeferred(x)
	switch x.Change {
	case keyspace.ChangeMove:
		w.db = x.DB
		w.move(x)
	case keyspace.ChangeFlush:
		w.flushed = append(w.flushed, x.DB)
	case keyspace.ChangeSwap:
		w.db = anyDB
		w.command("SWAPDB", int64(x.DB), int64(x.Other))
	case keyspace.ChangeMessage:
		w.db = anyDB
		if x.How == 1 {
			w.command("SPUBLISH", x.Key, x.Message)
		} else {
			w.command("PUBLISH", x.Key, x.Message)
		}
	default:
		w.timed.kind = x.Kind
		if w.db = x.DB; w.db == keyspace.InternalDB {
			w.db = anyDB
			w.library(x)
		} else {
			w.key(x)
		}
	}
	w.endBatch()
	w.endTimed(x.Key)
}

// move writes a move of an element, and skips the effects that it consists of: one for each
// list.
func (w *writer) move(x *keyspace.Effect) {
	end := func(back sequence.Move) string {
		if sequence.Move(x.How)&back != 0 {
			return "RIGHT"
		}
		return "LEFT"
	}
	if sequence.Move(x.How)&sequence.Rpoplpush != 0 {
		w.command("RPOPLPUSH", x.Key, x.Message)
	} else {
		w.command("LMOVE", x.Key, x.Message, end(sequence.FromBack), end(sequence.ToBack))
	}
	if w.moved = 2; bytes.Equal(x.Key, x.Message) {
		w.moved = 1
	}
}

// deferEffect defers an effect that is only a string or a deadline, and reports whether it is.
func (w *writer) deferEffect(x *keyspace.Effect) bool {
	if x.Change != keyspace.ChangeKey || x.DB == keyspace.InternalDB || x.Whole() {
		return false
	}
	var only operation.Operation
	n := 0
	for op := range x.Operations {
		only = *op
		if n++; n > 1 {
			return false
		}
	}
	h := &w.deferred
	if n == 1 && only.Code == operation.Deadline {
		if !h.any || h.effect.DB != x.DB || !bytes.Equal(h.effect.Key, x.Key) {
			w.writeDeferred(x)
			*h = deferred{any: true, effect: *x}
		}
		h.timed, h.deadline = true, only.N
		return true
	}
	if n == 1 && only.Code == operation.String {
		w.writeDeferred(x)
		*h = deferred{any: true, effect: *x, set: true, text: only.Text}
		return true
	}
	return false
}

// writeDeferred writes the deferred effect before effect x, nil for the end.
func (w *writer) writeDeferred(x *keyspace.Effect) {
	if h := w.deferred; h.any {
		w.deferred = deferred{}
		w.db = h.effect.DB
		switch {
		case !h.set:
		case h.effect.Volatile && !h.timed:
			w.command("SET", h.effect.Key, h.text, "KEEPTTL")
		default:
			w.command("SET", h.effect.Key, h.text)
		}
		if h.timed && (!h.set || h.deadline != 0) {
			w.deadline(h.effect.Key, h.deadline)
		}
	}
	if len(w.flushed) > 0 && (x == nil || x.Change != keyspace.ChangeFlush) {
		w.flushDatabases()
	}
}

// flushDatabases writes the flushes of the last effects. The database of libraries is never
// flushed: they are deleted one by one.
func (w *writer) flushDatabases() {
	seen := map[int]bool{}
	for _, db := range w.flushed {
		seen[db] = true
	}
	if len(seen) == w.databases {
		w.db = anyDB
		w.command("FLUSHALL")
	} else {
		for _, db := range w.flushed {
			w.db = db
			w.command("FLUSHDB")
		}
	}
	w.flushed = w.flushed[:0]
}

// deadline writes the deadline of a key, 0 for none.
func (w *writer) deadline(key []byte, ms int64) {
	if ms == 0 {
		w.command("PERSIST", key)
	} else {
		w.command("PEXPIREAT", key, ms)
	}
}

// library writes a change of a library of functions, which is a string that has its
// name as key.
func (w *writer) library(x *keyspace.Effect) {
	var code []byte
	for op := range x.Operations {
		switch op.Code {
		case operation.Delete:
			w.command("FUNCTION", "DELETE", x.Key)
			return
		case operation.String, operation.Write:
			code = append(code[:op.N], op.Text...)
		}
	}
	w.command("FUNCTION", "LOAD", "REPLACE", code)
}

// key writes the operations on a key.
func (w *writer) key(x *keyspace.Effect) {
	whole, deadline := x.Whole(), int64(0)
	if whole && x.Existed && x.Kind != keyspace.KindString {
		w.command("DEL", x.Key)
	}
	if whole && x.Kind == keyspace.KindStream {
		deadline = w.wholeStream(x)
	}
	for op := range x.Operations {
		switch op.Code {
		case operation.New:
		case operation.Delete:
			w.timed.members = w.timed.members[:0]
			w.command("DEL", x.Key)
		case operation.Deadline:
			if whole { // it comes before the elements
				deadline = op.N
			} else {
				w.deadline(x.Key, op.N)
			}
		case operation.String:
			if !whole && x.Volatile {
				w.command("SET", x.Key, op.Text, "KEEPTTL")
			} else {
				w.command("SET", x.Key, op.Text)
			}
		case operation.Write:
			w.command("SETRANGE", x.Key, op.N, op.Text)
		default:
			w.change(x, op)
		}
		if w.stopped {
			return
		}
	}
	if deadline != 0 {
		w.deadline(x.Key, deadline)
	}
}

// change writes an operation on a collection.
func (w *writer) change(x *keyspace.Effect, op *operation.Operation) {
	switch x.Kind {
	case keyspace.KindList:
		w.list(x.Key, op)
	case keyspace.KindHash:
		switch op.Code {
		case operation.Put:
			w.add([]any{"HSET", x.Key}, []any{op.Text, op.Value})
		case operation.Expire:
			w.expire(x.Key, op.Text, op.N)
		default:
			w.timed.forget(op.Text)
			w.add([]any{"HDEL", x.Key}, []any{op.Text})
		}
	case keyspace.KindSet:
		if op.Code == operation.Put {
			w.add([]any{"SADD", x.Key}, []any{op.Text})
		} else {
			w.add([]any{"SREM", x.Key}, []any{op.Text})
		}
	case keyspace.KindZset:
		switch op.Code {
		case operation.Put:
			w.add([]any{"ZADD", x.Key}, []any{op.Score, op.Text})
		case operation.Expire:
			w.expire(x.Key, op.Text, op.N)
		default:
			w.timed.forget(op.Text)
			w.add([]any{"ZREM", x.Key}, []any{op.Text})
		}
	case keyspace.KindStream:
		w.stream(x.Key, op)
	default:
		panic("BUG: an operation on elements of a string")
	}
}

// list writes an operation on a list.
func (w *writer) list(key []byte, op *operation.Operation) {
	switch op.Code {
	case operation.Front:
		w.add([]any{"LPUSH", key}, []any{op.Text})
	case operation.Back:
		w.add([]any{"RPUSH", key}, []any{op.Text})
	case operation.PopFront:
		w.command("LPOP", key)
	case operation.PopBack:
		w.command("RPOP", key)
	case operation.Index:
		w.command("LSET", key, op.N, op.Text)
	case operation.Matching:
		w.command("LREM", key, op.N, op.Text)
	case operation.RemoveRange:
		if op.N == 0 {
			w.command("LTRIM", key, op.M, "-1")
		} else {
			w.command("LTRIM", key, "0", op.N-1)
		}
	case operation.Insert:
		switch {
		case op.N == 0:
			w.add([]any{"LPUSH", key}, []any{op.Text})
		case op.AtEnd:
			w.add([]any{"RPUSH", key}, []any{op.Text})
		case op.Before:
			w.command("LINSERT", key, "BEFORE", op.Pivot, op.Text)
		default:
			w.command("LINSERT", key, "AFTER", op.Pivot, op.Text)
		}
	}
}
