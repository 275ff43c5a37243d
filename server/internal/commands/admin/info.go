package admin

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// infoSection is a section of INFO. "all" includes those that are not in the
// default.
type infoSection struct {
	name      string
	byDefault bool
	write     func(*engine.Engine, *metrics.Text)
}

// infoSections returns the sections in the order in which INFO lists them.
func infoSections() []infoSection {
	return []infoSection{
		{"server", true, infoServer},
		{"clients", true, infoClients},
		{"memory", true, infoMemory},
		{"persistence", true, infoPersistence},
		{"threads", true, infoThreads},
		{"stats", true, infoStats},
		{"replication", true, infoReplication},
		{"cpu", true, infoCPU},
		{"hotkeys", true, infoHotkeys},
		{"modules", true, infoModules},
		{"commandstats", false, infoCommandstats},
		{"errorstats", true, infoErrorstats},
		{"latencystats", false, infoLatencystats},
		{"cluster", true, infoCluster},
		{"keyspace", true, infoKeyspace},
		{"keysizes", true, infoKeysizes},
	}
}

func info(c *engine.Call) {
	wanted := map[string]bool{}
	if !c.More() {
		wanted["default"] = true
	}
	for c.More() {
		wanted[strings.ToLower(c.String())] = true
	}
	all := wanted["all"] || wanted["everything"]
	var t metrics.Text
	for _, s := range infoSections() {
		if all || wanted["default"] && s.byDefault || wanted[s.name] {
			s.write(c.Engine, &t)
		}
	}
	c.Reply.Verbatim("txt", string(t.Bytes))
}

// supervisor returns the supervisor of the process, determined as in Redis.
func supervisor(srv *engine.Engine) string {
	mode := srv.Config.Supervised
	switch auto := mode == "auto"; {
	case (auto || mode == "systemd") && os.Getenv("NOTIFY_SOCKET") != "":
		return "systemd"
	case (auto || mode == "upstart") && os.Getenv("UPSTART_JOB") != "":
		return "upstart"
	}
	return "no"
}

func infoServer(srv *engine.Engine, t *metrics.Text) {
	own, revision, dirty := process.Build()
	t.Title("Server")
	t.Field("redis_version", process.RedisVersion)
	t.Field("redis_git_sha1", revision[:8])
	t.Field("redis_git_dirty", dirty)
	t.Field("redis_build_id", revision[:16])
	t.Field("redis_mode", mode(srv))
	t.Field("os", operatingSystem())
	t.Int("arch_bits", strconv.IntSize)
	t.Field("monotonic_clock", "POSIX clock_gettime")
	t.Field("multiplexing_api", multiplexing())
	t.Field("atomicvar_api", "go")
	t.Field("gcc_version", "0.0.0")
	t.Field("go_version", strings.TrimPrefix(runtime.Version(), "go"))
	t.Field("zsetd_version", own)
	t.Int("goroutines", int64(runtime.NumGoroutine()))
	t.Int("process_id", int64(os.Getpid()))
	t.Field("process_supervised", supervisor(srv))
	t.Field("run_id", srv.Identity.RunID)
	port, tlsPort := srv.Ports()
	t.Int("tcp_port", cmp.Or(port, tlsPort))
	t.Int("server_time_usec", srv.Turn.At.UnixMicro())
	uptime := int64(srv.Turn.At.Sub(srv.Identity.Start).Seconds())
	t.Int("uptime_in_seconds", uptime)
	t.Int("uptime_in_days", uptime/(24*3600))
	srv.InfoClock(t)
	t.Field("hz", srv.Config.Hz())
	t.Field("configured_hz", srv.Config.Hz())
	t.Int("lru_clock", srv.Turn.At.Unix()&(1<<24-1))
	executable, _ := os.Executable() // empty if unknown
	t.Field("executable", executable)
	t.Field("config_file", srv.Identity.ConfigFile)
	t.Int("io_threads_active", 0)
	t.Field("availability_zone", srv.Config.AvailabilityZone())
	if left, waits := srv.Ending.StopsIn(); waits {
		t.Int("shutdown_in_milliseconds", left.Milliseconds())
	}
	n := 0
	listener := func(kind, where string) {
		t.Field("listener"+strconv.Itoa(n), "name="+kind+where)
		n++
	}
	where := ""
	for addr := range strings.FieldsSeq(srv.Config.Bind) {
		where += ",bind=" + addr
	}
	if port != 0 {
		listener("tcp", where+",port="+strconv.FormatInt(port, 10))
	}
	if srv.Config.Unixsocket != "" {
		listener("unix", ",bind="+srv.Config.Unixsocket)
	}
	if tlsPort != 0 {
		listener("tls", where+",port="+strconv.FormatInt(tlsPort, 10))
	}
}

