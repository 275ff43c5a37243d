package data

import (
	"bytes"
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
)

// ListCommands returns the rows of the list commands.
func ListCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "blmove", Arity: 6, Flags: "write denyoom blocking", Keys: "1 RW access delete; 2 RW insert",
			Group: "list", Since: "6.2.0", Complexity: "O(1)",
			Summary: "As LMOVE, and wait up to timeout seconds for an element",
			Syntax:  "source destination wherefrom:LEFT|RIGHT whereto:LEFT|RIGHT timeout",
		}, Run: blmove},
		{Facts: protocol.Facts{
			Name: "blmovem", Arity: -6, Flags: "write denyoom blocking", Keys: "1 RW access delete; 2 RW insert",
			Group: "list", Since: "8.10.0", Complexity: "O(N), N elements moved",
			Summary: "As LMOVEM, and wait up to timeout seconds for the elements",
			Syntax:  "source destination wherefrom:LEFT|RIGHT whereto:LEFT|RIGHT timeout how-many:[selector:(COUNT count | EXACTLY exactly:integer) ordering:OBO|BULK]",
		}, Run: blmovem},
		{Facts: protocol.Facts{
			Name: "blmpop", Arity: -5, Flags: "write blocking", Keys: "2# RW access delete",
			Group: "list", Since: "7.0.0",
			Complexity: "O(K + M), K keys, M elements returned",
			Summary:    "As LMPOP, and wait up to timeout seconds for an element",
			Syntax:     "timeout numkeys key [key ...] where:LEFT|RIGHT [COUNT count]",
		}, Run: blmpop},
		{Facts: protocol.Facts{
			Name: "blpop", Arity: -3, Flags: "write blocking", Keys: "1..-2 RW access delete",
			Group: "list", Since: "2.0.0", Complexity: "O(K), K keys",
			Summary: "Remove the first element of the first list with elements, and wait up to timeout seconds for one",
			Syntax:  "key [key ...] timeout",
			History: []string{"6.0.0 `timeout` with a fraction"},
		}, Run: blpop},
		{Facts: protocol.Facts{
			Name: "brpop", Arity: -3, Flags: "write blocking", Keys: "1..-2 RW access delete",
			Group: "list", Since: "2.0.0", Complexity: "O(K), K keys",
			Summary: "Remove the last element of the first list with elements, and wait up to timeout seconds for one",
			Syntax:  "key [key ...] timeout",
			History: []string{"6.0.0 `timeout` with a fraction"},
		}, Run: brpop},
		{Facts: protocol.Facts{
			Name: "brpoplpush", Arity: 4, Flags: "write denyoom blocking",
			Keys:  "1 RW access delete; 2 RW insert",
			Group: "list", Since: "2.2.0", Deprecated: "6.2.0", ReplacedBy: "`BLMOVE source destination RIGHT LEFT timeout`",
			Complexity: "O(1)",
			Summary:    "As RPOPLPUSH, and wait up to timeout seconds for an element",
			Syntax:     "source destination timeout",
			History:    []string{"6.0.0 `timeout` with a fraction"},
		}, Run: brpoplpush},
		{Facts: protocol.Facts{
			Name: "lindex", Arity: 3, Flags: "readonly", Keys: "1 RO access",
			Group: "list", Since: "1.0.0",
			Complexity: "O(N), N chunks of 4 KB between index and the nearer end",
			Summary:    "Read the element at index",
			Syntax:     "key index",
		}, Run: lindex},
		{Facts: protocol.Facts{
			Name: "linsert", Arity: 5, Flags: "write denyoom", Keys: "1 RW insert",
			Group: "list", Since: "2.2.0",
			Complexity: "O(N), N elements up to pivot",
			Summary:    "Insert an element before or after the first one that equals pivot",
			Syntax:     "key where:BEFORE|AFTER pivot element",
		}, Run: linsert},
		{Facts: protocol.Facts{
			Name: "llen", Arity: 2, Flags: "readonly fast", Keys: "1 RO",
			Group: "list", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Number of elements of a list",
			Syntax:  "key",
		}, Run: llen},
		{Facts: protocol.Facts{
			Name: "lmove", Arity: 5, Flags: "write denyoom", Keys: "1 RW access delete; 2 RW insert",
			Group: "list", Since: "6.2.0", Complexity: "O(1)",
			Summary: "Move an element from an end of one list to an end of another, or of the same one",
			Syntax:  "source destination wherefrom:LEFT|RIGHT whereto:LEFT|RIGHT",
		}, Run: lmove},
		{Facts: protocol.Facts{
			Name: "lmovem", Arity: -5, Flags: "write denyoom", Keys: "1 RW access delete; 2 RW insert",
			Group: "list", Since: "8.10.0", Complexity: "O(N), N elements moved",
			Summary: "Move elements from an end of one list to an end of another, or of the same one",
			Syntax:  "source destination wherefrom:LEFT|RIGHT whereto:LEFT|RIGHT how-many:[selector:(COUNT count | EXACTLY exactly:integer) ordering:OBO|BULK]",
		}, Run: lmovem},
		{Facts: protocol.Facts{
			Name: "lmpop", Arity: -4, Flags: "write", Keys: "1# RW access delete",
			Group: "list", Since: "7.0.0",
			Complexity: "O(K + M), K keys, M elements returned",
			Summary:    "Remove up to count elements from an end of the first list that has any",
			Syntax:     "numkeys key [key ...] where:LEFT|RIGHT [COUNT count]",
		}, Run: lmpop},
		{Facts: protocol.Facts{
			Name: "lpop", Arity: -2, Flags: "write fast", Keys: "1 RW access delete",
			Group: "list", Since: "1.0.0", Complexity: "O(N), N elements returned",
			Summary: "Remove elements from the beginning of a list",
			Syntax:  "key [count@6.2.0]",
			History: []string{"6.2.0 `count`"},
		}, Run: lpop},
		{Facts: protocol.Facts{
			Name: "lpos", Arity: -3, Flags: "readonly", Keys: "1 RO access",
			Group: "list", Since: "6.0.6",
			Complexity: "O(N), N elements compared, at most MAXLEN",
			Summary:    "Indexes of the elements that equal element",
			Syntax:     "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
		}, Run: lpos},
		{Facts: protocol.Facts{
			Name: "lpush", Arity: -3, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "list", Since: "1.0.0",
			Complexity: "O(N), N elements given",
			Summary:    "Add elements to the beginning of a list, one after the other",
			Syntax:     "key element [element ...]",
			History:    []string{"2.4.0 Several elements"},
		}, Run: lpush},
		{Facts: protocol.Facts{
			Name: "lpushx", Arity: -3, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "list", Since: "2.2.0",
			Complexity: "O(N), N elements given",
			Summary:    "As LPUSH, for a list that exists",
			Syntax:     "key element [element ...]",
			History:    []string{"4.0.0 Several elements"},
		}, Run: lpushx},
		{Facts: protocol.Facts{
			Name: "lrange", Arity: 4, Flags: "readonly", Keys: "1 RO access",
			Group: "list", Since: "1.0.0",
			Complexity: "O(S + N), S chunks of 4 KB between start and the nearer end, N elements returned",
			Summary:    "Read the elements from start to stop",
			Syntax:     "key start stop",
		}, Run: lrange},
		{Facts: protocol.Facts{
			Name: "lrem", Arity: 4, Flags: "write", Keys: "1 RW delete",
			Group: "list", Since: "1.0.0",
			Complexity: "O(N), N elements of the list",
			Summary:    "Remove up to count elements that equal element, from either end, or all of them",
			Syntax:     "key count element",
		}, Run: lrem},
		{Facts: protocol.Facts{
			Name: "lset", Arity: 4, Flags: "write denyoom", Keys: "1 RW update",
			Group: "list", Since: "1.0.0",
			Complexity: "O(N), N chunks of 4 KB between index and the nearer end",
			Summary:    "Replace the element at index",
			Syntax:     "key index element",
		}, Run: lset},
		{Facts: protocol.Facts{
			Name: "ltrim", Arity: 4, Flags: "write", Keys: "1 RW delete",
			Group: "list", Since: "1.0.0",
			Complexity: "O(N), N elements removed",
			Summary:    "Remove all elements except those from start to stop",
			Syntax:     "key start stop",
		}, Run: ltrim},
		{Facts: protocol.Facts{
			Name: "rpop", Arity: -2, Flags: "write fast", Keys: "1 RW access delete",
			Group: "list", Since: "1.0.0", Complexity: "O(N), N elements returned",
			Summary: "Remove elements from the end of a list",
			Syntax:  "key [count@6.2.0]",
			History: []string{"6.2.0 `count`"},
		}, Run: rpop},
		{Facts: protocol.Facts{
			Name: "rpoplpush", Arity: 3, Flags: "write denyoom", Keys: "1 RW access delete; 2 RW insert",
			Group: "list", Since: "1.2.0", Deprecated: "6.2.0", ReplacedBy: "`LMOVE source destination RIGHT LEFT`",
			Complexity: "O(1)",
			Summary:    "Move the last element of one list to the beginning of another",
			Syntax:     "source destination",
		}, Run: rpoplpush},
		{Facts: protocol.Facts{
			Name: "rpush", Arity: -3, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "list", Since: "1.0.0",
			Complexity: "O(N), N elements given",
			Summary:    "Add elements to the end of a list",
			Syntax:     "key element [element ...]",
			History:    []string{"2.4.0 Several elements"},
		}, Run: rpush},
		{Facts: protocol.Facts{
			Name: "rpushx", Arity: -3, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "list", Since: "2.2.0",
			Complexity: "O(N), N elements given",
			Summary:    "As RPUSH, for a list that exists",
			Syntax:     "key element [element ...]",
			History:    []string{"4.0.0 Several elements"},
		}, Run: rpushx},
	}
}

