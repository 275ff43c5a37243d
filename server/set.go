package server

import (
	"math"
	"slices"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
)

func setCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "sadd", Arity: -3, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "set", Since: "1.0.0",
			Complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
			Summary:    "Add one or more members to a set",
			Syntax:     "key member [member ...]",
			History:    []string{"2.4.0 Accepts multiple `member` arguments."},
		}, run: sadd},
		{Facts: protocol.Facts{
			Name: "scard", Arity: 2, Flags: "readonly fast", Keys: "1 RO",
			Group: "set", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Get the number of members in a set",
			Syntax:  "key",
		}, run: scard},
		{Facts: protocol.Facts{
			Name: "sdiff", Arity: -2, Flags: "readonly", Keys: "1..-1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N) where N is the total number of elements in all given sets.",
			Summary:    "Subtract multiple sets",
			Syntax:     "key [key ...]",
		}, run: sdiff},
		{Facts: protocol.Facts{
			Name: "sdiffstore", Arity: -3, Flags: "write denyoom", Keys: "1 OW update; 2..-1 RO access",
			Group: "set", Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
			Summary: "Subtract multiple sets and store the resulting set in a key",
			Syntax:  "destination key [key ...]",
		}, run: sdiffstore},
		{Facts: protocol.Facts{
			Name: "sinter", Arity: -2, Flags: "readonly", Keys: "1..-1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
			Summary:    "Intersect multiple sets",
			Syntax:     "key [key ...]",
		}, run: sinter},
		{Facts: protocol.Facts{
			Name: "sintercard", Arity: -3, Flags: "readonly", Keys: "1# RO access",
			Group: "set", Since: "7.0.0",
			Complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
			Summary:    "Intersect multiple sets and return the cardinality of the result",
			Syntax:     "numkeys key [key ...] [LIMIT limit]",
		}, run: sintercard},
		{Facts: protocol.Facts{
			Name: "sinterstore", Arity: -3, Flags: "write denyoom", Keys: "1 RW update; 2..-1 RO access",
			Group: "set", Since: "1.0.0",
			Complexity: "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
			Summary:    "Intersect multiple sets and store the resulting set in a key",
			Syntax:     "destination key [key ...]",
		}, run: sinterstore},
		{Facts: protocol.Facts{
			Name: "sismember", Arity: 3, Flags: "readonly fast", Keys: "1 RO",
			Group: "set", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Determine if a given value is a member of a set",
			Syntax:  "key member",
		}, run: sismember},
		{Facts: protocol.Facts{
			Name: "smembers", Arity: 2, Flags: "readonly", Keys: "1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N) where N is the set cardinality.",
			Summary:    "Get all the members in a set",
			Syntax:     "key",
		}, run: smembers},
		{Facts: protocol.Facts{
			Name: "smismember", Arity: -3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "set", Since: "6.2.0", Complexity: "O(N) where N is the number of elements being checked for membership",
			Summary: "Returns the membership associated with the given elements for a set",
			Syntax:  "key member [member ...]",
		}, run: smismember},
		{Facts: protocol.Facts{
			Name: "smove", Arity: 4, Flags: "write fast", Keys: "1 RW access delete; 2 RW insert",
			Group: "set", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Move a member from one set to another",
			Syntax:  "source destination member",
		}, run: smove},
		{Facts: protocol.Facts{
			Name: "spop", Arity: -2, Flags: "write fast", Keys: "1 RW access delete",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output",
			Complexity: "Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
			Summary:    "Remove and return one or multiple random members from a set",
			Syntax:     "key [count@3.2.0]",
			History:    []string{"3.2.0 Added the `count` argument."},
		}, run: spop},
		{Facts: protocol.Facts{
			Name: "srandmember", Arity: -2, Flags: "readonly", Keys: "1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output",
			Complexity: "Without the count argument O(1), otherwise O(N) where N is the absolute value of the passed count.",
			Summary:    "Get one or multiple random members from a set",
			Syntax:     "key [count@2.6.0]",
			History:    []string{"2.6.0 Added the optional `count` argument."},
		}, run: srandmember},
		{Facts: protocol.Facts{
			Name: "srem", Arity: -3, Flags: "write fast", Keys: "1 RW delete",
			Group: "set", Since: "1.0.0", Complexity: "O(N) where N is the number of members to be removed.",
			Summary: "Remove one or more members from a set",
			Syntax:  "key member [member ...]",
			History: []string{"2.4.0 Accepts multiple `member` arguments."},
		}, run: srem},
		{Facts: protocol.Facts{
			Name: "sscan", Arity: -3, Flags: "readonly", Keys: "1 RO access",
			Group: "set", Since: "2.8.0", Tips: "nondeterministic_output",
			Complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection..",
			Summary:    "Incrementally iterate Set elements",
			Syntax:     "key cursor [MATCH pattern] [COUNT count]",
		}, run: sscan},
		{Facts: protocol.Facts{
			Name: "sunion", Arity: -2, Flags: "readonly", Keys: "1..-1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N) where N is the total number of elements in all given sets.",
			Summary:    "Add multiple sets",
			Syntax:     "key [key ...]",
		}, run: sunion},
		{Facts: protocol.Facts{
			Name: "sunionstore", Arity: -3, Flags: "write denyoom", Keys: "1 OW update; 2..-1 RO access",
			Group: "set", Since: "1.0.0", Complexity: "O(N) where N is the total number of elements in all given sets.",
			Summary: "Add multiple sets and store the resulting set in a key",
			Syntax:  "destination key [key ...]",
		}, run: sunionstore},
	}
}

