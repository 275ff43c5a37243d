package acl

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
)

// Denial is the reason for which a command is denied. If several apply, the last in
// this order is reported.
type Denial uint8

// Permitted is the result of a permission check, or its reason for a refusal.
const (
	Permitted Denial = iota
	DeniedDatabase
	DeniedCommand
	DeniedKey
	DeniedAuth
	DeniedChannel
	DeniedCertificate // of a client of TLS: it names no user
)

// String returns the reason as ACL LOG shows it.
func (d Denial) String() string {
	return [...]string{"permitted", "database", "command", "key", "auth", "channel", "tls-cert"}[d]
}

// Refusal returns the error, without a code, for a command that a user may not run.
func (d Denial) Refusal(user, cmd string) string {
	switch d {
	case DeniedCommand:
		return "User " + user + " has no permissions to run the '" + cmd + "' command"
	case DeniedKey:
		return "No permissions to access a key"
	case DeniedDatabase:
		return "No permissions to access database"
	}
	return "No permissions to access a channel"
}

// InTransaction returns the error for a command that was allowed when it was
// queued, and is denied when EXEC runs it.
func (d Denial) InTransaction() string {
	reason := "no permission to access one of the channels used as arguments"
	switch d {
	case DeniedDatabase:
		reason = "no permission"
	case DeniedCommand:
		reason = "no permission to execute the command or subcommand"
	case DeniedKey:
		reason = "no permission to touch the specified keys"
	}
	return "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " + reason
}

// Permits reports whether u may run a command on the databases of a session, and if not,
// which argument is denied: 0 without one. It neither counts nor logs, so it also serves queries: DRYRUN,
// redis.acl_check_cmd.
func (u *User) Permits(cmd *Command, argv [][]byte, db Selected) (d Denial, at int) {
	if u.Unrestricted {
		return Permitted, 0
	}
	var few [8]protocol.KeyRef
	keys := few[:0]
	if !u.allKeys {
		keys = cmd.AppendKeys(keys, argv)
	}
	for i := range u.Selectors {
		this, where := u.Selectors[i].Permits(cmd, argv, keys, db)
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
func (u *User) PermitsOnAnyKey(cmd *Command, argv [][]byte, access Access, db Selected) bool {
	if u.Unrestricted {
		return true
	}
	keys := cmd.AppendKeys(nil, argv)
	for i := range u.Selectors {
		s := &u.Selectors[i]
		if d, _ := s.Permits(cmd, argv, keys, db); d == Permitted && s.hasAnyKey(access) {
			return true
		}
	}
	return false
}

// Permits reports whether the user may run a command with these arguments.
func (s *Selector) Permits(cmd *Command, argv [][]byte, keys []protocol.KeyRef, db Selected) (d Denial, at int) {
	if !s.Commands.Has(cmd) && !cmd.Flags().Has(protocol.NoAuth) && !s.permitsFirstArg(cmd, argv) {
		return DeniedCommand, 0
	}
	if ok, at := s.databases.permits(cmd, argv, db); !ok {
		return DeniedDatabase, at
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
			if !s.channels.Match(channel, cmd.Channels == protocol.EveryPattern) {
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
func accessOf(flags protocol.KeyFlags) (access Access) {
	if flags.Has(protocol.KeyAccess | protocol.KeyCompares) {
		access |= ReadKeys
	}
	if flags.Has(protocol.KeyInsert | protocol.KeyDelete | protocol.KeyUpdate) {
		access |= WriteKeys
	}
	return access
}

func (s *Selector) permitsKey(key []byte, access Access) bool {
	for i := range s.keys {
		k := &s.keys[i]
		if k.access&access == access && glob.Match(protocol.BytesOf(k.pattern), key, false) {
			return true
		}
	}
	return false
}

// hasAnyKey reports whether s allows an access to all keys.
func (s *Selector) hasAnyKey(access Access) bool {
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

// Channels is a set of patterns of channels.
type Channels []string

// Match reports whether one of the patterns matches a channel or, with literal, equals
// it.
func (c Channels) Match(channel []byte, literal bool) bool {
	for _, p := range c {
		if literal && p == string(channel) || !literal && glob.Match(protocol.BytesOf(p), channel, false) {
			return true
		}
	}
	return false
}

// LosesChannels reports whether next, the new rules of u, permits fewer channels than
// u, and returns those that remain.
func (u *User) LosesChannels(next *User) (remaining Channels, loses bool) {
	for i := range next.Selectors {
		if next.Selectors[i].allChannels {
			return nil, false
		}
		remaining = append(remaining, next.Selectors[i].channels...)
	}
	kept := map[string]bool{}
	for _, p := range remaining {
		kept[p] = true
	}
	for i := range u.Selectors {
		loses = loses || u.Selectors[i].allChannels
		for _, p := range u.Selectors[i].channels {
			loses = loses || !kept[p]
		}
	}
	return remaining, loses
}
