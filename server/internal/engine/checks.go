package engine

import (
	"net"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
)

// check is a condition for running a command. A single command passes all checks, in
// their order, which is Redis's (dispatch). A fast batch passes them together: while
// none applies to the session, no command of the batch needs to be asked
// (Session.plain). Both evaluate the same flags and the same state, so a check cannot
// be forgotten in a batch.
type check struct {
	name string

	// flags are those of the commands that the check concerns, each with at least one
	// of them; 0: all commands.
	flags protocol.Flags

	// server reports whether the check applies to any session now; nil: always. Neither
	// the clock nor a command of a fast batch changes its result.
	server func(*Engine) bool

	// state reports whether the check, if it applies to any session, applies to this one
	// now; nil: always. No command of a fast batch changes its result.
	//
	// A command with the flags of a check that always applies, without either function, is
	// in no fast batch.
	state func(*Session) bool

	// refusal returns the error for a command that must not run, or "". It may be nil.
	refusal func(s *Session, cmd *Command, argv [][]byte) string

	// instead does something in place of running the command, and reports that; for
	// instance it queues the command. It may be nil.
	//
	// A check with neither function lets every command run. It keeps commands out of
	// fast batches because they must be observed one by one.
	instead func(s *Session, cmd *Command, argv [][]byte, names int) bool
}

// concerns reports whether a command with these flags has to be checked.
func (k *check) concerns(flags protocol.Flags) bool { return k.flags == 0 || flags.Has(k.flags) }

// applies reports whether the check, which applies to any session, applies to this one now.
func (k *check) applies(s *Session) bool { return k.state == nil || k.state(s) }

// unconditional reports whether the check always applies.
func (k *check) unconditional() bool { return k.server == nil && k.state == nil }

// stops reports whether the command does not run now. It has been refused then,
// postponed or queued.
func (k *check) stops(s *Session, cmd *Command, argv [][]byte, names int) bool {
	if k.refusal != nil {
		if msg := k.refusal(s, cmd, argv); msg != "" {
			s.refuse(cmd, msg)
			return true
		}
	}
	return k.instead != nil && k.instead(s, cmd, argv, names)
}

// checks are the checks of a server, and which of them apply to any session.
type checks struct {
	all      []check // in the order in which dispatch asks them
	applying []*check
	known    bool // applying is that of the present state
}

// addCheck appends a check to those of the server.
func (srv *Engine) addCheck(k check) {
	srv.checks.all = append(srv.checks.all, k)
	srv.checks.known = false
	if k.unconditional() {
		srv.Table.Each(func(c *Command) { c.quick = c.quick && !k.concerns(c.Spec.Flags()) })
	}
}

// plain reports whether no check applies to s, apart from those that concern no command of
// a fast batch.
func (s *Session) plain() bool {
	for _, k := range s.Engine.checks.apply(s.Engine) {
		if !k.unconditional() && k.applies(s) {
			return false
		}
	}
	return true
}

// apply returns the checks that apply to any session, in their order. The list is made once
// for a lock hold, and again after a command that may change the state of the server: see
// mayChangeChecks.
func (c *checks) apply(srv *Engine) []*check {
	if !c.known {
		c.find(srv)
	}
	return c.applying
}

func (c *checks) find(srv *Engine) {
	c.applying = c.applying[:0]
	for i := range c.all {
		if k := &c.all[i]; k.server == nil || k.server(srv) {
			c.applying = append(c.applying, k)
		}
	}
	c.known = true
}

// mayChangeChecks reports whether a command may change which checks apply to any session.
// A command on data does not, nor does a script, which runs such commands.
func (c *Command) mayChangeChecks() bool {
	return c.ScriptFlags == nil && c.Spec.Flags().Has(protocol.NoScript|protocol.Admin)
}

const errNoAuth = "NOAUTH Authentication required."