// Version returns the lines of zsetd --version. The first is zsetd and the version of the
// module. The second has the fields of Redis's, which tools read: v is the version of
// Redis whose commands the server has.
func Version() string {
	own, revision, dirty := process.Build()
	return fmt.Sprintf("zsetd %s\nzsetd server v=%s sha=%s:%s malloc=go bits=%d build=%s zsetd=%s go=%s", own, process.RedisVersion, revision[:8], dirty,
		strconv.IntSize, revision[:16], own, strings.TrimPrefix(runtime.Version(), "go"))
}

// operatingSystem returns system, release and machine as uname does.
func operatingSystem() string {
	machine := runtime.GOARCH
	switch machine {
	case "amd64":
		machine = "x86_64"
	case "arm64":
		machine = "aarch64"
	case "386":
		machine = "i686"
	}
	name, release := runtime.GOOS, ""
	if b, err := os.ReadFile("/proc/sys/kernel/ostype"); err == nil {
		name = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release = " " + strings.TrimSpace(string(b))
	}
	return name + release + " " + machine
}

// multiplexing returns the mechanism with which the Go runtime waits for sockets.
func multiplexing() string {
	switch runtime.GOOS {
	case "linux", "android":
		return "epoll"
	case "windows":
		return "iocp"
	case "solaris", "illumos":
		return "evport"
	}
	return "kqueue"
}

func infoClients(srv *engine.Engine, t *metrics.Text) {
	connected, input, output := 0, 0, 0
	watching, subscribed := int64(0), int64(0)
	for _, s := range srv.Clients.Sessions {
		if s.End == engine.Killed {
			continue
		}
		connected++
		watching += btoi(s.Watches() > 0)
		subscribed += btoi(s.Subscribed())
		used, free := s.Peer.InputBuffer()
		input = max(input, used+free)
		output = max(output, s.Out.Cap()+s.Queue.Sealed+int(s.Queue.Unsent.Load()))
	}
	t.Title("Clients")
	t.Int("connected_clients", int64(connected))
	t.Int("cluster_connections", 0)
	t.Int("maxclients", srv.Config.Maxclients)
	t.Int("client_recent_max_input_buffer", int64(input))
	t.Int("client_recent_max_output_buffer", int64(output))
	t.Int("blocked_clients", int64(srv.Stats.BlockedClients))
	t.Int("tracking_clients", int64(srv.Tracking.Clients()))
	t.Int("pubsub_clients", subscribed)
	t.Int("watching_clients", watching)
	t.Int("clients_in_timeout_table", int64(len(srv.Waits.Deadlines)))
	t.Int("total_watched_keys", int64(len(srv.Waits.Watched)))
	t.Int("total_blocking_keys", int64(len(srv.Waits.Waiting)))
	t.Int("total_blocking_keys_on_nokey", int64(srv.Waits.KeysAwaited()))
	infoPause(srv, t)
}

// infoPause writes the fields of Valkey about CLIENT PAUSE and FAILOVER.
func infoPause(srv *engine.Engine, t *metrics.Text) {
	reason, actions, left := "none", "none", int64(0)
	if srv.Pauses.Until != 0 {
		reason, actions, left = "client_pause", "write", max(0, srv.Pauses.Until-srv.Keys.Now())
		if state := srv.Replication.Status().Failover; state != "" && state != "no-failover" {
			reason = "failover_in_progress"
		}
		if srv.Pauses.All() {
			actions = "all"
		}
	}
	t.Field("paused_reason", reason)
	t.Field("paused_actions", actions)
	t.Int("paused_timeout_milliseconds", left)
}

