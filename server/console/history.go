package console

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

const (
	sampleTime  = time.Second
	historyTime = 15 * time.Minute
	historySize = int(historyTime / sampleTime)
	topCommands = 12 // commands of a sample, by calls
)

// sample is one second of the server.
type sample struct {
	T        int64              `json:"t"`        // milliseconds since 1970
	Ops      int64              `json:"ops"`      // commands a second
	Commands map[string]int64   `json:"commands"` // the most frequent of them
	P50      *float64           `json:"p50us"`    // µs; null without a command, or without latency-tracking
	P99      *float64           `json:"p99us"`
	Memory   map[string]float64 `json:"memory"` // bytes by kind
	Clients  int64              `json:"clients"`
	Blocked  int64              `json:"blocked"`
	Hits     int64              `json:"hits"` // a second, as the others down to out
	Misses   int64              `json:"misses"`
	Expired  int64              `json:"expired"` // keys and members
	Evicted  int64              `json:"evicted"`
	Errors   int64              `json:"errors"`
	In       int64              `json:"in"` // bytes
	Out      int64              `json:"out"`
	Keys     int64              `json:"keys"`
	LagMs    float64            `json:"lagms"` // p99 of the lag of expiry since the start, in ms
	Replicas int64              `json:"replicas"`
	Role     string             `json:"role"`
	Link     string             `json:"link,omitempty"` // of a replica: up or down
	Uptime   int64              `json:"uptime"`         // seconds
	fileSample
}

// fileSample is the data file in a sample.
type fileSample struct {
	CheckMs *float64 `json:"checkms"` // mean time of the checkpoints of the second, in ms
	Saved   int64    `json:"saved"`   // time of the last save, in seconds since 1970
	Saving  bool     `json:"saving"`
	SaveOK  bool     `json:"saveok"`
	Changes int64    `json:"changes"` // since the last save
}

// memoryKinds are the fields of INFO that a sample has.
func memoryKinds() map[string]string {
	return map[string]string{
		"used": "used_memory", "rss": "used_memory_rss", "peak": "used_memory_peak", "max": "maxmemory",
		"dataset": "used_memory_dataset", "overhead": "used_memory_overhead", "startup": "used_memory_startup",
		"clients": "mem_clients_normal", "replicas": "mem_total_replication_buffers",
		"scripts": "used_memory_vm_total", "functions": "used_memory_functions",
	}
}

// counters are what samples are differences of.
type counters struct {
	at      time.Time
	info    *info
	calls   map[string]int64
	latency map[int64]int64 // commands by the upper bound of their latency in µs
}

// history samples the server each second, and keeps 15 minutes.
type history struct {
	mu   sync.Mutex
	ring [][]byte // JSON
	next int      // index of the oldest once the ring is full
	last counters
	feed *feed
}

