package console

import (
	"bytes"
	"math"
	"os"
	"runtime"
	runtimemetrics "runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// expositionType is the content type of the text format of Prometheus.
const expositionType = "text/plain; version=0.0.4; charset=utf-8"

// exposition is a document in the text format of Prometheus:
// https://prometheus.io/docs/instrumenting/exposition_formats/. It demands that the samples of
// one metric stand together, after its help and its type. Metrics are in the order of their
// first samples. A library would keep a registry of what changes; here each document is made of
// one reading of the server. That of Prometheus links protocol buffers, 3 MB of program.
type exposition struct {
	metrics map[string]*bytes.Buffer
	order   []*bytes.Buffer
}

// bucket is an upper bound and how many observations do not exceed it, or a quantile and its
// value.
type bucket struct{ bound, value float64 }

func newExposition() *exposition { return &exposition{metrics: map[string]*bytes.Buffer{}} }

// bytes returns the document.
func (e *exposition) bytes() (b []byte) {
	for _, m := range e.order {
		b = append(b, m.Bytes()...)
	}
	return b
}

// metric returns where the samples of a metric go.
func (e *exposition) metric(name, help, kind string) *bytes.Buffer {
	b := e.metrics[name]
	if b == nil {
		b = new(bytes.Buffer)
		e.metrics[name], e.order = b, append(e.order, b)
		b.WriteString("# HELP " + name + " " + strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(help) + "\n# TYPE " + name + " " + kind + "\n")
	}
	return b
}

// add adds a sample of a gauge or a counter. Labels are pairs of names and values, in any
// bytes.
func (e *exposition) add(name, help, kind string, value float64, labels ...string) {
	writeSample(e.metric(name, help, kind), name, value, labels)
}

// histogram adds a histogram. Its buckets are cumulative, with rising bounds.
func (e *exposition) histogram(name, help string, buckets []bucket, count, sum float64, labels ...string) {
	b := e.metric(name, help, "histogram")
	for _, one := range append(buckets, bucket{math.Inf(1), count}) {
		writeSample(b, name+"_bucket", one.value, append(labels[:len(labels):len(labels)], "le", number(one.bound)))
	}
	writeSample(b, name+"_sum", sum, labels)
	writeSample(b, name+"_count", count, labels)
}

// summary adds quantiles.
func (e *exposition) summary(name, help string, quantiles []bucket, count, sum float64, labels ...string) {
	b := e.metric(name, help, "summary")
	for _, one := range quantiles {
		writeSample(b, name, one.value, append(labels[:len(labels):len(labels)], "quantile", number(one.bound)))
	}
	writeSample(b, name+"_sum", sum, labels)
	writeSample(b, name+"_count", count, labels)
}

// writeSample writes the line of a sample.
func writeSample(b *bytes.Buffer, name string, value float64, labels []string) {
	b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		if i == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		text := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD"))
		b.WriteString(labels[i] + `="` + text + `"`)
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(" " + number(value) + "\n")
}

// number formats a value, or the bound of a bucket.
func number(f float64) string {
	if math.IsInf(f, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// goRuntime adds the metrics of the Go runtime, with the names of Prometheus's Go library.
func (e *exposition) goRuntime() {
	gauge, counter := "gauge", "counter"
	list := []struct{ source, name, kind, help string }{
		{"/sched/goroutines:goroutines", "go_goroutines", gauge, "Goroutines."},
		{"/sched/gomaxprocs:threads", "go_sched_gomaxprocs_threads", gauge, "Threads that run Go code at once."},
		{"/memory/classes/total:bytes", "go_memstats_sys_bytes", gauge, "Memory that the runtime has from the system."},
		{"/memory/classes/heap/objects:bytes", "go_memstats_alloc_bytes", gauge, "Memory of objects, also of those that wait for the collector."},
		{"/memory/classes/heap/free:bytes", "go_memstats_heap_idle_bytes", gauge, "Free memory of the heap that the system could have back."},
		{"/memory/classes/heap/released:bytes", "go_memstats_heap_released_bytes", gauge, "Memory of the heap that the system has back."},
		{"/memory/classes/heap/stacks:bytes", "go_memstats_stack_inuse_bytes", gauge, "Memory of stacks."},
		{"/gc/heap/allocs:bytes", "go_memstats_alloc_bytes_total", counter, "Memory that was allocated since the start."},
		{"/gc/heap/allocs:objects", "go_memstats_mallocs_total", counter, "Objects that were allocated since the start."},
		{"/gc/heap/frees:objects", "go_memstats_frees_total", counter, "Objects that were freed since the start."},
		{"/gc/heap/objects:objects", "go_memstats_heap_objects", gauge, "Objects of the heap."},
		{"/gc/heap/goal:bytes", "go_memstats_next_gc_bytes", gauge, "Size of the heap at which the next collection begins."},
		{"/gc/gomemlimit:bytes", "go_gc_gomemlimit_bytes", gauge, "Limit of memory of the runtime."},
		{"/gc/gogc:percent", "go_gc_gogc_percent", gauge, "Growth of the heap at which a collection begins."},
		{"/gc/cycles/total:gc-cycles", "go_gc_cycles_total_gc_cycles_total", counter, "Collections since the start."},
		{"/cpu/classes/gc/total:cpu-seconds", "go_cpu_classes_gc_total_cpu_seconds_total", counter, "Processor time of the collector."},
		{"/sync/mutex/wait/total:seconds", "go_sync_mutex_wait_total_seconds_total", counter, "Time that goroutines waited for locks."},
		{"/sched/pauses/total/gc:seconds", "go_gc_pauses_seconds", "histogram", "Pauses of the collector."},
		{"/sched/latencies:seconds", "go_sched_latencies_seconds", "histogram", "Time that goroutines that could run waited for a processor."},
	}
	samples := make([]runtimemetrics.Sample, len(list))
	for i := range list {
		samples[i].Name = list[i].source
	}
	runtimemetrics.Read(samples)
	for i, m := range list {
		switch v := samples[i].Value; v.Kind() {
		case runtimemetrics.KindUint64:
			e.add(m.name, m.help, m.kind, float64(v.Uint64()))
		case runtimemetrics.KindFloat64:
			e.add(m.name, m.help, m.kind, v.Float64())
		case runtimemetrics.KindFloat64Histogram:
			e.runtimeHistogram(m.name, m.help, v.Float64Histogram())
		}
	}
	e.add("go_threads", "Threads of the system that the runtime has made.", gauge, float64(threads()))
	e.add("go_info", "Version of Go.", gauge, 1, "version", runtime.Version())
}

func threads() int {
	n, _ := runtime.ThreadCreateProfile(nil)
	return n
}

// runtimeHistogram adds a histogram of the runtime, in buckets whose bounds at least double.
// The runtime keeps no sums: the sum is estimated from lower bounds.
func (e *exposition) runtimeHistogram(name, help string, h *runtimemetrics.Float64Histogram) {
	var buckets []bucket
	n, sum, last := 0.0, 0.0, 0.0
	for i, count := range h.Counts {
		n += float64(count)
		if low := h.Buckets[i]; count > 0 && !math.IsInf(low, -1) {
			sum += low * float64(count)
		}
		if high := h.Buckets[i+1]; high >= 2*last && high > 0 && !math.IsInf(high, 1) {
			buckets = append(buckets, bucket{high, n})
			last = high
		}
	}
	e.histogram(name, help, buckets, n, sum)
}

// process adds the metrics of the process, with the names of Prometheus's libraries. The system
// may lack some of them.
func (e *exposition) process(in *info) {
	e.add("process_cpu_seconds_total", "Processor time of the process.", "counter", in.number("used_cpu_sys")+in.number("used_cpu_user"))
	e.add("process_resident_memory_bytes", "Resident memory of the process.", "gauge", in.number("used_memory_rss"))
	e.add("process_start_time_seconds", "Start of the server, in seconds since 1970.", "gauge", float64(time.Now().Unix())-in.number("uptime_in_seconds"))
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		e.add("process_open_fds", "Open file descriptors.", "gauge", float64(len(list)-1)) // without that of the folder
	}
	limits, _ := os.ReadFile("/proc/self/limits")
	for line := range strings.Lines(string(limits)) {
		if rest, is := strings.CutPrefix(line, "Max open files"); is {
			if words := strings.Fields(rest); len(words) > 0 {
				if n, err := strconv.ParseFloat(words[0], 64); err == nil {
					e.add("process_max_fds", "Limit of file descriptors.", "gauge", n)
				}
			}
		}
	}
	if words := strings.Fields(readText("/proc/self/statm")); len(words) > 0 {
		if pages, err := strconv.ParseFloat(words[0], 64); err == nil {
			e.add("process_virtual_memory_bytes", "Address space of the process.", "gauge", pages*float64(os.Getpagesize()))
		}
	}
}

func readText(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
