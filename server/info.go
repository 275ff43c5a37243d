package server

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// infoSection is a section of INFO. "all" includes those that are not in the
// default.
type infoSection struct {
	name      string
	byDefault bool
	write     func(*Server, *infoText)
}

// infoSections returns the sections in the order in which INFO lists them.
func infoSections() []infoSection {
	return []infoSection{
		{"server", true, (*Server).infoServer},
		{"clients", true, (*Server).infoClients},
		{"memory", true, (*Server).infoMemory},
		{"persistence", true, (*Server).infoPersistence},
		{"stats", true, (*Server).infoStats},
		{"replication", true, (*Server).infoReplication},
		{"cpu", true, (*Server).infoCPU},
		{"modules", true, (*Server).infoModules},
		{"commandstats", false, (*Server).infoCommandstats},
		{"errorstats", true, (*Server).infoErrorstats},
		{"latencystats", false, (*Server).infoLatencystats},
		{"cluster", true, (*Server).infoCluster},
		{"keyspace", true, (*Server).infoKeyspace},
	}
}

// infoText is the text of INFO during its construction.
type infoText struct{ b []byte }

func (t *infoText) title(name string) {
	if len(t.b) > 0 {
		t.b = append(t.b, "\r\n"...)
	}
	t.b = append(append(append(t.b, "# "...), name...), "\r\n"...)
}

func (t *infoText) text(name, value string) {
	t.b = append(append(append(append(t.b, name...), ':'), value...), "\r\n"...)
}

func (t *infoText) int(name string, n int64) { t.text(name, strconv.FormatInt(n, 10)) }
func (t *infoText) fixed(name string, f float64, digits int) {
	t.text(name, strconv.FormatFloat(f, 'f', digits, 64))
}

// size writes a number of bytes, and again in readable form.
func (t *infoText) size(name string, n int64) {
	t.int(name, n)
	t.text(name+"_human", humanBytes(n))
}

// zeros writes fields that count features without an equivalent here.
func (t *infoText) zeros(names ...string) {
	for _, name := range names {
		t.int(name, 0)
	}
}

func info(c *Call) {
	wanted := map[string]bool{}
	if !c.More() {
		wanted["default"] = true
	}
	for c.More() {
		wanted[strings.ToLower(c.String())] = true
	}
	all := wanted["all"] || wanted["everything"]
	var t infoText
	for _, s := range infoSections() {
		if all || wanted["default"] && s.byDefault || wanted[s.name] {
			s.write(c.srv, &t)
		}
	}
	c.Reply.Verbatim("txt", string(t.b))
}

// supervisor returns the supervisor of the process, determined as in Redis.
func (srv *Server) supervisor() string {
	mode := srv.config.supervised
	switch auto := mode == "auto"; {
	case (auto || mode == "systemd") && os.Getenv("NOTIFY_SOCKET") != "":
		return "systemd"
	case (auto || mode == "upstart") && os.Getenv("UPSTART_JOB") != "":
		return "upstart"
	}
	return "no"
}

func (srv *Server) infoServer(t *infoText) {
	version, revision, dirty := buildVersion()
	t.title("Server")
	t.text("redis_version", redisVersion)
	t.text("redis_git_sha1", revision[:8])
	t.text("redis_git_dirty", dirty)
	t.text("redis_build_id", revision[:16])
	t.text("redis_mode", srv.mode())
	t.text("os", operatingSystem())
	t.int("arch_bits", strconv.IntSize)
	t.text("monotonic_clock", "POSIX clock_gettime")
	t.text("multiplexing_api", multiplexing())
	t.text("atomicvar_api", "go")
	t.text("gcc_version", "0.0.0")
	t.text("go_version", strings.TrimPrefix(runtime.Version(), "go"))
	t.text("zsetd_version", version)
	t.int("goroutines", int64(runtime.NumGoroutine()))
	t.int("process_id", int64(os.Getpid()))
	t.text("process_supervised", srv.supervisor())
	t.text("run_id", srv.runID)
	port := srv.config.port
	if port == 0 {
		port = srv.config.tlsPort
	}
	t.int("tcp_port", port)
	t.int("server_time_usec", srv.at.UnixMicro())
	uptime := int64(srv.at.Sub(srv.start).Seconds())
	t.int("uptime_in_seconds", uptime)
	t.int("uptime_in_days", uptime/(24*3600))
	srv.infoClock(t)
	t.int("lru_clock", srv.at.Unix()&(1<<24-1))
	executable, _ := os.Executable() // empty if unknown
	t.text("executable", executable)
	t.text("config_file", srv.configFile)
	t.int("io_threads_active", 0)
	n := 0
	listener := func(kind, where string) {
		t.text("listener"+strconv.Itoa(n), "name="+kind+where)
		n++
	}
	where := ""
	for addr := range strings.FieldsSeq(srv.config.bind) {
		where += ",bind=" + addr
	}
	if srv.config.port != 0 {
		listener("tcp", where+",port="+strconv.FormatInt(srv.config.port, 10))
	}
	if srv.config.unixsocket != "" {
		listener("unix", ",bind="+srv.config.unixsocket)
	}
	if srv.config.tlsPort != 0 {
		listener("tls", where+",port="+strconv.FormatInt(srv.config.tlsPort, 10))
	}
}

