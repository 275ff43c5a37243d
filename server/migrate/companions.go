package migrate

import (
	"bytes"
	"context"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/archive"
)

// Deadlines of members at a server that has none: they are the scores of another sorted set,
// the companion, which the library of "zsetd functions" reads. See package archive for its
// name.

// embeddedPrefix begins an argument of PING that contains commands for zsetd, in the encoding
// of the stream: deadlines of members and fields, and what Redis before 8.6 does not know.
const embeddedPrefix = "zsetd:"

// embedded handles PING.
func (a *applier) embedded(ctx context.Context, offset int64, args [][]byte) error {
	if len(args) != 2 {
		return nil
	}
	commands, ok := bytes.CutPrefix(args[1], []byte(embeddedPrefix))
	if !ok {
		return nil
	}
	return eachCommand(newReader(), commands, func(args [][]byte) error { return a.onlyZsetd(ctx, offset, args) })
}

// onlyZsetd handles a command that zsetd has, as far as the target supports what it does.
func (a *applier) onlyZsetd(ctx context.Context, offset int64, args [][]byte) error {
	db, moves, err := a.database()
	if !moves || err != nil {
		return err
	}
	if a.t.name == "zsetd" || len(args) < 5 {
		return a.keyed(ctx, offset, args)
	}
	switch string(args[0]) {
	case "HPEXPIREAT", "HPERSIST":
		if !a.t.form().FieldDeadlines() {
			return nil
		}
	case "XCFGSET", "XIDMPRECORD":
		if a.t.name != "redis" || a.t.major < 8 || a.t.major == 8 && a.t.minor < 6 {
			return nil
		}
	case "ZPEXPIREAT": // key at MEMBERS n member ...
		if err := a.t.useCompanions(ctx); err != nil {
			return err
		}
		words := []any{"ZADD", nil}
		for _, member := range args[5:] {
			words = append(words, args[2], member)
		}
		return a.companion(ctx, offset, db, args[1], words)
	case "ZPERSIST": // key MEMBERS n member ...
		return a.forget(ctx, offset, db, args[1], args[4:])
	}
	return a.keyed(ctx, offset, args)
}

// companion adds a command on the companion of a key, whose name is the second word.
func (a *applier) companion(ctx context.Context, offset int64, db int, key []byte, words []any) error {
	name := []byte(archive.CompanionOf(string(key)))
	words[1] = name
	return a.add(ctx, "", a.t.unitOf(a.source, name), offset, db, [][]byte{name}, words...)
}

// forget removes the deadlines of members.
func (a *applier) forget(ctx context.Context, offset int64, db int, key []byte, members [][]byte) error {
	if !a.t.companions.Load() {
		return nil
	}
	return a.companion(ctx, offset, db, key, append([]any{"ZREM", nil}, words(members)...))
}

// withCompanion adds what a command of the source does to companions: in zsetd a member that is
// added again, or removed, has no deadline, and a sorted set that is replaced or deleted has
// none.
func (a *applier) withCompanion(ctx context.Context, offset int64, db int, args [][]byte) error {
	if !a.t.companions.Load() || len(args) < 2 {
		return nil
	}
	switch strings.ToLower(string(args[0])) {
	case "zadd": // key score member ...
		var members [][]byte
		for i := 3; i < len(args); i += 2 {
			members = append(members, args[i])
		}
		return a.forget(ctx, offset, db, args[1], members)
	case "zrem":
		return a.forget(ctx, offset, db, args[1], args[2:])
	case "set", "del":
		return a.companion(ctx, offset, db, args[1], []any{"DEL", nil})
	}
	return nil
}

// ownDeadlines adds to a command on a companion, for a zsetd, what it does to the deadlines
// of the owner's members. Commands that the library does not use wait for foldKeys.
func (a *applier) ownDeadlines(ctx context.Context, offset int64, db int, args [][]byte) error {
	owner, ok := archive.OwnerOf(string(args[1]))
	if !ok || len(args) < 3 {
		return nil
	}
	key := []byte(owner)
	n := a.t.unitOf(a.source, key)
	switch strings.ToLower(string(args[0])) {
	case "zadd":
		for i := 2; i+1 < len(args); i += 2 {
			at, ok := protocol.ParseFloat(args[i])
			if !ok || !isDeadline(at) {
				return nil
			}
			a.put("1"+string(checkReply), n, offset, db, [][]byte{key}, "ZPEXPIREAT", key, int64(at), "MEMBERS", 1, args[i+1])
		}
	case "zrem":
		// The members may have expired, or have been removed with their deadlines.
		list := append([]any{"ZPERSIST", key, "MEMBERS", len(args) - 2}, words(args[2:])...)
		return a.add(ctx, "1"+string(checkReply), n, offset, db, [][]byte{key}, list...)
	}
	return nil
}

