package server

import (
	"math"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

func hashCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "hdel", Arity: -3, Flags: "write fast", Keys: "1 RW delete",
			Group: "hash", Since: "2.0.0", Complexity: "O(N) where N is the number of fields to be removed.",
			Summary: "Delete one or more hash fields",
			Syntax:  "key field [field ...]",
			History: []string{"2.4.0 Accepts multiple `field` arguments."},
		}, run: hdel},
		{Facts: protocol.Facts{
			Name: "hexists", Arity: 3, Flags: "readonly fast", Keys: "1 RO",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Determine if a hash field exists",
			Syntax:  "key field",
		}, run: hexists},
		{Facts: protocol.Facts{
			Name: "hget", Arity: 3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Get the value of a hash field",
			Syntax:  "key field",
		}, run: hget},
		{Facts: protocol.Facts{
			Name: "hgetall", Arity: 2, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N) where N is the size of the hash.",
			Summary:    "Get all the fields and values in a hash",
			Syntax:     "key",
		}, run: hgetall},
		{Facts: protocol.Facts{
			Name: "hincrby", Arity: 4, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Increment the integer value of a hash field by the given number",
			Syntax:  "key field increment",
		}, run: hincrby},
		{Facts: protocol.Facts{
			Name: "hincrbyfloat", Arity: 4, Flags: "write denyoom fast", Keys: "1 RW access update",
			Group: "hash", Since: "2.6.0", Complexity: "O(1)",
			Summary: "Increment the float value of a hash field by the given amount",
			Syntax:  "key field increment:double",
		}, run: hincrbyfloat},
		{Facts: protocol.Facts{
			Name: "hkeys", Arity: 2, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N) where N is the size of the hash.",
			Summary:    "Get all the fields in a hash",
			Syntax:     "key",
		}, run: hkeys},
		{Facts: protocol.Facts{
			Name: "hlen", Arity: 2, Flags: "readonly fast", Keys: "1 RO",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Get the number of fields in a hash",
			Syntax:  "key",
		}, run: hlen},
		{Facts: protocol.Facts{
			Name: "hmget", Arity: -3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Complexity: "O(N) where N is the number of fields being requested.",
			Summary: "Get the values of all the given hash fields",
			Syntax:  "key field [field ...]",
		}, run: hmget},
		{Facts: protocol.Facts{
			Name: "hmset", Arity: -4, Flags: "write denyoom fast", Keys: "1 RW update",
			Group: "hash", Since: "2.0.0", Deprecated: "4.0.0", ReplacedBy: "`HSET` with multiple field-value pairs",
			Complexity: "O(N) where N is the number of fields being set.",
			Summary:    "Set multiple hash fields to multiple values",
			Syntax:     "key field value [field value ...]",
		}, run: hmset},
		{Facts: protocol.Facts{
			Name: "hrandfield", Arity: -2, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "6.2.0", Tips: "nondeterministic_output",
			Complexity: "O(N) where N is the number of fields returned",
			Summary:    "Get one or multiple random fields from a hash",
			Syntax:     "key options:[count [WITHVALUES]]",
		}, run: hrandfield},
		{Facts: protocol.Facts{
			Name: "hscan", Arity: -3, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "2.8.0", Tips: "nondeterministic_output",
			Complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection..",
			Summary:    "Incrementally iterate hash fields and associated values",
			Syntax:     "key cursor [MATCH pattern] [COUNT count] [NOVALUES@7.4.0]",
			History:    []string{"7.4.0 Added the `NOVALUES` flag."},
		}, run: hscan},
		{Facts: protocol.Facts{
			Name: "hset", Arity: -4, Flags: "write denyoom fast", Keys: "1 RW update",
			Group: "hash", Since: "2.0.0",
			Complexity: "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called with multiple field/value pairs.",
			Summary:    "Set the string value of a hash field",
			Syntax:     "key field value [field value ...]",
			History:    []string{"4.0.0 Accepts multiple `field` and `value` arguments."},
		}, run: hset},
		{Facts: protocol.Facts{
			Name: "hsetnx", Arity: 4, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "hash", Since: "2.0.0", Complexity: "O(1)",
			Summary: "Set the value of a hash field, only if the field does not exist",
			Syntax:  "key field value",
		}, run: hsetnx},
		{Facts: protocol.Facts{
			Name: "hstrlen", Arity: 3, Flags: "readonly fast", Keys: "1 RO",
			Group: "hash", Since: "3.2.0", Complexity: "O(1)",
			Summary: "Get the length of the value of a hash field",
			Syntax:  "key field",
		}, run: hstrlen},
		{Facts: protocol.Facts{
			Name: "hvals", Arity: 2, Flags: "readonly", Keys: "1 RO access",
			Group: "hash", Since: "2.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N) where N is the size of the hash.",
			Summary:    "Get all the values in a hash",
			Syntax:     "key",
		}, run: hvals},
	}
}

