package data

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// KeyCommands returns the rows of the generic commands on keys.
func KeyCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "copy", Arity: -3, Databases: protocol.OptionDatabases, Flags: "write denyoom", Keys: "1 RO access; 2 OW update",
			Group: "generic", Since: "6.2.0",
			Complexity: "O(1) with copy-on-write; O(N) for a small value of N bytes",
			Summary:    "Copy the value and the deadline of a key to another key",
			Syntax:     "source destination [DB destination-db] [REPLACE]",
		}, Run: copyCommand, OtherDatabases: true},
		{Facts: protocol.Facts{
			Name: "del", Arity: -2, Flags: "write", Keys: "1..-1 RM delete",
			Group: "generic", Since: "1.0.0", Tips: "request_policy:multi_shard response_policy:agg_sum",
			Complexity: "O(K), K keys given; O(log N) for one with a deadline, N keys that have one",
			Summary:    "Delete keys with their values",
			Syntax:     "key [key ...]",
		}, Run: del},
		{Facts: protocol.Facts{
			Name: "exists", Arity: -2, Flags: "readonly fast", Keys: "1..-1 RO",
			Group: "generic", Since: "1.0.0", Tips: "request_policy:multi_shard response_policy:agg_sum",
			Complexity: "O(K), K keys given",
			Summary:    "Number of the given keys that exist, repetitions counted",
			Syntax:     "key [key ...]",
			History:    []string{"3.0.3 Several keys"},
		}, Run: exists},
		{Facts: protocol.Facts{
			Name: "expire", Arity: -3, Flags: "write fast", Keys: "1 RW update",
			Group: "generic", Since: "1.0.0", Complexity: "O(log N), N keys with a deadline",
			Summary: "Give a key a time to live in seconds",
			Syntax:  "key seconds condition:[NX|XX|GT|LT]@7.0.0",
			History: []string{"7.0.0 `NX`, `XX`, `GT`, `LT`"},
		}, Run: expire},
		{Facts: protocol.Facts{
			Name: "expireat", Arity: -3, Flags: "write fast", Keys: "1 RW update",
			Group: "generic", Since: "1.2.0", Complexity: "O(log N), N keys with a deadline",
			Summary: "Give a key a deadline, a Unix time in seconds",
			Syntax:  "key unix-time-seconds condition:[NX|XX|GT|LT]@7.0.0",
			History: []string{"7.0.0 `NX`, `XX`, `GT`, `LT`"},
		}, Run: expireat},
		{Facts: protocol.Facts{
			Name: "expiretime", Arity: 2, Flags: "readonly fast", Keys: "1 RO access",
			Group: "generic", Since: "7.0.0", Complexity: "O(1)",
			Summary: "Deadline of a key, a Unix time in seconds",
			Syntax:  "key",
		}, Run: expiretime},
		{Facts: protocol.Facts{
			Name: "keys", Arity: 2, Flags: "readonly",
			Group: "generic", Since: "1.0.0", Categories: "keyspace dangerous", Tips: "request_policy:all_shards nondeterministic_output_order",
			Complexity: "O(N), N keys of the database",
			Summary:    "All keys that match a pattern",
			Syntax:     "pattern",
		}, Run: keys},
		{Facts: protocol.Facts{
			Name: "move", Arity: 3, Databases: protocol.SecondDatabase, Flags: "write fast", Keys: "1 RW access update",
			Group: "generic", Since: "1.0.0", Complexity: "O(log N), N keys with a deadline",
			Summary: "Move a key to the database db, where it must be absent",
			Syntax:  "key db",
		}, Run: move, Batching: engine.BatchNever, OtherDatabases: true},
		{Facts: protocol.Facts{
			Name: "persist", Arity: 2, Flags: "write fast", Keys: "1 RW update",
			Group: "generic", Since: "2.2.0", Complexity: "O(log N), N keys with a deadline",
			Summary: "Remove the deadline of a key",
			Syntax:  "key",
		}, Run: persist},
		{Facts: protocol.Facts{
			Name: "pexpire", Arity: -3, Flags: "write fast", Keys: "1 RW update",
			Group: "generic", Since: "2.6.0", Complexity: "O(log N), N keys with a deadline",
			Summary: "Give a key a time to live in milliseconds",
			Syntax:  "key milliseconds condition:[NX|XX|GT|LT]@7.0.0",
			History: []string{"7.0.0 `NX`, `XX`, `GT`, `LT`"},
		}, Run: pexpire},
		{Facts: protocol.Facts{
			Name: "pexpireat", Arity: -3, Flags: "write fast", Keys: "1 RW update",
			Group: "generic", Since: "2.6.0", Complexity: "O(log N), N keys with a deadline",
			Summary: "Give a key a deadline, a Unix time in milliseconds",
			Syntax:  "key unix-time-milliseconds condition:[NX|XX|GT|LT]@7.0.0",
			History: []string{"7.0.0 `NX`, `XX`, `GT`, `LT`"},
		}, Run: pexpireat},
		{Facts: protocol.Facts{
			Name: "pexpiretime", Arity: 2, Flags: "readonly fast", Keys: "1 RO access",
			Group: "generic", Since: "7.0.0", Complexity: "O(1)",
			Summary: "Deadline of a key, a Unix time in milliseconds",
			Syntax:  "key",
		}, Run: pexpiretime},
		{Facts: protocol.Facts{
			Name: "pttl", Arity: 2, Flags: "readonly fast", Keys: "1 RO access",
			Group: "generic", Since: "2.6.0", Tips: "nondeterministic_output", Complexity: "O(1)",
			Summary: "Milliseconds until a key expires",
			Syntax:  "key",
			History: []string{"2.8.0 -2 for a key that does not exist"},
		}, Run: pttl},
		{Facts: protocol.Facts{
			Name: "randomkey", Arity: 1, Flags: "readonly",
			Group: "generic", Since: "1.0.0", Tips: "request_policy:all_shards response_policy:special nondeterministic_output", Complexity: "O(1)",
			Summary: "Choose a random key of the database",
		}, Run: randomkey, AnyKey: true},
		{Facts: protocol.Facts{
			Name: "rename", Arity: 3, Flags: "write", Keys: "1 RW access delete; 2 OW update",
			Group: "generic", Since: "1.0.0", Complexity: "O(log N), N keys with a deadline",
			Summary: "Give a key another name, and replace the key that has it",
			Syntax:  "key newkey",
		}, Run: rename},
		{Facts: protocol.Facts{
			Name: "renamenx", Arity: 3, Flags: "write fast", Keys: "1 RW access delete; 2 OW insert",
			Group: "generic", Since: "1.0.0", Complexity: "O(log N), N keys with a deadline",
			Summary: "Give a key another name, if no key has it",
			Syntax:  "key newkey",
			History: []string{"3.2.0 Equal names are no error"},
		}, Run: renamenx},
		{Facts: protocol.Facts{
			Name: "clusterscan", Arity: -2, Flags: "readonly", Keys: "1 not_key",
			Group: "cluster", Since: "9.1.0", Tips: "nondeterministic_output request_policy:special response_policy:special",
			Complexity: "O(C), C is COUNT; O(N) for a whole iteration, N keys of the node",
			Summary:    "Iterate over the keys of a cluster in steps of about COUNT",
			Syntax:     "cursor:string [MATCH match-pattern:pattern] [COUNT count] [TYPE type] [SLOT slot]",
		}, Run: clusterscan},
		{Facts: protocol.Facts{
			Name: "scan", Arity: -2, Flags: "readonly",
			Group: "generic", Since: "2.8.0", Tips: "nondeterministic_output request_policy:special response_policy:special",
			Complexity: "O(C), C is COUNT; O(N) for a whole iteration, N keys of the database",
			Summary:    "Iterate over the keys of the database in steps of about COUNT",
			Syntax:     "cursor [MATCH pattern] [COUNT count] [TYPE type@6.0.0]",
			History:    []string{"6.0.0 `TYPE`"},
		}, Run: scan},
		{Facts: protocol.Facts{
			Name: "touch", Arity: -2, Flags: "readonly fast", Keys: "1..-1 RO",
			Group: "generic", Since: "3.2.1", Tips: "request_policy:multi_shard response_policy:agg_sum",
			Complexity: "O(K), K keys given",
			Summary:    "Update the access times of keys, and reply how many there are",
			Syntax:     "key [key ...]",
		}, Run: touch, Batching: engine.BatchNever, Touches: true},
		{Facts: protocol.Facts{
			Name: "ttl", Arity: 2, Flags: "readonly fast", Keys: "1 RO access",
			Group: "generic", Since: "1.0.0", Tips: "nondeterministic_output", Complexity: "O(1)",
			Summary: "Seconds until a key expires",
			Syntax:  "key",
			History: []string{"2.8.0 -2 for a key that does not exist"},
		}, Run: ttl},
		{Facts: protocol.Facts{
			Name: "type", Arity: 2, Flags: "readonly fast", Keys: "1 RO",
			Group: "generic", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Type of the value of a key",
			Syntax:  "key",
		}, Run: typeCommand},
		{Facts: protocol.Facts{
			Name: "unlink", Arity: -2, Flags: "write fast", Keys: "1..-1 RM delete",
			Group: "generic", Since: "4.0.0", Tips: "request_policy:multi_shard response_policy:agg_sum",
			Complexity: "O(K), K keys given; O(log N) for one with a deadline, N keys that have one",
			Summary:    "As DEL; large values are garbage collected soon",
			Syntax:     "key [key ...]",
		}, Run: unlink},
		{Facts: protocol.Facts{
			Name: "dbsize", Arity: 1, Flags: "readonly fast",
			Group: "server", Since: "1.0.0", Categories: "keyspace", Tips: "request_policy:all_shards response_policy:agg_sum",
			Complexity: "O(1); O(log N) if any of N keys has a deadline",
			Summary:    "Number of keys of the database",
		}, Run: dbsize},
		{Facts: protocol.Facts{
			Name: "flushall", Arity: -1, Databases: protocol.AllDatabases, Flags: "write",
			Group: "server", Since: "1.0.0", Categories: "keyspace dangerous", Tips: "request_policy:all_shards response_policy:all_succeeded",
			Complexity: "O(D*W), D databases, W keys that clients watch or wait for; the memory is garbage collected",
			Summary:    "Delete the keys of all databases",
			Syntax:     "flush-type:[ASYNC@4.0.0|SYNC@6.2.0]",
			History: []string{
				"4.0.0 `ASYNC`",
				"6.2.0 `SYNC`",
			},
		}, Run: flushall},
		{Facts: protocol.Facts{
			Name: "flushdb", Arity: -1, Flags: "write",
			Group: "server", Since: "1.0.0", Categories: "keyspace dangerous", Tips: "request_policy:all_shards response_policy:all_succeeded",
			Complexity: "O(W), W keys that clients watch or wait for; the memory is garbage collected",
			Summary:    "Delete all keys of the database",
			Syntax:     "flush-type:[ASYNC@4.0.0|SYNC@6.2.0]",
			History: []string{
				"4.0.0 `ASYNC`",
				"6.2.0 `SYNC`",
			},
		}, Run: flushdb},
		{Facts: protocol.Facts{
			Name: "swapdb", Arity: 3, Databases: protocol.FirstDatabases, Flags: "write fast",
			Group: "server", Since: "4.0.0", Categories: "keyspace dangerous",
			Complexity: "O(W), W keys that clients watch or wait for",
			Summary:    "Exchange the contents of two databases",
			Syntax:     "index1 index2",
		}, Run: swapdb, OtherDatabases: true},
	}
}