// replyMember replies a member of a set.
func replyMember(r *protocol.Reply, m keyspace.Member) {
	if n, ok := m.Int(); ok {
		r.BulkInt(n)
	} else {
		r.BulkString(m.String())
	}
}

// replyMembers replies all members of a set, as a RESP3 set.
func replyMembers(r *protocol.Reply, s *keyspace.Set) {
	r.Set(s.Len())
	for m := range s.Members {
		replyMember(r, m)
	}
}

// touchedMember is Touched for a member of a set.
func (c *Call) touchedMember(m keyspace.Member) {
	if c.reportsMembers(classSet) {
		c.Touched(classSet, bytesOf(m.String()))
	}
}

// touchedMembers is Touched for all members of a set.
func (c *Call) touchedMembers(s *keyspace.Set) {
	if c.reportsMembers(classSet) {
		for m := range s.Members {
			c.touchedMember(m)
		}
	}
}

// setRef is a set that is open for changing through its entry.
type setRef struct{ inPlace[keyspace.Set] }

// editSet is edit for setRef.
func (c *Call) editSet(key []byte) (setRef, bool) {
	d, ok := open[keyspace.Set](c, key)
	return setRef{d}, ok
}

// createSet is create for setRef, for a set to which members are then added.
func (c *Call) createSet(key []byte, members [][]byte) (d setRef, ok bool) {
	if d, ok = c.editSet(key); !ok {
		return d, false
	}
	if d.e == nil {
		room := 0
		for _, b := range members {
			room += keyspace.MemberSize(keyspace.MemberOf(b))
		}
		d.e = c.db.AddSet(key, room)
		c.edited = append(c.edited, opened{d.e, true})
	}
	d.replaced(c.db.ExpectMembers(d.e, keyspace.MemberOf(members[0]), len(members)))
	return d, true
}

// add is [keyspace.DB.AddMember].
func (d *setRef) add(m keyspace.Member) bool {
	e, added := d.c.db.AddMember(d.e, m)
	d.replaced(e)
	return added
}

// remove is [keyspace.DB.RemoveMember].
func (d *setRef) remove(m keyspace.Member) bool {
	e, removed := d.c.db.RemoveMember(d.e, m)
	d.replaced(e)
	return removed
}

// unpack returns the set for changes by its own methods.
func (d *setRef) unpack() *keyspace.Set {
	d.replaced(d.c.db.Unpacked(d.e))
	return d.value()
}

// sadd is SADD key member [member ...].
func sadd(c *Call) {
	key, members := c.Bytes(), c.Rest()
	d, ok := c.createSet(key, members)
	if !ok {
		return
	}
	added := 0
	for _, b := range members {
		if d.add(keyspace.MemberOf(b)) {
			added++
			c.Touched(classSet, b)
		}
	}
	if added > 0 {
		c.Changed(key, classSet, "sadd")
	}
	c.Reply.Int(int64(added))
}

// scard is SCARD key.
func scard(c *Call) {
	key := c.Bytes()
	if s, ok := read[keyspace.Set](c, key); ok {
		if s == nil {
			c.Reply.Int(0)
		} else {
			c.Reply.Int(int64(s.Len()))
		}
	}
}

