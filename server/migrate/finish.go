package migrate

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/rdb"
)

const (
	// pauseTime is how long a source refuses writes at most if the tool dies during the
	// cut-over. The tool renews it every renewTime.
	pauseTime = 3 * time.Second
	renewTime = time.Second
	// pausedTime is how long a source refuses writes after the cut-over.
	pausedTime = 24 * time.Hour
	lagPoll    = time.Millisecond
)

// finish waits for the order to cut over while the sources are followed, and cuts over.
// It returns errFinished at the end.
func (m *move) finish(ctx context.Context) error {
	m.status.begin("follow", 0)
	m.o.log("the copy is complete; following the changes")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ordered := false; !ordered; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.o.CutOver:
			ordered = true
		case <-tick.C:
			err := m.measureLag(ctx)
			if err == nil {
				err = m.repairDoubts(ctx)
			}
			if err != nil && !transient(err) {
				return err
			}
		}
	}
	for {
		switch err := m.cutOver(ctx); {
		case err == nil:
			return errFinished
		case !errors.Is(err, errChanged):
			return err
		}
		m.o.log("whole databases have changed: verifying again")
	}
}

// cutOver verifies the target while both sides change, and then moves the clients: from
// here on the sources refuse writes, and the time does not depend on the size of the data.
func (m *move) cutOver(ctx context.Context) error {
	if err := m.prepare(ctx); err != nil {
		return err
	}
	m.status.begin("cut-over", 0)
	if err := m.awaitLag(ctx, smallLag); err != nil {
		return err
	}
	m.o.log("pausing the writes at the source")
	began := time.Now()
	renewing, stop := context.WithCancel(ctx)
	defer stop()
	var renewal sync.WaitGroup
	renewal.Go(func() { m.renewPause(renewing) })
	err := m.switchOver(ctx)
	stop()
	renewal.Wait()
	if err != nil {
		return errors.Join(err, m.unpause(ctx))
	}
	if err := m.handOver(ctx); err != nil {
		return err
	}
	if n := m.repaired.Load(); n > 0 {
		m.o.log(fmt.Sprintf("%d values were written again: their old deadlines had passed at the target before the source's changes arrived", n))
	}
	m.o.log(fmt.Sprintf("cut over; the source refused writes for %v", time.Since(began).Round(time.Millisecond)))
	return m.clean(ctx)
}

// prepare verifies the target until few keys are left that change all the time.
func (m *move) prepare(ctx context.Context) error {
	if err := m.verifyAll(ctx); err != nil {
		return err
	}
	m.whole = false
	for round := range rounds {
		before, most := m.changes.len(), fewChanges
		if round == 0 {
			most = 0 // what differs is repaired before the sources refuse writes
		}
		if err := m.verifyChanged(ctx, most); err != nil {
			return err
		}
		if now := m.changes.len(); now <= fewChanges || now > before/2 {
			break
		}
	}
	return nil
}

// handOver ends the move: the target is complete, and the sources refuse writes.
func (m *move) handOver(ctx context.Context) error {
	if err := m.t.retry(ctx, func() error { return m.t.rdb.HSet(ctx, progressKey, fieldDone, "1").Err() }); err != nil {
		return errors.Join(err, m.unpause(ctx))
	}
	m.end()
	switch {
	case m.o.Unpause:
		return m.unpause(ctx)
	case m.o.Forward:
		if err := m.forward(ctx); err != nil {
			return errors.Join(err, m.pause(ctx, pausedTime))
		}
		return nil
	}
	return m.pause(ctx, pausedTime)
}

// unpause makes the sources accept writes again, also when ctx has ended.
func (m *move) unpause(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTimeout)
	defer cancel()
	return m.eachSource(func(s *source) error { return s.admin.Do(ctx, "CLIENT", "UNPAUSE").Err() })
}

// eachSource calls f for all sources at the same time.
func (m *move) eachSource(f func(s *source) error) error {
	failed := make([]error, len(m.sources))
	var calls sync.WaitGroup
	for i, s := range m.sources {
		calls.Go(func() { failed[i] = f(s) })
	}
	calls.Wait()
	return errors.Join(failed...)
}

