package data

import (
	"bytes"
	"math"
	"strconv"

	"github.com/zeebo/xxh3"
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/longdouble"
)

// StringCommands returns the rows of the string commands.
func StringCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "append", Arity: 3, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "string", Since: "2.0.0",
			Complexity: "O(N) amortized, N bytes appended",
			Summary:    "Add bytes to the end of a string",
			Syntax:     "key value",
		}, Run: appendCommand},
		{Facts: protocol.Facts{
			Name: "decr", Arity: 2, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "string", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Subtract 1 from an integer",
			Syntax:  "key",
		}, Run: decr},
		{Facts: protocol.Facts{
			Name: "decrby", Arity: 3, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "string", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Subtract decrement from an integer",
			Syntax:  "key decrement",
		}, Run: decrby},
		{Facts: protocol.Facts{
			Name: "delex", Arity: -2, Flags: "write fast", Keys: "1 RW delete variable_flags", KeysBy: protocol.KeysOfDelex,
			Group: "string", Since: "8.4.0",
			Complexity: "O(N), N bytes of the value",
			Summary:    "Delete a string if its value or its digest meets a condition",
			Syntax:     "key condition:[IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest:integer | IFDNE ifdne-digest:integer]",
		}, Run: delex},
		{Facts: protocol.Facts{
			Name: "delifeq", Arity: 3, Flags: "write fast", Keys: "1 RM delete compares",
			Group: "string", Since: "9.0.0", Complexity: "O(N), N bytes of the value",
			Summary: "Delete a string that equals value",
			Syntax:  "key value",
		}, Run: delifeq},
		{Facts: protocol.Facts{
			Name: "digest", Arity: 2, Flags: "readonly fast", Keys: "1 RO access",
			Group: "string", Since: "8.4.0", Complexity: "O(N), N bytes of the value",
			Summary: "Hash a string with XXH3, as 16 hexadecimal digits",
			Syntax:  "key",
		}, Run: digestCommand},
		{Facts: protocol.Facts{
			Name: "get", Arity: 2, Flags: "readonly fast", Keys: "1 RO access",
			Group: "string", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Read a string",
			Syntax:  "key",
		}, Run: get},
		{Facts: protocol.Facts{
			Name: "getdel", Arity: 2, Flags: "write fast", Keys: "1 RW access delete",
			Group: "string", Since: "6.2.0", Complexity: "O(1)",
			Summary: "Read a string and delete its key",
			Syntax:  "key",
		}, Run: getdel},
		{Facts: protocol.Facts{
			Name: "getex", Arity: -2, Flags: "write fast",
			Keys:  "1 RW access update (written because the deadline changes)",
			Group: "string", Since: "6.2.0", Complexity: "O(log N), N keys with a deadline",
			Summary: "Read a string and set or remove the deadline of its key",
			Syntax:  "key expiration:[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
		}, Run: getex},
		{Facts: protocol.Facts{
			Name: "getrange", Arity: 4, Flags: "readonly", Keys: "1 RO access",
			Group: "string", Since: "2.4.0",
			Complexity: "O(N), N bytes returned",
			Summary:    "Read the bytes from start to end of a string",
			Syntax:     "key start end",
		}, Run: getrange, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "getset", Arity: 3, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "string", Since: "1.0.0", Deprecated: "6.2.0", ReplacedBy: "`SET key value GET`",
			Complexity: "O(1)",
			Summary:    "Replace a string and return the previous one",
			Syntax:     "key value",
		}, Run: getset},
		{Facts: protocol.Facts{
			Name: "incr", Arity: 2, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "string", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Add 1 to an integer",
			Syntax:  "key",
		}, Run: incr},
		{Facts: protocol.Facts{
			Name: "incrby", Arity: 3, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "string", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Add increment to an integer",
			Syntax:  "key increment",
		}, Run: incrby},
		{Facts: protocol.Facts{
			Name: "incrbyfloat", Arity: 3, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "string", Since: "2.6.0", Complexity: "O(1)",
			Summary: "Add increment to a decimal number",
			Syntax:  "key increment:double",
		}, Run: incrbyfloat},
		{Facts: protocol.Facts{
			Name: "increx", Arity: -2, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "string", Since: "8.8.0", Complexity: "O(1); with a deadline O(log N), N keys that have one",
			Summary: "Add to a number within bounds, and set the deadline of its key",
			Syntax:  "key increment:[BYFLOAT float:double | BYINT integer:integer] [SATURATE] [LBOUND lowerbound] [UBOUND upperbound] expiration:[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] [ENX]",
		}, Run: increx},
		{Facts: protocol.Facts{
			Name: "lcs", Arity: -3, Flags: "readonly", Keys: "1..+1 RO access",
			Group: "string", Since: "7.0.0", Complexity: "O(N*M), N and M bytes of the two strings",
			Summary: "Longest common subsequence of two strings, its length, or its matching ranges",
			Syntax:  "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len:integer] [WITHMATCHLEN]",
		}, Run: longestCommon},
		{Facts: protocol.Facts{
			Name: "mget", Arity: -2, Flags: "readonly fast", Keys: "1..-1 RO access",
			Group: "string", Since: "1.0.0", Tips: "request_policy:multi_shard",
			Complexity: "O(N), N keys",
			Summary:    "Read several strings",
			Syntax:     "key [key ...]",
		}, Run: mget},
		{Facts: protocol.Facts{
			Name: "mset", Arity: -3, Flags: "write denyoom", Keys: "1..-1/2 OW update",
			Group: "string", Since: "1.0.1", Tips: "request_policy:multi_shard response_policy:all_succeeded",
			Complexity: "O(N), N keys",
			Summary:    "Write several strings",
			Syntax:     "data:(key value)...",
		}, Run: mset},
		{Facts: protocol.Facts{
			Name: "msetex", Arity: -4, Flags: "write denyoom", Keys: "1/2# OW update",
			Group: "string", Since: "8.4.0", Tips: "request_policy:multi_shard response_policy:all_succeeded",
			Complexity: "O(N log D), N keys, D keys with a deadline",
			Summary:    "Write several strings with one deadline, on a condition that holds for all keys",
			Syntax:     "numkeys data:(key value)... condition:[NX | XX] expiration:[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		}, Run: msetex},
		{Facts: protocol.Facts{
			Name: "msetnx", Arity: -3, Flags: "write denyoom", Keys: "1..-1/2 OW insert",
			Group: "string", Since: "1.0.1",
			Complexity: "O(N), N keys",
			Summary:    "Write several strings if all keys are absent",
			Syntax:     "data:(key value)...",
		}, Run: msetnx},
		{Facts: protocol.Facts{
			Name: "psetex", Arity: 4, Flags: "write denyoom", Keys: "1 OW update",
			Group: "string", Since: "2.6.0", Deprecated: "2.6.12", ReplacedBy: "`SET` with `PX`", Complexity: "O(log N), N keys with a deadline",
			Summary: "Write a string that expires after milliseconds",
			Syntax:  "key milliseconds value",
		}, Run: psetex, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "set", Arity: -3, Flags: "write denyoom",
			Keys:   "1 RW access update variable_flags (read because of GET)",
			KeysBy: protocol.KeysOfSet,
			Group:  "string", Since: "1.0.0", Complexity: "O(1); with a deadline O(log N), N keys that have one",
			Summary: "Write a string, on a condition and with a deadline if given",
			Syntax:  "key value condition:[NX | XX | IFEQ ifeq-value@8.4.0 | IFNE ifne-value@8.4.0 | IFDEQ ifdeq-digest:integer@8.4.0 | IFDNE ifdne-digest:integer@8.4.0]@2.6.12 [GET@6.2.0] expiration:[EX seconds@2.6.12 | PX milliseconds@2.6.12 | EXAT unix-time-seconds@6.2.0 | PXAT unix-time-milliseconds@6.2.0 | KEEPTTL@6.0.0]",
			History: []string{
				"2.6.12 `EX`, `PX`, `NX`, `XX`",
				"6.0.0 `KEEPTTL`",
				"6.2.0 `GET`, `EXAT`, `PXAT`",
				"7.0.0 `NX` together with `GET`",
				"8.4.0 `IFEQ`, `IFNE`, `IFDEQ`, `IFDNE`",
			},
		}, Run: set, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "setex", Arity: 4, Flags: "write denyoom", Keys: "1 OW update",
			Group: "string", Since: "2.0.0", Deprecated: "2.6.12", ReplacedBy: "`SET` with `EX`", Complexity: "O(log N), N keys with a deadline",
			Summary: "Write a string that expires after seconds",
			Syntax:  "key seconds value",
		}, Run: setex, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "setnx", Arity: 3, Flags: "write denyoom fast", Keys: "1 OW insert",
			Group: "string", Since: "1.0.0", Deprecated: "2.6.12", ReplacedBy: "`SET` with `NX`", Complexity: "O(1)",
			Summary: "Write a string if its key is absent",
			Syntax:  "key value",
		}, Run: setnx},
		{Facts: protocol.Facts{
			Name: "setrange", Arity: 4, Flags: "write denyoom", Keys: "1 RW update",
			Group: "string", Since: "2.2.0",
			Complexity: "O(N), N bytes written, with the zeros before offset",
			Summary:    "Overwrite the bytes of a string from offset on",
			Syntax:     "key offset value",
		}, Run: setrange},
		{Facts: protocol.Facts{
			Name: "strlen", Arity: 2, Flags: "readonly fast", Keys: "1 RO",
			Group: "string", Since: "2.2.0", Complexity: "O(1)",
			Summary: "Length of a string in bytes",
			Syntax:  "key",
		}, Run: strlen},
		{Facts: protocol.Facts{
			Name: "substr", Arity: 4, Flags: "readonly", Keys: "1 RO access",
			Group: "string", Since: "1.0.0", Deprecated: "2.0.0", ReplacedBy: "`GETRANGE`",
			Complexity: "O(N), N bytes returned",
			Summary:    "Former name of GETRANGE",
			Syntax:     "key start end",
		}, Run: substr},
	}
}

