package console

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/zsetd/zsetd/protocol"
)

// metrics serves GET /metrics: the text format of Prometheus, with the names that
// redis_exporter gives to the same facts, so that its dashboards and alerts work. The names of
// other facts begin with zsetd_. The user needs INFO; without CONFIG, LATENCY or SLOWLOG their
// metrics are absent.
func (c *Console) metrics(w http.ResponseWriter, r *http.Request) {
	nc, _, err := c.open(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer nc.close()
	begin := time.Now()
	in, err := nc.info()
	if err != nil {
		c.refuseSource(w, r, err)
		return
	}
	e := &exposition{in: in, now: begin}
	if reply, err := nc.must("LATENCY", "HISTOGRAM"); err == nil {
		e.histograms, _ = reply.(protocol.Map)
	}
	if reply, err := nc.must("SLOWLOG", "LEN"); err == nil {
		e.slowLength, e.hasSlow = reply.(int64)
	}
	if reply, err := nc.must("SLOWLOG", "GET", "1"); err == nil {
		if list, _ := reply.([]any); len(list) == 1 {
			e.lastSlow, _ = list[0].([]any)
		}
	}
	e.duration = time.Since(begin)
	registry := prometheus.NewRegistry()
	registry.MustRegister(e, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: errorLog{c}}).ServeHTTP(w, r)
}

// errorLog logs errors of promhttp.
type errorLog struct{ c *Console }

// Println implements promhttp.Logger.
func (l errorLog) Println(v ...any) { l.c.log.Error("cannot write the metrics", "error", v) }

// exposition is a prometheus.Collector of one reading of the server.
type exposition struct {
	in         *info
	histograms protocol.Map
	slowLength int64
	hasSlow    bool
	lastSlow   []any
	now        time.Time
	duration   time.Duration
}

// Describe implements prometheus.Collector. Without descriptions the registry accepts any
// metric: which there are depends on the server.
func (e *exposition) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (e *exposition) Collect(out chan<- prometheus.Metric) {
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	send := func(name, help string, kind prometheus.ValueType, value float64, labels ...string) {
		names, values := pairs(labels)
		m, err := prometheus.NewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
		if err != nil { // a label that is no UTF-8
			m = prometheus.NewInvalidMetric(prometheus.NewDesc(name, help, names, nil), err)
		}
		out <- m
	}
	in := e.in
	for _, m := range infoMetrics() {
		value, there := in.values[m.field]
		if !there || value == "" {
			continue
		}
		kind := gauge
		if m.counter {
			kind = counter
		}
		f, err := strconv.ParseFloat(value, 64)
		switch {
		case value == "ok" || value == "up":
			f = 1
		case err != nil:
			f = 0
		}
		if m.scale != 0 {
			f *= m.scale
		}
		send("redis_"+m.name, "The field "+m.field+" of INFO.", kind, f)
	}
	send("redis_up", "Whether the server answers.", gauge, 1)
	send("redis_exporter_last_scrape_error", "Whether the last reading has failed.", gauge, 0, "err", "")
	send("redis_exporter_last_scrape_duration_seconds", "Time that the reading took.", gauge, e.duration.Seconds())
	send("redis_start_time_seconds", "Start of the server, in seconds since 1970.", gauge,
		float64(e.now.Unix())-in.number("uptime_in_seconds"))
	send("redis_instance_info", "Facts about the server.", gauge, 1,
		"role", in.values["role"], "redis_version", in.values["redis_version"], "redis_build_id", in.values["redis_build_id"],
		"redis_mode", in.values["redis_mode"], "os", in.values["os"], "maxmemory_policy", in.values["maxmemory_policy"],
		"tcp_port", in.values["tcp_port"], "run_id", in.values["run_id"], "process_id", in.values["process_id"],
		"master_replid", in.values["master_replid"], "zsetd_version", in.values["zsetd_version"])
	for _, f := range in.section("Keyspace") {
		send("redis_db_keys", "Keys of a database.", gauge, part(f.value, "keys"), "db", f.name)
		send("redis_db_keys_expiring", "Keys of a database that have a deadline.", gauge, part(f.value, "expires"), "db", f.name)
		send("redis_db_avg_ttl_seconds", "Mean time until the deadlines of a database.", gauge, part(f.value, "avg_ttl")/1000, "db", f.name)
	}
	for _, f := range in.section("Commandstats") {
		cmd := strings.TrimPrefix(f.name, "cmdstat_")
		send("redis_commands_total", "Calls of a command.", counter, part(f.value, "calls"), "cmd", cmd)
		send("redis_commands_duration_seconds_total", "Time that calls of a command took.", counter, part(f.value, "usec")/1e6, "cmd", cmd)
		send("redis_commands_rejected_calls_total", "Calls of a command that were rejected.", counter, part(f.value, "rejected_calls"), "cmd", cmd)
		send("redis_commands_failed_calls_total", "Calls of a command that replied an error.", counter, part(f.value, "failed_calls"), "cmd", cmd)
	}
	for _, f := range in.section("Errorstats") {
		send("redis_errors_total", "Error replies, by their first word.", counter, part(f.value, "count"), "err", strings.TrimPrefix(f.name, "errorstat_"))
	}
	e.collectLatency(out)
	e.collectReplication(send)
	if e.hasSlow {
		send("redis_slowlog_length", "Entries of the slow log.", gauge, float64(e.slowLength))
		id, last := 0.0, 0.0
		if len(e.lastSlow) >= 3 {
			n, _ := e.lastSlow[0].(int64)
			us, _ := e.lastSlow[2].(int64)
			id, last = float64(n), float64(us)/1e6
		}
		send("redis_slowlog_last_id", "Identifier of the newest entry of the slow log.", gauge, id)
		send("redis_last_slow_execution_duration_seconds", "Duration of the newest entry of the slow log.", gauge, last)
	}
}

