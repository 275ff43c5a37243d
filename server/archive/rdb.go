package archive

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

// RDB makes a file at path, which must not exist, of a file of Redis or Valkey. Keys past
// their deadlines are left out. Values of modules cannot be imported. Companions
// (see [ExportCommands]) become the deadlines of members. What is in
// memory is some megabytes, the largest value, and companions until their sorted
// set comes; if that came before, it is read back in the end.
func (o *Import) RDB(r io.Reader, path string) (out Imported, err error) {
	now := time.Now()
	limits := keyspace.DefaultLimits()
	w, err := newWriter(path, false)
	if err != nil {
		return out, err
	}
	var spaces []uint64
	last := usualDatabases // databases so far
	number := func() {
		for len(spaces) < last {
			spaces = append(spaces, uint64(len(spaces)+1))
		}
		w.begin(spaces, uint64(len(spaces)), now)
	}
	number()
	companions := map[id]Value{} // by their owner
	info, err := rdb.NewCodec(&limits).ReadFile(o.Meter(r), func(e rdb.Entry) error {
		switch {
		case e.Library != "":
			name := libraryName(e.Library)
			if name == "" {
				return o.Fail(&out, fmt.Errorf("a library of functions without a name: %.100q", e.Library))
			}
			out.Done++
			return w.add(Value{DB: keyspace.Own, Key: name, Value: keyspace.NewString([]byte(e.Library))})
		case e.Module != "":
			return o.Fail(&out, fmt.Errorf("what module %s has written beside the keys cannot be imported", e.Module))
		case errors.Is(e.Err, rdb.ErrEmpty):
			return nil // as in Redis
		case e.Err == nil && e.DB > maxDatabase:
			e.Err = errors.New("there is no such database")
			fallthrough
		case e.Err != nil:
			return o.Fail(&out, fmt.Errorf("key %.100q of database %d: %w", e.Key, e.DB, e.Err))
		}
		out.Done++
		if e.Deadline != 0 && e.Deadline < now.UnixMilli() {
			return nil
		}
		if last = max(last, int(e.DB)+1); last > len(spaces) {
			number()
		}
		if e.Omitted != "" {
			out.omit(fmt.Sprintf("key %.100q of database %d: %s", e.Key, e.DB, e.Omitted), o)
		}
		v := Value{DB: int(e.DB), Key: e.Key, Value: e.Value, Deadline: e.Deadline}
		if owner, _, ok := companion(v); ok {
			companions[owner] = v
			return nil
		}
		out.Keys++
		if k := (id{e.DB, e.Key}); v.Type() == "zset" && companions[k].Value != nil {
			v = withDeadlines(v, companions[k].Value.(*zset.Set))
			delete(companions, k)
		}
		return w.add(v)
	})
	out.Functions = info.Functions
	if err == nil {
		err = o.late(w, companions, &out)
	}
	if err == nil {
		err = w.finish(o.Progress)
	}
	if err != nil {
		return out, w.discard(err)
	}
	return out, nil
}

// late gives sorted sets that were written already the deadlines in their companions,
// which came behind them. A companion without a sorted set is a key like any other.
func (o *Import) late(w *writer, companions map[id]Value, out *Imported) error {
	if len(companions) == 0 {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	var sets []Value
	if _, err := Each(w.file.Path(), o.Progress.of("deadlines"), func(v Value) error {
		if v.DB != keyspace.Own && v.Type() == "zset" && companions[id{uint64(v.DB), v.Key}].Value != nil {
			sets = append(sets, v)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, v := range sets {
		k := id{uint64(v.DB), v.Key}
		if err := w.replace(v, withDeadlines(v, companions[k].Value.(*zset.Set))); err != nil {
			return err
		}
		delete(companions, k)
	}
	for _, v := range companions {
		out.Keys++
		if err := w.add(v); err != nil {
			return err
		}
	}
	return nil
}

// libraryName returns the name of a library of functions, which stands in its
// first line, or "".
func libraryName(code string) string {
	line, _, _ := strings.Cut(code, "\n")
	words, _ := protocol.SplitArgs(nil, []byte(line))
	for _, word := range words {
		if len(word) > 5 && protocol.EqualFold(word[:5], "NAME=") {
			return string(word[5:])
		}
	}
	return ""
}
