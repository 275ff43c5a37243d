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
	topCommands = 12 // commands of a sample, by calls
)

// span is a time of which the history has samples.
type span struct {
	name string
	long time.Duration
	step time.Duration // of a sample
}

// spans returns those of the history. It has 1980 samples at most, of about 1 KB.
func spans() []span {
	return []span{
		{"15m", 15 * time.Minute, sampleTime}, {"1h", time.Hour, 10 * time.Second},
		{"6h", 6 * time.Hour, time.Minute}, {"24h", 24 * time.Hour, 4 * time.Minute},
	}
}

// sample is what the server has done in the time since the sample before it, and its state at the end.
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
	LagMs    *float64           `json:"lagms"` // p99 of the lag of expiry, in ms; null without an expiry
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

// history samples the server each second, and keeps a series of samples for each span.
type history struct {
	mu     sync.Mutex
	series []*series
	feed   *feed
}

// series are the samples of a span.
type series struct {
	span
	ring [][]byte // JSON
	next int      // index of the oldest once the ring is full
	last counters // of the last sample
}

// add adds a sample if it is due. It returns its JSON, or nil.
func (s *series) add(now *counters) ([]byte, error) {
	last := s.last
	if last.info != nil && now.at.Sub(last.at) < s.step-sampleTime/2 {
		return nil, nil
	}
	s.last = *now
	if last.info == nil {
		return nil, nil
	}
	b, err := json.Marshal(newSample(&last, now))
	if err != nil {
		return nil, err
	}
	if len(s.ring) < int(s.long/s.step) {
		s.ring = append(s.ring, b)
	} else {
		s.ring[s.next] = b
		s.next = (s.next + 1) % len(s.ring)
	}
	return b, nil
}

// appendTo appends an array of the samples, the oldest first.
func (s *series) appendTo(b []byte) []byte {
	b = append(b, '[')
	for i := range s.ring {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, s.ring[(s.next+i)%len(s.ring)]...)
	}
	return append(b, ']')
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
	for _, one := range h.series {
		b, err := one.add(&now)
		if err != nil {
			c.log.Error("cannot sample the server", "error", err)
			return
		}
		if b != nil {
			h.feed.add(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", one.event(), b), "")
		}
	}
}

// event returns the name of the event of a sample. Those of each second have the name sample.
func (s *series) event() string {
	if s.step == sampleTime {
		return "sample"
	}
	return "sample" + s.name
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
		Uptime: int64(in.number("uptime_in_seconds")),
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
	buckets := increase(last.latency, now.latency)
	s.P50, s.P99 = percentile(buckets, 0.50), percentile(buckets, 0.99)
	if lag := percentile(increase(lagBuckets(last.info), lagBuckets(in)), 0.99); lag != nil {
		*lag /= 1000
		s.LagMs = lag
	}
	was, is := last.info.values["checkpoint_histogram_usec"], in.values["checkpoint_histogram_usec"]
	if n := part(is, "count") - part(was, "count"); n > 0 {
		mean := (part(is, "sum") - part(was, "sum")) / n / 1000
		s.CheckMs = &mean
	}
	return s
}

// increase returns by how much each bucket of a histogram has grown.
func increase(last, now map[int64]int64) map[int64]int64 {
	grown := map[int64]int64{}
	for bound, n := range now {
		if d := n - last[bound]; d > 0 {
			grown[bound] = d
		}
	}
	return grown
}

// lagBuckets returns the histogram of the lag of expiry: the number of removals by the upper bound
// of their lag in µs.
func lagBuckets(in *info) map[int64]int64 {
	buckets, below := map[int64]int64{}, int64(0)
	for _, p := range parts(in.values["expire_lag_histogram_usec"]) {
		bound, err := strconv.ParseInt(p.name, 10, 64)
		if err != nil {
			continue // the sum and the count
		}
		n, _ := strconv.ParseInt(p.value, 10, 64)
		buckets[bound] = n - below
		below = n
	}
	return buckets
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
	name := r.URL.Query().Get("range")
	at := slices.IndexFunc(spans(), func(s span) bool { return s.name == name })
	if at < 0 && name != "" {
		fail(w, http.StatusBadRequest, "ERR the range "+quoted(name)+" is not 15m, 1h, 6h or 24h")
		return
	}
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
	event := []byte("event: history\ndata: ")
	h := &c.history
	h.mu.Lock()
	event = h.series[max(at, 0)].appendTo(event)
	v.follow(h.feed, nil)
	h.mu.Unlock()
	c.mu.Lock()
	h.feed.interested++
	c.mu.Unlock()
	if s.begin(w, r) == nil && s.write(append(event, "\n\n"...)) == nil {
		s.serve(r)
	}
}

// ms formats a time of a reply, which is in seconds, as milliseconds.
func ms(seconds any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(seconds), 10, 64)
	return n * 1000
}
