package migrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

const (
	// pauseTime is how long a source refuses writes if the tool dies during the
	// cut-over. The tool renews it.
	pauseTime = 30 * time.Second
	// pausedTime is how long a source refuses writes after the cut-over.
	pausedTime = 24 * time.Hour
	lagPoll    = 20 * time.Millisecond
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
			if err := m.measureLag(ctx); err != nil && !transient(err) {
				return err
			}
		}
	}
	m.status.set(func(s *Status) { s.Phase = "cut-over" })
	if err := m.awaitLag(ctx, smallLag); err != nil {
		return err
	}
	began := time.Now()
	if err := m.pause(ctx, pauseTime); err != nil {
		return err
	}
	renewing, stop := context.WithCancel(ctx)
	defer stop()
	go m.renewPause(renewing)
	err := m.switchOver(ctx)
	stop()
	if err == nil && m.o.Forward {
		if failed := m.forward(ctx); failed != nil {
			return errors.Join(failed, m.pause(ctx, pausedTime))
		}
	}
	if err != nil || m.o.Unpause {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTimeout)
		defer cancel()
		for _, s := range m.sources {
			err = errors.Join(err, s.admin.Do(undo, "CLIENT", "UNPAUSE").Err())
		}
	} else if !m.o.Forward {
		err = m.pause(ctx, pausedTime)
	}
	if err != nil {
		return err
	}
	m.o.log(fmt.Sprintf("cut over; the source refused writes for %v", time.Since(began).Round(time.Millisecond)))
	return errFinished
}

// smallLag is the lag in bytes up to which a cut-over begins: the rest takes little time,
// during which the sources refuse writes.
const smallLag = 256 << 10

// awaitLag waits until the lag is at most so many bytes.
func (m *move) awaitLag(ctx context.Context, most int64) error {
	for {
		err := m.measureLag(ctx)
		if err == nil && m.status.get().Lag <= most {
			return nil
		}
		if err != nil && !transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lagPoll):
		}
	}
}

// measureLag reads how much of their streams the sources have sent beyond that which is
// applied.
func (m *move) measureLag(ctx context.Context) error {
	lag := int64(0)
	for _, s := range m.sources {
		info, err := infoOf(ctx, s.admin, "replication")
		if err != nil {
			return err
		}
		offset, err := strconv.ParseInt(info["master_repl_offset"], 10, 64)
		if err != nil {
			return fmt.Errorf("%s: INFO has no master_repl_offset", s.addr)
		}
		lag += max(0, offset-s.position().offset)
	}
	m.status.set(func(s *Status) { s.Lag = lag })
	return nil
}

// pause makes the sources refuse writes.
func (m *move) pause(ctx context.Context, d time.Duration) error {
	for _, s := range m.sources {
		if err := s.admin.Do(ctx, "CLIENT", "PAUSE", d.Milliseconds(), "WRITE").Err(); err != nil {
			return fmt.Errorf("%s: CLIENT PAUSE: %w", s.addr, err)
		}
	}
	return nil
}

