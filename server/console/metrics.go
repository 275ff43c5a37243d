package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// metrics serves GET /metrics: the text format of Prometheus, with the names that
// redis_exporter gives to the same facts, so that its dashboards and alerts work. The names of
// other facts begin with zsetd_. The user needs INFO; without CONFIG, LATENCY or SLOWLOG their
// metrics are absent. With parameters it has rows of single keys: see selected.go. promtool complains of
// names of redis_exporter that end with a unit or without _total: they are kept, because
// its dashboards use them.
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
	e := &reading{in: in, now: begin, out: newExposition()}
	if reply, err := nc.must("LATENCY", "HISTOGRAM"); err == nil {
		e.histograms, _ = reply.(protocol.Map)
	}
	if reply, err := nc.must("LATENCY", "LATEST"); err == nil {
		e.spikes, _ = reply.([]any)
	}
	if reply, err := nc.must("SLOWLOG", "LEN"); err == nil {
		e.slowLength, e.hasSlow = reply.(int64)
	}
	if reply, err := nc.must("SLOWLOG", "GET", "1"); err == nil {
		if list, _ := reply.([]any); len(list) == 1 {
			e.lastSlow, _ = list[0].([]any)
		}
	}
	if reply, err := nc.must("CONFIG", "GET", "client-output-buffer-limit"); err == nil {
		if m, _ := reply.(protocol.Map); len(m) == 1 {
			e.limits, _ = m[0].Value.(string)
		}
	}
	if err := e.collectSelected(nc, r.URL.Query()); err != nil {
		c.refuseSource(w, r, err)
		return
	}
	e.duration = time.Since(begin)
	e.collect()
	e.out.process()
	w.Header().Set("Content-Type", expositionType)
	w.Write(e.out.bytes())
}

// reading is what the metrics are made of: one reading of the server.
type reading struct {
	in         *info
	histograms protocol.Map
	spikes     []any
	slowLength int64
	hasSlow    bool
	lastSlow   []any
	limits     string // client-output-buffer-limit
	now        time.Time
	duration   time.Duration
	out        *exposition
}

func (e *reading) gauge(name, help string, value float64, labels ...string) {
	e.out.add(name, help, "gauge", value, labels...)
}

func (e *reading) counter(name, help string, value float64, labels ...string) {
	e.out.add(name, help, "counter", value, labels...)
}