// pairs divides names and values.
func pairs(labels []string) (names, values []string) {
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, strings.ToValidUTF8(labels[i+1], "\uFFFD"))
	}
	return names, values
}

// collectLatency sends the latency of the commands: histograms, and percentiles since the
// start. And the lag of expiry.
func (e *exposition) collectLatency(out chan<- prometheus.Metric) {
	spent := map[string]float64{}
	for _, f := range e.in.section("Commandstats") {
		spent[strings.TrimPrefix(f.name, "cmdstat_")] = part(f.value, "usec")
	}
	histogram := prometheus.NewDesc("redis_commands_latencies_usec", "Latency of a command in µs.", []string{"cmd"}, nil)
	calls := map[string]uint64{}
	for _, command := range e.histograms {
		name, _ := command.Key.(string)
		n, list := histogramOf(command.Value)
		buckets := map[float64]uint64{}
		for _, b := range list {
			buckets[float64(b.bound)] = uint64(b.calls)
		}
		calls[name] = uint64(n)
		out <- prometheus.MustNewConstHistogram(histogram, uint64(n), spent[name], buckets, name)
	}
	summary := prometheus.NewDesc("redis_latency_percentiles_usec", "Percentiles of the latency of a command in µs.", []string{"cmd"}, nil)
	for _, f := range e.in.section("Latencystats") {
		name := strings.TrimPrefix(f.name, "latency_percentiles_usec_")
		out <- prometheus.MustNewConstSummary(summary, calls[name], spent[name], quantiles(f.value), name)
	}
	if lag := quantiles(e.in.values["expire_lag_percentiles_usec"]); len(lag) > 0 {
		for q := range lag {
			lag[q] /= 1e6
		}
		out <- prometheus.MustNewConstSummary(prometheus.NewDesc("zsetd_expire_lag_seconds",
			"Percentiles of the time between a deadline and the removal.", nil, nil), uint64(e.in.number("expired_keys")+e.in.number("expired_subkeys")), 0, lag)
	}
}

// quantiles parses "p50=1.5,p99.9=3".
func quantiles(value string) map[float64]float64 {
	list := map[float64]float64{}
	for _, p := range parts(value) {
		q, err := strconv.ParseFloat(strings.TrimPrefix(p.name, "p"), 64)
		v, err2 := strconv.ParseFloat(p.value, 64)
		if err == nil && err2 == nil {
			list[q/100] = v
		}
	}
	return list
}

