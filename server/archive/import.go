package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// Import has the options of an import, which makes a file from a source.
// [Import.JSON] reads lines of JSON; commands are read by server.ImportCommands.
type Import struct {
	// Size is the length of the source, for Progress; 0 if unknown.
	Size     int64
	Progress Progress

	// Failed, if it is not nil, receives the error of a key that cannot be
	// imported, and the import goes on without the key. If it is nil, the error
	// ends the import.
	Failed func(error)
}

// Imported is the result of an import.
type Imported struct {
	Done   int64 // commands or lines
	Failed int64
	Keys   int64 // in the new file

	Functions int   // libraries of functions; only from a file of Redis
	Trailing  int64 // bytes behind the end of a file of Redis, which are ignored
}

// ErrNothing is the error of a source without a byte.
var ErrNothing = errors.New("the source is empty")

// Fail counts a key that cannot be imported. An error that it returns ends the
// import.
func (o *Import) Fail(out *Imported, err error) error {
	if o.Failed == nil {
		return err
	}
	out.Failed++
	o.Failed(err)
	return nil
}

// Meter returns a reader of the source that reports to Progress the bytes that are
// read.
func (o *Import) Meter(r io.Reader) io.Reader {
	if o.Progress == nil {
		return r
	}
	return &meter{r: r, o: o}
}

type meter struct {
	r    io.Reader
	o    *Import
	done int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.done += int64(n)
	if stop := m.o.Progress("import", m.done, m.o.Size); stop != nil {
		return n, stop
	}
	return n, err
}

// maxDatabase is the highest number of a database that a server can have.
const maxDatabase = 1<<16 - 1

// JSON makes a file at path, which must not exist, from lines as [ExportJSON]
// writes them. The members of an object may be in any order; others are refused, as
// is a key that occurs twice, and a source without a byte. Keys past their deadlines are left
// out. The data are held in memory.
func (o *Import) JSON(r io.Reader, path string) (out Imported, err error) {
	lines := bufio.NewReaderSize(o.Meter(r), 1<<20)
	now := time.Now()
	limits := keyspace.DefaultLimits()
	values := map[id]Value{} // by database instead of space
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return out, err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			v, problem := parseJSON(line, &limits)
			k := id{uint64(v.DB), v.Key}
			if _, twice := values[k]; twice && problem == nil {
				problem = fmt.Errorf("duplicate key %.100q in database %d", v.Key, v.DB)
			}
			if problem != nil {
				if err := o.Fail(&out, fmt.Errorf("line %d: %w", n, problem)); err != nil {
					return out, err
				}
			} else {
				values[k] = v
				out.Done++
			}
		}
		if err != nil {
			if n == 1 && len(line) == 0 {
				return out, ErrNothing
			}
			break
		}
	}
	list := make([]Value, 0, len(values))
	for _, v := range values {
		if v.Deadline == 0 || v.Deadline >= now.UnixMilli() {
			list = append(list, v)
			if v.DB != keyspace.InternalDB {
				out.Keys++
			}
		}
	}
	return out, save(path, list, now, o.Progress)
}

// parseJSON reads a line. The rejected alternative, package json, scans nested
// values again on every level: with it, importing 300 000 sets of five takes twice
// as long.
func parseJSON(line []byte, l *keyspace.Limits) (v Value, err error) {
	if !utf8.Valid(line) {
		return v, errors.New("invalid UTF-8")
	}
	j := jsonReader{b: line}
	kind, have, value, deadlines := "", map[string]bool{}, 0, 0
	j.list('{', '}', func() {
		name := string(j.literal())
		if have[name] {
			j.failf("duplicate field %q", name)
		}
		have[name] = true
		j.expect(':')
		switch name {
		case "db":
			n := j.integer()
			if n < 0 || n > maxDatabase {
				j.failf("no such database: %d", n)
			}
			v.DB = int(n)
		case "key", "library":
			v.Key = string(j.text())
		case "code":
			v.Value = keyspace.NewString(j.text())
		case "type":
			kind = string(j.literal())
		case "expireat":
			v.Deadline = max(1, j.integer()) // 0 means no deadline
		case "value":
			j.space()
			value = j.at
			j.skip()
		case "deadlines":
			j.space()
			deadlines = j.at
			j.skip()
		default:
			j.failf("unknown field %q", name)
		}
	})
	if j.space(); j.at < len(j.b) {
		j.failf("more than one object")
	}
	if j.err == nil && have["library"] && have["code"] && len(have) == 2 {
		v.DB = keyspace.InternalDB
		return v, nil
	}
	if j.err == nil && (have["library"] || have["code"]) {
		j.failf("a library must have no other field than its code")
	}
	if j.err == nil && !(have["db"] && have["key"] && have["type"] && have["value"]) {
		j.failf("missing field: db, key, type and value are required")
	}
	if j.err != nil {
		return v, j.err
	}
	j.at = value
	n := j.value(&v, kind, l)
	if j.err != nil {
		return v, j.err
	}
	if n == 0 && !keyspace.MayBeEmpty(v.Value) {
		return v, fmt.Errorf("empty %s", kind)
	}
	if have, _ := v.Size(); have != n {
		return v, fmt.Errorf("duplicate elements: %d of %d are distinct", have, n)
	}
	if have["deadlines"] {
		j.at = deadlines
		j.deadlines(v.Value)
	}
	return v, j.err
}

// deadlines reads the deadlines of members of a sorted set or fields of a hash.
func (j *jsonReader) deadlines(value any) {
	v, ok := value.(interface {
		SetDeadlineBytes(member []byte, at int64) (had int64, ok bool)
	})
	if !ok {
		j.failf("deadlines require the type zset or hash")
		return
	}
	j.pairs(func(member []byte) {
		at := j.integer()
		if j.err == nil && (at < 1 || at >= zset.MaxDeadline) {
			j.failf("invalid deadline %d", at)
		}
		if j.err != nil {
			return
		}
		if had, ok := v.SetDeadlineBytes(member, at); !ok {
			j.failf("deadline of unknown element %.100q", member)
		} else if had != 0 {
			j.failf("duplicate deadline of %.100q", member)
		}
	})
}

// value reads the value of a key of this type, and returns the number of elements
// in the text.
func (j *jsonReader) value(v *Value, kind string, l *keyspace.Limits) (n int) {
	k, ok := keyspace.KindNamed(kind)
	if !ok {
		j.failf("unknown type %q", kind)
		return 0
	}
	v.Value, n = rowOf(k).read(j, l)
	return n
}

// pairs reads an array of pairs. second is called behind the comma of each, and reads what follows
// its first text.
func (j *jsonReader) pairs(second func(first []byte)) {
	j.list('[', ']', func() {
		j.expect('[')
		first := j.text()
		j.expect(',')
		second(first)
		j.expect(']')
	})
}
