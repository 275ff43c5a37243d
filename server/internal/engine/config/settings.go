package config

import (
	"math"
	"time"
)

// Settings holds the values of the parameters.
type Settings struct {
	Bind                string
	Port                int64
	TLSPort             int64
	TLS                 TLS
	HTTP                HTTP
	Unixsocket          string
	Unixsocketperm      string
	Transport           string
	Timeout             int64 // seconds
	TCPKeepalive        int64 // seconds
	Databases           int64
	Maxclients          int64
	Maxmemory           int64 // bytes
	MaxmemoryPolicy     string
	MaxmemorySamples    int64
	EvictionTenacity    int64
	LFULogFactor        int64
	LFUDecayTime        int64 // minutes
	Activedefrag        bool
	DefragIgnore        int64 // bytes
	DefragLower         int64 // percent of the memory in use
	DefragUpper         int64 // likewise
	DefragCycleMin      int64 // percent of a core
	DefragCycleMax      int64 // likewise
	Requirepass         string
	ACLFile             string
	ACLPubSub           string
	ACLLogMaxLen        int64
	EnableDebugCommand  string
	EnableModuleCommand string
	Logfile             string
	Loglevel            string
	LogFormat           string
	Dialect             string
	Save                []SaveRule
	Dir                 string
	Dbfilename          string
	StopWrites          bool
	BackupEvery         int64 // seconds; 0: no backups
	BackupKeep          int64
	BackupDir           string
	BackupHook          string
	Appendonly          bool
	Appendfsync         string
	RewritePercentage   int64
	RewriteMinSize      int64
	Notify              string // letters of event classes
	ProtoMaxBulk        int64  // bytes
	QueryBufferLimit    int64  // bytes
	OutputLimits        [3]OutputLimit
	MaxmemoryClients    int64 // bytes, or if negative percent of maxmemory

	TrackingTableMaxKeys    int64
	QueryMax                int64 // subscriptions to live queries
	QueryCPU                int64 // percent of the time
	BusyReplyThreshold      int64 // milliseconds
	SlowlogSlowerThan       int64 // microseconds
	SlowlogMaxLen           int64
	LogRequestsFrom         int64 // bytes
	LogRepliesFrom          int64 // bytes
	LargeRequestsMaxLen     int64
	LargeRepliesMaxLen      int64
	LatencyMonitorThreshold int64 // milliseconds
	LatencyTracking         bool
	LatencyPercentiles      []float64

	HashMaxListpackEntries int64
	HashMaxListpackValue   int64
	SetMaxIntsetEntries    int64
	SetMaxListpackEntries  int64
	SetMaxListpackValue    int64
	ZsetMaxListpackEntries int64
	ZsetMaxListpackValue   int64
	ListMaxListpackSize    int64
	HLLSparseMaxBytes      int64
	StreamNodeMaxBytes     int64
	StreamNodeMaxEntries   int64
	StreamIDMPDuration     int64
	StreamIDMPMaxsize      int64

	ClusterEnabled         bool
	ClusterSlotStats       string
	KeyMemoryHistograms    bool
	ClusterPort            int64
	ClusterAnnounceIP      string
	ClusterHostname        string
	ClusterAnnouncePort    int64
	ClusterAnnounceTLSPort int64
	ClusterAnnounceBusPort int64
	ClusterEndpoint        string
	ClusterDatabases       int64
	ClusterFullCoverage    bool
	ClusterReadsWhenDown   bool
	ClusterShardsWhenDown  bool

	ReplBacklogSize      int64
	ReplBacklogTTL       int64 // seconds; 0 keeps the backlog
	ReplDisklessSync     bool
	Compression          bool  // of payloads of DUMP and of transfers
	ReplDisklessDelay    int64 // seconds
	ReplDisklessReplicas int64
	SaveKeyDelay         int64 // see KeyDelay
	LoadKeyDelay         int64 // see KeyDelay
	RDBVersionCheck      string
	ReplPingPeriod       int64 // seconds
	ReplTimeout          int64 // seconds
	ReplFieldDeadlines   string
	ShutdownTimeout      int64 // seconds that a server that stops waits for its replicas

	ForwardTo              string // the address of the server that has the data; empty for this one
	ReplicaOf              string // host and port of the primary; empty for a primary
	PrimaryUser            string
	PrimaryPassword        string
	ReplicaReadOnly        bool
	ReplicaServeStale      bool
	ReplicaIgnoreMaxmemory bool
	ReplicaPriority        int64
	ReplicaAnnounced       bool
	ReplicaAnnounceIP      string
	ReplicaAnnouncePort    int64
	ReplDisklessLoad       string
	ReplSkipDamaged        bool
	LazyExpireNested       bool
	TLSReplication         bool

	MinReplicas       int64
	MinReplicasMaxLag int64 // seconds
	ShutdownOnSigint  string
	ShutdownOnSigterm string
	ClockSteps        string
	ProtectedMode     bool
	Renames           string
	Pidfile           string
	Daemonize         bool
	Supervised        string

	kept map[string]string // values of the parameters without effect; see kept.go
}

// OutputLimit bounds the output queue of a client: it is closed at once above Hard,
// or after it has been above Soft for some seconds. 0 is no limit.
type OutputLimit struct{ Hard, Soft, Seconds int64 }

// The classes of clients, in the order of Settings.OutputLimits.
const (
	NormalClient = iota
	ReplicaClient
	PubSubClient
)

// SaveRule requests a checkpoint some seconds after the last one if there were that
// many changes.
type SaveRule struct{ Seconds, Changes int64 }

// The choices of cluster-preferred-endpoint-type.
const (
	EndpointIP       = "ip"
	EndpointHostname = "hostname"
	EndpointUnknown  = "unknown-endpoint"
)

// The choices of dialect.
const (
	DialectRedis  = "redis"
	DialectValkey = "valkey"
)

// Valkey reports whether replies are those of Valkey where Redis has others.
func (c *Settings) Valkey() bool { return c.Dialect == DialectValkey }

// Words returns a text in the dialect of the replies, from that of Redis and that of Valkey.
func (c *Settings) Words(redis, valkey string) string {
	if c.Valkey() {
		return valkey
	}
	return redis
}

// EvictionTime is the longest time that one step evicts; the server serves clients
// between steps.
func (c *Settings) EvictionTime() time.Duration {
	t := c.EvictionTenacity
	switch {
	case t <= 10:
		return time.Duration(50*t) * time.Microsecond
	case t < 100:
		return time.Duration(500 * math.Pow(1.15, float64(t-10)) * float64(time.Microsecond))
	}
	return math.MaxInt64
}

// LeastSoftLimit returns the smallest soft limit of the output queues, math.MaxInt64 without one.
func (c *Settings) LeastSoftLimit() int64 {
	least := int64(math.MaxInt64)
	for _, l := range c.OutputLimits {
		if l.Soft != 0 {
			least = min(least, l.Soft)
		}
	}
	return least
}

// OneDatabase reports whether commands can use database 0 only: the server is a cluster, and
// cluster-databases is 1.
func (c *Settings) OneDatabase() bool { return c.ClusterEnabled && c.ClusterDatabases == 1 }

// DebugEnabled returns the parameter enable-debug-command.
func (c *Settings) DebugEnabled() string { return c.EnableDebugCommand }

// ModuleEnabled returns the parameter enable-module-command.
func (c *Settings) ModuleEnabled() string { return c.EnableModuleCommand }
