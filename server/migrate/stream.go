package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/peers/psync"
)

// applier turns the commands of one source's stream into calls of the target. They are
// collected, and applied when a batch of the stream ends.
type applier struct {
	t         *target
	source    int
	alone     bool // the source is the only one
	fromZsetd bool
	dbs       databases
	facts     map[string]*protocol.Command
	rows      map[string]streamRow
	journey   func() []any // arguments of HSET that store the progress

	changes *changes
	doubts  *doubts
	touched []keyAt // keys in units
	whole   bool    // units change whole databases

	// Held while commands are applied, and by who reads values for repairs.
	mu      sync.Mutex
	repairs []*repair // in the order of their instants

	repaired *atomic.Int64 // counts values

	units   map[int]*unit
	pending int   // bytes in units
	shift   int64 // from the offset of a command to that of its next part: see add
	at      position
	db      int
	multi   bool
}

// position is a place of the stream at which a replica can continue.
type position struct {
	id     string // of the stream
	offset int64
	db     int // that is selected there
}

// streamRow handles commands of a name.
type streamRow func(a *applier, ctx context.Context, offset int64, args [][]byte) error

// errRestart ends an attempt whose copy must start again.
var errRestart = errors.New("the copy must start again")

// maxPending is the size in bytes at which the beginning of a transaction is applied
// before its end has arrived.
const maxPending = 32 << 20

// streamRows are the commands that are not simply commands on keys.
func streamRows() map[string]streamRow {
	skip := func(*applier, context.Context, int64, [][]byte) error { return nil }
	return map[string]streamRow{
		"ping": (*applier).embedded, "replconf": skip, "publish": skip, "spublish": skip, "script": skip,
		"select": func(a *applier, _ context.Context, _ int64, args [][]byte) (err error) {
			if len(args) == 2 {
				a.db, err = strconv.Atoi(string(args[1]))
			}
			return err
		},
		"multi": func(a *applier, _ context.Context, _ int64, _ [][]byte) error {
			a.multi = true
			return nil
		},
		"exec": func(a *applier, _ context.Context, _ int64, _ [][]byte) error {
			a.multi = false
			return nil
		},
		"flushall": (*applier).flushDatabases, "flushdb": (*applier).flushDatabases,
		"swapdb": (*applier).swapDatabases, "move": (*applier).moveKey,
		"function": (*applier).function,
		"restore-asking": func(a *applier, ctx context.Context, offset int64, args [][]byte) error {
			args[0] = []byte("RESTORE")
			return a.keyed(ctx, offset, args)
		},
	}
}

// splitRows are the commands with keys in several slots that are not expressed by
// copies of the keys that they read.
func splitRows() map[string]streamRow {
	return map[string]streamRow{
		"del": (*applier).splitKeys, "unlink": (*applier).splitKeys, "touch": (*applier).splitKeys,
		"mset": (*applier).splitPairs, "msetnx": (*applier).splitPairs, "msetex": (*applier).splitTimed,
		"rename": (*applier).rename, "renamenx": (*applier).rename, "copy": (*applier).copyKey,
		"smove": (*applier).moveMember,
		"lmove": (*applier).moveElement, "rpoplpush": (*applier).moveElement,
	}
}

// apply applies a batch of the stream, whose commands end at an offset that sizes lead
// to from the beginning of the batch.
func (a *applier) apply(ctx context.Context, batch *psync.Batch, offset int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, args := range batch.Commands {
		if !a.multi {
			if err := a.repairAt(ctx, offset); err != nil {
				return err
			}
		}
		if len(args) > 0 {
			a.shift = 0
			if err := a.command(ctx, offset+1, args); err != nil {
				return err
			}
		}
		offset += int64(batch.Sizes[i])
		if !a.multi {
			a.at.offset, a.at.db = offset, a.db
		}
	}
	if a.multi && a.pending < maxPending {
		for _, u := range a.units {
			u.keep() // the batch is not valid any more when the rest arrives
		}
		return nil
	}
	if err := a.flush(ctx); err != nil || a.multi {
		return err
	}
	return a.repairAt(ctx, offset)
}