func hset(c *Call) {
	if n, ok := c.hsetPairs(); ok {
		c.Reply.Int(int64(n))
	}
}

func hmset(c *Call) {
	if _, ok := c.hsetPairs(); ok {
		c.Reply.OK()
	}
}

// hashRef is a hash that is open for changing through its entry. A handler that
// needs other methods uses edit.
type hashRef struct{ inPlace[keyspace.Hash] }

// editHash is edit for hashRef.
func (c *Call) editHash(key []byte) (hashRef, bool) {
	d, ok := open[keyspace.Hash](c, key)
	return hashRef{d}, ok
}

// createHash is create for hashRef. It allocates room for a field and its value,
// and for the pairs in the remaining arguments.
func (c *Call) createHash(key, field, value []byte) (d hashRef, ok bool) {
	if d, ok = c.editHash(key); d.e != nil || !ok {
		return d, ok
	}
	room := keyspace.PairSize(field, value)
	for i := 0; i+1 < c.Len(); i += 2 {
		room += keyspace.PairSize(c.Peek(i), c.Peek(i+1))
	}
	d.e = c.db.AddHash(key, room)
	c.edited = append(c.edited, opened{d.e, true})
	return d, true
}

// set is [keyspace.DB.SetField].
func (d *hashRef) set(field, value []byte) (added bool) {
	e, added := d.c.db.SetField(d.e, field, value)
	d.replaced(e)
	return added
}

// delete is [keyspace.DB.DeleteField].
func (d *hashRef) delete(field []byte) bool {
	e, deleted := d.c.db.DeleteField(d.e, field)
	d.replaced(e)
	return deleted
}

// hsetPairs sets the fields in the arguments and returns the number of new ones.
func (c *Call) hsetPairs() (added int, ok bool) {
	key := c.Bytes()
	if c.Len()%2 != 0 {
		c.Reply.Error(wrongArity(c.cmd.Name))
		return 0, false
	}
	d, ok := c.createHash(key, nil, nil)
	if !ok {
		return 0, false
	}
	for c.More() {
		field, value := c.Bytes(), c.Bytes()
		if d.set(field, value) {
			added++
		} else if h := d.value(); h.Deadlines() != nil {
			h.SetDeadlineBytes(field, 0)
		}
		c.TouchedOnce(classHash, field)
	}
	c.Changed(key, classHash, "hset")
	return added, true
}

func hsetnx(c *Call) {
	key, field, value := c.Bytes(), c.Bytes(), c.Bytes()
	d, ok := c.createHash(key, field, value)
	if !ok {
		return
	}
	if _, there := d.value().Get(field); there {
		c.Reply.Int(0)
		return
	}
	d.set(field, value)
	c.Touched(classHash, field)
	c.Changed(key, classHash, "hset")
	c.Reply.Int(1)
}

func hget(c *Call) {
	h, ok := read[keyspace.Hash](c, c.Bytes())
	if ok {
		c.hashValue(h, c.Bytes())
	}
}

func hmget(c *Call) {
	h, ok := read[keyspace.Hash](c, c.Bytes())
	if !ok {
		return
	}
	c.Reply.Array(c.Len())
	for c.More() {
		c.hashValue(h, c.Bytes())
	}
}

