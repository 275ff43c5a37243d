package server

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/zset"
)

// Memory figures of INFO and MEMORY. "Used" is the memory that counts against
// maxmemory: keys, values and clients (maxmemory.go). The allocator's figures are
// those of the Go heap, which includes garbage that is not collected yet, and the
// rest of the program that embeds the server.

// heapState is the Go heap, in bytes.
type heapState struct {
	allocated int64 // objects
	active    int64 // and the space between them
	resident  int64 // and free memory not returned to the system
	rss       int64 // the process as the system sees it
}

// usedMemory returns the bytes of the objects in the heap.
func usedMemory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// liveMemory returns the bytes of the objects that the last garbage collection
// found live; 0 before the first one.
func liveMemory() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

func readHeap() heapState {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	n := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	h := heapState{allocated: n(0), active: n(0) + n(1), resident: n(0) + n(1) + n(2), rss: n(3) - n(4)}
	if rss, ok := residentSize(); ok {
		h.rss = rss
	}
	return h
}

// residentSize reads the resident size of the process from Linux.
func residentSize() (int64, bool) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}

// systemMemory reads the memory of the machine from Linux; 0 is unknown.
func systemMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 || string(fields[0]) != "MemTotal:" {
		return 0
	}
	kb, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}

// memory is the breakdown of the used memory.
type memory struct {
	heapState
	used             int64
	peak, startup    int64
	clients          int64
	keys             int
	tables, expiries []int64 // by database
}

func (srv *Server) memory() memory {
	m := memory{heapState: readHeap(), startup: srv.startMemory, clients: srv.clientsMemory()}
	srv.memoryLimit.nonKeyBytesAt = time.Time{}
	m.used = srv.inUse()
	srv.peakMemory = max(srv.peakMemory, m.used)
	m.peak = srv.peakMemory
	for i := range srv.keys.Len() {
		db := srv.keys.DB(i)
		table, expiries := db.Overhead()
		m.keys += db.Len()
		m.tables = append(m.tables, int64(table))
		m.expiries = append(m.expiries, int64(expiries))
	}
	return m
}