// smallLag is the lag in bytes up to which a cut-over begins: the rest takes little time,
// during which the sources refuse writes.
const (
	smallLag = 32 << 10
	// largeLag is the lag for which a cut-over is content after lagPatience.
	largeLag    = 256 << 10
	lagPatience = 2 * time.Second
)

// awaitLag waits until the lag is at most so many bytes.
func (m *move) awaitLag(ctx context.Context, most int64) error {
	for began := time.Now(); ; {
		if most > 0 && time.Since(began) > lagPatience {
			most = largeLag
		}
		err := m.measureLag(ctx)
		if err == nil && m.status.get().Lag <= most {
			return nil
		}
		if err != nil && !transient(err) {
			return err
		}
		if err := sleep(ctx, lagPoll); err != nil {
			return err
		}
	}
}

// sleep waits until the time has passed, or the context has ended.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// offsets reads how much of their streams the sources have sent.
func (m *move) offsets(ctx context.Context) ([]int64, error) {
	offsets := make([]int64, len(m.sources))
	return offsets, m.eachSource(func(s *source) error {
		info, err := infoOf(ctx, s.admin, "replication")
		if err != nil {
			return err
		}
		if offsets[s.index], err = strconv.ParseInt(info["master_repl_offset"], 10, 64); err != nil {
			return fmt.Errorf("%s: INFO has no master_repl_offset", s.addr)
		}
		return nil
	})
}

// measureLag reads how much of their streams the sources have sent beyond that which is
// applied.
func (m *move) measureLag(ctx context.Context) error {
	offsets, err := m.offsets(ctx)
	if err != nil {
		return err
	}
	lag := int64(0)
	for i, s := range m.sources {
		lag += max(0, offsets[i]-s.position().offset)
	}
	m.status.set(func(s *Status) { s.Lag = lag })
	return nil
}

// pause makes the sources refuse writes.
func (m *move) pause(ctx context.Context, d time.Duration) error {
	return m.eachSource(func(s *source) error {
		if err := s.admin.Do(ctx, "CLIENT", "PAUSE", d.Milliseconds(), "WRITE").Err(); err != nil {
			return fmt.Errorf("%s: CLIENT PAUSE: %w", s.addr, err)
		}
		return nil
	})
}

func (m *move) renewPause(ctx context.Context) {
	tick := time.NewTicker(renewTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = m.pause(ctx, pauseTime) // see complete
		}
	}
}

// forward makes the sources answer from the target. The data have moved: a source that
// cannot do it still refuses writes.
func (m *move) forward(ctx context.Context) error {
	for _, s := range m.sources {
		if err := s.admin.ConfigSet(ctx, "forward-to", m.o.To.url).Err(); err != nil {
			return fmt.Errorf("the data have moved, but %s does not forward: CONFIG SET forward-to: %w", s.addr, err)
		}
		switch err := s.admin.Exists(ctx, progressKey).Err(); err {
		case nil:
			m.o.log(s.addr + " forwards; CONFIG REWRITE there keeps that after a restart")
		default:
			m.o.log(fmt.Sprintf("%s forwards, but its clients receive errors: %v", s.addr, err))
		}
	}
	return nil
}

// switchOver completes the target while the sources refuse writes, verifies what has
// changed last, and runs the hook.
func (m *move) switchOver(ctx context.Context) error {
	if err := m.complete(ctx); err != nil {
		return err
	}
	if m.o.Verify != 0 {
		m.o.log(fmt.Sprintf("verified: %d of %d keys are equal", min(m.compared, m.keys), m.keys))
	}
	if m.o.Hook != "" {
		m.o.log("running " + m.o.Hook)
		c := exec.CommandContext(ctx, "sh", "-c", m.o.Hook)
		c.Env = append(c.Environ(), "ZSETD_MIGRATE_FROM="+m.o.From.String(), "ZSETD_MIGRATE_TO="+m.o.To.String())
		out, err := c.CombinedOutput()
		if len(out) > 0 {
			m.o.log(string(out))
		}
		if err != nil {
			return fmt.Errorf("the hook has failed: %w", err)
		}
	}
	return m.complete(ctx)
}

