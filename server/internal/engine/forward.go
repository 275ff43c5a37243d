package engine

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/internal/peers/remote"
)

// Forwarding: the data have moved to another server or cluster (parameter forward-to),
// and commands on data of clients that are still connected here run there. Package
// forward moves the bytes. A session passes its commands to a connection of its own at
// the new home, at most one turn of them at a time, and stalls until all replies have
// arrived, as a blocked one does. The user, MULTI and subscriptions stay here: a
// transaction is sent as a whole by EXEC.
//
// Forwarding is a pause without end (pause.go): the data here do not change, and no key
// expires. When it ends, the server has the data of its beginning.

// Forwarder connects sessions to the servers that have the data. It is called with the
// lock held, and does not wait, unless a method says otherwise.
type Forwarder interface {
	// Upstream returns the connection of a session, which need not be open yet.
	Upstream(s *Session) Upstream

	// Subscribe makes messages of a topic arrive by Engine.Deliver; then it calls done,
	// without the lock, even if the servers are away: it subscribes when they return.
	Subscribe(kind subscription.Topic, names []string, done func())

	// Unsubscribe ends that.
	Unsubscribe(kind subscription.Topic, name string)

	// Close closes all connections. Requests that wait for replies receive errors.
	Close()

	// Wait waits for the end of all goroutines, after Close. It is called without the
	// lock.
	Wait()
}

// Upstream is the connection of one session to the servers that have the data.
type Upstream interface {
	// Send sends a request. Its reply arrives by Session.Answer, in the order of the
	// requests.
	Send(r *remote.Request)

	// Close closes the connection. Requests that wait for replies receive errors.
	Close()
}

// forwarding is the state of forwarding in a server.
type forwarding struct {
	forwarder    Forwarder // nil while the server answers itself
	forwardedTo  string    // the value of forward-to that is in effect
	newForwarder func(*Engine, remote.Address) Forwarder
	preparing    bool  // commands on data wait until the clients' subscriptions exist at the new home
	Forwarded    int64 // commands so far
}

// forwarded is the state of a session whose commands are forwarded.
type forwarded struct {
	by          Forwarder
	upstream    Upstream
	outstanding int      // requests without a reply
	bytes       int      // of these
	blocking    bool     // one of these may wait for other clients
	watching    bool     // keys are watched at the new home
	refusal     string   // the error of a command after them that was refused; "" for none
	reads       []string // keys that a client with CLIENT TRACKING reads by these
}

const (
	// forwardBytes is the size of requests without a reply from which a session takes no
	// more commands of its turn.
	forwardBytes = 1 << 20
	// endless is a time in the distant future, in milliseconds since 1970.
	endless = math.MaxInt64 / 2
)

// awaitsReplies reports whether the session waits for replies to forwarded requests.
func (s *Session) awaitsReplies() bool { return s.forwarded != nil && s.forwarded.outstanding > 0 }

// blockedUpstream reports whether one of these may wait for other clients.
func (s *Session) blockedUpstream() bool { return s.awaitsReplies() && s.forwarded.blocking }

// isForwarded reports whether a command concerns data, and not the server or its
// connections.
func (c *Command) isForwarded() bool {
	f := c.Spec.Flags()
	return c.Run != nil && !c.Local && !f.Has(protocol.Admin) &&
		(f.Has(protocol.Write|protocol.ReadOnly|protocol.MayReplicate|protocol.Blocking) || c.Group == "scripting")
}

// subscribes reports whether a command begins subscriptions, and of which kind.
func (c *Command) subscribes() (kind subscription.Topic, yes bool) {
	switch {
	case !c.WhileSubscribed || c.Channels == protocol.NoChannels:
		return 0, false
	case c.Channels == protocol.EveryPattern:
		return subscription.Patterns, true
	case c.Keys != "":
		return subscription.Shards, true
	}
	return subscription.Channels, true
}

