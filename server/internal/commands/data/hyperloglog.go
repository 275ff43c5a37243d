package data

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/values/hyperloglog"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// HyperloglogCommands returns the rows of the HyperLogLog commands.
func HyperloglogCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "pfadd", Arity: -2, Flags: "write denyoom fast", Keys: "1 RW insert",
			Group: "hyperloglog", Since: "2.8.9", Complexity: "O(M), M elements given",
			Summary: "Add elements to a HyperLogLog",
			Syntax:  "key [element [element ...]]",
		}, Run: pfadd},
		{Facts: protocol.Facts{
			Name: "pfcount", Arity: -2, Flags: "readonly may_replicate",
			Keys:  "1..-1 RW access (written when it stores the estimate in the value)",
			Group: "hyperloglog", Since: "2.8.9",
			Complexity: "O(1) for one key with a stored estimate, else O(K), K keys of 16384 registers each",
			Summary:    "Estimate how many different elements were added to HyperLogLogs",
			Syntax:     "key [key ...]",
		}, Run: pfcount},
		{Facts: protocol.Facts{
			Name: "pfdebug", Arity: 3, Flags: "write denyoom admin", Keys: "2 RW access",
			Group: "hyperloglog", Since: "2.8.9", System: true, Complexity: "O(1)",
			Summary: "Inner state of a HyperLogLog, for tests",
			Syntax:  "subcommand key",
		}, Run: pfdebug},
		{Facts: protocol.Facts{
			Name: "pfmerge", Arity: -2, Flags: "write denyoom", Keys: "1 RW access insert; 2..-1 RO access",
			Group: "hyperloglog", Since: "2.8.9", Complexity: "O(K), K keys of 16384 registers each",
			Summary: "Merge HyperLogLogs into destkey",
			Syntax:  "destkey [sourcekey [sourcekey ...]]",
		}, Run: pfmerge},
		{Facts: protocol.Facts{
			Name: "pfselftest", Arity: 1, Flags: "admin",
			Group: "hyperloglog", Since: "2.8.9", System: true, Complexity: "O(1), ten million insertions",
			Summary: "Test the algorithm of HyperLogLogs",
		}, Run: pfselftest},
	}
}

const errCorruptedHLL = "INVALIDOBJ Corrupted HLL object detected"

// hll returns the string of an entry, if it is a HyperLogLog; else it replies the
// error.
func hll(c *engine.Call, e *keyspace.Entry) (*keyspace.String, bool) {
	s, ok := engine.As[keyspace.String](c, e)
	if ok && !hyperloglog.Valid(s.Content()) {
		c.Reply.Error("WRONGTYPE Key is not a valid HyperLogLog string value.")
		ok = false
	}
	return s, ok
}

// editHLL opens a HyperLogLog for changing; s is nil if there is none. Its encoding
// is raw from then on, even if it does not change, as in Redis.
func editHLL(c *engine.Call, key []byte) (e *keyspace.Entry, s *keyspace.String, ok bool) {
	if e = c.DB.Edit(key); e == nil {
		return nil, nil, true
	}
	if s, ok = hll(c, e); ok && s.Encoding(c.Limits()) != "raw" {
		e, _ = c.DB.WriteString(e, 0, nil)
		s = e.Value().(*keyspace.String)
	}
	return e, s, ok
}

// rewrite makes b the content of the string of e. The journal records only the
// bytes that differ. It returns the present entry.
func rewrite(c *engine.Call, e *keyspace.Entry, b []byte) *keyspace.Entry {
	old := e.Value().(*keyspace.String).Content()
	if len(b) < len(old) {
		e = c.DB.SetString(e, b)
		e, _ = c.DB.WriteString(e, 0, nil) // raw
		return e
	}
	lo, hi := 0, len(b)
	for lo < len(old) && old[lo] == b[lo] {
		lo++
	}
	for len(old) == len(b) && hi > lo && old[hi-1] == b[hi-1] {
		hi--
	}
	if lo < hi {
		e, _ = c.DB.WriteString(e, lo, b[lo:hi])
	}
	return e
}

