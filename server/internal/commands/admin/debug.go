package admin

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/commands/data"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// DebugCommands returns the rows of the DEBUG command.
func DebugCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "debug", Arity: -2, Flags: "admin noscript loading stale protected",
			Group: "server", Since: "1.0.0", System: true, Complexity: "That of the subcommand",
			Summary: "Commands for tests of the server",
		}, Run: debugCommand, EnabledBy: (*config.Settings).DebugEnabled},
	}
}

// debugSubcommand is a subcommand of DEBUG. These are not in the command table.
type debugSubcommand struct {
	name     string
	min, max int // arguments
	run      func(*engine.Call)
}

// debugSubcommands are the subcommands of Redis that apply to this server. Those
// that restart it, and those about files or the cluster, are absent.
func debugSubcommands() []debugSubcommand {
	return []debugSubcommand{
		{"ALLOCSIZE-SLOTS-ASSERT", 1, 1, debugChecked},
		{"ASSERT", 0, 0, debugAssert},
		{"CHANGE-REPL-ID", 0, 0, debugChangeReplID},
		{"CONFIG-REWRITE-FORCE-ALL", 0, 0, debugConfigRewriteForceAll},
		{"CLIENT-ENFORCE-REPLY-LIST", 1, 1, debugWithoutEffect},
		{"DICT-RESIZING", 1, 1, debugWithoutEffect},
		{"DIGEST", 0, 0, debugDigest},
		{"DIGEST-VALUE", 0, math.MaxInt, debugDigestValue},
		{"ERROR", 1, 1, debugError},
		{"HELP", 0, 0, debugHelp},
		{"HTSTATS", 1, 1, debugHtstats},
		{"HTSTATS-KEY", 1, 1, debugHtstatsKey},
		{"INTERNAL_SECRET", 0, 0, debugInternalSecret},
		{"KEYSIZES-HIST-ASSERT", 1, 1, debugChecked},
		{"LISTPACK", 1, 1, debugListpack},
		{"LOADAOF", 0, 0, debugLoadaof},
		{"LOG", 1, 1, debugLog},
		{"OBJECT", 1, 1, debugObject},
		{"PANIC", 0, 0, debugPanic},
		{"PAUSE-CRON", 1, 1, debugPauseCron},
		{"POPULATE", 1, 3, debugPopulate},
		{"PROTOCOL", 1, 1, debugProtocol},
		{"QUICKLIST", 1, 2, debugQuicklist},
		{"QUICKLIST-PACKED-THRESHOLD", 1, 1, debugQuicklistPackedThreshold},
		{"RELOAD", 0, math.MaxInt, debugReload},
		{"REPLICATE", 1, math.MaxInt, debugReplicate},
		{"REPLY-COPY-AVOIDANCE", 1, 1, debugWithoutEffect},
		{"REPLYBUFFER", 2, 2, debugReplybuffer},
		{"SEGFAULT", 0, 0, debugSegfault},
		{"SET-ACTIVE-EXPIRE", 1, 1, debugSetActiveExpire},
		{"SET-ALLOW-ACCESS-EXPIRED", 1, 1, debugSetAllowAccessExpired},
		{"SET-DISABLE-DENY-SCRIPTS", 1, 1, debugSetDisableDenyScripts},
		{"SET-SKIP-CHECKSUM-VALIDATION", 1, 1, debugSetSkipChecksumValidation},
		{"SLEEP", 1, 1, debugSleep},
		{"STRUCTSIZE", 0, 0, debugStructsize},
	}
}

func debugCommand(c *engine.Call) {
	for _, sub := range debugSubcommands() {
		if c.Is(sub.name) {
			if sub.min <= c.Len() && c.Len() <= sub.max {
				sub.run(c)
				return
			}
			break
		}
	}
	c.UnknownSubcommand()
}

