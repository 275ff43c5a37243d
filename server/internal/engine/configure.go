package engine

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

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

// parameterUser is the name under which the parameters hold the users, which loadUsers reads.
const parameterUser = "user"

// named returns the parameters by their names, in whatever spelling or under whatever alias
// they are given. It is an error to give one twice.
func named(given map[string]string) (values map[string]string, err error) {
	table := config.Parameters()
	values = map[string]string{}
	spelled := map[string]string{}
	for _, as := range slices.Sorted(maps.Keys(given)) {
		name := parameterUser
		if !strings.EqualFold(as, parameterUser) {
			p := config.Find(table, as)
			if p == nil {
				return nil, fmt.Errorf("zsetd: unknown parameter %q", as)
			}
			name = p.Name
		}
		if other, twice := spelled[name]; twice {
			return nil, fmt.Errorf("zsetd: %q and %q are the same parameter", other, as)
		}
		spelled[name], values[name] = as, given[as]
	}
	return values, nil
}

// configure applies parameters, which named returned, before the server starts.
func (srv *Engine) configure(values map[string]string) error {
	for _, p := range config.Parameters() {
		value, given := values[p.Name]
		if !given {
			continue
		}
		if err := p.Set(&srv.Config, value); err != nil {
			return fmt.Errorf("zsetd: parameter %s: %w", p.Name, err)
		}
	}
	if err := checkForwardTo(srv.Config.ForwardTo); err != nil {
		return fmt.Errorf("zsetd: parameter forward-to: %w", err)
	}
	if err := srv.Table.Rename(srv.Config.Renames); err != nil {
		return fmt.Errorf("zsetd: rename-command: %w", err)
	}
	if _, given := values["save"]; !given && srv.Config.Dbfilename != "" {
		srv.Config.Save = []config.SaveRule{{Seconds: 1, Changes: 1}}
	}
	return nil
}

// applyConfig passes the values of the parameters to the parts that use them.
func (srv *Engine) applyConfig() {
	c := &srv.Config
	srv.ACL.AllChannels = c.ACLPubSub == "allchannels"
	srv.events.notify = classesOf(c.Notify)
	if srv.events.notify&classChannels == 0 {
		srv.events.notify = 0 // nowhere to publish to
	}
	srv.selectMemberEvents()
	srv.limitMemory()
	srv.limitMetering()
	srv.limits.Store(&inputLimits{
		reader:       protocol.Limits{MaxBulk: ClampInt(c.ProtoMaxBulk), Valkey: c.Valkey()},
		queryBuffer:  ClampInt(c.QueryBufferLimit),
		lagging:      c.LeastSoftLimit(),
		weighClients: c.MaxmemoryClients != 0,
		maxclients:   ClampInt(c.Maxclients),
		maxmemory:    c.Maxmemory,
		keepalive:    ClampInt(c.TCPKeepalive),
		protected:    c.ProtectedMode,
	})
	srv.limitClients()
	l := &srv.Keys.Limits
	l.HashMaxListpackEntries = ClampInt(c.HashMaxListpackEntries)
	l.HashMaxListpackValue = ClampInt(c.HashMaxListpackValue)
	l.SetMaxIntsetEntries = ClampInt(c.SetMaxIntsetEntries)
	l.SetMaxListpackEntries = ClampInt(c.SetMaxListpackEntries)
	l.SetMaxListpackValue = ClampInt(c.SetMaxListpackValue)
	l.ZsetMaxListpackEntries = ClampInt(c.ZsetMaxListpackEntries)
	l.ZsetMaxListpackValue = ClampInt(c.ZsetMaxListpackValue)
	l.ListMaxListpackSize = ClampInt(c.ListMaxListpackSize)
	l.Stream.MaxBytes = ClampInt(c.StreamNodeMaxBytes)
	l.Stream.MaxEntries = ClampInt(c.StreamNodeMaxEntries)
	l.Stream.Idempotence.Seconds, l.Stream.Idempotence.Most = c.StreamIDMPDuration, c.StreamIDMPMaxsize
	srv.level.Set(logLevel(c.Loglevel))
	srv.Timers.nextIdle = 0
	if c.Timeout != 0 {
		srv.Timers.nextIdle = 1 // at once
	}
	srv.Freeing.next = 0
	if c.Activedefrag {
		srv.Freeing.next = 1
	}
	srv.applyForwarding()
	srv.applyBackups()
}

// Reconfigure replaces the values of the parameters by next and applies them, as CONFIG
// SET does; given are the names of the parameters that CONFIG SET has. If next cannot be
// applied, nothing changes, and Reconfigure returns the name of a parameter and the
// reason in Redis's words.
func (srv *Engine) Reconfigure(next *config.Settings, given []string) (name, why string) {
	now := &srv.Config
	if fit := process.MaxDescriptors() - reservedDescriptors; next.Maxclients > fit && next.Maxclients != now.Maxclients {
		return "maxclients", fmt.Sprintf("The operating system is not able to handle the specified number of clients, try with %d", fit)
	}
	if err := checkForwardTo(next.ForwardTo); err != nil {
		return "forward-to", err.Error()
	}
	if kinds, _ := metrics.ParseSlotKinds(next.ClusterSlotStats); kinds.Memory && !srv.Stats.SlotKinds.Memory {
		return "cluster-slot-stats-enabled", errMemoryMetering
	}
	if next.KeyMemoryHistograms && !now.KeyMemoryHistograms {
		return "key-memory-histograms", errMemoryMetering
	}
	first := func(is func(name string) bool) string {
		if i := slices.IndexFunc(given, is); i >= 0 {
			return given[i]
		}
		return ""
	}
	undo := func() {}
	if tlsChanged := first(func(name string) bool { return strings.HasPrefix(name, "tls-") }); tlsChanged != "" {
		var err error
		if undo, err = srv.Transports.transport.ApplyTLS(next); err != nil {
			srv.Log.Warn("CONFIG SET: cannot apply the TLS parameters", "error", err)
			return tlsChanged, "Unable to update TLS configuration. Check server logs."
		}
	}
	if next.Port != now.Port || next.Bind != now.Bind || next.TLSPort != now.TLSPort {
		if err := srv.Transports.transport.Relisten(next); err != nil {
			srv.Log.Warn("CONFIG SET: cannot listen", "error", err)
			undo()
			if next.Port == now.Port && next.TLSPort == now.TLSPort {
				return "bind", "Failed to bind to specified addresses."
			}
			return first(func(name string) bool { return strings.HasSuffix(name, "port") }),
				"Unable to listen on this port. Check server logs."
		}
	}
	newPassword := next.Requirepass != now.Requirepass
	srv.Config = *next
	if newPassword {
		srv.ACL.SetPassword(next.Requirepass)
	}
	srv.applyConfig()
	srv.Keeper.Apply()
	return "", ""
}

// ClampInt converts to int, and limits the value to the range of int.
func ClampInt(n int64) int { return int(max(math.MinInt, min(n, math.MaxInt))) }

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
