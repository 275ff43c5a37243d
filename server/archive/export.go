package archive

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

const (
	// batchElements and batchBytes limit the size of a command of an export.
	batchElements = 1000
	batchBytes    = 64 << 10

	// writeAt is the number of bytes that an export writes at once.
	writeAt = 64 << 10
)

// Exported is the result of an export.
type Exported struct {
	Keys    int64
	Expired int64 // keys that were left out because they are past their deadlines
	Bytes   int64

	// MemberDeadlines and FieldDeadlines count the members of sorted sets and
	// fields of hashes that were written with their deadlines.
	MemberDeadlines, FieldDeadlines int64

	// LostDeadlines counts the fields that were written without their deadlines,
	// which the target does not support; LostOf is the first key with such a field.
	LostDeadlines int64
	LostOf        string

	// LostStreams counts the streams that were written without their counters,
	// which the target does not support.
	LostStreams int64

	// LostLibraries counts the function libraries that were left out, which the
	// target does not support.
	LostLibraries int64
}

// ExportCommands writes the contents of the file at path as commands in the
// protocol of clients, for an empty server: FUNCTION LOAD, SELECT, SET, RPUSH,
// SADD, HSET and ZADD, with at most 1000 elements and some 64 KB each, XADD,
// XSETID, XGROUP and XCLAIM, and PEXPIREAT. The keys are in the order of the file.
//
// Deadlines of fields are HPEXPIREAT, and those of members ZPEXPIREAT, which only
// zsetd has, if the target is [rdb.Any]. For other targets those of members are
// companions, sorted sets that the library of `zsetd functions` reads.
//
// Left out are keys, members and fields past their deadlines, pending entries of a
// group that are no longer in the stream, and the time when a consumer was last
// seen; for a target without support for them, deadlines of fields, libraries, and
// properties of streams that Redis 5 does not have. The file must not change
// meanwhile, see [OpenSource].
func ExportCommands(w io.Writer, path string, to rdb.Target, now time.Time, progress Progress) (Exported, error) {
	c := commands{buffer: buffer{w: w}, target: to, db: noneSelected}
	return export(&c.buffer, path, to, now, progress, c.value)
}

// ExportJSON writes the keys of the file at path as lines of JSON, each an object
//
//	{"db":0,"key":"k","type":"string","value":"v"}
//	{"db":0,"key":"k","type":"list","value":["first","last"]}
//	{"db":0,"key":"k","type":"set","value":["member"]}
//	{"db":0,"key":"k","type":"hash","value":[["field","value"]]}
//	{"db":0,"key":"k","type":"zset","value":[["member",1.5],["last","inf"]]}
//	{"db":0,"key":"k","type":"stream","value":{
//	  "entries":[["1-1",["field","value"]]],"last":"1-1","added":1,"deleted":"0-0","groups":[{
//	    "name":"g","last":"1-1","read":1,"consumers":[["c",1700000000000,-1]],"pending":[["1-1","c",1700000000000,1]]}]}}
//
// (here in three lines; a consumer has the times when it was last seen and last
// active, a pending entry the time and the count of its deliveries; -1 is never, or
// unknown)
//
// and libraries of functions, which are in no database, as
//
//	{"library":"name","code":"#!lua name=name\n..."}
//
// with "expireat", milliseconds since 1970, before the value if the key has a
// deadline. The deadlines of members or fields of a sorted set or a hash follow its
// value as a separate member of the object, if there are any:
//
//	{"db":0,"key":"k","type":"zset","value":[["a",1],["b",2]],"deadlines":[["a",1700000000000]]}
//
// A text that is not UTF-8 is {"base64":"..."}, wherever it occurs. Infinite scores
// are the strings "inf" and "-inf"; all other scores are numbers that read back as
// the same 64 bits.
func ExportJSON(w io.Writer, path string, now time.Time, progress Progress) (Exported, error) {
	p := buffer{w: w}
	return export(&p, path, rdb.Any, now, progress, func(v Value) error { return writeJSON(&p, v) })
}