// sdiff is SDIFF key [key ...].
func sdiff(c *Call) {
	if sets, ok := c.sets(c.Rest()); ok {
		replyMembers(c.Reply, setDiff(c.limits(), sets))
	}
}

// sdiffstore is SDIFFSTORE destination key [key ...].
func sdiffstore(c *Call) {
	destination := c.Bytes()
	if sets, ok := c.sets(c.Rest()); ok {
		c.storeSet(destination, setDiff(c.limits(), sets), "sdiffstore")
	}
}

// sets opens sets for reading, nil for those that do not exist. If a key has
// another type, the error has been replied and ok is false.
func (c *Call) sets(keys [][]byte) (sets []*keyspace.Set, ok bool) {
	sets = make([]*keyspace.Set, len(keys))
	for i, key := range keys {
		if sets[i], ok = read[keyspace.Set](c, key); !ok {
			return nil, false
		}
	}
	return sets, true
}

// storeSet stores the set at key, or removes key if the set is empty, and replies
// the number of members.
func (c *Call) storeSet(key []byte, s *keyspace.Set, event string) {
	if s.Len() == 0 {
		c.drop(key)
	} else {
		s = c.put(key, s).Value().(*keyspace.Set)
		c.touchedMembers(s)
		c.Changed(key, classSet, event)
	}
	c.Reply.Int(int64(s.Len()))
}

// setDiff returns the members of the first set that no other set has. As in Redis
// it chooses between looking up each member of the first set in the others, and
// removing the members of the others from a copy of the first; the encoding of the
// result, and so its order, may depend on that.
func setDiff(l *keyspace.Limits, sets []*keyspace.Set) *keyspace.Set {
	diff := new(keyspace.Set)
	first, others := sets[0], sets[1:]
	if first == nil || slices.Contains(others, first) {
		return diff
	}
	others = distinct(others)
	lookups, removals := 0, 0
	for _, s := range sets {
		if s != nil {
			lookups += first.Len()
			removals += s.Len()
		}
	}
	if lookups/2 > removals {
		diff = setUnion(l, sets[:1])
		for _, s := range others {
			for m := range s.MembersPrefetching([]*keyspace.Set{diff}) {
				diff.Remove(m)
			}
			if diff.Len() == 0 {
				break
			}
		}
		return diff
	}
	// The largest first: it most probably has the member.
	slices.SortStableFunc(others, func(a, b *keyspace.Set) int { return cardinality(b) - cardinality(a) })
	for m := range first.MembersPrefetching(others) {
		if !slices.ContainsFunc(others, func(s *keyspace.Set) bool { return s.Has(m) }) {
			diff.Add(l, m)
		}
	}
	return diff
}

// distinct returns the sets of a list that exist, without duplicates.
func distinct(sets []*keyspace.Set) []*keyspace.Set {
	if len(sets) < 3 {
		return slices.DeleteFunc(slices.Clone(sets), func(s *keyspace.Set) bool { return s == nil })
	}
	seen := make(map[*keyspace.Set]struct{}, len(sets))
	return slices.DeleteFunc(slices.Clone(sets), func(s *keyspace.Set) bool {
		if _, again := seen[s]; again || s == nil {
			return true
		}
		seen[s] = struct{}{}
		return false
	})
}

// cardinality returns the number of members of a set that may not exist.
func cardinality(s *keyspace.Set) int {
	if s == nil {
		return 0
	}
	return s.Len()
}

// sinter is SINTER key [key ...].
func sinter(c *Call) {
	sets, ok := c.sets(c.Rest())
	if !ok {
		return
	}
	var found []keyspace.Member
	for m := range setInter(sets) {
		found = append(found, m)
	}
	c.Reply.Set(len(found))
	for _, m := range found {
		replyMember(c.Reply, m)
	}
}

// setInter yields the members that all sets have, in the order of the smallest set,
// which it moves to the front.
func setInter(sets []*keyspace.Set) func(yield func(keyspace.Member) bool) {
	slices.SortStableFunc(sets, func(a, b *keyspace.Set) int { return cardinality(a) - cardinality(b) })
	return func(yield func(keyspace.Member) bool) {
		if sets[0] == nil {
			return
		}
		others := sets[1:]
		if len(others) > 1 {
			others = distinct(others)
		}
	next:
		for m := range sets[0].MembersPrefetching(others) {
			for _, s := range others {
				if s != sets[0] && !s.Has(m) {
					continue next
				}
			}
			if !yield(m) {
				return
			}
		}
	}
}