// sampling samples until the console is closed.
func (c *Console) sampling() {
	tick := time.NewTicker(sampleTime)
	defer tick.Stop()
	for {
		c.takeSample()
		c.beat(time.Now())
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// beat lets streams that are silent write a comment line.
func (c *Console) beat(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.served {
		s.beat(now)
	}
}

// takeSample adds a sample, unless the server does not answer, as while it loads data.
func (c *Console) takeSample() {
	ctx, cancel := context.WithTimeout(c.ctx, sampleTime)
	defer cancel()
	in, err := c.askInfo(ctx, "everything")
	if err != nil {
		return
	}
	reply, err := c.ask(ctx, "LATENCY", "HISTOGRAM")
	if err != nil {
		return
	}
	now := counters{time.Now(), in, commandCalls(in), latencyBuckets(reply)}
	if n := int64(in.number("maxclients")); n > 0 {
		c.maxClients.Store(n)
	}
	h := &c.history
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.last
	h.last = now
	if last.info == nil {
		return
	}
	b, err := json.Marshal(newSample(&last, &now))
	if err != nil {
		c.log.Error("cannot sample the server", "error", err)
		return
	}
	if len(h.ring) < historySize {
		h.ring = append(h.ring, b)
	} else {
		h.ring[h.next] = b
		h.next = (h.next + 1) % historySize
	}
	h.feed.add(fmt.Appendf(nil, "event: sample\ndata: %s\n\n", b), "")
}

// newSample returns what has happened between two readings.
func newSample(last, now *counters) *sample {
	in := now.info
	seconds := max(now.at.Sub(last.at).Seconds(), 0.001)
	rate := func(field string) int64 {
		d := in.number(field) - last.info.number(field)
		if d < 0 { // CONFIG RESETSTAT
			d = in.number(field)
		}
		return int64(math.Round(d / seconds))
	}
	s := &sample{
		T: now.at.UnixMilli(), Commands: map[string]int64{}, Memory: map[string]float64{},
		Ops:     max(0, rate("total_commands_processed")),
		Clients: int64(in.number("connected_clients")), Blocked: int64(in.number("blocked_clients")),
		Hits: rate("keyspace_hits"), Misses: rate("keyspace_misses"), Expired: rate("expired_keys") + rate("expired_subkeys"),
		Evicted: rate("evicted_keys"), Errors: rate("total_error_replies"),
		In: rate("total_net_input_bytes"), Out: rate("total_net_output_bytes"),
		Replicas: int64(in.number("connected_slaves")), Role: in.values["role"], Link: in.values["master_link_status"],
		LagMs: part(in.values["expire_lag_percentiles_usec"], "p99") / 1000, Uptime: int64(in.number("uptime_in_seconds")),
		fileSample: fileSample{
			Saved: int64(in.number("rdb_last_save_time")), Saving: in.values["rdb_bgsave_in_progress"] == "1",
			SaveOK:  in.values["rdb_last_bgsave_status"] == "ok" && in.values["aof_last_write_status"] == "ok",
			Changes: int64(in.number("rdb_changes_since_last_save")),
		},
	}
	for name, field := range memoryKinds() {
		s.Memory[name] = in.number(field)
	}
	for _, f := range in.section("Keyspace") {
		s.Keys += int64(part(f.value, "keys"))
	}
	calls := map[string]int64{}
	for name, n := range now.calls {
		if d := n - last.calls[name]; d > 0 {
			calls[name] = int64(math.Ceil(float64(d) / seconds))
		}
	}
	names := slices.SortedFunc(maps.Keys(calls), func(a, b string) int { return int(calls[b] - calls[a]) })
	for _, name := range names[:min(len(names), topCommands)] {
		s.Commands[name] = calls[name]
	}
	buckets := map[int64]int64{}
	for bound, n := range now.latency {
		if d := n - last.latency[bound]; d > 0 {
			buckets[bound] = d
		}
	}
	s.P50, s.P99 = percentile(buckets, 0.50), percentile(buckets, 0.99)
	was, is := last.info.values["checkpoint_histogram_usec"], in.values["checkpoint_histogram_usec"]
	if n := part(is, "count") - part(was, "count"); n > 0 {
		mean := (part(is, "sum") - part(was, "sum")) / n / 1000
		s.CheckMs = &mean
	}
	return s
}

// commandCalls returns the calls of each command.
func commandCalls(in *info) map[string]int64 {
	calls := map[string]int64{}
	for _, f := range in.section("Commandstats") {
		calls[strings.TrimPrefix(f.name, "cmdstat_")] = int64(part(f.value, "calls"))
	}
	return calls
}

// latencyBuckets adds up the histograms of all commands: the number of calls by the upper
// bound of their latency.
func latencyBuckets(reply any) map[int64]int64 {
	buckets := map[int64]int64{}
	commands, _ := reply.(protocol.Map)
	for _, command := range commands {
		_, histogram := histogramOf(command.Value)
		below := int64(0)
		for _, bucket := range histogram {
			buckets[bucket.bound] += bucket.calls - below
			below = bucket.calls
		}
	}
	return buckets
}

// latencyBucket is the number of calls that took up to a bound in µs.
type latencyBucket struct{ bound, calls int64 }

// histogramOf converts the histogram of one command in the reply of LATENCY HISTOGRAM. The
// calls of its buckets are cumulative.
func histogramOf(v any) (calls int64, list []latencyBucket) {
	fields, _ := v.(protocol.Map)
	for _, f := range fields {
		switch f.Key {
		case "calls":
			calls, _ = f.Value.(int64)
		case "histogram_usec":
			bounds, _ := f.Value.(protocol.Map)
			for _, b := range bounds {
				bound, _ := b.Key.(int64)
				n, _ := b.Value.(int64)
				list = append(list, latencyBucket{bound, n})
			}
		}
	}
	return calls, list
}

// percentile returns the latency below which a share of the calls is, in µs. Within a bucket,
// whose lower bound is half its upper one, calls count as evenly distributed.
func percentile(buckets map[int64]int64, share float64) *float64 {
	total := int64(0)
	for _, n := range buckets {
		total += n
	}
	wanted := share * float64(total)
	below := 0.0
	for _, bound := range slices.Sorted(maps.Keys(buckets)) {
		n := float64(buckets[bound])
		if below+n >= wanted {
			v := float64(bound)/2 + float64(bound)/2*(wanted-below)/n
			v = math.Round(v*10) / 10
			return &v
		}
		below += n
	}
	return nil
}

// stats serves GET /stats.
func (c *Console) stats(w http.ResponseWriter, r *http.Request) {
	nc, who, err := c.open(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	_, err = nc.info() // the samples are INFO
	nc.close()
	if err != nil {
		c.refuseSource(w, r, err)
		return
	}
	v := c.newViewer(w, r, who)
	if v == nil {
		return
	}
	s := v.s
	defer s.abandon()
	event := []byte("event: history\ndata: [")
	h := &c.history
	h.mu.Lock()
	for i := range h.ring {
		if i > 0 {
			event = append(event, ',')
		}
		event = append(event, h.ring[(h.next+i)%len(h.ring)]...)
	}
	v.follow(h.feed, nil)
	h.mu.Unlock()
	c.mu.Lock()
	h.feed.interested++
	c.mu.Unlock()
	if s.begin(w, r) == nil && s.write(append(event, "]\n\n"...)) == nil {
		s.serve(r)
	}
}

// ms formats a time of a reply, which is in seconds, as milliseconds.
func ms(seconds any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(seconds), 10, 64)
	return n * 1000
}