func isDeadline(score float64) bool { return score >= 1 && score == math.Trunc(score) && score < 1<<46 }

// useCompanions records that the target may have companions, before it has one.
func (t *target) useCompanions(ctx context.Context) error {
	if t.companions.Load() {
		return nil
	}
	if err := t.retry(ctx, func() error { return t.rdb.HSet(ctx, progressKey, fieldCompanions, "1").Err() }); err != nil {
		return err
	}
	t.companions.Store(true)
	return nil
}

// foldScript gives the members of a key the deadlines that its companion has, and no others.
const foldScript = `
local chunk = 1000
for i = 0, redis.call('ZCARD', KEYS[1]) - 1, chunk do
  local members = redis.call('ZRANGE', KEYS[1], i, i + chunk - 1)
  redis.call('ZPERSIST', KEYS[1], 'MEMBERS', #members, unpack(members))
end
for i = 0, redis.call('ZCARD', KEYS[2]) - 1, chunk do
  local list = redis.call('ZRANGE', KEYS[2], i, i + chunk - 1, 'WITHSCORES')
  for j = 1, #list, 2 do
    local at = tonumber(list[j + 1])
    if at >= 1 and at < 2 ^ 46 and at == math.floor(at) then
      redis.call('ZPEXPIREAT', KEYS[1], string.format('%.0f', at), 'MEMBERS', 1, list[j])
    end
  end
end
`

// folds reports whether companions become deadlines: at a zsetd whose source is none.
func (m *move) folds() bool {
	return m.t.name == "zsetd" && m.t.companions.Load() && (len(m.sources) == 0 || m.sources[0].name != "zsetd")
}

// foldAll gives all members at zsetd the deadlines in companions. These stay until
// dropCompanions: the stream may change them.
func (m *move) foldAll(ctx context.Context) error {
	return m.eachCompanion(ctx, func(c redis.UniversalClient, names []string) error {
		for _, name := range names {
			if owner, ok := archive.OwnerOf(name); ok {
				if err := fold(ctx, c, owner, name); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// owners returns the keys, with the owners of companions instead of these.
func owners(set map[keyAt]struct{}) map[keyAt]struct{} {
	list := make(map[keyAt]struct{}, len(set))
	for k := range set {
		if owner, ok := archive.OwnerOf(k.key); ok {
			k.key = owner
		}
		list[k] = struct{}{}
	}
	return list
}

// foldKeys gives the members of some keys, named by themselves or by their companions, the deadlines
// in these companions.
func (m *move) foldKeys(ctx context.Context, set map[keyAt]struct{}) error {
	if !m.folds() {
		return nil
	}
	byDB := map[int][]string{}
	for k := range owners(set) {
		byDB[k.db] = append(byDB[k.db], k.key)
	}
	for db, keys := range byDB {
		c := m.t.client(db)
		names := make([]string, len(keys))
		for i, k := range keys {
			names[i] = archive.CompanionOf(k)
		}
		have, err := exist(ctx, c, names)
		if err != nil {
			return err
		}
		for i, k := range keys {
			if have[i] {
				if err := fold(ctx, c, k, names[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func fold(ctx context.Context, c redis.UniversalClient, owner, name string) error {
	err := c.Eval(ctx, foldScript, []string{owner, name}).Err()
	if err == redis.Nil || err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
		return nil // the owner, or what has the name of a companion, is no sorted set
	}
	return err
}

// dropCompanions deletes the companions, whose deadlines the members have.
func (m *move) dropCompanions(ctx context.Context) error {
	return m.eachCompanion(ctx, func(c redis.UniversalClient, names []string) error {
		for _, name := range names {
			if _, ok := archive.OwnerOf(name); !ok {
				continue
			}
			if err := c.Unlink(ctx, name).Err(); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachCompanion calls f with the names of companions in each database of the target.
func (m *move) eachCompanion(ctx context.Context, f func(c redis.UniversalClient, names []string) error) error {
	return m.eachTargetDatabase(ctx, func(c *redis.Client, db int) error {
		return scan(ctx, c, archive.CompanionPrefix+"*", "zset", func(names []string) error { return f(m.t.client(db), names) })
	})
}

// deadlineCommands returns the commands that give a value that is at the target, without
// deadlines of members or fields, those that it has.
func (t *target) deadlineCommands(v archive.Value) (list [][]any, err error) {
	var b bytes.Buffer
	if err := archive.NewCommandWriter(&b, t.form()).WriteDeadlines(v, time.UnixMilli(0)); err != nil {
		return nil, err
	}
	err = eachCommand(newReader(), b.Bytes(), func(args [][]byte) error {
		list = append(list, words(args))
		return nil
	})
	return list, err
}