// clientsMemory estimates the bytes that all sessions take.
func (srv *Server) clientsMemory() (n int64) {
	for _, s := range srv.sessions {
		if !s.killed { // a killed session is about to be freed
			n += s.memory()
		}
	}
	return n
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
	return min(100*ratio(m.dataset(), max(m.used-m.startup, 0)), 100)
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// running returns the command that the session runs or that waits with it.
func (s *Session) running() [][]byte {
	switch {
	case s.srv.current == s:
		return s.call.argv
	case s.blocked != nil:
		return s.blocked.argv
	}
	return s.postponed
}

func argsSize(argv [][]byte) (n int64) {
	for _, a := range argv {
		n += int64(len(a))
	}
	return n
}

// footprint estimates the bytes of a value; for a sorted set from samples of its
// members (0: all). The other types sample their own elements.
func footprint(v any, samples int) int {
	type sized interface{ Bytes() int }
	n := v.(sized).Bytes()
	if z, ok := v.(*zset.Set); ok {
		n += averageMember(z, samples)
	}
	return n
}

// averageMember estimates the bytes of all members of a sorted set.
func averageMember(z *zset.Set, samples int) int {
	if samples <= 0 || samples > z.Len() {
		samples = z.Len()
	}
	n := 0
	for i := range samples {
		e, _ := z.At(i * z.Len() / samples)
		n += len(e.Member)
	}
	return int(float64(n) / float64(samples) * float64(z.Len()))
}

func memoryUsage(c *Call) {
	key := c.Bytes()
	samples := int64(5)
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
	if !c.ok() {
		return
	}
	e := c.db.Peek(key)
	if e == nil {
		c.Reply.Null()
		return
	}
	c.Reply.Int(int64(e.Bytes() + footprint(e.Value(), clampInt(samples))))
}

func memoryStats(c *Call) {
	m := c.srv.memory()
	r := c.Reply
	n := func(name string, v int64) { r.BulkString(name); r.Int(v) }
	f := func(name string, v float64) { r.BulkString(name); r.Double(v) }
	databases := 0
	for i := range c.srv.keys.Len() {
		if c.srv.keys.DB(i).Len() > 0 {
			databases++
		}
	}
	r.Map(27 + databases)
	n("peak.allocated", m.peak)
	n("total.allocated", m.used)
	n("startup.allocated", m.startup)
	n("replication.backlog", 0)
	n("clients.slaves", 0)
	n("clients.normal", m.clients)
	n("cluster.links", 0)
	n("aof.buffer", 0)
	n("lua.caches", 0)
	n("functions.caches", 0)
	for i := range c.srv.keys.Len() {
		if c.srv.keys.DB(i).Len() == 0 {
			continue
		}
		r.BulkString("db." + strconv.Itoa(i))
		r.Map(3)
		n("overhead.hashtable.main", m.tables[i])
		n("overhead.hashtable.expires", m.expiries[i])
		n("overhead.hashtable.slot-to-keys", 0)
	}
	n("overhead.total", m.overhead())
	n("keys.count", int64(m.keys))
	n("keys.bytes-per-key", max(m.used-m.startup, 0)/int64(max(m.keys, 1))*int64(min(m.keys, 1)))
	n("dataset.bytes", m.dataset())
	f("dataset.percentage", m.datasetShare())
	f("peak.percentage", 100*ratio(m.used, m.peak))
	n("allocator.allocated", m.allocated)
	n("allocator.active", m.active)
	n("allocator.resident", m.resident)
	f("allocator-fragmentation.ratio", ratio(m.active, m.allocated))
	n("allocator-fragmentation.bytes", m.active-m.allocated)
	f("allocator-rss.ratio", ratio(m.resident, m.active))
	n("allocator-rss.bytes", m.resident-m.active)
	f("rss-overhead.ratio", ratio(m.rss, m.resident))
	n("rss-overhead.bytes", m.rss-m.resident)
	f("fragmentation", ratio(m.rss, m.used))
	n("fragmentation.bytes", m.rss-m.used)
}

func memoryDoctor(c *Call) { c.Reply.Verbatim("txt", c.srv.memoryReport()) }

// memoryReport is Redis's; the advice is for the Go heap.
func (srv *Server) memoryReport() string {
	m := srv.memory()
	if m.used < 5<<20 {
		return "Hi Sam, this instance is empty or is using very little memory, my issues detector can't be used in these " +
			"conditions. Please, leave for your mission on Earth and fill it with some data. The new Sam and I will be back to " +
			"our programming as soon as I finished rebooting.\n"
	}
	var found []string
	if ratio(m.peak, m.used) > 1.5 {
		found = append(found, " * Peak memory: In the past this instance used more than 150% the memory that is currently using. "+
			"The heap gives memory back to the system slowly after a peak, so the Resident Set Size (RSS) may stay larger than "+
			"expected for some minutes. This is harmless: the memory will be used as soon as you fill the instance with more "+
			"data. To have it given back at once, use the MEMORY PURGE command.\n\n")
	}
	if ratio(m.active, m.allocated) > 1.1 && m.active-m.allocated > 10<<20 {
		found = append(found, " * High allocator fragmentation: This instance has an allocator external fragmentation greater "+
			"than 1.1. This problem is usually due either to a large peak memory (check if there is a peak memory entry above in "+
			"the report) or may result from a workload that causes the allocator to fragment memory a lot.\n\n")
	}
	if ratio(m.rss, m.resident) > 1.4 && m.rss-m.resident > 10<<20 {
		found = append(found, " * High process RSS overhead: This instance has non-allocator RSS memory overhead greater than 1.4 "+
			"(this means that the Resident Set Size of the process is much larger than the RSS the heap holds). Memory of the "+
			"rest of the program, of stacks or of mapped files may be the reason.\n\n")
	}
	if n := int64(len(srv.sessions)); n > 0 && m.clients/n > 200<<10 {
		found = append(found, " * Big client buffers: The clients output buffers in this instance are greater than 200K per client "+
			"(on average). This may result from different causes, like Pub/Sub clients subscribed to channels bot not receiving "+
			"data fast enough, so that data piles on the instance output buffer, or clients sending commands with large replies "+
			"or very large sequences of commands in the same pipeline. Please use the CLIENT LIST command in order to "+
			"investigate the issue if it causes problems in your instance, or to understand better why certain clients are "+
			"using a big amount of memory.\n\n")
	}
	if len(found) == 0 {
		return "Hi Sam, I can't find any memory issue in your instance. I can only account for what occurs on this base.\n"
	}
	return "Sam, I detected a few issues in this Redis instance memory implants:\n\n" + strings.Join(found, "") +
		"I'm here to keep you safe, Sam. I want to help you.\n"
}

// memoryMallocStats replies the metrics of the Go runtime's memory and collector.
func memoryMallocStats(c *Call) {
	var b strings.Builder
	fmt.Fprintf(&b, "___ Begin %s heap statistics ___\n", runtime.Version())
	all := metrics.All()
	samples := make([]metrics.Sample, 0, len(all))
	for _, d := range all {
		if strings.HasPrefix(d.Name, "/memory/") || strings.HasPrefix(d.Name, "/gc/") {
			samples = append(samples, metrics.Sample{Name: d.Name})
		}
	}
	metrics.Read(samples)
	for _, s := range samples {
		switch s.Value.Kind() {
		case metrics.KindUint64:
			fmt.Fprintf(&b, "%s %d\n", s.Name, s.Value.Uint64())
		case metrics.KindFloat64:
			fmt.Fprintf(&b, "%s %g\n", s.Name, s.Value.Float64())
		}
	}
	b.WriteString("--- End heap statistics ---\n")
	c.Reply.Verbatim("txt", b.String())
}

// memoryPurge collects garbage and returns free memory to the system. That takes a
// while with a large heap; the reply does not wait for it.
func memoryPurge(c *Call) {
	go debug.FreeOSMemory()
	c.Reply.OK()
}

func memoryHelp(c *Call) {
	c.help("DOCTOR",
		"    Return memory problems reports.",
		"MALLOC-STATS",
		"    Return internal statistics report from the memory allocator.",
		"PURGE",
		"    Attempt to purge dirty pages for reclamation by the allocator.",
		"STATS",
		"    Return information about the memory usage of the server.",
		"USAGE <key> [SAMPLES <count>]",
		"    Return memory in bytes used by <key> and its value. Nested values are",
		"    sampled up to <count> times (default: 5, 0 means sample all).")
}

// humanBytes writes a size as INFO does: 512B, 1.50K, 2.00M.
func humanBytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + "B"
	}
	units := "KMGTPE"
	i := 0
	f := float64(n) / 1024
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return strconv.FormatFloat(math.Round(f*100)/100, 'f', 2, 64) + units[i:i+1]
}
