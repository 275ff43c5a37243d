package server

import (
	"unsafe"

	"github.com/zsetd/zsetd/protocol"
)

func transactionCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "discard", Arity: 1, Flags: "noscript loading stale fast allow_busy",
			Group: "transactions", Since: "2.0.0", Complexity: "O(N), when N is the number of queued commands",
			Summary: "Discard all commands issued after MULTI",
		}, run: discard, ofConnection: true},
		{Facts: protocol.Facts{
			Name: "exec", Arity: 1, Flags: "noscript loading stale skip_slowlog",
			Group: "transactions", Since: "1.2.0", Complexity: "Depends on commands in the transaction",
			Summary: "Execute all commands issued after MULTI",
		}, run: exec, ofConnection: true},
		{Facts: protocol.Facts{
			Name: "multi", Arity: 1, Flags: "noscript loading stale fast allow_busy",
			Group: "transactions", Since: "1.2.0", Complexity: "O(1)",
			Summary: "Mark the start of a transaction block",
		}, run: multi, ofConnection: true},
		{Facts: protocol.Facts{
			Name: "unwatch", Arity: 1, Flags: "noscript loading stale fast allow_busy",
			Group: "transactions", Since: "2.2.0", Complexity: "O(1)",
			Summary: "Forget about all watched keys",
		}, run: unwatch, ofConnection: true},
		{Facts: protocol.Facts{
			Name: "watch", Arity: -2, Flags: "noscript loading stale fast allow_busy", Keys: "1..-1 RO",
			Group: "transactions", Since: "2.2.0", Complexity: "O(1) for every key.",
			Summary: "Watch the given keys to determine execution of the MULTI/EXEC block",
			Syntax:  "key [key ...]",
		}, run: watch, ofConnection: true},
	}
}

// enqueue queues a command for EXEC.
func (s *Session) enqueue(cmd *Command, argv [][]byte, names int) {
	argv = copyArgs(argv)
	s.queued += argsSize(argv) + int64(len(argv))*int64(unsafe.Sizeof(argv[0])) + int64(unsafe.Sizeof(queued{}))
	s.queue = append(s.queue, queued{cmd, argv, names})
	if limit := s.srv.config.queryBufferLimit; s.queued > limit {
		s.srv.queryLimitDisconnections.Add(1)
		s.srv.log.Warn("closing client: the transaction queue exceeds client-query-buffer-limit",
			"client", s.addr, "name", s.name, "commands", len(s.queue), "bytes", s.queued, "client-query-buffer-limit", limit)
		s.kill()
	}
}

// discard ends a transaction and removes its watches.
func (s *Session) discard() {
	s.multi, s.aborted = false, false
	s.queue, s.queued = nil, 0
	s.unwatch()
}

// unwatch removes all watches.
func (s *Session) unwatch() {
	for _, k := range s.watches {
		s.nameBytes -= int64(len(k.key)) + perName
		subs := s.srv.watched[k]
		delete(subs, s)
		if len(subs) == 0 {
			delete(s.srv.watched, k)
		}
	}
	s.watches, s.touched = s.watches[:0], false
}

func multi(c *Call) {
	if c.sess.multi {
		c.Reply.Error("ERR MULTI calls can not be nested")
		return
	}
	c.sess.multi = true
	c.Reply.OK()
}

func discard(c *Call) {
	if !c.sess.multi {
		c.Reply.Error("ERR DISCARD without MULTI")
		return
	}
	c.sess.discard()
	c.Reply.OK()
}

func watch(c *Call) {
	s := c.sess
	if s.multi {
		c.Reply.Error("ERR WATCH inside MULTI is not allowed")
		return
	}
	for c.More() {
		k := waitKey{c.db.ID(), c.String()}
		c.db.Peek(bytesOf(k.key)) // removes an expired key now; it is then watched as absent
		if _, there := c.srv.watched[k][s]; there {
			continue
		}
		if c.srv.watched[k] == nil {
			c.srv.watched[k] = map[*Session]struct{}{}
		}
		c.srv.watched[k][s] = struct{}{}
		s.watches = append(s.watches, k)
		s.nameBytes += int64(len(k.key)) + perName
	}
	c.Reply.OK()
}

func unwatch(c *Call) {
	c.sess.unwatch()
	c.Reply.OK()
}

// exec runs the queued commands in one commit scope, unless a command was refused
// while queueing or a watched key has changed.
func exec(c *Call) {
	s := c.sess
	if !s.multi {
		c.Reply.Error("ERR EXEC without MULTI")
		return
	}
	// A watched key may have expired without having been removed yet.
	for _, k := range s.watches {
		c.srv.keys.DB(k.db).Peek(bytesOf(k.key))
	}
	c.srv.scope.commit()
	queue, aborted, touched := s.queue, s.aborted, s.touched
	s.discard()
	switch {
	case aborted:
		c.Reply.Error("EXECABORT Transaction discarded because of previous errors.")
		return
	case touched:
		c.Reply.NullArray()
		return
	}
	c.Reply.Array(len(queue))
	c.nested, s.execing = true, len(queue)
	for _, q := range queue {
		mark, ended := s.out.Len(), s.closing
		if d := s.permit(q.cmd, q.argv, deniedInMulti); d == permitted {
			s.run(q.cmd, q.argv, q.argv[q.names:])
		} else {
			msg := d.inTransaction()
			c.Reply.Error(msg)
			c.srv.countError(msg)
		}
		if ended { // it has killed itself, or deleted its user: the rest runs without replies
			s.out.Truncate(mark)
		}
	}
	c.nested, s.execing = false, 0
}