// keep copies the arguments that are not copied yet.
func (u *unit) keep() {
	for _, list := range []struct {
		args []any
		kept *int
	}{{u.commands, &u.keptCommands}, {u.keys, &u.keptKeys}} {
		for i := *list.kept; i < len(list.args); i++ {
			if b, ok := list.args[i].([]byte); ok {
				list.args[i] = bytes.Clone(b)
			}
		}
		*list.kept = len(list.args)
	}
}

// flush applies what is collected.
func (a *applier) flush(ctx context.Context) error {
	units := make([]*unit, 0, len(a.units))
	for _, u := range a.units {
		units = append(units, u)
	}
	clear(a.units)
	a.pending = 0
	touched, whole := a.touched, a.whole
	a.touched, a.whole = nil, false
	if err := a.t.apply(ctx, units); err != nil {
		return err
	}
	for _, u := range units {
		a.doubts.learn(u, touched)
	}
	a.changes.add(touched, whole)
	return nil
}

// command handles a command, whose first byte is at an offset.
func (a *applier) command(ctx context.Context, offset int64, args [][]byte) error {
	if row := a.rows[strings.ToLower(string(args[0]))]; row != nil {
		return row(a, ctx, offset, args)
	}
	return a.keyed(ctx, offset, args)
}

// keyed handles a command on keys.
func (a *applier) keyed(ctx context.Context, offset int64, args [][]byte) error {
	db, moves, err := a.database()
	if !moves || err != nil {
		return err
	}
	refs := a.keysOf(args)
	if len(refs) == 0 {
		return fmt.Errorf("the stream has the command %.60q, which is unknown or has no key", args[0])
	}
	if isState(string(args[refs[0].Index])) {
		return nil
	}
	home := a.t.unitOf(a.source, args[refs[0].Index])
	keys := make([][]byte, len(refs))
	for i, r := range refs {
		keys[i] = args[r.Index]
		if a.t.unitOf(a.source, keys[i]) == home {
			continue
		}
		if row := splitRows()[strings.ToLower(string(args[0]))]; row != nil {
			return row(a, ctx, offset, args)
		}
		return a.gather(ctx, offset, args, refs)
	}
	if err := a.add(ctx, a.checkOf(args, refs), home, offset, db, keys, words(args)...); err != nil {
		return err
	}
	switch {
	case a.fromZsetd && a.t.name != "zsetd":
		return a.withCompanion(ctx, offset, db, args)
	case !a.fromZsetd && bytes.HasPrefix(keys[0], []byte(archive.CompanionPrefix)):
		if err := a.t.useCompanions(ctx); err != nil || a.t.name != "zsetd" {
			return err
		}
		return a.ownDeadlines(ctx, offset, db, args)
	}
	return nil
}

// checkOf returns what a command must find: the keys whose values it reads or changes, and what
// has a deadline of its own in them.
func (a *applier) checkOf(args [][]byte, refs []protocol.KeyRef) string {
	var check []byte
	for _, r := range refs {
		if r.Flags.Has(protocol.KeyRO | protocol.KeyRW) {
			if len(check) > 0 {
				check = append(check, ' ')
			}
			check = strconv.AppendInt(check, int64(r.Index), 10)
		}
	}
	members := !a.fromZsetd && a.t.name == "zsetd" && a.t.companions.Load()
	switch strings.ToUpper(string(args[0])) {
	case "HPEXPIREAT", "HPERSIST", "HSETEX", "ZPEXPIREAT", "ZPERSIST":
		check = append(check, checkReply)
	case "HINCRBY":
		check = append(check, checkField)
	case "ZINCRBY":
		if members {
			check = append(check, checkMember)
		}
	case "ZADD":
		if _, score := protocol.ParseFloat(args[min(2, len(args)-1)]); members && !score {
			check = append(check, checkDoubt)
		}
	}
	return string(check)
}

// keysOf returns the keys of a command.
func (a *applier) keysOf(args [][]byte) []protocol.KeyRef {
	name := strings.ToLower(string(args[0]))
	c := a.facts[name]
	if c == nil {
		return nil
	}
	if len(args) > 1 {
		for _, sub := range c.Subcommands() {
			if protocol.EqualFold(args[1], strings.ToUpper(sub.Name[len(name)+1:])) {
				c = sub
			}
		}
	}
	return c.AppendKeys(nil, args)
}

