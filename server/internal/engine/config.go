//lint:file-ignore ST1005 Errors of CONFIG SET have the wording of Redis.

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/glob"
)

// One table of parameters, by Redis's names, is the source of redis.conf, the
// command line flags, CONFIG GET and SET, and the documentation.

// Config holds the values of the parameters.
type Config struct {
	Bind             string
	Port             int64
	TLSPort          int64
	TLS              TLSParameters
	Unixsocket       string
	unixsocketperm   string
	transport        string
	Timeout          int64 // seconds
	tcpKeepalive     int64 // seconds
	databases        int64
	Maxclients       int64
	Maxmemory        int64 // bytes
	MaxmemoryPolicy  string
	maxmemorySamples int64
	evictionTenacity int64
	lfuLogFactor     int64
	lfuDecayTime     int64 // minutes
	requirepass      string
	ACLFile          string
	aclPubsub        string
	aclLogMaxLen     int64
	enableDebug      string
	enableModule     string
	logfile          string
	loglevel         string
	logFormat        string
	save             []saveRule
	Dir              string
	Dbfilename       string
	stopWrites       bool
	appendonly       bool
	appendfsync      string
	notify           string // letters of event classes
	ProtoMaxBulk     int64  // bytes
	queryBufferLimit int64  // bytes
	outputLimits     [3]outputLimit
	maxmemoryClients int64 // bytes, or if negative percent of maxmemory

	trackingTableMaxKeys    int64
	BusyReplyThreshold      int64 // milliseconds
	SlowlogSlowerThan       int64 // microseconds
	SlowlogMaxLen           int64
	LatencyMonitorThreshold int64 // milliseconds
	LatencyTracking         bool
	LatencyPercentiles      []float64

	hashMaxListpackEntries int64
	hashMaxListpackValue   int64
	setMaxIntsetEntries    int64
	setMaxListpackEntries  int64
	setMaxListpackValue    int64
	zsetMaxListpackEntries int64
	zsetMaxListpackValue   int64
	listMaxListpackSize    int64
	HLLSparseMaxBytes      int64
	streamNodeMaxBytes     int64
	streamNodeMaxEntries   int64

	clusterEnabled         bool
	ClusterPort            int64
	ClusterAnnounceIP      string
	ClusterHostname        string
	ClusterAnnouncePort    int64
	ClusterAnnounceTLSPort int64
	ClusterAnnounceBusPort int64
	ClusterEndpoint        string
	clusterFullCoverage    bool
	clusterReadsWhenDown   bool
	clusterShardsWhenDown  bool

	minReplicas       int64
	minReplicasMaxLag int64 // seconds
	shutdownOnSigint  string
	shutdownOnSigterm string
	clockSteps        string
	protectedMode     bool
	renames           string
	pidfile           string
	daemonize         bool
	Supervised        string

	kept map[string]string // values of the parameters without effect; see kept
}

// parameter is a row of the table.
type parameter struct {
	Name, Alias string
	Initial     string // the default
	Doc         string
	Fixed       bool // can only be set before the server starts
	protected   bool // protected: would let a client act on the machine
	several     bool // its value may be several words in a file
	lines       bool // lines in a file accumulate
	Kept        bool // accepted without effect
	Refused     bool // accepts one value only
	hidden      bool // not matched by patterns
	form        form
	secrecy     bool // not shown in the slow log and to MONITOR
	Get         func(*Config) string
	set         func(*Config, string) error
}

