package migrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

// VerifyAll is the value of Options.Verify that compares all keys.
const VerifyAll = -1

const (
	// recheck is how often a key that differs is compared again: a deadline may pass at
	// one side a moment before it does at the other.
	recheck      = 5
	recheckPause = 20 * time.Millisecond
	// compareKeys is how many values are read at once.
	compareKeys = 100
)

// verify compares source and target, which do not change. The number of keys is always
// compared, and the values of Options.Verify keys.
func (m *move) verify(ctx context.Context) error {
	total := int64(0)
	for _, s := range m.sources {
		if err := m.eachDatabase(ctx, s, func(_ *redis.Client, from databaseInfo, _ int) error {
			total += from.keys
			return nil
		}); err != nil {
			return err
		}
	}
	n, err := m.t.keys(ctx)
	if err != nil {
		return err
	}
	if n != total { // keys past their deadlines count until they are deleted; companions count
		if err := m.compareNames(ctx); err != nil {
			return err
		}
	}
	if m.o.Verify == 0 {
		return nil
	}
	m.status.begin("verify", total)
	compared := 0
	for _, s := range m.sources {
		if err := m.eachDatabase(ctx, s, func(c *redis.Client, from databaseInfo, to int) error {
			there, stop := m.targetClient(to)
			defer stop()
			share := 1.0 // of the keys
			if m.o.Verify != VerifyAll {
				share = float64(m.o.Verify) / float64(max(1, total))
			}
			return scan(ctx, c, "", "", func(keys []string) error {
				var chosen []string
				if m.t.name == "zsetd" {
					keys = ordinary(keys) // see foldCompanions
				}
				for _, k := range keys {
					if share >= 1 || rand.Float64() < share {
						chosen = append(chosen, k)
					}
				}
				for len(chosen) > 0 {
					some := chosen[:min(len(chosen), compareKeys)]
					chosen = chosen[len(some):]
					if err := m.compare(ctx, c, there, some); err != nil {
						return err
					}
					compared += len(some)
					m.status.copied(len(some))
				}
				return nil
			})
		}); err != nil {
			return err
		}
	}
	m.o.log(fmt.Sprintf("verified: %d of %d keys are equal", compared, total))
	return nil
}

// targetClient returns a client of the target that has selected a database.
func (m *move) targetClient(db int) (c redis.UniversalClient, stop func()) {
	if db == 0 {
		return m.t.rdb, func() {}
	}
	own := m.t.Endpoint.client(m.t.at.Addrs[0], db)
	return own, func() { own.Close() }
}

// compare compares the values of some keys.
func (m *move) compare(ctx context.Context, here, there redis.UniversalClient, keys []string) error {
	limits := keyspace.DefaultLimits()
	codec := rdb.NewCodec(&limits)
	for try := 0; ; try++ {
		var different []string
		a, err := m.values(ctx, here, codec, keys)
		if err != nil {
			return err
		}
		b, err := m.values(ctx, there, codec, keys)
		if err != nil {
			return err
		}
		for i, k := range keys {
			if m.same(a[i], b[i]) {
				continue
			}
			living, err := m.withoutDue(ctx, there, b[i])
			if err != nil {
				return err
			}
			if !m.same(a[i], living) {
				different = append(different, k)
			}
		}
		switch keys = different; {
		case len(keys) == 0:
			return nil
		case try == recheck:
			return fmt.Errorf("verification failed: key %.100q differs, and perhaps others", keys[0])
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(recheckPause):
		}
	}
}

// withoutDue returns a value of the target without the members of a sorted set that are past
// their deadlines. In Redis they stay until a function of the library opens the key, and the
// source shows none of them.
func (m *move) withoutDue(ctx context.Context, there redis.UniversalClient, v archive.Value) (archive.Value, error) {
	s, ok := v.Value.(*zset.Set)
	if !ok || m.t.name == "zsetd" {
		return v, nil
	}
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	due, err := there.ZRangeByScore(ctx, archive.CompanionOf(v.Key), &redis.ZRangeBy{Min: "-inf", Max: "(" + now}).Result()
	if err != nil || len(due) == 0 {
		return v, err
	}
	s = s.Clone()
	for _, member := range due {
		s.Remove(member)
	}
	if v.Value = s; s.Len() == 0 {
		v.Value = nil
	}
	return v, nil
}

// living returns those of keys of the target that have more than members past their
// deadlines.
func (m *move) living(ctx context.Context, there redis.UniversalClient, keys []string) (list []string, err error) {
	limits := keyspace.DefaultLimits()
	values, err := m.values(ctx, there, rdb.NewCodec(&limits), keys)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if v, err = m.withoutDue(ctx, there, v); err != nil {
			return nil, err
		}
		if v.Value != nil {
			list = append(list, v.Key)
		}
	}
	return list, nil
}

// values returns the values of keys, with their deadlines if both sides have
// PEXPIRETIME.
func (m *move) values(ctx context.Context, c redis.UniversalClient, codec *rdb.Codec, keys []string) ([]archive.Value, error) {
	values, err := dumps(ctx, c, codec, keys)
	if err != nil || m.t.major < 7 || m.sources[0].major < 7 {
		return values, err
	}
	p := c.Pipeline()
	at := make([]*redis.Cmd, len(keys))
	for i, k := range keys {
		at[i] = p.Do(ctx, "PEXPIRETIME", k)
	}
	if _, err := p.Exec(ctx); err != nil {
		return nil, err
	}
	for i := range values {
		values[i].Deadline, _ = at[i].Int64()
	}
	return values, nil
}

