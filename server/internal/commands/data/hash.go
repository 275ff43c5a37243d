package data

import (
	"math"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/longdouble"
)

// HashCommands returns the rows of the hash commands.
func HashCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "hdel", Arity: -3, Flags: "write fast", Keys: "1 RW delete",
			Group: "hash", Since: "2.0.0", Complexity: "O(N), N fields given; times log D in a hash with D deadlines",
			Summary: "Remove fields from a hash",
			Syntax:  "key field [field ...]",
			History: []string{"2.4.0 Several fields"},
		}, Element: 2, Run: hdel},
		{Facts: protocol.Facts{
			Name: "hexists", Arity: 3, Flags: "readonly fast", Keys: "1 RO",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Whether a hash has field",
			Syntax:  "key field",
		}, Element: 2, Named: 2, Run: hexists, Fields: keyspace.FieldsRead},
		{Facts: protocol.Facts{
			Name: "hget", Arity: 3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Read the value of field",
			Syntax:  "key field",
		}, Element: 2, Named: 2, Run: hget, Fields: keyspace.FieldsRead},
		{Facts: protocol.Facts{
			Name: "hgetall", Arity: 2, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N), N fields of the hash",
			Summary:    "All fields of a hash with their values",
			Syntax:     "key",
		}, Run: hgetall, Batching: engine.BatchAlways, Fields: keyspace.FieldsHidden},
		{Facts: protocol.Facts{
			Name: "himport", Arity: -2,
			Group: "hash", Since: "8.10.0", Complexity: "That of the subcommand",
			Summary: "Write hashes whose names of fields the connection has declared",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "himport|discard", Arity: 3, Flags: "noscript",
				Group: "hash", Since: "8.10.0", Complexity: "O(N), N fields", Tips: "request_policy:all_shards",
				Summary: "Remove a declaration of fields from the connection",
				Syntax:  "fieldset-name",
			}, Run: himportDiscard, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "himport|discardall", Arity: 2, Flags: "noscript",
				Group: "hash", Since: "8.10.0", Complexity: "O(N), N declarations", Tips: "request_policy:all_shards",
				Summary: "Remove all declarations of fields from the connection",
			}, Run: himportDiscardall, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "himport|prepare", Arity: -4, Flags: "denyoom noscript",
				Group: "hash", Since: "8.10.0", Complexity: "O(N), N fields", Tips: "request_policy:all_shards",
				Summary: "Declare the names of the fields of HIMPORT SET",
				Syntax:  "fieldset-name field [field ...]",
			}, Run: himportPrepare, OfConnection: true},
			{Facts: protocol.Facts{
				Name: "himport|set", Arity: -5, Flags: "write denyoom noscript", Keys: "1 OW update",
				Group: "hash", Since: "8.10.0", Complexity: "O(N), N fields",
				Summary: "Replace a hash by one with declared fields and the given values",
				Syntax:  "key fieldset-name value [value ...]",
			}, Run: himportSet, OfConnection: true},
		}},
		{Facts: protocol.Facts{
			Name: "hincrby", Arity: 4, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Add increment to the integer in field",
			Syntax:  "key field increment",
		}, Element: 2, Run: hincrby, Fields: keyspace.FieldsWritten},
		{Facts: protocol.Facts{
			Name: "hincrbyfloat", Arity: 4, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "hash", Since: "2.6.0", Complexity: "O(1)",
			Summary: "Add increment to the decimal number in field",
			Syntax:  "key field increment:double",
		}, Run: hincrbyfloat, Fields: keyspace.FieldsWritten},
		{Facts: protocol.Facts{
			Name: "hkeys", Arity: 2, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N), N fields of the hash",
			Summary:    "All fields of a hash",
			Syntax:     "key",
		}, Run: hkeys, Batching: engine.BatchAlways, Fields: keyspace.FieldsHidden},
		{Facts: protocol.Facts{
			Name: "hlen", Arity: 2, Flags: "readonly fast", Keys: "1 RO",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Number of fields of a hash",
			Syntax:  "key",
		}, Run: hlen},
		{Facts: protocol.Facts{
			Name: "hmget", Arity: -3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Complexity: "O(N), N fields given",
			Summary: "Read the values of several fields",
			Syntax:  "key field [field ...]",
		}, Named: 2, Run: hmget, Fields: keyspace.FieldsRead},
		{Facts: protocol.Facts{
			Name: "hmset", Arity: -4, Flags: "write denyoom fast", Keys: "1 RW update",
			Group: "hash", Since: "2.0.0", Deprecated: "4.0.0", ReplacedBy: "`HSET key field value [field value ...]`",
			Complexity: "O(N), N fields given; times log D in a hash with D deadlines",
			Summary:    "As HSET, with the reply OK",
			Syntax:     "key data:(field value)...",
		}, Run: hmset},
		{Facts: protocol.Facts{
			Name: "hrandfield", Arity: -2, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "6.2.0", Tips: "nondeterministic_output",
			Complexity: "O(N), N fields returned",
			Summary:    "Choose random fields, different ones or, for a negative count, with repetitions",
			Syntax:     "key options:[count [WITHVALUES]]",
		}, Run: hrandfield, Fields: keyspace.FieldsSwept},
		{Facts: protocol.Facts{
			Name: "hscan", Arity: -3, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "2.8.0", Tips: "nondeterministic_output",
			Complexity: "O(C), C is COUNT; O(N) for a whole iteration, N fields of the hash",
			Summary:    "Iterate over the fields of a hash in steps of about COUNT",
			Syntax:     "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
		}, Run: hscan, Fields: keyspace.FieldsHidden},
		{Facts: protocol.Facts{
			Name: "hset", Arity: -4, Flags: "write denyoom fast", Keys: "1 RW update",
			Group: "hash", Since: "2.0.0",
			Complexity: "O(N), N fields given; times log D in a hash with D deadlines",
			Summary:    "Write the values of fields",
			Syntax:     "key data:(field value)...",
			History:    []string{"4.0.0 Several pairs of `field` and `value`"},
		}, Element: 2, Run: hset},
		{Facts: protocol.Facts{
			Name: "hsetnx", Arity: 4, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Write the value of field if the hash lacks it",
			Syntax:  "key field value",
		}, Run: hsetnx, Fields: keyspace.FieldsWritten},
		{Facts: protocol.Facts{
			Name: "hstrlen", Arity: 3, Flags: "readonly fast", Keys: "1 RO",
			Group: "hash", Since: "3.2.0", Complexity: "O(1)",
			Summary: "Length of the value of field in bytes",
			Syntax:  "key field",
		}, Named: 2, Run: hstrlen, Fields: keyspace.FieldsRead},
		{Facts: protocol.Facts{
			Name: "hvals", Arity: 2, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N), N fields of the hash",
			Summary:    "All values of a hash",
			Syntax:     "key",
		}, Run: hvals, Batching: engine.BatchAlways, Fields: keyspace.FieldsHidden},
	}
}