// forwards passes a command to the server that has the data. It returns false for a
// command that runs here.
func (s *Session) forwards(cmd *Command, argv [][]byte, names int) bool {
	kind, subscribes := cmd.subscribes()
	toHome := cmd.forwarded || cmd.Watches || cmd.RunsQueue || s.isProgram()
	switch {
	case s.Modes.Replica, s.Modes.monitoring, s.onlySubscribes() && !cmd.WhileSubscribed:
		return false // a later check refuses it
	case s.Modes.Script:
		s.refuse(cmd, "ERR the data have moved: a command of the program cannot use them here")
		return true
	case s.Transaction.Multi && !cmd.InMulti:
		return s.enqueues(cmd, argv, names)
	case toHome && s.Engine.Forwarding.preparing:
		s.Engine.Pauses.postpone(s, argv)
	case s.isProgram():
		s.refuse(cmd, "ERR the data have moved: a transaction of the program cannot use them here")
	case cmd.forwarded:
		s.forward(s.forwardRequest(cmd, argv))
	case cmd.Watches && !s.Transaction.Multi:
		r := s.forwardRequest(cmd, argv)
		r.Kind = remote.Watch
		s.forward(r)
		s.forwarded.watching = true
	case cmd.RunsQueue && s.Transaction.Multi && !s.Transaction.aborted && !s.Transaction.touched && slices.ContainsFunc(s.Transaction.queue, func(q queued) bool { return q.cmd.forwarded }):
		return s.forwardTransaction(cmd)
	case s.awaitsReplies():
		s.holdBack(argv)
	case subscribes && !s.Stall.confirmed && !s.Modes.NoBlock:
		s.subscribeUpstream(kind, argv)
	default:
		s.Stall.confirmed = false
		return false
	}
	return true
}

// forwardRequest returns the request for a command.
func (s *Session) forwardRequest(cmd *Command, argv [][]byte) *remote.Request {
	r := &remote.Request{
		Name: strings.ToUpper(cmd.Name), DB: s.DB.ID(), Version: s.Out.Version(), Limit: s.replyLimit(), Slot: -1,
		Mute: s.Modes.Replies != ReplyOn, Kind: remote.Command,
	}
	s.addForwarded(r, cmd, argv)
	return r
}

// addForwarded adds a command to a request.
func (s *Session) addForwarded(r *remote.Request, cmd *Command, argv [][]byte) {
	var few [8]protocol.KeyRef
	keys := cmd.Spec.AppendHashed(few[:0], argv)
	r.Add(cmd.Spec, argv, keys, cmd.Function)
	if cmd.showsMembers() {
		for _, k := range keys {
			r.Purge(argv[k.Index])
		}
	}
	if s.cache != nil && cmd.reads() {
		f := s.toUpstream()
		for _, k := range keys {
			f.reads = append(f.reads, string(argv[k.Index]))
		}
	}
}

// showsMembers reports whether the command may show members of a sorted set. Functions remove
// those past their deadlines themselves.
func (c *Command) showsMembers() bool {
	switch c.Group {
	case "sorted-set", "geo", "generic", "scripting":
		return !c.Function
	}
	return false
}

// toUpstream returns the connection of the session, which it makes if there is none.
func (s *Session) toUpstream() *forwarded {
	if by := s.Engine.Forwarding.forwarder; s.forwarded == nil || s.forwarded.by != by {
		s.forwarded = &forwarded{by: by, upstream: by.Upstream(s)}
	}
	return s.forwarded
}

// forward sends a request. The session stalls at the end of its turn at the latest.
func (s *Session) forward(r *remote.Request) {
	f := s.toUpstream()
	f.outstanding++
	f.bytes += r.Bytes
	f.blocking = f.blocking || r.Blocking
	s.Engine.Forwarding.Forwarded++
	if f.bytes > forwardBytes || s.Stall.runningPostponed {
		s.Stall.Stalled.Store(true)
	}
	f.upstream.Send(r)
}

// forwardTransaction forwards the queue of the session's transaction.
func (s *Session) forwardTransaction(exec *Command) bool {
	r := &remote.Request{
		Name: "EXEC", DB: s.DB.ID(), Version: s.Out.Version(), Limit: s.replyLimit(), Slot: -1,
		Mute: s.Modes.Replies != ReplyOn, Kind: remote.Transaction,
	}
	for _, q := range s.Transaction.queue {
		if d := s.Permit(q.cmd, q.argv, acl.InMulti); d != acl.Permitted {
			s.refuse(exec, d.InTransaction())
			return true
		}
		if !q.cmd.forwarded {
			s.refuse(exec, "ERR "+strings.ToUpper(q.cmd.Name)+" cannot be forwarded in a transaction with commands on data")
			return true
		}
		s.addForwarded(r, q.cmd, q.argv)
	}
	r.Blocking = false // no command waits in a transaction
	if f := s.toUpstream(); f.watching {
		r.Watched, f.watching = true, false
	}
	s.discard()
	s.forward(r)
	return true
}

