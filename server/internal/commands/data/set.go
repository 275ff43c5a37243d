package data

import (
	"math"
	"slices"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// SetCommands returns the rows of the set commands.
func SetCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "sadd", Arity: -3, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "set", Since: "1.0.0",
			Complexity: "O(N), N members given",
			Summary:    "Add members to a set",
			Syntax:     "key member [member ...]",
			History:    []string{"2.4.0 Several members"},
		}, Element: 2, Run: sadd},
		{Facts: protocol.Facts{
			Name: "scard", Arity: 2, Flags: "readonly fast", Keys: "1 RO",
			Group: "set", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Number of members of a set",
			Syntax:  "key",
		}, Run: scard},
		{Facts: protocol.Facts{
			Name: "sdiff", Arity: -2, Flags: "readonly", Keys: "1..-1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N), N members of all sets",
			Summary:    "Members of the first set that no other set has",
			Syntax:     "key [key ...]",
		}, Run: sdiff},
		{Facts: protocol.Facts{
			Name: "sdiffstore", Arity: -3, Flags: "write denyoom", Keys: "1 OW update; 2..-1 RO access",
			Group: "set", Since: "1.0.0", Complexity: "O(N), N members of all sets",
			Summary: "Store the result of SDIFF in destination",
			Syntax:  "destination key [key ...]",
		}, Run: sdiffstore},
		{Facts: protocol.Facts{
			Name: "sinter", Arity: -2, Flags: "readonly", Keys: "1..-1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N*K), N members of the smallest set, K sets",
			Summary:    "Members that all sets have",
			Syntax:     "key [key ...]",
		}, Run: sinter},
		{Facts: protocol.Facts{
			Name: "sintercard", Arity: -3, Flags: "readonly", Keys: "1# RO access",
			Group: "set", Since: "7.0.0",
			Complexity: "O(N*K), N members of the smallest set, K sets",
			Summary:    "Number of members that all sets have, counted up to limit",
			Syntax:     "numkeys key [key ...] [LIMIT limit]",
		}, Run: sintercard},
		{Facts: protocol.Facts{
			Name: "sinterstore", Arity: -3, Flags: "write denyoom", Keys: "1 OW update; 2..-1 RO access",
			Group: "set", Since: "1.0.0",
			Complexity: "O(N*K), N members of the smallest set, K sets",
			Summary:    "Store the result of SINTER in destination",
			Syntax:     "destination key [key ...]",
		}, Run: sinterstore},
		{Facts: protocol.Facts{
			Name: "sismember", Arity: 3, Flags: "readonly fast", Keys: "1 RO",
			Group: "set", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Whether a set has member",
			Syntax:  "key member",
		}, Element: 2, Named: 2, Run: sismember},
		{Facts: protocol.Facts{
			Name: "smembers", Arity: 2, Flags: "readonly", Keys: "1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N), N members of the set",
			Summary:    "All members of a set",
			Syntax:     "key",
		}, Run: smembers, Batching: engine.BatchAlways},
		{Facts: protocol.Facts{
			Name: "smismember", Arity: -3, Flags: "readonly fast", Keys: "1 RO access",
			Group: "set", Since: "6.2.0", Complexity: "O(N), N members given",
			Summary: "Whether a set has each of the members",
			Syntax:  "key member [member ...]",
		}, Named: 2, Run: smismember},
		{Facts: protocol.Facts{
			Name: "smove", Arity: 4, Flags: "write fast", Keys: "1 RW access delete; 2 RW insert",
			Group: "set", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Move member from the set source to the set destination",
			Syntax:  "source destination member",
		}, Run: smove},
		{Facts: protocol.Facts{
			Name: "spop", Arity: -2, Flags: "write fast", Keys: "1 RW access delete",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output",
			Complexity: "O(N), N members removed",
			Summary:    "Remove random members and return them",
			Syntax:     "key [count@3.2.0]",
			History:    []string{"3.2.0 `count`"},
		}, Run: spop},
		{Facts: protocol.Facts{
			Name: "srandmember", Arity: -2, Flags: "readonly", Keys: "1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output",
			Complexity: "O(N), N members returned; at most the size of the set if they differ",
			Summary:    "Choose random members, different ones or, for a negative count, with repetitions",
			Syntax:     "key [count@2.6.0]",
			History:    []string{"2.6.0 `count`"},
		}, Run: srandmember},
		{Facts: protocol.Facts{
			Name: "srem", Arity: -3, Flags: "write fast", Keys: "1 RW delete",
			Group: "set", Since: "1.0.0", Complexity: "O(N), N members given",
			Summary: "Remove members from a set",
			Syntax:  "key member [member ...]",
			History: []string{"2.4.0 Several members"},
		}, Element: 2, Run: srem},
		{Facts: protocol.Facts{
			Name: "sscan", Arity: -3, Flags: "readonly", Keys: "1 RO access",
			Group: "set", Since: "2.8.0", Tips: "nondeterministic_output",
			Complexity: "O(C), C is COUNT; O(N) for a whole iteration, N members of the set",
			Summary:    "Iterate over the members of a set in steps of about COUNT",
			Syntax:     "key cursor [MATCH pattern] [COUNT count]",
		}, Run: sscan},
		{Facts: protocol.Facts{
			Name: "sunion", Arity: -2, Flags: "readonly", Keys: "1..-1 RO access",
			Group: "set", Since: "1.0.0", Tips: "nondeterministic_output_order",
			Complexity: "O(N), N members of all sets",
			Summary:    "Members that any of the sets has",
			Syntax:     "key [key ...]",
		}, Run: sunion},
		{Facts: protocol.Facts{
			Name: "sunionstore", Arity: -3, Flags: "write denyoom", Keys: "1 OW update; 2..-1 RO access",
			Group: "set", Since: "1.0.0", Complexity: "O(N), N members of all sets",
			Summary: "Store the result of SUNION in destination",
			Syntax:  "destination key [key ...]",
		}, Run: sunionstore},
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
func touchedMember(c *engine.Call, m keyspace.Member) {
	if c.ReportsMembers(engine.ClassSet) {
		c.Touched(engine.ClassSet, protocol.BytesOf(m.String()))
	}
}

