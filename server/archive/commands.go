package archive

import (
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

// A CommandWriter writes single values as commands, in the form of [ExportCommands]. It
// is not safe for concurrent use.
type CommandWriter struct{ c commands }

// NewCommandWriter returns a writer of commands for a target.
func NewCommandWriter(w io.Writer, to rdb.Target) *CommandWriter {
	return &CommandWriter{commands{buffer: buffer{w: w}, target: to, db: noneSelected}}
}

// Write writes the commands that make a value in the selected database, where its key
// does not exist. Members and fields past their deadlines are left out; if no other is
// left it writes nothing. Writes of some 64 KB need not end with a command; the last one
// does.
func (w *CommandWriter) Write(v Value, now time.Time) error {
	v, live := v.live(now.UnixMilli())
	if !live && !keyspace.MayBeEmpty(v.Value) {
		return nil
	}
	w.c.db = v.DB
	if err := w.c.value(v); err != nil {
		return err
	}
	return w.c.flush()
}

// WriteDeadlines writes the commands that set the deadlines of the members or fields of
// a value that exists, as far as the target supports them.
func (w *CommandWriter) WriteDeadlines(v Value, now time.Time) error {
	v, _ = v.live(now.UnixMilli())
	if err := w.c.deadlines(v); err != nil {
		return err
	}
	return w.c.flush()
}

// Deadlines returns the members or fields of the value that have deadlines, scored by
// these in milliseconds since 1970; nil if there are none. It must not be changed.
func (v Value) Deadlines() *zset.Set { return v.memberDeadlines() }

// WithoutDeadlines returns a copy of the value whose members or fields have no deadlines.
// O(elements).
func (v Value) WithoutDeadlines() Value {
	d := v.memberDeadlines()
	if d == nil {
		return v
	}
	members := make([]string, 0, d.Len())
	for m := range d.All() {
		members = append(members, m)
	}
	switch x := v.Value.(type) {
	case *zset.Set:
		x = x.Clone()
		for _, m := range members {
			x.SetDeadline(m, 0)
		}
		v.Value = x
	case *keyspace.Hash:
		x = x.Clone()
		for _, m := range members {
			x.SetDeadlineBytes([]byte(m), 0)
		}
		v.Value = x
	}
	return v
}

// Portable returns the value as Redis before 7.0 has it: a stream without the numbers of entries
// added and read, without the highest deleted ID, and without consumers that have no entries,
// which Redis before 6.2 cannot create. O(elements).
func (v Value) Portable() Value {
	if _, stream := v.Value.(*sequence.Stream); !stream {
		return v
	}
	limits := keyspace.DefaultLimits()
	codec := rdb.NewCodec(&limits)
	x, err := codec.Payload(codec.AppendPortable(nil, v.Value))
	if err != nil {
		panic(fmt.Sprintf("BUG: a payload that was just made cannot be read: %v", err))
	}
	for _, g := range x.(*sequence.Stream).Groups() {
		for _, c := range slices.Clone(g.Consumers()) {
			if c.Len() == 0 {
				g.RemoveConsumer(c)
			}
		}
	}
	v.Value = x
	return v
}

// Same reports whether two values have the same type and elements, and the same
// deadlines of these; streams also the same groups, consumers and pending entries, but
// not the times at which consumers were seen. Keys and their deadlines are not compared.
// O(elements).
func Same(a, b Value) bool {
	a.Key, a.DB, a.Deadline = b.Key, b.DB, b.Deadline
	s := newSum()
	if x, ok := a.Value.(*sequence.Stream); ok {
		y, ok := b.Value.(*sequence.Stream)
		return ok && s.ofStream(x) == s.ofStream(y)
	}
	return s.of(a) == s.of(b)
}

// ofStream returns a hash of the commands that make a stream.
func (s *sum) ofStream(v *sequence.Stream) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	c := commands{buffer: buffer{w: &h}}
	if err := c.stream("", v); err == nil { // a hash accepts all
		_ = c.flush()
	}
	return h.Sum64()
}
