package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// A deadline that the source renews in time may pass at the target before the renewal arrives
// there. The key, or what it had in it, is gone then. It is repaired: its value is read at the
// source together with the offset of the stream, and written to the target when all commands up
// to that offset are applied, and none beyond it. So each change is in the value or is applied
// to it, and none is both.

// repair is values of one source, all as of one instant of its stream.
type repair struct {
	at     position
	values []archive.Value // in databases of the target
	why    reason
	done   chan struct{} // closed when it is written or dropped
}

// reason is why keys are repaired.
type reason int

const (
	absent    reason = iota // the target lacks them
	different               // their values differ
	doubtful                // they may differ
)

// repairKeys is how many values are read in one transaction.
const repairKeys = 100

// repair gives keys of a database of the target the values of the source, as far as it is explained
// why they have others: a key that the target lacks has a deadline at the source, or the key is
// doubtful.
func (m *move) repair(ctx context.Context, db int, keys []string, why reason) error {
	set := map[keyAt]struct{}{}
	for _, s := range m.sources {
		var own []string
		for _, k := range keys {
			if s.has(k) && (why == absent || m.doubts.has(keyAt{db, k})) {
				own = append(own, k)
				set[keyAt{db, k}] = struct{}{}
			}
		}
		if len(own) == 0 {
			continue
		}
		c := s.admin
		if !s.at.Cluster {
			c = m.source(db).(*redis.Client)
		}
		small, large, err := largeOf(ctx, c, own)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(small, repairKeys) {
			if err := m.repairFrom(ctx, s, c, db, some, why); err != nil {
				return err
			}
		}
		for _, v := range large {
			if err := m.repairFrom(ctx, s, c, db, []string{v.key}, why); err != nil {
				return err
			}
		}
	}
	return m.foldKeys(ctx, set)
}

// repairDoubts repairs some doubtful keys if there are many.
func (m *move) repairDoubts(ctx context.Context) error {
	for range rounds {
		some := m.doubts.some()
		for db, keys := range some {
			if err := m.repair(ctx, db, keys, doubtful); err != nil {
				return err
			}
		}
		if some == nil {
			break
		}
	}
	return nil
}

// repairFrom repairs keys from one source.
func (m *move) repairFrom(ctx context.Context, s *source, c *redis.Client, db int, keys []string, why reason) error {
	a := s.applier
	list, err := func() ([]*repair, error) {
		a.mu.Lock() // the target does not go beyond the offsets that are read
		defer a.mu.Unlock()
		list, err := s.read(ctx, c, db, keys)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			r.why = why
		}
		a.repairs = append(a.repairs, list...)
		if a.multi {
			return list, nil
		}
		return list, a.repairAt(ctx, a.at.offset)
	}()
	if err != nil {
		return err
	}
	for _, r := range list {
		select {
		case <-r.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// read returns the values of keys, for a database of the target. Those of a cluster that are in
// several slots are of several instants.
func (s *source) read(ctx context.Context, c *redis.Client, db int, keys []string) (list []*repair, err error) {
	groups := map[int][]string{}
	for _, k := range keys {
		slot := 0
		if s.at.Cluster {
			slot = keyslot.Of(k)
		}
		groups[slot] = append(groups[slot], k)
	}
	p := c.Pipeline()
	var replies []*redis.Cmd
	var names [][]string
	for _, group := range groups {
		p.Do(ctx, "MULTI")
		p.Do(ctx, "INFO", "replication")
		p.Do(ctx, "TIME")
		for _, k := range group {
			p.Do(ctx, "DUMP", k)
			if s.major >= 7 {
				p.Do(ctx, "PEXPIRETIME", k)
			} else {
				p.Do(ctx, "PTTL", k)
			}
		}
		replies, names = append(replies, p.Do(ctx, "EXEC")), append(names, group)
	}
	if _, err := p.Exec(ctx); err != nil {
		return nil, fmt.Errorf("%s: reading values: %w", s.addr, err)
	}
	limits := keyspace.DefaultLimits()
	codec := rdb.NewCodec(&limits)
	for i, r := range replies {
		reply, err := r.Slice()
		if err == nil && len(reply) != 2+2*len(names[i]) {
			err = errors.New("unexpected reply of EXEC")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: reading values: %w", s.addr, err)
		}
		one, err := s.repairOf(codec, db, names[i], reply)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.addr, err)
		}
		list = append(list, one)
	}
	return list, nil
}

