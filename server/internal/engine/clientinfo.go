package engine

import (
	"fmt"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
)

// BadSubcommand replies the error of a subcommand whose number of arguments is
// valid for its table row, but not for the subcommand.
func (c *Call) BadSubcommand() {
	name, _, _ := strings.Cut(c.Command.Name, "|")
	c.Reply.Error("ERR unknown subcommand or wrong number of arguments for '" + Clip(c.Argv[1], 128) + "'. Try " +
		strings.ToUpper(name) + " HELP.")
}

// ClientClass is the type of a client in CLIENT commands.
type ClientClass string

// ClassNormal is a class of clients in CLIENT LIST and client-output-buffer-limit.
const (
	ClassNormal  ClientClass = "normal"
	ClassMaster  ClientClass = "master"
	ClassReplica ClientClass = "replica"
	ClassPubsub  ClientClass = "pubsub"
)

// Class returns the type of a session.
func (s *Session) Class() ClientClass {
	switch {
	case s.Modes.Primary:
		return ClassMaster
	case s.Modes.Replica:
		return ClassReplica
	case s.subscriptions.Len() > 0:
		return ClassPubsub
	}
	return ClassNormal
}

// AppendListed appends the line of the session in CLIENT LIST. A killed session has none,
// except in the turn that has deleted its user.
func (s *Session) AppendListed(b []byte) []byte {
	if s.End == Killed {
		return append(b, s.Engine.Turn.dropped[s]...)
	}
	return s.AppendInfo(b)
}

// AppendInfo appends the line of CLIENT INFO.
func (s *Session) AppendInfo(b []byte) []byte { return s.appendInfo(b, s.Login.User, s.End == Killed) }

// appendInfo appends the line of CLIENT INFO of the session as one of user u; asap reports
// that it is to be closed as soon as possible.
func (s *Session) appendInfo(b []byte, u *acl.User, asap bool) []byte {
	taken, free := s.Peer.InputBuffer()
	multi := -1
	if s.Transaction.Multi || s.Transaction.execing > 0 {
		multi = max(len(s.Transaction.queue), s.Transaction.execing)
	}
	// As in Redis: the first buffer, and the rest in blocks.
	n := s.backlog()
	first := min(n, firstReplies)
	blocks, events := 0, "r"
	if n > first {
		blocks = int((n - first + blockSize - 1) / blockSize)
	}
	if s.Queue.Flushing.Load() != 0 {
		events = "rw"
	}
	last := "NULL"
	if s.Activity.last != nil {
		last = s.Activity.last.Name
	}
	name, _, _ := strings.Cut(s.Login.Name, "\x00") // which may be followed by any bytes
	capa, thread := " capa="+s.Login.capabilities(), " io-thread=0"
	early, late := "", capa
	if s.Engine.Config.Valkey() {
		early, thread, late = capa, "", ""
		if argv := s.running(); argv != nil { // they are not of the buffer
			taken = max(taken-int(protocol.RequestSize(argv)), 0)
		}
	}
	return fmt.Appendf(b, "id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s%s db=%d sub=%d psub=%d ssub=%d "+
		"multi=%d watch=%d qbuf=%d qbuf-free=%d argv-mem=%d multi-mem=%d rbs=%d rbp=%d obl=%d oll=%d omem=%d tot-mem=%d events=%s "+
		"cmd=%s user=%s redir=%d resp=%d lib-name=%s lib-ver=%s%s tot-net-in=%d tot-net-out=%d tot-cmds=%d%s\n",
		s.ID, s.Peer.Addr, s.Peer.LocalAddr, s.Peer.FD, name, int64(s.Engine.Turn.At.Sub(s.Activity.Created).Seconds()), s.IdleSeconds(),
		s.flags(asap), early, s.DB.ID(), s.subscriptions.Count(subscription.Channels), s.subscriptions.Count(subscription.Patterns), s.subscriptions.Count(subscription.Shards),
		multi, len(s.Transaction.watches), taken, free, argsSize(s.running()), s.Transaction.queued+int64(len(s.Transaction.watches))*perName, s.Out.Cap(), s.Out.Len(), first, blocks, n-first,
		s.memory(), events,
		last, u.Name, s.Redirection(), s.Out.Version(), s.Login.LibName, s.Login.LibVersion, thread, s.Peer.arrived(), s.Activity.written+int64(s.waiting()), s.Activity.ran, late)
}

// IdleSeconds returns for how many seconds the session has run no command.
func (s *Session) IdleSeconds() int64 {
	return int64(s.Engine.Turn.At.Sub(s.Activity.lastUsed).Seconds())
}

// arrived returns how many bytes the client has sent.
func (p *Peer) arrived() int64 {
	if p.Conn == nil {
		return 0
	}
	return p.Conn.Arrived()
}

// capabilities returns the letters of what the client has announced by CLIENT CAPA.
func (l *login) capabilities() string {
	if l.Redirectable {
		return "r"
	}
	return ""
}

// ClientFlags are the letters of the field flags of CLIENT LIST.
const ClientFlags = "SMOPxbtRBdcAUreTN"

// HasFlags reports whether the session has all of these flags.
func (s *Session) HasFlags(letters string) bool {
	has := s.flags(s.End == Killed)
	for _, letter := range letters {
		if !strings.ContainsRune(has, letter) {
			return false
		}
	}
	return true
}

// Watches returns how many keys the session watches.
func (s *Session) Watches() int { return len(s.Transaction.watches) }

// Subscribed reports whether the session has subscriptions.
func (s *Session) Subscribed() bool { return s.subscriptions.Len() > 0 }

// flags returns the letters of a session in CLIENT LIST.
func (s *Session) flags(asap bool) string {
	var b []byte
	for _, f := range []struct {
		is     bool
		letter byte
	}{
		{s.Modes.Replica, 'S'},
		{s.Modes.Primary, 'M'},
		{s.Modes.monitoring, 'O'},
		{s.subscriptions.Len() > 0, 'P'},
		{s.Transaction.Multi || s.Transaction.execing > 0, 'x'},
		{s.Stall.Blocked != nil || s.Stall.postponed != nil || s.awaitsReplies(), 'b'},
		{s.cache != nil, 't'},
		{s.cache != nil && s.cache.Broken, 'R'},
		{s.cache != nil && s.cache.Broadcast, 'B'},
		{s.Transaction.touched, 'd'},
		{s.End == Closing, 'c'},
		{asap, 'A'},
		{s.Peer.Unix, 'U'},
		{s.Modes.Readonly, 'r'},
		{s.Modes.NoEvict, 'e'},
		{s.Modes.NoTouch, 'T'},
	} {
		if f.is {
			b = append(b, f.letter)
		}
	}
	if len(b) == 0 {
		return "N"
	}
	return string(b)
}

// running returns the command that the session runs or that waits with it.
func (s *Session) running() [][]byte {
	switch {
	case s.Engine.Turn.current == s:
		return s.Call.Argv
	case s.Stall.Blocked != nil:
		return s.Stall.Blocked.argv
	}
	return s.Stall.postponed
}