// setOptions are the options of SET.
type setOptions struct {
	nx, xx, get bool
	compare     comparison
	engine.Expiry
}

// comparison is IFEQ or IFNE and a value, or IFDEQ or IFDNE and the digest of a
// value.
type comparison struct {
	given, unequal, digest bool
	with                   []byte
}

// comparisonOption reads a comparison, if it is next. The last of several counts, which must
// be of one kind.
func comparisonOption(c *engine.Call, o *comparison) bool {
	if c.Len() < 2 {
		return false
	}
	next := comparison{given: true}
	switch {
	case c.Is("IFEQ"):
	case c.Is("IFNE"):
		next.unequal = true
	case c.Is("IFDEQ"):
		next.digest = true
	case c.Is("IFDNE"):
		next.digest, next.unequal = true, true
	default:
		return false
	}
	if o.given && (o.unequal != next.unequal || o.digest != next.digest) {
		c.Fail(protocol.ErrSyntax)
	}
	next.with = c.Bytes()
	*o = next
	return true
}

// holds evaluates the condition for the value of a key; nil equals nothing. As in
// Redis, the digest in the arguments is checked only if the key exists.
func (o *comparison) holds(c *engine.Call, s *keyspace.String) bool {
	switch {
	case s == nil:
		return o.unequal
	case !o.digest:
		return bytes.Equal(s.Content(), o.with) != o.unequal
	case len(o.with) != digestSize:
		c.Fail("ERR must be exactly 16 hexadecimal characters")
		return false
	}
	var b [digestSize]byte
	return bytes.EqualFold(appendDigest(b[:0], s.Content()), o.with) != o.unequal
}

