package replication

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// A transfer sends all data, as of the instant at which it begins, to the replicas that
// wait then. It runs in a goroutine of its own.
type transfer struct {
	p         *Primary
	replicas  []*replica
	snapshot  *keyspace.Snapshot
	codec     *rdb.Codec
	target    rdb.Target
	functions bool           // the function libraries only
	sizes     map[int][2]int // keys of each database, and those of them with deadlines, that are not announced yet
	db        int            // that the stream has selected
	mark      string         // 40 characters that end a file without a length; "" if the length is sent
	length    bool           // the file is written, and its length is sent; guarded by the engine's lock
	began     time.Time
	sent      int64
	keys      int
	yielded   time.Time
}

const (
	// pieceKeys and pieceTime bound the reading of a piece, during which the lock is
	// held.
	pieceKeys = 1000
	pieceTime = 100 * time.Microsecond
	// leastWrite is how many bytes of small keys are sent at once.
	leastWrite = 64 << 10
	// yieldInterval is after which time a transfer sleeps, for yieldTime or a little longer.
	yieldInterval = pieceTime
	yieldTime     = 20 * time.Microsecond
	// partSize is how many bytes are appended to the output of the replicas at once, half a
	// block of their queues.
	partSize = 32 << 10
	// windowPoll is the interval at which a transfer or the stream looks again whether a
	// replica has taken some of its output.
	windowPoll = time.Millisecond
)

// considerTransfer begins a transfer if replicas wait and their delay is over.
func (p *Primary) considerTransfer(now time.Time) {
	if p.transfer != nil {
		return
	}
	c := &p.engine.Config
	var group []*replica
	delay := time.Duration(0)
	if c.ReplDisklessSync {
		delay = time.Duration(c.ReplDisklessDelay) * time.Second
	}
	due := false
	for _, r := range p.replicas {
		if r.state != waiting {
			continue
		}
		if len(group) > 0 && (group[0].functions != r.functions) {
			continue // in the next transfer
		}
		group = append(group, r)
		due = due || now.Sub(r.since) >= delay
	}
	if most := c.ReplDisklessReplicas; len(group) == 0 || !due && (most == 0 || int64(len(group)) < most) {
		return
	}
	p.beginTransfer(group)
}

// beginTransfer begins a transfer to a group of replicas at this instant.
func (p *Primary) beginTransfer(group []*replica) {
	p.drain()
	p.translating.Lock()
	p.translator.Reset() // a replica begins without a selected database
	p.translating.Unlock()
	limits := p.engine.Keys.Limits
	t := &transfer{
		p: p, replicas: group, codec: rdb.NewCodec(&limits), target: rdb.Replica, functions: group[0].functions,
		snapshot: p.engine.Keys.Snapshot(), sizes: map[int][2]int{}, began: time.Now(),
	}
	for i := range p.engine.Keys.Len() {
		if db := p.engine.Keys.DB(i); db.Len() > 0 {
			t.sizes[i] = [2]int{db.Len(), db.Volatile()}
		}
	}
	t.codec.Uncompressed = !p.engine.Config.Compression
	switch fields := p.engine.Config.ReplFieldDeadlines; {
	case fields == "redis":
		t.target = rdb.Redis8
	case fields == "valkey":
		t.target = rdb.Valkey9
	case !slices.ContainsFunc(group, func(r *replica) bool { return !r.packed || r.zsetd }):
		t.target = rdb.Replica7
	}
	if p.link != nil {
		t.db = p.link.db // the primary of this server does not select it again
	}
	if p.engine.Config.ReplDisklessSync && !slices.ContainsFunc(group, func(r *replica) bool { return !r.eof }) {
		t.mark = engine.RandomID()
	}
	for _, r := range group {
		r.state, r.next = receiving, p.offset
		if !r.old {
			r.session.Append(fmt.Appendf(nil, "+FULLRESYNC %s %d\r\n", p.engine.Identity.ReplID, p.offset))
		}
		p.log.Info("synchronizing replica", "replica", r.name(), "offset", p.offset)
	}
	p.transfer = t
	p.done.Go(func() { p.engine.Attempt(t.run) })
}