// unwatchUpstream ends the watches at the new home.
func (s *Session) unwatchUpstream() {
	f := s.forwarded
	if f == nil || !f.watching {
		return
	}
	f.watching = false
	if f.by == s.Engine.Forwarding.forwarder {
		s.forward(&remote.Request{
			Name: "UNWATCH", Commands: [][]byte{[]byte("*1\r\n$7\r\nUNWATCH\r\n")}, DB: s.DB.ID(), Version: s.Out.Version(),
			Slot: -1, Kind: remote.Unwatch, Mute: true,
		})
	}
}

// replyError replies the error of a command that does not run. It waits for the replies to
// forwarded commands before it.
func (s *Session) replyError(msg string) {
	if s.awaitsReplies() {
		if s.Modes.Replies == ReplyOn {
			s.forwarded.refusal = msg
		}
		s.Stall.Stalled.Store(true)
		return
	}
	s.Out.Error(msg)
}

// subscribeUpstream postpones a subscription until it exists at the new home, too.
func (s *Session) subscribeUpstream(kind subscription.Topic, argv [][]byte) {
	srv := s.Engine
	s.holdBack(argv)
	names := make([]string, len(s.Stall.postponed)-1)
	for i, name := range s.Stall.postponed[1:] {
		names[i] = string(name)
	}
	by := srv.Forwarding.forwarder
	by.Subscribe(kind, names, func() {
		srv.Attempt(func() {
			srv.InTurn(func() {
				if s.Stall.postponed != nil {
					s.Stall.confirmed = true
					srv.Pauses.released = append(srv.Pauses.released, s)
					return
				}
				for _, name := range names { // the session has ended
					if len(srv.PubSub.Table.Subscribers(kind, name)) == 0 && srv.Forwarding.forwarder == by {
						by.Unsubscribe(kind, name)
					}
				}
			})
		})
	})
}

// Answer appends the replies to n forwarded requests to the output of the session, which
// continues when there are no more. replies belong to the session from then on. It is
// called without the lock.
func (s *Session) Answer(u Upstream, replies []byte, n int) {
	srv := s.Engine
	srv.Attempt(func() {
		srv.InTurn(func() {
			if f := s.forwarded; f != nil && f.upstream == u && s.End == Serving {
				s.answer(f, replies, n)
			}
		})
	})
}

func (s *Session) answer(f *forwarded, replies []byte, n int) {
	if len(replies) > 0 {
		s.give(replies)
		s.checkOutput()
		if s.End != Serving {
			return
		}
	}
	if f.outstanding -= n; f.outstanding > 0 {
		return
	}
	f.bytes, f.blocking = 0, false
	if f.refusal != "" {
		s.Out.Error(f.refusal)
		s.pending()
		f.refusal = ""
	}
	if s.cache != nil && len(f.reads) > 0 {
		s.sendInvalidation(f.reads) // the new home does not say when they change
	}
	f.reads = nil
	if f.by != s.Engine.Forwarding.forwarder {
		s.forwarded = nil
	}
	if s.Stall.postponed != nil {
		s.Engine.Pauses.released = append(s.Engine.Pauses.released, s)
	} else {
		s.resume()
	}
}

// give sends output whose memory then belongs to the session.
func (s *Session) give(b []byte) {
	if len(b) <= blockSize {
		s.post(b)
		return
	}
	if s.Out.Len() > 0 {
		s.seal(nil)
	}
	s.Queue.blocks = append(s.Queue.blocks, b)
	s.Queue.Sealed += len(b)
	s.pending()
	s.Weigh()
}

// leaveUpstream closes the session's connection to the new home.
func (s *Session) leaveUpstream() {
	if f := s.forwarded; f != nil {
		s.forwarded = nil
		f.upstream.Close()
	}
}

// Deliver sends a message that the new home has sent to the subscribers of a topic.
func (srv *Engine) Deliver(kind subscription.Topic, name, channel, message string) {
	srv.Attempt(func() {
		srv.InTurn(func() {
			to := srv.PubSub.Table.Subscribers(kind, name)
			switch kind {
			case subscription.Channels:
				srv.send(to, messageToChannel, "", channel, message)
			case subscription.Patterns:
				srv.send(to, messageToPattern, name, channel, message)
			case subscription.Shards:
				srv.send(to, messageToShard, "", channel, message)
			}
		})
	})
}

