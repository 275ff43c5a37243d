package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
)

// Users come from the configuration, a line "user name rules…" for each, or from a
// file of such lines, the parameter aclfile; never from both. ACL LOAD and SAVE
// hold the lock while they read or write the file, as SAVE does: it has some
// kilobytes, an operator requests it, and no client sees a partial change.

// Permit reports whether the session's user may run a command; argv is the command
// with its name. A denial is counted and logged. Every path to a command checks
// here: dispatch, EXEC, the retry of a waiter, and, for redis.call, the session
// that runs the script.
func (s *Session) Permit(cmd *Command, argv [][]byte, where acl.Context) acl.Denial {
	return s.permitOn(s, cmd, argv, where)
}

// permitOn is Permit for the databases of another session.
func (s *Session) permitOn(of *Session, cmd *Command, argv [][]byte, where acl.Context) acl.Denial {
	if s.Login.User.Unrestricted {
		return acl.Permitted
	}
	d, at := s.Login.User.Permits(cmd.Access, argv, of.Selected())
	switch {
	case d == acl.Permitted:
	case at == 0:
		s.LogDenial(d, where, cmd.Name, s.Login.User.Name)
	default:
		s.LogDenial(d, where, string(argv[at]), s.Login.User.Name)
	}
	return d
}

// Selected returns the databases that the session's next command can use. That which
// queued commands have selected is selected for those that follow.
func (s *Session) Selected() acl.Selected {
	db := acl.Selected{ID: s.DB.ID(), Count: s.Engine.Keys.Len()}
	if s.Transaction.Multi {
		db.ID = s.Transaction.queueDB
	}
	return db
}

// MayRun reports whether the user of the script's caller may run a command. Unlike Permit
// it neither counts nor logs a denial.
func (r *ScriptRun) MayRun(cmd *Command, argv [][]byte) bool {
	d, _ := r.Caller.Login.User.Permits(cmd.Access, argv, r.Session.Selected())
	return d == acl.Permitted
}

// ReadsAnyKey reports whether the user may run the command and read all keys, not only
// those in its arguments.
func (c *Call) ReadsAnyKey() bool {
	return c.Session.Login.User.PermitsOnAnyKey(c.Command.Access, c.Argv, acl.ReadKeys, c.Session.Selected())
}

// DenialContext returns where the session's commands come from.
func (s *Session) DenialContext() acl.Context {
	if s.Transaction.Multi || s.Call.Nested {
		return acl.InMulti
	}
	return acl.Toplevel
}

// LogDenial counts and logs a denial. The object is the command, key or channel
// that was denied.
func (s *Session) LogDenial(reason acl.Denial, where acl.Context, object, username string) {
	srv := s.Engine
	d := acl.LogEntry{Reason: reason, Context: where, Object: object, Username: username,
		Client: strings.TrimSuffix(string(s.AppendInfo(nil)), "\n")}
	srv.ACL.Record(d, srv.Keys.Now(), ClampInt(srv.Config.ACLLogMaxLen))
}

// LogInByCertificate gives the session the user that a certificate names, or logs a
// denial. The lock is held.
func (s *Session) LogInByCertificate(name string) {
	if u := s.Engine.ACL.Users[name]; u != nil && u.Enabled() {
		s.Login.User, s.Login.Authenticated = u, true
		return
	}
	s.LogDenial(acl.DeniedCertificate, acl.Toplevel, "", name)
}