func infoMemory(srv *engine.Engine, t *metrics.Text) {
	m := measureMemory(srv)
	t.Title("Memory")
	t.Size("used_memory", m.used)
	t.Size("used_memory_rss", m.RSS)
	t.Size("used_memory_peak", m.peak)
	t.Int("used_memory_peak_time", srv.Stats.PeakedAt.Unix())
	t.Field("used_memory_peak_perc", fmt.Sprintf("%.2f%%", 100*metrics.Ratio(m.used, m.peak)))
	t.Int("used_memory_overhead", m.overhead())
	t.Int("used_memory_startup", m.startup)
	t.Int("used_memory_dataset", m.dataset())
	t.Field("used_memory_dataset_perc", fmt.Sprintf("%.2f%%", m.datasetShare()))
	t.Int("allocator_allocated", m.Allocated)
	t.Int("allocator_active", m.Active)
	t.Int("allocator_resident", m.Resident)
	t.Int("allocator_muzzy", 0)
	t.Size("total_system_memory", systemMemory())
	sc := srv.Scripting.Memory()
	t.Int("used_memory_lua", sc.VMEval)
	t.Int("used_memory_vm_eval", sc.VMEval)
	t.Field("used_memory_lua_human", metrics.HumanBytes(sc.VMEval))
	t.Int("used_memory_scripts_eval", sc.Eval)
	t.Int("number_of_cached_scripts", int64(srv.Scripting.Cache.Len()))
	t.Int("number_of_functions", int64(len(srv.Scripting.Functions.ByName)))
	t.Int("number_of_libraries", int64(len(srv.Scripting.Functions.Libraries)))
	t.Int("used_memory_vm_functions", sc.VMFunctions)
	t.Size("used_memory_vm_total", sc.VMEval+sc.VMFunctions)
	t.Int("used_memory_functions", sc.Functions)
	t.Size("used_memory_scripts", sc.Eval+sc.Functions)
	t.Size("maxmemory", srv.Config.Maxmemory)
	t.Field("maxmemory_policy", srv.Config.MaxmemoryPolicy)
	t.Fixed("allocator_frag_ratio", metrics.Ratio(m.Active, m.Allocated), 2)
	t.Int("allocator_frag_bytes", m.Active-m.Allocated)
	t.Fixed("allocator_rss_ratio", metrics.Ratio(m.Resident, m.Active), 2)
	t.Int("allocator_rss_bytes", m.Resident-m.Active)
	t.Fixed("rss_overhead_ratio", metrics.Ratio(m.RSS, m.Resident), 2)
	t.Int("rss_overhead_bytes", m.RSS-m.Resident)
	t.Fixed("mem_fragmentation_ratio", metrics.Ratio(m.RSS, m.used), 2)
	t.Int("mem_fragmentation_bytes", m.RSS-m.used)
	t.Int("mem_not_counted_for_evict", srv.Memory.Exempt)
	buffers := srv.Replication.Status()
	t.Int("mem_replication_backlog", buffers.BufferBytes-buffers.OutputBytes)
	t.Int("mem_total_replication_buffers", buffers.BufferBytes)
	t.Zeros("mem_replica_full_sync_buffer")
	t.Int("mem_clients_slaves", buffers.OutputBytes)
	t.Int("mem_clients_normal", m.clients)
	t.Zeros("mem_cluster_slot_migration_output_buffer", "mem_cluster_slot_migration_input_buffer",
		"mem_cluster_slot_migration_input_buffer_peak", "mem_cluster_links", "mem_aof_buffer")
	t.Field("mem_allocator", runtime.Version())
	t.Zeros("mem_overhead_db_hashtable_rehashing")
	share, _ := srv.Freeing.Compacting()
	t.Int("active_defrag_running", share)
	t.Zeros("lazyfree_pending_objects")
	t.Int("lazyfreed_objects", srv.Freeing.Objects)
}

