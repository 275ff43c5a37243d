package admin

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	runtimemetrics "runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

// Memory figures of INFO and MEMORY. "Used" is the memory that counts against
// maxmemory: keys, values and clients (maxmemory.go). The allocator's figures are
// those of the Go heap, which includes garbage that is not collected yet, and the
// rest of the program that embeds the server.

// systemMemory reads the memory of the machine from Linux; 0 is unknown.
func systemMemory() int64 {
	b, _ := os.ReadFile("/proc/meminfo")
	return totalMemory(b)
}

// totalMemory returns the bytes of memory that a file as /proc/meminfo begins with, or 0.
func totalMemory(meminfo []byte) int64 {
	fields := bytes.Fields(meminfo)
	if len(fields) < 2 || string(fields[0]) != "MemTotal:" {
		return 0
	}
	kb, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return kb << 10
}

// memory is the breakdown of the used memory.
type memory struct {
	engine.HeapState
	used             int64
	peak, startup    int64
	clients          int64
	keys             int
	tables, expiries []int64 // by database
}

func measureMemory(srv *engine.Engine) memory {
	m := memory{HeapState: engine.ReadHeap(), startup: srv.Identity.StartMemory, clients: srv.Clients.Memory()}
	srv.Memory.NonKeyBytesAt = time.Time{}
	m.used = srv.InUse()
	srv.Stats.NotePeak(m.used, srv.Turn.At)
	m.peak = srv.Stats.PeakMemory
	for i := range srv.Keys.Len() {
		db := srv.Keys.DB(i)
		table, expiries := db.Overhead()
		m.keys += db.Len()
		m.tables = append(m.tables, int64(table))
		m.expiries = append(m.expiries, int64(expiries))
	}
	return m
}

// overhead returns the memory that is not data: the empty server, the clients, the
// tables of keys.
func (m *memory) overhead() int64 {
	n := m.startup + m.clients
	for i := range m.tables {
		n += m.tables[i] + m.expiries[i]
	}
	return min(n, m.used)
}

func (m *memory) dataset() int64 { return m.used - m.overhead() }

// datasetShare is the percentage of the data in the memory added since the start.
func (m *memory) datasetShare() float64 {
	return min(100*metrics.Ratio(m.dataset(), max(m.used-m.startup, 0)), 100)
}

// usageSamples is how many elements of a collection MEMORY USAGE measures by default.
const usageSamples = 5

func memoryUsage(c *engine.Call) {
	key := c.Bytes()
	samples := int64(usageSamples)
	for c.More() {
		if c.Len() < 2 || !c.Is("SAMPLES") {
			c.Fail(protocol.ErrSyntax)
			break
		}
		samples = c.Int()
		if samples < 0 {
			c.Fail(protocol.ErrSyntax)
		}
	}
	if !c.OK() {
		return
	}
	e := c.DB.Peek(key)
	if e == nil {
		c.Reply.Null()
		return
	}
	c.Reply.Int(int64(e.Bytes() + engine.Footprint(e.Value(), engine.ClampInt(samples))))
}