// ExportRDB writes the keys of the file at path as an RDB file that the target can
// load. Deadlines of members are companions, as in [ExportCommands].
func ExportRDB(w io.Writer, path string, to rdb.Target, now time.Time, progress Progress) (Exported, error) {
	limits := keyspace.DefaultLimits()
	p := buffer{w: w}
	out := rdb.NewWriter(rdb.NewCodec(&limits), to)
	names := companionNames{}
	p.b = out.AppendHead(p.b)
	done, err := export(&p, path, to, now, progress, func(v Value) error {
		if v.DB == keyspace.InternalDB {
			if code, ok := v.Value.(*keyspace.String); ok {
				p.b = out.AppendLibrary(p.b, string(code.Content()))
			}
			return nil
		}
		if err := names.note(v); err != nil {
			return err
		}
		if s, ok := v.Value.(*zset.Set); ok && s.Deadlines() != nil {
			// The companion precedes its key, so that an import has it when the key
			// comes.
			p.b = out.AppendKey(p.b, v.DB, CompanionOf(v.Key), s.Deadlines(), 0)
		}
		p.b = out.AppendKey(p.b, v.DB, v.Key, v.Value, v.Deadline)
		return nil
	})
	if err == nil {
		p.b = out.AppendEnd(p.b)
		err = p.flush()
	}
	done.Bytes = p.written
	return done, err
}

// buffer is the buffered output of an export.
type buffer struct {
	w       io.Writer
	b       []byte
	written int64
}

// full writes the buffer if it has reached writeAt.
func (p *buffer) full() error {
	if len(p.b) < writeAt {
		return nil
	}
	return p.flush()
}

func (p *buffer) flush() error {
	n, err := p.w.Write(p.b)
	p.written += int64(n)
	if p.b = p.b[:0]; cap(p.b) > 16*writeAt {
		p.b = nil
	}
	return err
}

func export(p *buffer, path string, to rdb.Target, now time.Time, progress Progress, value func(Value) error) (out Exported, err error) {
	_, err = Each(path, progress.of("export"), func(v Value) error {
		if v.DB == keyspace.InternalDB {
			if !to.Functions() {
				out.LostLibraries++
				return nil
			}
			return value(v)
		}
		v, live := v.live(now.UnixMilli())
		if !live && !keyspace.MayBeEmpty(v.Value) || v.Deadline != 0 && v.Deadline < now.UnixMilli() {
			out.Expired++
			return nil
		}
		out.Keys++
		out.count(v, to)
		if err := value(v); err != nil {
			return err
		}
		return p.full()
	})
	if err == nil {
		err = p.flush()
	}
	out.Bytes = p.written
	return out, err
}

// count counts the deadlines of members or fields, and the properties that the
// target does not support.
func (out *Exported) count(v Value, to rdb.Target) {
	if s, ok := v.Value.(*sequence.Stream); ok && to == rdb.Redis5 && !rdb.PlainStream(s) {
		out.LostStreams++
	}
	d := v.memberDeadlines()
	if d == nil {
		return
	}
	n := int64(d.Len())
	switch {
	case v.Type() == "zset":
		out.MemberDeadlines += n
	case to.FieldDeadlines():
		out.FieldDeadlines += n
	default:
		if out.LostDeadlines == 0 {
			out.LostOf = fmt.Sprintf("key %.100q of database %d", v.Key, v.DB)
		}
		out.LostDeadlines += n
	}
}

// noneSelected is the selected database before the first SELECT.
const noneSelected = -2

// commands writes values as commands.
type commands struct {
	buffer
	target rdb.Target
	db     int // the selected database
	names  companionNames

	// The command under construction: its name and key, and the elements so far.
	name, key string
	body      []byte
	n         int // arguments in body
	elements  int
}

func appendBulk[T string | []byte](b []byte, t T) []byte {
	b = append(strconv.AppendInt(append(b, '$'), int64(len(t)), 10), '\r', '\n')
	return append(append(b, t...), '\r', '\n')
}

func (c *commands) command(args ...string) {
	c.b = append(strconv.AppendInt(append(c.b, '*'), int64(len(args)), 10), '\r', '\n')
	for _, a := range args {
		c.b = appendBulk(c.b, a)
	}
}

// end writes the command under construction.
func (c *commands) end() error {
	if c.n == 0 {
		return nil
	}
	c.b = append(strconv.AppendInt(append(c.b, '*'), int64(2+c.n), 10), '\r', '\n')
	c.b = append(appendBulk(appendBulk(c.b, c.name), c.key), c.body...)
	c.body, c.n, c.elements = c.body[:0], 0, 0
	return c.full()
}

// element ends the command under construction if it has reached a limit of size;
// args is the number of arguments of the last element.
func (c *commands) element(args int) error {
	c.n += args
	if c.elements++; c.elements < batchElements && len(c.body) < batchBytes {
		return nil
	}
	return c.end()
}