// commandChecks returns the checks of every server.
func commandChecks() []check {
	return []check{
		{name: "protected", flags: protocol.Protected, refusal: func(s *Session, cmd *Command, _ [][]byte) string {
			if s.mayUseProtected(cmd) {
				return ""
			}
			return errProtected(cmd)
		}},
		{name: "authentication", state: (*Session).mustLogIn, refusal: func(_ *Session, cmd *Command, _ [][]byte) string {
			if cmd.Spec.Flags().Has(protocol.NoAuth) {
				return ""
			}
			return errNoAuth
		}},
		{name: "not in MULTI", flags: protocol.NoMulti, state: (*Session).queues, refusal: func(s *Session, cmd *Command, _ [][]byte) string {
			return s.Engine.Config.Words("ERR Command not allowed inside a transaction", errNested(cmd))
		}},
		{name: "not in MULTI of Valkey", server: func(srv *Engine) bool { return srv.Config.Valkey() }, state: (*Session).queues, refusal: func(_ *Session, cmd *Command, _ [][]byte) string {
			if cmd.NotNested {
				return errNested(cmd)
			}
			return ""
		}},
		{name: "ACL", state: (*Session).isRestricted, refusal: func(s *Session, cmd *Command, argv [][]byte) string {
			if d := s.Permit(cmd, argv, s.DenialContext()); d != acl.Permitted {
				return "NOPERM " + d.Refusal(s.Login.User.Name, cmd.Name)
			}
			return ""
		}},
		{name: "cluster slots", server: func(srv *Engine) bool { return srv.Cluster != nil }, instead: (*Session).misroutes},
		{name: "redirection", server: func(srv *Engine) bool { return srv.Replica.Following.Load() && srv.Cluster == nil },
			state: func(s *Session) bool { return s.Login.Redirectable && !s.Modes.Primary }, instead: (*Session).redirects},
		{name: "forwarding", server: func(srv *Engine) bool { return srv.Forwarding.forwarder != nil }, state: notPrimary, instead: (*Session).forwards},
		{name: "maxmemory", server: func(srv *Engine) bool { return srv.Config.Maxmemory != 0 }, state: (*Session).lacksMemory, refusal: func(s *Session, cmd *Command, argv [][]byte) string {
			if s.needsMemory(cmd, argv) {
				return errOOM
			}
			return ""
		}},
		{name: "subscriptions", state: (*Session).onlySubscribes, refusal: func(_ *Session, cmd *Command, _ [][]byte) string {
			if cmd.WhileSubscribed {
				return ""
			}
			return "ERR Can't execute '" + cmd.Name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
		}},
		{name: "replica or MONITOR client", state: func(s *Session) bool { return s.Modes.monitoring || s.Modes.Replica }, refusal: func(s *Session, cmd *Command, argv [][]byte) string {
			if s.effectsOf(cmd, argv).Has(protocol.Write | protocol.ReadOnly | protocol.MayReplicate) {
				return "ERR Replica can't interact with the keyspace"
			}
			return ""
		}},
		{name: "failed save", server: func(srv *Engine) bool { return srv.Keeper.Refuses() }, state: notPrimary, refusal: func(s *Session, cmd *Command, argv [][]byte) string {
			if cmd.RefusedUnsaved || s.effectsOf(cmd, argv).Has(protocol.Write) {
				return ErrNotSaved
			}
			return ""
		}},
		{name: "min-replicas-to-write", server: (*Engine).LacksReplicas, refusal: func(s *Session, cmd *Command, argv [][]byte) string {
			if s.effectsOf(cmd, argv).Has(protocol.Write) {
				return ErrNoReplicas
			}
			return ""
		}},
		{name: "read-only replica", server: (*Engine).ReadOnly, state: notPrimary, refusal: func(s *Session, cmd *Command, argv [][]byte) string {
			if s.effectsOf(cmd, argv).Has(protocol.Write) {
				return ErrReadOnly
			}
			return ""
		}},
		{name: "stale replica", server: (*Engine).Stale, state: notPrimary, refusal: func(s *Session, cmd *Command, argv [][]byte) string {
			if s.mayWhileStale(cmd, argv) {
				return ""
			}
			return s.Engine.staleError()
		}},
		{name: "loading", server: func(srv *Engine) bool { return srv.Keeper.Loading != nil }, refusal: func(s *Session, cmd *Command, _ [][]byte) string {
			if s.Transaction.mayWhileLoading(cmd) {
				return ""
			}
			return ErrLoading
		}},
		{name: "asynchronous loading", flags: protocol.NoAsyncLoading, server: func(srv *Engine) bool { return srv.Replica.Replacing }, refusal: func(*Session, *Command, [][]byte) string {
			return ErrLoading
		}},
		{name: "busy script", server: func(srv *Engine) bool { return srv.Scripting.Busy }, refusal: func(s *Session, cmd *Command, _ [][]byte) string {
			if cmd.Spec.Flags().Has(protocol.AllowBusy) {
				return ""
			}
			return s.Engine.Scripting.Running.busyError()
		}},
		{name: "CLIENT PAUSE", server: func(srv *Engine) bool { return srv.Pauses.Until != 0 && srv.Forwarding.forwarder == nil }, state: notPrimary, instead: (*Session).postpones},
		{name: "expiry backlog", state: func(s *Session) bool {
			return s.Engine.Timers.NextExpiry <= s.Engine.Keys.Now() && !s.Engine.Replica.Following.Load()
		}, instead: (*Session).delays},
		{name: "MULTI", state: (*Session).queues, instead: (*Session).enqueues},
		{name: "observers", state: (*Session).isObserved},
	}
}

// mustLogIn reports whether the client has to authenticate first.
func (s *Session) mustLogIn() bool { return !s.Login.Authenticated && s.Engine.ACL.LoginRequired() }

// notPrimary reports whether the session is not that of the primary, whose commands
// always run.
func notPrimary(s *Session) bool { return !s.Modes.Primary }

// errNested is the error of Valkey for a command that MULTI does not queue.
func errNested(cmd *Command) string {
	return "ERR Command '" + cmd.Name + "' not allowed inside a transaction"
}