// errNoReceivers ends a transfer whose replicas have all left.
var errNoReceivers = errors.New("all replicas have left")

// run sends the data and then the stream that has waited.
func (t *transfer) run() {
	var err error
	if t.mark != "" {
		if err = t.send([]byte("$EOF:" + t.mark + "\r\n")); err == nil {
			err = t.encode(t.send)
		}
		if err == nil {
			err = t.send([]byte(t.mark))
		}
	} else {
		err = t.sendFile()
	}
	t.p.engine.InTurn(func() { t.finish(err) })
}

// finish ends the transfer. The lock is held.
func (t *transfer) finish(err error) {
	t.snapshot.Close()
	t.p.transfer = nil
	if err != nil && !errors.Is(err, errNoReceivers) {
		t.p.log.Error("synchronization of replicas failed", "error", err)
	}
	reached := 0
	for _, r := range t.replicas {
		switch {
		case r.state != receiving:
		case err != nil:
			r.session.Kill()
		default:
			reached++
			r.since, r.acknowledged = time.Now(), time.Now()
			if r.state = loading; t.mark == "" && !r.rdbOnly {
				r.state = online // the length tells it where the stream begins
			}
		}
	}
	t.p.supply()
	if err == nil {
		t.p.log.Info("data sent to replicas", "replicas", reached, "keys", t.keys, "bytes", t.sent,
			"seconds", time.Since(t.began).Seconds())
	}
}

// encode passes the data to write, as an RDB file.
func (t *transfer) encode(write func([]byte) error) error {
	w := rdb.NewWriter(t.codec, t.target)
	out := w.AppendStreamDB(w.AppendHead(nil), t.db)
	for more := true; more; {
		var shared []keyspace.SnapshotKey // encoded without the lock
		delay, n, before := int64(0), pieceKeys, t.keys
		t.p.engine.InTurn(func() {
			if delay = t.p.engine.Config.SaveKeyDelay; delay != 0 {
				n = 1
			}
			more = t.snapshot.Next(n, pieceTime, func(k keyspace.SnapshotKey) {
				if k.Shared {
					shared = append(shared, k)
				} else {
					out = t.append(w, out, k)
				}
			})
		})
		for _, k := range shared {
			var err error
			if out, err = t.write(w, out, write, k); err != nil {
				return err
			}
		}
		if len(out) >= leastWrite || delay != 0 {
			if err := write(out); err != nil {
				return err
			}
			out = out[:0]
		}
		if delay != 0 && !t.delay(t.keys-before) {
			return errNoReceivers
		}
		t.yield()
	}
	return write(w.AppendEnd(out))
}

// append appends a key to the file.
func (t *transfer) append(w *rdb.Writer, out []byte, k keyspace.SnapshotKey) []byte {
	t.keys++
	switch {
	case k.DB == keyspace.InternalDB:
		return w.AppendLibrary(out, string(k.Value.(*keyspace.String).Content()))
	case t.functions:
		return out
	}
	return w.AppendKey(w.AppendDeadlines(t.announce(w, out, k.DB), k.Value), k.DB, k.Key, k.Value, k.Deadline)
}

// announce appends the size of a database before its first key.
func (t *transfer) announce(w *rdb.Writer, out []byte, db int) []byte {
	n, ok := t.sizes[db]
	if !ok {
		return out
	}
	delete(t.sizes, db)
	return w.AppendSize(out, db, n[0], n[1])
}

// write appends a key that may be large to out: it passes full parts on to the function. The lock
// is not held.
func (t *transfer) write(w *rdb.Writer, out []byte, write func([]byte) error, k keyspace.SnapshotKey) ([]byte, error) {
	if k.DB == keyspace.InternalDB || t.functions {
		return t.append(w, out, k), nil
	}
	t.keys++
	return w.WriteKey(t.announce(w, out, k.DB), write, k.DB, k.Key, k.Value, k.Deadline)
}