// Parameters returns the table.
func Parameters() []parameter {
	return slices.Concat([]parameter{
		text("bind", "127.0.0.1 -::1", func(c *Config) *string { return &c.Bind }).words().
			about("Addresses to listen on, separated by spaces; `*` means all addresses. With the prefix `-`, an unavailable address is not an error."),
		number("port", 6379, 0, 65535, func(c *Config) *int64 { return &c.Port }).
			about("TCP port to listen on; 0 disables it."),
		text("unixsocket", "", func(c *Config) *string { return &c.Unixsocket }).immutable().
			about("Path of the unix socket to listen on; empty disables it."),
		octal("unixsocketperm", func(c *Config) *string { return &c.unixsocketperm }).immutable().
			about("Permissions of the unix socket in octal; 0 keeps those that the umask gives."),
		number("timeout", 0, 0, math.MaxInt32, func(c *Config) *int64 { return &c.Timeout }).
			about("Idle timeout of clients in seconds; 0 disables it. It also disconnects a client that takes longer than this to send or receive a kilobyte."),
		// Hidden: a client that sets every parameter of CONFIG GET * again skips
		// only those that are immutable in Redis.
		enum("transport", "epoll", func(c *Config) *string { return &c.transport }, "net", "epoll").immutable().hide().
			about("Network transport: `epoll` (Linux) serves all connections without TLS with a few goroutines; `net` serves each connection with a goroutine."),
		number("tcp-keepalive", 300, 0, math.MaxInt32, func(c *Config) *int64 { return &c.tcpKeepalive }).
			about("Interval of TCP keep-alive probes in seconds, for new connections; 0 disables them."),
		clockSteps(),
		number("databases", 16, 1, 1<<16, func(c *Config) *int64 { return &c.databases }).immutable().
			about("Number of databases."),
		number("maxclients", 10000, 1, math.MaxUint32, func(c *Config) *int64 { return &c.Maxclients }).
			about("Maximum number of connected clients. At startup the server lowers it if the limit of open files is less than this number plus 32."),
		size("maxmemory", 0, 0, math.MaxInt64, func(c *Config) *int64 { return &c.Maxmemory }).
			about("Memory limit in bytes; 0 means no limit. Above it the server evicts keys, see maxmemory-policy; if no key " +
				"can be evicted, it refuses commands that may need memory. The limit applies to keys, values and clients " +
				"(used_memory in INFO); the process uses about a quarter more, at least 20 MB."),
		enum("maxmemory-policy", "noeviction", func(c *Config) *string { return &c.MaxmemoryPolicy }, "volatile-lru", "volatile-lfu",
			"volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction").
			about("Eviction policy: `allkeys-` considers all keys, `volatile-` those with an expiry time; `lru` evicts the least recently " +
				"used key, `lfu` the least frequently used, `random` a random one, `ttl` the one that expires first; `noeviction` evicts none."),
		number("maxmemory-samples", 5, 1, math.MaxInt32, func(c *Config) *int64 { return &c.maxmemorySamples }).
			about("Number of random keys that `lru` and `lfu` compare to choose the key to evict."),
		number("maxmemory-eviction-tenacity", 10, 0, 100, func(c *Config) *int64 { return &c.evictionTenacity }).
			about("Time limit of an eviction step, from 0 to 100: 10 means 0.5 ms, 100 no limit. Between steps the server serves clients."),
		number("lfu-log-factor", 10, 0, math.MaxInt32, func(c *Config) *int64 { return &c.lfuLogFactor }).
			about("Logarithm factor of the access counter of `lfu`: the larger, the more accesses increment the counter."),
		number("lfu-decay-time", 1, 0, math.MaxInt32, func(c *Config) *int64 { return &c.lfuDecayTime }).
			about("Decay time of the access counter of `lfu` in minutes: an idle key loses one count per period; 0 disables the decay."),
		renames(),
		text("requirepass", "", func(c *Config) *string { return &c.requirepass }).
			about("Password of the default user; empty means no password.").secret(),
		yesNo("protected-mode", true, func(c *Config) *bool { return &c.protectedMode }).
			about("Whether the server rejects clients from other hosts while the default user has no password."),
		text("aclfile", "", func(c *Config) *string { return &c.ACLFile }).immutable().
			about("Path of the file of users, which ACL LOAD reads and ACL SAVE writes. If it is empty, lines `user NAME RULES...` of the " +
				"configuration file define users."),
		enum("acl-pubsub-default", "resetchannels", func(c *Config) *string { return &c.aclPubsub },
			"allchannels", "resetchannels").
			about("Pub/sub channels that new users may access: `allchannels` all, `resetchannels` none."),
		number("acllog-max-len", 128, 0, math.MaxInt64, func(c *Config) *int64 { return &c.aclLogMaxLen }).
			about("Maximum number of entries of ACL LOG."),
		enum("enable-debug-command", "no", func(c *Config) *string { return &c.enableDebug }, "no", "yes", "local").immutable().
			about("Whether the DEBUG command is allowed: `no`, `yes`, or `local` for clients on the same host."),
		enum("enable-module-command", "no", func(c *Config) *string { return &c.enableModule }, "no", "yes", "local").immutable().
			about("Whether MODULE LOAD and UNLOAD are allowed: `no`, `yes` or `local`. Both fail: modules are not supported."),
		enum("loglevel", "notice", func(c *Config) *string { return &c.loglevel }, "debug", "verbose", "notice", "warning", "nothing").
			about("Minimum level of log messages: `debug`, `verbose`, `notice`, `warning` or `nothing`."),
		yesNo("cluster-enabled", false, func(c *Config) *bool { return &c.clusterEnabled }).immutable().
			about("Whether the server is a cluster with one node, which owns all slots unless CLUSTER DELSLOTS or FLUSHSLOTS removes them."),
		text("cluster-announce-ip", "", func(c *Config) *string { return &c.ClusterAnnounceIP }).
			about("IP address of the node in replies to clients; empty means the address to which the client is connected."),
		number("cluster-announce-port", 0, 0, 65535, func(c *Config) *int64 { return &c.ClusterAnnouncePort }).
			about("Port of the node in replies to clients; 0 means `port`."),
		number("cluster-announce-tls-port", 0, 0, 65535, func(c *Config) *int64 { return &c.ClusterAnnounceTLSPort }).
			about("Port of the node in replies to clients that use TLS; 0 means `tls-port`."),
		number("cluster-announce-bus-port", 0, 0, 65535, func(c *Config) *int64 { return &c.ClusterAnnounceBusPort }).
			about("Port of the cluster bus in CLUSTER NODES; 0 means `cluster-port`. There is no bus."),
		number("cluster-port", 0, 0, 65535, func(c *Config) *int64 { return &c.ClusterPort }).immutable().
			about("Port of the cluster bus in CLUSTER NODES; 0 means `port` plus 10000. There is no bus."),
		text("cluster-announce-hostname", "", func(c *Config) *string { return &c.ClusterHostname }).check(isHostname).
			about("Host name of the node in replies to clients; empty means none."),
		enum("cluster-preferred-endpoint-type", EndpointIP, func(c *Config) *string { return &c.ClusterEndpoint },
			EndpointIP, EndpointHostname, EndpointUnknown).
			about("Endpoint of the node in replies to clients: `ip`, `hostname`, or `unknown-endpoint` for the one to which the client is connected."),
		yesNo("cluster-require-full-coverage", true, func(c *Config) *bool { return &c.clusterFullCoverage }).
			about("Whether the node rejects all commands on keys while a slot is unassigned."),
		yesNo("cluster-allow-reads-when-down", false, func(c *Config) *bool { return &c.clusterReadsWhenDown }).
			about("Whether the node allows reads of keys while a slot is unassigned."),
		yesNo("cluster-allow-pubsubshard-when-down", true, func(c *Config) *bool { return &c.clusterShardsWhenDown }).
			about("Whether the node allows sharded pub/sub while a slot is unassigned."),
		text("pidfile", "", func(c *Config) *string { return &c.pidfile }).immutable().
			about("Path of the pidfile, which is removed when the process exits; empty means none."),
		yesNo("daemonize", false, func(c *Config) *bool { return &c.daemonize }).immutable().
			about("Whether zsetd runs as a daemon. The command returns when the sockets are open, or fails with the startup error."),
		enum("supervised", "no", func(c *Config) *string { return &c.Supervised }, "upstart", "systemd", "auto", "no").immutable().
			about("Supervisor to notify when the server is ready: `systemd` uses the socket in `NOTIFY_SOCKET`; `auto` does so if it is set."),
		shutdownFlags("shutdown-on-sigint", func(c *Config) *string { return &c.shutdownOnSigint }),
		shutdownFlags("shutdown-on-sigterm", func(c *Config) *string { return &c.shutdownOnSigterm }),
		number("min-replicas-to-write", 0, 0, math.MaxInt32, func(c *Config) *int64 { return &c.minReplicas }).
			also("min-slaves-to-write").about("Number of replicas that a write requires. Replication is not supported: with 1 or more the server rejects all writes."),
		number("min-replicas-max-lag", 10, 0, math.MaxInt32, func(c *Config) *int64 { return &c.minReplicasMaxLag }).
			also("min-slaves-max-lag").about("Maximum lag of a replica in seconds for it to count for min-replicas-to-write; 0 disables min-replicas-to-write."),
		text("logfile", "", func(c *Config) *string { return &c.logfile }).immutable().
			about("Path of the log file; empty means standard output."),
		// Hidden for the same reason as transport.
		enum("log-format", "redis", func(c *Config) *string { return &c.logFormat }, "redis", "logfmt", "json").immutable().hide().
			about("Format of log messages: `redis`, the format of Redis with attributes as `name=value`; `logfmt`; or `json`."),
		directory().protect().
			about("Directory of the data file."),
		text("dbfilename", "", func(c *Config) *string { return &c.Dbfilename }).protect().check(isFileName).
			about("Name of the data file; empty means that the data are in memory only. The default of the command zsetd is " +
				"`zsetd.db`."),
		saveRules(),
		yesNo("appendonly", false, func(c *Config) *bool { return &c.appendonly }).
			about("Whether the server writes changes to the data file as appendfsync says, instead of by the rules of `save`."),
		enum("appendfsync", "everysec", func(c *Config) *string { return &c.appendfsync }, "everysec", "always", "no").
			about("Time of writes with appendonly: `always` writes and syncs each change before its reply is sent; `everysec` and " +
				"`no` write every second."),
		yesNo("stop-writes-on-bgsave-error", true, func(c *Config) *bool { return &c.stopWrites }).
			about("Whether the server rejects writes after it failed to save, until a save succeeds."),
		classes().
			about("Classes of keyspace events to publish: any of `KEg$lshzxetdnmA`, as in Redis; and `S`, `T`, `I` and `V` for the " +
				"channels of Redis 8.8 that name fields of hashes, here also members of sets and sorted sets."),
		size("proto-max-bulk-len", 512<<20, 1<<20, math.MaxInt64, func(c *Config) *int64 { return &c.ProtoMaxBulk }).
			about("Maximum size of an argument and of a string value in bytes."),
		size("client-query-buffer-limit", 1<<30, 1<<20, math.MaxInt64, func(c *Config) *int64 { return &c.queryBufferLimit }).
			about("Input buffer limit of a client in bytes, including the commands queued in a transaction; above it " +
				"the client is disconnected."),
		outputLimitParameter(),
		maxmemoryClients(),
		number("tracking-table-max-keys", 1000000, 0, math.MaxInt64, func(c *Config) *int64 { return &c.trackingTableMaxKeys }).
			about("Maximum number of keys in the invalidation table of CLIENT TRACKING; 0 means no limit."),
		number("busy-reply-threshold", 5000, 0, math.MaxInt64, func(c *Config) *int64 { return &c.BusyReplyThreshold }).
			also("lua-time-limit").about("Time in milliseconds after which a running script or function is busy: other clients receive -BUSY and " +
			"can kill it; 0 disables it."),
		number("slowlog-log-slower-than", 10000, -1, math.MaxInt64, func(c *Config) *int64 { return &c.SlowlogSlowerThan }).
			about("Minimum duration in microseconds of commands in the slow log; -1 disables the slow log."),
		number("slowlog-max-len", 128, 0, math.MaxInt64, func(c *Config) *int64 { return &c.SlowlogMaxLen }).
			about("Maximum number of entries of the slow log."),
		number("latency-monitor-threshold", 0, 0, math.MaxInt64, func(c *Config) *int64 { return &c.LatencyMonitorThreshold }).
			about("Minimum duration in milliseconds of events that LATENCY records; 0 disables it."),
		yesNo("latency-tracking", true, func(c *Config) *bool { return &c.LatencyTracking }).
			about("Whether the server records latency histograms of commands, for LATENCY HISTOGRAM and INFO latencystats."),
		percentiles(),
		number("hash-max-listpack-entries", 512, 0, math.MaxInt64, func(c *Config) *int64 { return &c.hashMaxListpackEntries }).
			also("hash-max-ziplist-entries").about("Maximum number of fields of a hash in the compact encoding."),
		size("hash-max-listpack-value", 64, 0, math.MaxInt64, func(c *Config) *int64 { return &c.hashMaxListpackValue }).
			also("hash-max-ziplist-value").about("Maximum size in bytes of a field or value of a hash in the compact encoding."),
		number("set-max-intset-entries", 512, 0, math.MaxInt64, func(c *Config) *int64 { return &c.setMaxIntsetEntries }).
			about("Maximum number of members of a set of integers in the compact encoding."),
		number("set-max-listpack-entries", 128, 0, math.MaxInt64, func(c *Config) *int64 { return &c.setMaxListpackEntries }).
			about("Maximum number of members of a set in the compact encoding."),
		size("set-max-listpack-value", 64, 0, math.MaxInt64, func(c *Config) *int64 { return &c.setMaxListpackValue }).
			about("Maximum size in bytes of a member of a set in the compact encoding."),
		number("zset-max-listpack-entries", 128, 0, math.MaxInt64, func(c *Config) *int64 { return &c.zsetMaxListpackEntries }).
			also("zset-max-ziplist-entries").about("Maximum number of members of a sorted set for which OBJECT ENCODING reports `listpack`."),
		size("zset-max-listpack-value", 64, 0, math.MaxInt64, func(c *Config) *int64 { return &c.zsetMaxListpackValue }).
			also("zset-max-ziplist-value").about("Maximum size in bytes of a member of a sorted set for which OBJECT ENCODING reports `listpack`."),
		number("list-max-listpack-size", -2, math.MinInt32, math.MaxInt32, func(c *Config) *int64 { return &c.listMaxListpackSize }).
			also("list-max-ziplist-size").about("Maximum size of a list for which OBJECT ENCODING reports `listpack`: a number of elements, or -1 to -5 for 4, 8, 16, 32 or 64 KB."),
		size("hll-sparse-max-bytes", 3000, 0, math.MaxInt64, func(c *Config) *int64 { return &c.HLLSparseMaxBytes }).
			about("Maximum size in bytes of a HyperLogLog in the sparse encoding."),
		size("stream-node-max-bytes", 4096, 0, math.MaxInt64, func(c *Config) *int64 { return &c.streamNodeMaxBytes }).
			about("Maximum size of a block of a stream in bytes, as Redis counts them; 0 means 1 GB. MAXLEN ~ and MINID ~ remove whole blocks."),
		number("stream-node-max-entries", 100, 0, math.MaxInt64, func(c *Config) *int64 { return &c.streamNodeMaxEntries }).
			about("Maximum number of entries in a block of a stream, including deleted ones; 0 means no limit."),
	}, tlsConfigParameters(), keptParameters())
}