// collectReplication sends the facts about replicas, and about the primary.
func (e *exposition) collectReplication(send func(name, help string, kind prometheus.ValueType, value float64, labels ...string)) {
	in, gauge := e.in, prometheus.GaugeValue
	for _, f := range in.section("Replication") {
		list := parts(f.value)
		if !strings.HasPrefix(f.name, "slave") || len(list) < 5 {
			continue
		}
		r := map[string]string{}
		for _, p := range list {
			r[p.name] = p.value
		}
		labels := []string{"slave_ip", r["ip"], "slave_port", r["port"], "slave_state", r["state"]}
		send("redis_connected_slave_offset_bytes", "Offset that a replica has acknowledged.", gauge, part(f.value, "offset"), labels...)
		send("redis_connected_slave_lag_seconds", "Time since the last acknowledgement of a replica.", gauge, part(f.value, "lag"), labels...)
	}
	if in.values["role"] != "slave" {
		return
	}
	labels := []string{"master_host", in.values["master_host"], "master_port", in.values["master_port"]}
	up := 0.0
	if in.values["master_link_status"] == "up" {
		up = 1
	}
	send("redis_master_link_up", "Whether the replica has a link to its primary.", gauge, up, labels...)
	send("redis_master_last_io_seconds_ago", "Time since the last input from the primary.", gauge, in.number("master_last_io_seconds_ago"), labels...)
	send("redis_master_sync_in_progress", "Whether the replica receives the data of its primary.", gauge, in.number("master_sync_in_progress"), labels...)
	send("redis_slave_repl_offset", "Offset of the replica.", gauge, in.number("slave_repl_offset"), labels...)
	send("redis_slave_info", "Facts about the replica.", gauge, 1, append(labels, "read_only", in.values["slave_read_only"])...)
}

// infoMetric is a field of INFO and its name as a metric.
type infoMetric struct {
	field, name string
	counter     bool
	scale       float64 // of the value, unless 0
}

// infoMetrics returns the fields of INFO that are metrics.
func infoMetrics() (list []infoMetric) {
	// A line is a kind and names. A field with another name than its metric's is field=name.
	for line := range strings.Lines(infoNames) {
		kind, names, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for word := range strings.FieldsSeq(names) {
			field, name, renamed := strings.Cut(word, "=")
			if !renamed {
				name = field
			}
			m := infoMetric{field: field, name: name, counter: kind == "counter"}
			if field == "latest_fork_usec" {
				m.scale = 1e-6
			}
			list = append(list, m)
		}
	}
	return list
}

