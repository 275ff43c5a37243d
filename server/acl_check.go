package server

import "github.com/zsetd/zsetd/protocol"

// denial is the reason for which a command is denied. If several apply, the last in
// this order is reported.
type denial uint8

const (
	permitted denial = iota
	deniedCommand
	deniedKey
	deniedAuth
	deniedChannel
)

// String returns the reason as ACL LOG shows it.
func (d denial) String() string {
	return [...]string{"permitted", "command", "key", "auth", "channel"}[d]
}

// refusal returns the error for a command that is not run.
func (d denial) refusal(cmd *Command) string {
	switch d {
	case deniedCommand:
		return "NOPERM this user has no permissions to run the '" + cmd.Name + "' command"
	case deniedKey:
		return "NOPERM this user has no permissions to access one of the keys used as arguments"
	}
	return "NOPERM this user has no permissions to access one of the channels used as arguments"
}

// inTransaction returns the error for a command that was allowed when it was
// queued, and is denied when EXEC runs it.
func (d denial) inTransaction() string {
	reason := "no permission to access one of the channels used as arguments"
	switch d {
	case deniedCommand:
		reason = "no permission to execute the command or subcommand"
	case deniedKey:
		reason = "no permission to touch the specified keys"
	}
	return "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " + reason
}

// inScript returns the error for a command that a script may not run, without a
// code.
func (d denial) inScript() string {
	reason := "can't publish to the channel mentioned in the command"
	switch d {
	case deniedCommand:
		reason = "can't run this command or subcommand"
	case deniedKey:
		reason = "can't access at least one of the keys mentioned in the command arguments"
	}
	return "The user executing the script " + reason
}

// permit reports whether the session's user may run a command; argv is the command
// with its name. A denial is counted and logged. Every path to a command checks
// here: dispatch, EXEC, the retry of a waiter, and, for redis.call, the session
// that runs the script.
func (s *Session) permit(cmd *Command, argv [][]byte, where denialContext) denial {
	if s.user.all {
		return permitted
	}
	d, at := s.user.permits(cmd, argv)
	switch d {
	case permitted:
	case deniedCommand:
		s.logDenial(d, where, cmd.Name, s.user.name)
	default:
		s.logDenial(d, where, string(argv[at]), s.user.name)
	}
	return d
}

// permits reports whether u may run a command, and if not, which argument is
// denied. It neither counts nor logs, so it also serves queries: DRYRUN,
// redis.acl_check_cmd.
func (u *user) permits(cmd *Command, argv [][]byte) (d denial, at int) {
	if u.all {
		return permitted, 0
	}
	var few [8]protocol.KeyRef
	keys := few[:0]
	if !u.allKeys {
		keys = cmd.spec.AppendKeys(keys, argv)
	}
	d = deniedCommand
	for i := range u.selectors {
		this, where := u.selectors[i].permits(cmd, argv, keys)
		if this == permitted {
			return permitted, 0
		}
		if this > d || this == d && where > at {
			d, at = this, where
		}
	}
	return d, at
}

// permitsOnAnyKey reports whether a selector of u allows a command and access to
// every key: the keys that SORT reads with BY and GET are not in its arguments.
func (u *user) permitsOnAnyKey(cmd *Command, argv [][]byte, access keyAccess) bool {
	if u.all {
		return true
	}
	keys := cmd.spec.AppendKeys(nil, argv)
	for i := range u.selectors {
		s := &u.selectors[i]
		if d, _ := s.permits(cmd, argv, keys); d == permitted && s.hasAnyKey(access) {
			return true
		}
	}
	return false
}

func (s *selector) permits(cmd *Command, argv [][]byte, keys []protocol.KeyRef) (d denial, at int) {
	if !s.commands.has(cmd) && !cmd.spec.Flags().Has(protocol.NoAuth) && !s.permitsFirstArg(cmd, argv) {
		return deniedCommand, 0
	}
	if !s.allKeys {
		for _, k := range keys {
			if !s.permitsKey(argv[k.Index], accessOf(k.Flags)) {
				return deniedKey, k.Index
			}
		}
	}
	if !s.allChannels && cmd.spec.Flags().Has(protocol.PubSub) {
		channels, literal := channelsOf(cmd, argv)
		for i, channel := range channels {
			if !matchesAny(s.channels, channel, literal) {
				return deniedChannel, 1 + i
			}
		}
	}
	return permitted, 0
}