var errSaveRules = errors.New("Invalid save parameters")

func (p parameter) about(doc string) parameter  { p.Doc = doc; return p }
func (p parameter) also(alias string) parameter { p.Alias = alias; return p }
func (p parameter) words() parameter            { p.form, p.several = formWords, true; return p }
func (p parameter) secret() parameter           { p.secrecy = true; return p }
func (p parameter) immutable() parameter        { p.Fixed = true; return p }
func (p parameter) protect() parameter          { p.Fixed, p.protected = true, true; return p }
func (p parameter) check(ok func(string) error) parameter {
	set := p.set
	p.set = func(c *Config, s string) error {
		if err := ok(s); err != nil {
			return err
		}
		return set(c, s)
	}
	return p
}

func text(name, initial string, field func(*Config) *string) parameter {
	return parameter{Name: name, Initial: initial, form: formQuoted,
		Get: func(c *Config) string { return *field(c) },
		set: func(c *Config, s string) error { *field(c) = s; return nil }}
}

func number(name string, initial, lo, hi int64, field func(*Config) *int64) parameter {
	return parameter{Name: name, Initial: strconv.FormatInt(initial, 10),
		Get: func(c *Config) string { return strconv.FormatInt(*field(c), 10) },
		set: func(c *Config, s string) error {
			n, ok := protocol.ParseInt([]byte(s))
			if !ok {
				return errors.New("argument couldn't be parsed into an integer")
			}
			return within(field(c), n, lo, hi)
		}}
}