const digestSize = 16

// appendDigest appends the XXH3 of a value, 16 hexadecimal digits.
func appendDigest(b, value []byte) []byte {
	const digits = "0123456789abcdef"
	sum := xxh3.Hash(value)
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[sum>>shift&15])
	}
	return b
}

func digestCommand(c *engine.Call) {
	s, ok := engine.Read[keyspace.String](c, c.Bytes())
	switch {
	case !ok:
	case s == nil:
		c.Reply.Null()
	default:
		var b [digestSize]byte
		c.Reply.Bulk(appendDigest(b[:0], s.Content()))
	}
}

func set(c *engine.Call) {
	key, value := c.Bytes(), c.Bytes()
	var o setOptions
	var raw engine.RawTime
	for c.More() {
		switch {
		case o.compare.given && c.Config().Valkey() && (c.Is("NX") || c.Is("XX")):
			c.Fail(protocol.ErrSyntax)
		case !o.xx && c.Is("NX"):
			o.nx = true
		case !o.nx && c.Is("XX"):
			o.xx = true
		case !o.nx && !o.xx && comparisonOption(c, &o.compare):
		case c.Is("GET"):
			o.get = true
		case c.ExpiryOption(&o.Expiry, &raw, "KEEPTTL"):
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	c.Resolve(&o.Expiry, raw)
	if c.OK() {
		setString(c, key, value, o)
	}
}

// setString is SET, after its arguments are read.
func setString(c *engine.Call, key, value []byte, o setOptions) {
	if o.get {
		c.DB.Get(key) // GET reads the key, too, and counts a miss
	}
	e := c.DB.Edit(key)
	if o.nx && e != nil && !o.get {
		c.Reply.Null() // whatever its type
		return
	}
	var old *keyspace.String
	if (o.get || o.compare.given) && e != nil {
		var ok bool
		if old, ok = engine.As[keyspace.String](c, e); !ok {
			return
		}
	}
	done := !(o.nx && e != nil || o.xx && e == nil || o.compare.given && !o.compare.holds(c, old))
	if !c.OK() {
		return
	}
	switch {
	case o.get && e != nil:
		c.Reply.Bulk(old.Content())
	case o.get || !done:
		c.Reply.Null()
	default:
		c.Reply.OK()
	}
	switch {
	case !done:
	case o.Set && c.Past(o.Deadline) && c.Config().Valkey():
		c.DropPast(key)
	default:
		store(c, key, value, e, o.Expiry)
	}
}

// store makes value the string at key, with the events of SET; e is the entry of the key,
// or nil.
func store(c *engine.Call, key, value []byte, e *keyspace.Entry, x engine.Expiry) {
	write(c, key, value, e, x)
	c.Changed(key, engine.ClassString, "set")
	if x.Set {
		c.Changed(key, engine.ClassGeneric, "expire")
	}
}

// write sets a key to a string, and its deadline. It tells no listener.
func write(c *engine.Call, key, value []byte, e *keyspace.Entry, x engine.Expiry) {
	own := len(value) >= AdoptFrom && c.Owns(value)
	if old, there := c.Overwritten(c.DB, key); there {
		c.Overwrote(c.DB, key, old, keyspace.KindString)
	}
	if e == nil {
		if own {
			e = c.DB.AddOwnedString(key, value)
		} else {
			e = c.DB.AddString(key, value, x.Set)
		}
	} else if _, ok := e.Value().(*keyspace.String); ok {
		if own {
			e = c.DB.SetOwnedString(e, value)
		} else {
			e = c.DB.SetString(e, value)
		}
		if !x.Keep && !x.Set {
			c.Persist(e)
		}
	} else {
		e = c.DB.Put(key, keyspace.NewString(value), x.Keep)
	}
	if x.Set {
		c.SetDeadline(e, x.Deadline)
	}
}

// AdoptFrom is the least length of values that stay in the client's input buffer
// instead of being copied.
const AdoptFrom = 128 << 10

func delifeq(c *engine.Call) {
	key := c.Bytes()
	o := comparison{given: true, with: c.Bytes()}
	s, ok := engine.Read[keyspace.String](c, key)
	if ok {
		dropIf(c, key, s != nil && o.holds(c, s))
	}
}

// delex is DEL of one key, or DEL with a condition, as DELIFEQ. Redis checks the
// key before the condition.
func delex(c *engine.Call) {
	key := c.Bytes()
	if !c.More() {
		dropIf(c, key, true)
		return
	}
	if c.Len() != 2 {
		c.Reply.Error(engine.WrongArity(c.Command.Name))
		return
	}
	e := c.DB.Get(key)
	if e == nil {
		c.Reply.Int(0)
		return
	}
	s, ok := e.Value().(*keyspace.String)
	if !ok {
		c.Reply.Error("ERR Key should be of string type if conditions are specified")
		return
	}
	var o comparison
	if !comparisonOption(c, &o) {
		c.Reply.Error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE")
		return
	}
	if holds := o.holds(c, s); c.OK() {
		dropIf(c, key, holds)
	}
}

// dropIf drops a key if condition is true, and replies the number of dropped keys.
func dropIf(c *engine.Call, key []byte, condition bool) {
	n := int64(0)
	if condition && c.Drop(key) {
		n = 1
	}
	c.Reply.Int(n)
}

func setnx(c *engine.Call) {
	key, value := c.Bytes(), c.Bytes()
	if e := c.DB.Edit(key); e != nil {
		c.Reply.Int(0)
		return
	}
	store(c, key, value, nil, engine.Expiry{})
	c.Reply.Int(1)
}

func setex(c *engine.Call)  { setFor(c, engine.Seconds) }
func psetex(c *engine.Call) { setFor(c, 0) }

func setFor(c *engine.Call, unit engine.TimeUnit) {
	key := c.Bytes()
	x := engine.Expiry{Set: true}
	c.Resolve(&x, engine.RawTime{Text: c.Bytes(), Unit: unit})
	value := c.Bytes()
	if c.OK() {
		setString(c, key, value, setOptions{Expiry: x})
	}
}

func get(c *engine.Call) {
	s, ok := engine.Read[keyspace.String](c, c.Bytes())
	switch {
	case !ok:
	case s == nil:
		c.Reply.Null()
	default:
		c.Reply.Bulk(s.Content())
	}
}

func getex(c *engine.Call) {
	key := c.Bytes()
	var x engine.Expiry
	var raw engine.RawTime
	for c.More() {
		if !c.ExpiryOption(&x, &raw, "PERSIST") {
			c.Fail(protocol.ErrSyntax)
		}
	}
	// Redis checks the key before the time, Valkey after it.
	if c.Config().Valkey() {
		c.Resolve(&x, raw)
	}
	syntax := c.Err() == ""
	var s *keyspace.String
	if syntax {
		var ok bool
		if s, ok = engine.Read[keyspace.String](c, key); !ok {
			return
		}
		if s == nil {
			c.Reply.Null()
			return
		}
	}
	c.Resolve(&x, raw)
	if !c.OK() {
		return
	}
	c.Reply.Bulk(s.Content())
	e := c.DB.Edit(key)
	switch {
	case x.Set && c.Past(x.Deadline):
		c.DropPast(key)
	case x.Set:
		c.SetDeadline(e, x.Deadline)
		c.Changed(key, engine.ClassGeneric, "expire")
	case x.Persist && c.Persist(e):
		c.Changed(key, engine.ClassGeneric, "persist")
	}
}

func getdel(c *engine.Call) {
	key := c.Bytes()
	s, ok := engine.Read[keyspace.String](c, key)
	switch {
	case !ok:
	case s == nil:
		c.Reply.Null()
	default:
		c.Reply.Bulk(s.Content())
		c.Drop(key)
	}
}

func getset(c *engine.Call) {
	key, value := c.Bytes(), c.Bytes()
	setString(c, key, value, setOptions{get: true})
}

func mget(c *engine.Call) {
	c.Reply.Array(c.Len())
	for c.More() {
		e := c.DB.Get(c.Bytes())
		if e != nil {
			if s, ok := e.Value().(*keyspace.String); ok {
				c.Reply.Bulk(s.Content())
				continue
			}
		}
		c.Reply.Null()
	}
}

func mset(c *engine.Call) {
	if c.Len()%2 != 0 {
		c.Reply.Error(engine.WrongArity("mset"))
		return
	}
	setPairs(c)
	c.Reply.OK()
}

func msetnx(c *engine.Call) {
	if c.Len()%2 != 0 {
		c.Reply.Error(engine.WrongArity("msetnx"))
		return
	}
	for i := 0; i < c.Len(); i += 2 {
		if c.DB.Edit(c.Peek(i)) != nil {
			c.Reply.Int(0)
			return
		}
	}
	setPairs(c)
	c.Reply.Int(1)
}

// msetex is MSETEX numkeys key value [key value ...] [NX|XX] [EX|PX|EXAT|PXAT time|KEEPTTL].
func msetex(c *engine.Call) {
	n := c.IntIn(1, math.MaxInt32, c.Config().Words("ERR invalid numkeys value", "ERR invalid numkeys value or out of range"))
	if c.Err() == "" && n > int64(c.Len()/2) {
		c.Fail(c.Config().Words("ERR wrong number of key-value pairs", protocol.ErrSyntax))
	}
	if !c.OK() {
		return
	}
	pairs := c.NextN(2 * int(n))
	var o setOptions
	var raw engine.RawTime
	for c.More() {
		switch {
		case !o.xx && c.Is("NX"):
			o.nx = true
		case !o.nx && c.Is("XX"):
			o.xx = true
		case c.ExpiryOption(&o.Expiry, &raw, "KEEPTTL"):
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	c.Resolve(&o.Expiry, raw)
	if !c.OK() {
		return
	}
	if o.nx || o.xx {
		for i := 0; i < len(pairs); i += 2 {
			if e := c.DB.Edit(pairs[i]); o.nx && e != nil || o.xx && e == nil {
				c.Reply.Int(0)
				return
			}
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		key := pairs[i]
		write(c, key, pairs[i+1], c.DB.Edit(key), o.Expiry)
		// Other than SET, and than in Valkey, MSETEX reports the deadline first.
		valkey := c.Config().Valkey()
		if o.Expiry.Set && !valkey {
			c.Changed(key, engine.ClassGeneric, "expire")
		}
		c.Changed(key, engine.ClassString, "set")
		if o.Expiry.Set && valkey {
			c.Changed(key, engine.ClassGeneric, "expire")
		}
	}
	c.Reply.Int(1)
}

func setPairs(c *engine.Call) {
	for c.More() {
		key, value := c.Bytes(), c.Bytes()
		store(c, key, value, c.DB.Edit(key), engine.Expiry{})
	}
}

func strlen(c *engine.Call) {
	s, ok := engine.Read[keyspace.String](c, c.Bytes())
	switch {
	case !ok:
	case s == nil:
		c.Reply.Int(0)
	default:
		c.Reply.Int(int64(s.Len()))
	}
}

func getrange(c *engine.Call) {
	key, start, end := c.Bytes(), c.Int(), c.Int()
	if !c.OK() {
		return
	}
	s, ok := engine.Read[keyspace.String](c, key)
	switch {
	case !ok:
		return
	case s == nil, start < 0 && end < 0 && start > end:
		c.Reply.BulkString("")
		return
	}
	n := int64(s.Len())
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	end = min(end, n-1)
	if start > end || n == 0 {
		c.Reply.BulkString("")
		return
	}
	c.Reply.Bulk(s.Content()[start : end+1])
}

func substr(c *engine.Call) { getrange(c) }

const errTooLong = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"

// fitsString replies an error if a string of size+more bytes exceeds the maximum length.
func fitsString(c *engine.Call, size, more int64) bool {
	if size > c.Config().ProtoMaxBulk || more > c.Config().ProtoMaxBulk-size {
		c.Reply.Error(errTooLong)
		return false
	}
	return true
}

// editString opens a string for writing. A string is changed through its entry.
func editString(c *engine.Call, key []byte) (e *keyspace.Entry, s *keyspace.String, ok bool) {
	if e = c.DB.Edit(key); e == nil {
		return nil, nil, true
	}
	s, ok = engine.As[keyspace.String](c, e)
	return e, s, ok
}

func setrange(c *engine.Call) {
	key, offset, value := c.Bytes(), c.Int(), c.Bytes()
	if c.Err() == "" && offset < 0 {
		c.Fail("ERR offset is out of range")
	}
	if !c.OK() {
		return
	}
	e, s, ok := editString(c, key)
	switch {
	case !ok:
		return
	case len(value) == 0 && s == nil:
		c.Reply.Int(0)
		return
	case len(value) == 0:
		c.Reply.Int(int64(s.Len()))
		return
	case !fitsString(c, offset, int64(len(value))):
		return
	case s == nil:
		e = c.DB.AddString(key, nil, false)
	}
	_, n := c.DB.WriteString(e, int(offset), value)
	c.Changed(key, engine.ClassString, "setrange")
	c.Reply.Int(int64(n))
}

func appendCommand(c *engine.Call) {
	key, value := c.Bytes(), c.Bytes()
	e, s, ok := editString(c, key)
	switch {
	case !ok:
		return
	case s == nil:
		c.DB.AddString(key, value, false)
		c.Changed(key, engine.ClassString, "append")
		c.Reply.Int(int64(len(value)))
		return
	case !fitsString(c, int64(s.Len()), int64(len(value))):
		return
	}
	_, n := c.DB.AppendString(e, value)
	c.Changed(key, engine.ClassString, "append")
	c.Reply.Int(int64(n))
}

func incr(c *engine.Call)   { incrBy(c, c.Bytes(), 1) }
func decr(c *engine.Call)   { incrBy(c, c.Bytes(), -1) }
func incrby(c *engine.Call) { incrBy(c, c.Bytes(), c.Int()) }

func decrby(c *engine.Call) {
	key, by := c.Bytes(), c.Int()
	if by == math.MinInt64 {
		c.Fail("ERR decrement would overflow")
	}
	incrBy(c, key, -by)
}

func incrBy(c *engine.Call, key []byte, by int64) {
	if !c.OK() {
		return
	}
	e := c.DB.Edit(key)
	n := int64(0)
	if e != nil {
		s, ok := engine.As[keyspace.String](c, e)
		if !ok {
			return
		}
		if n, ok = protocol.ParseInt(s.Content()); !ok {
			c.Reply.Error(protocol.ErrNotInteger)
			return
		}
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		c.Reply.Error("ERR increment or decrement would overflow")
		return
	}
	var d [20]byte
	overwrite(c, key, e, strconv.AppendInt(d[:0], n+by, 10))
	c.Changed(key, engine.ClassString, "incrby")
	c.Reply.Int(n + by)
}

// overwrite replaces the value of the string at key, whose entry is e; its deadline
// stays.
func overwrite(c *engine.Call, key []byte, e *keyspace.Entry, value []byte) *keyspace.String {
	if e == nil {
		e = c.DB.AddString(key, value, false)
	} else {
		e = c.DB.SetString(e, value)
	}
	return e.Value().(*keyspace.String)
}

const errNotFinite = "ERR increment would produce NaN or Infinity"

func incrbyfloat(c *engine.Call) {
	key, text := c.Bytes(), c.Bytes()
	// Redis checks the value before the increment.
	e := c.DB.Edit(key)
	value := []byte("0")
	if e != nil {
		s, ok := engine.As[keyspace.String](c, e)
		if !ok {
			return
		}
		value = s.Content()
	}
	x, ok1 := longdouble.Parse(value)
	by, ok2 := longdouble.Parse(text)
	if !ok1 || !ok2 {
		c.Reply.Error(protocol.ErrNotFloat)
		return
	}
	sum, ok := longdouble.Add(x, by)
	if !ok {
		c.Reply.Error(errNotFinite)
		return
	}
	result := longdouble.Format(sum)
	overwrite(c, key, e, result).MarkText()
	c.Changed(key, engine.ClassString, "incrbyfloat")
	c.Reply.Bulk(result)
}