func debugHelp(c *engine.Call) {
	c.Help("ALLOCSIZE-SLOTS-ASSERT <0|1>",
		"    With 1, verify after each command all data, their sizes and indexes.",
		"ASSERT",
		"    Panic, as if an assertion had failed.",
		"CHANGE-REPL-ID",
		"    Choose another replication ID.",
		"CLIENT-ENFORCE-REPLY-LIST <0|1>",
		"    Without effect.",
		"CONFIG-REWRITE-FORCE-ALL",
		"    As CONFIG REWRITE, with all parameters in the file.",
		"DICT-RESIZING <0|1>",
		"    Without effect.",
		"DIGEST",
		"    A hash of all databases, in hexadecimal.",
		"DIGEST-VALUE <key> [<key> ...]",
		"    A hash of each value, in hexadecimal.",
		"ERROR <string>",
		"    Reply with the error <string>.",
		"HTSTATS <dbid>",
		"    The number of keys of a database, in the format of hash tables.",
		"HTSTATS-KEY <key>",
		"    The number of elements of a value in a hash table.",
		"INTERNAL_SECRET",
		"    The secret that the nodes of a cluster share.",
		"KEYSIZES-HIST-ASSERT <0|1>",
		"    The same.",
		"LISTPACK <key>",
		"    Write the elements of a listpack to the log of the server.",
		"LOADAOF",
		"    Save changes to the data file, and load it.",
		"LOG <message>",
		"    Write <message> to the log of the server.",
		"OBJECT <key>",
		"    Encoding, size and access time of a value.",
		"PANIC",
		"    Panic.",
		"PAUSE-CRON <0|1>",
		"    With 1, stop periodic work: expiry, closing of idle clients, trimming of",
		"    the table of CLIENT TRACKING.",
		"POPULATE <count> [<prefix>] [<size>]",
		"    Create <count> strings at keys <prefix>:<number> (default: key), of <size>",
		"    bytes if given.",
		"PROTOCOL <type>",
		"    Reply with an example of <type>: string, integer, double, bignum, null, array,",
		"    set, map, attrib, push, verbatim, true or false.",
		"QUICKLIST <key> [<0|1>]",
		"    Write the elements of a quicklist to the log of the server.",
		"QUICKLIST-PACKED-THRESHOLD <size>",
		"    Checked, and without effect.",
		"RELOAD [option ...]",
		"    Save the data to the data file, and load it:",
		"    * NOSAVE: load the file as it is",
		"    * NOFLUSH: keep the keys in memory, and fail if the file has one of them",
		"    * MERGE: with NOFLUSH, the keys of the file replace those in memory",
		"REPLICATE <string>",
		"    Send the command <string>, an argument for each word, to the replicas only.",
		"REPLY-COPY-AVOIDANCE <0|1>",
		"    Without effect.",
		"REPLYBUFFER PEAK-RESET-TIME <NEVER||RESET|time>",
		"REPLYBUFFER RESIZING <0|1>",
		"    Checked, and without effect.",
		"SEGFAULT",
		"    End the server by an access to invalid memory.",
		"SET-ACTIVE-EXPIRE <0|1>",
		"    With 0, keys and fields expire only when commands use them.",
		"SET-ALLOW-ACCESS-EXPIRED <0|1>",
		"    With 1, commands see keys and members past their deadline.",
		"SET-DISABLE-DENY-SCRIPTS <0|1>",
		"    Without effect.",
		"SET-SKIP-CHECKSUM-VALIDATION <0|1>",
		"    With 1, RESTORE does not verify checksums.",
		"SLEEP <seconds>",
		"    Block the server for <seconds>, with a fraction if given.",
		"STRUCTSIZE",
		"    The sizes of structures in memory.")
}

// debugInternalSecret replies the ID of the process: a cluster has no other node that would
// have to know it.
func debugInternalSecret(c *engine.Call) {
	if c.Engine.Cluster == nil {
		c.Reply.Error("ERR Internal secret is missing")
		return
	}
	c.Reply.BulkString(c.Engine.Identity.RunID)
}

func debugAssert(*engine.Call) { panic("BUG: DEBUG ASSERT") }

func debugPanic(*engine.Call) { panic("BUG: DEBUG PANIC") }

func debugSegfault(*engine.Call) {
	var nowhere *engine.Call
	nowhere.Large = true
}

func debugChangeReplID(c *engine.Call) {
	c.Engine.Identity.NewReplID(false, 0)
	c.Reply.OK()
}

func debugReplicate(c *engine.Call) {
	c.Engine.Replication.Send(c.Rest())
	c.Reply.OK()
}

// Digest is Redis's digest of data: combined by xor where order does not matter, by
// repeated hashing where it does.
type Digest [sha1.Size]byte

// Xor adds another digest, independent of the order.
func (d *Digest) Xor(b []byte) {
	for i, x := range sha1.Sum(b) {
		d[i] ^= x
	}
}

// Mix adds bytes to the digest; the order counts.
func (d *Digest) Mix(b []byte) {
	d.Xor(b)
	*d = sha1.Sum(d[:])
}

// MixInt adds a decimal integer to the digest.
func (d *Digest) MixInt(n uint32) {
	d.Mix(binary.BigEndian.AppendUint32(nil, n))
}