// collect adds the metrics of the server.
func (e *reading) collect() {
	in := e.in
	for _, m := range infoMetrics() {
		value, there := in.values[m.field]
		if !there || value == "" {
			continue
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
		kind := "gauge"
		if m.counter {
			kind = "counter"
		}
		e.out.add("redis_"+m.name, "The field "+m.field+" of INFO.", kind, f)
	}
	e.gauge("redis_up", "Whether the server answers.", 1)
	e.gauge("redis_exporter_last_scrape_error", "Whether the last reading has failed.", 0, "err", "")
	e.gauge("redis_exporter_last_scrape_duration_seconds", "Time that the reading took.", e.duration.Seconds())
	e.gauge("redis_start_time_seconds", "Start of the server, in seconds since 1970.", float64(e.now.Unix())-in.number("uptime_in_seconds"))
	e.gauge("redis_instance_info", "Facts about the server.", 1,
		"role", in.values["role"], "redis_version", in.values["redis_version"], "redis_build_id", in.values["redis_build_id"],
		"redis_mode", in.values["redis_mode"], "os", in.values["os"], "maxmemory_policy", in.values["maxmemory_policy"],
		"tcp_port", in.values["tcp_port"], "run_id", in.values["run_id"], "process_id", in.values["process_id"],
		"master_replid", in.values["master_replid"], "zsetd_version", in.values["zsetd_version"])
	for _, f := range in.section("Keyspace") {
		e.gauge("redis_db_keys", "Keys of a database.", part(f.value, "keys"), "db", f.name)
		e.gauge("redis_db_keys_expiring", "Keys of a database that have a deadline.", part(f.value, "expires"), "db", f.name)
		e.gauge("redis_db_avg_ttl_seconds", "Mean time until the deadlines of a database.", part(f.value, "avg_ttl")/1000, "db", f.name)
	}
	for _, f := range in.section("Commandstats") {
		cmd := strings.TrimPrefix(f.name, "cmdstat_")
		e.counter("redis_commands_total", "Calls of a command.", part(f.value, "calls"), "cmd", cmd)
		e.counter("redis_commands_duration_seconds_total", "Time that calls of a command took.", part(f.value, "usec")/1e6, "cmd", cmd)
		e.counter("redis_commands_rejected_calls_total", "Calls of a command that were rejected.", part(f.value, "rejected_calls"), "cmd", cmd)
		e.counter("redis_commands_failed_calls_total", "Calls of a command that replied an error.", part(f.value, "failed_calls"), "cmd", cmd)
	}
	for _, f := range in.section("Errorstats") {
		e.counter("redis_errors_total", "Error replies, by their first word.", part(f.value, "count"), "err", strings.TrimPrefix(f.name, "errorstat_"))
	}
	e.gauge("zsetd_backup_last_timestamp_seconds", "Time of the last backup of backup-every, in seconds since 1970; 0 without one.", in.number("backup_last_time"))
	e.gauge("zsetd_backup_last_duration_seconds", "Time that the last backup took.", in.number("backup_last_duration_sec"))
	failed := 0.0
	if in.values["backup_last_status"] == "err" {
		failed = 1
	}
	e.gauge("zsetd_backup_failed", "Whether the last backup has failed.", failed)
	e.gauge("zsetd_backups_kept", "Backups in backup-dir.", in.number("backups_kept"))
	e.counter("zsetd_apart_commands_total", "Commands of programs that show the state of the server, such as the page of the console, which other counters leave out.", in.number("apart_commands_processed"))
	e.counter("zsetd_apart_error_replies_total", "Error replies to these commands.", in.number("apart_error_replies"))
	e.collectLatency()
	e.collectReplication()
	e.collectLimits()
	if e.hasSlow {
		e.gauge("redis_slowlog_length", "Entries of the slow log.", float64(e.slowLength))
		id, last := 0.0, 0.0
		if len(e.lastSlow) >= 3 {
			n, _ := e.lastSlow[0].(int64)
			us, _ := e.lastSlow[2].(int64)
			id, last = float64(n), float64(us)/1e6
		}
		e.gauge("redis_slowlog_last_id", "Identifier of the newest entry of the slow log.", id)
		e.gauge("redis_last_slow_execution_duration_seconds", "Duration of the newest entry of the slow log.", last)
	}
	for _, one := range e.spikes { // name, time, last duration in ms, longest
		if spike, _ := one.([]any); len(spike) >= 3 {
			name, _ := spike[0].(string)
			at, _ := spike[1].(int64)
			took, _ := spike[2].(int64)
			e.gauge("redis_latency_spike_last", "Time of the last event of the latency monitor, in seconds since 1970.", float64(at), "event_name", name)
			e.gauge("redis_latency_spike_duration_seconds", "Duration of the last event of the latency monitor.", float64(took)/1000, "event_name", name)
		}
	}
}

// collectLatency adds the latency of the commands: histograms, and percentiles since the
// start; those of expiry, and of checkpoints.
func (e *reading) collectLatency() {
	spent := map[string]float64{}
	for _, f := range e.in.section("Commandstats") {
		spent[strings.TrimPrefix(f.name, "cmdstat_")] = part(f.value, "usec")
	}
	calls := map[string]float64{}
	for _, command := range e.histograms {
		name, _ := command.Key.(string)
		n, list := histogramOf(command.Value)
		var buckets []bucket
		for _, b := range list {
			buckets = append(buckets, bucket{float64(b.bound), float64(b.calls)})
		}
		calls[name] = float64(n)
		e.out.histogram("redis_commands_latencies_usec", "Latency of a command in µs.", buckets, float64(n), spent[name], "cmd", name)
	}
	for _, f := range e.in.section("Latencystats") {
		name := strings.TrimPrefix(f.name, "latency_percentiles_usec_")
		e.out.summary("redis_latency_percentiles_usec", "Percentiles of the latency of a command in µs.", quantiles(f.value, 1), calls[name], spent[name], "cmd", name)
	}
	if lag := e.in.values["expire_lag_percentiles_usec"]; lag != "" {
		times := e.in.values["expire_lag_histogram_usec"]
		e.out.summary("zsetd_expire_lag_seconds", "Percentiles of the time between a deadline and the removal.", quantiles(lag, 1e-6), part(times, "count"), part(times, "sum")/1e6)
	}
	e.times("zsetd_expire_lag_duration_seconds", "Time between a deadline and the removal.", "expire_lag_histogram_usec")
	e.times("zsetd_checkpoint_duration_seconds", "Time from the instant that a checkpoint holds to the disk.", "checkpoint_histogram_usec")
}

// times adds a histogram of a field of INFO like 1000=5,2000=7,sum=9000,count=7 in µs.
func (e *reading) times(name, help, field string) {
	value := e.in.values[field]
	var buckets []bucket
	for _, p := range parts(value) {
		bound, err := strconv.ParseFloat(p.name, 64)
		n, err2 := strconv.ParseFloat(p.value, 64)
		if err == nil && err2 == nil {
			buckets = append(buckets, bucket{bound / 1e6, n})
		}
	}
	if value != "" {
		e.out.histogram(name, help, buckets, part(value, "count"), part(value, "sum")/1e6)
	}
}

// quantiles parses "p50=1.5,p99.9=3", and multiplies the values with scale.
func quantiles(value string, scale float64) (list []bucket) {
	for _, p := range parts(value) {
		q, err := strconv.ParseFloat(strings.TrimPrefix(p.name, "p"), 64)
		v, err2 := strconv.ParseFloat(p.value, 64)
		if err == nil && err2 == nil {
			list = append(list, bucket{q / 100, v * scale})
		}
	}
	return list
}

// collectLimits adds the limits of output buffers: class, hard limit, soft limit and its
// seconds, for each class of clients.
func (e *reading) collectLimits() {
	for words := range slices.Chunk(strings.Fields(e.limits), 4) {
		if len(words) < 4 {
			return
		}
		for i, limit := range []string{"hard", "soft"} {
			n, _ := strconv.ParseFloat(words[1+i], 64)
			e.gauge("redis_config_client_output_buffer_limit_bytes", "Limit of the output buffers of a class of clients.", n, "class", words[0], "limit", limit)
		}
		n, _ := strconv.ParseFloat(words[3], 64)
		e.gauge("redis_config_client_output_buffer_limit_overcome_seconds", "Time that a client may be above the soft limit.", n, "class", words[0], "limit", "soft")
	}
}

// collectReplication adds the facts about replicas, and about the primary.
func (e *reading) collectReplication() {
	in := e.in
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
		e.gauge("redis_connected_slave_offset_bytes", "Offset that a replica has acknowledged.", part(f.value, "offset"), labels...)
		e.gauge("redis_connected_slave_lag_seconds", "Time since the last acknowledgement of a replica.", part(f.value, "lag"), labels...)
	}
	if in.values["role"] != "slave" {
		return
	}
	labels := []string{"master_host", in.values["master_host"], "master_port", in.values["master_port"]}
	up := 0.0
	if in.values["master_link_status"] == "up" {
		up = 1
	}
	e.gauge("redis_master_link_up", "Whether the replica has a link to its primary.", up, labels...)
	e.gauge("redis_master_last_io_seconds_ago", "Time since the last input from the primary.", in.number("master_last_io_seconds_ago"), labels...)
	e.gauge("redis_master_sync_in_progress", "Whether the replica receives the data of its primary.", in.number("master_sync_in_progress"), labels...)
	e.gauge("redis_slave_repl_offset", "Offset of the replica.", in.number("slave_repl_offset"), labels...)
	e.gauge("redis_slave_info", "Facts about the replica.", 1, append(labels, "read_only", in.values["slave_read_only"])...)
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
gauge: used_memory_vm_total=memory_used_vm_total used_memory_functions=memory_used_functions_bytes used_memory_scripts=memory_used_scripts_bytes
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
gauge: aof_pending_rewrite aof_buffer_length aof_pending_bio_fsync aof_delayed_fsync
gauge: pubsub_channels pubsub_patterns pubsubshard_channels live_queries live_query_subscriptions latest_fork_usec=latest_fork_seconds tracking_total_keys tracking_total_items tracking_total_prefixes
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
gauge: current_eviction_exceeded_time=current_eviction_exceeded_time_ms
counter: total_eviction_exceeded_time=eviction_exceeded_time_ms_total keyspace_hits=keyspace_hits_total keyspace_misses=keyspace_misses_total
counter: rdb_saves=rdb_saves_total total_error_replies unexpected_error_replies dump_payload_sanitizations total_reads_processed total_writes_processed
counter: live_query_evaluations=live_query_evaluations_total live_query_messages=live_query_messages_total live_query_messages_left_out=live_query_messages_left_out_total
counter: io_threaded_reads_processed io_threaded_writes_processed lazyfreed_objects
counter: client_query_buffer_limit_disconnections=client_query_buffer_limit_disconnections_total client_output_buffer_limit_disconnections=client_output_buffer_limit_disconnections_total
counter: acl_access_denied_auth=acl_access_denied_auth_total acl_access_denied_cmd=acl_access_denied_cmd_total
counter: acl_access_denied_key=acl_access_denied_key_total acl_access_denied_channel=acl_access_denied_channel_total
counter: used_cpu_sys=cpu_sys_seconds_total used_cpu_user=cpu_user_seconds_total
counter: used_cpu_sys_children=cpu_sys_children_seconds_total used_cpu_user_children=cpu_user_children_seconds_total
`