// size is a number that may be written with a unit: 1k, 1kb, 5MB, 1g.
func size(name string, initial, lo, hi int64, field func(*Config) *int64) parameter {
	p := number(name, initial, lo, hi, field)
	p.form = formBytes
	p.set = func(c *Config, s string) error {
		n, ok := ParseMemory(s)
		if !ok {
			return errors.New("argument must be a memory value")
		}
		return within(field(c), n, lo, hi)
	}
	return p
}

func within(field *int64, n, lo, hi int64) error {
	if n < lo || n > hi {
		return fmt.Errorf("argument must be between %d and %d inclusive", lo, hi)
	}
	*field = n
	return nil
}

func yesNo(name string, initial bool, field func(*Config) *bool) parameter {
	p := parameter{Name: name, Initial: "no",
		Get: func(c *Config) string {
			if *field(c) {
				return "yes"
			}
			return "no"
		},
		set: func(c *Config, s string) error {
			yes := strings.EqualFold(s, "yes")
			if !yes && !strings.EqualFold(s, "no") {
				return errors.New("argument must be 'yes' or 'no'")
			}
			*field(c) = yes
			return nil
		}}
	if initial {
		p.Initial = "yes"
	}
	return p
}

func enum(name, initial string, field func(*Config) *string, words ...string) parameter {
	p := text(name, initial, field)
	p.form = formWords
	p.set = func(c *Config, s string) error {
		for _, word := range words {
			if strings.EqualFold(s, word) {
				*field(c) = word
				return nil
			}
		}
		return errors.New("argument(s) must be one of the following: " + strings.Join(words, ", "))
	}
	return p
}

