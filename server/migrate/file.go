package migrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// fromFile writes the contents of a file to the target. It cannot be continued: a
// second run starts again.
func (m *move) fromFile(ctx context.Context) (err error) {
	if err := m.begin(ctx); err != nil {
		return err
	}
	m.status.begin("copy", 0)
	c := newCopier(ctx, m.t, &m.status)
	c.start()
	keys := 0
	now := time.Now().UnixMilli()
	add := func(v archive.Value) error {
		db, moves := m.dbs.of(v.DB)
		switch {
		case !moves, isState(v.Key), v.Deadline != 0 && v.Deadline < now:
			return nil
		case db != 0 && m.t.tags != nil:
			return noDatabase(v.DB)
		}
		v.DB = db
		keys++
		return c.add(v)
	}
	err = c.finish(m.readFile(m.o.From.path, add, func(code string) error { return m.t.loadLibrary(c.ctx, code) }))
	if err != nil {
		return err
	}
	if m.folds() {
		if err := m.foldAll(ctx); err != nil {
			return err
		}
	}
	m.end()
	if err := m.clean(ctx); err != nil {
		return err
	}
	m.o.log(fmt.Sprintf("%d keys written", keys))
	return nil
}

// readFile reads a data file of zsetd or an RDB file.
func (m *move) readFile(path string, add func(archive.Value) error, library func(code string) error) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(&counted{Reader: f, status: &m.status}, rdb.ReadSize)
	head, _ := in.Peek(512)
	if rdb.IsFile(head) {
		if rdb.IsBase(head) {
			err = errors.New("the file is one part of an append-only file: zsetd import reads all parts")
		} else {
			err = readData(in, add, library)
		}
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	s, err := archive.OpenSource(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	_, err = archive.Each(s.Path, func(done, _ int64) error {
		m.status.set(func(s *Status) { s.Bytes = done })
		return nil
	}, func(v archive.Value) error {
		if v.DB != keyspace.InternalDB {
			return add(v)
		}
		if code, ok := v.Value.(*keyspace.String); ok {
			return library(string(code.Content()))
		}
		return nil
	})
	return err
}

// toFile writes the data of the sources, each as of the instant at which its transfer
// begins, to a new file: an RDB file if its name ends in .rdb, else a data file of
// zsetd. The streams are left out.
func (m *move) toFile(ctx context.Context) error {
	path := m.o.To.path
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists already", path)
	}
	all := int64(0)
	for _, s := range m.sources {
		for _, d := range databasesOf(s.info) {
			all += d.keys
		}
	}
	m.status.begin("copy", all)
	data, end := io.Pipe()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	written := make(chan error, 1)
	go func() {
		err := m.encode(ctx, end)
		end.CloseWithError(err)
		written <- err
	}()
	var err error
	if strings.HasSuffix(path, ".rdb") {
		err = writeFile(path, data)
	} else {
		_, err = (&archive.Import{}).RDB(data, path)
	}
	data.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	cancel()
	if failed := <-written; failed != nil && (err == nil || errors.Is(err, failed)) {
		return failed
	}
	if err == nil {
		m.o.log(fmt.Sprintf("%s: %d keys written", path, m.status.get().Keys))
	}
	return err
}

// writeFile writes a file that has its name only when it is complete.
func writeFile(path string, r io.Reader) (err error) {
	f, err := os.CreateTemp(dirOf(path), ".migrate-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Link(f.Name(), path) // fails if there is one
	}
	return errors.Join(err, os.Remove(f.Name()))
}

func dirOf(path string) string {
	if i := strings.LastIndexByte(path, os.PathSeparator); i >= 0 {
		return path[:i+1]
	}
	return "."
}

// encode writes the data of all sources as one RDB file.
func (m *move) encode(ctx context.Context, w io.Writer) error {
	limits := keyspace.DefaultLimits()
	out := rdb.NewWriter(rdb.NewCodec(&limits), m.form())
	b := out.AppendHead(nil)
	flush := func(at int) error {
		if len(b) < at {
			return nil
		}
		_, err := w.Write(b)
		b = b[:0]
		return err
	}
	for _, s := range m.sources {
		link, stop, err := s.link(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.addr, err)
		}
		data, _, err := link.Payload()
		if err == nil {
			err = readData(&counted{Reader: data, status: &m.status}, func(v archive.Value) error {
				db, moves := m.dbs.of(v.DB)
				if !moves || isState(v.Key) {
					return nil
				}
				b = out.AppendKey(out.AppendDeadlines(b, v.Value), db, v.Key, v.Value, v.Deadline)
				m.status.copied(1)
				return flush(rdb.ReadSize)
			}, func(code string) error {
				if s.index == 0 { // all primaries of a cluster have the same
					b = out.AppendLibrary(b, code)
				}
				return nil
			})
		}
		stop()
		if err != nil {
			return fmt.Errorf("%s: %w", s.addr, err)
		}
	}
	b = out.AppendEnd(b)
	return flush(0)
}

// form returns the target of a file that has all that the sources have.
func (m *move) form() rdb.Target {
	if form := m.sources[0].form(); form != rdb.Any && form != rdb.Redis5 {
		return form
	}
	return rdb.Redis7
}
