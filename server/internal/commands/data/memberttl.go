package data

import (
	"math"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// Deadlines of fields of hashes, by Redis's commands (HEXPIRE and its family, of
// 7.4), and of members of sorted sets, by the same commands with a Z, whose names
// and replies Garnet shares. The families have one implementation; a timedKind
// holds their differences.

// timedKind is a kind of values whose members may have deadlines.
type timedKind struct {
	keyword   string // the keyword before the members
	countName string // their number in error texts
	class     engine.EventClass
	event     string // event: a member has got a deadline
	persist   string // a member has lost its deadline
	removed   string // a member was removed because the deadline is in the past
	open      func(c *engine.Call, key []byte, change bool) (v timedValue, ok bool)
}

// timedValue is a value whose members may have deadlines.
type timedValue interface {
	DeadlineBytes(member []byte) (at int64, ok bool)
	SetDeadlineBytes(member []byte, at int64) (had int64, ok bool)
	Len() int
}

func timedSortedSet() timedKind {
	return timedKind{"MEMBERS", "numMembers", engine.ClassZset, "zexpire", "zpersist", "zrem", openTimed[zset.Set]}
}

func timedHash() timedKind {
	return timedKind{"FIELDS", "numFields", engine.ClassHash, "hexpire", "hpersist", "hdel", openTimed[keyspace.Hash]}
}

// openTimed opens a value; v is nil if the key does not exist.
func openTimed[T engine.Value](c *engine.Call, key []byte, change bool) (v timedValue, ok bool) {
	open := engine.Read[T]
	if change {
		open = engine.Edit[T]
	}
	p, ok := open(c, key)
	if p == nil {
		return nil, ok
	}
	return any(p).(timedValue), ok
}

// openWith opens a value and reads the other arguments with args. Redis checks the type first,
// Valkey the arguments. If ok is false the error has been replied.
func (k *timedKind) openWith(c *engine.Call, key []byte, change bool, args func()) (v timedValue, ok bool) {
	if k.asValkey(c) {
		if args(); !c.OK() {
			return nil, false
		}
		return k.open(c, key, change)
	}
	if v, ok = k.open(c, key, change); !ok {
		return nil, false
	}
	args()
	return v, c.OK()
}

// removeMember removes a member or field.
func removeMember(v timedValue, member []byte) {
	switch v := v.(type) {
	case *zset.Set:
		v.Internal().Remove(member)
	case *keyspace.Hash:
		v.Delete(member)
	}
}

// maxMemberTime is the latest deadline of a member, in milliseconds since 1970:
// Redis's for fields of hashes, in the year 4199. Valkey has no limit.
const maxMemberTime = 1<<46 - 1

// The replies for a member.
const (
	noSuchMember  = -2
	noDeadline    = -1
	conditionFail = 0
	deadlineSet   = 1
	memberRemoved = 2
)

// memberArgs reads the keyword, the number of members and the members, which are
// the rest of the arguments.
// valkey is the error for all that is wrong with the number in the dialect of Valkey.
func (k *timedKind) memberArgs(c *engine.Call, valkey string) [][]byte {
	if k.asValkey(c) {
		if !c.Is(k.keyword) {
			c.Fail(protocol.ErrSyntax)
		}
		return lastFields(c, 1, valkey)
	}
	k.keywordArg(c)
	return k.countedArgs(c, k.notPositive(), 1)
}

func (k *timedKind) keywordArg(c *engine.Call) {
	if c.Err() == "" && !c.Is(k.keyword) {
		c.Fail("ERR Mandatory argument " + k.keyword + " is missing or not at the right position")
	}
}

// countedArgs reads a number n and n*width arguments, the last ones.
func (k *timedKind) countedArgs(c *engine.Call, bad string, width int64) [][]byte {
	if c.Err() == "" && !c.More() {
		c.Fail(c.Command.WrongArity())
	}
	n := c.IntIn(1, math.MaxInt64, bad)
	if c.Err() == "" && (n > math.MaxInt64/width || n*width != int64(c.Len())) {
		c.Fail("ERR The `" + lowerASCII(k.countName) + "` parameter must match the number of arguments")
	}
	return c.Rest()
}

// listArgs reads a number n and n*width arguments, which other options may follow. before are
// those that have been read: the keyword may be given once.
func (k *timedKind) listArgs(c *engine.Call, before [][]byte, bad string, width int64) [][]byte {
	if before != nil {
		c.Fail("ERR " + k.keyword + " keyword specified multiple times")
	}
	n := c.IntIn(1, math.MaxInt32, bad)
	if c.Err() == "" && n*width > int64(c.Len()) {
		c.Fail("ERR wrong number of arguments")
	}
	return c.NextN(int(n * width))
}

// unknown is the error for an argument that is no option.
func unknown(c *engine.Call) {
	c.Fail("ERR unknown argument: " + optionText(c.Peek(0)))
}

// Redis has two error texts for an invalid number.

func (k *timedKind) tooFew() string {
	return "ERR Parameter `" + k.countName + "` should be greater than 0"
}

func (k *timedKind) notPositive() string {
	return "ERR Number of " + lowerASCII(k.keyword) + " must be a positive integer"
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, x := range b {
		if 'A' <= x && x <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

// memberDeadline parses a time in a unit and returns the deadline.
func memberDeadline(c *engine.Call, text []byte, unit engine.TimeUnit) int64 {
	n, unit := c.ReadTime(text, unit, protocol.ErrNotInteger)
	factor, from := int64(1), int64(0)
	if unit&engine.Seconds != 0 {
		factor = 1000
	}
	if unit&engine.Absolute == 0 {
		from = c.Now()
	}
	latest := int64(maxMemberTime)
	if c.Config().Valkey() {
		latest = zset.MaxDeadline - 1
	}
	switch {
	case c.Err() != "":
	case n < 0:
		c.Fail(c.Config().Words("ERR invalid expire time, must be >= 0", engine.InvalidExpire(c.Command.Name)))
	case n > latest/factor || n*factor > latest-from:
		c.Fail(engine.InvalidExpire(c.Command.Name))
	}
	return n*factor + from
}

// expireArgs reads the arguments after the key: a time, then a condition and the members, in
// any order.
func (k *timedKind) expireArgs(c *engine.Call, unit engine.TimeUnit) (at int64, o expireOptions, members [][]byte) {
	if k.asValkey(c) {
		return expireArgsOfValkey(c, unit)
	}
	at = memberDeadline(c, c.Bytes(), unit)
	for c.More() {
		switch {
		case c.Is(k.keyword):
			if c.Len() < 2 && members == nil {
				c.Fail("ERR " + k.keyword + " requires at least " + lowerASCII(k.countName) + " and one " +
					lowerASCII(k.keyword[:len(k.keyword)-1]) + " argument")
			}
			members = k.listArgs(c, members, k.tooFew(), 1)
		case o.option(c):
		default:
			unknown(c)
		}
	}
	if members == nil {
		c.Fail("ERR missing " + k.keyword + " argument")
	}
	switch o {
	case expireOptions{}, expireOptions{nx: true}, expireOptions{xx: true}, expireOptions{gt: true}, expireOptions{lt: true}:
	default:
		c.Fail("ERR Multiple condition flags specified")
	}
	return at, o, members
}

// expireMembers is ZEXPIRE and HEXPIRE, in all units.
func (k timedKind) expireMembers(c *engine.Call, unit engine.TimeUnit) {
	key := c.Bytes()
	var at int64
	var o expireOptions
	var members [][]byte
	v, ok := k.openWith(c, key, true, func() { at, o, members = k.expireArgs(c, unit) })
	if !ok {
		return
	}
	if !k.asValkey(c) {
		markTimed(v)
	}
	var set, removed [][]byte
	c.Reply.Array(len(members))
	for _, member := range members {
		had, there := int64(0), false
		if v != nil {
			had, there = v.DeadlineBytes(member)
		}
		switch {
		case !there:
			c.Reply.Int(noSuchMember)
		case !o.allow(had, at):
			c.Reply.Int(conditionFail)
		case c.Past(at):
			removeMember(v, member)
			removed = append(removed, member)
			c.Reply.Int(memberRemoved)
		default:
			v.SetDeadlineBytes(member, at)
			set = append(set, member)
			c.Reply.Int(deadlineSet)
		}
	}
	changedMembers(c, key, k.class, k.event, set)
	k.past(c, key, removed)
}

// markTimed makes the encoding of a small hash listpackex, as Redis does before it looks for
// the fields.
func markTimed(v timedValue) {
	if h, ok := v.(*keyspace.Hash); ok {
		h.MarkTimed()
	}
}

// past reports members that were removed because their new deadline is in the past.
func (k *timedKind) past(c *engine.Call, key []byte, removed [][]byte) {
	event := k.removed
	if k.asValkey(c) {
		event = "hexpired"
		c.CountExpired(0, len(removed))
	}
	changedMembers(c, key, k.class, event, removed)
}

// changedMembers calls Touched and Changed for members, if there are any.
func changedMembers(c *engine.Call, key []byte, class engine.EventClass, event string, members [][]byte) {
	for _, member := range members {
		c.TouchedOnce(class, member)
	}
	if len(members) > 0 {
		c.Changed(key, class, event)
	}
}

// ttlMembers is ZTTL and HTTL, in all units.
func (k timedKind) ttlMembers(c *engine.Call, unit engine.TimeUnit) {
	var members [][]byte
	v, ok := k.openWith(c, c.Bytes(), false, func() { members = k.memberArgs(c, protocol.ErrSyntax) })
	if !ok {
		return
	}
	c.Reply.Array(len(members))
	for _, member := range members {
		at, there := int64(0), false
		if v != nil {
			at, there = v.DeadlineBytes(member)
		}
		switch {
		case !there:
			c.Reply.Int(noSuchMember)
			continue
		case at == 0:
			c.Reply.Int(noDeadline)
			continue
		}
		if unit&engine.Absolute == 0 {
			at = max(0, at-c.Now())
		}
		if unit&engine.Seconds != 0 {
			at = (at + 999) / 1000
		}
		c.Reply.Int(at)
	}
}

// persistMembers is ZPERSIST and HPERSIST.
func (k timedKind) persistMembers(c *engine.Call) {
	key := c.Bytes()
	var members [][]byte
	v, ok := k.openWith(c, key, true, func() { members = k.memberArgs(c, errFieldCount) })
	if !ok {
		return
	}
	var changed [][]byte
	c.Reply.Array(len(members))
	for _, member := range members {
		had, there := int64(0), false
		if v != nil {
			had, there = v.SetDeadlineBytes(member, 0)
		}
		switch {
		case !there:
			c.Reply.Int(noSuchMember)
		case had == 0:
			c.Reply.Int(noDeadline)
		default:
			changed = append(changed, member)
			c.Reply.Int(deadlineSet)
		}
	}
	changedMembers(c, key, k.class, k.persist, changed)
}

// memberExpiry is the deadline option of ZADDEX, HSETEX and HGETEX.
type memberExpiry struct {
	deadline int64
	set      bool
	keep     bool // KEEPTTL or PERSIST was given
	foreign  bool // the one of these that the other command has

	raw *engine.RawTime // the deadline, for read; nil once it is known
}

// read reads the deadline where Valkey does: after the check of the type.
func (x *memberExpiry) read(c *engine.Call) {
	if x.raw != nil {
		x.deadline, x.raw = memberDeadline(c, x.raw.Text, x.raw.Unit), nil
	}
}

// option reads one of EX, PX, EXAT, PXAT with its time, or the word extra, and
// reports whether it has read one. Only one may be given. Redis checks the time
// immediately, before the arguments that follow.
func (x *memberExpiry) option(c *engine.Call, extra string) bool {
	var unit engine.TimeUnit
	again := x.set || x.keep
	switch {
	case c.Is("EX"):
		unit = engine.Seconds
	case c.Is("PX"):
	case c.Is("EXAT"):
		unit = engine.Seconds | engine.Absolute
	case c.Is("PXAT"):
		unit = engine.Absolute
	case c.Is(extra):
		x.keep = true
	default:
		return false
	}
	switch {
	case again || x.foreign && !x.keep:
		c.Fail("ERR Only one of EX, PX, EXAT, PXAT or " + extra + " arguments can be specified")
	case x.keep:
	case !c.More():
		c.Fail("ERR missing expire time")
	default:
		x.deadline, x.set = memberDeadline(c, c.Bytes(), unit), true
	}
	return true
}

// past reports whether the deadline has passed.
func (x *memberExpiry) past(c *engine.Call) bool { return x.set && c.Past(x.deadline) }

// memberTTLCommands returns the rows that the two families share.
func memberTTLCommands(prefix, group, since, what string, kind func() timedKind) []engine.Command {
	word := kind().keyword
	rest := lowerASCII(word)[:len(word)-1]
	list := " " + word + " " + lowerASCII(word) + ":(" + lowerASCII(kind().countName) + ":integer " + rest + " [" + rest + " ...])"
	cost := "O(N log D), N " + rest + "s given, D with a deadline"
	expire := func(name, time, summary string, unit engine.TimeUnit) engine.Command {
		return engine.Command{Facts: protocol.Facts{
			Name: prefix + name, Arity: -6, Flags: "write fast", Keys: "1 RW update",
			Group: group, Since: since, Complexity: cost,
			Summary: summary,
			Syntax:  "key " + time + " condition:[NX|XX|GT|LT]" + list,
		}, Run: func(c *engine.Call) { kind().expireMembers(c, unit) }}
	}
	ttl := func(name, summary string, unit engine.TimeUnit) engine.Command {
		tips := "nondeterministic_output"
		if unit&engine.Absolute != 0 {
			tips = ""
		}
		return engine.Command{Facts: protocol.Facts{
			Name: prefix + name, Arity: -5, Flags: "readonly fast", Keys: "1 RO access",
			Group: group, Since: since, Tips: tips, Complexity: "O(N), N " + rest + "s given",
			Summary: summary,
			Syntax:  "key" + list,
		}, Run: func(c *engine.Call) { kind().ttlMembers(c, unit) }, Fields: keyspace.FieldsHidden}
	}
	return []engine.Command{
		expire("expire", "seconds", "Give "+what+" a time to live in seconds", engine.Seconds),
		expire("expireat", "unix-time-seconds", "Give "+what+" a deadline, a Unix time in seconds", engine.Seconds|engine.Absolute),
		ttl("expiretime", "Deadlines of "+what+", Unix times in seconds", engine.Seconds|engine.Absolute),
		{Facts: protocol.Facts{
			Name: prefix + "persist", Arity: -5, Flags: "write fast", Keys: "1 RW update",
			Group: group, Since: since, Complexity: cost,
			Summary: "Remove the deadlines of " + what,
			Syntax:  "key" + list,
		}, Run: func(c *engine.Call) { kind().persistMembers(c) }, Fields: keyspace.FieldsWritten},
		expire("pexpire", "milliseconds", "Give "+what+" a time to live in milliseconds", 0),
		expire("pexpireat", "unix-time-milliseconds", "Give "+what+" a deadline, a Unix time in milliseconds", engine.Absolute),
		ttl("pexpiretime", "Deadlines of "+what+", Unix times in milliseconds", engine.Absolute),
		ttl("pttl", "Remaining time of "+what+" in milliseconds", 0),
		ttl("ttl", "Remaining time of "+what+" in seconds", engine.Seconds),
	}
}
