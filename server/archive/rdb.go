package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

// RDB makes a file at path, which must not exist, from a file of Redis or Valkey.
// Keys past their deadlines are left out, as are bytes behind the end of the file, which
// Redis ignores. Values of modules cannot be imported.
// Companions (see [ExportCommands]) become the deadlines of members. It holds in
// memory some megabytes, the largest value, and companions until their sorted set
// comes; if the set came before, it is read back at the end.
func (o *Import) RDB(r io.Reader, path string) (out Imported, err error) {
	now := time.Now()
	w, err := newWriter(path, false)
	if err != nil {
		return out, err
	}
	var spaces []uint64
	last := usualDatabases // number of databases so far
	number := func() {
		for len(spaces) < last {
			spaces = append(spaces, uint64(len(spaces)+1))
		}
		w.begin(spaces, uint64(len(spaces)), now)
	}
	number()
	companions := map[id]Value{} // by their owner
	source := bufio.NewReaderSize(o.Meter(r), rdb.ReadSize)
	err = o.Values(source, &out, func(v Value) error {
		if v.DB == keyspace.InternalDB {
			return w.add(v)
		}
		if last = max(last, v.DB+1); last > len(spaces) {
			number()
		}
		if owner, _, ok := companion(v); ok {
			companions[owner] = v
			return nil
		}
		out.Keys++
		if k := (id{uint64(v.DB), v.Key}); v.Type() == "zset" && companions[k].Value != nil {
			v = withDeadlines(v, companions[k].Value.(*zset.Set))
			delete(companions, k)
		}
		return w.add(v)
	})
	if err == nil {
		out.Trailing, err = io.Copy(io.Discard, source)
	}
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

// Values reads a file of Redis or Valkey and passes the values that can be imported
// to add, without keys past their deadlines; a library of functions is a string in
// the database [keyspace.InternalDB], under its name. The rest is counted, and goes to
// o.Failed.
func (o *Import) Values(r *bufio.Reader, out *Imported, add func(Value) error) error {
	now := time.Now().UnixMilli()
	limits := keyspace.DefaultLimits()
	info, err := rdb.NewCodec(&limits).ReadFile(r, func(e rdb.Entry) error {
		switch {
		case e.Library != "":
			name := rdb.LibraryName(e.Library)
			if name == "" {
				return o.Fail(out, fmt.Errorf("function library without a name: %.100q", e.Library))
			}
			out.Done++
			return add(Value{DB: keyspace.InternalDB, Key: name, Value: keyspace.NewString([]byte(e.Library))})
		case e.Module != "":
			return o.Fail(out, fmt.Errorf("auxiliary data of module %s cannot be imported", e.Module))
		case errors.Is(e.Err, rdb.ErrEmpty):
			return nil // as in Redis
		case e.Err == nil && e.DB > maxDatabase:
			e.Err = errors.New("the database does not exist")
			fallthrough
		case e.Err != nil:
			return o.Fail(out, fmt.Errorf("key %.100q of database %d: %w", e.Key, e.DB, e.Err))
		}
		out.Done++
		if e.Deadline != 0 && e.Deadline < now {
			return nil
		}
		return add(Value{DB: int(e.DB), Key: e.Key, Value: e.Value, Deadline: e.Deadline})
	})
	out.Functions += info.Functions
	if errors.Is(err, rdb.ErrChecksum) {
		return o.Fail(out, err) // all of it was read
	}
	return err
}

// late sets the deadlines of sorted sets that were written before their companions
// came. A companion without a sorted set is an ordinary key.
func (o *Import) late(w *writer, companions map[id]Value, out *Imported) error {
	if len(companions) == 0 {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	var sets []Value
	if _, err := Each(w.file.Path(), o.Progress.of("deadlines"), func(v Value) error {
		if v.DB != keyspace.InternalDB && v.Type() == "zset" && companions[id{uint64(v.DB), v.Key}].Value != nil {
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
