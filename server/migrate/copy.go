package migrate

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

const (
	// copyValues and copyBytes bound the values that one pipeline writes.
	copyValues = 512
	copyBytes  = 1 << 20
	// copyWorkers is the number of pipelines at a time.
	copyWorkers = 3
	// largeValue is the size in bytes from which a value is written in pieces.
	largeValue = 4 << 20
)

// copier writes values to the target. One goroutine adds them, and some write.
type copier struct {
	t       *target
	status  *status
	batch   []archive.Value
	bytes   int
	batches chan []archive.Value
	workers sync.WaitGroup
	cancel  context.CancelCauseFunc
	ctx     context.Context

	large sync.Mutex // held while a value is written in pieces
}

func newCopier(ctx context.Context, t *target, s *status) *copier {
	c := &copier{t: t, status: s, batches: make(chan []archive.Value)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// start starts the goroutines that write.
func (c *copier) start() {
	for range copyWorkers {
		c.workers.Go(func() {
			limits := keyspace.DefaultLimits()
			w := &copyWorker{copier: c, codec: rdb.NewCodec(&limits)}
			for batch := range c.batches {
				if err := w.write(batch); err != nil {
					c.cancel(err)
				}
			}
		})
	}
}

// add adds a value, which must not change any more.
func (c *copier) add(v archive.Value) error {
	c.batch = append(c.batch, v)
	c.bytes += len(v.Key) + v.Value.(interface{ Bytes() int }).Bytes()
	if len(c.batch) < copyValues && c.bytes < copyBytes {
		return nil
	}
	return c.flush()
}

func (c *copier) flush() error {
	select {
	case c.batches <- c.batch:
		c.batch, c.bytes = nil, 0
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// finish writes what was added, and waits until it is written.
func (c *copier) finish(err error) error {
	if err == nil {
		err = c.flush()
	}
	if err != nil {
		c.cancel(err)
	}
	close(c.batches)
	c.workers.Wait()
	if cause := context.Cause(c.ctx); cause != nil {
		err = cause
	}
	c.cancel(nil)
	return err
}

type copyWorker struct {
	*copier
	codec *rdb.Codec
	whole bool // values are written at once, however large they are
}

// write writes values.
func (w *copyWorker) write(batch []archive.Value) error {
	commands := make([][][]any, len(batch))
	byDB := map[int][]int{}
	for i, v := range batch {
		if err := w.companionOf(v); err != nil {
			return err
		}
		if inPieces(v) && !w.whole {
			if err := w.writePieces(v); err != nil {
				return err
			}
			w.status.copied(1)
			continue
		}
		writes := [][]any{{"RESTORE", v.Key, v.Deadline, nil, "REPLACE", "ABSTTL"}}
		if w.t.form() != rdb.Any && v.Deadlines() != nil {
			deadlines, err := w.t.deadlineCommands(v)
			if err != nil {
				return err
			}
			writes, v = append(writes, deadlines...), v.WithoutDeadlines()
		}
		if w.t.major >= 7 {
			writes[0][3] = w.codec.AppendPayload(nil, v.Value)
		} else {
			writes[0][3] = w.codec.AppendPortable(nil, v.Value)
		}
		commands[i] = writes
		byDB[v.DB] = append(byDB[v.DB], i)
	}
	for db, left := range byDB {
		client := w.t.client(db)
		err := w.t.retry(w.ctx, func() error {
			p := client.Pipeline()
			calls := make([][]*redis.Cmd, len(left))
			for n, i := range left {
				for _, c := range commands[i] {
					calls[n] = append(calls[n], p.Do(w.ctx, c...))
				}
			}
			_, _ = p.Exec(w.ctx) // each call has its own error
			var again []int
			var why error
			for n, list := range calls {
				switch err := firstError(list); {
				case err == nil:
				case transient(err):
					again, why = append(again, left[n]), err
				default:
					return fmt.Errorf("%s refuses key %.100q: %w", w.t.Endpoint, batch[left[n]].Key, err)
				}
			}
			w.status.copied(len(left) - len(again))
			left = again
			return why
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// firstError returns the error of the first call that has failed.
func firstError(calls []*redis.Cmd) error {
	for _, c := range calls {
		if err := c.Err(); err != nil {
			return err
		}
	}
	return nil
}

// companionOf announces the companion of a value, if it has one.
func (w *copyWorker) companionOf(v archive.Value) error {
	_, isCompanion := archive.OwnerOf(v.Key)
	if isCompanion || w.t.form() != rdb.Any && v.Deadlines() != nil && keyspace.KindOf(v.Value) == keyspace.KindZset {
		return w.t.useCompanions(w.ctx)
	}
	return nil
}

// inPieces reports whether a value is written by commands: it is large.
func inPieces(v archive.Value) bool {
	return v.Value.(interface{ Bytes() int }).Bytes() >= largeValue && keyspace.KindOf(v.Value) != keyspace.KindString
}

// writePieces writes a value by commands, one value at a time. They are applied once,
// as those of the stream.
func (w *copyWorker) writePieces(v archive.Value) error {
	w.large.Lock()
	defer w.large.Unlock()
	p := w.t.newPieces(w.ctx, v.DB)
	p.add([][]byte{[]byte("DEL"), []byte(v.Key)})
	if err := archive.NewCommandWriter(p, w.t.form()).Write(v, time.Now()); err != nil {
		return fmt.Errorf("key %.100q: %w", v.Key, err)
	}
	return p.end()
}

// pieces applies commands that have one key each, which it reads as a client would send
// them, once each, and in their order for each key.
type pieces struct {
	t      *target
	ctx    context.Context
	db     int
	in     *protocol.Reader
	units  map[int]*unit
	guards map[string]bool
	n      int64 // commands
	bytes  int
}

func (t *target) newPieces(ctx context.Context, db int) *pieces {
	return &pieces{t: t, ctx: ctx, db: db, in: newReader(), units: map[int]*unit{}, guards: map[string]bool{}}
}

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) {
	err := eachCommand(p.in, b, func(args [][]byte) error {
		if p.add(args); p.bytes >= copyBytes {
			return p.flush()
		}
		return nil
	})
	return len(b), err
}

func newReader() *protocol.Reader { return &protocol.Reader{Limits: protocol.Limits{MaxBulk: 1 << 30}} }

// eachCommand calls f with copies of the commands in b, which are as a client sends them.
// The reader keeps what is not complete for the next call.
func eachCommand(in *protocol.Reader, b []byte, f func(args [][]byte) error) error {
	for len(b) > 0 {
		n := copy(in.Space(), b)
		in.Filled(n)
		b = b[n:]
		for {
			args, ok, err := in.Next(nil)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			copied := make([][]byte, len(args))
			for i, a := range args {
				copied[i] = bytes.Clone(a)
			}
			if err := f(copied); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a command whose key is its first argument, or its second if that names an
// operation on a stream's groups.
func (p *pieces) add(args [][]byte) {
	at := 1
	if protocol.EqualFold(args[0], "XGROUP") {
		at = 2
	}
	key := args[at]
	slot := 0
	guard := StatePrefix + "value"
	if p.t.tags != nil {
		slot = keyslot.Of(key)
		guard += ":{" + p.t.tags[slot] + "}"
	}
	u := p.units[slot]
	if u == nil {
		u = newUnit(guard)
		p.units[slot], p.guards[guard] = u, true
	}
	words := make([]any, len(args))
	for i, a := range args {
		words[i] = a
		p.bytes += len(a)
	}
	p.n++
	u.add(p.n, p.db, [][]byte{key}, words...)
}

func (p *pieces) flush() error {
	var units []*unit
	for _, u := range p.units {
		units = append(units, u)
	}
	p.units, p.bytes = map[int]*unit{}, 0
	return p.t.apply(p.ctx, units)
}

// end applies the rest.
func (p *pieces) end() error {
	if err := p.flush(); err != nil {
		return err
	}
	for guard := range p.guards {
		if err := p.t.retry(p.ctx, func() error { return p.t.rdb.Del(p.ctx, guard).Err() }); err != nil {
			return err
		}
	}
	return nil
}

// loadLibrary loads a library of functions at each primary.
func (t *target) loadLibrary(ctx context.Context, code string) error {
	return t.retry(ctx, func() error {
		return t.each(ctx, func(ctx context.Context, c *redis.Client) error {
			return c.FunctionLoadReplace(ctx, code).Err()
		})
	})
}
