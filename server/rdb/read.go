package rdb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

var (
	// ErrChecksum is the error of payloads that are damaged, or newer than this
	// package.
	ErrChecksum = errors.New("wrong version or checksum")

	// ErrFormat is the error of data that no Redis writes, or that are damaged.
	ErrFormat = errors.New("bad data format")

	// ErrEmpty is the error of collections without elements, which files of some
	// old versions have.
	ErrEmpty = errors.New("empty collection")

	// ErrModule is the error of values of modules, as Redis has written them since 4.0.
	ErrModule = errors.New("value of module")

	// ErrType is the error of values of types that can neither be read nor skipped.
	ErrType = errors.New("unknown value type")
)

// intact reports whether the last eight bytes are the checksum of the others, or zero, which
// stands for none.
func (c *Codec) intact(b []byte) bool {
	sum := binary.LittleEndian.Uint64(b[len(b)-8:])
	return c.SkipChecksums || sum == 0 || sum == c.crc.sum(0, b[:len(b)-8])
}

// Payload returns the value in a reply of DUMP.
func (c *Codec) Payload(b []byte) (any, error) {
	if len(b) < 10 {
		return nil, ErrChecksum
	}
	body, footer := b[:len(b)-10], b[len(b)-10:]
	v := int(binary.LittleEndian.Uint16(footer))
	if !known(v) && !c.AnyVersion || !c.intact(b) {
		return nil, ErrChecksum
	}
	in := input{rest: body, valkey: v == versionValkey}
	kind := in.byte()
	value, err := c.value(&in, kind)
	if err == nil && !in.sound() {
		err = ErrFormat
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// input is bytes to read: all of them in memory, or the contents of a file. Once it has ended
// too early, or a length was invalid, it is bad and yields zeros. While it is only spoiled the
// lengths are still known: the rest of the value is read, but not kept.
type input struct {
	rest  []byte // the unread bytes in memory
	file  *bufio.Reader
	chunk []byte // a copy of the bytes that file has buffered, which ends with rest

	memory []byte // of chunk
	before []byte // memory of the chunk before it, to which the value being read may refer; or nil
	spare  []byte // memory for the next chunk, or nil

	crc   *crcTables
	sum   uint64 // of the file up to chunk
	bad   bool
	spoil bool  // a value has invalid contents
	err   error // the error of reading the file

	valkey bool // the dialect: some numbers have other meanings there
}

// settle removes the bytes that were read from the chunk, and adds them to the checksum.
func (in *input) settle() {
	done := in.chunk[:len(in.chunk)-len(in.rest)]
	in.sum = in.crc.sum(in.sum, done)
	in.chunk = in.rest
	in.file.Discard(len(done)) // which are buffered
}

// fill reads the next chunk of a file, of at least n bytes, which is at most ReadSize. The
// bytes of earlier ones stay as they are until release.
func (in *input) fill(n int) {
	in.settle()
	if _, in.err = in.file.Peek(n); in.err != nil {
		in.fail()
		return
	}
	b, _ := in.file.Peek(in.file.Buffered())
	in.before, in.memory, in.spare = in.memory, append(in.spare[:0], b...), nil
	in.chunk, in.rest = in.memory, in.memory
}

// release allows the memory of earlier chunks to be used again.
func (in *input) release() {
	if in.before != nil {
		in.spare, in.before = in.before, nil
	}
}

func (in *input) fail() {
	in.bad, in.rest = true, nil
}

// check makes the input spoiled unless ok is true.
func (in *input) check(ok bool) {
	if !ok {
		in.spoil = true
	}
}

// sound reports whether the input is neither bad nor spoiled.
func (in *input) sound() bool { return !in.bad && !in.spoil }

// readLimit is the number of bytes that are read from a file at once, so that a false
// length allocates little.
const readLimit = 1 << 20

// next returns the next n bytes, which later reads do not overwrite before release.
func (in *input) next(n uint64) []byte {
	if in.bad {
		return nil
	}
	if n > uint64(len(in.rest)) {
		if in.file != nil && n > ReadSize {
			return in.takeLong(n)
		}
		if in.file != nil {
			in.fill(int(n))
		} else {
			in.fail()
		}
		if in.bad {
			return nil
		}
	}
	b := in.rest[:n:n]
	in.rest = in.rest[n:]
	return b
}

// takeLong reads the next n bytes of a file in several pieces: n exceeds the size of a chunk.
func (in *input) takeLong(n uint64) []byte {
	b := in.rest
	in.rest = nil
	in.settle()
	start := len(b)
	for uint64(len(b)) < n {
		more := int(min(n-uint64(len(b)), max(readLimit, uint64(len(b)))))
		at := len(b)
		b = append(b[:at:at], make([]byte, more)...)
		if _, err := io.ReadFull(in.file, b[at:]); err != nil {
			in.err = err
			in.fail()
			return nil
		}
	}
	in.sum = in.crc.sum(in.sum, b[start:])
	return b
}

func (in *input) byte() byte {
	if len(in.rest) > 0 {
		x := in.rest[0]
		in.rest = in.rest[1:]
		return x
	}
	if b := in.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (in *input) uint64() uint64 {
	if b := in.next(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// lengthOrCode reads a length, or, where a text is allowed, the code of its
// encoding.
func (in *input) lengthOrCode() (n uint64, code bool) {
	switch x := in.byte(); x >> 6 {
	case 0:
		return uint64(x), false
	case 1:
		return uint64(x&0x3f)<<8 | uint64(in.byte()), false
	case 3:
		return uint64(x & 0x3f), true
	default:
		switch x {
		case 0x80:
			if b := in.next(4); b != nil {
				return uint64(binary.BigEndian.Uint32(b)), false
			}
		case 0x81:
			if b := in.next(8); b != nil {
				return binary.BigEndian.Uint64(b), false
			}
		}
		in.fail()
		return 0, false
	}
}

func (in *input) length() uint64 {
	n, code := in.lengthOrCode()
	if code {
		in.fail()
		return 0
	}
	return n
}

// text reads a text. The caller may use it as long as the input, of a file until release.
func (in *input) text() []byte {
	n, code := in.lengthOrCode()
	if !code {
		return in.next(n)
	}
	switch n {
	case 0, 1, 2:
		return appendLittle(nil, in.next(1<<n))
	case 3:
		size := in.length()
		full := in.length()
		b := in.next(size)
		if in.bad || full > math.MaxInt32*2 {
			in.check(false)
			return nil
		}
		out, ok := decompress(b, int(full))
		in.check(ok)
		return out
	}
	in.fail()
	return nil
}

// textScore reads a score as text, the form of Redis before version 4.
func (in *input) textScore() float64 {
	switch n := in.byte(); n {
	case 253:
		return math.NaN()
	case 254:
		return math.Inf(1)
	case 255:
		return math.Inf(-1)
	default:
		f, ok := parseScore(in.next(uint64(n)))
		in.check(ok)
		return f
	}
}

// value reads a value of a type.
func (c *Codec) value(in *input, kind byte) (any, error) {
	switch kind {
	case typeString:
		return keyspace.NewString(in.text()), nil
	case typeList:
		n := in.length()
		return c.list(in, n, func(add func([]byte)) {
			for ; n > 0 && !in.bad; n-- {
				add(in.text())
			}
		})
	case typeListQuicklist, typeListQuicklist2:
		n := in.length()
		return c.list(in, n, func(add func([]byte)) {
			for ; n > 0 && !in.bad; n-- {
				in.node(kind == typeListQuicklist2, add)
			}
		})
	case typeListZiplist:
		return c.list(in, 1, func(add func([]byte)) { in.check(eachZiplist(in.text(), add)) })
	case typeSet, typeSetIntset, typeSetListpack:
		return c.set(in, kind)
	case typeZset, typeZset2, typeZsetTimed, typeZsetZiplist, typeZsetListpack:
		return c.zset(in, kind)
	case typeHash, typeHashValkey, typeHashTimed, typeHashZipmap, typeHashZiplist, typeHashListpack, typeHashListpackTTL:
		return c.hash(in, kind)
	case typeHashListpackTTLPreview:
		if !in.valkey {
			return c.hash(in, kind)
		}
	case typeStream, typeStream2, typeStream3, typeStream4:
		return c.stream(in, kind)
	case typeModule:
		return nil, fmt.Errorf("%w: module value of Redis before 4.0", ErrType)
	case typeModule2:
		name, _ := in.skipModule()
		return nil, fmt.Errorf("%w %s", ErrModule, name)
	}
	return nil, ErrType
}

// node reads a node of a quicklist.
func (in *input) node(second bool, add func([]byte)) {
	const plain, packed = 1, 2
	container := uint64(packed)
	if second {
		container = in.length()
	}
	b := in.text()
	switch {
	case len(b) == 0:
		in.check(false)
	case container == plain:
		add(b)
	case container != packed:
		in.check(false)
	case second:
		in.check(eachListpack(b, add))
	default:
		in.check(eachZiplist(b, add))
	}
}

// list makes a list of the elements that fill adds.
func (c *Codec) list(in *input, n uint64, fill func(add func([]byte))) (any, error) {
	l := new(sequence.List)
	fill(func(b []byte) {
		if in.sound() {
			l.PushBack(b)
		}
	})
	if !in.sound() {
		return nil, ErrFormat
	}
	if n == 0 || l.Len() == 0 {
		return nil, ErrEmpty
	}
	l.Fit(c.Limits.ListMaxListpackSize)
	return l, nil
}

func (c *Codec) set(in *input, kind byte) (any, error) {
	s := new(keyspace.Set)
	add := func(b []byte) {
		if in.sound() {
			in.check(s.Add(c.Limits, keyspace.MemberOf(b)))
		}
	}
	switch kind {
	case typeSetIntset:
		var digits [20]byte
		in.check(eachInt(in.text(), func(n int64) { add(strconv.AppendInt(digits[:0], n, 10)) }))
	case typeSetListpack:
		s.KeepOrder()
		in.check(eachListpack(in.text(), add))
	default:
		n := in.length()
		for i := uint64(0); i < n && !in.bad; i++ {
			b := in.text()
			if i == 0 && in.sound() {
				s.Expect(c.Limits, keyspace.MemberOf(b), int(min(n, math.MaxInt32)))
			}
			add(b)
		}
	}
	if !in.sound() {
		return nil, ErrFormat
	}
	if s.Len() == 0 {
		return nil, ErrEmpty
	}
	return s, nil
}

// maxScratch is the number of elements that are kept for the next sorted set.
const maxScratch = 1024

func (c *Codec) zset(in *input, kind byte) (any, error) {
	elements := c.elements[:0] // they alias the input
	defer func() {
		clear(elements)
		if cap(elements) <= maxScratch {
			c.elements = elements
		}
	}()
	var deadlines []int64
	add := func(member []byte, score float64) {
		in.check(!math.IsNaN(score))
		if in.sound() {
			elements = append(elements, zset.Element{Member: protocol.View(member), Score: score})
		}
	}
	var member []byte
	have := false
	half := func(b []byte) { // members and scores alternate
		if have = !have; have {
			member = b
			return
		}
		score, ok := parseScore(b)
		in.check(ok)
		add(member, score)
	}
	switch kind {
	case typeZsetZiplist:
		in.check(eachZiplist(in.text(), half) && !have)
	case typeZsetListpack:
		in.check(eachListpack(in.text(), half) && !have)
	default:
		for n := in.length(); n > 0 && !in.bad; n-- {
			b := in.text()
			if kind == typeZset {
				add(b, in.textScore())
				continue
			}
			add(b, math.Float64frombits(in.uint64()))
			if kind == typeZsetTimed {
				if at := in.deadline(); in.sound() {
					deadlines = append(deadlines, at)
				}
			}
		}
	}
	if !in.sound() {
		return nil, ErrFormat
	}
	if len(elements) == 0 {
		return nil, ErrEmpty
	}
	names := make([]string, len(deadlines)) // Load may sort the elements
	for i := range deadlines {
		names[i] = strings.Clone(elements[i].Member)
	}
	n := len(elements)
	if kind != typeZsetZiplist && kind != typeZsetListpack {
		slices.Reverse(elements) // the file begins with the last one
	}
	s := zset.Load(elements)
	if s.Len() != n {
		return nil, ErrFormat
	}
	for i, at := range deadlines {
		if at != 0 {
			s.SetDeadline(names[i], at)
		}
	}
	c.Limits.FitSorted(s)
	return s, nil
}

// deadline reads a deadline, of 8 bytes.
func (in *input) deadline() int64 {
	at := int64(in.uint64())
	in.check(at >= 0 && at < maxDeadline)
	return at
}

const (
	// maxDeadline is the latest deadline that a value can have: members keep their
	// deadlines as scores.
	maxDeadline = 1 << 52

	// maxFieldDeadline is the deadline from which Redis refuses to load a field.
	maxFieldDeadline = 1 << 48

	// lastDeadline is the latest deadline that HPEXPIREAT accepts, in the year
	// 4199. Valkey allows any; later ones are reduced to this.
	lastDeadline = 1<<46 - 1
)

func (c *Codec) hash(in *input, kind byte) (any, error) {
	r := hashReader{codec: c, in: in, h: new(keyspace.Hash), per: 2}
	switch kind {
	case typeHashZipmap:
		r.packed(eachZipmap)
	case typeHashZiplist:
		r.packed(eachZiplist)
	case typeHashListpack:
		r.packed(eachListpack)
	case typeHashListpackTTL:
		in.deadline() // the earliest of them
		r.per = 3
		r.packed(eachListpack)
	case typeHashListpackTTLPreview:
		r.per = 3
		r.packed(eachListpack)
	case typeHashTimed:
		r.timed()
	case typeHashValkey: // and typeHashTimedPreview
		r.valkey()
	default:
		for n := in.length(); n > 0 && !in.bad; n-- {
			field := in.text()
			r.set(field, in.text())
		}
	}
	if !in.sound() {
		return nil, ErrFormat
	}
	if r.h.Len() == 0 {
		return nil, ErrEmpty
	}
	for _, f := range slices.Backward(r.inOrder) { // a field comes before those with the same deadline
		r.h.SetDeadlineBytes([]byte(f.name), f.at)
	}
	return r.h, nil
}

// hashReader reads a hash.
type hashReader struct {
	codec   *Codec
	in      *input
	h       *keyspace.Hash
	inOrder []timedField // fields with deadlines, while the hash is small

	// Of a packed hash, in which fields, values, and deadlines if there are any, alternate.
	per    int // 2, or 3 with deadlines
	n      int // number of parts so far
	parts  [2][]byte
	before int64 // the deadline of the previous field: those without come last
}

// timedField is a field with its deadline.
type timedField struct {
	name string
	at   int64
}

func (r *hashReader) set(field, value []byte) {
	if r.in.sound() {
		r.in.check(r.h.Set(field, value, r.codec.Limits))
	}
}

// deadline sets the deadline of a field, if it is not 0.
func (r *hashReader) deadline(field []byte, at int64) {
	switch r.in.check(at >= 0 && at < maxFieldDeadline); {
	case at == 0 || !r.in.sound():
	case r.h.Table() == nil:
		r.inOrder = append(r.inOrder, timedField{string(field), at})
	default:
		r.h.SetDeadlineBytes(field, at)
	}
}

// packed reads a packed hash, whose parts each passes on.
func (r *hashReader) packed(each func(packed []byte, part func([]byte)) bool) {
	r.in.check(each(r.in.text(), r.part) && r.n%r.per == 0)
}

// part takes a part of a packed hash.
func (r *hashReader) part(b []byte) {
	switch r.n++; {
	case r.n%r.per != 0:
		i := r.n%r.per - 1
		r.parts[i] = append(r.parts[i][:0], b...)
	case r.per == 2:
		r.set(r.parts[0], b)
	default:
		r.set(r.parts[0], r.parts[1])
		at, err := strconv.ParseInt(string(b), 10, 64)
		r.in.check(err == nil && (at == 0 || at >= r.before))
		if r.before = at; at == 0 {
			r.before = math.MaxInt64
		}
		r.deadline(r.parts[0], at)
	}
}

// timed reads the fields of a hash, each after its deadline, relative to the earliest.
func (r *hashReader) timed() {
	in := r.in
	base := in.deadline()
	for n := in.length(); n > 0 && !in.bad; n-- {
		at := int64(min(in.length(), math.MaxInt64))
		field := in.text()
		r.set(field, in.text())
		if at != 0 && at < maxDeadline {
			at += base - 1
		}
		r.deadline(field, at)
	}
}

// valkey reads the fields of a hash of Valkey, each before its deadline, or of a preview of Redis,
// each after it.
func (r *hashReader) valkey() {
	in := r.in
	for n := in.length(); n > 0 && !in.bad; n-- {
		at := int64(0)
		if !in.valkey {
			at = int64(min(in.length(), math.MaxInt64))
		}
		field := in.text()
		r.set(field, in.text())
		if in.valkey {
			if at = int64(in.uint64()); at == -1 {
				continue
			}
			in.check(at > 0)
			at = min(at, lastDeadline)
		}
		r.deadline(field, at)
	}
}