// infoThreads shows one thread of I/O: the Go runtime has as many as it needs, for all
// clients.
func infoThreads(srv *engine.Engine, t *metrics.Text) {
	t.Title("Threads")
	t.Field("io_thread_0", fmt.Sprintf("clients=%d,reads=%d,writes=%d", len(srv.Clients.Sessions), srv.Stats.Reads.Load(), srv.Stats.Writes.Load()))
}

func infoStats(srv *engine.Engine, t *metrics.Text) {
	commands, input, output, turned := srv.Rates()
	t.Title("Stats")
	t.Int("total_connections_received", srv.Stats.Connections)
	t.Int("total_commands_processed", srv.Stats.Commands)
	t.Int("instantaneous_ops_per_sec", int64(commands))
	t.Int("total_net_input_bytes", srv.Stats.Input.Load())
	t.Int("total_net_output_bytes", srv.Stats.Output.Load())
	t.Zeros("total_net_repl_input_bytes", "total_net_repl_output_bytes")
	t.Fixed("instantaneous_input_kbps", input/1024, 2)
	t.Fixed("instantaneous_output_kbps", output/1024, 2)
	t.Fixed("instantaneous_input_repl_kbps", 0, 2)
	t.Fixed("instantaneous_output_repl_kbps", 0, 2)
	t.Int("rejected_connections", srv.Stats.Rejected.Load())
	syncs := srv.Replication.Status()
	t.Int("sync_full", syncs.FullSyncs)
	t.Int("sync_partial_ok", syncs.PartialSyncs)
	t.Int("sync_partial_err", syncs.PartialRefused)
	t.Int("expired_subkeys", srv.Stats.ExpiredMembers)
	t.Int("expired_subkeys_active", srv.Stats.SweptMembers)
	t.Int("expired_fields", srv.Stats.ExpiredMembers) // as Valkey names them
	t.Int("expired_keys", srv.Stats.ExpiredKeys)
	t.Int("expired_keys_active", srv.Stats.SweptKeys)
	t.Fixed("expired_stale_perc", 0, 2)
	t.Int("expired_time_cap_reached_count", 0)
	t.Int("expire_cycle_cpu_milliseconds", srv.Stats.SweepTime.Milliseconds())
	t.Field("expire_lag_percentiles_usec", percentilesOf(&srv.Stats.ExpiryLag, 50, 99, 99.9))
	t.Field("expire_lag_histogram_usec", histogramOf(&srv.Stats.ExpiryLag))
	exceeded, exceeding := srv.Exceeding()
	t.Int("evicted_keys", srv.Stats.EvictedKeys)
	t.Int("evicted_clients", srv.Stats.EvictedClients)
	t.Int("evicted_scripts", srv.Scripting.Cache.Evicted())
	t.Int("total_eviction_exceeded_time", exceeded.Milliseconds())
	t.Int("current_eviction_exceeded_time", exceeding.Milliseconds())
	t.Int("keyspace_hits", srv.Hits())
	t.Int("keyspace_misses", srv.Stats.KeyspaceMisses)
	t.Int("apart_commands_processed", srv.Stats.ApartCommands) // by the console: in no other statistics
	t.Int("apart_error_replies", srv.Stats.ApartErrors)
	t.Int("pubsub_channels", int64(srv.PubSub.Table.Len(subscription.Channels)))
	t.Int("pubsub_patterns", int64(srv.PubSub.Table.Len(subscription.Patterns)))
	t.Int("pubsubshard_channels", int64(srv.PubSub.Table.Len(subscription.Shards)))
	t.Int("live_queries", int64(srv.Queries.Len()))
	t.Int("live_query_subscriptions", srv.Queries.Subscriptions)
	t.Int("live_query_evaluations", srv.Queries.Evaluations)
	t.Int("live_query_time_usec", srv.Queries.Time.Microseconds())
	t.Int("live_query_messages", srv.Queries.Messages)
	t.Int("live_query_messages_left_out", srv.Queries.LeftOut)
	t.Zeros("latest_fork_usec", "total_forks", "migrate_cached_sockets", "slave_expires_tracked_keys")
	moves := srv.Stats.Compaction
	_, current := srv.Freeing.Compacting()
	t.Int("active_defrag_hits", moves.Objects)
	t.Int("active_defrag_misses", moves.ObjectsLeft)
	t.Int("active_defrag_key_hits", moves.Keys)
	t.Int("active_defrag_key_misses", moves.KeysLeft)
	t.Int("total_active_defrag_time", (srv.Stats.CompactionTime + current).Milliseconds())
	t.Int("current_active_defrag_time", current.Milliseconds())
	t.Int("tracking_total_keys", int64(srv.Tracking.Keys()))
	t.Int("tracking_total_items", int64(srv.Tracking.Items()))
	t.Int("tracking_total_prefixes", int64(srv.Tracking.Prefixes()))
	t.Int("unexpected_error_replies", srv.Stats.UnexpectedErrors)
	t.Int("total_error_replies", srv.Stats.ErrorReplies)
	t.Int("dump_payload_sanitizations", 0)
	t.Int("total_reads_processed", srv.Stats.Reads.Load())
	t.Int("total_writes_processed", srv.Stats.Writes.Load())
	t.Zeros("io_threaded_reads_processed", "io_threaded_writes_processed", "io_threaded_total_prefetch_batches", "io_threaded_total_prefetch_entries")
	t.Int("client_query_buffer_limit_disconnections", srv.Stats.QueryLimitDisconnections.Load())
	t.Int("client_output_buffer_limit_disconnections", srv.Stats.OutputLimitDisconnections)
	t.Zeros("reply_buffer_shrinks", "reply_buffer_expands") // buffers of replies belong to turns, not to clients
	t.Int("eventloop_cycles", srv.Stats.Turns)
	t.Int("eventloop_duration_sum", srv.Stats.TurnTime.Microseconds())
	t.Int("eventloop_duration_cmd_sum", srv.Stats.CommandTime.Microseconds())
	t.Int("instantaneous_eventloop_cycles_per_sec", int64(turned.PerSecond))
	t.Int("instantaneous_eventloop_duration_usec", turned.Mean.Microseconds())
	t.Int("acl_access_denied_auth", srv.ACL.Denials[acl.DeniedAuth])
	t.Int("acl_access_denied_cmd", srv.ACL.Denials[acl.DeniedCommand])
	t.Int("acl_access_denied_key", srv.ACL.Denials[acl.DeniedKey])
	t.Int("acl_access_denied_channel", srv.ACL.Denials[acl.DeniedChannel])
	t.Int("acl_access_denied_db", srv.ACL.Denials[acl.DeniedDatabase])
	t.Int("acl_access_denied_tls_cert", srv.ACL.Denials[acl.DeniedCertificate])
}

