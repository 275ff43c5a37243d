package admin

import (
	"math"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

func hotkeysStart(c *engine.Call) {
	o := metrics.HotKeysOptions{Count: 10, Sample: 1}
	if !c.Is("METRICS") || !c.More() {
		c.Fail("ERR METRICS parameter is required")
	}
	hotkeysMetrics(c, &o)
	for c.More() {
		switch {
		case c.Len() < 2:
			c.Fail(protocol.ErrSyntax)
		case c.Is("COUNT"):
			o.Count = int(c.IntIn(1, 64, "ERR COUNT must be between 1 and 64"))
		case c.Is("DURATION"):
			o.Duration = time.Duration(c.IntIn(1, 1e6, "ERR DURATION must be between 1 and 1000000")) * time.Second
		case c.Is("SAMPLE"):
			o.Sample = c.IntIn(1, math.MaxInt64, "ERR SAMPLE ratio must be positive")
		case c.Is("SLOTS"):
			hotkeysSlots(c, &o)
		default:
			c.Fail(protocol.ErrSyntax)
		}
	}
	srv := c.Engine
	if srv.Stats.HotKeys != nil && srv.Stats.HotKeys.Active(srv.Turn.At) {
		c.Fail("ERR hotkey tracking session already in progress")
	}
	if !c.OK() {
		return
	}
	srv.Stats.HotKeys = metrics.NewHotKeys(o, srv.Turn.At, process.CPUTime)
	c.Reply.OK()
}

// hotkeysMetrics parses the metrics. It ignores names that it does not know, beside one that
// it does.
func hotkeysMetrics(c *engine.Call, o *metrics.HotKeysOptions) {
	n := c.IntIn(1, 2, "ERR METRICS count must be > 0 and <= 2")
	for i := int64(0); i < n && c.Err() == ""; i++ {
		switch {
		case c.Len() == 0:
			c.Fail("ERR METRICS count does not match number of metric types provided")
		case c.Is("CPU"):
			if o.TimeOf {
				c.Fail("ERR METRICS CPU defined more than once!")
			}
			o.TimeOf = true
		case c.Is("NET"):
			if o.BytesOf {
				c.Fail("ERR METRICS NET defined more than once!")
			}
			o.BytesOf = true
		default:
			c.Bytes()
		}
	}
	if c.Err() == "" && !o.TimeOf && !o.BytesOf {
		c.Fail("ERR METRICS no valid metrics passed. Supported: CPU|NET")
	}
}

// hotkeysSlots parses the slots of a node of a cluster.
func hotkeysSlots(c *engine.Call, o *metrics.HotKeysOptions) {
	switch {
	case c.Engine.Cluster == nil:
		c.Fail("ERR SLOTS parameter cannot be used in non-cluster mode")
	case o.Slots != nil:
		c.Fail("ERR SLOTS parameter already specified")
	}
	n := c.IntIn(1, keyslot.Count, "ERR SLOTS count must be between 1 and 16384")
	if c.Err() == "" && n > int64(c.Len()) {
		c.Fail("ERR not enough slot numbers provided")
	}
	o.Slots = make([]bool, keyslot.Count)
	for i := int64(0); i < n && c.Err() == ""; i++ {
		at := slot(c)
		switch {
		case c.Err() != "":
			return
		case !c.Engine.Cluster.Served[at]:
			c.Fail("ERR slot " + string(c.Peek(-1)) + " not handled by this node")
		case o.Slots[at]:
			c.Fail("ERR duplicate slot number")
		}
		o.Slots[at] = true
	}
}

func hotkeysStop(c *engine.Call) {
	s := c.Engine.Stats.HotKeys
	if s == nil || !s.Active(c.Engine.Turn.At) {
		c.Reply.Null()
		return
	}
	s.Stop(c.Engine.Turn.At)
	c.Reply.OK()
}

func hotkeysReset(c *engine.Call) {
	if s := c.Engine.Stats.HotKeys; s != nil && s.Active(c.Engine.Turn.At) {
		c.Reply.Error("ERR hotkey tracking session in progress, stop tracking first")
		return
	}
	c.Engine.Stats.HotKeys = nil
	c.Reply.OK()
}

// field is a field of HOTKEYS GET.
type field struct {
	name  string
	write func()
}

func hotkeysGet(c *engine.Call) {
	srv, s := c.Engine, c.Engine.Stats.HotKeys
	if s == nil {
		c.Reply.Null()
		return
	}
	var fields []field
	number := func(name string, n int64) { fields = append(fields, field{name, func() { c.Reply.Int(n) }}) }
	list := func(name string, t *metrics.Top, unit int64) {
		fields = append(fields, field{name, func() {
			top := t.Largest(s.Count)
			c.Reply.Array(2 * len(top))
			for _, e := range top {
				c.Reply.BulkString(e.Key)
				c.Reply.Int((e.Sum + unit - 1) / unit)
			}
		}})
	}
	active := s.Active(srv.Turn.At)
	number("tracking-active", btoi(active))
	number("sample-ratio", s.Sample)
	fields = append(fields, field{"selected-slots", func() { writeSlots(c, s) }})
	if s.Slots != nil && s.Sample > 1 {
		number("sampled-commands-selected-slots-us", s.Sampled.Time.Microseconds())
	}
	if s.Slots != nil {
		number("all-commands-selected-slots-us", s.Chosen.Time.Microseconds())
	}
	number("all-commands-all-slots-us", s.All.Time.Microseconds())
	if s.Slots != nil && s.Sample > 1 {
		number("net-bytes-sampled-commands-selected-slots", s.Sampled.Bytes)
	}
	if s.Slots != nil {
		number("net-bytes-all-commands-selected-slots", s.Chosen.Bytes)
	}
	number("net-bytes-all-commands-all-slots", s.All.Bytes)
	number("collection-start-time-unix-ms", s.Start.UnixMilli())
	number("collection-duration-ms", s.Lasted(srv.Turn.At).Milliseconds())
	if s.CPU != nil {
		system, user := s.Processor()
		number("total-cpu-time-user-ms", user.Milliseconds())
		number("total-cpu-time-sys-ms", system.Milliseconds())
	}
	if s.Net != nil {
		number("total-net-bytes", s.Net.Sum)
	}
	if s.CPU != nil {
		list("by-cpu-time-us", s.CPU, int64(time.Microsecond))
	}
	if s.Net != nil {
		list("by-net-bytes", s.Net, 1)
	}
	c.Reply.Array(1)
	c.Reply.Map(len(fields))
	for _, f := range fields {
		c.Reply.BulkString(f.name)
		f.write()
	}
}

// writeSlots writes the ranges of the slots whose keys are measured.
func writeSlots(c *engine.Call, s *metrics.HotKeys) {
	chosen := s.Slots
	if cl := c.Engine.Cluster; chosen == nil && cl != nil {
		chosen = cl.Served[:]
	}
	var ranges [][]int
	for i := range keyslot.Count {
		if chosen != nil && !chosen[i] {
			continue
		}
		if n := len(ranges); n > 0 && ranges[n-1][1] == i-1 {
			ranges[n-1][1] = i
		} else {
			ranges = append(ranges, []int{i, i})
		}
	}
	c.Reply.Array(len(ranges))
	for _, r := range ranges {
		if r[0] == r[1] {
			r = r[:1]
		}
		c.Reply.Array(len(r))
		for _, n := range r {
			c.Reply.Int(int64(n))
		}
	}
}

func infoHotkeys(srv *engine.Engine, t *metrics.Text) {
	t.Title("Hotkeys")
	if s := srv.Stats.HotKeys; s != nil {
		t.Int("hotkeys-tracking-active", btoi(s.Active(srv.Turn.At)))
		t.Int("hotkeys-cmd-cpu-time", s.Sampled.Time.Milliseconds())
	}
}