func memoryStats(c *engine.Call) {
	m := measureMemory(c.Engine)
	scripts, buffers := c.Engine.Scripting.Memory(), c.Engine.Replication.Status()
	valkey := c.Engine.Config.Valkey()
	r := c.Reply
	n := func(name string, v int64) { r.BulkString(name); r.Int(v) }
	f := func(name string, v float64) { r.BulkString(name); r.Double(v) }
	databases, tables := 0, int64(0)
	for i := range c.Engine.Keys.Len() {
		if c.Engine.Keys.DB(i).Len() > 0 {
			databases++
			tables += m.tables[i] + m.expiries[i]
		}
	}
	r.Map(33 + int(btoi(valkey)) + databases)
	n("peak.allocated", m.peak)
	n("total.allocated", m.used)
	n("startup.allocated", m.startup)
	n("replication.backlog", buffers.BufferBytes-buffers.OutputBytes)
	n(c.Engine.Config.Words("replica.fullsync.buffer", "replicas.repl.buffer"), 0)
	n("clients.slaves", buffers.OutputBytes)
	n("clients.normal", m.clients)
	n("cluster.links", 0)
	if valkey {
		n("cluster.slot_import", 0)
		n("cluster.slot_export", 0)
	}
	n("aof.buffer", 0)
	n("lua.caches", scripts.Eval)
	n("functions.caches", scripts.Functions)
	if !valkey {
		n("script.VMs", scripts.VMEval+scripts.VMFunctions)
	}
	for i := range c.Engine.Keys.Len() {
		if c.Engine.Keys.DB(i).Len() == 0 {
			continue
		}
		r.BulkString("db." + strconv.Itoa(i))
		r.Map(2)
		n("overhead.hashtable.main", m.tables[i])
		n("overhead.hashtable.expires", m.expiries[i])
	}
	n("overhead.db.hashtable.lut", tables)
	n("overhead.db.hashtable.rehashing", 0)
	n("overhead.total", m.overhead())
	n("db.dict.rehashing.count", 0)
	n("keys.count", int64(m.keys))
	n("keys.bytes-per-key", max(m.used-m.startup, 0)/int64(max(m.keys, 1))*int64(min(m.keys, 1)))
	n("dataset.bytes", m.dataset())
	f("dataset.percentage", m.datasetShare())
	f("peak.percentage", 100*metrics.Ratio(m.used, m.peak))
	n("allocator.allocated", m.Allocated)
	n("allocator.active", m.Active)
	n("allocator.resident", m.Resident)
	n("allocator.muzzy", 0)
	f("allocator-fragmentation.ratio", metrics.Ratio(m.Active, m.Allocated))
	n("allocator-fragmentation.bytes", m.Active-m.Allocated)
	f("allocator-rss.ratio", metrics.Ratio(m.Resident, m.Active))
	n("allocator-rss.bytes", m.Resident-m.Active)
	f("rss-overhead.ratio", metrics.Ratio(m.RSS, m.Resident))
	n("rss-overhead.bytes", m.RSS-m.Resident)
	f("fragmentation", metrics.Ratio(m.RSS, m.used))
	n("fragmentation.bytes", m.RSS-m.used)
}

func memoryDoctor(c *engine.Call) {
	m := measureMemory(c.Engine)
	c.Reply.Verbatim("txt", m.report(int64(len(c.Engine.Clients.Sessions))))
}

// report is the text of MEMORY DOCTOR: the findings, each with its consequence. A server
// with little memory has none, because constant overhead distorts the ratios.
func (m *memory) report(connections int64) string {
	const (
		least    = 5 << 20   // bytes in use
		slack    = 10 << 20  // bytes of overhead that are no finding, whatever the ratio
		perConn  = 200 << 10 // mean bytes of a connection
		peak     = 1.5
		fragment = 1.1
		outside  = 1.4
	)
	if m.used < least {
		return fmt.Sprintf("The server uses less than %d MB: too little for a report.\n", least>>20)
	}
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, "- "+format+"\n", args...) }
	if r := metrics.Ratio(m.peak, m.used); r > peak {
		add("The peak was %.2f times the memory in use. The heap returns memory to the system within some minutes, so the resident "+
			"size may still be that of the peak. MEMORY PURGE returns it immediately.", r)
	}
	if r := metrics.Ratio(m.Active, m.Allocated); r > fragment && m.Active-m.Allocated > slack {
		add("The heap is fragmented: its pages hold %.2f times the bytes allocated. Typical reasons are a past peak, and values "+
			"that change their size often.", r)
	}
	if r := metrics.Ratio(m.RSS, m.Resident); r > outside && m.RSS-m.Resident > slack {
		add("The process is %.2f times as large as the heap: stacks, the program itself and mapped files, such as the data file, "+
			"take the rest.", r)
	}
	if n := connections; n > 0 && m.clients/n > perConn {
		add("A connection takes %d KB on average. Subscribers that read slowly, large replies and long pipelines fill buffers; "+
			"CLIENT LIST shows which connections have large ones.", m.clients/n>>10)
	}
	if b.Len() == 0 {
		return "No memory is wasted.\n"
	}
	return "Memory that is more than the data need:\n" + b.String()
}

// memoryMallocStats replies the metrics of the Go runtime's memory and collector.
func memoryMallocStats(c *engine.Call) {
	var b strings.Builder
	fmt.Fprintf(&b, "___ Begin %s heap statistics ___\n", runtime.Version())
	all := runtimemetrics.All()
	samples := make([]runtimemetrics.Sample, 0, len(all))
	for _, d := range all {
		if strings.HasPrefix(d.Name, "/memory/") || strings.HasPrefix(d.Name, "/gc/") {
			samples = append(samples, runtimemetrics.Sample{Name: d.Name})
		}
	}
	runtimemetrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() == runtimemetrics.KindUint64 {
			fmt.Fprintf(&b, "%s %d\n", s.Name, s.Value.Uint64())
		}
	}
	b.WriteString("--- End heap statistics ---\n")
	c.Reply.Verbatim("txt", b.String())
}

func memoryPurge(c *engine.Call) {
	c.Engine.Purge()
	c.Reply.OK()
}