// touchedMembers is Touched for all members of a set.
func touchedMembers(c *engine.Call, s *keyspace.Set) {
	if c.ReportsMembers(engine.ClassSet) {
		for m := range s.Members {
			touchedMember(c, m)
		}
	}
}

// setRef is a set that is open for changing through its entry.
type setRef struct{ engine.InPlace[keyspace.Set] }

// editSet opens a set for writing and does not unpack it.
func editSet(c *engine.Call, key []byte) (setRef, bool) {
	d, ok := engine.Open[keyspace.Set](c, key)
	return setRef{d}, ok
}

// createSet opens a set for writing, or adds an empty one with room for the members.
func createSet(c *engine.Call, key []byte, members [][]byte) (d setRef, ok bool) {
	if d, ok = editSet(c, key); !ok {
		return d, false
	}
	if d.Entry == nil {
		room := 0
		for _, b := range members {
			room += keyspace.MemberSize(keyspace.MemberOf(b))
		}
		d.Entry = c.DB.AddSet(key, room)
		c.Edited = append(c.Edited, engine.Opened{Entry: d.Entry, Created: true})
	}
	d.Replaced(c.DB.ExpectMembers(d.Entry, keyspace.MemberOf(members[0]), len(members)))
	return d, true
}

// add is [keyspace.DB.AddMember].
func (d *setRef) add(m keyspace.Member) bool {
	e, added := d.Call.DB.AddMember(d.Entry, m)
	d.Replaced(e)
	return added
}

// remove is [keyspace.DB.RemoveMember].
func (d *setRef) remove(m keyspace.Member) bool {
	e, removed := d.Call.DB.RemoveMember(d.Entry, m)
	d.Replaced(e)
	return removed
}

// unpack returns the set for changes by its own methods.
func (d *setRef) unpack() *keyspace.Set {
	d.Replaced(d.Call.DB.Unpacked(d.Entry))
	return d.Value()
}

// sadd is SADD key member [member ...].
func sadd(c *engine.Call) {
	key, members := c.Bytes(), c.Rest()
	d, ok := createSet(c, key, members)
	if !ok {
		return
	}
	added := 0
	for _, b := range members {
		if d.add(keyspace.MemberOf(b)) {
			added++
			c.Touched(engine.ClassSet, b)
		}
	}
	if added > 0 {
		c.Changed(key, engine.ClassSet, "sadd")
	}
	c.Reply.Int(int64(added))
}

