package engine

import (
	"unsafe"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
)

// TransactionCommands returns the rows of the transaction commands.
func TransactionCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "discard", Arity: 1, Flags: "noscript loading stale fast allow_busy",
			Group: "transactions", Since: "2.0.0", Complexity: "O(N), N commands in the transaction",
			Summary: "End a transaction without its commands",
		}, Run: discard, OfConnection: true, InMulti: true, EndsQueueing: true},
		{Facts: protocol.Facts{
			Name: "exec", Arity: 1, Flags: "noscript loading stale skip_slowlog",
			Group: "transactions", Since: "1.2.0", Complexity: "That of the commands",
			Summary: "Run the commands of a transaction",
		}, Run: exec, OfConnection: true, InMulti: true, EndsQueueing: true, RunsQueue: true},
		{Facts: protocol.Facts{
			Name: "multi", Arity: 1, Flags: "noscript loading stale fast allow_busy",
			Group: "transactions", Since: "1.2.0", Complexity: "O(1)",
			Summary: "Begin a transaction: the commands that follow wait for EXEC",
		}, Run: multi, OfConnection: true, InMulti: true, NotNested: true, EndsQueueing: true},
		{Facts: protocol.Facts{
			Name: "unwatch", Arity: 1, Flags: "noscript loading stale fast allow_busy",
			Group: "transactions", Since: "2.2.0", Complexity: "O(K), K keys watched",
			Summary: "Stop watching keys",
		}, Run: unwatch, OfConnection: true},
		{Facts: protocol.Facts{
			Name: "watch", Arity: -2, Flags: "noscript loading stale fast allow_busy", Keys: "1..-1 RO",
			Group: "transactions", Since: "2.2.0", Complexity: "O(K), K keys given",
			Summary: "Let the next EXEC fail if one of the keys changes before",
			Syntax:  "key [key ...]",
		}, Run: watch, OfConnection: true, InMulti: true, NotNested: true, Watches: true},
	}
}

// transaction is the state of MULTI and WATCH in a session.
type transaction struct {
	Multi   bool
	aborted bool // a command was refused while queueing: EXEC must fail
	queue   []queued
	queued  int64 // bytes
	queueDB int   // the database that the queued commands have selected
	execing int   // commands in the transaction that EXEC is running; 0 outside EXEC
	watches []WaitKey
	touched bool // a watched key changed
}

// enqueue queues a command for EXEC.
func (s *Session) enqueue(cmd *Command, argv [][]byte, names int) {
	s.meterQueued(argv)
	argv = protocol.CopyArgs(argv)
	s.Transaction.queued += argsSize(argv) + int64(len(argv))*int64(unsafe.Sizeof(argv[0])) + int64(unsafe.Sizeof(queued{}))
	s.Transaction.queue = append(s.Transaction.queue, queued{cmd, argv, names})
	if cmd.Databases == protocol.FirstDatabase {
		for _, ref := range cmd.Databases.Append(nil, argv, s.Selected().Count) {
			s.Transaction.queueDB = ref.ID
		}
	}
	limit := s.Engine.Config.QueryBufferLimit
	if s.Modes.Primary {
		limit = s.Engine.StreamQueueLimit()
	}
	if s.Transaction.queued > limit {
		s.Engine.Stats.QueryLimitDisconnections.Add(1)
		s.Engine.Log.Warn("closing client: the transaction queue exceeds client-query-buffer-limit",
			"client", s.Peer.Addr, "name", s.Login.Name, "commands", len(s.Transaction.queue), "bytes", s.Transaction.queued, "client-query-buffer-limit", limit)
		s.Kill()
	}
}

// discard ends a transaction and removes its watches.
func (s *Session) discard() {
	s.Transaction.Multi, s.Transaction.aborted = false, false
	s.Transaction.queue, s.Transaction.queued = nil, 0
	s.unwatch()
}

// unwatch removes all watches.
func (s *Session) unwatch() {
	for _, k := range s.Transaction.watches {
		s.Weight.nameBytes -= int64(len(k.Key)) + perName
		subs := s.Engine.Waits.Watched[k]
		delete(subs, s)
		if len(subs) == 0 {
			delete(s.Engine.Waits.Watched, k)
		}
	}
	s.Transaction.watches, s.Transaction.touched = s.Transaction.watches[:0], false
	s.unwatchUpstream()
}

func multi(c *Call) {
	if c.Session.Transaction.Multi {
		c.Reply.Error("ERR MULTI calls can not be nested")
		return
	}
	c.Session.Transaction.Multi, c.Session.Transaction.queueDB = true, c.DB.ID()
	c.Reply.OK()
}

func discard(c *Call) {
	if !c.Session.Transaction.Multi {
		c.Reply.Error("ERR DISCARD without MULTI")
		return
	}
	c.Session.discard()
	c.Reply.OK()
}

func watch(c *Call) {
	s := c.Session
	if s.Transaction.Multi {
		c.Reply.Error("ERR WATCH inside MULTI is not allowed")
		return
	}
	for c.More() {
		k := WaitKey{c.DB.ID(), c.String()}
		// An expired key is removed first, with the consequences. It is then watched as absent.
		c.DB.Peek(protocol.BytesOf(k.Key))
		c.Engine.Turn.Scope.Commit()
		if _, there := c.Engine.Waits.Watched[k][s]; there {
			continue
		}
		if c.Engine.Waits.Watched[k] == nil {
			c.Engine.Waits.Watched[k] = map[*Session]struct{}{}
		}
		c.Engine.Waits.Watched[k][s] = struct{}{}
		s.Transaction.watches = append(s.Transaction.watches, k)
		s.Weight.nameBytes += int64(len(k.Key)) + perName
	}
	c.Reply.OK()
}

func unwatch(c *Call) {
	c.Session.unwatch()
	c.Reply.OK()
}

// exec runs the queued commands in one commit scope, unless a command was refused
// while queueing or a watched key has changed.
func exec(c *Call) {
	s := c.Session
	if !s.Transaction.Multi {
		c.Reply.Error("ERR EXEC without MULTI")
		return
	}
	// A watched key may have expired without having been removed yet.
	for _, k := range s.Transaction.watches {
		c.Engine.Keys.DB(k.Db).Peek(protocol.BytesOf(k.Key))
	}
	c.Engine.Turn.Scope.Commit()
	queue, aborted, touched := s.Transaction.queue, s.Transaction.aborted, s.Transaction.touched
	s.discard()
	switch {
	case aborted:
		c.Reply.Error("EXECABORT Transaction discarded because of previous errors.")
		return
	case touched:
		c.Reply.NullArray()
		return
	}
	s.noteChanges()
	c.Reply.Array(len(queue))
	cmd, argv := c.Command, c.Argv
	c.Nested, s.Transaction.execing = true, len(queue)
	outer := c.Engine.Turn.Scope.Shown.Hold(c.Engine.Turn.At)
	for _, q := range queue {
		mark, ended := s.Out.Len(), s.End != Serving
		if d := s.Permit(q.cmd, q.argv, acl.InMulti); d == acl.Permitted {
			s.run(q.cmd, q.argv, q.names)
			c.Engine.Turn.Scope.apply()
		} else {
			msg := d.InTransaction()
			c.Reply.Error(msg)
			c.Session.countError(q.cmd, msg)
		}
		if ended { // it has killed itself, or deleted its user: the rest runs without replies
			s.Out.Truncate(mark)
		}
	}
	c.Nested, s.Transaction.execing, c.Engine.Turn.Scope.Shown = false, 0, outer
	c.Command, c.Argv = cmd, argv // the queue has replaced them
}