// queues reports whether the session queues commands for EXEC.
func (s *Session) queues() bool { return s.Transaction.Multi }

// isRestricted reports whether the user's rules have to be asked for each command.
func (s *Session) isRestricted() bool { return !s.Login.User.Unrestricted }

// lacksMemory evicts keys down to maxmemory, and reports whether it is impossible. A fast
// batch adds little memory, so one evaluation serves all of it.
func (s *Session) lacksMemory() bool { return s.Engine.lacksMemory() }

// onlySubscribes reports whether the connection is limited to the commands about
// subscriptions, because messages and replies look alike in its protocol.
func (s *Session) onlySubscribes() bool { return s.Out.Version() == 2 && s.subscriptions.Len() > 0 }

// isObserved reports whether anything depends on each single command of the session:
// CLIENT REPLY, client-side caching, MONITOR, metering, the latency monitor, or a log of commands
// with a threshold too low for the averages of a fast batch, or for its small commands.
func (s *Session) isObserved() bool {
	cfg := &s.Engine.Config
	return s.Modes.Replies != ReplyOn || s.cache != nil || len(s.Engine.Clients.Monitors) > 0 || cfg.LatencyMonitorThreshold != 0 ||
		s.Engine.meters() ||
		uint64(cfg.SlowlogSlowerThan) < fastBatchSlow || // -1 disables a log
		min(uint64(cfg.LogRequestsFrom), uint64(cfg.LogRepliesFrom)) < fastBatchBytes
}

// postpones postpones a command that CLIENT PAUSE holds back.
func (s *Session) postpones(cmd *Command, argv [][]byte, _ int) bool {
	srv := s.Engine
	if !srv.Pauses.pauseAll && !s.effectsOf(cmd, argv).Has(protocol.Write|protocol.MayReplicate) {
		return false
	}
	srv.Pauses.postpone(s, argv)
	return true
}

// delays postpones a command until its keys are clean.
func (s *Session) delays(cmd *Command, argv [][]byte, _ int) bool {
	if !s.Engine.overdue(s, cmd, argv) {
		return false
	}
	s.Engine.Pauses.delay(s, argv)
	return true
}

// enqueues queues a command for EXEC.
func (s *Session) enqueues(cmd *Command, argv [][]byte, names int) bool {
	if cmd.InMulti {
		return false
	}
	s.enqueue(cmd, argv, names)
	s.Out.Status("QUEUED")
	return true
}

// misroutes replies the error for a command whose keys are on another node, from the
// view of a cluster client. A transaction that is being queued will fail; EXEC ends
// it.
func (s *Session) misroutes(cmd *Command, argv [][]byte, _ int) bool {
	_, msg := s.Misplaced(cmd, argv)
	return s.refersElsewhere(cmd, msg)
}

// refersElsewhere replies an error that names another server, unless it is empty.
func (s *Session) refersElsewhere(cmd *Command, msg string) bool {
	if msg == "" {
		return false
	}
	cmd.Stats.Rejected++
	if cmd.RunsQueue {
		s.discard()
	} else if s.Transaction.Multi {
		s.Transaction.aborted = true
	}
	s.replyError(msg)
	s.Engine.countError(msg, false)
	return true
}

// mayWhileLoading reports whether a command is allowed before the data are loaded.
func (t *transaction) mayWhileLoading(cmd *Command) bool {
	if cmd.RunsQueue {
		for _, q := range t.queue {
			if q.cmd.Spec.Flags()&protocol.Loading == 0 {
				return false
			}
		}
	}
	return cmd.Spec.Flags()&protocol.Loading != 0
}

// ErrNoReplicas is the error of writes while min-replicas-to-write is not met.
const ErrNoReplicas = "NOREPLICAS Not enough good replicas to write."

// LacksReplicas reports whether fewer replicas follow than writes require.
func (srv *Engine) LacksReplicas() bool {
	c := &srv.Config
	return c.MinReplicas > 0 && !srv.Replica.Following.Load() && c.MinReplicasMaxLag > 0 && int64(srv.Replication.GoodReplicas()) < c.MinReplicas
}

// errProtected is the error of a command that a parameter has to enable: DEBUG, or
// some subcommands of MODULE.
func errProtected(cmd *Command) string {
	name, _, _ := strings.Cut(cmd.Name, "|")
	return "ERR " + strings.ToUpper(name) + " command not allowed. If the enable-" + name + `-command option is set to "local", ` +
		"you can run it from a local connection, otherwise you need to set this option in the configuration file, " +
		"and then restart the server."
}

// mayUseProtected reports whether the parameter that enables cmd permits it for this
// client.
func (s *Session) mayUseProtected(cmd *Command) bool {
	switch cmd.EnabledBy(&s.Engine.Config) {
	case "yes":
		return true
	case "local":
		host, _, err := net.SplitHostPort(s.Peer.Addr)
		return s.Peer.Unix || err != nil || net.ParseIP(host).IsLoopback() // no address: in this process
	}
	return false
}