// scard is SCARD key.
func scard(c *engine.Call) {
	key := c.Bytes()
	if s, ok := engine.Read[keyspace.Set](c, key); ok {
		if s == nil {
			c.Reply.Int(0)
		} else {
			c.Reply.Int(int64(s.Len()))
		}
	}
}

// sdiff is SDIFF key [key ...].
func sdiff(c *engine.Call) {
	if sets, ok := sets(c, c.Rest()); ok {
		replyMembers(c.Reply, setDiff(c.Limits(), sets))
	}
}

// sdiffstore is SDIFFSTORE destination key [key ...].
func sdiffstore(c *engine.Call) {
	destination := c.Bytes()
	if sets, ok := sets(c, c.Rest()); ok {
		storeSet(c, destination, setDiff(c.Limits(), sets), "sdiffstore")
	}
}

// sets opens sets for reading, nil for those that do not exist. If a key has
// another type, the error has been replied and ok is false.
func sets(c *engine.Call, keys [][]byte) (sets []*keyspace.Set, ok bool) {
	sets = make([]*keyspace.Set, len(keys))
	for i, key := range keys {
		if sets[i], ok = engine.Read[keyspace.Set](c, key); !ok {
			return nil, false
		}
	}
	return sets, true
}

// storeSet stores the set at key, or removes key if the set is empty, and replies
// the number of members.
func storeSet(c *engine.Call, key []byte, s *keyspace.Set, event string) {
	if s.Len() == 0 {
		c.Drop(key)
	} else {
		s = c.Put(key, s).Value().(*keyspace.Set)
		touchedMembers(c, s)
		c.Changed(key, engine.ClassSet, event)
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
func sinter(c *engine.Call) {
	sets, ok := sets(c, c.Rest())
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
func sintercard(c *engine.Call) {
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
	if !c.OK() {
		return
	}
	sets, ok := sets(c, keys)
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
func sinterstore(c *engine.Call) {
	destination := c.Bytes()
	sets, ok := sets(c, c.Rest())
	if !ok {
		return
	}
	l, common := c.Limits(), setInter(sets)
	result := new(keyspace.Set)
	if sets[0] != nil && sets[0].Encoding(l) != "intset" {
		result.KeepOrder()
	}
	for m := range common {
		result.Add(l, m)
	}
	result.Sort(l)
	storeSet(c, destination, result, "sinterstore")
}

// sismember is SISMEMBER key member.
func sismember(c *engine.Call) {
	key, b := c.Bytes(), c.Bytes()
	if s, ok := engine.Read[keyspace.Set](c, key); ok {
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
func smembers(c *engine.Call) {
	key := c.Bytes()
	if s, ok := engine.Read[keyspace.Set](c, key); ok {
		if s == nil {
			c.Reply.Set(0)
		} else {
			replyMembers(c.Reply, s)
		}
	}
}

// smismember is SMISMEMBER key member [member ...].
func smismember(c *engine.Call) {
	key, members := c.Bytes(), c.Rest()
	s, ok := engine.Read[keyspace.Set](c, key)
	if !ok {
		return
	}
	c.Reply.Array(len(members))
	for _, b := range members {
		replyHas(c.Reply, s, b)
	}
}

// smove is SMOVE source destination member.
func smove(c *engine.Call) {
	source, destination, b := c.Bytes(), c.Bytes(), c.Bytes()
	src, ok := editSet(c, source)
	if !ok {
		return
	}
	if src.Entry == nil {
		c.Reply.Int(0)
		return
	}
	dst, ok := editSet(c, destination)
	if !ok {
		return
	}
	m := keyspace.MemberOf(b)
	if dst.Entry == src.Entry {
		replyHas(c.Reply, src.Value(), b)
		return
	}
	if !src.remove(m) {
		c.Reply.Int(0)
		return
	}
	c.Touched(engine.ClassSet, b)
	c.Changed(source, engine.ClassSet, "srem")
	c.RemoveEmpty()
	dst, _ = createSet(c, destination, [][]byte{b})
	if dst.add(m) {
		c.Touched(engine.ClassSet, b)
		c.Changed(destination, engine.ClassSet, "sadd")
	}
	c.Reply.Int(1)
}

// spop is SPOP key [count].
func spop(c *engine.Call) {
	key := c.Bytes()
	single, count := c.Len() == 0, int64(1)
	switch c.Len() {
	case 0:
	case 1:
		count = c.IntIn(0, math.MaxInt64, "ERR value is out of range, must be positive")
	default:
		c.Fail(protocol.ErrSyntax)
	}
	if !c.OK() {
		return
	}
	d, ok := editSet(c, key)
	s := d.Value()
	switch {
	case !ok:
	case s == nil && single:
		c.Reply.Null()
	case s == nil || count == 0:
		c.Reply.Set(0)
	case single:
		m := randomMember(c, s)
		replyMember(c.Reply, m)
		touchedMember(c, m)
		d.remove(m)
		c.Changed(key, engine.ClassSet, "spop")
	case count >= int64(s.Len()):
		all := s
		if s.Encoding(c.Limits()) != "hashtable" {
			all = setUnion(c.Limits(), []*keyspace.Set{s}) // the order of Redis
		}
		replyMembers(c.Reply, all)
		touchedMembers(c, all)
		c.Changed(key, engine.ClassSet, "spop")
		c.Drop(key)
	default:
		c.Reply.Set(int(count))
		popMembers(c, d, int(count), func(m keyspace.Member) {
			replyMember(c.Reply, m)
			touchedMember(c, m)
		})
		c.Changed(key, engine.ClassSet, "spop")
	}
}

// srandmember is SRANDMEMBER key [count].
func srandmember(c *engine.Call) {
	key := c.Bytes()
	single, count := c.Len() == 0, int64(1)
	switch c.Len() {
	case 0:
	case 1:
		count = negatableInt(c)
	default:
		c.Fail(protocol.ErrSyntax)
	}
	if !c.OK() {
		return
	}
	s, ok := engine.Read[keyspace.Set](c, key)
	switch {
	case !ok:
	case s == nil && single:
		c.Reply.Null()
	case s == nil:
		c.Reply.Array(0)
	case single:
		replyMember(c.Reply, randomMember(c, s))
	case count < -maxRepeats:
		c.Reply.Error("ERR value is out of range")
	case count < 0:
		w := parseRepeatLimit(c)
		c.Reply.Array(int(-count))
		draw := randomMembers(c, s)
		for range -count {
			if replyMember(c.Reply, draw()); w.tooLong() {
				return
			}
		}
	default:
		n := int(min(count, int64(s.Len())))
		c.Reply.Array(n)
		for m := range sampleMembers(c, s, n) {
			replyMember(c.Reply, m)
		}
	}
}

// srem is SREM key member [member ...].
func srem(c *engine.Call) {
	key, members := c.Bytes(), c.Rest()
	d, ok := editSet(c, key)
	if !ok {
		return
	}
	removed := 0
	if d.Entry != nil {
		for _, b := range members {
			if d.remove(keyspace.MemberOf(b)) {
				removed++
				c.Touched(engine.ClassSet, b)
			}
		}
	}
	if removed > 0 {
		c.Changed(key, engine.ClassSet, "srem")
	}
	c.Reply.Int(int64(removed))
}

// sscan is SSCAN key cursor [MATCH pattern] [COUNT count].
func sscan(c *engine.Call) {
	key, cursor := c.Bytes(), cursor(c)
	if !c.OK() {
		return
	}
	s, ok := engine.Read[keyspace.Set](c, key)
	if !ok {
		return
	}
	if s == nil { // without a key Redis does not check the options
		c.Reply.Array(2)
		c.Reply.BulkInt(0)
		c.Reply.Array(0)
		return
	}
	o := parseScanOptions(c)
	if !c.OK() {
		return
	}
	var found []keyspace.Member
	next := s.Scan(cursor, o.count, func(m keyspace.Member) {
		if o.Match(protocol.BytesOf(m.String())) {
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
func sunion(c *engine.Call) {
	if sets, ok := sets(c, c.Rest()); ok {
		replyMembers(c.Reply, setUnion(c.Limits(), sets))
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
func sunionstore(c *engine.Call) {
	destination := c.Bytes()
	if sets, ok := sets(c, c.Rest()); ok {
		storeSet(c, destination, setUnion(c.Limits(), sets), "sunionstore")
	}
}
