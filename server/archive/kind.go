package archive

import (
	"hash/maphash"
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// kindRow is how the tools measure, compare, write and read values of one kind. The values that
// its functions get are of this kind.
type kindRow struct {
	// size returns the number of elements and of their bytes, as [Value.Size] does.
	size func(v any) (elements int, bytes int64)

	// digest returns a hash of the elements, which depends on their order if the kind has one.
	digest func(s *sum, v any) uint64

	// commands writes the commands that make the value, without its deadlines.
	commands func(c *commands, v any) error

	// write writes the value as JSON, and read reads it and returns the number of elements in the
	// text.
	write func(p *buffer, v any) error
	read  func(j *jsonReader, l *keyspace.Limits) (v any, n int)
}

// rowOf returns the row of a kind.
func rowOf(k keyspace.Kind) kindRow {
	switch k {
	case keyspace.KindString:
		return stringRow()
	case keyspace.KindList:
		return listRow()
	case keyspace.KindSet:
		return setRow()
	case keyspace.KindHash:
		return hashRow()
	case keyspace.KindZset:
		return zsetRow()
	case keyspace.KindStream:
		return streamRow()
	}
	panic("BUG: a kind without a row")
}

// row returns the row of the value.
func (v *Value) row() kindRow { return rowOf(keyspace.KindOf(v.Value)) }

func stringRow() kindRow {
	return kindRow{
		size:   func(v any) (int, int64) { return 1, int64(v.(*keyspace.String).Len()) },
		digest: func(s *sum, v any) uint64 { return maphash.Bytes(s.seed, v.(*keyspace.String).Content()) },
		commands: func(c *commands, v any) error {
			c.command("SET", c.key, string(v.(*keyspace.String).Content()))
			return nil
		},
		write: func(p *buffer, v any) error {
			p.b = appendJSONText(p.b, string(v.(*keyspace.String).Content()))
			return nil
		},
		read: func(j *jsonReader, _ *keyspace.Limits) (any, int) { return keyspace.NewString(j.text()), 1 },
	}
}

func listRow() kindRow {
	return kindRow{
		size: func(v any) (n int, bytes int64) {
			for b := range v.(*sequence.List).Forward(0) {
				bytes += int64(len(b))
			}
			return v.(*sequence.List).Len(), bytes
		},
		digest: func(s *sum, v any) (h uint64) {
			for b := range v.(*sequence.List).Forward(0) {
				h = mix(h, maphash.Bytes(s.seed, b))
			}
			return h
		},
		commands: func(c *commands, v any) error {
			c.name = "RPUSH"
			for b := range v.(*sequence.List).Forward(0) {
				c.body = appendBulk(c.body, b)
				if err := c.element(1); err != nil {
					return err
				}
			}
			return c.end()
		},
		write: func(p *buffer, v any) error {
			a := p.array()
			for b := range v.(*sequence.List).Forward(0) {
				if err := a.text(string(b)); err != nil {
					return err
				}
			}
			return a.end()
		},
		read: func(j *jsonReader, l *keyspace.Limits) (any, int) {
			list := new(sequence.List)
			j.list('[', ']', func() { list.PushBack(j.text()) })
			list.Fit(l.ListMaxListpackSize)
			return list, list.Len()
		},
	}
}

func setRow() kindRow {
	return kindRow{
		size: func(v any) (n int, bytes int64) {
			for m := range v.(*keyspace.Set).All() {
				bytes += int64(len(m))
			}
			return v.(*keyspace.Set).Len(), bytes
		},
		digest: func(s *sum, v any) (h uint64) {
			for m := range v.(*keyspace.Set).All() {
				h += maphash.String(s.seed, m)
			}
			return h
		},
		commands: func(c *commands, v any) error {
			c.name = "SADD"
			for m := range v.(*keyspace.Set).All() {
				c.body = appendBulk(c.body, m)
				if err := c.element(1); err != nil {
					return err
				}
			}
			return c.end()
		},
		write: func(p *buffer, v any) error {
			a := p.array()
			for m := range v.(*keyspace.Set).All() {
				if err := a.text(m); err != nil {
					return err
				}
			}
			return a.end()
		},
		read: func(j *jsonReader, l *keyspace.Limits) (any, int) {
			set, n := new(keyspace.Set), 0
			j.list('[', ']', func() {
				set.Add(l, keyspace.MemberOf(j.text()))
				n++
			})
			return set, n
		},
	}
}

func hashRow() kindRow {
	return kindRow{
		size: func(v any) (n int, bytes int64) {
			for field, value := range v.(*keyspace.Hash).All() {
				bytes += int64(len(field) + len(value))
			}
			return v.(*keyspace.Hash).Len(), bytes
		},
		digest: func(s *sum, v any) (h uint64) {
			for field, value := range v.(*keyspace.Hash).All() {
				h += s.text(field, value)
			}
			return h
		},
		commands: func(c *commands, v any) error {
			c.name = "HSET"
			for field, value := range v.(*keyspace.Hash).All() {
				c.body = appendBulk(appendBulk(c.body, field), value)
				if err := c.element(2); err != nil {
					return err
				}
			}
			return c.end()
		},
		write: func(p *buffer, v any) error {
			a := p.array()
			for field, value := range v.(*keyspace.Hash).All() {
				if err := a.pair(field, func(b []byte) []byte { return appendJSONText(b, value) }); err != nil {
					return err
				}
			}
			return a.end()
		},
		read: func(j *jsonReader, l *keyspace.Limits) (any, int) {
			hash, n := new(keyspace.Hash), 0
			j.pairs(func(field []byte) {
				hash.Set(field, j.text(), l)
				n++
			})
			return hash, n
		},
	}
}

func zsetRow() kindRow {
	return kindRow{
		size: func(v any) (n int, bytes int64) {
			for m := range v.(*zset.Set).All() {
				bytes += int64(len(m)) + 8
			}
			return v.(*zset.Set).Len(), bytes
		},
		digest: func(s *sum, v any) (h uint64) {
			for m, score := range v.(*zset.Set).All() {
				h += maphash.Comparable(s.seed, [2]uint64{maphash.String(s.seed, m), math.Float64bits(score)})
			}
			return h
		},
		commands: func(c *commands, v any) error {
			c.name = "ZADD"
			var digits [32]byte
			for m, score := range v.(*zset.Set).All() {
				c.body = appendBulk(appendBulk(c.body, protocol.AppendFloat(digits[:0], score)), m)
				if err := c.element(2); err != nil {
					return err
				}
			}
			return c.end()
		},
		write: func(p *buffer, v any) error {
			a := p.array()
			for m, score := range v.(*zset.Set).All() {
				if err := a.pair(m, func(b []byte) []byte { return appendJSONScore(b, score) }); err != nil {
					return err
				}
			}
			return a.end()
		},
		read: func(j *jsonReader, l *keyspace.Limits) (any, int) {
			var elements []zset.Element
			j.pairs(func(member []byte) {
				elements = append(elements, zset.Element{Member: string(member), Score: j.score()})
			})
			n := len(elements)
			s := zset.Load(elements)
			l.FitSorted(s)
			return s, n
		},
	}
}

// streamRow leaves the groups of a stream out of its size. A stream is in stream.go.
func streamRow() kindRow {
	return kindRow{
		size: func(v any) (int, int64) { return v.(*sequence.Stream).Len(), streamSize(v.(*sequence.Stream)) },
		digest: func(s *sum, v any) (h uint64) {
			for ops := range keyspace.Chunks(v.(*sequence.Stream), 0) {
				h = mix(h, maphash.Bytes(s.seed, ops))
			}
			return h
		},
		commands: func(c *commands, v any) error { return c.stream(c.key, v.(*sequence.Stream)) },
		write:    func(p *buffer, v any) error { return p.streamJSON(v.(*sequence.Stream)) },
		read: func(j *jsonReader, l *keyspace.Limits) (any, int) {
			s := j.stream(l)
			return s, s.Len()
		},
	}
}