// String returns the digest in hexadecimal.
func (d *Digest) String() string { return hex.EncodeToString(d[:]) }

// Redis's numbers of the types.
const (
	typeString = iota
	typeList
	typeSet
	typeZset
	typeHash
	_
	typeStream
)

// member adds a member with its value, and whether it has a deadline, as Redis does
// for fields of hashes.
func (d *Digest) member(member, with []byte, deadlines *zset.Set, mark string) {
	var x Digest
	x.Mix(member)
	x.Mix(with)
	if deadlines != nil {
		if _, has := deadlines.Internal().Score(member); has {
			x.Xor([]byte(mark))
		}
	}
	d.Xor(x[:])
}

// Add adds a value and whether it has a deadline.
func (d *Digest) Add(e *keyspace.Entry) {
	switch v := e.Value().(type) {
	case *keyspace.String:
		d.MixInt(typeString)
		d.Mix(v.Content())
	case *sequence.List:
		d.MixInt(typeList)
		for b := range v.Forward(0) {
			d.Mix(b)
		}
	case *keyspace.Set:
		d.MixInt(typeSet)
		for member := range v.All() {
			d.Xor(protocol.BytesOf(member))
		}
	case *zset.Set:
		d.MixInt(typeZset)
		for member, score := range v.All() {
			d.member(protocol.BytesOf(member), protocol.AppendFloat(nil, score), v.Deadlines(), "!!zexpire!!")
		}
	case *keyspace.Hash:
		d.MixInt(typeHash)
		for field, value := range v.All() {
			d.member(protocol.BytesOf(field), protocol.BytesOf(value), v.Deadlines(), "!!hexpire!!")
		}
	}
	if s, ok := e.Value().(*sequence.Stream); ok {
		d.MixInt(typeStream)
		for e := range s.Ascend(sequence.StreamID{}, sequence.MaxStreamID()) {
			d.Mix(fmt.Appendf(nil, "%d.%d", e.ID.Ms, e.ID.Seq))
			for field, value := range e.Pairs {
				d.Mix(field)
				d.Mix(value)
			}
		}
	}
	if e.Deadline() != 0 {
		d.Xor([]byte("!!expire!!"))
	}
}

func debugDigest(c *engine.Call) {
	var all Digest
	for i := range c.Engine.Keys.Len() {
		db := c.Engine.Keys.DB(i)
		begun := false
		for e := range db.All() {
			if !begun {
				all.MixInt(uint32(i))
				begun = true
			}
			var d Digest
			d.Mix(protocol.BytesOf(e.Key()))
			d.Add(e)
			all.Xor(d[:])
		}
	}
	c.Reply.Status(all.String())
}

func debugDigestValue(c *engine.Call) {
	c.Reply.Array(c.Len())
	for _, key := range c.Rest() {
		var d Digest
		if e := c.DB.Peek(key); e != nil {
			d.Add(e)
		}
		c.Reply.Status(d.String())
	}
}

func debugError(c *engine.Call) { c.Reply.Error(c.String()) }

func debugHtstats(c *engine.Call) {
	i := c.Int()
	if c.Err() == "" && (i < 0 || i >= int64(c.Engine.Keys.Len())) {
		c.Fail("ERR Out of range database")
	}
	if !c.OK() {
		return
	}
	db := c.Engine.Keys.DB(int(i))
	c.Reply.Verbatim("txt", "[Dictionary HT]\n"+tableStats(db.Len())+"[Expires HT]\n"+tableStats(db.Volatile()))
}

func debugHtstatsKey(c *engine.Call) {
	e := debugged(c)
	if e == nil {
		return
	}
	switch keyspace.EncodingOf(e.Value(), c.Limits()) {
	case "hashtable", "skiplist":
		c.Reply.Verbatim("txt", tableStats(e.Value().(interface{ Len() int }).Len()))
	default:
		c.Reply.Error("ERR The value stored at the specified key is not represented using an hash table")
	}
}

// tableStats is the text of DEBUG HTSTATS for a table of n elements. Redis also
// lists buckets and chains, which do not exist here.
func tableStats(n int) string {
	const title = "Hash table 0 stats (main hash table):\n"
	if n == 0 {
		return title + "No stats available for empty dictionaries\n"
	}
	return title + " number of elements: " + strconv.Itoa(n) + "\n"
}

// debugged returns the entry of the key in the next argument. If the key does not
// exist, it replies the error and returns nil.
func debugged(c *engine.Call) *keyspace.Entry {
	e := c.DB.Stored(c.Bytes())
	if e == nil {
		c.Reply.Error(data.ErrNoKey)
	}
	return e
}