const infoNames = `
gauge: uptime_in_seconds process_id io_threads_active total_system_memory=total_system_memory_bytes
gauge: connected_clients cluster_connections blocked_clients maxclients=max_clients maxclients=config_maxclients tracking_clients
gauge: clients_in_timeout_table total_blocking_keys total_blocking_keys_on_nokey
gauge: client_recent_max_input_buffer=client_recent_max_input_buffer_bytes client_recent_max_output_buffer=client_recent_max_output_buffer_bytes
gauge: used_memory=memory_used_bytes used_memory_rss=memory_used_rss_bytes used_memory_peak=memory_used_peak_bytes used_memory_lua=memory_used_lua_bytes
gauge: used_memory_vm_eval=memory_used_vm_eval_bytes used_memory_scripts_eval=memory_used_scripts_eval_bytes used_memory_vm_functions=memory_used_vm_functions_bytes
gauge: used_memory_vm_total=memory_used_vm_total_bytes used_memory_functions=memory_used_functions_bytes used_memory_scripts=memory_used_scripts_bytes
gauge: used_memory_overhead=memory_used_overhead_bytes used_memory_startup=memory_used_startup_bytes used_memory_dataset=memory_used_dataset_bytes
gauge: maxmemory=memory_max_bytes maxmemory=config_maxmemory number_of_cached_scripts number_of_functions number_of_libraries
gauge: allocator_active=allocator_active_bytes allocator_allocated=allocator_allocated_bytes allocator_resident=allocator_resident_bytes
gauge: allocator_frag_ratio allocator_frag_bytes allocator_rss_ratio allocator_rss_bytes
gauge: mem_fragmentation_ratio mem_fragmentation_ratio=memory_fragmentation_ratio mem_fragmentation_bytes mem_clients_slaves mem_clients_normal
gauge: mem_not_counted_for_evict=mem_not_counted_for_eviction_bytes mem_total_replication_buffers=mem_total_replication_buffers_bytes
gauge: mem_replication_backlog=mem_replication_backlog_bytes mem_cluster_links=mem_cluster_links_bytes mem_aof_buffer=mem_aof_buffer_bytes
gauge: active_defrag_running lazyfree_pending_objects migrate_cached_sockets=migrate_cached_sockets_total
gauge: active_defrag_hits=defrag_hits active_defrag_misses=defrag_misses active_defrag_key_hits=defrag_key_hits active_defrag_key_misses=defrag_key_misses
gauge: loading=loading_dump_file async_loading rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time=rdb_last_save_timestamp_seconds
gauge: rdb_last_bgsave_status rdb_last_bgsave_time_sec=rdb_last_bgsave_duration_sec rdb_current_bgsave_time_sec=rdb_current_bgsave_duration_sec
gauge: rdb_last_cow_size=rdb_last_cow_size_bytes rdb_last_load_keys_expired=rdb_last_load_expired_keys rdb_last_load_keys_loaded=rdb_last_load_loaded_keys
gauge: aof_enabled aof_rewrite_in_progress aof_rewrite_scheduled aof_last_bgrewrite_status aof_last_write_status aof_last_cow_size=aof_last_cow_size_bytes
gauge: aof_last_rewrite_time_sec=aof_last_rewrite_duration_sec aof_current_rewrite_time_sec=aof_current_rewrite_duration_sec
gauge: aof_current_size=aof_current_size_bytes aof_base_size=aof_base_size_bytes module_fork_in_progress module_fork_last_cow_size
gauge: pubsub_channels pubsub_patterns pubsubshard_channels latest_fork_usec=latest_fork_seconds tracking_total_keys tracking_total_items tracking_total_prefixes
gauge: connected_slaves repl_backlog_size=replication_backlog_bytes repl_backlog_active=repl_backlog_is_active repl_backlog_first_byte_offset
gauge: repl_backlog_histlen=repl_backlog_history_bytes master_repl_offset second_repl_offset slave_expires_tracked_keys slave_priority
gauge: sync_full=replica_resyncs_full sync_partial_ok=replica_partial_resync_accepted sync_partial_err=replica_partial_resync_denied
gauge: cluster_enabled expired_stale_perc=expired_stale_percentage
gauge: instantaneous_ops_per_sec instantaneous_input_kbps instantaneous_output_kbps
counter: total_connections_received=connections_received_total total_commands_processed=commands_processed_total rejected_connections=rejected_connections_total
counter: total_net_input_bytes=net_input_bytes_total total_net_output_bytes=net_output_bytes_total
counter: total_net_repl_input_bytes=net_repl_input_bytes_total total_net_repl_output_bytes=net_repl_output_bytes_total
counter: expired_keys=expired_keys_total expired_subkeys=expired_subkeys_total evicted_keys=evicted_keys_total evicted_clients=evicted_clients_total
counter: expired_time_cap_reached_count=expired_time_cap_reached_total expire_cycle_cpu_milliseconds=expire_cycle_cpu_time_ms_total
counter: total_eviction_exceeded_time=eviction_exceeded_time_ms_total keyspace_hits=keyspace_hits_total keyspace_misses=keyspace_misses_total
counter: rdb_saves=rdb_saves_total total_error_replies unexpected_error_replies dump_payload_sanitizations total_reads_processed total_writes_processed
counter: io_threaded_reads_processed io_threaded_writes_processed lazyfreed_objects
counter: client_query_buffer_limit_disconnections client_output_buffer_limit_disconnections
counter: acl_access_denied_auth=acl_access_denied_auth_total acl_access_denied_cmd=acl_access_denied_cmd_total
counter: acl_access_denied_key=acl_access_denied_key_total acl_access_denied_channel=acl_access_denied_channel_total
counter: used_cpu_sys=cpu_sys_seconds_total used_cpu_user=cpu_user_seconds_total
counter: used_cpu_sys_children=cpu_sys_children_seconds_total used_cpu_user_children=cpu_user_children_seconds_total
`
