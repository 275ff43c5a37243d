package engine

import (
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// Exec runs one command line: all checks that Redis makes before a command runs, in
// Redis's order, then the command.
func (s *Session) Exec(argv [][]byte) {
	srv := s.Engine
	s.Activity.lastUsed = srv.Turn.At
	mark := s.Out.Len()
	outer, replied := srv.Turn.Scope.enter(s, mark), s.replied()
	s.Queue.replying = true
	s.dispatch(argv)
	srv.Turn.Scope.apply()
	s.Queue.replying = false
	srv.Turn.Scope.leave(outer)
	if s.Activity.last == nil || s.Activity.last.mayChangeChecks() {
		srv.checks.known = false
	}
	if s.cache != nil && !s.Transaction.Multi && (s.Activity.last == nil || !s.Activity.last.KeepsCaching) {
		s.cache.Caching = false
	}
	if s.Modes.Replies != ReplyOn && s.Stall.Blocked == nil && s.Stall.postponed == nil {
		s.suppressReply(mark)
	}
	if s.Modes.Replica && s.replied() > replied {
		srv.Replication.Replied(s, s.Activity.last, mark)
	}
	if s.Queue.held != nil {
		s.sendHeld()
	}
}

// dispatch finds a command, asks all checks, and runs it.
func (s *Session) dispatch(argv [][]byte) {
	srv := s.Engine
	cmd, names := s.find(argv)
	if srv.Config.Valkey() && s.mustLogIn() && (cmd == nil || !cmd.Spec.Flags().Has(protocol.NoAuth)) && !isHTTP(argv[0]) {
		s.Activity.last = cmd
		s.refuse(cmd, errNoAuth) // before all other errors
		return
	}
	if cmd == nil {
		if isHTTP(argv[0]) {
			srv.warnOfHTTP(s)
			s.Kill()
			return
		}
		s.Activity.last = nil
		s.refuse(nil, srv.unknownCommand(argv))
		return
	}
	s.Activity.last = cmd
	if cmd.Run == nil || cmd.ByArg != nil && len(argv) > 1 {
		if len(argv) == 1 {
			s.refuse(cmd, WrongArity(cmd.Name))
		} else {
			s.Activity.last = nil
			s.refuse(nil, "ERR unknown subcommand '"+Clip(argv[1], 128)+"'. Try "+strings.ToUpper(string(argv[0]))+" HELP.")
		}
		return
	}
	if !cmd.arityOK(len(argv)) {
		s.refuse(cmd, cmd.WrongArity())
		return
	}
	flags := cmd.Spec.Flags()
	for _, k := range srv.checks.apply(srv) {
		if k.concerns(flags) && k.applies(s) && k.stops(s, cmd, argv, names) {
			return
		}
	}
	s.run(cmd, argv, names)
}

// find returns the command that argv invokes, as table.Find does.
func (s *Session) find(argv [][]byte) (cmd *Command, names int) {
	if s.Modes.direct && s.isProgram() {
		return s.Engine.transaction, 1
	}
	return s.Engine.Table.Find(argv)
}

// arityOK reports whether the command accepts n words.
func (c *Command) arityOK(n int) bool { return n == c.Arity || c.Arity < 0 && n >= -c.Arity }

// refuse replies an error in place of running a command; cmd is nil if no command
// was found. A transaction that is being queued will fail.
func (s *Session) refuse(cmd *Command, msg string) {
	if cmd != nil && !s.Peer.countsApart(cmd) {
		cmd.Stats.Rejected++
	}
	switch {
	case cmd != nil && cmd.RunsQueue:
		msg = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(msg, "ERR ")
		s.discard()
	case s.Transaction.Multi:
		s.Transaction.aborted = true
	}
	s.replyError(msg)
	s.countError(cmd, msg)
}

// WrongArity returns the error for a wrong number of arguments.
func WrongArity(name string) string {
	return "ERR wrong number of arguments for '" + name + "' command"
}

// unknownCommand is Redis's error for a name that is not in the table. It quotes
// the first arguments, up to 128 bytes.
func (srv *Engine) unknownCommand(argv [][]byte) string {
	unknown := "ERR unknown command '" + Clip(argv[0], 128) + "'"
	if len(argv) == 1 && !srv.Config.Valkey() {
		return unknown
	}
	var args strings.Builder
	for _, a := range argv[1:] {
		if args.Len() >= 128 {
			break
		}
		args.WriteString("'" + Clip(a, 128-args.Len()) + "' ")
	}
	return unknown + ", with args beginning with: " + args.String()
}

// isHTTP reports whether a command is the beginning of an HTTP request, which an
// attacker may have tricked a browser into sending.
func isHTTP(name []byte) bool {
	return protocol.EqualFold(name, "POST") || protocol.EqualFold(name, "HOST:")
}

// warnOfHTTP logs that a client speaks HTTP, at most once a minute: such an attack
// sends many requests.
func (srv *Engine) warnOfHTTP(s *Session) {
	if !srv.Clients.warnedOfHTTP.IsZero() && srv.Turn.At.Sub(srv.Clients.warnedOfHTTP) < time.Minute {
		return
	}
	srv.Clients.warnedOfHTTP = srv.Turn.At
	srv.Log.Warn("closing client: it sends HTTP, perhaps because a web page makes a browser attack the server", "client", s.Peer.Addr)
}
