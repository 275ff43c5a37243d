package keyspace

import (
	"encoding/binary"
	"fmt"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// Kind is the type of a value. The functions of a kind that are not on the path of every command
// are in a row of one table; layout.go, entry.go, weight.go and journal.go (attach) have a switch
// each, which calls without indirection. Outside of this package the kinds have two tables more:
// kind.go of package rdb (how a value is written) and kind.go of package archive (how the tools
// measure, compare, export and import it).
type Kind uint8

// The kinds of values.
const (
	KindString Kind = isString
	KindList   Kind = isList
	KindSet    Kind = isSet
	KindHash   Kind = isHash
	KindZset   Kind = isZset
	KindStream Kind = isStream
)

// kindCodes has the kinds as journals and records name them.
const kindCodes = "slthzx"

// kindRow is what a kind consists of besides its methods. The values that its functions get are of
// this kind.
type kindRow struct {
	name string // as TYPE names it

	make     func() any // not for the kinds whose new value a Builder collects
	clone    func(v any) any
	size     func(v any) int                                            // number of elements; for a stream, including those of its groups
	write    func(w *journal.Writer, v any)                             // writes the operations that construct a value
	replay   func(b *Builder, v any, op byte, o *journal.Operands) bool // executes one, if it is valid
	loaded   func(v any, l *Limits)                                     // follows the last operation of a Builder
	encoding func(v any, l *Limits) string                              // that Redis would use
	effort   func(v any, l *Limits) int                                 // about how many allocations Redis would free
}

// String returns the name of the kind, as TYPE does.
func (k Kind) String() string { return k.row().name }

// KindNamed returns the kind with a name that [Kind.String] returns.
func KindNamed(name string) (_ Kind, ok bool) {
	for k := KindString; k <= KindStream; k++ {
		if k.row().name == name {
			return k, true
		}
	}
	return 0, false
}

// KindOf returns the kind of a value.
func KindOf(value any) Kind {
	switch value.(type) {
	case *String:
		return KindString
	case *sequence.List:
		return KindList
	case *Set:
		return KindSet
	case *Hash:
		return KindHash
	case *zset.Set:
		return KindZset
	case *sequence.Stream:
		return KindStream
	}
	panic(fmt.Sprintf("BUG: unexpected value of type %T", value))
}

// row returns the row of a kind.
func (k Kind) row() kindRow {
	switch k {
	case KindString:
		return kindRow{
			name:     "string",
			clone:    func(v any) any { return v.(*String).Clone() },
			size:     func(any) int { return 1 },
			write:    func(w *journal.Writer, v any) { w.String(v.(*String).Content()) },
			replay:   func(b *Builder, _ any, op byte, o *journal.Operands) bool { return b.replayText(op, o) },
			loaded:   func(any, *Limits) {},
			encoding: func(v any, l *Limits) string { return v.(*String).Encoding(l) },
			effort:   func(any, *Limits) int { return 1 },
		}
	case KindList:
		return kindRow{
			name:     "list",
			make:     func() any { return new(sequence.List) },
			clone:    func(v any) any { return v.(*sequence.List).Clone() },
			size:     func(v any) int { return v.(*sequence.List).Len() },
			write:    func(w *journal.Writer, v any) { v.(*sequence.List).Write(w) },
			replay:   func(_ *Builder, v any, op byte, o *journal.Operands) bool { return v.(*sequence.List).Replay(op, o) },
			loaded:   func(v any, l *Limits) { v.(*sequence.List).Fit(l.ListMaxListpackSize) },
			encoding: func(v any, l *Limits) string { return v.(*sequence.List).Encoding(l.ListMaxListpackSize) },
			effort: func(v any, _ *Limits) int {
				const node = 8 << 10 // of Redis's list
				return v.(*sequence.List).Bytes() / node
			},
		}
	case KindSet:
		return kindRow{
			name:     "set",
			make:     func() any { return new(Set) },
			clone:    func(v any) any { return v.(*Set).Clone() },
			size:     func(v any) int { return v.(*Set).Len() },
			write:    func(w *journal.Writer, v any) { writeSet(w, v.(*Set)) },
			replay:   func(b *Builder, v any, op byte, o *journal.Operands) bool { return v.(*Set).replay(op, o, b.Limits) },
			loaded:   func(v any, l *Limits) { v.(*Set).Fit(l) },
			encoding: func(v any, l *Limits) string { return v.(*Set).Encoding(l) },
			effort:   func(v any, l *Limits) int { return effortOf(v.(*Set).Len(), v.(*Set).Encoding(l) == "hashtable") },
		}
	case KindHash:
		return kindRow{
			name:     "hash",
			make:     func() any { return new(Hash) },
			clone:    func(v any) any { return v.(*Hash).Clone() },
			size:     func(v any) int { return v.(*Hash).Len() },
			write:    func(w *journal.Writer, v any) { writeHash(w, v.(*Hash)) },
			replay:   func(b *Builder, v any, op byte, o *journal.Operands) bool { return v.(*Hash).replay(op, o, b.Limits) },
			loaded:   func(v any, l *Limits) { v.(*Hash).Fit(l) },
			encoding: func(v any, l *Limits) string { return v.(*Hash).Encoding(l) },
			effort:   func(v any, l *Limits) int { return effortOf(v.(*Hash).Len(), v.(*Hash).Encoding(l) == "hashtable") },
		}
	case KindZset:
		return kindRow{
			name:   "zset",
			clone:  func(v any) any { return v.(*zset.Set).Clone() },
			size:   func(v any) int { return v.(*zset.Set).Len() },
			write:  func(w *journal.Writer, v any) { writeSorted(w, v.(*zset.Set)) },
			replay: func(b *Builder, _ any, op byte, o *journal.Operands) bool { return b.replaySorted(op, o) },
			loaded: func(v any, l *Limits) { l.FitSorted(v.(*zset.Set)) },
			encoding: func(v any, _ *Limits) string {
				if IsListpack(v.(*zset.Set)) {
					return "listpack"
				}
				return "skiplist"
			},
			effort: func(v any, _ *Limits) int { return effortOf(v.(*zset.Set).Len(), !IsListpack(v.(*zset.Set))) },
		}
	case KindStream:
		return kindRow{
			name:     "stream",
			make:     func() any { return new(sequence.Stream) },
			clone:    func(v any) any { return v.(*sequence.Stream).Clone() },
			size:     func(v any) int { return v.(*sequence.Stream).Size() },
			write:    func(w *journal.Writer, v any) { v.(*sequence.Stream).Write(w) },
			replay:   func(_ *Builder, v any, op byte, o *journal.Operands) bool { return v.(*sequence.Stream).Replay(op, o) },
			loaded:   func(v any, _ *Limits) { v.(*sequence.Stream).Observe(nil) },
			encoding: func(v any, _ *Limits) string { return v.(*sequence.Stream).Encoding() },
			effort: func(v any, l *Limits) int {
				if n := l.Stream.MaxEntries; n > 0 {
					return v.(*sequence.Stream).Len() / n
				}
				return v.(*sequence.Stream).Len()
			},
		}
	}
	panic("BUG: a kind without a row")
}

// effortOf returns the effort for a value whose elements have allocations of their own, or not.
func effortOf(elements int, separate bool) int {
	if separate {
		return elements
	}
	return 1
}

// Clone returns a copy of a value in O(1); see the Clone method of each type.
func Clone(value any) any { return KindOf(value).row().clone(value) }

// sizeOf returns the number of elements of a value; for a stream, including the
// elements of its groups.
func sizeOf(value any) int { return KindOf(value).row().size(value) }

// MayBeEmpty reports whether a key may have this value without elements. Every command that
// writes asks, so it is not in the table.
func MayBeEmpty(value any) bool {
	switch value.(type) {
	case *String, *sequence.Stream:
		return true
	}
	return false
}

// EncodingOf names the encoding that Redis would use for a value.
func EncodingOf(value any, l *Limits) string { return KindOf(value).row().encoding(value, l) }

// FreeEffort estimates how many allocations Redis would have to free with a value.
func FreeEffort(value any, l *Limits) int { return KindOf(value).row().effort(value, l) }

// writeValue writes the operations that construct a value with its deadline.
func writeValue(w *journal.Writer, value any, deadline int64) {
	kind := KindOf(value)
	w.Buf = append(w.Buf, journal.OpNew, kindCodes[kind])
	if deadline != 0 {
		w.Buf = binary.AppendUvarint(append(w.Buf, journal.OpDeadline), uint64(deadline))
	}
	kind.row().write(w, value)
	w.Full(1)
}
