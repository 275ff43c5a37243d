package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/zset"
)

func newTestCodec() *Codec {
	limits := keyspace.DefaultLimits()
	return NewCodec(&limits)
}

func TestChecksum(t *testing.T) {
	if got := newTestCodec().sum(0, []byte("123456789")); got != 0xe9c6d914c4b8d9ca {
		t.Errorf("%x", got)
	}
}

func TestCompression(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var z lzf
	for range 3000 {
		in := make([]byte, r.IntN(1<<(1+r.IntN(15))))
		letters := 1 + r.IntN(1<<r.IntN(8))
		for i := range in {
			if i > 30 && r.IntN(3) > 0 {
				in[i] = in[i-1-r.IntN(30)]
			} else {
				in[i] = byte(r.IntN(letters))
			}
		}
		out, ok := z.compress([]byte("before"), in)
		if !ok {
			continue
		}
		if len(out) > len(in)+6-4 {
			t.Fatalf("%d bytes became %d", len(in), len(out)-6)
		}
		back, ok := decompress(out[6:], len(in))
		if !ok || !bytes.Equal(back, in) {
			t.Fatalf("%q came back as %q", in, back)
		}
	}
}

// Payloads of Redis 2.4 to 7.4, for the shapes that no newer one writes.
func TestOldShapes(t *testing.T) {
	c := newTestCodec()
	ziplist := "\x19\x00\x00\x00\x14\x00\x00\x00\x04\x00" + "\x00\x01a" + "\x03\xf3" + "\x02\x01b" + "\x03\xc0\x00\x02" + "\xff"
	ziplist = fixZiplist(ziplist)
	for kind, body := range map[byte]string{
		typeHashZipmap:      "\x0e\x02\x01a\x01\x002\x01b\x03\x00512\xff",
		typeHashZiplist:     string([]byte{byte(len(ziplist))}) + ziplist,
		typeZsetZiplist:     string([]byte{byte(len(ziplist))}) + ziplist,
		typeListZiplist:     string([]byte{byte(len(ziplist))}) + ziplist,
		typeListQuicklist:   "\x01" + string([]byte{byte(len(ziplist))}) + ziplist,
		typeZset:            "\x04\x01a\x012\x01b\x03512\x01c\xfe\x01d\xff",
		typeSetListpack:     "\x0d\x0d\x00\x00\x00\x02\x00\x81a\x02\x81b\x02\xff",
		typeHashListpackTTL: "\xe8\x03\x00\x00\x00\x00\x00\x00" + "\x17\x17\x00\x00\x00\x06\x00\x81a\x02\x02\x01\xc3\xe8\x02\x81b\x02\xc2\x00\x02\x00\x01\xff",
	} {
		in := input{rest: []byte(body)}
		v, err := c.value(&in, kind)
		if err != nil || in.bad {
			t.Errorf("type %d: %v", kind, err)
			continue
		}
		switch v := v.(type) {
		case *keyspace.Hash:
			if d := v.Deadlines(); kind == typeHashListpackTTL && (d == nil || d.Len() != 1) {
				t.Errorf("type %d: deadlines %v", kind, d)
			}
			if x, _ := v.Get([]byte("b")); v.Len() != 2 || x != "512" {
				t.Errorf("type %d: b is %q", kind, x)
			}
		case *zset.Set:
			if x, _ := v.Score("b"); x != 512 {
				t.Errorf("type %d: b is %v", kind, x)
			}
		case *keyspace.List:
			if v.Len() != 4 || string(v.At(3)) != "512" {
				t.Errorf("type %d: %q", kind, v.At(3))
			}
		case *keyspace.Set:
			if v.Len() != 2 {
				t.Errorf("type %d: %d", kind, v.Len())
			}
		}
	}
}

// fixZiplist writes the size of a ziplist of four elements and where its last one begins.
func fixZiplist(s string) string {
	b := []byte(s)
	b[0], b[4] = byte(len(b)), byte(len(b)-1-4)
	return string(b)
}

