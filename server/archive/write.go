package archive

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
)

// writer writes a new file of bases beside its final path, reads it back, and moves
// it there.
type writer struct {
	path       string
	reserved   bool // an empty file at path keeps other processes from making one
	file       *snapshot.File
	checkpoint snapshot.Checkpoint
	bytes      int
	sum        sum
}

// checkpointBytes is about the number of bytes that one transaction writes.
const checkpointBytes = 8 << 20

// newWriter begins a file for path. If replace is false there must be none.
func newWriter(path string, replace bool) (w *writer, err error) {
	w = &writer{path: path, sum: newSum()}
	if !replace {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		w.reserved = true
		if err := f.Close(); err != nil {
			return nil, w.discard(err)
		}
	}
	if w.file, err = snapshot.Beside(path); err != nil {
		return nil, w.discard(err)
	}
	w.file.Tight()
	return w, nil
}

// begin sets the spaces of the databases, and the time of the data.
func (w *writer) begin(spaces []uint64, last uint64, at time.Time) {
	w.checkpoint.Spaces, w.checkpoint.LastSpace, w.checkpoint.Time = spaces, last, at
	w.checkpoint.Keys = make([]int64, len(spaces))
}

// add writes a value, which must not change any more. It is fastest in the order of
// files.
func (w *writer) add(v Value) error {
	w.sum.add(v)
	if v.DB != keyspace.InternalDB {
		w.checkpoint.Keys[v.DB]++
	}
	return w.put(v)
}

// replace writes a value that replaces one that was written and flushed.
func (w *writer) replace(old, v Value) error {
	w.sum.replace(old, v)
	return w.put(v)
}

func (w *writer) put(v Value) error {
	space := uint64(keyspace.InternalSpace)
	if v.DB != keyspace.InternalDB {
		space = w.checkpoint.Spaces[v.DB]
	}
	w.checkpoint.Bases = append(w.checkpoint.Bases, snapshot.Base{Space: space, Key: v.Key, Chunks: keyspace.Chunks(v.Value, v.Deadline)})
	w.bytes += len(v.Key) + v.Value.(interface{ Bytes() int }).Bytes()
	if w.bytes < checkpointBytes {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	_, err := w.file.Write(&w.checkpoint)
	w.checkpoint.Bases, w.bytes = w.checkpoint.Bases[:0], 0
	return err
}

// finish verifies that the file holds the values written, and moves it to its path.
func (w *writer) finish(progress Progress) error {
	if err := w.flush(); err != nil {
		return err
	}
	back := sum{seed: w.sum.seed}
	_, err := Each(w.file.Path(), progress.of("verify"), func(v Value) error {
		back.add(v)
		return nil
	})
	if err != nil {
		return err
	}
	if back != w.sum {
		return fmt.Errorf("%s: verification failed: the content differs from the data written (%d keys read, %d written)", w.file.Path(), back.keys, w.sum.keys)
	}
	if err := w.file.Publish(w.path); err != nil {
		return err
	}
	w.reserved = false
	return w.file.Close()
}

// discard ends the work because of an error, which it returns.
func (w *writer) discard(err error) error {
	if w.file != nil {
		err = errors.Join(err, w.file.Discard())
	}
	if w.reserved {
		err = errors.Join(err, os.Remove(w.path))
	}
	return err
}

// Save makes a new file at path, which must not exist, from the contents of a
// keyspace, without keys past their deadlines, and returns the number of keys
// written. Companions (see [ExportCommands]) become the deadlines of members. It
// reads the file back before that gets its name.
func Save(path string, keys *keyspace.Keyspace, progress Progress) (int, error) {
	var values []Value
	n := 0
	for i := keyspace.InternalDB; i < keys.Len(); i++ {
		for e := range keys.DB(i).All() {
			values = append(values, Value{i, e.Key(), e.Value(), e.Deadline()})
		}
		if i != keyspace.InternalDB {
			n += keys.DB(i).Len()
		}
	}
	all := len(values)
	values = foldCompanions(values)
	n -= all - len(values)
	return n, save(path, values, time.UnixMilli(keys.Now()), progress)
}

// usualDatabases is the least number of databases in a file.
const usualDatabases = 16

func save(path string, values []Value, at time.Time, progress Progress) error {
	w, err := newWriter(path, false)
	if err != nil {
		return err
	}
	slices.SortFunc(values, func(a, b Value) int {
		return snapshot.Compare(uint64(a.DB+1), a.Key, uint64(b.DB+1), b.Key)
	})
	n := usualDatabases
	if len(values) > 0 {
		n = max(n, values[len(values)-1].DB+1)
	}
	spaces := make([]uint64, n)
	for i := range spaces {
		spaces[i] = uint64(i + 1)
	}
	w.begin(spaces, uint64(n), at)
	for i, v := range values {
		if progress != nil && i%1024 == 0 {
			if err := progress("write", int64(i), int64(len(values))); err != nil {
				return w.discard(err)
			}
		}
		if err := w.add(v); err != nil {
			return w.discard(err)
		}
	}
	if err := w.finish(progress); err != nil {
		return w.discard(err)
	}
	return nil
}
