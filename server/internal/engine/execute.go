package engine

import (
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Execution of commands. A handler runs in Call.execute and nowhere else: for a single
// command, a command of EXEC, of a fast batch or of a script, and for the retry of a
// waiter. The bookkeeping after a handler is therefore written once: the removal of
// emptied collections, the tracking of keys and the count of errors in execute; stats,
// slow log and latency in stats.record. The commit follows in the turn that the call
// is part of.

// execute runs the handler of a command that has passed all checks. names is how many
// of argv are the command's name, and the reply begins at mark.
func (c *Call) execute(cmd *Command, argv [][]byte, names int, db *keyspace.DB, mark int) {
	s := c.Session
	c.Args = protocol.NewArgs(argv[names:])
	c.Command, c.Argv, c.DB, c.mark, c.secret, c.Counted, c.Invented, c.stillBlocked = cmd, argv, db, mark, nil, false, false, false
	c.Engine.Keys.NoTouch = s.Modes.NoTouch && !cmd.Touches || c.Engine.Memory.byChange
	apart, hits, misses := s.Peer.Apart && s.Peer.countsApart(cmd) && !cmd.RunsQueue, int64(0), int64(0)
	if apart {
		c.Engine.Keys.NoTouch = true
		hits, misses = c.Engine.Hits(), c.Engine.Stats.KeyspaceMisses
	}
	if c.Engine.debugged() {
		c.runDebugged(cmd, argv[names:])
	} else {
		cmd.Run(c)
		c.RemoveEmpty()
	}
	if apart {
		c.Engine.keepAccesses(hits, misses)
	}
	if s.cache != nil && cmd.reads() && !c.stillBlocked {
		s.trackKeys(cmd, argv)
	}
	if c.Reply.IsErrorAt(mark) {
		c.countFailure(mark, &c.Command.Stats.Failed)
	}
}

// observe is execute for a live query: the command, which only reads, leaves no trace.
func (c *Call) observe(cmd *Command, argv [][]byte, names int, db *keyspace.DB) {
	srv := c.Engine
	hits, misses, notify := srv.Hits(), srv.Stats.KeyspaceMisses, srv.events.notify
	srv.events.notify &^= classMiss
	srv.Keys.NoTouch = true
	c.Args = protocol.NewArgs(argv[names:])
	c.Command, c.Argv, c.DB, c.mark, c.secret, c.Counted, c.Invented, c.stillBlocked = cmd, argv, db, 0, nil, false, false, false
	cmd.Run(c)
	c.RemoveEmpty()
	srv.events.notify = notify
	srv.keepAccesses(hits, misses)
}

// run executes a command of a client, alone or in EXEC.
func (s *Session) run(cmd *Command, argv [][]byte, names int) {
	mark, start := s.Out.Len(), s.Engine.Turn.At
	s.Call.execute(cmd, argv, names, s.DB, mark)
	s.Engine.recordCall(&s.Call, start)
	if s.Engine.meters() && s.Stall.Blocked == nil && !s.Peer.countsApart(cmd) {
		s.meter(cmd, argv, mark, s.Engine.Turn.At.Sub(start))
	}
}

// retry runs the command of a waiter again. If the command completes, the session
// continues.
func (s *Session) retry(w *Waiter) {
	if s.Peer.Closed() { // the element is for the next waiter
		s.Kill()
		return
	}
	c := &s.Call
	mark, start := s.Out.Len(), s.Engine.Turn.At
	if d := s.Permit(w.cmd, w.argv, acl.Toplevel); d != acl.Permitted { // the user has lost permissions since
		s.Engine.unblock(w)
		s.refuse(w.cmd, "NOPERM "+d.Refusal(s.Login.User.Name, w.cmd.Name))
		s.suppressReply(mark)
		return
	}
	u := &s.Engine.Turn.Scope
	outer := u.enter(s, mark)
	c.Again = true
	c.execute(w.cmd, w.argv, w.names, w.db, mark)
	c.Again = false
	u.leave(outer)
	if c.stillBlocked {
		s.Engine.Turn.At = s.Engine.Clock()
		w.Tries++
		w.spent += s.Engine.Turn.At.Sub(start)
		return
	}
	s.finish(w, mark, start)
}

// Closed reports whether the client has closed its side of the connection. Like Redis,
// the server serves no element to such a client. The check costs a system call.
func (p *Peer) Closed() bool { return p.Conn != nil && p.Conn.Ended() }

// EndWait ends a wait with the given reply: the reply for the timeout, or an error.
func (s *Session) EndWait(w *Waiter, reply func(*protocol.Reply)) {
	c := &s.Call
	mark := s.Out.Len()
	c.Command, c.Argv, c.DB, c.mark, c.secret, c.Counted, c.Invented = w.cmd, w.argv, w.db, mark, nil, false, false
	reply(&s.Out)
	if c.Reply.IsErrorAt(mark) {
		calls := &w.cmd.Stats.Failed
		if s.Engine.Config.Valkey() {
			calls = &w.cmd.Stats.Rejected
		}
		c.countFailure(mark, calls)
	}
	s.finish(w, mark, s.Engine.Turn.At)
}

// finish ends a wait whose reply starts at mark. The last attempt began at start.
func (s *Session) finish(w *Waiter, mark int, start time.Time) {
	s.Engine.unblock(w)
	s.Engine.recordWaiter(w, start)
	if s.Engine.meters() && !s.Peer.countsApart(w.cmd) {
		s.meter(w.cmd, w.argv, mark, s.Engine.Turn.At.Sub(start)+w.spent)
	}
	if s.suppressReply(mark); s.Modes.Replica && s.Out.Len() > mark {
		s.Engine.Replication.Replied(s, w.cmd, mark)
	}
}

// suppressReply suppresses the reply of the command that has just completed, as CLIENT REPLY
// demands: it truncates the output to mark. Confirmations of subscriptions stay.
func (s *Session) suppressReply(mark int) {
	switch s.Modes.Replies {
	case ReplyOn:
		return
	case ReplySkipNext:
		s.Modes.Replies = ReplySkip
		return
	case ReplySkip:
		s.Modes.Replies = ReplyOn
	}
	if s.Activity.last == nil || s.Activity.last.Spec.Flags()&(protocol.PubSub|protocol.NoScript) != protocol.PubSub|protocol.NoScript {
		s.Out.Truncate(mark)
	}
}