// ReadDatabase reads the number of a database.
func ReadDatabase(c *engine.Call) *keyspace.DB {
	i := readInt32(c)
	if c.Err() == "" && (i < 0 || i >= c.Keys().Len()) {
		c.Fail("ERR DB index is out of range")
	}
	if c.Err() != "" {
		return nil
	}
	return c.Keys().DB(i)
}

// readInt32 reads an integer of 32 bits.
func readInt32(c *engine.Call) int {
	n := c.Int()
	if n != int64(int32(n)) {
		c.Fail("ERR value is out of range, value must between -2147483648 and 2147483647")
	}
	return int(n)
}

// ErrNoKey is the error of commands that need an existing key.
const (
	ErrNoKey      = "ERR no such key"
	errSameObject = "ERR source and destination objects are the same"
)

func copyCommand(c *engine.Call) {
	source, destination := c.Bytes(), c.Bytes()
	to, replace := c.DB, false
	for c.More() {
		switch {
		case c.Is("REPLACE"):
			replace = true
		case c.Len() >= 2 && c.Is("DB"):
			to = ReadDatabase(c)
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if c.Err() == "" && c.Config().OneDatabase() && to != c.DB {
		c.Fail("ERR Copying to another database is not allowed in cluster mode")
	}
	if c.Err() == "" && to == c.DB && string(source) == string(destination) {
		c.Fail(errSameObject)
	}
	if !c.OK() {
		return
	}
	e := c.DB.Get(source)
	if e == nil || to.Edit(destination) != nil && !replace {
		c.Reply.Int(0)
		return
	}
	old, there := c.Overwritten(to, destination)
	to.Delete(destination)
	to.SetDeadline(to.Add(destination, keyspace.Clone(e.Value())), e.Deadline())
	c.ChangedIn(to, destination, engine.ClassGeneric, "copy_to")
	if there {
		c.Overwrote(to, destination, old, keyspace.KindOf(e.Value()))
	}
	c.Reply.Int(1)
}

func del(c *engine.Call) {
	n := int64(0)
	for c.More() {
		if c.Drop(c.Bytes()) {
			n++
		}
	}
	c.Reply.Int(n)
}

// unlink handles UNLINK: it deletes keys, and reports large values to the garbage collection
// (lazyfree.go).
func unlink(c *engine.Call) {
	n := int64(0)
	for c.More() {
		key := c.Bytes()
		if e := c.DB.Peek(key); e != nil {
			v := e.Value()
			c.Drop(key)
			c.Freed(v)
			n++
		}
	}
	c.Reply.Int(n)
}

func exists(c *engine.Call) {
	n := int64(0)
	for c.More() {
		if c.DB.Look(c.Bytes()) != nil {
			n++
		}
	}
	c.Reply.Int(n)
}

func touch(c *engine.Call) {
	n := int64(0)
	for c.More() {
		if c.DB.Get(c.Bytes()) != nil {
			n++
		}
	}
	c.Reply.Int(n)
}

func expire(c *engine.Call)    { expireKey(c, engine.Seconds) }
func expireat(c *engine.Call)  { expireKey(c, engine.Seconds|engine.Absolute) }
func pexpire(c *engine.Call)   { expireKey(c, 0) }
func pexpireat(c *engine.Call) { expireKey(c, engine.Absolute) }

// expireOptions are the conditions on which a deadline is set.
type expireOptions struct {
	nx bool // there is none
	xx bool // there is one
	gt bool // the new one is later; none is the latest
	lt bool // the new one is earlier
}

// option reads a condition, and reports whether it has read one.
func (o *expireOptions) option(c *engine.Call) bool {
	switch {
	case c.Is("NX"):
		o.nx = true
	case c.Is("XX"):
		o.xx = true
	case c.Is("GT"):
		o.gt = true
	case c.Is("LT"):
		o.lt = true
	default:
		return false
	}
	return true
}

func parseExpireOptions(c *engine.Call) (o expireOptions) {
	for c.More() {
		if !o.option(c) {
			c.Fail(unsupportedOption(c.Bytes()))
		}
	}
	o.check(c)
	return o
}

// check fails if conditions exclude each other.
func (o *expireOptions) check(c *engine.Call) {
	if o.nx && (o.xx || o.gt || o.lt) {
		c.Fail("ERR NX and XX, GT or LT options at the same time are not compatible")
	}
	if o.gt && o.lt {
		c.Fail("ERR GT and LT options at the same time are not compatible")
	}
}

func unsupportedOption(b []byte) string { return "ERR Unsupported option " + optionText(b) }

// optionText returns an option as Redis's error texts have it: without line ends behind it.
func optionText(b []byte) string { return strings.TrimRight(engine.Clip(b, len(b)), "\r\n") }

// allow reports whether a deadline may be set. old is 0 if there is none.
func (o expireOptions) allow(old, deadline int64) bool {
	return !(o.nx && old != 0 ||
		o.xx && old == 0 ||
		o.gt && (old == 0 || deadline <= old) ||
		o.lt && old != 0 && deadline >= old)
}

// expireKey sets a deadline. A deadline in the past removes the key immediately.
func expireKey(c *engine.Call, unit engine.TimeUnit) {
	key, time := c.Bytes(), c.Bytes()
	o := parseExpireOptions(c)
	n, unit := c.ReadTime(time, unit, protocol.ErrNotInteger)
	deadline, ok := c.After(n, unit)
	if !ok {
		c.Fail(engine.InvalidExpire(c.Command.Name))
	}
	if !c.OK() {
		return
	}
	e := c.DB.Edit(key)
	if e == nil || !o.allow(e.Deadline(), deadline) {
		c.Reply.Int(0)
		return
	}
	if c.Past(deadline) {
		c.DropPast(key)
	} else {
		c.SetDeadline(e, deadline)
		c.Changed(key, engine.ClassGeneric, "expire")
	}
	c.Reply.Int(1)
}

func persist(c *engine.Call) {
	key := c.Bytes()
	e := c.DB.Edit(key)
	if e == nil || !c.Persist(e) {
		c.Reply.Int(0)
		return
	}
	c.Changed(key, engine.ClassGeneric, "persist")
	c.Reply.Int(1)
}

func ttl(c *engine.Call)         { replyTTL(c, engine.Seconds) }
func pttl(c *engine.Call)        { replyTTL(c, 0) }
func expiretime(c *engine.Call)  { replyTTL(c, engine.Seconds|engine.Absolute) }
func pexpiretime(c *engine.Call) { replyTTL(c, engine.Absolute) }

// replyTTL replies a deadline: -2 without a key, -1 without a deadline.
func replyTTL(c *engine.Call, unit engine.TimeUnit) {
	e := c.DB.Look(c.Bytes())
	if e == nil {
		c.Reply.Int(-2)
		return
	}
	ms := e.Deadline()
	if ms == 0 {
		c.Reply.Int(-1)
		return
	}
	if unit&engine.Absolute == 0 {
		ms = max(0, ms-c.Now())
	}
	if unit&engine.Seconds != 0 {
		ms = int64((uint64(ms) + 500) / 1000)
	}
	c.Reply.Int(ms)
}

func keys(c *engine.Call) {
	pattern := scanPattern(c.Bytes())
	var found []string
	for e := range c.DB.All() {
		if key := e.Key(); pattern.Match(protocol.BytesOf(key)) {
			found = append(found, key)
		}
	}
	c.Reply.Array(len(found))
	for _, key := range found {
		c.Reply.BulkString(key)
	}
}

func scan(c *engine.Call) {
	cursor := cursor(c)
	o := keyScan{scanOptions: scanOptions{count: 10}}
	for c.More() {
		if !o.read(c) {
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.OK() {
		return
	}
	next, found := o.keys(c, cursor)
	replyKeys(c, strconv.FormatUint(next, 10), found)
}

// keyScan are the options of SCAN.
type keyScan struct {
	scanOptions
	kind    string // of TYPE
	typed   bool
	slot    int // of the keys, if slotted is set
	slotted bool
}

// read reads one option, if it is one of SCAN.
func (o *keyScan) read(c *engine.Call) bool {
	switch {
	case o.scanOptions.read(c):
	case c.Len() >= 2 && c.Is("TYPE"):
		name := c.Bytes()
		o.kind, o.typed = engine.Clip(name, len(name)), true
		if _, known := keyspace.KindNamed(lowerASCII(o.kind)); !known && c.Config().Valkey() {
			c.Fail("ERR unknown type name '" + o.kind + "'")
		}
	default:
		return false
	}
	return true
}

// keys returns some keys of the database that meet the options, and the next cursor.
func (o *keyScan) keys(c *engine.Call, cursor uint64) (next uint64, found []string) {
	next = c.DB.Scan(cursor, o.count, func(e *keyspace.Entry) {
		key := e.Key()
		if o.Match(protocol.BytesOf(key)) && (!o.slotted || keyslot.Of(key) == o.slot) &&
			(!o.typed || c.DB.Due(e) || strings.EqualFold(o.kind, keyspace.KindOf(e.Value()).String())) {
			found = append(found, key)
		}
	})
	// Expired keys are removed now, of each type: the table must not change during Scan.
	defer leaveExpired(c)()
	return next, slices.DeleteFunc(found, func(key string) bool { return !c.DB.Has(protocol.BytesOf(key)) })
}

// leaveExpired keeps expired keys in memory, hidden, until resume is called, if
// lazyexpire-nested-arbitrary-keys wants that: their removal is no part of the transaction or
// script that has not named them.
func leaveExpired(c *engine.Call) (resume func()) {
	if !c.Nested || c.Config().LazyExpireNested || c.Paused() {
		return func() {}
	}
	c.Keys().Freeze()
	return c.Keys().Thaw
}

// replyKeys replies a cursor and keys.
func replyKeys(c *engine.Call, cursor string, keys []string) {
	c.Reply.Array(2)
	c.Reply.BulkString(cursor)
	c.Reply.Array(len(keys))
	for _, key := range keys {
		c.Reply.BulkString(key)
	}
}

func randomkey(c *engine.Call) {
	defer leaveExpired(c)()
	e := randomKey(c)
	if e == nil && c.Paused() && c.DB.Len() == c.DB.Volatile() {
		e = c.DB.AnyKey(c.Rand(), false) // as in Redis, which removes no expired keys meanwhile
	}
	if e == nil {
		c.Reply.Null()
		return
	}
	c.Reply.BulkString(e.Key())
}

func typeCommand(c *engine.Call) {
	e := c.DB.Look(c.Bytes())
	if e == nil {
		c.Reply.Status("none")
		return
	}
	c.Reply.Status(keyspace.KindOf(e.Value()).String())
}

func move(c *engine.Call) {
	if c.Config().OneDatabase() && !c.NotClustered("move") {
		return
	}
	key, to := c.Bytes(), ReadDatabase(c)
	if to == c.DB {
		c.Fail(errSameObject)
	}
	if !c.OK() {
		return
	}
	e := c.DB.Edit(key)
	if e == nil || to.Edit(key) != nil {
		c.Reply.Int(0)
		return
	}
	c.DB.Move(e, to, key)
	c.Changed(key, engine.ClassGeneric, "move_from")
	c.ChangedIn(to, key, engine.ClassGeneric, "move_to")
	c.Reply.Int(1)
}

func rename(c *engine.Call) {
	if renameKey(c, false) {
		c.Reply.OK()
	}
}

func renamenx(c *engine.Call) {
	if renameKey(c, true) {
		c.Reply.Int(1)
	}
}

// renameKey renames a key. It returns false if it has changed nothing and replied the
// reason.
func renameKey(c *engine.Call, nx bool) bool {
	key, name := c.Bytes(), c.Bytes()
	e := c.DB.Edit(key)
	switch {
	case e == nil:
		c.Reply.Error(ErrNoKey)
		return false
	case nx && c.DB.Edit(name) != nil: // perhaps the key itself
		c.Reply.Int(0)
		return false
	case string(key) == string(name):
		return true
	}
	old, there := c.Overwritten(c.DB, name)
	kind := keyspace.KindOf(e.Value())
	c.DB.Move(e, c.DB, name)
	c.Changed(key, engine.ClassGeneric, "rename_from")
	c.Followed(name, engine.ClassGeneric, "rename_to")
	if there {
		c.Overwrote(c.DB, name, old, kind)
	}
	return true
}

// dbsize leaves out the keys that the timer is about to remove. Redis counts them until it
// notices them, as zsetd does where no timer removes them.
func dbsize(c *engine.Call) {
	n := c.DB.Len()
	if c.Sweeps() && !c.Keys().OnStandby() {
		expired, _ := c.DB.DueKeys()
		n -= expired
	}
	c.Reply.Int(int64(n))
}

// flush reads the options of FLUSHDB and FLUSHALL. SYNC and ASYNC differ only in
// statistics: emptying a database takes no time, and the garbage collector frees
// the memory.
func flush(c *engine.Call, dbs ...*keyspace.DB) {
	lazily := !c.Is("SYNC") && c.Is("ASYNC")
	if !c.End() {
		return
	}
	lazily = lazily || !c.Nested // as Redis, where the client waits meanwhile
	c.Flush(lazily, dbs...)
	c.Reply.OK()
}

func flushdb(c *engine.Call) { flush(c, c.DB) }

func flushall(c *engine.Call) {
	var dbs []*keyspace.DB
	for i := range c.Keys().Len() {
		dbs = append(dbs, c.Keys().DB(i))
	}
	flush(c, dbs...)
}

func swapdb(c *engine.Call) {
	if !c.NotClustered("swapdb") {
		return
	}
	i := c.IntIn(math.MinInt32, math.MaxInt32, "ERR invalid first DB index")
	j := c.IntIn(math.MinInt32, math.MaxInt32, "ERR invalid second DB index")
	if n := int64(c.Keys().Len()); i < 0 || i >= n || j < 0 || j >= n {
		c.Fail("ERR DB index is out of range")
	}
	if !c.OK() {
		return
	}
	c.Swap(int(i), int(j))
	c.Reply.OK()
}