func infoReplication(srv *engine.Engine, t *metrics.Text) {
	now := srv.Replication.Status()
	t.Title("Replication")
	if p := now.Primary; p != nil {
		infoPrimary(srv, t, p)
	} else {
		t.Field("role", "master")
	}
	if to := srv.Forwarding.To(); to != "" {
		t.Field("forward_to", to)
		t.Int("forwarded_commands", srv.Forwarding.Forwarded)
	}
	t.Int("connected_slaves", int64(len(now.Replicas)))
	if srv.Config.MinReplicas > 0 && srv.Config.MinReplicasMaxLag > 0 {
		t.Int("min_slaves_good_slaves", int64(srv.Replication.GoodReplicas()))
	}
	for i, r := range now.Replicas {
		t.Field("slave"+strconv.Itoa(i), fmt.Sprintf("ip=%s,port=%d,state=%s,offset=%d,lag=%d,io-thread=0", r.Host, r.Port, r.State, r.Offset, r.Lag))
	}
	t.Field("master_failover_state", cmp.Or(now.Failover, "no-failover"))
	t.Field("master_replid", srv.Identity.ReplID)
	t.Field("master_replid2", srv.Identity.ReplID2)
	t.Int("master_repl_offset", now.Offset)
	second := int64(-1)
	if srv.Identity.Repl2End >= 0 {
		second = srv.Identity.Repl2End + 1 // INFO counts from 1
	}
	t.Int("second_repl_offset", second)
	t.Int("repl_backlog_active", btoi(now.BacklogSize != 0))
	t.Int("repl_backlog_size", cmp.Or(now.BacklogSize, srv.Config.ReplBacklogSize))
	t.Int("repl_backlog_first_byte_offset", now.BacklogFirst)
	t.Int("repl_backlog_histlen", now.BacklogLength)
}