func (m *move) renewPause(ctx context.Context) {
	tick := time.NewTicker(pauseTime / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = m.pause(ctx, pauseTime) // verified by the next one, or by the end of the cut-over
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

// switchOver completes the target while the sources refuse writes, verifies it, and
// runs the hook.
func (m *move) switchOver(ctx context.Context) error {
	if err := m.awaitLag(ctx, 0); err != nil {
		return err
	}
	if m.timed {
		return fmt.Errorf("%w: an earlier cut-over has set deadlines of members, and the stream does not say which ones have changed since", errRestart)
	}
	for _, s := range m.sources {
		if s.name == "zsetd" {
			if err := m.copyDeadlines(ctx, s); err != nil {
				return err
			}
		}
	}
	if m.timed {
		if err := m.dropExpired(ctx); err != nil {
			return err
		}
	}
	if m.t.name == "zsetd" {
		if err := m.foldCompanions(ctx); err != nil {
			return err
		}
	}
	if err := m.verify(ctx); err != nil {
		return err
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
	return m.clean(ctx)
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

// copyDeadlines sets the deadlines of members and fields as they are at the end: the
// changes of deadlines in the stream of zsetd are not applied.
func (m *move) copyDeadlines(ctx context.Context, s *source) error {
	limits := keyspace.DefaultLimits()
	codec := rdb.NewCodec(&limits)
	return m.eachDatabase(ctx, s, func(c *redis.Client, from databaseInfo, to int) error {
		if from.memberDeadlines == 0 {
			return nil
		}
		if err := m.t.rdb.HSet(ctx, progressKey, fieldTimed, "1").Err(); err != nil {
			return err
		}
		m.timed = true
		for _, kind := range []string{"zset", "hash"} {
			if err := scan(ctx, c, "", kind, func(keys []string) error {
				values, err := dumps(ctx, c, codec, keys)
				if err != nil {
					return err
				}
				p := m.t.newPieces(ctx, to)
				w := archive.NewCommandWriter(p, m.t.form())
				for _, v := range values {
					if v.Value == nil || v.Deadlines() == nil {
						continue
					}
					if err := w.WriteDeadlines(v, time.Now()); err != nil {
						return err
					}
				}
				return p.end()
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropExpired deletes members and fields at the target whose deadlines have passed since
// the sources refuse writes. A source hides them, and does not remove them, so the stream
// has not said so, and copyDeadlines has not seen them. All else is equal by then.
func (m *move) dropExpired(ctx context.Context) error {
	for _, s := range m.sources {
		if err := m.eachDatabase(ctx, s, func(c *redis.Client, from databaseInfo, to int) error {
			if from.memberDeadlines == 0 {
				return nil
			}
			there, stop := m.targetClient(to)
			defer stop()
			for _, k := range []kindCommands{{"zset", "ZCARD", "ZREM", []any{"ZRANGE", 0, -1}}, {"hash", "HLEN", "HDEL", []any{"HKEYS"}}} {
				if err := scan(ctx, c, "", k.kind, func(keys []string) error { return k.dropSurplus(ctx, c, there, keys) }); err != nil {
					return err
				}
				if err := eachPrimary(ctx, there, func(ctx context.Context, node *redis.Client) error {
					return scan(ctx, node, "", k.kind, func(keys []string) error { return m.dropAbsent(ctx, node, ordinary(keys)) })
				}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// kindCommands are the commands by which dropExpired reads and changes a kind of value.
type kindCommands struct {
	kind, count, remove string
	list                []any // its first word, and those after the key
}

// dropSurplus deletes what values at the target have beyond those of the source.
func (k *kindCommands) dropSurplus(ctx context.Context, here, there redis.UniversalClient, keys []string) error {
	counts := func(c redis.UniversalClient) ([]*redis.Cmd, error) {
		p := c.Pipeline()
		replies := make([]*redis.Cmd, len(keys))
		for i, key := range keys {
			replies[i] = p.Do(ctx, k.count, key)
		}
		_, err := p.Exec(ctx)
		return replies, err
	}
	a, err := counts(here)
	if err != nil {
		return err
	}
	b, err := counts(there)
	if err != nil {
		return err
	}
	for i, key := range keys {
		if a[i].Val() == b[i].Val() {
			continue
		}
		words := append([]any{k.list[0], key}, k.list[1:]...)
		keep, err := here.Do(ctx, words...).StringSlice()
		if err != nil {
			return err
		}
		have, err := there.Do(ctx, words...).StringSlice()
		if err != nil {
			return err
		}
		kept := make(map[string]struct{}, len(keep))
		for _, member := range keep {
			kept[member] = struct{}{}
		}
		for some := range slices.Chunk(have, compareKeys) {
			remove := []any{k.remove, key}
			for _, member := range some {
				if _, stays := kept[member]; !stays {
					remove = append(remove, member)
				}
			}
			if len(remove) > 2 {
				if err := there.Do(ctx, remove...).Err(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// dropAbsent deletes those of the keys that no source has: all their members have expired.
func (m *move) dropAbsent(ctx context.Context, node *redis.Client, keys []string) (err error) {
	keys = slices.DeleteFunc(keys, isState)
	for _, s := range m.sources {
		if keys, err = m.missingAt(ctx, s, node, keys); err != nil {
			return err
		}
	}
	for _, key := range keys {
		if err := node.Unlink(ctx, key).Err(); err != nil {
			return err
		}
	}
	return nil
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

// foldCompanions gives members at zsetd the deadlines that the library for Redis keeps
// in sorted sets of their own, and deletes these.
func (m *move) foldCompanions(ctx context.Context) error {
	return m.t.each(ctx, func(ctx context.Context, c *redis.Client) error {
		return scan(ctx, c, archive.CompanionPrefix+"*", "zset", func(names []string) error {
			for _, name := range names {
				owner, ok := archive.OwnerOf(name)
				if !ok {
					continue
				}
				deadlines, err := c.ZRangeWithScores(ctx, name, 0, -1).Result()
				if err != nil {
					return err
				}
				for _, z := range deadlines {
					if z.Score < 1 || z.Score != math.Trunc(z.Score) {
						continue
					}
					if err := c.Do(ctx, "ZPEXPIREAT", owner, int64(z.Score), "MEMBERS", 1, z.Member).Err(); err != nil {
						return err
					}
				}
				if err := c.Del(ctx, name).Err(); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