func (c *commands) value(v Value) error {
	if v.DB == keyspace.InternalDB {
		code, ok := v.Value.(*keyspace.String)
		if ok {
			c.command("FUNCTION", "LOAD", "REPLACE", string(code.Content()))
		}
		return nil
	}
	if v.DB != c.db {
		c.db = v.DB
		c.command("SELECT", strconv.Itoa(v.DB))
	}
	if err := c.elementsOf(v); err != nil {
		return err
	}
	if err := c.deadlines(v); err != nil {
		return err
	}
	if v.Deadline != 0 {
		c.command("PEXPIREAT", v.Key, strconv.FormatInt(v.Deadline, 10))
	}
	return nil
}

// deadlines writes the deadlines of members or fields.
func (c *commands) deadlines(v Value) error {
	_, sorted := v.Value.(*zset.Set)
	if c.target != rdb.Any {
		if c.names == nil {
			c.names = companionNames{}
		}
		if err := c.names.note(v); err != nil {
			return err
		}
	}
	d := v.memberDeadlines()
	switch {
	case d == nil:
		return nil
	case !sorted && c.target.FieldDeadlines():
		return c.expireAt(v.Key, "HPEXPIREAT", "FIELDS", d)
	case sorted && c.target == rdb.Any:
		return c.expireAt(v.Key, "ZPEXPIREAT", "MEMBERS", d)
	case sorted:
		return c.elementsOf(Value{Key: CompanionOf(v.Key), Value: d})
	}
	return nil
}

// expireAt writes a command for each deadline and the members that have it.
func (c *commands) expireAt(key, name, word string, deadlines *zset.Set) error {
	var members []string
	bytes, last := 0, int64(0)
	end := func() error {
		if len(members) > 0 {
			c.command(append([]string{name, key, strconv.FormatInt(last, 10), word, strconv.Itoa(len(members))}, members...)...)
		}
		members, bytes = members[:0], 0
		return c.full()
	}
	for member, score := range deadlines.All() {
		at := min(int64(score), lastDeadline)
		if at != last || len(members) == batchElements || bytes > batchBytes {
			if err := end(); err != nil {
				return err
			}
			last = at
		}
		members = append(members, member)
		bytes += len(member)
	}
	return end()
}

// elementsOf writes the commands that make a value, without its deadlines.
func (c *commands) elementsOf(v Value) error {
	c.key = v.Key
	return v.row().commands(c, v.Value)
}

// writeJSON writes a value as a line.
func writeJSON(p *buffer, v Value) error {
	if v.DB == keyspace.InternalDB {
		p.b = appendJSONText(append(p.b, `{"library":`...), v.Key)
		if code, ok := v.Value.(*keyspace.String); ok {
			p.b = appendJSONText(append(p.b, `,"code":`...), string(code.Content()))
		}
		p.b = append(p.b, "}\n"...)
		return p.full()
	}
	p.b = strconv.AppendInt(append(p.b, `{"db":`...), int64(v.DB), 10)
	p.b = appendJSONText(append(p.b, `,"key":`...), v.Key)
	p.b = append(append(append(p.b, `,"type":"`...), v.Type()...), '"')
	if v.Deadline != 0 {
		p.b = strconv.AppendInt(append(p.b, `,"expireat":`...), v.Deadline, 10)
	}
	p.b = append(p.b, `,"value":`...)
	if err := v.row().write(p, v.Value); err != nil {
		return err
	}
	if d := v.memberDeadlines(); d != nil {
		p.b = append(p.b, `,"deadlines":`...)
		a := p.array()
		for m, at := range d.All() {
			if err := a.pair(m, func(b []byte) []byte { return strconv.AppendInt(b, int64(at), 10) }); err != nil {
				return err
			}
		}
		if err := a.end(); err != nil {
			return err
		}
	}
	p.b = append(p.b, "}\n"...)
	return nil
}

// jsonArray writes an array in pieces, because a collection may be long.
type jsonArray struct {
	p         *buffer
	separator string // before the next element
}

// array begins an array.
func (p *buffer) array() jsonArray {
	p.b = append(p.b, '[')
	return jsonArray{p: p}
}

// text writes an element that is a text.
func (a *jsonArray) text(t string) error {
	a.p.b = appendJSONText(append(a.p.b, a.separator...), t)
	a.separator = ","
	return a.p.full()
}

// pair writes an element that is an array of a text and what second appends.
func (a *jsonArray) pair(first string, second func(b []byte) []byte) error {
	b := appendJSONText(append(append(a.p.b, a.separator...), '['), first)
	a.p.b = append(second(append(b, ',')), ']')
	a.separator = ","
	return a.p.full()
}

// end ends the array.
func (a *jsonArray) end() error {
	a.p.b = append(a.p.b, ']')
	return a.p.full()
}