// Version returns the line of zsetd --version. It has the fields of Redis's: v is
// the version of Redis whose commands the server has. zsetd is the version of the
// module.
func Version() string {
	version, revision, dirty := buildVersion()
	return fmt.Sprintf("zsetd server v=%s sha=%s:%s malloc=go bits=%d build=%s zsetd=%s go=%s", redisVersion, revision[:8], dirty,
		strconv.IntSize, revision[:16], version, strings.TrimPrefix(runtime.Version(), "go"))
}

// buildVersion returns the version that the program was built from, as far as
// known.
func buildVersion() (version, revision, dirty string) {
	const module = "github.com/zsetd/zsetd"
	version, revision, dirty = "unknown", strings.Repeat("0", 40), "0"
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return version, revision, dirty
	}
	if build.Main.Path != module {
		for _, dep := range build.Deps {
			if dep.Path == module {
				version = dep.Version
			}
		}
		return version, revision, dirty
	}
	version = build.Main.Version
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 16:
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "1"
		}
	}
	return version, revision, dirty
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

func (srv *Server) infoClients(t *infoText) {
	connected, input, output := 0, 0, 0
	for _, s := range srv.sessions {
		if s.killed {
			continue
		}
		connected++
		if s.query != nil {
			taken, free := s.query()
			input = max(input, taken+free)
		}
		output = max(output, s.out.Cap()+s.sealed+int(s.unsent.Load()))
	}
	t.title("Clients")
	t.int("connected_clients", int64(connected))
	t.int("cluster_connections", 0)
	t.int("maxclients", srv.config.maxclients)
	t.int("client_recent_max_input_buffer", int64(input))
	t.int("client_recent_max_output_buffer", int64(output))
	t.int("blocked_clients", int64(srv.blockedClients))
	t.int("tracking_clients", int64(srv.tracking.clients))
	t.int("clients_in_timeout_table", int64(len(srv.deadlines)))
	t.int("total_blocking_keys", int64(len(srv.waiting)))
	t.int("total_blocking_keys_on_nokey", 0)
}