// side is an end of a list.
type side uint8

const (
	left side = iota
	right
)

// parseSide reads LEFT or RIGHT.
func parseSide(c *engine.Call) side {
	switch {
	case c.Is("LEFT"):
		return left
	case !c.Is("RIGHT"):
		c.Fail(protocol.ErrSyntax)
	}
	return right
}

func (s side) push(l *sequence.List, b []byte) {
	if s == left {
		l.PushFront(b)
	} else {
		l.PushBack(b)
	}
}

func (s side) pop(l *sequence.List) []byte {
	if s == left {
		return l.PopFront()
	}
	return l.PopBack()
}

func (s side) pushed() string {
	if s == left {
		return "lpush"
	}
	return "rpush"
}

func (s side) popped() string {
	if s == left {
		return "lpop"
	}
	return "rpop"
}

// blmove is BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout.
func blmove(c *engine.Call) {
	source, destination := c.Bytes(), c.Bytes()
	moveOrWait(c, source, destination, listMove{parseSide(c), parseSide(c), 0})
}

// moveOrWait reads the timeout, then moves an element as soon as there is one.
func moveOrWait(c *engine.Call, source, destination []byte, m listMove) {
	deadline := c.Deadline()
	if !c.OK() || m.element(c, source, destination) {
		return
	}
	c.Wait(deadline, keyspace.KindList, moveTimeout(c), source)
}