// applyForwarding begins or ends forwarding, as forward-to says.
func (srv *Engine) applyForwarding() {
	to := srv.Config.ForwardTo
	if to == srv.Forwarding.forwardedTo || srv.Forwarding.newForwarder == nil {
		return
	}
	srv.Forwarding.forwardedTo, srv.Forwarding.preparing = to, false
	if old := srv.Forwarding.forwarder; old != nil {
		srv.Forwarding.forwarder = nil
		srv.Clients.endForwarding(old)
	}
	if to == "" {
		srv.Log.Info("forwarding has ended")
		srv.Unpause()
		return
	}
	home, err := remote.ParseAddress(to)
	if err != nil {
		panic("BUG: forward-to: " + err.Error()) // checkForwardTo accepts no other
	}
	srv.Log.Info("forwarding commands on data", "to", home.String())
	srv.Forwarding.forwarder = srv.Forwarding.newForwarder(srv, home)
	srv.passClients()
	srv.Unpause()
}

// checkForwardTo returns why a value of forward-to is refused.
func checkForwardTo(value string) error {
	if value == "" {
		return nil
	}
	home, err := remote.ParseAddress(value)
	if err == nil && home.DB != remote.AnyDatabase && !home.Cluster {
		err = errors.New("the address must not name a database")
	}
	return err
}

// To returns the new home without its password; "" while the server answers
// itself.
func (f *forwarding) To() string {
	if f.forwarder == nil {
		return ""
	}
	home, _ := remote.ParseAddress(f.forwardedTo)
	return home.String()
}

// endForwarding ends the connections of a forwarder that is no longer in use.
func (t *clients) endForwarding(old Forwarder) {
	for _, s := range t.Sessions {
		f := s.forwarded
		if f == nil {
			continue
		}
		s.Transaction.touched = s.Transaction.touched || f.watching
		f.watching = false
		if f.outstanding == 0 {
			s.leaveUpstream()
		}
	}
	old.Close()
}

// passClients moves the state of clients to the new home: watched keys count as changed,
// cached ones too, and blocked commands block there. Those with a timeout have timed out.
// Commands on data wait until the subscriptions exist there, so that no message that they
// cause is missed. Keys expire here until then, and not during the pause before.
func (srv *Engine) passClients() {
	var blocked []*Waiter
	for _, s := range srv.Clients.Sessions {
		if len(s.Transaction.watches) > 0 {
			s.Transaction.touched = true
		}
		if w := s.Stall.Blocked; w != nil && w.cmd.forwarded {
			blocked = append(blocked, w)
		}
	}
	slices.SortFunc(blocked, func(a, b *Waiter) int { return cmp.Compare(a.number, b.number) })
	for _, w := range blocked {
		s := w.sess
		if w.at != 0 {
			s.EndWait(w, w.Timeout)
			continue
		}
		srv.unblock(w)
		s.holdBack(w.argv)
		srv.Pauses.released = append(srv.Pauses.released, s)
	}
	f, left := srv.Forwarding.forwarder, 0
	prepared := func() {
		more := false
		srv.Attempt(func() {
			srv.InTurn(func() {
				left--
				more = left == 0
			})
			for more {
				srv.InTurn(func() { more = srv.prepare(f) })
			}
		})
	}
	for _, kind := range []subscription.Topic{subscription.Channels, subscription.Patterns, subscription.Shards} {
		if names := srv.PubSub.Table.Names(kind); len(names) > 0 {
			left++
			f.Subscribe(kind, names, prepared)
		}
	}
	srv.Forwarding.preparing = left > 0
	srv.Turn.Scope.Flushed()
}

// prepare ends the preparation of forwarding when no deadline has passed that subscribers
// do not know of; otherwise it removes some of the expired keys and members, and returns
// true. The new home has expired them, too, but before the server has subscribed there.
func (srv *Engine) prepare(f Forwarder) (more bool) {
	switch {
	case srv.Forwarding.forwarder != f || !srv.Forwarding.preparing:
		return false
	case srv.Sweeps() && srv.Timers.NextExpiry <= srv.Keys.Now():
		srv.sweep()
		return true
	}
	srv.Forwarding.preparing = false
	srv.Unpause()
	return false
}

// closeForwarding ends forwarding when the server stops.
func (srv *Engine) closeForwarding() {
	var f Forwarder
	srv.OutOfTurn(func() {
		f = srv.Forwarding.forwarder
		srv.Forwarding.forwarder, srv.Forwarding.newForwarder = nil, nil
		if f != nil {
			f.Close()
		}
	})
	if f != nil {
		f.Wait()
	}
}