func (srv *Server) infoMemory(t *infoText) {
	m := srv.memory()
	t.title("Memory")
	t.size("used_memory", m.used)
	t.size("used_memory_rss", m.rss)
	t.size("used_memory_peak", m.peak)
	t.text("used_memory_peak_perc", fmt.Sprintf("%.2f%%", 100*ratio(m.used, m.peak)))
	t.int("used_memory_overhead", m.overhead())
	t.int("used_memory_startup", m.startup)
	t.int("used_memory_dataset", m.dataset())
	t.text("used_memory_dataset_perc", fmt.Sprintf("%.2f%%", m.datasetShare()))
	t.int("allocator_allocated", m.allocated)
	t.int("allocator_active", m.active)
	t.int("allocator_resident", m.resident)
	t.size("total_system_memory", systemMemory())
	sc := srv.scripting.memory()
	t.int("used_memory_lua", sc.vmEval)
	t.int("used_memory_vm_eval", sc.vmEval)
	t.text("used_memory_lua_human", humanBytes(sc.vmEval))
	t.int("used_memory_scripts_eval", sc.eval)
	t.int("number_of_cached_scripts", int64(len(srv.scripting.cache)))
	t.int("number_of_functions", int64(len(srv.scripting.functions.byName)))
	t.int("number_of_libraries", int64(len(srv.scripting.functions.libraries)))
	t.int("used_memory_vm_functions", sc.vmFunctions)
	t.size("used_memory_vm_total", sc.vmEval+sc.vmFunctions)
	t.int("used_memory_functions", sc.functions)
	t.size("used_memory_scripts", sc.eval+sc.functions)
	t.size("maxmemory", srv.config.maxmemory)
	t.text("maxmemory_policy", srv.config.maxmemoryPolicy)
	t.fixed("allocator_frag_ratio", ratio(m.active, m.allocated), 2)
	t.int("allocator_frag_bytes", m.active-m.allocated)
	t.fixed("allocator_rss_ratio", ratio(m.resident, m.active), 2)
	t.int("allocator_rss_bytes", m.resident-m.active)
	t.fixed("rss_overhead_ratio", ratio(m.rss, m.resident), 2)
	t.int("rss_overhead_bytes", m.rss-m.resident)
	t.fixed("mem_fragmentation_ratio", ratio(m.rss, m.used), 2)
	t.int("mem_fragmentation_bytes", m.rss-m.used)
	t.int("mem_not_counted_for_evict", srv.memoryLimit.exempt)
	t.zeros("mem_replication_backlog", "mem_total_replication_buffers", "mem_clients_slaves")
	t.int("mem_clients_normal", m.clients)
	t.zeros("mem_cluster_links", "mem_aof_buffer")
	t.text("mem_allocator", runtime.Version())
	t.zeros("active_defrag_running", "lazyfree_pending_objects")
	t.int("lazyfreed_objects", srv.freeing.objects)
}

func (srv *Server) infoStats(t *infoText) {
	commands, input, output := srv.rates()
	t.title("Stats")
	t.int("total_connections_received", srv.connections)
	t.int("total_commands_processed", srv.commands)
	t.int("instantaneous_ops_per_sec", int64(commands))
	t.int("total_net_input_bytes", srv.input.Load())
	t.int("total_net_output_bytes", srv.output.Load())
	t.zeros("total_net_repl_input_bytes", "total_net_repl_output_bytes")
	t.fixed("instantaneous_input_kbps", input/1024, 2)
	t.fixed("instantaneous_output_kbps", output/1024, 2)
	t.fixed("instantaneous_input_repl_kbps", 0, 2)
	t.fixed("instantaneous_output_repl_kbps", 0, 2)
	t.int("rejected_connections", srv.rejected.Load())
	t.zeros("sync_full", "sync_partial_ok", "sync_partial_err")
	t.int("expired_keys", srv.expiredKeys)
	t.int("expired_subkeys", srv.expiredMembers)
	t.fixed("expired_stale_perc", 0, 2)
	t.int("expired_time_cap_reached_count", 0)
	t.int("expire_cycle_cpu_milliseconds", srv.sweepTime.Milliseconds())
	t.text("expire_lag_percentiles_usec", percentilesOf(&srv.expiryLag, 50, 99, 99.9))
	exceeded, exceeding := srv.exceeding()
	t.int("evicted_keys", srv.evictedKeys)
	t.int("evicted_clients", srv.evictedClients)
	t.int("total_eviction_exceeded_time", exceeded.Milliseconds())
	t.int("current_eviction_exceeded_time", exceeding.Milliseconds())
	t.int("keyspace_hits", srv.hits())
	t.int("keyspace_misses", srv.keyspaceMisses)
	t.int("pubsub_channels", int64(len(srv.pubsub.channels)))
	t.int("pubsub_patterns", int64(len(srv.pubsub.patterns)))
	t.int("pubsubshard_channels", int64(len(srv.pubsub.shards)))
	t.zeros("latest_fork_usec", "total_forks", "migrate_cached_sockets", "slave_expires_tracked_keys",
		"active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses",
		"total_active_defrag_time", "current_active_defrag_time")
	t.int("tracking_total_keys", int64(len(srv.tracking.keys)))
	t.int("tracking_total_items", int64(srv.tracking.items))
	t.int("tracking_total_prefixes", int64(len(srv.tracking.prefixes)))
	t.int("unexpected_error_replies", 0)
	t.int("total_error_replies", srv.errorReplies)
	t.int("dump_payload_sanitizations", 0)
	t.int("total_reads_processed", srv.reads.Load())
	t.int("total_writes_processed", srv.writes.Load())
	t.zeros("io_threaded_reads_processed", "io_threaded_writes_processed")
	t.int("client_query_buffer_limit_disconnections", srv.queryLimitDisconnections.Load())
	t.int("client_output_buffer_limit_disconnections", srv.outputLimitDisconnections)
	t.int("acl_access_denied_auth", srv.acl.refusals[deniedAuth])
	t.int("acl_access_denied_cmd", srv.acl.refusals[deniedCommand])
	t.int("acl_access_denied_key", srv.acl.refusals[deniedKey])
	t.int("acl_access_denied_channel", srv.acl.refusals[deniedChannel])
}

