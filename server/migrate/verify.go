package migrate

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/zset"
)

// VerifyAll is the value of Options.Verify that compares all keys.
const VerifyAll = -1

const (
	// recheck is how often keys that differ are compared again: a deadline may pass at
	// one side a moment before it does at the other. The pauses between grow from
	// firstRecheck.
	recheck      = 7
	firstRecheck = time.Millisecond
	// compareKeys is how many values are read at once.
	compareKeys = 100
	// fewChanges is the number of changed keys for which a cut-over waits, as long as they
	// become fewer from round to round. stillChanges is the number of keys that it compares
	// at most while the sources refuse writes: where more change all the time, it compares
	// so many of them, by chance.
	fewChanges   = 100
	stillChanges = 1000
	rounds       = 10
	// largeElements is the number of elements, or of 64 bytes of a string, from which a
	// value that changes all the time is compared by its number of elements.
	largeElements = 2000
	// maxChanges bounds the changed keys that the verification of all keys collects.
	maxChanges = 100_000
)

// errChanged ends a verification: whole databases have changed.
var errChanged = errors.New("whole databases have changed")

// verifyAll compares the sides while the sources are followed: the names of all keys, and the
// values of those of Options.Verify. Keys that change meanwhile are in m.changes.
func (m *move) verifyAll(ctx context.Context) error {
	m.changes.watch()
	m.keys = 0
	for _, s := range m.sources {
		if err := m.eachDatabase(ctx, s, func(_ *redis.Client, from databaseInfo, _ int) error {
			m.keys += from.keys
			return nil
		}); err != nil {
			return err
		}
	}
	m.status.begin("verify", m.keys)
	m.compared, m.whole = 0, true
	if m.folds() {
		if err := m.foldAll(ctx); err != nil {
			return err
		}
	}
	for _, s := range m.sources {
		if err := m.eachDatabase(ctx, s, func(c *redis.Client, _ databaseInfo, to int) error {
			return scan(ctx, c, "", "", func(keys []string) error {
				if err := m.verifyKeys(ctx, to, keys, first); err != nil {
					return err
				}
				m.status.copied(len(keys))
				m.compared += int64(len(m.chosen(to, keys)))
				return m.verifyChanged(ctx, maxChanges)
			})
		}); err != nil {
			return err
		}
	}
	return m.eachTargetDatabase(ctx, func(c *redis.Client, db int) error {
		return scan(ctx, c, "", "", func(keys []string) error {
			if err := m.verifyAbsent(ctx, db, keys, first); err != nil {
				return err
			}
			return m.verifyChanged(ctx, maxChanges)
		})
	})
}

// verifyChanged compares the keys that have changed if there are more than so many.
func (m *move) verifyChanged(ctx context.Context, most int) error {
	if m.changes.len() <= most {
		return nil
	}
	keys, whole := m.changes.take()
	if whole {
		return errChanged
	}
	if err := m.catchUp(ctx); err != nil {
		return err
	}
	if err := m.foldKeys(ctx, keys); err != nil {
		return err
	}
	return m.verifySet(ctx, keys, again)
}

// look is how keys are compared.
type look int

const (
	first look = iota // while both sides change
	again             // likewise, keys that have changed or have differed
	still             // while neither side changes
)