// complete makes the sources refuse writes, applies what they have sent, and verifies it. It
// is repeated at the end: a pause that could not be renewed may have lapsed meanwhile.
func (m *move) complete(ctx context.Context) error {
	if err := m.pause(ctx, pauseTime); err != nil {
		return err
	}
	if err := m.awaitLag(ctx, 0); err != nil {
		return err
	}
	keys, whole := m.changes.take()
	if whole {
		return errChanged
	}
	if err := m.foldKeys(ctx, keys); err != nil {
		return err
	}
	for k := range keys {
		if len(keys) <= stillChanges {
			break
		}
		if !m.doubts.has(k) {
			delete(keys, k)
			m.compared--
		}
	}
	return m.verifySet(ctx, keys, still)
}

// scanCount is the COUNT of SCAN.
const scanCount = 1000

// scan passes the keys of a server's database, some at a time, to f; perhaps some of
// them twice.
func scan(ctx context.Context, c *redis.Client, pattern, kind string, f func(keys []string) error) error {
	cursor := uint64(0)
	for {
		args := []any{"SCAN", cursor, "COUNT", scanCount}
		if pattern != "" {
			args = append(args, "MATCH", pattern)
		}
		if kind != "" {
			args = append(args, "TYPE", kind)
		}
		reply, err := c.Do(ctx, args...).Slice()
		if err != nil {
			return err
		}
		if len(reply) != 2 {
			return errors.New("SCAN: unexpected reply")
		}
		next, _ := reply[0].(string)
		if cursor, err = strconv.ParseUint(next, 10, 64); err != nil {
			return err
		}
		list, _ := reply[1].([]any)
		keys := make([]string, 0, len(list))
		for _, k := range list {
			if key, ok := k.(string); ok && !isState(key) {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			if err := f(keys); err != nil {
				return err
			}
		}
		if cursor == 0 {
			return nil
		}
	}
}

// eachDatabase calls f with a client for each database of a source that moves.
func (m *move) eachDatabase(ctx context.Context, s *source, f func(c *redis.Client, from databaseInfo, to int) error) error {
	info, err := infoOf(ctx, s.admin, "keyspace")
	if err != nil {
		return err
	}
	for _, d := range databasesOf(info) {
		to, moves := m.dbs.of(d.db)
		if !moves {
			continue
		}
		c := s.Endpoint.client(s.addr, d.db)
		if err := errors.Join(f(c, d, to), c.Close()); err != nil {
			return err
		}
	}
	return nil
}

// eachTargetDatabase calls f with a client for each database of the target, and of each
// primary of a cluster.
func (m *move) eachTargetDatabase(ctx context.Context, f func(c *redis.Client, db int) error) error {
	return m.t.each(ctx, func(ctx context.Context, c *redis.Client) error {
		info, err := infoOf(ctx, c, "keyspace")
		if err != nil {
			return err
		}
		for _, d := range databasesOf(info) {
			if d.db != 0 {
				c = m.t.client(d.db).(*redis.Client)
			}
			if err := f(c, d.db); err != nil {
				return err
			}
		}
		return nil
	})
}

// dumps returns the values of keys; those that do not exist are nil.
func dumps(ctx context.Context, c redis.UniversalClient, codec *rdb.Codec, keys []string) ([]archive.Value, error) {
	p := c.Pipeline()
	replies := make([]*redis.StringCmd, len(keys))
	for i, k := range keys {
		replies[i] = p.Dump(ctx, k)
	}
	_, _ = p.Exec(ctx) // each call has its own error
	values := make([]archive.Value, len(keys))
	for i, r := range replies {
		values[i].Key = keys[i]
		text, err := r.Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err == nil {
			values[i].Value, err = codec.Payload([]byte(text))
		}
		if err != nil {
			return nil, fmt.Errorf("key %.100q: %w", keys[i], err)
		}
	}
	return values, nil
}
