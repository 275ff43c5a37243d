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
)

// RDB makes a file at path, which must not exist, of a file of Redis. Keys past
// their deadlines are left out. Values of modules cannot be imported. What is in
// memory is some megabytes, and the largest value.
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
		out.Keys++
		return w.add(Value{DB: int(e.DB), Key: e.Key, Value: e.Value, Deadline: e.Deadline})
	})
	out.Functions = info.Functions
	if err == nil {
		err = w.finish(o.Progress)
	}
	if err != nil {
		return out, w.discard(err)
	}
	return out, nil
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