// Deadlines of members stay with a value.
func TestDeadlines(t *testing.T) {
	c := newTestCodec()
	h := new(keyspace.Hash)
	for _, f := range []string{"a", "b", "c"} {
		h.Set([]byte(f), []byte("v"), c.Limits)
	}
	h.SetDeadlineBytes([]byte("a"), 5000)
	h.SetDeadlineBytes([]byte("c"), 4000)
	s := zset.Load([]zset.Element{{Member: "a", Score: 2}, {Member: "b", Score: math.Inf(-1)}})
	s.SetDeadline("b", 7000)
	for _, v := range []any{h, s} {
		for _, b := range [][]byte{c.AppendPayload(nil, v), c.AppendPortable(nil, v)} {
			got, err := c.Payload(b)
			if err != nil {
				t.Fatal(err)
			}
			d, want := timed(got), timed(v)
			if d.Len() != want.Len() {
				t.Fatalf("%d deadlines", d.Len())
			}
			for m, at := range want.All() {
				if x, _ := d.Score(m); x != at {
					t.Errorf("%s: %v", m, x)
				}
			}
		}
	}
}

// seeds are payloads of all types.
func seeds(c *Codec) [][]byte {
	var all [][]byte
	add := func(v any) { all = append(all, c.AppendPayload(nil, v), c.AppendPortable(nil, v)) }
	add(keyspace.NewString([]byte("hello")))
	add(keyspace.NewString([]byte("-1234567")))
	add(keyspace.NewString(bytes.Repeat([]byte("compress me "), 20)))
	l, s, big, h := new(keyspace.List), new(keyspace.Set), new(keyspace.Set), new(keyspace.Hash)
	var elements []zset.Element
	for i, w := range strings.Fields("a 1 -200 70000 9999999999 some 0 text " + strings.Repeat("x", 70)) {
		l.PushBack([]byte(w))
		s.Add(c.Limits, keyspace.MemberOf([]byte(w)))
		big.Add(c.Limits, keyspace.MemberOf([]byte{'0' + byte(i)}))
		h.Set([]byte(w), []byte(w), c.Limits)
		elements = append(elements, zset.Element{Member: w, Score: float64(i) / 3})
	}
	l.Fit(c.Limits)
	add(l)
	add(s)
	add(big)
	add(h)
	add(zset.Load(elements))
	add(zset.Load(elements[:3]))
	h = h.Clone()
	h.SetDeadlineBytes([]byte("a"), 1000)
	add(h)
	timedSet := zset.Load(elements[:3])
	timedSet.SetDeadline("a", 1000)
	add(timedSet)
	x := new(keyspace.Stream)
	for i := range 250 {
		x.Add(keyspace.StreamID{Ms: uint64(i * i), Seq: uint64(i%3 + 1)}, [][]byte{[]byte("field"), fmt.Append(nil, i), {byte(i % 40 / 39)}, nil}, c.Limits)
	}
	x.Delete(keyspace.StreamID{Ms: 25, Seq: 3})
	add(x)
	g := x.AddGroup([]byte("g"), keyspace.StreamID{}, 0)
	g.ReadNext(g.AddConsumer([]byte("c"), 1), 20, 1000, true, func(keyspace.StreamEntry) {})
	g.Deliver(g.AddConsumer([]byte("d"), 2), keyspace.StreamID{Ms: 5}, 7, 3)
	x.AddGroup(nil, keyspace.MaxStreamID(), keyspace.UnknownRead)
	add(x)
	add(new(keyspace.Stream))
	return all
}

// Whatever a payload holds, reading it ends with a sound value or an error, and a value can
// be written again.
func FuzzPayload(f *testing.F) {
	c := newTestCodec()
	c.SkipChecksums = true
	for _, b := range seeds(c) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocatedBytes()
		v, err := c.Payload(b)
		if took := allocatedBytes() - before; took > 4<<20+uint64(len(b))<<11 {
			t.Fatalf("%d bytes for %d", took, len(b))
		}
		if err != nil {
			return
		}
		if err := v.(interface{ Check() error }).Check(); err != nil {
			t.Fatal(err)
		}
		again, err := c.Payload(c.AppendPayload(nil, v))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.AppendPortable(nil, v), c.AppendPortable(nil, again)) {
			if _, table := v.(*keyspace.Set); !table {
				if _, table := v.(*keyspace.Hash); !table {
					t.Fatal("it has changed on the way")
				}
			}
		}
	})
}

