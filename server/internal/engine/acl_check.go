package engine

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/glob"
)

// Denial is the reason for which a command is denied. If several apply, the last in
// this order is reported.
type Denial uint8

// Permitted is the result of a permission check, or its reason for a refusal.
const (
	Permitted Denial = iota
	DeniedCommand
	DeniedKey
	DeniedAuth
	DeniedChannel
)

// String returns the reason as ACL LOG shows it.
func (d Denial) String() string {
	return [...]string{"permitted", "command", "key", "auth", "channel"}[d]
}

// refusal returns the error for a command that is not run.
func (d Denial) refusal(cmd *Command) string {
	switch d {
	case DeniedCommand:
		return "NOPERM this user has no permissions to run the '" + cmd.Name + "' command"
	case DeniedKey:
		return "NOPERM this user has no permissions to access one of the keys used as arguments"
	}
	return "NOPERM this user has no permissions to access one of the channels used as arguments"
}

// inTransaction returns the error for a command that was allowed when it was
// queued, and is denied when EXEC runs it.
func (d Denial) inTransaction() string {
	reason := "no permission to access one of the channels used as arguments"
	switch d {
	case DeniedCommand:
		reason = "no permission to execute the command or subcommand"
	case DeniedKey:
		reason = "no permission to touch the specified keys"
	}
	return "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " + reason
}

// InScript returns the error for a command that a script may not run, without a
// code.
func (d Denial) InScript() string {
	reason := "can't publish to the channel mentioned in the command"
	switch d {
	case DeniedCommand:
		reason = "can't run this command or subcommand"
	case DeniedKey:
		reason = "can't access at least one of the keys mentioned in the command arguments"
	}
	return "The user executing the script " + reason
}

// Permit reports whether the session's user may run a command; argv is the command
// with its name. A denial is counted and logged. Every path to a command checks
// here: dispatch, EXEC, the retry of a waiter, and, for redis.call, the session
// that runs the script.
func (s *Session) Permit(cmd *Command, argv [][]byte, where denialContext) Denial {
	if s.User.all {
		return Permitted
	}
	d, at := s.User.Permits(cmd, argv)
	switch d {
	case Permitted:
	case DeniedCommand:
		s.LogDenial(d, where, cmd.Name, s.User.Name)
	default:
		s.LogDenial(d, where, string(argv[at]), s.User.Name)
	}
	return d
}

// Permits reports whether u may run a command, and if not, which argument is
// denied. It neither counts nor logs, so it also serves queries: DRYRUN,
// redis.acl_check_cmd.
func (u *User) Permits(cmd *Command, argv [][]byte) (d Denial, at int) {
	if u.all {
		return Permitted, 0
	}
	var few [8]protocol.KeyRef
	keys := few[:0]
	if !u.allKeys {
		keys = cmd.Spec.AppendKeys(keys, argv)
	}
	d = DeniedCommand
	for i := range u.Selectors {
		this, where := u.Selectors[i].Permits(cmd, argv, keys)
		if this == Permitted {
			return Permitted, 0
		}
		if this > d || this == d && where > at {
			d, at = this, where
		}
	}
	return d, at
}

// PermitsOnAnyKey reports whether a selector of u allows a command and access to
// every key: the keys that SORT reads with BY and GET are not in its arguments.
func (u *User) PermitsOnAnyKey(cmd *Command, argv [][]byte, access keyAccess) bool {
	if u.all {
		return true
	}
	keys := cmd.Spec.AppendKeys(nil, argv)
	for i := range u.Selectors {
		s := &u.Selectors[i]
		if d, _ := s.Permits(cmd, argv, keys); d == Permitted && s.hasAnyKey(access) {
			return true
		}
	}
	return false
}

// Permits reports whether the user may run a command with these arguments.
func (s *Selector) Permits(cmd *Command, argv [][]byte, keys []protocol.KeyRef) (d Denial, at int) {
	if !s.Commands.Has(cmd) && !cmd.Spec.Flags().Has(protocol.NoAuth) && !s.permitsFirstArg(cmd, argv) {
		return DeniedCommand, 0
	}
	if !s.allKeys {
		for _, k := range keys {
			if !s.permitsKey(argv[k.Index], accessOf(k.Flags)) {
				return DeniedKey, k.Index
			}
		}
	}
	if !s.allChannels {
		for i, channel := range cmd.Channels.Of(argv) {
			// Patterns to subscribe to must be permitted literally.
			if !matchesAny(s.channels, channel, cmd.Channels == protocol.EveryPattern) {
				return DeniedChannel, 1 + i
			}
		}
	}
	return Permitted, 0
}

func (s *Selector) permitsFirstArg(cmd *Command, argv [][]byte) bool {
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
		access |= ReadKeys
	}
	if flags.Has(protocol.KeyInsert | protocol.KeyDelete | protocol.KeyUpdate) {
		access |= writeKeys
	}
	return access
}

func (s *Selector) permitsKey(key []byte, access keyAccess) bool {
	for i := range s.keys {
		k := &s.keys[i]
		if k.access&access == access && glob.Match(BytesOf(k.pattern), key, false) {
			return true
		}
	}
	return false
}

// hasAnyKey reports whether s allows an access to all keys.
func (s *Selector) hasAnyKey(access keyAccess) bool {
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

// matchesAny reports whether one of the patterns matches a channel or, with
// literal, equals it.
func matchesAny(patterns []string, channel []byte, literal bool) bool {
	for _, p := range patterns {
		if literal && p == string(channel) || !literal && glob.Match(BytesOf(p), channel, false) {
			return true
		}
	}
	return false
}

// DropSubscribers ends the sessions of a user that are subscribed to channels which
// next, the user's new rules, no longer permits; the session me ends after its
// reply.
func (srv *Engine) DropSubscribers(u, next *User, me *Session) {
	var allowed, before []string
	for i := range next.Selectors {
		if next.Selectors[i].allChannels {
			return
		}
		allowed = append(allowed, next.Selectors[i].channels...)
	}
	lost := false
	for i := range u.Selectors {
		lost = lost || u.Selectors[i].allChannels
		before = append(before, u.Selectors[i].channels...)
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
			if !matchesAny(allowed, BytesOf(name), literal) {
				return true
			}
		}
		return false
	}
	for _, s := range srv.ByID() {
		if s.User == u && (hears(s.patterns, true) || hears(s.channels, false) || hears(s.shards, false)) {
			s.terminate(me)
		}
	}
}

// terminate ends a session: at once, or after its reply if it is me.
func (s *Session) terminate(me *Session) {
	if s == me {
		s.Closing = true
	} else {
		s.Kill()
	}
}

// DropSessions ends the sessions of a deleted user.
func (srv *Engine) DropSessions(u *User, me *Session) {
	for _, s := range srv.ByID() {
		if s.User != u {
			continue
		}
		s.terminate(me)
		if s == me { // me may be in the middle of a transaction
			s.User, s.Authenticated = srv.ACL.Standard, false
		}
	}
}