// verifySet compares keys.
func (m *move) verifySet(ctx context.Context, set map[keyAt]struct{}, how look) error {
	if m.translates() {
		set = owners(set)
	}
	byDB := map[int][]string{}
	for k := range set {
		byDB[k.db] = append(byDB[k.db], k.key)
	}
	for db, keys := range byDB {
		for some := range slices.Chunk(keys, scanCount) {
			if err := m.verifyAbsent(ctx, db, some, how); err != nil {
				return err
			}
			if err := m.verifyKeys(ctx, db, some, how); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyKeys checks that the target has keys of the source, and the same values.
func (m *move) verifyKeys(ctx context.Context, db int, keys []string, how look) error {
	if keys = m.ordinary(keys); len(keys) == 0 {
		return nil
	}
	here, there := m.source(db), m.t.client(db)
	if err := m.settle(ctx, db, keys, how, missing, func(keys []string) ([]string, error) {
		left, err := onlyIn(ctx, keys, here, there)
		if err != nil || len(left) == 0 || m.t.name != "zsetd" {
			return left, err
		}
		return m.living(ctx, here, m.sources[0].product, left)
	}); err != nil {
		return err
	}
	for some := range slices.Chunk(m.chosen(db, keys), compareKeys) {
		if err := m.settle(ctx, db, some, how, "differs", func(keys []string) ([]string, error) {
			return m.compare(ctx, db, keys, m.whole && how != still)
		}); err != nil {
			return err
		}
	}
	return nil
}

// verifyAbsent checks that the target has no keys that the source has not.
func (m *move) verifyAbsent(ctx context.Context, db int, keys []string, how look) error {
	here, there := m.source(db), m.t.client(db)
	return m.settle(ctx, db, ordinary(keys), how, "is missing at the source", func(keys []string) ([]string, error) {
		left, err := onlyIn(ctx, keys, there, here)
		if err != nil || len(left) == 0 {
			return nil, err
		}
		return m.living(ctx, there, m.t.product, left)
	})
}

// missing is the fault of keys that only the source has.
const missing = "is missing at the target"

// settle repeats a comparison until it finds no difference. If the sides are not still, keys
// that differ are compared again later, as those that have changed. Keys that differ at another
// than the first look are repaired.
func (m *move) settle(ctx context.Context, db int, keys []string, how look, fault string, differ func(keys []string) ([]string, error)) error {
	pause := firstRecheck
	for try := 0; ; try++ {
		var err error
		left := keys
		err = m.t.retry(ctx, func() (err error) {
			keys, err = differ(left)
			return err
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		if how != still {
			m.changes.addNames(db, keys)
		}
		if how != first {
			why := different
			if fault == missing {
				why = absent
			}
			if err := m.repair(ctx, db, keys, why); err != nil {
				return err
			}
		}
		if how != still {
			return nil
		}
		if try == recheck {
			return fmt.Errorf("verification failed: key %.100q %s, and perhaps others", keys[0], fault)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

// catchUp waits until what the sources have sent by now is applied.
func (m *move) catchUp(ctx context.Context) error {
	offsets, err := m.offsets(ctx)
	if err != nil {
		return err
	}
	for i, s := range m.sources {
		for s.position().offset < offsets[i] {
			if err := sleep(ctx, lagPoll); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosen returns those of keys of a database of the target whose values are compared: those that
// are doubtful, and the same other ones each time.
func (m *move) chosen(db int, keys []string) (list []string) {
	if m.o.Verify == VerifyAll {
		return keys
	}
	share := float64(m.o.Verify) / float64(max(1, m.keys))
	for _, k := range keys {
		if m.doubts.compares(keyAt{db, k}) || float64(maphash.String(m.seed, k)) < share*math.MaxUint64 {
			list = append(list, k)
		}
	}
	return list
}

// compare returns those of keys whose values differ. Large ones are compared element by
// element if whole is set, and by their number of elements otherwise.
func (m *move) compare(ctx context.Context, db int, keys []string, whole bool) (different []string, err error) {
	here, there := m.source(db), m.t.client(db)
	keys, large, err := largeOf(ctx, here, keys)
	if err != nil {
		return nil, err
	}
	if !whole {
		if different, err = compareLengths(ctx, here, there, large); err != nil {
			return nil, err
		}
	} else {
		for _, v := range large {
			l := largeComparison{m: m, here: side{here, m.sources[0].product}, there: side{there, m.t.product}, db: db, key: v.key}
			same, err := l.compare(ctx, v.kind)
			if err != nil {
				return nil, err
			}
			if !same && m.doubts.has(keyAt{db, v.key}) {
				different = append(different, v.key)
			} else if !same {
				return nil, fmt.Errorf("verification failed: key %.100q differs", v.key)
			}
		}
	}
	if len(keys) == 0 {
		return different, nil
	}
	limits := keyspace.DefaultLimits()
	codec := rdb.NewCodec(&limits)
	a, err := m.values(ctx, here, codec, keys)
	if err != nil {
		return nil, err
	}
	b, err := m.values(ctx, there, codec, keys)
	if err != nil {
		return nil, err
	}
	deadlines, err := m.sameCompanions(ctx, there, codec, a)
	if err != nil {
		return nil, err
	}
	for i, k := range keys {
		if deadlines[k] {
			different = append(different, k)
			continue
		}
		if m.same(a[i], b[i]) {
			continue
		}
		living := b[i]
		if m.t.name == "zsetd" {
			a[i], err = m.withoutDue(ctx, here, m.sources[0].product, a[i])
		} else {
			living, err = m.withoutDue(ctx, there, m.t.product, b[i])
		}
		if err != nil {
			return nil, err
		}
		if !m.same(a[i], living) {
			different = append(different, k)
		}
	}
	return different, nil
}

// lengths are the commands that return the number of elements of values of a type; of
// strings, of bytes.
func lengths() map[string]string {
	return map[string]string{"string": "STRLEN", "list": "LLEN", "set": "SCARD", "zset": "ZCARD", "hash": "HLEN", "stream": "XLEN"}
}

// sized is a large value.
type sized struct {
	key, kind string
	length    int64
}

// largeOf divides keys into large ones and others.
func largeOf(ctx context.Context, c redis.UniversalClient, keys []string) (small []string, large []sized, err error) {
	p := c.Pipeline()
	types := make([]*redis.StatusCmd, len(keys))
	for i, k := range keys {
		types[i] = p.Type(ctx, k)
	}
	if _, err := p.Exec(ctx); err != nil {
		return nil, nil, err
	}
	var some []sized
	for i, t := range types {
		if lengths()[t.Val()] == "" {
			small = append(small, keys[i]) // it does not exist
		} else {
			some = append(some, sized{key: keys[i], kind: t.Val()})
		}
	}
	have, err := lengthsOf(ctx, c, some)
	for i, v := range some {
		if v.length = have[i]; v.length > largeElements && v.kind != "string" || v.length > 64*largeElements {
			large = append(large, v)
		} else {
			small = append(small, v.key)
		}
	}
	return small, large, err
}

// lengthsOf returns the lengths of values; 0 for those that have another type.
func lengthsOf(ctx context.Context, c redis.UniversalClient, values []sized) ([]int64, error) {
	list := make([]int64, len(values))
	if len(values) == 0 {
		return list, nil
	}
	p := c.Pipeline()
	replies := make([]*redis.Cmd, len(values))
	for i, v := range values {
		replies[i] = p.Do(ctx, lengths()[v.kind], v.key)
	}
	_, err := p.Exec(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
		err = nil
	}
	for i, r := range replies {
		list[i], _ = r.Int64()
	}
	return list, err
}

// compareLengths returns the keys of large values that have another length at one side.
func compareLengths(ctx context.Context, here, there redis.UniversalClient, values []sized) (different []string, err error) {
	a, err := lengthsOf(ctx, here, values)
	if err != nil {
		return nil, err
	}
	b, err := lengthsOf(ctx, there, values)
	for i, v := range values {
		if a[i] != b[i] {
			different = append(different, v.key)
		}
	}
	return different, err
}

// withoutDue returns a value without the members of a sorted set that are past their
// deadlines. In Redis they stay until a function of the library opens the key, and a zsetd
// shows none of them.
func (m *move) withoutDue(ctx context.Context, c redis.UniversalClient, at product, v archive.Value) (archive.Value, error) {
	s, ok := v.Value.(*zset.Set)
	if !ok || at.name == "zsetd" {
		return v, nil
	}
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	due, err := c.ZRangeByScore(ctx, archive.CompanionOf(v.Key), &redis.ZRangeBy{Min: "-inf", Max: "(" + now}).Result()
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

// living returns those of keys that have more than members past their deadlines.
func (m *move) living(ctx context.Context, c redis.UniversalClient, at product, keys []string) (list []string, err error) {
	if at.name == "zsetd" {
		return keys, nil
	}
	limits := keyspace.DefaultLimits()
	values, err := m.values(ctx, c, rdb.NewCodec(&limits), keys)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if v, err = m.withoutDue(ctx, c, at, v); err != nil {
			return nil, err
		}
		if v.Value != nil {
			list = append(list, v.Key)
		}
	}
	return list, nil
}

// sameCompanions returns those of the values of a zsetd whose members have not the same
// deadlines in their companions at the target.
func (m *move) sameCompanions(ctx context.Context, there redis.UniversalClient, codec *rdb.Codec, values []archive.Value) (different map[string]bool, err error) {
	if m.t.name == "zsetd" || m.sources[0].name != "zsetd" || !m.t.companions.Load() {
		return nil, nil
	}
	var sets []archive.Value
	var names []string
	for _, v := range values {
		if _, ok := v.Value.(*zset.Set); ok {
			sets, names = append(sets, v), append(names, archive.CompanionOf(v.Key))
		}
	}
	companions, err := dumps(ctx, there, codec, names)
	if err != nil {
		return nil, err
	}
	different = map[string]bool{}
	for i, v := range sets {
		deadlines, _ := companions[i].Value.(*zset.Set)
		want := v.Deadlines()
		for member := range v.Value.(*zset.Set).All() {
			a, b := scoreIn(want, member), scoreIn(deadlines, member)
			different[v.Key] = different[v.Key] || a != b
		}
	}
	return different, nil
}

// scoreIn returns the score of a member; 0 if the set, which may be nil, lacks it.
func scoreIn(s *zset.Set, member string) float64 {
	if s == nil {
		return 0
	}
	score, _ := s.Score(member)
	return score
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
		b = b.WithoutDeadlines() // see archive.foldCompanions
	}
	if archive.Same(a, b) {
		return true
	}
	// The stream of Redis and Valkey does not say how many entries a group has read.
	return (m.t.form() == rdb.Redis5 || m.sources[0].name != "zsetd") && archive.Same(a.Portable(), b.Portable())
}

// translates reports whether deadlines of members are in companions at one side only.
func (m *move) translates() bool { return (m.t.name == "zsetd") != (m.sources[0].name == "zsetd") }

// ordinary returns the keys of the source that the target has when the move is done.
func (m *move) ordinary(keys []string) []string {
	if m.translates() {
		return ordinary(keys)
	}
	return keys
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
	return have, err
}