func hset(c *engine.Call) {
	if n, ok := hsetPairs(c); ok {
		c.Reply.Int(int64(n))
	}
}

func hmset(c *engine.Call) {
	if _, ok := hsetPairs(c); ok {
		c.Reply.OK()
	}
}

// hashRef is a hash that is open for changing through its entry. A handler that
// needs other methods uses edit.
type hashRef struct{ engine.InPlace[keyspace.Hash] }

// editHash opens a hash for writing and does not unpack it.
func editHash(c *engine.Call, key []byte) (hashRef, bool) {
	d, ok := engine.Open[keyspace.Hash](c, key)
	return hashRef{d}, ok
}

// createHash opens a hash for writing, or adds an empty one. It allocates room bytes for pairs,
// and those for the pairs in the remaining arguments.
func createHash(c *engine.Call, key []byte, room int) (d hashRef, ok bool) {
	if d, ok = editHash(c, key); d.Entry != nil || !ok {
		return d, ok
	}
	for i := 0; i+1 < c.Len(); i += 2 {
		room += keyspace.PairSize(c.Peek(i), c.Peek(i+1))
	}
	d.Entry = c.DB.AddHash(key, room)
	c.Edited = append(c.Edited, engine.Opened{Entry: d.Entry, Created: true})
	return d, true
}

// set is [keyspace.DB.SetField].
func (d *hashRef) set(field, value []byte) (added bool) {
	e, added := d.Call.DB.SetField(d.Entry, field, value)
	d.Replaced(e)
	return added
}

// delete is [keyspace.DB.DeleteField].
func (d *hashRef) delete(field []byte) bool {
	e, deleted := d.Call.DB.DeleteField(d.Entry, field)
	d.Replaced(e)
	return deleted
}