// hashValue replies the value of a field, or null.
func (c *Call) hashValue(h *keyspace.Hash, field []byte) {
	if h != nil {
		if value, there := h.Get(field); there {
			c.Reply.BulkString(value)
			return
		}
	}
	c.Reply.Null()
}

func hstrlen(c *Call) {
	h, ok := read[keyspace.Hash](c, c.Bytes())
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

func hexists(c *Call) {
	h, ok := read[keyspace.Hash](c, c.Bytes())
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

func hlen(c *Call) {
	h, ok := read[keyspace.Hash](c, c.Bytes())
	switch {
	case !ok:
	case h == nil:
		c.Reply.Int(0)
	default:
		c.Reply.Int(int64(h.Len()))
	}
}

func hdel(c *Call) {
	key := c.Bytes()
	d, ok := c.editHash(key)
	switch {
	case !ok:
		return
	case d.e == nil:
		c.Reply.Int(0)
		return
	}
	deleted := 0
	for c.More() {
		if field := c.Bytes(); d.delete(field) {
			deleted++
			c.Touched(classHash, field)
		}
	}
	if deleted > 0 {
		c.Changed(key, classHash, "hdel")
	}
	c.Reply.Int(int64(deleted))
}

func hgetall(c *Call) {
	h, ok := read[keyspace.Hash](c, c.Bytes())
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

func hkeys(c *Call) { c.hashList(func(field, _ string) string { return field }) }
func hvals(c *Call) { c.hashList(func(_, value string) string { return value }) }

func (c *Call) hashList(part func(field, value string) string) {
	h, ok := read[keyspace.Hash](c, c.Bytes())
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

func hincrby(c *Call) {
	key, field, by := c.Bytes(), c.Bytes(), c.Int()
	if !c.ok() {
		return
	}
	const longest = "-9223372036854775808"
	d, ok := c.createHash(key, field, bytesOf(longest))
	if !ok {
		return
	}
	n := int64(0)
	if value, there := d.value().Get(field); there {
		if n, ok = protocol.ParseInt(bytesOf(value)); !ok {
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
	c.Touched(classHash, field)
	c.Changed(key, classHash, "hincrby")
	c.Reply.Int(n + by)
}

func hincrbyfloat(c *Call) {
	key, field, text := c.Bytes(), c.Bytes(), c.Bytes()
	by, valid := parseLongDouble(text)
	switch {
	case !valid:
		c.Fail(protocol.ErrNotFloat)
	case by.IsInf():
		c.Fail("ERR value is NaN or Infinity")
	}
	if !c.ok() {
		return
	}
	d, ok := c.createHash(key, field, text)
	if !ok {
		return
	}
	if value, there := d.value().Get(field); there {
		x, valid := parseLongDouble(bytesOf(value))
		if !valid {
			c.Reply.Error("ERR hash value is not a float")
			return
		}
		if by, valid = addLongDouble(x, by); !valid {
			c.Reply.Error(errNotFinite)
			return
		}
	}
	result := formatLongDouble(by)
	d.set(field, result)
	c.Touched(classHash, field)
	c.Changed(key, classHash, "hincrbyfloat")
	c.Reply.Bulk(result)
}

func hrandfield(c *Call) {
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
	if !c.end() {
		return
	}
	h, ok := read[keyspace.Hash](c, key)
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
		field, _ := h.Random(c.rand())
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
	w := c.repeatLimit()
	if withValues && c.Reply.Version() == 2 {
		c.Reply.Array(int(2 * length))
	} else {
		c.Reply.Array(int(length))
	}
	if n > 0 {
		h.RandomDistinct(c.rand(), int(length), one)
		return
	}
	for range length {
		if one(h.Random(c.rand())); w.tooLong() {
			return
		}
	}
}

func hscan(c *Call) {
	key, cursor := c.Bytes(), c.cursor()
	if !c.ok() {
		return
	}
	h, ok := read[keyspace.Hash](c, key)
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
	if !c.ok() {
		return
	}
	var found []string
	next := h.Scan(cursor, o.count, func(field, value string) {
		if o.matches(bytesOf(field)) {
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