func (srv *Server) infoReplication(t *infoText) {
	t.title("Replication")
	t.text("role", "master")
	t.int("connected_slaves", 0)
	t.text("master_failover_state", "no-failover")
	t.text("master_replid", srv.replID)
	t.text("master_replid2", strings.Repeat("0", 40))
	t.int("master_repl_offset", 0)
	t.int("second_repl_offset", -1)
	t.zeros("repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset", "repl_backlog_histlen")
}

func (srv *Server) infoCPU(t *infoText) {
	t.title("CPU")
	system, user := cpuTime()
	t.fixed("used_cpu_sys", system.Seconds(), 6)
	t.fixed("used_cpu_user", user.Seconds(), 6)
	t.fixed("used_cpu_sys_children", 0, 6)
	t.fixed("used_cpu_user_children", 0, 6)
}

func (srv *Server) infoModules(t *infoText) { t.title("Modules") }

func (srv *Server) infoCommandstats(t *infoText) {
	t.title("Commandstats")
	srv.table.each(func(c *Command) {
		st := &c.stats
		if st.calls == 0 && st.rejected == 0 && st.failed == 0 {
			return
		}
		usec := st.time.Microseconds()
		t.text("cmdstat_"+c.Name, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			st.calls, usec, float64(st.time.Nanoseconds())/1000/float64(max(st.calls, 1)), st.rejected, st.failed))
	})
}

func (srv *Server) infoErrorstats(t *infoText) {
	t.title("Errorstats")
	for _, code := range sortedNames(srv.errors) {
		t.text("errorstat_"+code, "count="+strconv.FormatInt(srv.errors[code], 10))
	}
}

func (srv *Server) infoLatencystats(t *infoText) {
	t.title("Latencystats")
	if !srv.config.latencyTracking {
		return
	}
	srv.table.each(func(c *Command) {
		h := c.stats.histogram
		if h == nil {
			return
		}
		t.text("latency_percentiles_usec_"+c.Name, percentilesOf(h, srv.config.latencyPercentiles...))
	})
}

// percentilesOf writes percentiles in microseconds.
func percentilesOf(h *histogram, percentiles ...float64) string {
	var parts []string
	for _, p := range percentiles {
		parts = append(parts, fmt.Sprintf("p%s=%.3f", strconv.FormatFloat(p, 'f', -1, 64), float64(h.percentile(p))/1000))
	}
	return strings.Join(parts, ",")
}

func (srv *Server) infoCluster(t *infoText) {
	t.title("Cluster")
	enabled := int64(0)
	if srv.cluster != nil {
		enabled = 1
	}
	t.int("cluster_enabled", enabled)
}

func (srv *Server) infoKeyspace(t *infoText) {
	t.title("Keyspace")
	for i := range srv.keys.Len() {
		if db := srv.keys.DB(i); db.Len() > 0 {
			line := fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", db.Len(), db.Volatile(), db.AverageTTL())
			if n := db.Timed(); n > 0 {
				line += ",subexpiry=" + strconv.Itoa(n) // in Redis since 7.4, for hashes
			}
			t.text("db"+strconv.Itoa(i), line)
		}
	}
}

// byID returns all sessions, the oldest first.
func (srv *Server) byID() []*Session {
	return slices.SortedFunc(maps.Values(srv.sessions), func(a, b *Session) int { return cmp.Compare(a.id, b.id) })
}