// hsetPairs sets the fields in the arguments and returns the number of new ones.
func hsetPairs(c *engine.Call) (added int, ok bool) {
	key := c.Bytes()
	if c.Len()%2 != 0 {
		c.Reply.Error(engine.WrongArity(c.Command.Name))
		return 0, false
	}
	d, ok := createHash(c, key, 0)
	if !ok {
		return 0, false
	}
	for c.More() {
		field, value := c.Bytes(), c.Bytes()
		if d.set(field, value) {
			added++
		} else if h := d.Value(); h.Deadlines() != nil {
			h.SetDeadlineBytes(field, 0)
		}
		c.TouchedOnce(engine.ClassHash, field)
	}
	c.Changed(key, engine.ClassHash, "hset")
	return added, true
}

func hsetnx(c *engine.Call) {
	key, field, value := c.Bytes(), c.Bytes(), c.Bytes()
	d, ok := createHash(c, key, keyspace.PairSize(field, value))
	if !ok {
		return
	}
	if _, there := d.Value().Get(field); there {
		c.Reply.Int(0)
		return
	}
	d.set(field, value)
	c.Touched(engine.ClassHash, field)
	c.Changed(key, engine.ClassHash, "hset")
	c.Reply.Int(1)
}

func hget(c *engine.Call) {
	h, ok := engine.Read[keyspace.Hash](c, c.Bytes())
	if ok {
		hashValue(c, h, c.Bytes())
	}
}

func hmget(c *engine.Call) {
	h, ok := engine.Read[keyspace.Hash](c, c.Bytes())
	if !ok {
		return
	}
	c.Reply.Array(c.Len())
	for c.More() {
		hashValue(c, h, c.Bytes())
	}
}

// hashValue replies the value of a field, or null.
func hashValue(c *engine.Call, h *keyspace.Hash, field []byte) {
	if h != nil {
		if value, there := h.Get(field); there {
			c.Reply.BulkString(value)
			return
		}
	}
	c.Reply.Null()
}

func hstrlen(c *engine.Call) {
	h, ok := engine.Read[keyspace.Hash](c, c.Bytes())
	if !ok {
		return
	}
	n := 0
	if h != nil {
		value, _ := h.Get(c.Bytes())
		n = len(value)
	}
	c.Reply.Int(int64(n))
}

func hexists(c *engine.Call) {
	h, ok := engine.Read[keyspace.Hash](c, c.Bytes())
	if !ok {
		return
	}
	if h != nil {
		if _, there := h.Get(c.Bytes()); there {
			c.Reply.Int(1)
			return
		}
	}
	c.Reply.Int(0)
}

func hlen(c *engine.Call) {
	h, ok := engine.Read[keyspace.Hash](c, c.Bytes())
	switch {
	case !ok:
	case h == nil:
		c.Reply.Int(0)
	default:
		c.Reply.Int(int64(h.Len()))
	}
}

func hdel(c *engine.Call) {
	key := c.Bytes()
	d, ok := editHash(c, key)
	switch {
	case !ok:
		return
	case d.Entry == nil:
		c.Reply.Int(0)
		return
	}
	deleted := 0
	for c.More() {
		if field := c.Bytes(); d.delete(field) {
			deleted++
			c.Touched(engine.ClassHash, field)
		}
	}
	if deleted > 0 {
		c.Changed(key, engine.ClassHash, "hdel")
	}
	c.Reply.Int(int64(deleted))
}

func hgetall(c *engine.Call) {
	h, ok := engine.Read[keyspace.Hash](c, c.Bytes())
	if !ok {
		return
	}
	if h == nil {
		c.Reply.Map(0)
		return
	}
	c.Reply.Map(h.Len())
	for field, value := range h.All() {
		c.Reply.BulkString(field)
		c.Reply.BulkString(value)
	}
}

func hkeys(c *engine.Call) { hashList(c, func(field, _ string) string { return field }) }
func hvals(c *engine.Call) { hashList(c, func(_, value string) string { return value }) }

func hashList(c *engine.Call, part func(field, value string) string) {
	h, ok := engine.Read[keyspace.Hash](c, c.Bytes())
	if !ok {
		return
	}
	if h == nil {
		c.Reply.Array(0)
		return
	}
	c.Reply.Array(h.Len())
	for field, value := range h.All() {
		c.Reply.BulkString(part(field, value))
	}
}