// octal is a file mode; 0 leaves the mode that the system gives.
func octal(name string, field func(*Config) *string) parameter {
	p := text(name, "0", field)
	p.form = formWords
	p.set = func(c *Config, s string) error {
		n, err := strconv.ParseUint(s, 8, 32)
		if err != nil || n > 0o777 {
			return errors.New("argument must be an octal number between 0 and 777")
		}
		*field(c) = strconv.FormatUint(n, 8)
		return nil
	}
	return p
}

// isHostname accepts names of hosts.
func isHostname(s string) error {
	if len(s) >= 256 {
		return errors.New("Hostnames must be less than 256 characters")
	}
	for _, c := range []byte(s) {
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.') {
			return errors.New("Hostnames may only contain alphanumeric characters, hyphens or dots")
		}
	}
	return nil
}

// renames is the parameter of rename-command lines: pairs of words, in quotes.
func renames() parameter {
	p := text("rename-command", "", func(c *Config) *string { return &c.renames }).immutable().hide().
		about("In configuration files: the name of a command and its new name, or `\"\"` to disable the command.")
	p.lines = true
	return p
}

// shutdownFlags is the parameter for the effect of SIGINT or SIGTERM.
func shutdownFlags(name string, field func(*Config) *string) parameter {
	p := text(name, "default", field).words().about("Shutdown options of the signal: `default` saves if there are save rules, `save` always, `nosave` never; `now` " +
		"closes connections immediately; `force` ignores an error of the save.")
	p.set = func(c *Config, s string) error {
		var words []string
		for _, word := range []string{"default", "save", "nosave", "now", "force"} { // Redis's order
			if slices.ContainsFunc(strings.Fields(s), func(w string) bool { return strings.EqualFold(w, word) }) {
				words = append(words, word)
			}
		}
		if len(words) != len(strings.Fields(s)) {
			return errors.New("argument(s) must be one of the following: default, save, nosave, now, force")
		}
		if slices.Contains(words, "save") && slices.Contains(words, "nosave") {
			return errors.New("shutdown options SAVE and NOSAVE can't be used simultaneously")
		}
		if len(words) > 1 {
			words = slices.DeleteFunc(words, func(w string) bool { return w == "default" })
		}
		if len(words) == 0 {
			return errors.New("argument(s) must be one of the following: default, save, nosave, now, force")
		}
		*field(c) = strings.Join(words, " ")
		return nil
	}
	return p
}