// infoPrimary writes the state of the link to the primary.
func infoPrimary(srv *engine.Engine, t *metrics.Text, p *engine.PrimaryStatus) {
	t.Field("role", "slave")
	t.Field("master_host", p.Host)
	t.Int("master_port", p.Port)
	status := "down"
	if p.Linked {
		status = "up"
	}
	t.Field("master_link_status", status)
	t.Int("master_last_io_seconds_ago", p.Silence)
	t.Int("master_sync_in_progress", btoi(p.Receiving))
	t.Int("slave_read_repl_offset", p.ReadOffset)
	t.Int("slave_repl_offset", p.Offset)
	t.Zeros("replica_full_sync_buffer_size", "replica_full_sync_buffer_peak") // the primary keeps the stream meanwhile
	t.Int("master_current_sync_attempts", p.Attempts)
	t.Int("master_total_sync_attempts", p.TotalAttempts)
	if p.Receiving {
		t.Int("master_sync_total_bytes", p.Total)
		t.Int("master_sync_read_bytes", p.Received)
		t.Int("master_sync_left_bytes", p.Total-p.Received)
		t.Fixed("master_sync_perc", 100*metrics.Ratio(p.Received, p.Total), 2)
		t.Int("master_sync_last_io_seconds_ago", p.Silence)
	}
	if p.TransferError != "" {
		t.Int("master_sync_consecutive_failures", int64(p.FailedTransfers))
		t.Field("master_sync_last_error", p.TransferError)
	}
	if p.Linked {
		t.Int("master_link_up_since_seconds", p.UpSince)
		t.Int("master_client_io_thread", 0)
	} else {
		t.Int("master_link_down_since_seconds", p.DownSince)
	}
	t.Int("total_disconnect_time_sec", p.Down)
	c := &srv.Config
	priority := c.ReplicaPriority
	if srv.Bare() { // Sentinel must not promote it
		priority = 0
	}
	t.Int("slave_priority", priority)
	t.Int("slave_read_only", btoi(c.ReplicaReadOnly))
	t.Int("replica_announced", btoi(c.ReplicaAnnounced))
}

func infoCPU(srv *engine.Engine, t *metrics.Text) {
	t.Title("CPU")
	system, user := process.CPUTime()
	t.Fixed("used_cpu_sys", system.Seconds(), 6)
	t.Fixed("used_cpu_user", user.Seconds(), 6)
	t.Fixed("used_cpu_sys_children", 0, 6)
	t.Fixed("used_cpu_user_children", 0, 6)
	// Commands run on whichever thread the Go runtime chooses, so that of all threads.
	t.Fixed("used_cpu_sys_main_thread", system.Seconds(), 6)
	t.Fixed("used_cpu_user_main_thread", user.Seconds(), 6)
	t.Fixed("used_active_time_main_thread", srv.Stats.TurnTime.Seconds(), 6)
}

func infoModules(srv *engine.Engine, t *metrics.Text) { t.Title("Modules") }

func infoCommandstats(srv *engine.Engine, t *metrics.Text) {
	t.Title("Commandstats")
	srv.Table.Each(func(c *engine.Command) {
		st := &c.Stats
		if st.Calls == 0 && st.Rejected == 0 && st.Failed == 0 {
			return
		}
		usec := st.Time.Microseconds()
		t.Field("cmdstat_"+c.Name, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			st.Calls, usec, float64(st.Time.Nanoseconds())/1000/float64(max(st.Calls, 1)), st.Rejected, st.Failed))
	})
}