func hincrby(c *engine.Call) {
	key, field, by := c.Bytes(), c.Bytes(), c.Int()
	if !c.OK() {
		return
	}
	const longest = "-9223372036854775808"
	d, ok := createHash(c, key, keyspace.PairSize(field, protocol.BytesOf(longest)))
	if !ok {
		return
	}
	n := int64(0)
	if value, there := d.Value().Get(field); there {
		if n, ok = protocol.ParseInt(protocol.BytesOf(value)); !ok {
			c.Reply.Error("ERR hash value is not an integer")
			return
		}
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		c.Reply.Error("ERR increment or decrement would overflow")
		return
	}
	var digits [len(longest)]byte
	d.set(field, strconv.AppendInt(digits[:0], n+by, 10))
	c.Touched(engine.ClassHash, field)
	c.Changed(key, engine.ClassHash, "hincrby")
	c.Reply.Int(n + by)
}

func hincrbyfloat(c *engine.Call) {
	key, field, text := c.Bytes(), c.Bytes(), c.Bytes()
	by, valid := longdouble.Parse(text)
	switch {
	case !valid:
		c.Fail(protocol.ErrNotFloat)
	case by.IsInf():
		c.Fail("ERR value is NaN or Infinity")
	}
	if !c.OK() {
		return
	}
	d, ok := createHash(c, key, keyspace.PairSize(field, text))
	if !ok {
		return
	}
	if value, there := d.Value().Get(field); there {
		x, valid := longdouble.Parse(protocol.BytesOf(value))
		if !valid {
			c.Reply.Error("ERR hash value is not a float")
			return
		}
		if by, valid = longdouble.Add(x, by); !valid {
			c.Reply.Error(errNotFinite)
			return
		}
	}
	result := longdouble.Format(by)
	d.set(field, result)
	c.Touched(engine.ClassHash, field)
	c.Changed(key, engine.ClassHash, "hincrbyfloat")
	c.Reply.Bulk(result)
}

func hrandfield(c *engine.Call) {
	key := c.Bytes()
	single := c.Len() == 0
	n, withValues := int64(1), false
	if !single {
		n = c.Int()
		if n == math.MinInt64 {
			c.Fail("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
		}
		withValues = c.Is("WITHVALUES")
		if c.Len() == 0 && withValues && (n > math.MaxInt64/2 || n < -math.MaxInt64/2) {
			c.Fail("ERR value is out of range")
		}
	}
	if !c.End() {
		return
	}
	h, ok := engine.Read[keyspace.Hash](c, key)
	switch {
	case !ok:
		return
	case h == nil && single:
		c.Reply.Null()
		return
	case h == nil || n == 0:
		c.Reply.Array(0)
		return
	case single:
		field := randomField(c, h)
		c.Reply.BulkString(field)
		return
	case n < -maxRepeats:
		c.Reply.Error("ERR value is out of range")
		return
	}
	one := func(field, value string) {
		if withValues && c.Reply.Version() == 3 {
			c.Reply.Array(2)
		}
		c.Reply.BulkString(field)
		if withValues {
			c.Reply.BulkString(value)
		}
	}
	length := -n
	if n > 0 {
		length = min(n, int64(h.Len()))
	}
	w := parseRepeatLimit(c)
	if withValues && c.Reply.Version() == 2 {
		c.Reply.Array(int(2 * length))
	} else {
		c.Reply.Array(int(length))
	}
	if n > 0 {
		sampleFields(c, h, int(length), one)
		return
	}
	draw := randomFields(c, h)
	for range length {
		if one(draw()); w.tooLong() {
			return
		}
	}
}

func hscan(c *engine.Call) {
	key, cursor := c.Bytes(), cursor(c)
	if !c.OK() {
		return
	}
	h, ok := engine.Read[keyspace.Hash](c, key)
	if !ok {
		return
	}
	if h == nil {
		c.Reply.Array(2)
		c.Reply.BulkString("0")
		c.Reply.Array(0)
		return
	}
	o, noValues := scanOptions{count: 10}, false
	for c.More() {
		switch {
		case c.Is("NOVALUES"):
			noValues = true
		case !o.read(c):
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.OK() {
		return
	}
	var found []string
	next := h.Scan(cursor, o.count, func(field, value string) {
		if o.Match(protocol.BytesOf(field)) {
			if found = append(found, field); !noValues {
				found = append(found, value)
			}
		}
	})
	c.Reply.Array(2)
	c.Reply.BulkString(strconv.FormatUint(next, 10))
	c.Reply.Array(len(found))
	for _, s := range found {
		c.Reply.BulkString(s)
	}
}
