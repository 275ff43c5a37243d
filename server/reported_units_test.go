package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/servertest"
)

// lateness is how much later than asked a busy machine may read the clock.
const lateness = 40 * time.Second

// TestUnits checks the units of times, sizes and shares on values large enough to tell them
// apart: days of the test's clock, a command that takes 50 ms, gigabytes.
func TestUnits(t *testing.T) {
	srv := servertest.Run(t, server.Options{Config: map[string]string{
		"enable-debug-command": "yes", "slowlog-log-slower-than": "50000", "latency-monitor-threshold": "50", "maxmemory": "3gb",
	}})
	info := func() map[string]string {
		fields := map[string]string{}
		for line := range strings.SplitSeq(srv.Must("INFO", "everything").(string), "\r\n") {
			name, value, _ := strings.Cut(line, ":")
			fields[name] = value
		}
		return fields
	}
	number := func(text any) float64 {
		t.Helper()
		f, err := strconv.ParseFloat(fmt.Sprint(text), 64)
		if err != nil {
			t.Error(err)
		}
		return f
	}
	// field returns the value of a name in a map, or in a text of name=value.
	field := func(reply any, name string) any {
		t.Helper()
		if pairs, ok := reply.(protocol.Map); ok {
			for _, p := range pairs {
				if p.Key == name {
					return p.Value
				}
			}
		} else if _, rest, ok := strings.Cut(strings.ReplaceAll(" "+fmt.Sprint(reply), ",", " "), " "+name+"="); ok {
			return strings.Fields(rest + " ?")[0]
		}
		t.Errorf("no %s in %v", name, reply)
		return 0
	}
	// within checks that a number is one of a unit, from the duration up to its lateness.
	within := func(what string, got any, least, unit time.Duration) {
		t.Helper()
		if n, from := number(got), float64(least)/float64(unit); n < from-1 || n > from+float64(lateness)/float64(unit) {
			t.Errorf("%s is %v, not %v", what, got, from)
		}
	}
	c := enginetest.Dial(t, srv.Addr())
	id := c.Call("CLIENT ID")
	c.Call("AUTH absent wrong")
	srv.Must("XADD", "x", "1-1", "f", "v")
	srv.Must("XGROUP", "CREATE", "x", "g", "0")
	srv.Must("XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">")
	srv.Must("SET", "k", "v", "PX", 1_000_000_000)
	srv.Must("HSET", "h", "f", "v")
	srv.Must("HPEXPIRE", "h", 1_000_000_000, "FIELDS", 1, "f")
	srv.Must("ZADD", "z", 1, "m")
	srv.Must("ZPEXPIRE", "z", 1_000_000_000, "MEMBERS", 1, "m")
	start := info()
	const passed = 3*24*time.Hour + 7*time.Second
	const left = 1_000_000*time.Second - passed - lateness/2 // of the deadlines
	srv.Advance(passed)
	now := info()
	within("uptime_in_seconds", number(now["uptime_in_seconds"])-number(start["uptime_in_seconds"]), passed, time.Second)
	within("server_time_usec", number(now["server_time_usec"])-number(start["server_time_usec"]), passed, time.Microsecond)
	if now["uptime_in_days"] != "3" {
		t.Errorf("uptime_in_days is %s", now["uptime_in_days"])
	}
	consumer := srv.Must("XINFO", "CONSUMERS", "x", "g").([]any)[0]
	within("idle of a consumer", field(consumer, "idle"), passed, time.Millisecond)
	within("inactive of a consumer", field(consumer, "inactive"), passed, time.Millisecond)
	within("idle of an entry", srv.Must("XPENDING", "x", "g", "-", "+", 1).([]any)[0].([]any)[2], passed, time.Millisecond)
	within("age-seconds", field(srv.Must("ACL", "LOG").([]any)[0], "age-seconds"), passed, time.Second)
	within("age of a client", field(srv.Must("CLIENT", "LIST", "ID", id), "age"), passed, time.Second)
	within("idle of a client", field(srv.Must("CLIENT", "LIST", "ID", id), "idle"), passed, time.Second)
	within("OBJECT IDLETIME", srv.Must("OBJECT", "IDLETIME", "k"), passed, time.Second)
	within("avg_ttl", field(now["db0"], "avg_ttl"), left, time.Millisecond)
	first := func(reply any) any { return reply.([]any)[0] }
	for command, unit := range map[string]time.Duration{"TTL": time.Second, "PTTL": time.Millisecond} {
		within(command, srv.Must(command, "k"), left, unit)
		within("H"+command, first(srv.Must("H"+command, "h", "FIELDS", 1, "f")), left, unit)
		within("Z"+command, first(srv.Must("Z"+command, "z", "MEMBERS", 1, "m")), left, unit)
	}
	srv.Must("CLIENT", "PAUSE", 1_000_000, "WRITE")
	within("paused_timeout_milliseconds", info()["paused_timeout_milliseconds"], 1000*time.Second-lateness/2, time.Millisecond)
	srv.Must("CLIENT", "UNPAUSE")

	const slept = 50 * time.Millisecond
	before := srv.Now()
	srv.Must("DEBUG", "SLEEP", slept.Seconds())
	now = info()
	within("usec of DEBUG", field(now["cmdstat_debug"], "usec"), slept, time.Microsecond)
	within("usec_per_call of DEBUG", field(now["cmdstat_debug"], "usec_per_call"), slept, time.Microsecond)
	within("percentile of DEBUG", field(now["latency_percentiles_usec_debug"], "p50"), slept, time.Microsecond)
	within("eventloop_duration_cmd_sum", now["eventloop_duration_cmd_sum"], slept, time.Microsecond)
	within("eventloop_duration_sum", now["eventloop_duration_sum"], slept, time.Microsecond)
	if f := number(now["used_active_time_main_thread"]); f < slept.Seconds() || f > lateness.Seconds() {
		t.Errorf("used_active_time_main_thread is %v", f)
	}
	slow := srv.Must("SLOWLOG", "GET").([]any)
	entry := slow[len(slow)-1].([]any)
	within("time in SLOWLOG", entry[2], slept, time.Microsecond)
	within("instant in SLOWLOG", number(entry[1])-float64(before.Unix()), 0, time.Second)
	event := first(srv.Must("LATENCY", "LATEST")).([]any)
	within("time in LATENCY", event[2], slept, time.Millisecond)
	within("greatest time in LATENCY", event[3], slept, time.Millisecond)
	within("instant in LATENCY", number(event[1])-float64(before.Unix()), 0, time.Second)
	reply := srv.Must("TIME").([]any)
	within("TIME", number(reply[0])-float64(before.Unix()), 0, time.Second)

	// A size is also there in readable form, and shares are of other fields.
	if now["maxmemory_human"] != "3.00G" || now["maxmemory"] != fmt.Sprint(3<<30) {
		t.Errorf("maxmemory is %s, %s", now["maxmemory"], now["maxmemory_human"])
	}
	for name, text := range now {
		bytes, found := now[strings.TrimSuffix(name, "_human")]
		if !strings.HasSuffix(name, "_human") || !found {
			continue
		}
		factor := map[byte]float64{'B': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}[text[len(text)-1]]
		if f := number(text[:len(text)-1]) * factor; f < number(bytes)-factor/100 || f > number(bytes)+factor/100 || f >= 1024*factor {
			t.Errorf("%s is %s, of %s", name, text, bytes)
		}
	}
	for share, of := range map[string][2]string{
		"used_memory_peak_perc": {"used_memory", "used_memory_peak"}, "mem_fragmentation_ratio": {"used_memory_rss", "used_memory"},
		"allocator_frag_ratio": {"allocator_active", "allocator_allocated"}, "allocator_rss_ratio": {"allocator_resident", "allocator_active"},
		"rss_overhead_ratio": {"used_memory_rss", "allocator_resident"},
	} {
		text, percent := strings.CutSuffix(now[share], "%")
		want := number(now[of[0]]) / number(now[of[1]])
		if percent {
			want *= 100
		}
		if got := number(text); got < want-0.006 || got > want+0.006 || want == 0 {
			t.Errorf("%s is %s, not %f", share, now[share], want)
		}
	}
	for rest, of := range map[string][2]string{
		"used_memory_dataset": {"used_memory", "used_memory_overhead"}, "allocator_frag_bytes": {"allocator_active", "allocator_allocated"},
		"allocator_rss_bytes": {"allocator_resident", "allocator_active"}, "rss_overhead_bytes": {"used_memory_rss", "allocator_resident"},
		"mem_fragmentation_bytes": {"used_memory_rss", "used_memory"},
	} {
		if got, want := number(now[rest]), number(now[of[0]])-number(now[of[1]]); got != want {
			t.Errorf("%s is %s, not %f", rest, now[rest], want)
		}
	}
	stats := srv.Must("MEMORY", "STATS")
	total, startup := number(field(stats, "total.allocated")), number(field(stats, "startup.allocated"))
	overhead := number(field(stats, "overhead.total"))
	for name, want := range map[string]float64{
		"peak.percentage":    100 * total / number(field(stats, "peak.allocated")),
		"dataset.bytes":      total - overhead,
		"dataset.percentage": 100 * (total - overhead) / (total - startup),
		"keys.bytes-per-key": (total - startup) / number(field(stats, "keys.count")),
	} {
		if got := number(field(stats, name)); got < want*0.999-1 || got > want*1.001+1 {
			t.Errorf("MEMORY STATS, %s: %f, not %f", name, got, want)
		}
	}
}