// Every payload that has lost or changed a byte is refused, unless checksums are skipped.
func TestDamage(t *testing.T) {
	c := newTestCodec()
	r := rand.New(rand.NewPCG(1, 1))
	for _, b := range seeds(c) {
		if _, err := c.Payload(b); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			d := bytes.Clone(b)
			d[r.IntN(len(d))] ^= 1 << r.IntN(8)
			if _, err := c.Payload(d); !errors.Is(err, ErrChecksum) {
				t.Errorf("%x: %v", d, err)
			}
			c.SkipChecksums = true
			c.Payload(d)
			c.Payload(d[:r.IntN(len(d))])
			c.SkipChecksums = false
		}
	}
}

// A payload that claims to be huge takes no more memory than one of its size may.
func TestClaims(t *testing.T) {
	c := newTestCodec()
	c.SkipChecksums = true
	r := rand.New(rand.NewPCG(3, 4))
	all := slices.DeleteFunc(seeds(c), func(b []byte) bool { return len(b) > 2000 })
	var before, after runtime.MemStats
	for range 10000 {
		d := bytes.Clone(all[r.IntN(len(all))])
		for range 1 + r.IntN(4) {
			switch at := r.IntN(len(d)); r.IntN(4) {
			case 0:
				d[at] = byte(r.IntN(256))
			case 1: // a length of 32 bits
				if at+5 < len(d) {
					d[at] = 0x80
					binary.BigEndian.PutUint32(d[at+1:], uint32(r.IntN(1<<30)))
				}
			case 2: // and one of 64
				if at+9 < len(d) {
					d[at] = 0x81
					binary.BigEndian.PutUint64(d[at+1:], uint64(r.Int64N(1<<40)))
				}
			case 3:
				d = d[:at+1]
			}
		}
		runtime.ReadMemStats(&before)
		c.Payload(d)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Fatalf("%d bytes for %d: %x", took, len(d), d)
		}
	}
}

// FuzzFile is FuzzPayload for files.
func FuzzFile(f *testing.F) {
	c := newTestCodec()
	c.SkipChecksums = true
	var all []byte
	w := NewWriter(c)
	all = w.AppendHead(all)
	for i, b := range seeds(c) {
		v, err := c.Payload(b)
		if err != nil {
			f.Fatal(err)
		}
		one := NewWriter(c)
		file := one.AppendHead(nil)
		file = one.AppendLibrary(file, "#!lua name=x\n")
		file = one.AppendKey(file, i%3, fmt.Sprint("key", i), v, int64(i%2)*1e12)
		f.Add(one.AppendEnd(file))
		all = w.AppendKey(all, i/9, fmt.Sprint("key", i), v, 0)
	}
	f.Add(w.AppendEnd(all))
	f.Add([]byte("REDIS0009\xfa\x09redis-ver\x055.0.0\xf7\x81\x00\x00\x00\x00\x00\x00\x00\x01\x02\x05\x01a\x00\xf8\x05\xf9\x01\xfb\x01\x01\xfd\x00\x00\x00\x01\x00\x01k\xc0\x05\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := allocatedBytes()
		c.ReadFile(bytes.NewReader(b), func(e Entry) error {
			if e.Value != nil {
				if err := e.Value.(interface{ Check() error }).Check(); err != nil {
					t.Fatal(err)
				}
			}
			return nil
		})
		if took := allocatedBytes() - before; took > 8<<20+uint64(len(b))<<11 {
			t.Fatalf("%d bytes for %d", took, len(b))
		}
	})
}

func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
