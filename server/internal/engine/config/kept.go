//lint:file-ignore ST1005 Errors of CONFIG SET have the wording of Redis.

package config

import (
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// kept returns a parameter that only CONFIG GET uses. make receives an accessor of
// the variable that holds the value while it is validated.
func kept[T any](why string, make func(field func(*Settings) *T) Parameter) Parameter {
	var value T
	p := make(func(*Settings) *T { return &value })
	get, set := p.Get, p.Set
	p.Kept, p.Doc = true, why
	p.Get = func(c *Settings) string {
		if v, there := c.kept[p.Name]; there {
			return v
		}
		return p.Initial
	}
	p.Set = func(c *Settings, s string) error {
		if err := set(c, s); err != nil {
			return err
		}
		next := maps.Clone(c.kept) // the old configuration may be restored
		if next == nil {
			next = map[string]string{}
		}
		next[p.Name] = get(c)
		c.kept = next
		return nil
	}
	return p
}

func keptYesNo(name string, initial bool, why string) Parameter {
	return kept(why, func(f func(*Settings) *bool) Parameter { return yesNo(name, initial, f) })
}

func keptNumber(name string, initial, lo, hi int64, why string) Parameter {
	return kept(why, func(f func(*Settings) *int64) Parameter { return number(name, initial, lo, hi, f) })
}

func keptSize(name string, initial, lo, hi int64, why string) Parameter {
	return kept(why, func(f func(*Settings) *int64) Parameter { return size(name, initial, lo, hi, f) })
}

func keptText(name, initial, why string) Parameter {
	return kept(why, func(f func(*Settings) *string) Parameter { return text(name, initial, f) })
}

func keptEnum(name, initial, why string, words ...string) Parameter {
	return kept(why, func(f func(*Settings) *string) Parameter { return enum(name, initial, f, words...) })
}

// only restricts a parameter to its default.
func (p Parameter) only(why string) Parameter {
	get, set := p.Get, p.Set
	p.Refused = true
	p.Doc = "Only `" + p.Initial + "`: " + why + "."
	if p.Initial == "" {
		p.Doc = "Only empty: " + why + "."
	}
	p.Set = func(c *Settings, s string) error {
		before := *c
		if err := set(c, s); err != nil {
			return err
		}
		if get(c) != p.Initial {
			*c = before
			return errors.New(why)
		}
		return nil
	}
	return p
}

// hide excludes a parameter from patterns of CONFIG GET.
func (p Parameter) hide() Parameter { p.Hidden = true; return p }

// fileOnly excludes a parameter from CONFIG. Redis has had it, and accepts it in a file, whatever
// its value. The log of a start names it.
func (p Parameter) fileOnly() Parameter { p.Hidden, p.FileOnly = true, true; return p }

// The reasons, each for some parameters.
const (
	noCluster         = "no effect: a cluster has one node"
	oneFile           = "no effect: the data file has a format of its own, without RDB or AOF files"
	noForks           = "no effect: saving does not fork"
	goFrees           = "no effect: the garbage collector frees memory in the background"
	goMemory          = "no effect: the Go runtime manages memory"
	exactExpiry       = "no effect: keys expire exactly at their time, without sampling"
	internalOnly      = "no effect: for tests of Redis"
	noCrashLog        = "no effect: the Go runtime reports crashes"
	ziplistsOfLists   = "no effect: list-max-listpack-size has the limit of small lists"
	oneCopy           = "no effect: a long value is copied once into a reply"
	noTLSBetweenNodes = "TLS between nodes is not supported"
)

// keptParameters returns both kinds.
func keptParameters() []Parameter {
	const maxInt = math.MaxInt32
	anyInt := func(name string, initial int64, why string) Parameter {
		return keptNumber(name, initial, 0, maxInt, why)
	}
	list := []Parameter{
		// Parameters that accept only their default.
		keptYesNo("tls-cluster", false, "").only(noTLSBetweenNodes),
		keptYesNo("syslog-enabled", false, "").immutable().only("logging to syslog is not supported"),
		keptText("locale-collate", "", "").only("strings are compared as bytes"),
		keptText("loadmodule", "", "").immutable().hide().only("modules are not supported"),

		// Memory.
		keptYesNo("lazyfree-lazy-eviction", false, goFrees),
		keptYesNo("lazyfree-lazy-expire", false, goFrees),
		keptYesNo("lazyfree-lazy-server-del", false, goFrees),
		keptYesNo("lazyfree-lazy-user-del", false, goFrees),
		keptYesNo("lazyfree-lazy-user-flush", false, goFrees),
		keptYesNo("jemalloc-bg-thread", true, goMemory),
		keptYesNo("activerehashing", true, "no effect: tables are rehashed incrementally by each change"),
		keptNumber("active-defrag-max-scan-fields", 1000, 1, math.MaxInt64, goMemory),
		anyInt("list-compress-depth", 0, "no effect: lists are not compressed"),
		keptYesNo("disable-thp", true, goMemory).immutable(),

		// Time.
		keptNumber("active-expire-effort", 1, 1, 10, exactExpiry),
		hz(),
		keptYesNo("dynamic-hz", true, exactExpiry),

		// The file.
		keptYesNo("rdbchecksum", true, "no effect: every record has a checksum").immutable(),
		keptYesNo("rdb-del-sync-files", false, "no effect: files of transfers are always removed"),
		keptYesNo("rdb-save-incremental-fsync", true, oneFile),
		keptText("appendfilename", "appendonly.aof", oneFile).immutable(),
		keptText("appenddirname", "appendonlydir", oneFile).immutable(),
		keptYesNo("aof-rewrite-incremental-fsync", true, oneFile),
		keptYesNo("aof-load-truncated", true, "no effect: after a crash the data file has its last complete transaction"),
		keptYesNo("aof-use-rdb-preamble", true, oneFile),
		keptSize("aof-load-corrupt-tail-max-size", 0, 0, math.MaxInt64, oneFile),
		keptYesNo("aof-timestamp-enabled", false, oneFile),
		keptYesNo("aof-disable-auto-gc", false, oneFile),
		keptYesNo("no-appendfsync-on-rewrite", false, oneFile),
		keptEnum("sanitize-dump-payload", "no", "no effect: RESTORE always validates its payload", "no", "yes", "clients"),

		// The process.
		keptYesNo("always-show-logo", false, "no effect: there is no logo").immutable(),
		keptYesNo("set-proc-title", true, "no effect: the process title is never changed").immutable(),
		keptText("proc-title-template", "{title} {listen-addr} {server-mode}", "no effect: the process title is never changed"),
		keptNumber("io-threads", 1, 1, 128, "no effect: sockets are always read and written in parallel").immutable(),
		keptText("io-threads-do-reads", "no", "no effect: sockets are always read and written in parallel").fileOnly(),
		keptText("list-max-ziplist-entries", "512", ziplistsOfLists).fileOnly(),
		keptText("list-max-ziplist-value", "64", ziplistsOfLists).fileOnly(),
		keptText("lua-replicate-commands", "yes", "no effect: replicas receive the changes of a script, never the script").fileOnly(),
		keptNumber("lookahead", 16, 1, maxInt, "no effect: up to 64 commands are parsed ahead"),
		keptNumber("prefetch-batch-max-size", 16, 0, 128, "no effect: a pipeline is looked up ahead whatever its length").hide(),
		keptNumber("max-new-connections-per-cycle", 10, 1, 1000, "no effect: connections are accepted at once"),
		keptNumber("max-new-tls-connections-per-cycle", 1, 1, 1000, "no effect: connections are accepted at once"),
		keptYesNo("hide-user-data-from-log", false, "no effect: the log has no keys and no values"),
		keptYesNo("lua-enable-deprecated-api", false, "no effect: scripts have all of the API").immutable().hide(),
		keptYesNo("vset-force-single-threaded-execution", false, "no effect: there are no sets of vectors"),
		keptText("server_cpulist", "", "not supported: use taskset").also("server-cpulist").immutable(),
		keptText("bio_cpulist", "", "not supported: use taskset").also("bio-cpulist").immutable(),
		keptText("aof_rewrite_cpulist", "", noForks).also("aof-rewrite-cpulist").immutable(),
		keptText("bgsave_cpulist", "", noForks).also("bgsave-cpulist").immutable(),
		keptEnum("oom-score-adj", "no", "not supported: set it in the service manager", "no", "yes", "relative", "absolute"),
		oomScores(),
		keptText("syslog-ident", "redis", "no effect: see syslog-enabled").immutable(),
		keptEnum("syslog-facility", "local0", "no effect: see syslog-enabled", "user", "local0", "local1", "local2", "local3",
			"local4", "local5", "local6", "local7").immutable(),
		keptYesNo("crash-log-enabled", true, noCrashLog),
		keptYesNo("crash-memcheck-enabled", true, noCrashLog),
		keptText("ignore-warnings", "", "no effect: there are no such warnings"),
		anyInt("tcp-backlog", 511, "not supported: the backlog is net.core.somaxconn of the system").immutable(),
		keptNumber("socket-mark-id", 0, 0, math.MaxUint32, "not supported").immutable(),
		keptEnum("enable-protected-configs", "no", "no effect: dir and dbfilename cannot be changed at run time",
			"no", "yes", "local").immutable(),
		keptEnum("propagation-error-behavior", "ignore", "no effect: replicas receive results of commands, not commands", "ignore", "panic", "panic-on-replicas"),

		// Replicas.
		keptText("bind-source-addr", "", "not supported: the system chooses the address"),
		keptYesNo("replica-lazy-flush", false, goFrees).also("slave-lazy-flush"),
		keptYesNo("replica-ignore-disk-write-errors", false, "no effect: a replica goes on if its data cannot be saved"),
		keptYesNo("repl-rdb-channel", true, "no effect: a transfer and the stream share one connection").hide(),
		keptSize("replica-full-sync-buffer-limit", 0, 0, math.MaxInt64, "no effect: the stream that waits for the end of a transfer waits at the primary"),
		keptYesNo("repl-disable-tcp-nodelay", false, "no effect: output is written at once"),

		// The cluster.
		keptText("cluster-config-file", "nodes.conf", noCluster).immutable(),
		keptNumber("cluster-node-timeout", 15000, 0, math.MaxInt64, noCluster),
		anyInt("cluster-migration-barrier", 1, noCluster),
		anyInt("cluster-replica-validity-factor", 10, noCluster).also("cluster-slave-validity-factor"),
		keptYesNo("cluster-replica-no-failover", false, noCluster).also("cluster-slave-no-failover"),
		keptYesNo("cluster-allow-replica-migration", true, noCluster),
		keptSize("cluster-link-sendbuf-limit", 0, 0, math.MaxInt64, noCluster),

		anyInt("cluster-ping-interval", 0, noCluster).hide(),
		keptText("cluster-announce-human-nodename", "", noCluster).check(isNodeName),
		keptSize("cluster-slot-migration-handoff-max-lag-bytes", 1<<20, 0, math.MaxInt64, noCluster),
		keptNumber("cluster-slot-migration-write-pause-timeout", 10000, 0, math.MaxInt64, noCluster),
		keptNumber("cluster-slot-migration-sync-buffer-drain-timeout", 60000, 0, math.MaxInt64, noCluster).hide(),

		// Parameters of Valkey, so that its valkey.conf can be read.
		keptNumber("active-defrag-cycle-us", 500, 0, 100000, goMemory).hide(),
		keptText(availabilityZone, "", "HELLO and INFO show it").hide(),
		keptText("cluster-announce-client-ipv4", "", noCluster).hide(),
		keptText("cluster-announce-client-ipv6", "", noCluster).hide(),
		keptNumber("cluster-announce-client-port", 0, 0, 65535, noCluster).hide(),
		keptNumber("cluster-announce-client-tls-port", 0, 0, 65535, noCluster).hide(),
		anyInt("cluster-blacklist-ttl", 60, noCluster).hide(),
		keptNumber("cluster-message-gossip-perc", 10, 1, 100, noCluster).hide(),
		keptEnum("cluster-config-save-behavior", "sync", noCluster, "sync", "best-effort").hide(),
		anyInt("cluster-manual-failover-timeout", 5000, noCluster).hide(),
		keptNumber("cluster-slot-migration-log-max-len", 1000, 0, math.MaxInt64, noCluster).hide(),
		keptSize("slot-migration-max-failover-repl-bytes", 0, -1, math.MaxInt64, noCluster).hide(),
		keptYesNo("dual-channel-replication-enabled", false, "no effect: a transfer and the stream share one connection").hide(),
		keptYesNo("extended-redis-compatibility", false, "no effect: the replies are those of Redis").hide(),
		keptEnum("log-timestamp-format", "legacy", "no effect: see loglevel", "legacy", "iso8601", "milliseconds").hide(),
		keptText("hash-seed", "", "no effect: the order of a scan is that of each server").immutable().hide(),
		keptYesNo("io-threads-always-active", false, "no effect: sockets are always read and written in parallel").hide(),
		keptYesNo("lua-enable-insecure-api", false, "no effect: scripts never have getfenv and its like").hide(),
		keptNumber("min-io-threads-avoid-copy-reply", 7, 0, maxInt, oneCopy).hide(),
		keptNumber("min-string-size-avoid-copy-reply", 16384, 0, maxInt, oneCopy).hide(),
		keptNumber("min-string-size-avoid-copy-reply-threaded", 65536, 0, maxInt, oneCopy).hide(),
		keptYesNo("mptcp", false, "").immutable().hide().only("multipath TCP is not supported"),
		keptYesNo("repl-mptcp", false, "").immutable().hide().only("multipath TCP is not supported"),
		keptYesNo("enable-debug-assert", false, internalOnly).immutable().hide(),

		// TLS.
		anyInt("tls-auto-reload-interval", 0, "no effect: files of certificates are read at CONFIG SET").hide(),
		anyInt("tls-session-cache-size", 20480, "no effect: session tickets are stored by clients"),
		keptYesNo("tls-prefer-server-ciphers", false, "no effect: the server always chooses the cipher"),
		keptText("tls-dh-params-file", "", "no effect: Go has no DHE ciphers"),

		// Tests of Redis.
		keptYesNo("use-exit-on-panic", false, internalOnly).hide(),
		anyInt("watchdog-period", 0, internalOnly).hide(),
		keptNumber("loading-process-events-interval-bytes", 2<<20, 1024, maxInt, internalOnly).hide(),
	}
	return list
}

// replicaof accepts a host and a port, or "no one".
func (p Parameter) replicaof() Parameter {
	set := p.Set
	p.Set = func(c *Settings, s string) error {
		words := strings.Fields(s)
		switch {
		case s == "" || strings.EqualFold(s, "no one"):
			return nil
		case len(words) != 2:
			return errors.New("wrong number of arguments")
		}
		if port, ok := protocol.ParseInt([]byte(words[1])); !ok || port < 0 || port > 65535 {
			return errors.New("Invalid master port")
		}
		return set(c, s)
	}
	return p
}

// hz clamps to Redis's bounds without an error, as Redis does.
func hz() Parameter {
	p := keptNumber("hz", hzDefault, 0, math.MaxInt32, exactExpiry)
	set := p.Set
	p.Set = func(c *Settings, s string) error {
		if n, ok := protocol.ParseInt([]byte(s)); ok && 0 <= n && n <= math.MaxInt32 {
			s = strconv.FormatInt(max(1, min(n, 500)), 10)
		}
		return set(c, s)
	}
	return p
}

// hzDefault is the default of hz.
const hzDefault = 10

const availabilityZone = "availability-zone"

// AvailabilityZone returns the parameter availability-zone, which HELLO and INFO show.
func (c *Settings) AvailabilityZone() string { return c.kept[availabilityZone] }

// Hz returns the parameter hz, which INFO shows.
func (c *Settings) Hz() string {
	if v, there := c.kept["hz"]; there {
		return v
	}
	return strconv.Itoa(hzDefault)
}

// oomScores are three numbers.
func oomScores() Parameter {
	return keptText("oom-score-adj-values", "0 200 800", "not supported: set it in the service manager").words().check(func(s string) error {
		words := strings.Fields(s)
		if len(words) != 3 {
			return errors.New("wrong number of arguments")
		}
		for _, word := range words {
			n, ok := protocol.ParseInt([]byte(word))
			if !ok || n < -2000 || n > 2000 {
				return errors.New("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")
			}
		}
		return nil
	})
}