// moveTimeout returns what replies at the timeout of BLMOVE. As in Redis the reply is a null array
// after a timeout, but a plain null in MULTI.
func moveTimeout(c *engine.Call) func(*protocol.Reply) {
	if c.MayBlock() {
		return (*protocol.Reply).NullArray
	}
	return (*protocol.Reply).Null
}

// listMove is a move of an element from an end of a list to an end of another, or of the same one.
type listMove struct {
	from, to side
	name     sequence.Move // Rpoplpush, or 0
}

// how returns the move as replicas learn it.
func (m listMove) how() byte {
	how := m.name
	if m.from == right {
		how |= sequence.FromBack
	}
	if m.to == right {
		how |= sequence.ToBack
	}
	return byte(how)
}

// element moves an element, and replies it. It returns false, without a reply, if the source
// does not exist.
func (m listMove) element(c *engine.Call, source, destination []byte) bool {
	src, ok := engine.Edit[sequence.List](c, source)
	if src == nil {
		return !ok
	}
	if _, ok = engine.Edit[sequence.List](c, destination); !ok {
		return true
	}
	if c.Keys().Following() {
		c.Keys().Note(keyspace.ChangeMove, c.DB.ID(), source, destination, m.how())
	}
	b := m.from.pop(src)
	dst, _ := engine.Create[sequence.List](c, destination)
	if dst == src {
		b = bytes.Clone(b)
	}
	m.to.push(dst, b)
	dst.Fit(c.Limits().ListMaxListpackSize)
	c.Changed(destination, engine.ClassList, m.to.pushed())
	src.Fit(c.Limits().ListMaxListpackSize)
	c.Followed(source, engine.ClassList, m.from.popped())
	c.Reply.Bulk(b)
	return true
}