// loadUsers applies the users of the configuration, or those of the file.
func (srv *Engine) loadUsers(lines string) error {
	a, path := srv.ACL, srv.Config.ACLFile
	a.AllChannels = srv.Config.ACLPubSub == "allchannels"
	a.SetPassword(srv.Config.Requirepass)
	if lines != "" && path != "" {
		return errors.New("zsetd: configuring users in the configuration file and an ACL file path at the same time is " +
			"invalid: declare them in one or the other")
	}
	if path != "" {
		if problems := srv.LoadUsersFile(nil); problems != "" {
			return errors.New("zsetd: aborting startup because of ACL errors: " + problems)
		}
		return nil
	}
	if err := a.Declare(lines); err != nil {
		return fmt.Errorf("zsetd: %w", err)
	}
	a.Changed()
	for _, u := range a.Sorted() {
		if lines != "" && !u.Enabled() {
			srv.Log.Info("a user of the configuration cannot log in: its rules lack 'on'", "user", u.Name)
		}
	}
	return nil
}

// UserLines returns the lines of users for a configuration file: none if the users
// are in an ACL file.
func (srv *Engine) UserLines() []string {
	if srv.Config.ACLFile != "" {
		return nil
	}
	var lines []string
	for _, line := range srv.ACL.Lines(true) {
		lines = append(lines, protocol.JoinArgs(strings.Split(line, " ")))
	}
	return lines
}

// usersFile returns the path of the ACL file.
func (srv *Engine) usersFile() string {
	path := srv.Config.ACLFile
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(srv.Config.Dir, path)
}

// LoadUsersFile replaces all users by those of the file. It ends the sessions of users that
// the file does not have, and those that DropSubscribers names. If the file has errors it
// does nothing, and returns all of them, in Redis's words.
func (srv *Engine) LoadUsersFile(me *Session) (problems string) {
	a := srv.ACL
	users, problems := a.ReadFile(srv.usersFile(), srv.Config.ACLFile)
	if problems != "" {
		return problems
	}
	srv.Clients.DropSubscribers(a.Standard, users[acl.DefaultUser], me)
	for _, u := range a.Replace(users) {
		if next := users[u.Name]; next == nil {
			srv.DropSessions(u, me)
		} else {
			srv.Clients.DropSubscribers(u, next, me)
		}
	}
	for _, s := range srv.Clients.Sessions {
		if next := users[s.Login.User.Name]; next != nil {
			s.Login.User = next
		}
	}
	return ""
}

// SaveUsersFile writes all users to the file.
func (srv *Engine) SaveUsersFile() error { return srv.ACL.WriteFile(srv.usersFile()) }

// DropSubscribers ends the sessions of a user that are subscribed to channels which
// next, the user's new rules, no longer permits, or to live queries whose command it no longer
// permits; the session me ends after its
// reply.
func (t *clients) DropSubscribers(u, next *acl.User, me *Session) {
	remaining, loses := u.LosesChannels(next)
	hears := func(s *Session, kind subscription.Topic) bool {
		for name := range s.subscriptions.All(kind) {
			if !remaining.Match(protocol.BytesOf(name), kind == subscription.Patterns) {
				return true
			}
		}
		return false
	}
	for _, s := range t.ByID() {
		if s.Login.User == u && (s.losesQuery(next) || loses && (hears(s, subscription.Patterns) || hears(s, subscription.Channels) || hears(s, subscription.Shards))) {
			s.terminate(me)
		}
	}
}

// terminate ends a session: at once, or after its reply if it is me.
func (s *Session) terminate(me *Session) {
	if s == me {
		s.CloseAfterReply()
	} else {
		s.Kill()
	}
}

// DropSessions ends the sessions of a deleted user: at once, or after its reply the
// session me, which may be in the middle of a transaction.
func (srv *Engine) DropSessions(u *acl.User, me *Session) {
	for _, s := range srv.Clients.ByID() {
		if s.Login.User != u {
			continue
		}
		if s != me && s.End != Killed {
			if srv.Turn.dropped == nil {
				srv.Turn.dropped = map[*Session][]byte{}
			}
			srv.Turn.dropped[s] = s.appendInfo(nil, srv.ACL.Standard, true)
		}
		s.terminate(me)
		if s == me {
			s.Login.User, s.Login.Authenticated = srv.ACL.Standard, false
		}
	}
}