func debugListpack(c *engine.Call) { show(c, "listpack", "Listpack structure printed on stdout") }

func debugQuicklist(c *engine.Call) { show(c, "quicklist", "Quicklist structure printed on stdout") }

// show logs the elements of a value of a given encoding. The reply, which mentions
// stdout, is Redis's.
func show(c *engine.Call, encoding, reply string) {
	e := debugged(c)
	if e == nil {
		return
	}
	// The encoding of a small hash with deadlines of fields is listpackex.
	if strings.TrimSuffix(keyspace.EncodingOf(e.Value(), c.Limits()), "ex") != encoding {
		c.Reply.Error("ERR Not a " + encoding + " encoded object.")
		return
	}
	var elements []string
	eachElement(e.Value(), func(b []byte) { elements = append(elements, strconv.Quote(string(b))) })
	c.Engine.Log.Warn("DEBUG "+encoding, "key", e.Key(), "elements", elements)
	c.Reply.Status(reply)
}

// eachElement calls yield with the byte strings of a value, which are borrowed.
func eachElement(v any, yield func([]byte)) {
	switch v := v.(type) {
	case *keyspace.String:
		yield(v.Content())
	case *sequence.List:
		for b := range v.Forward(0) {
			yield(b)
		}
	case *keyspace.Set:
		for m := range v.All() {
			yield(protocol.BytesOf(m))
		}
	case *keyspace.Hash:
		for field, value := range v.All() {
			yield(protocol.BytesOf(field))
			yield(protocol.BytesOf(value))
		}
	case *zset.Set:
		for m, score := range v.All() {
			yield(protocol.BytesOf(m))
			yield(protocol.AppendFloat(nil, score))
		}
	case *sequence.Stream:
		for e := range v.Ascend(sequence.StreamID{}, sequence.MaxStreamID()) {
			yield(e.ID.Append(nil))
			for field, value := range e.Pairs {
				yield(field)
				yield(value)
			}
		}
	}
}

func debugLog(c *engine.Call) {
	c.Engine.Log.Warn("DEBUG LOG: " + c.String())
	c.Reply.OK()
}

func debugObject(c *engine.Call) {
	e := debugged(c)
	if e == nil {
		return
	}
	v := e.Value()
	c.Reply.Status(fmt.Sprintf("Value at:%p refcount:1 encoding:%s serializedlength:%d lru:%d lru_seconds_idle:%d",
		v, keyspace.EncodingOf(v, c.Limits()), serializedLength(v), e.RawAccess()&(1<<24-1), idleSeconds(c, e)))
}

// serializedLength is the number of bytes of a value in Redis's file format,
// without compression or packing.
func serializedLength(v any) int {
	sum := 0
	if s, ok := v.(interface{ Len() int }); ok && keyspace.KindOf(v) != keyspace.KindString {
		sum = lengthOfLength(s.Len())
	}
	eachElement(v, func(b []byte) {
		n, isInt := protocol.ParseInt(b)
		switch {
		case isInt && n == int64(int8(n)):
			sum += 2
		case isInt && n == int64(int16(n)):
			sum += 3
		case isInt && n == int64(int32(n)):
			sum += 5
		default:
			sum += lengthOfLength(len(b)) + len(b)
		}
	})
	return sum
}

func lengthOfLength(n int) int {
	switch {
	case n < 1<<6:
		return 1
	case n < 1<<14:
		return 2
	}
	return 5
}

func debugPopulate(c *engine.Call) {
	const errNegative = "ERR value is out of range, must be positive"
	n := c.IntIn(0, math.MaxInt64, errNegative)
	prefix, size := []byte("key"), int64(0)
	if c.More() {
		prefix = c.Bytes()
	}
	if c.More() {
		size = c.IntIn(0, c.Engine.Config.ProtoMaxBulk, errNegative)
	}
	if !c.OK() {
		return
	}
	for i := range n {
		number := strconv.FormatInt(i, 10)
		key := []byte(string(prefix) + ":" + number)
		if c.DB.Edit(key) != nil {
			continue
		}
		value := []byte("value:" + number)
		if size > 0 {
			sized := make([]byte, size)
			copy(sized, value)
			value = sized
		}
		c.DB.AddString(key, value, false)
		c.Changed(key, 0, "")
	}
	c.Reply.OK()
}