// blmpop is BLMPOP timeout numkeys key [key ...] LEFT|RIGHT [COUNT count].
func blmpop(c *engine.Call) {
	timeout := c.Args // read last, as in Redis
	c.Skip(1)
	o := parseMpopOptions(c)
	var deadline int64
	if c.Err() == "" {
		c.Args = timeout
		deadline = c.Deadline()
	}
	if c.OK() && !o.pop(c) {
		c.Wait(deadline, keyspace.KindList, (*protocol.Reply).NullArray, o.keys...)
	}
}

// mpopOptions are the arguments of LMPOP.
type mpopOptions struct {
	keys  [][]byte
	from  side
	count int64
}

func parseMpopOptions(c *engine.Call) mpopOptions {
	n := c.IntIn(1, math.MaxInt64, "ERR numkeys should be greater than 0")
	o := mpopOptions{keys: c.NextN(int(n)), from: parseSide(c), count: 1}
	if c.Len() >= 2 && c.Is("COUNT") {
		o.count = c.IntIn(1, math.MaxInt64, "ERR count should be greater than 0")
	}
	if c.Len() > 0 {
		c.Fail(protocol.ErrSyntax)
	}
	return o
}

// pop pops from the first list that exists and replies, or returns false.
func (o *mpopOptions) pop(c *engine.Call) bool {
	for _, key := range o.keys {
		l, ok := engine.Edit[sequence.List](c, key)
		if !ok {
			return true
		}
		if l != nil {
			c.Reply.Array(2)
			c.Reply.Bulk(key)
			popRange(c, key, l, o.from, o.count)
			return true
		}
	}
	return false
}

// popRange pops up to count elements and replies them as an array.
func popRange(c *engine.Call, key []byte, l *sequence.List, from side, count int64) {
	n := int(min(count, int64(l.Len())))
	c.Reply.Array(n)
	if n == 0 {
		return
	}
	start, left := 0, n
	if from == right {
		start = l.Len() - n
		for b := range l.Backward(l.Len() - 1) {
			c.Reply.Bulk(b)
			if left--; left == 0 {
				break
			}
		}
	} else {
		for b := range l.Forward(0) {
			c.Reply.Bulk(b)
			if left--; left == 0 {
				break
			}
		}
	}
	l.Delete(start, n)
	l.Fit(c.Limits().ListMaxListpackSize)
	c.Changed(key, engine.ClassList, from.popped())
}

// blpop is BLPOP key [key ...] timeout.
func blpop(c *engine.Call) { popOrWait(c, left) }

// brpop is BRPOP key [key ...] timeout.
func brpop(c *engine.Call) { popOrWait(c, right) }