// yield lets the loops run if the transfer has run for some time. A goroutine that waits
// for the lock runs on the processor that has released it, once that is free: without
// the sleep, pieces that follow each other delay clients by ten milliseconds and more. And
// a thread that sleeps often is seldom preempted while it has the lock.
func (t *transfer) yield() {
	if now := time.Now(); now.Sub(t.yielded) > yieldInterval {
		nap()
		t.yielded = time.Now()
	}
}

// delay waits as rdb-key-save-delay wants it after a number of keys. It returns false if no
// replica waits for the data any more.
func (t *transfer) delay(keys int) bool {
	return config.KeyDelay(keys, func() (each int64, wanted bool) {
		t.p.engine.InTurn(func() { each = t.p.engine.Config.SaveKeyDelay })
		return each, !t.deserted()
	})
}

// send appends bytes to the output of the replicas, and waits until they have taken
// most of what they were sent.
func (t *transfer) send(b []byte) error {
	for len(b) > 0 {
		part := b[:min(len(b), partSize)]
		if err := t.sendPart(part); err != nil {
			return err
		}
		b = b[len(part):]
		t.sent += int64(len(part))
	}
	return nil
}

func (t *transfer) sendPart(part []byte) error {
	for {
		done, receivers := false, 0
		t.p.engine.InTurn(func() {
			full, now := false, time.Now()
			timeout := time.Duration(t.p.engine.Config.ReplTimeout) * time.Second
			for _, r := range t.replicas {
				if r.state != receiving || r.stuck(now, timeout) {
					continue
				}
				receivers++
				full = full || r.untaken > window
			}
			if full {
				return
			}
			done = true
			for _, r := range t.replicas {
				if r.state == receiving {
					r.session.Append(part)
				}
			}
		})
		switch {
		case receivers == 0:
			return errNoReceivers
		case done:
			return nil
		}
		select {
		case <-t.p.quit:
			return errNoReceivers
		case <-time.After(windowPoll):
		}
	}
}

// sendFile writes the data to a temporary file, for replicas that need to know its
// length, and sends that.
func (t *transfer) sendFile() (err error) {
	dir := ""
	t.p.engine.InTurn(func() {
		if c := &t.p.engine.Config; c.Dbfilename != "" {
			dir = cmp.Or(c.Dir, ".")
		}
	})
	file, err := os.CreateTemp(dir, "replica-*.rdb")
	if err != nil {
		return err
	}
	// Without a name it is gone when the process is killed. Windows removes no file that is
	// open.
	named := os.Remove(file.Name()) != nil
	defer func() {
		err = errors.Join(err, file.Close())
		if named {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	length := int64(0)
	if err := t.encode(func(b []byte) error {
		length += int64(len(b))
		_, err := file.Write(b)
		if err == nil && t.deserted() {
			err = errNoReceivers
		}
		return err
	}); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	t.p.engine.InTurn(func() { t.length = true })
	if err := t.send(fmt.Appendf(nil, "$%d\r\n", length)); err != nil {
		return err
	}
	buffer := make([]byte, min(window/4, length))
	for length > 0 {
		b := buffer[:min(int64(len(buffer)), length)]
		if _, err := io.ReadFull(file, b); err != nil {
			return err
		}
		if err := t.send(b); err != nil {
			return err
		}
		length -= int64(len(b))
	}
	return nil
}

// deserted reports whether no replica waits for the data any more.
func (t *transfer) deserted() (alone bool) {
	t.p.engine.InTurn(func() {
		alone = !slices.ContainsFunc(t.replicas, func(r *replica) bool { return r.state == receiving })
	})
	select {
	case <-t.p.quit:
		return true
	default:
		return alone
	}
}