// database returns the target's database for the commands of the stream; moves is false
// if the one that is selected is not moved.
func (a *applier) database() (db int, moves bool, err error) {
	db, moves = a.dbs.of(a.db)
	if moves && db != 0 && a.t.tags != nil {
		return 0, false, noDatabase(a.db)
	}
	return db, moves, nil
}

// noDatabase is the error of data that a cluster has no database for.
func noDatabase(db int) error {
	return fmt.Errorf("the source has keys in database %d: a cluster has only database 0; move one database with redis://host/%d", db, db)
}

// words returns arguments of a call.
func words(args [][]byte) []any {
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	return list
}

func (a *applier) unit(n int) *unit {
	u := a.units[n]
	if u == nil {
		u = newUnit(a.t.unitKey(n))
		a.units[n] = u
	}
	return u
}

// put adds a command that fits a script to a unit.
func (a *applier) put(check string, n int, offset int64, db int, keys [][]byte, args ...any) {
	touched := a.touch(db, keys, args)
	u := a.unit(n)
	before := u.bytes
	u.addChecked(touched, check, offset+a.shift, db, keys, args...)
	a.pending += u.bytes - before
}

// add adds a command of any length to a unit. One that does not fit a script is applied alone. What
// the same command of the stream has before it, or after it, is applied by other calls, so it has
// other offsets; those of a command's bytes are enough.
func (a *applier) add(ctx context.Context, check string, n int, offset int64, db int, keys [][]byte, args ...any) error {
	if len(args) <= maxScriptArgs {
		a.put(check, n, offset, db, keys, args...)
		return nil
	}
	touched := a.touch(db, keys, args)
	if check != "" {
		a.doubts.add(a.touched[touched.first:touched.end])
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	a.shift += 2
	return a.t.applyLarge(ctx, a.t.unitKey(n), offset+a.shift-1, db, args)
}

// touch records the keys of a command.
func (a *applier) touch(db int, keys [][]byte, args []any) span {
	touched := span{first: len(a.touched), removes: isRemoval(args)}
	for _, k := range keys {
		a.touched = append(a.touched, keyAt{db, string(k)})
	}
	touched.end = len(a.touched)
	return touched
}

// isRemoval reports whether a command only deletes keys.
func isRemoval(args []any) bool {
	name, _ := args[0].([]byte)
	return protocol.EqualFold(name, "DEL") || protocol.EqualFold(name, "UNLINK")
}

// doubt records that keys may have wrong values: the target lacks what a command has found at
// the source.
func (a *applier) doubt(keys ...[]byte) {
	list := make([]keyAt, len(keys))
	for i, k := range keys {
		list[i] = keyAt{0, string(k)}
	}
	a.doubts.add(list)
}

// flushDatabases handles FLUSHALL and FLUSHDB. A cluster has no command that empties
// it at one instant; the source is empty, too, so that to start again costs little.
func (a *applier) flushDatabases(ctx context.Context, offset int64, args [][]byte) error {
	all := protocol.EqualFold(args[0], "FLUSHALL")
	db, moves := a.dbs.of(a.db)
	if all && a.dbs.from != anyDatabase {
		db, moves = a.dbs.of(a.dbs.from)
		args = [][]byte{[]byte("FLUSHDB")}
	}
	if !moves {
		return nil
	}
	if a.t.tags != nil || !a.alone {
		return fmt.Errorf("%w: %s at the source", errRestart, bytes.ToUpper(args[0]))
	}
	a.whole = true
	u := a.unit(a.source)
	u.add(offset, db, nil, words(args)...)
	u.add(offset, 0, nil, a.journey()...)
	return nil
}

func (a *applier) swapDatabases(ctx context.Context, offset int64, args [][]byte) error {
	if a.dbs.from != anyDatabase || !a.alone {
		return errors.New("the source has swapped databases (SWAPDB), which cannot be moved if a database is chosen")
	}
	a.whole = true
	a.doubts.all()
	u := a.unit(a.source)
	u.add(offset, 0, nil, "DEL", u.key, progressKey)
	u.add(offset, 0, nil, words(args)...)
	u.add(offset, 0, nil, a.journey()...)
	return nil
}

func (a *applier) moveKey(ctx context.Context, offset int64, args [][]byte) error {
	if a.t.tags != nil || a.dbs.from != anyDatabase {
		return errors.New("the source has moved a key to another database (MOVE), which this target does not have")
	}
	return a.keyed(ctx, offset, args)
}

// function handles changes of libraries, which every primary has.
func (a *applier) function(ctx context.Context, _ int64, args [][]byte) error {
	if err := a.flush(ctx); err != nil || len(args) < 2 {
		return err
	}
	call := words(args)
	if protocol.EqualFold(args[1], "LOAD") {
		call = []any{"FUNCTION", "LOAD", "REPLACE", args[len(args)-1]}
	}
	if protocol.EqualFold(args[1], "RESTORE") && len(args) == 3 {
		call = append(call, "REPLACE")
	}
	return a.t.retry(ctx, func() error {
		return a.t.each(ctx, func(ctx context.Context, c *redis.Client) error {
			err := c.Do(ctx, call...).Err()
			if err != nil && protocol.EqualFold(args[1], "DELETE") && strings.Contains(err.Error(), "not found") {
				return nil
			}
			return err
		})
	})
}

func (a *applier) splitKeys(_ context.Context, offset int64, args [][]byte) error {
	for _, key := range args[1:] {
		a.put("", a.t.unitOf(a.source, key), offset, 0, [][]byte{key}, args[0], key)
	}
	return nil
}

// splitPairs divides MSET, and MSETNX, which is in the stream only where it has set all
// keys.
func (a *applier) splitPairs(_ context.Context, offset int64, args [][]byte) error {
	for i := 1; i+1 < len(args); i += 2 {
		a.put("", a.t.unitOf(a.source, args[i]), offset, 0, [][]byte{args[i]}, "SET", args[i], args[i+1])
	}
	return nil
}

// splitTimed divides MSETEX. It is in the stream only where its condition, NX or XX, was true.
func (a *applier) splitTimed(_ context.Context, offset int64, args [][]byte) error {
	n, err := strconv.Atoi(string(args[1]))
	if err != nil || n < 1 || n > (len(args)-2)/2 {
		return fmt.Errorf("the stream has a malformed %s", args[0])
	}
	pairs, options := args[2:2+2*n], args[2+2*n:]
	options = slices.DeleteFunc(slices.Clone(options), func(w []byte) bool {
		return protocol.EqualFold(w, "NX") || protocol.EqualFold(w, "XX")
	})
	for i := 0; i < len(pairs); i += 2 {
		set := append([]any{"SET", pairs[i], pairs[i+1]}, words(options)...)
		a.put("", a.t.unitOf(a.source, pairs[i]), offset, 0, pairs[i:i+1], set...)
	}
	return nil
}

// dump returns the value of a key of the target as of this point of the stream, and its
// deadline; nil if it does not exist.
func (a *applier) dump(ctx context.Context, key []byte) (payload []byte, deadline int64, err error) {
	if err := a.flush(ctx); err != nil {
		return nil, 0, err
	}
	err = a.t.retry(ctx, func() error {
		p := a.t.rdb.Pipeline()
		dump := p.Dump(ctx, string(key))
		var at, left *redis.DurationCmd
		if a.t.major >= 7 {
			at = p.PExpireTime(ctx, string(key))
		} else {
			left = p.PTTL(ctx, string(key))
		}
		_, err := p.Exec(ctx)
		if errors.Is(err, redis.Nil) {
			payload, deadline = nil, 0
			return nil
		}
		switch payload, deadline = []byte(dump.Val()), 0; {
		case at != nil && at.Val() > 0:
			deadline = at.Val().Milliseconds()
		case left != nil && left.Val() > 0:
			deadline = time.Now().Add(left.Val()).UnixMilli()
		}
		return err
	})
	return payload, deadline, err
}

// restore adds the commands that give a key a value of dump.
func (a *applier) restore(offset int64, key, payload []byte, deadline int64) {
	n, keys := a.t.unitOf(a.source, key), [][]byte{key}
	if payload == nil {
		a.put("", n, offset, 0, keys, "DEL", key)
		return
	}
	a.put("", n, offset, 0, keys, "RESTORE", key, deadline, payload, "REPLACE", "ABSTTL")
}

// rename gives the second key the value of the first one, and then deletes that. If
// this is repeated, the part that was done already is skipped.
func (a *applier) rename(ctx context.Context, offset int64, args [][]byte) error {
	if err := a.copyKey(ctx, offset, args); err != nil {
		return err
	}
	a.put("", a.t.unitOf(a.source, args[1]), offset, 0, args[1:2], "DEL", args[1])
	return nil
}

func (a *applier) copyKey(ctx context.Context, offset int64, args [][]byte) error {
	payload, deadline, err := a.dump(ctx, args[1])
	if err != nil {
		return err
	}
	if payload == nil {
		a.doubt(args[1], args[2])
	}
	a.restore(offset, args[2], payload, deadline)
	return a.flush(ctx) // before the first key changes again
}

func (a *applier) moveMember(_ context.Context, offset int64, args [][]byte) error {
	a.put("1", a.t.unitOf(a.source, args[2]), offset, 0, args[2:3], "SADD", args[2], args[3])
	a.put("1", a.t.unitOf(a.source, args[1]), offset, 0, args[1:2], "SREM", args[1], args[3])
	return nil
}

// moveElement handles LMOVE and RPOPLPUSH: the element is added, and then removed.
func (a *applier) moveElement(ctx context.Context, offset int64, args [][]byte) error {
	index, pop, push := int64(-1), "RPOP", "LPUSH"
	if len(args) == 5 {
		if protocol.EqualFold(args[3], "LEFT") {
			index, pop = 0, "LPOP"
		}
		if protocol.EqualFold(args[4], "RIGHT") {
			push = "RPUSH"
		}
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	var element string
	err := a.t.retry(ctx, func() (err error) {
		element, err = a.t.rdb.LIndex(ctx, string(args[1]), index).Result()
		return err
	})
	if errors.Is(err, redis.Nil) {
		a.doubt(args[1], args[2])
		return nil
	}
	if err != nil {
		return err
	}
	a.put("1", a.t.unitOf(a.source, args[2]), offset, 0, args[2:3], push, args[2], element)
	if err := a.flush(ctx); err != nil {
		return err
	}
	a.put("", a.t.unitOf(a.source, args[1]), offset, 0, args[1:2], pop, args[1])
	return nil
}

// gather runs a command that writes one key with copies of those of other slots that it
// reads. The copies exist only within the script.
func (a *applier) gather(ctx context.Context, offset int64, args [][]byte, refs []protocol.KeyRef) error {
	home := -1
	for _, r := range refs {
		if !r.Flags.Has(protocol.KeyOW | protocol.KeyRW | protocol.KeyRM) {
			continue
		}
		n := a.t.unitOf(a.source, args[r.Index])
		if home >= 0 && home != n {
			return fmt.Errorf("the command %s writes keys of several slots, which a cluster cannot do: %.100q", args[0], args[r.Index])
		}
		home = n
	}
	if home < 0 {
		return nil // it changes nothing
	}
	check := a.checkOf(args, refs)
	args = append([][]byte(nil), args...)
	type copied struct{ name, payload []byte }
	var copies []copied
	var keys [][]byte
	for _, r := range refs {
		key := args[r.Index]
		if a.t.unitOf(a.source, key) == home {
			keys = append(keys, key)
			continue
		}
		payload, _, err := a.dump(ctx, key)
		if err != nil {
			return err
		}
		name := fmt.Appendf(nil, "%s%d:{%s}", StatePrefix, len(copies), a.t.tags[home])
		args[r.Index] = name
		keys = append(keys, name)
		copies = append(copies, copied{name, payload})
	}
	for _, c := range copies {
		if c.payload == nil {
			continue // a key that does not exist
		}
		a.put("", home, offset, 0, [][]byte{c.name}, "RESTORE", c.name, 0, c.payload, "REPLACE")
	}
	if err := a.add(ctx, check, home, offset, 0, keys, words(args)...); err != nil {
		return err
	}
	for _, c := range copies {
		a.put("", home, offset, 0, [][]byte{c.name}, "DEL", c.name)
	}
	return a.flush(ctx)
}

// back returns the database of the source whose keys are in one of the target.
func (d databases) back(to int) int {
	if d.from == anyDatabase {
		return to
	}
	return d.from
}

// databases are the databases that move: all to those of the same numbers, or one.
type databases struct{ from, to int }

// of returns the target of a database of the source, and whether it moves.
func (d databases) of(db int) (to int, moves bool) {
	switch {
	case d.from == anyDatabase:
		return db, true
	case d.from != db:
		return 0, false
	case d.to == anyDatabase:
		return db, true
	}
	return d.to, true
}