// sintercard is SINTERCARD numkeys key [key ...] [LIMIT limit].
func sintercard(c *Call) {
	numkeys := c.IntIn(1, math.MaxInt64, "ERR numkeys should be greater than 0")
	if numkeys > int64(c.Len()) {
		c.Fail("ERR Number of keys can't be greater than number of args")
	}
	keys := c.NextN(int(numkeys))
	limit := int64(0)
	for c.More() {
		if c.Len() >= 2 && c.Is("LIMIT") {
			limit = c.IntIn(0, math.MaxInt64, "ERR LIMIT can't be negative")
		} else {
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.ok() {
		return
	}
	sets, ok := c.sets(keys)
	if !ok {
		return
	}
	n := int64(0)
	for range setInter(sets) {
		if n++; n == limit {
			break
		}
	}
	c.Reply.Int(n)
}

// sinterstore is SINTERSTORE destination key [key ...].
func sinterstore(c *Call) {
	destination := c.Bytes()
	sets, ok := c.sets(c.Rest())
	if !ok {
		return
	}
	l, common := c.limits(), setInter(sets)
	result := new(keyspace.Set)
	if sets[0] != nil && sets[0].Encoding(l) != "intset" {
		result.KeepOrder()
	}
	for m := range common {
		result.Add(l, m)
	}
	result.Sort(l)
	c.storeSet(destination, result, "sinterstore")
}

// sismember is SISMEMBER key member.
func sismember(c *Call) {
	key, b := c.Bytes(), c.Bytes()
	if s, ok := read[keyspace.Set](c, key); ok {
		replyHas(c.Reply, s, b)
	}
}

// replyHas replies 1 if b is a member of s, which may be nil, else 0.
func replyHas(r *protocol.Reply, s *keyspace.Set, b []byte) {
	if s != nil && s.Has(keyspace.MemberOf(b)) {
		r.Int(1)
	} else {
		r.Int(0)
	}
}

// smembers is SMEMBERS key.
func smembers(c *Call) {
	key := c.Bytes()
	if s, ok := read[keyspace.Set](c, key); ok {
		if s == nil {
			c.Reply.Set(0)
		} else {
			replyMembers(c.Reply, s)
		}
	}
}

// smismember is SMISMEMBER key member [member ...].
func smismember(c *Call) {
	key, members := c.Bytes(), c.Rest()
	s, ok := read[keyspace.Set](c, key)
	if !ok {
		return
	}
	c.Reply.Array(len(members))
	for _, b := range members {
		replyHas(c.Reply, s, b)
	}
}

// smove is SMOVE source destination member.
func smove(c *Call) {
	source, destination, b := c.Bytes(), c.Bytes(), c.Bytes()
	src, ok := c.editSet(source)
	if !ok {
		return
	}
	if src.e == nil {
		c.Reply.Int(0)
		return
	}
	dst, ok := c.editSet(destination)
	if !ok {
		return
	}
	m := keyspace.MemberOf(b)
	if dst.e == src.e {
		replyHas(c.Reply, src.value(), b)
		return
	}
	if !src.remove(m) {
		c.Reply.Int(0)
		return
	}
	c.Touched(classSet, b)
	c.Changed(source, classSet, "srem")
	c.removeEmpty()
	dst, _ = c.createSet(destination, [][]byte{b})
	if dst.add(m) {
		c.Touched(classSet, b)
		c.Changed(destination, classSet, "sadd")
	}
	c.Reply.Int(1)
}

// spop is SPOP key [count].
func spop(c *Call) {
	key := c.Bytes()
	single, count := c.Len() == 0, int64(1)
	switch c.Len() {
	case 0:
	case 1:
		count = c.IntIn(0, math.MaxInt64, "ERR value is out of range, must be positive")
	default:
		c.Fail(protocol.ErrSyntax)
	}
	if !c.ok() {
		return
	}
	d, ok := c.editSet(key)
	s := d.value()
	switch {
	case !ok:
	case s == nil && single:
		c.Reply.Null()
	case s == nil || count == 0:
		c.Reply.Set(0)
	case single:
		m := s.Random(c.rand())
		replyMember(c.Reply, m)
		c.touchedMember(m)
		d.remove(m)
		c.Changed(key, classSet, "spop")
	case count >= int64(s.Len()):
		all := s
		if s.Encoding(c.limits()) != "hashtable" {
			all = setUnion(c.limits(), []*keyspace.Set{s}) // the order of Redis
		}
		replyMembers(c.Reply, all)
		c.touchedMembers(all)
		c.Changed(key, classSet, "spop")
		c.drop(key)
	default:
		c.Reply.Set(int(count))
		d.unpack().Pop(c.rand(), int(count), func(m keyspace.Member) {
			replyMember(c.Reply, m)
			c.touchedMember(m)
		})
		c.Changed(key, classSet, "spop")
	}
}

// srandmember is SRANDMEMBER key [count].
func srandmember(c *Call) {
	key := c.Bytes()
	single, count := c.Len() == 0, int64(1)
	switch c.Len() {
	case 0:
	case 1:
		count = c.negatableInt()
	default:
		c.Fail(protocol.ErrSyntax)
	}
	if !c.ok() {
		return
	}
	s, ok := read[keyspace.Set](c, key)
	switch {
	case !ok:
	case s == nil && single:
		c.Reply.Null()
	case s == nil:
		c.Reply.Array(0)
	case single:
		replyMember(c.Reply, s.Random(c.rand()))
	case count < -maxRepeats:
		c.Reply.Error("ERR value is out of range")
	case count < 0:
		w := c.repeatLimit()
		c.Reply.Array(int(-count))
		for range -count {
			if replyMember(c.Reply, s.Random(c.rand())); w.tooLong() {
				return
			}
		}
	default:
		n := int(min(count, int64(s.Len())))
		c.Reply.Array(n)
		for m := range s.Sample(c.rand(), n) {
			replyMember(c.Reply, m)
		}
	}
}

// srem is SREM key member [member ...].
func srem(c *Call) {
	key, members := c.Bytes(), c.Rest()
	d, ok := c.editSet(key)
	if !ok {
		return
	}
	removed := 0
	if d.e != nil {
		for _, b := range members {
			if d.remove(keyspace.MemberOf(b)) {
				removed++
				c.Touched(classSet, b)
			}
		}
	}
	if removed > 0 {
		c.Changed(key, classSet, "srem")
	}
	c.Reply.Int(int64(removed))
}

// sscan is SSCAN key cursor [MATCH pattern] [COUNT count].
func sscan(c *Call) {
	key, cursor := c.Bytes(), c.cursor()
	if !c.ok() {
		return
	}
	s, ok := read[keyspace.Set](c, key)
	if !ok {
		return
	}
	if s == nil { // without a key Redis does not check the options
		c.Reply.Array(2)
		c.Reply.BulkInt(0)
		c.Reply.Array(0)
		return
	}
	o := c.scanOptions()
	if !c.ok() {
		return
	}
	var found []keyspace.Member
	next := s.Scan(cursor, o.count, func(m keyspace.Member) {
		if o.matches(bytesOf(m.String())) {
			found = append(found, m)
		}
	})
	c.Reply.Array(2)
	c.Reply.BulkString(strconv.FormatUint(next, 10))
	c.Reply.Array(len(found))
	for _, m := range found {
		replyMember(c.Reply, m)
	}
}

// sunion is SUNION key [key ...].
func sunion(c *Call) {
	if sets, ok := c.sets(c.Rest()); ok {
		replyMembers(c.Reply, setUnion(c.limits(), sets))
	}
}

// setUnion returns the members that any set has.
func setUnion(l *keyspace.Limits, sets []*keyspace.Set) *keyspace.Set {
	union := new(keyspace.Set)
	var largest *keyspace.Set
	for _, s := range sets {
		if cardinality(s) > cardinality(largest) {
			largest = s
		}
	}
	if isLarge(l, largest) {
		union = largest.Clone()
	} else {
		largest = nil // the union starts empty, and the members of all sets are added
	}
	for _, s := range sets {
		if s == nil || s == largest {
			continue
		}
		for m := range s.MembersPrefetching([]*keyspace.Set{union}) {
			union.Add(l, m)
		}
	}
	return union
}

// isLarge reports whether a set, which may be nil, becomes a hash table if the
// members of s are added one by one. If so, a clone of s, which takes no time, is
// equivalent.
func isLarge(l *keyspace.Limits, s *keyspace.Set) bool {
	return cardinality(s) > max(l.SetMaxIntsetEntries, l.SetMaxListpackEntries)
}

// sunionstore is SUNIONSTORE destination key [key ...].
func sunionstore(c *Call) {
	destination := c.Bytes()
	if sets, ok := c.sets(c.Rest()); ok {
		c.storeSet(destination, setUnion(c.limits(), sets), "sunionstore")
	}
}