func popOrWait(c *engine.Call, from side) {
	keys := c.NextN(c.Len() - 1)
	deadline := c.Deadline()
	if !c.OK() {
		return
	}
	for _, key := range keys {
		l, ok := engine.Edit[sequence.List](c, key)
		if !ok {
			return
		}
		if l != nil {
			b := from.pop(l)
			l.Fit(c.Limits().ListMaxListpackSize)
			c.Changed(key, engine.ClassList, from.popped())
			c.Reply.Array(2)
			c.Reply.Bulk(key)
			c.Reply.Bulk(b)
			return
		}
	}
	c.Wait(deadline, keyspace.KindList, (*protocol.Reply).NullArray, keys...)
}

// brpoplpush is BRPOPLPUSH source destination timeout.
func brpoplpush(c *engine.Call) {
	source, destination := c.Bytes(), c.Bytes()
	moveOrWait(c, source, destination, listMove{right, left, sequence.Rpoplpush})
}

// lindex is LINDEX key index.
func lindex(c *engine.Call) {
	key := c.Bytes()
	l, ok := engine.Read[sequence.List](c, key)
	if !ok {
		return
	}
	if l == nil { // without a key Redis does not check the index
		c.Reply.Null()
		return
	}
	i := c.Int()
	if !c.OK() {
		return
	}
	if i, ok := index(i, l.Len()); ok {
		c.Reply.Bulk(l.At(i))
	} else {
		c.Reply.Null()
	}
}

// index converts an index that may count from the end into one that counts from the
// start. It reports whether that is within n elements.
func index(i int64, n int) (int, bool) {
	if i < 0 {
		i += int64(n)
	}
	return int(i), 0 <= i && i < int64(n)
}

// linsert is LINSERT key BEFORE|AFTER pivot element.
func linsert(c *engine.Call) {
	key := c.Bytes()
	after := 0
	if c.Is("AFTER") {
		after = 1
	} else if !c.Is("BEFORE") {
		c.Fail(protocol.ErrSyntax)
	}
	pivot, b := c.Bytes(), c.Bytes()
	if !c.OK() {
		return
	}
	l, ok := engine.Edit[sequence.List](c, key)
	if !ok {
		return
	}
	if l == nil {
		c.Reply.Int(0)
		return
	}
	l.Expect(len(b), c.Limits().ListMaxListpackSize)
	i := 0
	for e := range l.Forward(0) {
		if bytes.Equal(e, pivot) {
			break
		}
		i++
	}
	if i == l.Len() {
		c.Reply.Int(-1)
		return
	}
	l.Insert(i+after, b)
	l.Fit(c.Limits().ListMaxListpackSize)
	c.Changed(key, engine.ClassList, "linsert")
	c.Reply.Int(int64(l.Len()))
}

// llen is LLEN key.
func llen(c *engine.Call) {
	key := c.Bytes()
	if l, ok := engine.Read[sequence.List](c, key); ok {
		if l == nil {
			c.Reply.Int(0)
		} else {
			c.Reply.Int(int64(l.Len()))
		}
	}
}

// lmove is LMOVE source destination LEFT|RIGHT LEFT|RIGHT.
func lmove(c *engine.Call) {
	source, destination := c.Bytes(), c.Bytes()
	m := listMove{parseSide(c), parseSide(c), 0}
	if c.OK() && !m.element(c, source, destination) {
		c.Reply.Null()
	}
}

// lmpop is LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count].
func lmpop(c *engine.Call) {
	o := parseMpopOptions(c)
	if c.OK() && !o.pop(c) {
		c.Reply.NullArray()
	}
}

// lpop is LPOP key [count].
func lpop(c *engine.Call) { pop(c, left) }

// rpop is RPOP key [count].
func rpop(c *engine.Call) { pop(c, right) }