// repairOf reads the reply of a transaction of read.
func (s *source) repairOf(codec *rdb.Codec, db int, keys []string, reply []any) (r *repair, err error) {
	text, _ := reply[0].(string)
	info := fieldsOf(text)
	r = &repair{at: position{id: info["master_replid"]}, done: make(chan struct{})}
	if r.at.offset, err = strconv.ParseInt(info["master_repl_offset"], 10, 64); err != nil {
		return nil, errors.New("INFO has no master_repl_offset")
	}
	now := int64(0)
	if s.major < 7 {
		if now, err = milliseconds(reply[1]); err != nil {
			return nil, err
		}
	}
	for i, k := range keys {
		v := archive.Value{DB: db, Key: k}
		switch payload := reply[2+2*i].(type) {
		case error:
			return nil, fmt.Errorf("key %.100q: %w", k, payload)
		case string:
			if v.Value, err = codec.Payload([]byte(payload)); err != nil {
				return nil, fmt.Errorf("key %.100q: %w", k, err)
			}
		}
		switch at := reply[3+2*i].(type) {
		case error:
			return nil, fmt.Errorf("key %.100q: %w", k, at)
		case int64:
			if at > 0 {
				v.Deadline = now + at
			}
		}
		r.values = append(r.values, v)
	}
	return r, nil
}

// milliseconds reads the reply of TIME.
func milliseconds(reply any) (int64, error) {
	list, _ := reply.([]any)
	if len(list) != 2 {
		return 0, errors.New("unexpected reply of TIME")
	}
	s, err := strconv.ParseInt(fmt.Sprint(list[0]), 10, 64)
	us, err2 := strconv.ParseInt(fmt.Sprint(list[1]), 10, 64)
	return s*1000 + us/1000, errors.Join(err, err2)
}

// begin begins with the rest of a stream, on a new connection. Repairs that wait are dropped.
func (a *applier) begin(at position) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.repairs {
		close(r.done)
	}
	a.repairs = nil
	a.at, a.db, a.multi = at, at.db, false
	clear(a.units)
	a.pending, a.touched, a.whole = 0, nil, false
}

// repairAt writes the repairs of an offset, up to which all commands are collected or applied.
// Those of earlier offsets, or of another stream, are dropped: the keys still differ, and
// the next comparison finds them.
func (a *applier) repairAt(ctx context.Context, offset int64) error {
	for len(a.repairs) > 0 {
		r := a.repairs[0]
		if r.at.id == a.at.id && r.at.offset > offset {
			return nil
		}
		a.repairs = a.repairs[1:]
		if r.at.id == a.at.id && r.at.offset == offset {
			if err := a.flush(ctx); err != nil {
				return err
			}
			if err := a.write(ctx, r); err != nil {
				return err
			}
		}
		close(r.done)
	}
	return nil
}

// write writes the values of a repair, and deletes the keys that the source lacks.
func (a *applier) write(ctx context.Context, r *repair) error {
	limits := keyspace.DefaultLimits()
	w := copyWorker{copier: newCopier(ctx, a.t, &status{}), codec: rdb.NewCodec(&limits), whole: true}
	defer w.cancel(nil)
	var values []archive.Value
	var gone []string // keys to delete
	for _, v := range r.values {
		k := keyAt{v.DB, v.Key}
		switch doubts := a.doubts.has(k); {
		case v.Value != nil && (doubts || r.why == absent && v.Deadline > 0):
			values = append(values, v)
		case v.Value == nil && doubts:
			gone = append(gone, v.Key)
		default:
			continue
		}
		if a.fromZsetd && a.t.name != "zsetd" && a.t.companions.Load() {
			gone = append(gone, archive.CompanionOf(v.Key))
		}
		a.doubts.settle(k)
	}
	if len(gone) > 0 {
		if err := a.t.retry(ctx, func() error {
			p := a.t.client(r.values[0].DB).Pipeline()
			for _, k := range gone {
				p.Del(ctx, k)
			}
			_, err := p.Exec(ctx)
			return err
		}); err != nil {
			return err
		}
	}
	if len(values) == 0 {
		return nil
	}
	if r.why != doubtful {
		a.repaired.Add(int64(len(values)))
	}
	return w.write(values)
}