func (s *selector) permitsFirstArg(cmd *Command, argv [][]byte) bool {
	if len(s.firstArgs) == 0 || len(argv) < 2 {
		return false
	}
	for _, arg := range s.firstArgs[cmd] {
		if equalFold(protocol.View(argv[1]), arg) {
			return true
		}
	}
	return false
}

// accessOf returns the access that a command needs to a key. It may be none, as for
// EXISTS: then any access suffices.
func accessOf(flags protocol.KeyFlags) (access keyAccess) {
	if flags.Has(protocol.KeyAccess) {
		access |= readKeys
	}
	if flags.Has(protocol.KeyInsert | protocol.KeyDelete | protocol.KeyUpdate) {
		access |= writeKeys
	}
	return access
}

func (s *selector) permitsKey(key []byte, access keyAccess) bool {
	for i := range s.keys {
		k := &s.keys[i]
		if k.access&access == access && match(bytesOf(k.pattern), key, false) {
			return true
		}
	}
	return false
}

// hasAnyKey reports whether s allows an access to all keys.
func (s *selector) hasAnyKey(access keyAccess) bool {
	if s.allKeys {
		return true
	}
	for _, k := range s.keys {
		if k.pattern == "*" && k.access&access == access {
			return true
		}
	}
	return false
}

// channelsOf returns the channels in the arguments of a command that need
// permission. Patterns to subscribe to must be permitted literally.
func channelsOf(cmd *Command, argv [][]byte) (channels [][]byte, literal bool) {
	switch cmd.Name {
	case "publish", "spublish":
		return argv[1:min(2, len(argv))], false
	case "subscribe", "ssubscribe":
		return argv[1:], false
	case "psubscribe":
		return argv[1:], true
	}
	return nil, false
}

// matchesAny reports whether one of the patterns matches a channel or, with
// literal, equals it.
func matchesAny(patterns []string, channel []byte, literal bool) bool {
	for _, p := range patterns {
		if literal && p == string(channel) || !literal && match(bytesOf(p), channel, false) {
			return true
		}
	}
	return false
}

// dropSubscribers ends the sessions of a user that are subscribed to channels which
// next, the user's new rules, no longer permits; the session me ends after its
// reply.
func (srv *Server) dropSubscribers(u, next *user, me *Session) {
	var allowed, before []string
	for i := range next.selectors {
		if next.selectors[i].allChannels {
			return
		}
		allowed = append(allowed, next.selectors[i].channels...)
	}
	lost := false
	for i := range u.selectors {
		lost = lost || u.selectors[i].allChannels
		before = append(before, u.selectors[i].channels...)
	}
	kept := map[string]bool{}
	for _, p := range allowed {
		kept[p] = true
	}
	for _, p := range before {
		lost = lost || !kept[p]
	}
	if !lost {
		return
	}
	hears := func(names positions, literal bool) bool {
		for name := range names {
			if !matchesAny(allowed, bytesOf(name), literal) {
				return true
			}
		}
		return false
	}
	for _, s := range srv.byID() {
		if s.user == u && (hears(s.patterns, true) || hears(s.channels, false) || hears(s.shards, false)) {
			s.terminate(me)
		}
	}
}

// terminate ends a session: at once, or after its reply if it is me.
func (s *Session) terminate(me *Session) {
	if s == me {
		s.closing = true
	} else {
		s.kill()
	}
}

// dropSessions ends the sessions of a deleted user.
func (srv *Server) dropSessions(u *user, me *Session) {
	for _, s := range srv.byID() {
		if s.user != u {
			continue
		}
		s.terminate(me)
		if s == me { // me may be in the middle of a transaction
			s.user, s.authenticated = srv.acl.standard, false
		}
	}
}