func classes() parameter {
	return parameter{
		Name: "notify-keyspace-events", form: formQuoted,
		Get: func(c *Config) string { return c.notify },
		set: func(c *Config, s string) error {
			letters, ok := sortClasses(s)
			if !ok {
				return errors.New("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
			}
			c.notify = letters
			return nil
		},
	}
}

// The letters of event classes in the order in which CONFIG GET lists them. A stands for
// classesOfA.
const (
	classesOfA   = "g$lshzxetd"
	otherClasses = "nKEmSTIV"
)

// sortClasses returns the letters of a set of event classes, each once, in the order of
// CONFIG GET.
func sortClasses(s string) (sorted string, ok bool) {
	s = strings.ReplaceAll(s, "A", classesOfA)
	if strings.Trim(s, classesOfA+otherClasses) != "" {
		return "", false
	}
	var b strings.Builder
	for _, letter := range classesOfA + otherClasses {
		if strings.ContainsRune(s, letter) {
			b.WriteRune(letter)
		}
	}
	sorted = b.String()
	if rest, all := strings.CutPrefix(sorted, classesOfA); all {
		sorted = "A" + rest
	}
	return sorted, true
}

// ParseMemory parses a number of bytes with an optional unit, as redis.conf defines
// them: k and kb differ.
func ParseMemory(s string) (int64, bool) {
	digits := strings.TrimRight(strings.ToLower(s), "kmgb")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits == "" {
		return 0, false
	}
	unit := int64(0)
	switch strings.ToLower(s)[len(digits):] {
	case "", "b":
		unit = 1
	case "k":
		unit = 1000
	case "kb":
		unit = 1 << 10
	case "m":
		unit = 1000 * 1000
	case "mb":
		unit = 1 << 20
	case "g":
		unit = 1000 * 1000 * 1000
	case "gb":
		unit = 1 << 30
	}
	if unit == 0 || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

// outputLimit bounds the output queue of a client: it is closed at once above hard,
// or after it has been above soft for some seconds. 0 is no limit.
type outputLimit struct{ hard, soft, seconds int64 }

// The classes of clients, in the order of config.outputLimits.
const (
	normalClient = iota
	replicaClient
	pubsubClient
)

func outputLimitParameter() parameter {
	names := []string{"normal", "slave", "pubsub"}
	return parameter{
		Name: "client-output-buffer-limit", lines: true, several: true,
		Initial: "normal 1073741824 1048576 60 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
		Doc: "Limits of the output queue of a client: class, hard limit and soft limit in bytes, and the time in seconds that it may be above the soft limit; " +
			"0 means no limit. A client that exceeds them is disconnected. The time of a `normal` client restarts whenever it " +
			"reads output. Redis's default is `normal 0 0 0`: see [What differs](#what-differs-from-redis).",
		Get: func(c *Config) string {
			var b []string
			for i, l := range c.outputLimits {
				b = append(b, fmt.Sprintf("%s %d %d %d", names[i], l.hard, l.soft, l.seconds))
			}
			return strings.Join(b, " ")
		},
		set: func(c *Config, s string) error {
			words := strings.Fields(s)
			if len(words)%4 != 0 {
				return errors.New("Wrong number of arguments in buffer limit configuration.")
			}
			limits := c.outputLimits
			for ; len(words) > 0; words = words[4:] {
				class := -1
				for i, name := range names {
					if strings.EqualFold(words[0], name) || i == replicaClient && strings.EqualFold(words[0], "replica") {
						class = i
					}
				}
				if class < 0 {
					return errors.New("Invalid client class specified in buffer limit configuration.")
				}
				hard, ok1 := ParseMemory(words[1])
				soft, ok2 := ParseMemory(words[2])
				seconds, err := strconv.ParseInt(words[3], 10, 32)
				if !ok1 || !ok2 || err != nil || seconds < 0 {
					return errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
				}
				limits[class] = outputLimit{hard, soft, seconds}
			}
			c.outputLimits = limits
			return nil
		},
	}
}

func percentiles() parameter {
	return parameter{
		Name: "latency-tracking-info-percentiles", several: true, Initial: "50 99 99.9",
		Doc: "Percentiles that INFO latencystats reports, from 0 to 100.",
		Get: func(c *Config) string {
			var b []string
			for _, p := range c.LatencyPercentiles {
				b = append(b, strconv.FormatFloat(p, 'g', -1, 64))
			}
			return strings.Join(b, " ")
		},
		set: func(c *Config, s string) error {
			var list []float64
			for _, word := range strings.Fields(s) {
				p, ok := protocol.ParseFloat([]byte(word))
				if !ok || p < 0 || p > 100 {
					return errors.New("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
				}
				list = append(list, p)
			}
			c.LatencyPercentiles = list
			return nil
		},
	}
}

func defaultConfig() Config {
	var c Config
	for _, p := range Parameters() {
		if err := p.set(&c, p.Initial); err != nil {
			panic("BUG: parameter " + p.Name + ": " + err.Error())
		}
	}
	return c
}

// FindParameter returns the parameter of that name, ignoring case.
func FindParameter(table []parameter, name string) *parameter {
	for i := range table {
		if p := &table[i]; strings.EqualFold(p.Name, name) || p.Alias != "" && strings.EqualFold(p.Alias, name) {
			return p
		}
	}
	return nil
}

// inputLimits are the parameters that transports read without the lock.
type inputLimits struct {
	reader       protocol.Limits
	queryBuffer  int
	lagging      int64 // bytes from which on the server checks whether a client reads its output
	weighClients bool  // maxmemory-clients requires weighing of clients
	maxclients   int
	maxmemory    int64
	keepalive    int  // seconds
	protected    bool // refuse clients from other machines
}

type limitsPointer = atomic.Pointer[inputLimits]

// configure applies parameters before the server starts.
func (srv *Engine) configure(values map[string]string) error {
	table := Parameters()
	for name, value := range values {
		if name == "user" {
			continue // loadUsers reads it
		}
		p := FindParameter(table, name)
		if p == nil {
			return fmt.Errorf("zsetd: unknown parameter %q", name)
		}
		if err := p.set(&srv.Config, value); err != nil {
			return fmt.Errorf("zsetd: parameter %s: %w", p.Name, err)
		}
	}
	if err := srv.Table.Rename(srv.Config.renames); err != nil {
		return fmt.Errorf("zsetd: rename-command: %w", err)
	}
	if _, given := values["save"]; !given && srv.Config.Dbfilename != "" {
		srv.Config.save = []saveRule{{1, 1}}
	}
	return nil
}

// applyConfig passes the values of the parameters to the parts that use them.
func (srv *Engine) applyConfig() {
	c := &srv.Config
	srv.ACL.AllChannels = c.aclPubsub == "allchannels"
	srv.notify = classesOf(c.notify)
	if srv.notify&classChannels == 0 {
		srv.notify = 0 // nowhere to publish to
	}
	srv.selectMemberEvents()
	srv.limitMemory()
	srv.limits.Store(&inputLimits{
		reader:       protocol.Limits{MaxBulk: ClampInt(c.ProtoMaxBulk)},
		queryBuffer:  ClampInt(c.queryBufferLimit),
		lagging:      c.lagging(),
		weighClients: c.maxmemoryClients != 0,
		maxclients:   ClampInt(c.Maxclients),
		maxmemory:    c.Maxmemory,
		keepalive:    ClampInt(c.tcpKeepalive),
		protected:    c.protectedMode,
	})
	srv.limitClients()
	l := &srv.Keys.Limits
	l.HashMaxListpackEntries = ClampInt(c.hashMaxListpackEntries)
	l.HashMaxListpackValue = ClampInt(c.hashMaxListpackValue)
	l.SetMaxIntsetEntries = ClampInt(c.setMaxIntsetEntries)
	l.SetMaxListpackEntries = ClampInt(c.setMaxListpackEntries)
	l.SetMaxListpackValue = ClampInt(c.setMaxListpackValue)
	l.ZsetMaxListpackEntries = ClampInt(c.zsetMaxListpackEntries)
	l.ZsetMaxListpackValue = ClampInt(c.zsetMaxListpackValue)
	l.ListMaxListpackSize = ClampInt(c.listMaxListpackSize)
	l.StreamNodeMaxBytes = ClampInt(c.streamNodeMaxBytes)
	l.StreamNodeMaxEntries = ClampInt(c.streamNodeMaxEntries)
	srv.level.Set(logLevel(c.loglevel))
	srv.nextIdle = 0
	if c.Timeout != 0 {
		srv.nextIdle = 1 // at once
	}
}

// ClampInt converts to int, and limits the value to the range of int.
func ClampInt(n int64) int { return int(max(math.MinInt, min(n, math.MaxInt))) }

func (srv *Engine) maxClients() int { return srv.limits.Load().maxclients }

// Verbose is the level of Redis that slog has no name for.
const Verbose = slog.LevelDebug + 1

// logLevel translates Redis's levels.
func logLevel(name string) slog.Level {
	switch name {
	case "debug":
		return slog.LevelDebug
	case "verbose":
		return Verbose
	case "warning":
		return slog.LevelWarn
	case "nothing":
		return slog.LevelError + 1
	}
	return slog.LevelInfo
}

// ConfigCommands returns the rows of the CONFIG command.
func ConfigCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "config", Arity: -2,
			Group: "server", Since: "2.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for server configuration commands",
		}, Subcommands: []Command{
			configGetRow(),
			configHelpRow(),
			configResetstatRow(),
			configRewriteRow(),
			configSetRow(),
		}},
	}
}

func configGetRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "config|get", Arity: -3, Flags: "admin noscript loading stale",
		Group: "server", Since: "2.0.0", Complexity: "O(N) when N is the number of configuration parameters provided",
		Summary: "Get the values of configuration parameters",
		Syntax:  "parameter:(parameter)...",
		History: []string{"7.0.0 Added the ability to pass multiple pattern parameters in one call"},
	}, Run: configGet}
}

func configGet(c *Call) {
	type named struct {
		name string
		p    *parameter
	}
	table := Parameters()
	byName := map[string]*parameter{}
	var unseen []named // names that patterns may still match
	for i := range table {
		p := &table[i]
		for _, name := range []string{p.Name, p.Alias} {
			if name == "" {
				continue
			}
			byName[name] = p
			if !p.hidden {
				unseen = append(unseen, named{name, p})
			}
		}
	}
	var found [][2]string
	seen, tried := map[string]bool{}, map[string]bool{} // names found, and patterns
	add := func(name string, p *parameter) {
		if lower := strings.ToLower(name); !seen[lower] {
			seen[lower] = true
			found = append(found, [2]string{name, p.Get(&c.Engine.Config)})
		}
	}
	for c.More() {
		name := c.Bytes()
		if p := byName[strings.ToLower(protocol.View(name))]; p != nil {
			add(string(name), p)
			continue
		}
		if tried[string(name)] || !bytes.ContainsAny(name, `*?[\`) {
			continue
		}
		tried[string(name)] = true
		pattern := glob.Compile(name, true)
		unseen = slices.DeleteFunc(unseen, func(n named) bool {
			if !seen[n.name] && pattern.Match(protocol.BytesOf(n.name)) {
				add(n.name, n.p)
			}
			return seen[n.name]
		})
	}
	c.Reply.Map(len(found))
	for _, f := range found {
		c.Reply.BulkString(f[0])
		c.Reply.BulkString(f[1])
	}
}

func configSetRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "config|set", Arity: -4, Flags: "admin noscript loading stale",
		Group: "server", Since: "2.0.0", Tips: "request_policy:all_nodes response_policy:all_succeeded",
		Complexity: "O(N) when N is the number of configuration parameters provided",
		Summary:    "Set configuration parameters to the given values",
		Syntax:     "parameter value [parameter value ...]",
		History:    []string{"7.0.0 Added the ability to set multiple parameters in one call."},
	}, Run: configSet, Secret: true}
}

// configSet changes all of the parameters or none.
func configSet(c *Call) {
	if c.Len()%2 != 0 {
		c.Fail(protocol.ErrSyntax)
	}
	table := Parameters()
	next := c.Engine.Config
	type setting struct {
		name, value string
		own         string // the name as the client spells it
		p           *parameter
	}
	var given []setting
	refuse := func(name, why string) {
		c.Fail("ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why)
	}
	at := c.Pos() + 2 // CONFIG SET takes two words
	for pair := range slices.Chunk(c.Rest(), 2) {
		if len(pair) < 2 {
			break
		}
		at += 2
		s := setting{name: string(pair[0]), value: string(pair[1])}
		s.p = FindParameter(table, s.name)
		switch p := s.p; {
		case p == nil:
			c.Fail("ERR Unknown option or number of arguments for CONFIG SET - '" + UntilNUL(pair[0]) + "'")
			continue // a secret value must be redacted even so
		case p.secrecy:
			c.Redact(at - 1)
		}
		if s.own = s.p.Name; strings.EqualFold(s.name, s.p.Alias) {
			s.own = s.p.Alias // an alias counts as a separate name
		}
		switch p := s.p; {
		case p.Name == "dir" && c.Engine.Keeper.Loading != nil:
			c.Fail(ErrLoading)
		case p.protected:
			refuse(s.name, "can't set protected config")
		case p.Fixed:
			refuse(s.name, "can't set immutable config")
		case slices.ContainsFunc(given, func(o setting) bool { return o.own == s.own }):
			refuse(s.name, "duplicate parameter")
		}
		given = append(given, s)
	}
	if !c.OK() {
		return
	}
	for _, s := range given {
		if err := s.p.set(&next, s.value); err != nil {
			refuse(s.own, err.Error())
		}
	}
	if !c.OK() {
		return
	}
	first := func(is func(name string) bool) string {
		for _, s := range given {
			if is(s.own) {
				return s.own
			}
		}
		return ""
	}
	now := &c.Engine.Config
	if fit := maxDescriptors() - reservedDescriptors; next.Maxclients > fit && next.Maxclients != now.Maxclients {
		refuse("maxclients", fmt.Sprintf("The operating system is not able to handle the specified number of clients, try with %d", fit))
		c.OK()
		return
	}
	undo := func() {}
	if tlsChanged := first(func(name string) bool { return strings.HasPrefix(name, "tls-") }); tlsChanged != "" {
		var err error
		if undo, err = c.Engine.applyTLS(&next); err != nil {
			c.Engine.Log.Warn("CONFIG SET: cannot apply the TLS parameters", "error", err)
			refuse(tlsChanged, "Unable to update TLS configuration. Check server logs.")
			c.OK()
			return
		}
	}
	if next.Port != now.Port || next.Bind != now.Bind || next.TLSPort != now.TLSPort {
		if err := c.Engine.relisten(&next); err != nil {
			c.Engine.Log.Warn("CONFIG SET: cannot listen", "error", err)
			undo()
			name, why := first(func(name string) bool { return strings.HasSuffix(name, "port") }), "Unable to listen on this port. Check server logs."
			if next.Port == now.Port && next.TLSPort == now.TLSPort {
				name, why = "bind", "Failed to bind to specified addresses."
			}
			refuse(name, why)
			c.OK()
			return
		}
	}
	newPassword := next.requirepass != c.Engine.Config.requirepass
	c.Engine.Config = next
	if newPassword {
		c.Engine.ACL.SetPassword(next.requirepass)
	}
	c.Engine.applyConfig()
	c.Engine.applyKeep()
	c.Reply.OK()
}

func configResetstatRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "config|resetstat", Arity: 2, Flags: "admin noscript loading stale",
		Group: "server", Since: "2.0.0", Complexity: "O(1)",
		Summary: "Reset the stats returned by INFO",
	}, Run: configResetstat}
}

func configResetstat(c *Call) {
	c.Engine.resetStats()
	c.Reply.OK()
}

func configHelpRow() Command {
	return Command{Facts: protocol.Facts{
		Name: "config|help", Arity: 2, Flags: "loading stale",
		Group: "server", Since: "5.0.0", Complexity: "O(1)",
		Summary: "Show helpful text about the different subcommands",
	}, Run: configHelp}
}

func configHelp(c *Call) {
	c.Help("GET <pattern>",
		"    Return parameters matching the glob-like <pattern> and their values.",
		"SET <directive> <value>",
		"    Set the configuration <directive> to <value>.",
		"RESETSTAT",
		"    Reset statistics reported by the INFO command.",
		"REWRITE",
		"    Rewrite the configuration file.")
}
