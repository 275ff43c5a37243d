package config

import (
	"math"
	"slices"
)

// Parameters returns the table.
func Parameters() []Parameter {
	return slices.Concat([]Parameter{
		text("bind", "127.0.0.1 -::1", func(c *Settings) *string { return &c.Bind }).words().
			about("Addresses to listen on, separated by spaces; `*` means all addresses. With the prefix `-`, an unavailable address is not an error."),
		number("port", 6379, 0, 65535, func(c *Settings) *int64 { return &c.Port }).
			about("TCP port to listen on; 0 disables it."),
		text("unixsocket", "", func(c *Settings) *string { return &c.Unixsocket }).immutable().
			about("Path of the unix socket to listen on; empty disables it."),
		octal("unixsocketperm", func(c *Settings) *string { return &c.Unixsocketperm }).immutable().
			about("Permissions of the unix socket in octal; 0 keeps those that the umask gives."),
		number("timeout", 0, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.Timeout }).
			about("Idle timeout of clients in seconds; 0 disables it. It also disconnects a client that takes longer than this to send or receive a kilobyte."),
		// Hidden: a client that sets every parameter of CONFIG GET * again skips
		// only those that are immutable in Redis.
		enum("transport", defaultTransport, func(c *Settings) *string { return &c.Transport }, "net", "epoll").immutable().hide().
			about("Network transport: `epoll` (Linux) serves all connections without TLS with a few goroutines; `net` serves each connection with a goroutine."),
		number("tcp-keepalive", 300, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.TCPKeepalive }).
			about("Interval of TCP keep-alive probes in seconds, for new connections; 0 disables them."),
		clockSteps(),
		number("databases", 16, 1, 1<<16, func(c *Settings) *int64 { return &c.Databases }).immutable().
			about("Number of databases."),
		number("maxclients", 10000, 1, math.MaxUint32, func(c *Settings) *int64 { return &c.Maxclients }).
			about("Maximum number of connected clients. At startup the server lowers it if the limit of open files is less than this number plus 32."),
		size("maxmemory", 0, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.Maxmemory }).
			about("Memory limit in bytes; 0 means no limit. Above it the server evicts keys, see maxmemory-policy; if no key " +
				"can be evicted, it refuses commands that may need memory. The limit applies to keys, values and clients " +
				"(used_memory in INFO); the process takes up to a quarter more than this limit, and some 20 MB."),
		enum("maxmemory-policy", "noeviction", func(c *Settings) *string { return &c.MaxmemoryPolicy }, "volatile-lru", "volatile-lfu",
			"volatile-random", "volatile-ttl", "volatile-lrm", "allkeys-lru", "allkeys-lfu", "allkeys-random", "allkeys-lrm", "noeviction").
			about("Eviction policy: `allkeys-` considers all keys, `volatile-` those with an expiry time; `lru` evicts the least recently " +
				"used key, `lfu` the least frequently used, `lrm` the least recently modified, `random` a random one, `ttl` the one that expires first; `noeviction` evicts none."),
		number("maxmemory-samples", 5, 1, 64, func(c *Settings) *int64 { return &c.MaxmemorySamples }).
			about("Number of random keys that `lru`, `lfu` and `lrm` compare to choose the key to evict."),
		number("maxmemory-eviction-tenacity", 10, 0, 100, func(c *Settings) *int64 { return &c.EvictionTenacity }).
			about("Time limit of an eviction step, from 0 to 100: 10 means 0.5 ms, 100 no limit. Between steps the server serves clients."),
		number("lfu-log-factor", 10, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.LFULogFactor }).
			about("Logarithm factor of the access counter of `lfu`: the larger, the more accesses increment the counter."),
		number("lfu-decay-time", 1, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.LFUDecayTime }).
			about("Decay time of the access counter of `lfu` in minutes: an idle key loses one count per period; 0 disables the decay."),
		yesNo("activedefrag", false, func(c *Settings) *bool { return &c.Activedefrag }).
			about("Whether keys and small values are moved together while the server works, so that the unused memory between them becomes free. " +
				"The program does so when it is idle, and MEMORY PURGE at any time, whatever this parameter says."),
		size("active-defrag-ignore-bytes", 100<<20, 1, math.MaxInt64, func(c *Settings) *int64 { return &c.DefragIgnore }).
			about("Unused memory between objects in bytes below which `activedefrag` moves nothing."),
		number("active-defrag-threshold-lower", 10, 0, 1000, func(c *Settings) *int64 { return &c.DefragLower }).
			about("Unused memory in percent of that in use below which `activedefrag` moves nothing."),
		number("active-defrag-threshold-upper", 100, 0, 1000, func(c *Settings) *int64 { return &c.DefragUpper }).
			about("Unused memory in percent of that in use from which on `active-defrag-cycle-max` applies."),
		number("active-defrag-cycle-min", 1, 1, 99, func(c *Settings) *int64 { return &c.DefragCycleMin }).
			about("Percentage of a core that `activedefrag` may take at the lower threshold."),
		number("active-defrag-cycle-max", 25, 1, 99, func(c *Settings) *int64 { return &c.DefragCycleMax }).
			about("Percentage of a core that `activedefrag` may take at the upper threshold."),
		renames(),
		text("requirepass", "", func(c *Settings) *string { return &c.Requirepass }).
			about("Password of the default user; empty means no password.").secret(),
		yesNo("protected-mode", true, func(c *Settings) *bool { return &c.ProtectedMode }).
			about("Whether the server rejects clients from other hosts while the default user has no password."),
		text("aclfile", "", func(c *Settings) *string { return &c.ACLFile }).immutable().
			about("Path of the file of users, which ACL LOAD reads and ACL SAVE writes. If it is empty, lines `user NAME RULES...` of the " +
				"configuration file define users."),
		enum("acl-pubsub-default", "resetchannels", func(c *Settings) *string { return &c.ACLPubSub },
			"allchannels", "resetchannels").
			about("Pub/sub channels that new users may access: `allchannels` all, `resetchannels` none."),
		number("acllog-max-len", 128, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.ACLLogMaxLen }).
			about("Maximum number of entries of ACL LOG."),
		enum("enable-debug-command", "no", func(c *Settings) *string { return &c.EnableDebugCommand }, "no", "yes", "local").immutable().
			about("Whether the DEBUG command is allowed: `no`, `yes`, or `local` for clients on the same host."),
		enum("enable-module-command", "no", func(c *Settings) *string { return &c.EnableModuleCommand }, "no", "yes", "local").immutable().
			about("Whether MODULE LOAD and UNLOAD are allowed: `no`, `yes` or `local`. Both fail: modules are not supported."),
		enum("loglevel", "notice", func(c *Settings) *string { return &c.Loglevel }, "debug", "verbose", "notice", "warning", "nothing").
			about("Minimum level of log messages: `debug`, `verbose`, `notice`, `warning` or `nothing`."),
		yesNo("cluster-enabled", false, func(c *Settings) *bool { return &c.ClusterEnabled }).immutable().
			about("Whether the server is a cluster with one node, which owns all slots unless CLUSTER DELSLOTS or FLUSHSLOTS removes them."),
		slotStats(),
		yesNo("key-memory-histograms", false, func(c *Settings) *bool { return &c.KeyMemoryHistograms }).
			about("Whether INFO keysizes also counts lists, sets, sorted sets and hashes by their memory in bytes; `mem` in `cluster-slot-stats-enabled` implies it. It cannot be enabled at run time."),
		text("cluster-announce-ip", "", func(c *Settings) *string { return &c.ClusterAnnounceIP }).
			about("IP address of the node in replies to clients; empty means the address to which the client is connected."),
		number("cluster-announce-port", 0, 0, 65535, func(c *Settings) *int64 { return &c.ClusterAnnouncePort }).
			about("Port of the node in replies to clients; 0 means `port`."),
		number("cluster-announce-tls-port", 0, 0, 65535, func(c *Settings) *int64 { return &c.ClusterAnnounceTLSPort }).
			about("Port of the node in replies to clients that use TLS; 0 means `tls-port`."),
		number("cluster-announce-bus-port", 0, 0, 65535, func(c *Settings) *int64 { return &c.ClusterAnnounceBusPort }).
			about("Port of the cluster bus in CLUSTER NODES; 0 means `cluster-port`. There is no bus."),
		number("cluster-port", 0, 0, 65535, func(c *Settings) *int64 { return &c.ClusterPort }).immutable().
			about("Port of the cluster bus in CLUSTER NODES; 0 means `port` plus 10000. There is no bus."),
		text("cluster-announce-hostname", "", func(c *Settings) *string { return &c.ClusterHostname }).check(isHostname).
			about("Host name of the node in replies to clients; empty means none."),
		enum("cluster-preferred-endpoint-type", EndpointIP, func(c *Settings) *string { return &c.ClusterEndpoint },
			EndpointIP, EndpointHostname, EndpointUnknown).
			about("Endpoint of the node in replies to clients: `ip`, `hostname`, or `unknown-endpoint` for the one to which the client is connected."),
		number("cluster-databases", 1, 1, 1<<16, func(c *Settings) *int64 { return &c.ClusterDatabases }).immutable().hide().
			about("Number of databases of a cluster, instead of `databases`."),
		yesNo("cluster-require-full-coverage", true, func(c *Settings) *bool { return &c.ClusterFullCoverage }).
			about("Whether the node rejects all commands on keys while a slot is unassigned."),
		yesNo("cluster-allow-reads-when-down", false, func(c *Settings) *bool { return &c.ClusterReadsWhenDown }).
			about("Whether the node allows reads of keys while a slot is unassigned."),
		yesNo("cluster-allow-pubsubshard-when-down", true, func(c *Settings) *bool { return &c.ClusterShardsWhenDown }).
			about("Whether the node allows sharded pub/sub while a slot is unassigned."),
		text("pidfile", "", func(c *Settings) *string { return &c.Pidfile }).immutable().
			about("Path of the pidfile, which is removed when the process exits; empty means none."),
		yesNo("daemonize", false, func(c *Settings) *bool { return &c.Daemonize }).immutable().
			about("Whether zsetd runs as a daemon. The command returns when the sockets are open, or fails with the startup error."),
		enum("supervised", "no", func(c *Settings) *string { return &c.Supervised }, "upstart", "systemd", "auto", "no").immutable().
			about("Supervisor to notify when the server is ready: `systemd` uses the socket in `NOTIFY_SOCKET`; `auto` does so if it is set."),
		shutdownFlags("shutdown-on-sigint", func(c *Settings) *string { return &c.ShutdownOnSigint }),
		shutdownFlags("shutdown-on-sigterm", func(c *Settings) *string { return &c.ShutdownOnSigterm }),
		number("shutdown-timeout", 10, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.ShutdownTimeout }).
			about("Time in seconds that a server that stops waits until its replicas have all changes."),
		number("min-replicas-to-write", 0, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.MinReplicas }).
			also("min-slaves-to-write").about("Number of replicas that a write requires: with fewer, the server rejects writes; 0 requires none."),
		number("min-replicas-max-lag", 10, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.MinReplicasMaxLag }).
			also("min-slaves-max-lag").about("Maximum lag of a replica in seconds for it to count for min-replicas-to-write; 0 disables min-replicas-to-write."),
		yesNo("repl-diskless-sync", true, func(c *Settings) *bool { return &c.ReplDisklessSync }).
			about("Whether a replica receives the data while they are read; otherwise they go through a temporary file in `dir`, as for replicas that demand it."),
		yesNo("rdbcompression", true, func(c *Settings) *bool { return &c.Compression }).
			about("Whether long strings are compressed in transfers to replicas and in replies of DUMP: with `no` they are larger, and take less time."),
		number("repl-diskless-sync-delay", 5, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.ReplDisklessDelay }).
			about("Time in seconds that a transfer to replicas waits for more of them."),
		number("repl-diskless-sync-max-replicas", 0, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.ReplDisklessReplicas }).
			about("Number of waiting replicas with which a transfer begins before the delay is over; 0 means that it does not."),
		number("repl-ping-replica-period", 10, 1, math.MaxInt32, func(c *Settings) *int64 { return &c.ReplPingPeriod }).
			also("repl-ping-slave-period").about("Interval in seconds of PING in the stream to replicas."),
		number("repl-timeout", 60, 1, math.MaxInt32, func(c *Settings) *int64 { return &c.ReplTimeout }).
			about("Time in seconds without an acknowledgement after which a replica is disconnected."),
		size("repl-backlog-size", 1<<20, 1, math.MaxInt64, func(c *Settings) *int64 { return &c.ReplBacklogSize }).
			about("Bytes of the stream that are kept for replicas that reconnect; at least 16 KB."),
		number("repl-backlog-ttl", 3600, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.ReplBacklogTTL }).
			about("Time in seconds after the last replica has left for which the stream is kept; 0 means without limit."),
		text("replicaof", "", func(c *Settings) *string { return &c.ReplicaOf }).also("slaveof").immutable().words().replicaof().
			about("Host and port of the primary that the server follows as a replica; empty, or `no one`: the server is a primary."),
		// Hidden for the same reason as transport.
		text("forward-to", "", func(c *Settings) *string { return &c.ForwardTo }).secret().hide().
			about("Server or cluster that has the data after a move, as an address with a password that `zsetd migrate` takes: commands on data are answered from there. " +
				"Empty means that the server answers them itself."),
		text("masteruser", "", func(c *Settings) *string { return &c.PrimaryUser }).secret().also("primaryuser").
			about("User for the login at the primary; empty means the default user."),
		text("masterauth", "", func(c *Settings) *string { return &c.PrimaryPassword }).secret().also("primaryauth").
			about("Password for the login at the primary; empty means no login."),
		yesNo("replica-read-only", true, func(c *Settings) *bool { return &c.ReplicaReadOnly }).also("slave-read-only").
			about("Whether a replica rejects writes. Writes to a replica reach no other server; keys whose deadlines they set expire on the replica by themselves, until it starts again."),
		yesNo("replica-serve-stale-data", true, func(c *Settings) *bool { return &c.ReplicaServeStale }).also("slave-serve-stale-data").
			about("Whether a replica without a link to its primary serves the data that it has; otherwise it replies an error."),
		yesNo("replica-ignore-maxmemory", true, func(c *Settings) *bool { return &c.ReplicaIgnoreMaxmemory }).also("slave-ignore-maxmemory").
			about("Whether maxmemory does not apply to a replica, which then has all keys of its primary."),
		number("replica-priority", 100, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.ReplicaPriority }).also("slave-priority").
			about("Priority of the replica for Sentinel, which promotes the replica with the lowest number; 0: never this one."),
		yesNo("replica-announced", true, func(c *Settings) *bool { return &c.ReplicaAnnounced }).
			about("Whether Sentinel reports the replica to clients."),
		text("replica-announce-ip", "", func(c *Settings) *string { return &c.ReplicaAnnounceIP }).also("slave-announce-ip").
			about("IP address of the replica in INFO and ROLE of its primary; empty means that of its connection."),
		number("replica-announce-port", 0, 0, 65535, func(c *Settings) *int64 { return &c.ReplicaAnnouncePort }).also("slave-announce-port").
			about("Port of the replica in INFO and ROLE of its primary; 0 means `port`."),
		enum("repl-diskless-load", "disabled", func(c *Settings) *string { return &c.ReplDisklessLoad }, "disabled", "on-empty-db", "swapdb", "flushdb").
			about("What a replica does with its data while it receives those of the primary, always without a file: `flushdb` drops them first, and they are lost if the transfer fails. " +
				"The others keep them until the new ones are complete, which takes the memory of both. `disabled` serves them meanwhile; " +
				"`on-empty-db` too, if there are any; `swapdb`, if the new ones continue their history."),
		yesNo("repl-skip-damaged-values", false, func(c *Settings) *bool { return &c.ReplSkipDamaged }).hide().
			about("Whether a replica leaves out values of the primary that it cannot read, and names their keys in the log. Otherwise they end the transfer, and the replica keeps its data."),
		yesNo("lazyexpire-nested-arbitrary-keys", true, func(c *Settings) *bool { return &c.LazyExpireNested }).hide().
			about("Whether SCAN and RANDOMKEY remove the expired keys that they find while a transaction or a script runs; they never reply them."),
		number("rdb-key-save-delay", 0, math.MinInt32, math.MaxInt32, func(c *Settings) *int64 { return &c.SaveKeyDelay }).hide().
			about("Microseconds that a transfer to replicas waits after each key, and BGSAVE before it writes, for tests; -n means one after every n keys."),
		number("key-load-delay", 0, math.MinInt32, math.MaxInt32, func(c *Settings) *int64 { return &c.LoadKeyDelay }).hide().
			about("Microseconds that loading the data, of the file or of a primary, waits after each key, for tests; -n means one after every n keys."),
		enum("rdb-version-check", "strict", func(c *Settings) *string { return &c.RDBVersionCheck }, "strict", "relaxed").hide().
			about("Whether RESTORE and FUNCTION RESTORE refuse payloads of a later version of the format than the latest known one (`strict`), or read them as far as their types are known (`relaxed`)."),
		enum("repl-field-deadlines", "no", func(c *Settings) *string { return &c.ReplFieldDeadlines }, "no", "redis", "valkey").immutable().hide().
			about("Whether replicas have the deadlines of fields of hashes: `redis` if all are Redis since 7.4 or zsetd, `valkey` if all are Valkey since 9 or zsetd. Others " +
				"cannot load the data then. With `no` all kinds of replicas can, and Redis and Valkey remove a field when it expires at the primary. After another " +
				"value than `no` a restart of the primary transfers all data."),
		// Hidden for the same reason as transport.
		enum("dialect", DialectRedis, func(c *Settings) *string { return &c.Dialect }, DialectRedis, DialectValkey).hide().
			about("Dialect of requests, errors, events and fields of replies where Redis 8.6 and Valkey 9.1 differ: `redis` or `valkey`."),
		text("logfile", "", func(c *Settings) *string { return &c.Logfile }).immutable().
			about("Path of the log file; empty means standard output."),
		// Hidden for the same reason as transport.
		enum("log-format", "redis", func(c *Settings) *string { return &c.LogFormat }, "redis", "logfmt", "json").immutable().hide().
			about("Format of log messages: `redis`, the format of Redis with attributes as `name=value`; `logfmt`; or `json`."),
		directory().protect().
			about("Directory of the data file."),
		text("dbfilename", "", func(c *Settings) *string { return &c.Dbfilename }).protect().check(isFileName).
			about("Name of the data file; empty means that the data are in memory only. Without save rules and `appendonly` it is open only while it is loaded or saved. The default of the command zsetd is " +
				"`zsetd.db`."),
		saveRules(),
		yesNo("appendonly", false, func(c *Settings) *bool { return &c.Appendonly }).
			about("Whether the server writes changes to the data file as appendfsync says, instead of by the rules of `save`."),
		enum("appendfsync", "everysec", func(c *Settings) *string { return &c.Appendfsync }, "everysec", "always", "no").
			about("Time of writes with appendonly: `always` writes and syncs each change before its reply is sent; `everysec` and " +
				"`no` write every second."),
		number("auto-aof-rewrite-percentage", 100, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.RewritePercentage }).
			about("Size of the journals in the data file, in percent of the values in it, from which on the server rewrites the values " +
				"that they change and drops them; 0 disables this."),
		size("auto-aof-rewrite-min-size", 64<<20, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.RewriteMinSize }).
			about("Size of journals and values in bytes up to which auto-aof-rewrite-percentage has no effect."),
		yesNo("stop-writes-on-bgsave-error", true, func(c *Settings) *bool { return &c.StopWrites }).
			about("Whether the server rejects writes after it failed to save, until a save succeeds."),
		classes().
			about("Classes of keyspace events to publish: any of `KEg$lshzxetdnocmA`, as in Redis; and `S`, `T`, `I` and `V` for the " +
				"channels of Redis 8.8 that name fields of hashes, here also members of sets and sorted sets."),
		size("proto-max-bulk-len", 512<<20, 1<<20, math.MaxInt64, func(c *Settings) *int64 { return &c.ProtoMaxBulk }).
			about("Maximum size of an argument and of a string value in bytes."),
		size("client-query-buffer-limit", 1<<30, 1<<20, math.MaxInt64, func(c *Settings) *int64 { return &c.QueryBufferLimit }).
			about("Input buffer limit of a client in bytes, including the commands queued in a transaction; above it " +
				"the client is disconnected."),
		outputLimitParameter(),
		maxmemoryClients(),
		number("query-max", 200000, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.QueryMax }).
			about("Maximum number of subscriptions to live queries, of all clients together."),
		number("query-cpu", 25, 1, 100, func(c *Settings) *int64 { return &c.QueryCPU }).
			about("Share of the time, in percent, that the server spends on evaluating live queries while their replies change; above it the messages come later and leave states out. Writes go on."),
		number("tracking-table-max-keys", 1000000, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.TrackingTableMaxKeys }).
			about("Maximum number of keys in the invalidation table of CLIENT TRACKING; 0 means no limit."),
		number("busy-reply-threshold", 5000, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.BusyReplyThreshold }).
			also("lua-time-limit").about("Time in milliseconds after which a running script or function is busy: other clients receive -BUSY and " +
			"can kill it; 0 disables it."),
		number("slowlog-log-slower-than", 10000, -1, math.MaxInt64, func(c *Settings) *int64 { return &c.SlowlogSlowerThan }).
			also("commandlog-execution-slower-than").
			about("Minimum duration in microseconds of commands in the slow log; -1 disables the slow log."),
		number("slowlog-max-len", 128, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.SlowlogMaxLen }).
			also("commandlog-slow-execution-max-len").about("Maximum number of entries of the slow log."),
		number("commandlog-request-larger-than", 1<<20, -1, math.MaxInt64, func(c *Settings) *int64 { return &c.LogRequestsFrom }).
			about("Minimum size in bytes of requests in the log of large requests, COMMANDLOG; -1 disables it."),
		number("commandlog-large-request-max-len", 128, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.LargeRequestsMaxLen }).
			about("Maximum number of entries of the log of large requests."),
		number("commandlog-reply-larger-than", 1<<20, -1, math.MaxInt64, func(c *Settings) *int64 { return &c.LogRepliesFrom }).
			about("Minimum size in bytes of replies in the log of large replies, COMMANDLOG; -1 disables it."),
		number("commandlog-large-reply-max-len", 128, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.LargeRepliesMaxLen }).
			about("Maximum number of entries of the log of large replies."),
		number("latency-monitor-threshold", 0, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.LatencyMonitorThreshold }).
			about("Minimum duration in milliseconds of events that LATENCY records; 0 disables it."),
		yesNo("latency-tracking", true, func(c *Settings) *bool { return &c.LatencyTracking }).
			about("Whether the server records latency histograms of commands, for LATENCY HISTOGRAM and INFO latencystats."),
		percentiles(),
		number("hash-max-listpack-entries", 512, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.HashMaxListpackEntries }).
			also("hash-max-ziplist-entries").about("Maximum number of fields of a hash in the compact encoding."),
		size("hash-max-listpack-value", 64, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.HashMaxListpackValue }).
			also("hash-max-ziplist-value").about("Maximum size in bytes of a field or value of a hash in the compact encoding."),
		number("set-max-intset-entries", 512, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.SetMaxIntsetEntries }).
			about("Maximum number of members of a set of integers in the compact encoding."),
		number("set-max-listpack-entries", 128, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.SetMaxListpackEntries }).
			about("Maximum number of members of a set in the compact encoding."),
		size("set-max-listpack-value", 64, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.SetMaxListpackValue }).
			about("Maximum size in bytes of a member of a set in the compact encoding."),
		number("zset-max-listpack-entries", 128, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.ZsetMaxListpackEntries }).
			also("zset-max-ziplist-entries").about("Maximum number of members of a sorted set for which OBJECT ENCODING reports `listpack`."),
		size("zset-max-listpack-value", 64, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.ZsetMaxListpackValue }).
			also("zset-max-ziplist-value").about("Maximum size in bytes of a member of a sorted set for which OBJECT ENCODING reports `listpack`."),
		number("list-max-listpack-size", -2, math.MinInt32, math.MaxInt32, func(c *Settings) *int64 { return &c.ListMaxListpackSize }).
			also("list-max-ziplist-size").about("Maximum size of a list for which OBJECT ENCODING reports `listpack`: a number of elements, or -1 to -5 for 4, 8, 16, 32 or 64 KB."),
		size("hll-sparse-max-bytes", 3000, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.HLLSparseMaxBytes }).
			about("Maximum size in bytes of a HyperLogLog in the sparse encoding."),
		size("stream-node-max-bytes", 4096, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.StreamNodeMaxBytes }).
			about("Maximum size of a block of a stream in bytes, as Redis counts them; 0 means 1 GB. MAXLEN ~ and MINID ~ remove whole blocks."),
		number("stream-node-max-entries", 100, 0, math.MaxInt64, func(c *Settings) *int64 { return &c.StreamNodeMaxEntries }).
			about("Maximum number of entries in a block of a stream, including deleted ones; 0 means no limit."),
		number("stream-idmp-duration", 100, 1, 86400, func(c *Settings) *int64 { return &c.StreamIDMPDuration }).
			about("Seconds for which a new stream keeps the identifiers that producers give to entries. XCFGSET changes it for one stream."),
		number("stream-idmp-maxsize", 100, 1, 10_000, func(c *Settings) *int64 { return &c.StreamIDMPMaxsize }).
			about("Maximum number of identifiers that a new stream keeps of each producer. XCFGSET changes it for one stream."),
	}, backupParameters(), httpParameters(), tlsConfigParameters(), keptParameters())
}