func pfadd(c *engine.Call) {
	key, elements := c.Bytes(), c.Rest()
	e, s, ok := editHLL(c, key)
	if !ok {
		return
	}
	changed := false
	if s == nil {
		e = c.DB.Add(key, keyspace.RawString(hyperloglog.New()))
		s = e.Value().(*keyspace.String)
		changed = true
	}
	b := s.Content()
	var edited []byte // set once it differs, if it is sparse
	for _, element := range elements {
		register, count := hyperloglog.RegisterOf(element)
		if edited == nil {
			var old uint8
			var err error
			if hyperloglog.IsDense(b) {
				old = hyperloglog.DenseRegister(b, register)
			} else if old, err = hyperloglog.SparseRegister(b, register); err != nil {
				c.Reply.Error(errCorruptedHLL)
				return
			}
			if old >= count {
				continue
			}
			changed = true
			if hyperloglog.IsDense(b) {
				at, change, n := hyperloglog.DenseChange(b, register, count)
				e, _ = c.DB.WriteString(e, at, change[:n])
				b = e.Value().(*keyspace.String).Content()
				continue
			}
			edited = append(make([]byte, 0, len(b)+64), b...)
		}
		var err error
		if edited, _, err = hyperloglog.Raise(edited, register, count, hllLimit(c.Config())); err != nil {
			c.Reply.Error(errCorruptedHLL)
			return
		}
	}
	if edited != nil {
		e = rewrite(c, e, edited)
	}
	if !changed {
		c.Reply.Int(0)
		return
	}
	outdateCardinality(c, e)
	c.Changed(key, engine.ClassString, "pfadd")
	c.Reply.Int(1)
}

// outdateCardinality marks the cardinality of a HyperLogLog as out of date.
func outdateCardinality(c *engine.Call, e *keyspace.Entry) {
	const at = hyperloglog.CardinalityEnd
	if b := e.Value().(*keyspace.String).Content(); b[at]&hyperloglog.OutOfDate == 0 {
		c.DB.WriteString(e, at, []byte{b[at] | hyperloglog.OutOfDate})
	}
}

// hllLimit is the longest size in bytes of a sparse HyperLogLog.
func hllLimit(cfg *config.Settings) int { return int(min(cfg.HLLSparseMaxBytes, math.MaxInt)) }

// hllUnion returns the union of the registers of several HyperLogLogs, and whether
// one of them is dense. If ok is false the error has been replied.
func hllUnion(c *engine.Call, keys [][]byte) (u *hyperloglog.Union, isDense, ok bool) {
	u = new(hyperloglog.Union)
	for _, key := range keys {
		e := c.DB.Get(key)
		if e == nil {
			continue
		}
		s, ok := hll(c, e)
		if !ok {
			return nil, false, false
		}
		isDense = isDense || hyperloglog.IsDense(s.Content())
		if u.Add(s.Content()) != nil {
			c.Reply.Error(errCorruptedHLL)
			return nil, false, false
		}
	}
	return u, isDense, true
}

// pfcount of one key caches the estimate in the value.
func pfcount(c *engine.Call) {
	keys := c.Rest()
	if len(keys) > 1 || c.Observing {
		if u, _, ok := hllUnion(c, keys); ok {
			c.Reply.Int(int64(u.Count()))
		}
		return
	}
	if c.DB.Get(keys[0]) == nil {
		c.Reply.Int(0)
		return
	}
	e, s, ok := editHLL(c, keys[0])
	if !ok {
		return
	}
	n, ok := hyperloglog.Cardinality(s.Content())
	if !ok {
		var err error
		if n, err = hyperloglog.Count(s.Content()); err != nil {
			c.Reply.Error(errCorruptedHLL)
			return
		}
		var b [8]byte
		c.DB.WriteString(e, hyperloglog.HeaderSize-8, hyperloglog.AppendCardinality(b[:0], n))
		c.Changed(keys[0], 0, "")
	}
	c.Reply.Int(int64(n))
}

func pfmerge(c *engine.Call) {
	keys := c.Rest()
	u, isDense, ok := hllUnion(c, keys)
	if !ok {
		return
	}
	key := keys[0]
	e, s, _ := editHLL(c, key)
	if s == nil {
		e = c.DB.Add(key, keyspace.RawString(hyperloglog.New()))
		s = e.Value().(*keyspace.String)
	}
	b := slices.Clone(s.Content())
	var err error
	if isDense {
		b, err = hyperloglog.Dense(b)
	}
	for register, count := range u {
		if count > 0 && err == nil {
			b, _, err = hyperloglog.Raise(b, register, count, hllLimit(c.Config()))
		}
	}
	if err != nil {
		panic("BUG: a HyperLogLog that was read is corrupted")
	}
	outdateCardinality(c, rewrite(c, e, b))
	c.Changed(key, engine.ClassString, "pfadd")
	c.Reply.OK()
}