// slotMoveDelay is by how many milliseconds deadlines at a cluster may differ. When a slot
// moves, MIGRATE of Redis sends the time that is left, so the deadline moves by the time
// that the key is on its way.
const slotMoveDelay = 1000

// same reports whether two values are equal, as far as the target can have the
// deadlines of members and fields.
func (m *move) same(a, b archive.Value) bool {
	if a.Value == nil || b.Value == nil {
		return a.Value == nil && b.Value == nil
	}
	if a.Deadline != b.Deadline && !(m.t.at.Cluster && a.Deadline > 0 && b.Deadline > 0 && max(a.Deadline-b.Deadline, b.Deadline-a.Deadline) <= slotMoveDelay) {
		return false
	}
	if _, hash := a.Value.(*keyspace.Hash); a.Deadlines() != nil && m.t.name != "zsetd" && !(hash && m.t.form().FieldDeadlines()) {
		a = a.WithoutDeadlines()
	}
	if _, hash := a.Value.(*keyspace.Hash); !hash && m.t.name == "zsetd" && m.sources[0].name != "zsetd" {
		b = b.WithoutDeadlines() // see foldCompanions
	}
	if m.t.form() == rdb.Redis5 {
		a, b = a.Portable(), b.Portable()
	}
	return archive.Same(a, b)
}

// compareNames checks that each side has the keys of the other.
func (m *move) compareNames(ctx context.Context) error {
	check := func(from *redis.Client, missing func(keys []string) ([]string, error), where string) error {
		return scan(ctx, from, "", "", func(keys []string) error {
			for try := 0; ; try++ {
				var err error
				if keys, err = missing(keys); err != nil || len(keys) == 0 {
					return err
				}
				if try == recheck {
					return fmt.Errorf("verification failed: key %.100q is missing %s", keys[0], where)
				}
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(recheckPause):
				}
			}
		})
	}
	for _, s := range m.sources {
		if err := m.eachDatabase(ctx, s, func(c *redis.Client, _ databaseInfo, to int) error {
			there, stop := m.targetClient(to)
			defer stop()
			if err := check(c, func(keys []string) ([]string, error) {
				if m.t.name == "zsetd" {
					keys = ordinary(keys) // see foldCompanions
				}
				return onlyIn(ctx, keys, c, there)
			}, "at the target"); err != nil {
				return err
			}
			if m.t.tags != nil || len(m.sources) > 1 {
				return nil
			}
			own := there.(*redis.Client)
			return check(own, func(keys []string) ([]string, error) {
				left, err := onlyIn(ctx, ordinary(keys), own, c)
				if err != nil {
					return nil, err
				}
				return m.living(ctx, own, left)
			}, "at the source")
		}); err != nil {
			return err
		}
	}
	if m.t.tags == nil && len(m.sources) == 1 {
		return nil
	}
	return m.t.each(ctx, func(ctx context.Context, c *redis.Client) error {
		return check(c, func(keys []string) ([]string, error) {
			left := ordinary(keys)
			for _, s := range m.sources {
				var err error
				if left, err = m.missingAt(ctx, s, c, left); err != nil {
					return nil, err
				}
			}
			return m.living(ctx, c, left)
		}, "at the source")
	})
}

// missingAt returns the keys of c that a source does not have in any database that
// moves.
func (m *move) missingAt(ctx context.Context, s *source, c *redis.Client, keys []string) ([]string, error) {
	err := m.eachDatabase(ctx, s, func(there *redis.Client, _ databaseInfo, _ int) (err error) {
		keys, err = onlyIn(ctx, keys, c, there)
		return err
	})
	return keys, err
}

// ordinary returns the keys that are not the deadlines of another one.
func ordinary(keys []string) (list []string) {
	for _, k := range keys {
		if !strings.HasPrefix(k, archive.CompanionPrefix) {
			list = append(list, k)
		}
	}
	return list
}

// onlyIn returns those of the keys that exist at a and not at b.
func onlyIn(ctx context.Context, keys []string, a, b redis.UniversalClient) ([]string, error) {
	have, err := exist(ctx, b, keys)
	if err != nil {
		return nil, err
	}
	var missing []string
	for i, k := range keys {
		if !have[i] {
			missing = append(missing, k)
		}
	}
	if have, err = exist(ctx, a, missing); err != nil {
		return nil, err
	}
	var only []string
	for i, k := range missing {
		if have[i] {
			only = append(only, k)
		}
	}
	return only, nil
}

// exist reports which keys exist.
func exist(ctx context.Context, c redis.UniversalClient, keys []string) ([]bool, error) {
	p := c.Pipeline()
	replies := make([]*redis.IntCmd, len(keys))
	for i, k := range keys {
		replies[i] = p.Exists(ctx, k)
	}
	have := make([]bool, len(keys))
	if len(keys) == 0 {
		return have, nil
	}
	_, err := p.Exec(ctx)
	for i, r := range replies {
		have[i] = r.Val() == 1
	}
	if isMoved(err) {
		// A client of one source's primary asks for a key that another one has.
		return have, nil
	}
	return have, err
}

// isMoved reports whether a node has refused keys because another one has their slot.
func isMoved(err error) bool {
	return err != nil && (strings.HasPrefix(err.Error(), "MOVED ") || errors.Is(err, redis.Nil))
}