func pop(c *engine.Call, from side) {
	key := c.Bytes()
	single, count := c.Len() == 0, int64(1)
	switch c.Len() {
	case 0:
	case 1:
		count = c.IntIn(0, math.MaxInt64, "ERR value is out of range, must be positive")
	default:
		c.Fail(engine.WrongArity(c.Command.Name))
	}
	if !c.OK() {
		return
	}
	l, ok := engine.Edit[sequence.List](c, key)
	switch {
	case !ok:
	case l == nil && single:
		c.Reply.Null()
	case l == nil:
		c.Reply.NullArray()
	case single:
		c.Reply.Bulk(from.pop(l))
		l.Fit(c.Limits().ListMaxListpackSize)
		c.Changed(key, engine.ClassList, from.popped())
	default:
		popRange(c, key, l, from, count)
	}
}

// lposOptions are the options of LPOS.
type lposOptions struct {
	rank     int64 // of the first match to reply, from 1 on
	backward bool  // searching from the end
	count    int64 // maximum of matches to reply, 0 for all, -1 for one that is not in an array
	maxlen   int64 // maximum of elements to compare
}

func parseLposOptions(c *engine.Call) lposOptions {
	o := lposOptions{rank: 1, count: -1, maxlen: math.MaxInt64}
	for c.More() {
		switch {
		case c.Len() >= 2 && c.Is("RANK"):
			o.rank = negatableInt(c)
			if o.rank == 0 {
				c.Fail("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ..." +
					" or use negative to start from the end of the list")
			}
		case c.Len() >= 2 && c.Is("COUNT"):
			o.count = c.IntIn(0, math.MaxInt64, "ERR COUNT can't be negative")
		case c.Len() >= 2 && c.Is("MAXLEN"):
			if o.maxlen = c.IntIn(0, math.MaxInt64, "ERR MAXLEN can't be negative"); o.maxlen == 0 {
				o.maxlen = math.MaxInt64
			}
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	if o.rank < 0 {
		o.rank, o.backward = -o.rank, true
	}
	return o
}

// negatableInt reads an integer that can be negated.
func negatableInt(c *engine.Call) int64 {
	n := c.Int()
	if n == math.MinInt64 {
		c.Fail(errLowest)
	}
	return n
}

// lpos is LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len].
func lpos(c *engine.Call) {
	key, b := c.Bytes(), c.Bytes()
	o := parseLposOptions(c)
	if !c.OK() {
		return
	}
	l, ok := engine.Read[sequence.List](c, key)
	if !ok {
		return
	}
	if l == nil {
		l = new(sequence.List)
	}
	found := o.search(l, b)
	switch {
	case o.count >= 0:
		c.Reply.Array(len(found))
		for _, i := range found {
			c.Reply.Int(int64(i))
		}
	case len(found) > 0:
		c.Reply.Int(int64(found[0]))
	default:
		c.Reply.Null()
	}
}

// search returns the indexes of the requested matches.
func (o *lposOptions) search(l *sequence.List, b []byte) (found []int) {
	want, looked, matches := o.count, int64(0), int64(0)
	if want < 0 {
		want = 1
	}
	// look reports whether to continue after element e, number i.
	look := func(e []byte, i int) bool {
		if bytes.Equal(e, b) {
			if matches++; matches >= o.rank {
				found = append(found, i)
			}
		}
		looked++
		return looked < o.maxlen && (want == 0 || int64(len(found)) < want)
	}
	if o.backward {
		i := l.Len()
		for e := range l.Backward(i - 1) {
			if i--; !look(e, i) {
				break
			}
		}
		return found
	}
	i := 0
	for e := range l.Forward(0) {
		if !look(e, i) {
			break
		}
		i++
	}
	return found
}

// lpush is LPUSH key element [element ...].
func lpush(c *engine.Call) { push(c, left, false) }

// lpushx is LPUSHX key element [element ...].
func lpushx(c *engine.Call) { push(c, left, true) }

// push adds the elements; if existing is true, only to a key that exists.
func push(c *engine.Call, to side, existing bool) {
	key, elements := c.Bytes(), c.Rest()
	open := engine.Create[sequence.List]
	if existing {
		open = engine.Edit[sequence.List]
	}
	l, ok := open(c, key)
	if !ok {
		return
	}
	if l == nil {
		c.Reply.Int(0)
		return
	}
	for _, b := range elements {
		to.push(l, b)
	}
	l.Fit(c.Limits().ListMaxListpackSize)
	c.Changed(key, engine.ClassList, to.pushed())
	c.Reply.Int(int64(l.Len()))
}

// lrange is LRANGE key start stop.
func lrange(c *engine.Call) {
	key, start, stop := c.Bytes(), c.Int(), c.Int()
	if !c.OK() {
		return
	}
	l, ok := engine.Read[sequence.List](c, key)
	if !ok {
		return
	}
	first, n := 0, 0
	if l != nil {
		first, n = span(start, stop, l.Len())
	}
	c.Reply.Array(n)
	if n == 0 {
		return
	}
	for b := range l.Forward(first) {
		c.Reply.Bulk(b)
		if n--; n == 0 {
			break
		}
	}
}

// span converts a range of indexes, which may count from the end and may be out of
// range, into the first index and the number of elements within n.
func span(start, stop int64, n int) (first, count int) {
	if start < 0 {
		start = max(start+int64(n), 0)
	}
	if stop < 0 {
		stop += int64(n)
	}
	stop = min(stop, int64(n)-1)
	if start > stop {
		return 0, 0
	}
	return int(start), int(stop-start) + 1
}

// errLowest is the error for the lowest integer where its absolute value is needed.
const errLowest = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"

// lrem is LREM key count element.
func lrem(c *engine.Call) {
	key, count, b := c.Bytes(), c.Int(), c.Bytes()
	if count == math.MinInt64 {
		c.Fail(errLowest)
	}
	if !c.OK() {
		return
	}
	l, ok := engine.Edit[sequence.List](c, key)
	if !ok {
		return
	}
	n := 0
	if l != nil {
		n = l.Remove(b, int(count))
	}
	if n > 0 {
		l.Fit(c.Limits().ListMaxListpackSize)
		c.Changed(key, engine.ClassList, "lrem")
	}
	c.Reply.Int(int64(n))
}

// lset is LSET key index element.
func lset(c *engine.Call) {
	key := c.Bytes()
	l, ok := engine.Edit[sequence.List](c, key)
	if !ok {
		return
	}
	if l == nil { // without a key Redis does not check the index
		c.Reply.Error(engine.ErrNoSuchKey)
		return
	}
	at, b := c.Int(), c.Bytes()
	if !c.OK() {
		return
	}
	l.Expect(len(b), c.Limits().ListMaxListpackSize)
	i, ok := index(at, l.Len())
	if !ok {
		c.Reply.Error("ERR index out of range")
		return
	}
	l.Set(i, b)
	l.Fit(c.Limits().ListMaxListpackSize)
	c.Changed(key, engine.ClassList, "lset")
	c.Reply.OK()
}

// ltrim is LTRIM key start stop.
func ltrim(c *engine.Call) {
	key, start, stop := c.Bytes(), c.Int(), c.Int()
	if !c.OK() {
		return
	}
	l, ok := engine.Edit[sequence.List](c, key)
	if !ok {
		return
	}
	if l != nil {
		first, n := span(start, stop, l.Len())
		l.Delete(first+n, l.Len()-first-n)
		l.Delete(0, first)
		l.Fit(c.Limits().ListMaxListpackSize)
		c.Changed(key, engine.ClassList, "ltrim")
	}
	c.Reply.OK()
}

// rpoplpush is RPOPLPUSH source destination.
func rpoplpush(c *engine.Call) {
	source, destination := c.Bytes(), c.Bytes()
	if c.OK() && !(listMove{right, left, sequence.Rpoplpush}).element(c, source, destination) {
		c.Reply.Null()
	}
}

// rpush is RPUSH key element [element ...].
func rpush(c *engine.Call) { push(c, right, false) }

// rpushx is RPUSHX key element [element ...].
func rpushx(c *engine.Call) { push(c, right, true) }
