package server

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// HoldFiles keeps the server from writing to its file until release is called.
func (srv *Server) HoldFiles() (release func()) { return srv.engine.Keeper.HoldFiles() }

// BlockedClients returns how many clients are blocked.
func (srv *Server) BlockedClients() int {
	srv.engine.Mu.Lock()
	defer srv.engine.Mu.Unlock()
	return srv.engine.Stats.BlockedClients
}

// Progress is how far the server is with what its clients have sent.
type Progress struct {
	Input    int64 // bytes read
	Commands int64 // executed
	Errors   int64 // error replies; a command that is refused is not executed
	Blocked  int   // blocked clients, of which each has a command that is read and not executed
}

// Progress returns how far the server is. The bytes of a command are counted before it is executed
// or blocks its client.
func (srv *Server) Progress() Progress {
	srv.engine.Mu.Lock()
	defer srv.engine.Mu.Unlock()
	return Progress{srv.engine.Stats.Input.Load(), srv.engine.Stats.Commands, srv.engine.Stats.ErrorReplies, srv.engine.Stats.BlockedClients}
}

// Commands returns the facts of all commands, subcommands in place of their
// containers.
func (srv *Server) Commands() []*protocol.Command {
	var specs []*protocol.Command
	for _, c := range srv.engine.Table.Rows {
		if len(c.Subcommands) == 0 {
			specs = append(specs, c.Spec)
		}
		for i := range c.Subcommands {
			specs = append(specs, c.Subcommands[i].Spec)
		}
	}
	return specs
}

// Direct is a session without a transport, for tests that run many commands and
// want to know after each what it has done.
type Direct struct {
	srv  *engine.Engine
	sess *engine.Session
}

// Direct returns a session with all permissions. The server's random seed is fixed, and
// its timer removes nothing, so that runs are deterministic.
func (srv *Server) Direct() *Direct {
	srv.engine.Mu.Lock()
	srv.engine.Rand = rand.New(rand.NewPCG(1, 2))
	srv.engine.Timers.ActiveExpire = false
	srv.engine.Mu.Unlock()
	d := &Direct{srv: srv.engine}
	d.open()
	return d
}

func (d *Direct) open() {
	d.sess = d.srv.NewSession(engine.Peer{Addr: "127.0.0.1:1", LocalAddr: "127.0.0.1:2", FD: -1, Wake: func() {}})
	d.sess.SetOwner()
}

// Do runs a command and returns the replies. It never blocks: a blocked command gets the
// reply of its timeout at once, a pause ends, and a script that is reported as busy is
// killed. When the session has ended, Do opens another.
func (d *Direct) Do(argv [][]byte) []byte {
	if cmd, _ := d.srv.Table.Find(argv); cmd != nil && cmd.Group == "scripting" || cmd != nil && cmd.Name == "exec" {
		defer d.watch()()
	}
	out, ending := enginetest.Turn(d.sess, argv)
	out = slices.Clone(out)
	d.sess.Written()
	if d.sess.Stall.Stalled.Load() {
		d.srv.Locked(func() {
			if d.srv.Pauses.Until != 0 {
				d.srv.Unpause()
			}
			if w := d.sess.Stall.Blocked; w != nil {
				d.sess.EndWait(w, w.Timeout)
			}
		})
		more, killed, closed := d.sess.Take()
		out, ending = append(out, more...), ending || killed || closed
		d.sess.Written()
	}
	if ending {
		d.Renew()
	}
	return out
}

// Renew puts a new session in the place of this one.
func (d *Direct) Renew() {
	d.Close()
	d.open()
}

// Close ends the session.
func (d *Direct) Close() { d.sess.Close() }

// watch kills the running script once it is reported as busy.
func (d *Direct) watch() (stop func()) {
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(5 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				d.srv.Mu.Lock()
				if r := d.srv.Scripting.Running; r != nil && d.srv.Scripting.Busy {
					r.Killed = true
				}
				d.srv.Mu.Unlock()
			}
		}
	}()
	return func() { close(done) }
}

// LimitScripts sets by how much the process may grow while a script runs.
func (srv *Server) LimitScripts(bytes uint64) { srv.engine.Scripting.MemoryLimit = bytes }

// Changes returns how many changes there were since it was last called.
func (srv *Server) Changes() int64 {
	srv.engine.Mu.Lock()
	defer srv.engine.Mu.Unlock()
	n := srv.engine.Stats.Changes
	srv.engine.Stats.Changes = 0
	return n
}

// Digest returns a sum of all keys, with their values and deadlines. soon says that one of
// them may expire within a minute: then two digests may differ though nothing was changed.
func (srv *Server) Digest() (sum string, soon bool) { return enginetest.Digest(srv.engine) }

// collector is a replication that keeps the effects of turns.
type collector struct {
	engine.Replication
	effects []*keyspace.Effects
}

// Feed keeps the effects of a turn.
func (c *collector) Feed(e *keyspace.Effects) { c.effects = append(c.effects, e) }

// Follow begins the list of effects.
func (srv *Server) Follow() {
	srv.engine.Locked(func() {
		srv.engine.Replication = &collector{Replication: srv.engine.Replication}
		srv.engine.Keys.Follow(true)
	})
}

// TakeEffects returns the effects of each turn since it was last called. With sweep it
// first removes everything that has expired.
func (srv *Server) TakeEffects(sweep bool) (effects []*keyspace.Effects) {
	srv.engine.Locked(func() {
		if sweep {
			srv.engine.Keys.Sweep(math.MaxInt)
		}
	})
	srv.engine.Locked(func() {
		c := srv.engine.Replication.(*collector)
		effects, c.effects = c.effects, nil
	})
	return effects
}

// Match is what matches glob patterns.
func Match(pattern, s []byte, nocase bool) bool { return glob.Match(pattern, s, nocase) }

// MatchCompiled is Match as it is done for long patterns.
func MatchCompiled(pattern, s []byte, nocase bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	return glob.CompileGlob(pattern, nocase).Match(s)
}

// SkipChecksums makes RESTORE and FUNCTION RESTORE take what has a wrong one.
func (srv *Server) SkipChecksums() { srv.engine.Codec().SkipChecksums = true }

// PassDeadline gives a key of database 0 a deadline that has passed: whatever looks at
// it removes it.
func (srv *Server) PassDeadline(key string) {
	srv.engine.Locked(func() {
		db := srv.engine.Keys.DB(0)
		if e := db.Stored(protocol.BytesOf(key)); e != nil {
			db.SetDeadline(e, srv.engine.Keys.Now()-1000)
		}
	})
}

// Untouched reports whether nothing has looked at a key since PassDeadline.
func (srv *Server) Untouched(key string) bool {
	srv.engine.Mu.Lock()
	defer srv.engine.Mu.Unlock()
	e := srv.engine.Keys.DB(0).Stored(protocol.BytesOf(key))
	return e != nil && e.Deadline() != 0 && e.Deadline() < srv.engine.Keys.Now()
}