func debugProtocol(c *engine.Call) {
	r := c.Reply
	count := func() {
		for i := range int64(3) {
			r.Int(i)
		}
	}
	switch {
	case c.Is("STRING"):
		r.BulkString("Hello World")
	case c.Is("INTEGER"):
		r.Int(12345)
	case c.Is("DOUBLE"):
		r.Double(3.141)
	case c.Is("BIGNUM"):
		r.BigNumber("1234567999999999999999999999999999999")
	case c.Is("NULL"):
		r.Null()
	case c.Is("ARRAY"):
		r.Array(3)
		count()
	case c.Is("SET"):
		r.Set(3)
		count()
	case c.Is("MAP"):
		r.Map(3)
		for i := range int64(3) {
			r.Int(i)
			r.Bool(i == 1)
		}
	case c.Is("ATTRIB"):
		if r.Version() == 3 {
			r.Raw([]byte("|1\r\n"))
			r.BulkString("key-popularity")
			r.Array(2)
			r.BulkString("key:123")
			r.Int(90)
		}
		r.BulkString("Some real reply following the attribute")
	case c.Is("PUSH"):
		if r.Version() == 2 {
			r.Error("ERR RESP2 is not supported by this command")
			return
		}
		r.Push(2)
		r.BulkString("server-cpu-usage")
		r.Int(42)
		r.BulkString("Some real reply following the push reply")
	case c.Is("VERBATIM"):
		r.Verbatim("txt", "This is a verbatim\nstring")
	case c.Is("TRUE"):
		r.Bool(true)
	case c.Is("FALSE"):
		r.Bool(false)
	default:
		r.Error("ERR Wrong protocol type name. Please use one of the following: " +
			"string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false")
	}
}

// The following subcommands set internals of Redis that do not exist here. Test
// suites use them.

func debugWithoutEffect(c *engine.Call) { c.Reply.OK() }

func debugQuicklistPackedThreshold(c *engine.Call) {
	if n, ok := config.ParseMemory(c.String()); !ok || n < 0 || n >= 1<<32 {
		c.Fail("ERR argument must be a memory value bigger than 1 and smaller than 4gb")
	}
	if c.OK() {
		c.Reply.OK()
	}
}

func debugReplybuffer(c *engine.Call) {
	switch {
	case c.Is("PEAK-RESET-TIME"):
		if !c.Is("NEVER") && !c.Is("RESET") {
			c.Int()
		}
	case c.Is("RESIZING"):
	default:
		c.UnknownSubcommand()
		return
	}
	if c.OK() {
		c.Reply.OK()
	}
}

func debugSetDisableDenyScripts(c *engine.Call) {
	c.Engine.Scripting.AllowAll = c.String() != "0"
	c.Reply.OK()
}

func debugPauseCron(c *engine.Call) {
	n := c.Int()
	if !c.OK() {
		return
	}
	c.Engine.Timers.CronPaused = n != 0
	c.Reply.OK()
}

func debugSetSkipChecksumValidation(c *engine.Call) {
	n, _ := protocol.ParseInt(c.Bytes())
	c.Engine.Codec().SkipChecksums = n != 0
	c.Reply.OK()
}

func debugSetActiveExpire(c *engine.Call) {
	n, _ := protocol.ParseInt(c.Bytes())
	c.Engine.Timers.ActiveExpire = n != 0
	c.Engine.Keys.LazyFields(n == 0)
	c.Reply.OK()
}

func debugChecked(c *engine.Call) {
	n, _ := protocol.ParseInt(c.Bytes())
	c.Engine.Timers.Checked = n != 0
	c.Reply.OK()
}

func debugSetAllowAccessExpired(c *engine.Call) {
	n, _ := protocol.ParseInt(c.Bytes())
	c.Engine.Keys.Expose(n != 0)
	c.Reply.OK()
}

// debugSleep stops the whole server, as intended.
func debugSleep(c *engine.Call) {
	seconds, _ := protocol.ParseFloat(c.Bytes())
	time.Sleep(time.Duration(min(seconds*1e9, math.MaxInt64/2)))
	c.Reply.OK()
}

func debugStructsize(c *engine.Call) {
	c.Reply.BulkString(fmt.Sprintf("bits:%d entry:%d string:%d list:%d set:%d hash:%d zset:%d ", strconv.IntSize,
		unsafe.Sizeof(keyspace.Entry{}), unsafe.Sizeof(keyspace.String{}), unsafe.Sizeof(sequence.List{}),
		unsafe.Sizeof(keyspace.Set{}), unsafe.Sizeof(keyspace.Hash{}), unsafe.Sizeof(zset.Set{})))
}