func pfdebug(c *engine.Call) {
	sub, key := c.String(), c.Bytes()
	if strings.EqualFold(sub, "SIMD") {
		pfdebugSimd(c, key)
		return
	}
	if c.DB.Peek(key) == nil {
		c.Reply.Error("ERR The specified key does not exist")
		return
	}
	e, s, ok := editHLL(c, key)
	if !ok {
		return
	}
	b := s.Content()
	dense := func() bool {
		d, err := hyperloglog.Dense(b)
		if err != nil {
			c.Reply.Error(errCorruptedHLL)
			return false
		}
		rewrite(c, e, d)
		b = d
		return true
	}
	name := []byte(sub)
	switch {
	case protocol.EqualFold(name, "GETREG"):
		if !dense() {
			return
		}
		c.Reply.Array(hyperloglog.Registers)
		for i := range hyperloglog.Registers {
			c.Reply.Int(int64(hyperloglog.DenseRegister(b, i)))
		}
	case protocol.EqualFold(name, "DECODE"):
		if hyperloglog.IsDense(b) {
			c.Reply.Error("ERR HLL encoding is not sparse")
			return
		}
		c.Reply.BulkString(hyperloglog.Describe(b))
	case protocol.EqualFold(name, "ENCODING"):
		if hyperloglog.IsDense(b) {
			c.Reply.Status("dense")
		} else {
			c.Reply.Status("sparse")
		}
	case protocol.EqualFold(name, "TODENSE"):
		was := hyperloglog.IsDense(b)
		switch {
		case was:
			c.Reply.Int(0)
		case dense():
			c.Reply.Int(1)
		}
	default:
		sub, _, _ = strings.Cut(sub, "\x00") // as in Redis, a NUL ends the string
		c.Reply.Error("ERR Unknown PFDEBUG subcommand '" + sub + "'")
	}
}

// pfdebugSimd handles PFDEBUG SIMD ON|OFF, which has no effect: no instructions of vectors are used.
func pfdebugSimd(c *engine.Call, state []byte) {
	switch {
	case protocol.EqualFold(state, "ON"):
		c.Reply.Status("enabled")
	case protocol.EqualFold(state, "OFF"):
		c.Reply.Status("disabled")
	default:
		c.Reply.Error("ERR Argument must be ON or OFF")
	}
}

// pfselftest adds ten million elements, which takes a second or two, during which
// the server runs no other command.
func pfselftest(c *engine.Call) {
	b, _ := hyperloglog.Dense(hyperloglog.New())
	var want hyperloglog.Union
	for i := range want {
		want[i] = uint8(c.Rand().IntN(51))
		b, _, _ = hyperloglog.Raise(b, i, want[i], 0)
	}
	for i, x := range want {
		if got := hyperloglog.DenseRegister(b, i); got != x {
			c.Reply.Error(fmt.Sprintf("TESTFAILED Register %d should be %d but is %d", i, x, got))
			return
		}
	}
	dense, _ := hyperloglog.Dense(hyperloglog.New())
	other := hyperloglog.New()
	seed, checkpoint := c.Rand().Uint64(), uint64(1)
	relative := 1.04 / math.Sqrt(hyperloglog.Registers)
	limit := hllLimit(c.Config())
	for i := uint64(1); i <= 10_000_000; i++ {
		var element [8]byte
		binary.LittleEndian.PutUint64(element[:], i^seed)
		register, count := hyperloglog.RegisterOf(element[:])
		dense, _, _ = hyperloglog.Raise(dense, register, count, limit)
		other, _, _ = hyperloglog.Raise(other, register, count, limit)
		if i != checkpoint {
			continue
		}
		n, _ := hyperloglog.Count(dense)
		off := max(n, i) - min(n, i)
		most := uint64(math.Ceil(relative * 6 * float64(i)))
		switch m, err := hyperloglog.Count(other); {
		case i < uint64(limit)/2 && hyperloglog.IsDense(other):
			c.Reply.Error("TESTFAILED sparse encoding not used")
			return
		case err != nil || m != n:
			c.Reply.Error("TESTFAILED dense/sparse disagree")
			return
		case off > most:
			c.Reply.Error(fmt.Sprintf("TESTFAILED Too big error. card:%d abserr:%d", i, off))
			return
		}
		checkpoint *= 10
	}
	c.Reply.OK()
}