func infoErrorstats(srv *engine.Engine, t *metrics.Text) {
	t.Title("Errorstats")
	for _, code := range slices.Sorted(maps.Keys(srv.Stats.Errors)) {
		t.Field("errorstat_"+code, "count="+strconv.FormatInt(srv.Stats.Errors[code], 10))
	}
}

func infoLatencystats(srv *engine.Engine, t *metrics.Text) {
	t.Title("Latencystats")
	if !srv.Config.LatencyTracking {
		return
	}
	srv.Table.Each(func(c *engine.Command) {
		h := c.Stats.Histogram
		if h == nil {
			return
		}
		t.Field("latency_percentiles_usec_"+c.Name, percentilesOf(h, srv.Config.LatencyPercentiles...))
	})
}

// percentilesOf writes percentiles in microseconds.
func percentilesOf(h *metrics.Histogram, percentiles ...float64) string {
	var parts []string
	for _, p := range percentiles {
		parts = append(parts, fmt.Sprintf("p%s=%.3f", strconv.FormatFloat(p, 'f', -1, 64), float64(h.Percentile(p))/1000))
	}
	return strings.Join(parts, ",")
}

// histogramOf returns how many durations are up to 1, 2, 4 … µs, their sum in µs and their
// number.
func histogramOf(h *metrics.Histogram) string {
	var parts []string
	for _, step := range h.Cumulative() {
		parts = append(parts, fmt.Sprintf("%d=%d", step.Usec, step.Count))
	}
	return strings.Join(append(parts, fmt.Sprintf("sum=%d,count=%d", h.Sum()/1000, h.Total)), ",")
}

// timesOf returns the times of checkpoints as "bound=count", bounds in microseconds.
func timesOf(times *persist.Times) string {
	var parts []string
	for bound, n := range times.Up {
		parts = append(parts, fmt.Sprintf("%d=%d", bound.Microseconds(), n))
	}
	return strings.Join(append(parts, fmt.Sprintf("sum=%d,count=%d", times.Sum.Microseconds(), times.Count)), ",")
}

func infoCluster(srv *engine.Engine, t *metrics.Text) {
	t.Title("Cluster")
	enabled := int64(0)
	if srv.Cluster != nil {
		enabled = 1
	}
	t.Int("cluster_enabled", enabled)
}

func infoKeyspace(srv *engine.Engine, t *metrics.Text) {
	t.Title("Keyspace")
	for i := range srv.Keys.Len() {
		if db := srv.Keys.DB(i); db.Len() > 0 {
			// Exporters of metrics drop a line with both names of the keys that have members with deadlines.
			timed := srv.Config.Words("subexpiry", "keys_with_volatile_items")
			line := fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d,%s=%d", db.Len(), db.Volatile(), db.AverageTTL(), timed, db.Timed())
			t.Field("db"+strconv.Itoa(i), line)
		}
	}
}

func infoKeysizes(srv *engine.Engine, t *metrics.Text) {
	t.Title("Keysizes")
	for i := range srv.Keys.Len() {
		db := srv.Keys.DB(i)
		if db.Len() == 0 {
			continue
		}
		lengths, memory := db.Sizes()
		prefix := "db" + strconv.Itoa(i) + "_distrib_"
		t.Counts(prefix+"strings_sizes", lengths.Kind(uint8(keyspace.KindString)))
		collections := []keyspace.Kind{keyspace.KindList, keyspace.KindSet, keyspace.KindZset, keyspace.KindHash}
		names := []string{"lists", "sets", "zsets", "hashes"}
		for i, k := range collections {
			t.Counts(prefix+names[i]+"_items", lengths.Kind(uint8(k)))
		}
		for i, k := range collections {
			if memory != nil {
				t.Counts(prefix+names[i]+"_sizes", memory.Kind(uint8(k)))
			}
		}
	}
}
