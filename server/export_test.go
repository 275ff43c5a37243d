package server

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// BlockedClients returns how many clients are blocked.
func (srv *Server) BlockedClients() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.blockedClients
}

// Taken returns how many commands have run or wait: blocked clients count as one.
func (srv *Server) Taken() int64 {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.commands + int64(srv.blockedClients)
}

// Commands returns the facts of all commands, subcommands in place of their
// containers.
func (srv *Server) Commands() []*protocol.Command {
	var specs []*protocol.Command
	for _, c := range srv.table.rows {
		if len(c.subcommands) == 0 {
			specs = append(specs, c.spec)
		}
		for i := range c.subcommands {
			specs = append(specs, c.subcommands[i].spec)
		}
	}
	return specs
}

// Direct is a session without a transport, for tests that run many commands and
// want to know after each what it has done.
type Direct struct {
	srv  *Server
	sess *Session
}

// Direct returns a session with all permissions. The server's random seed is fixed, and
// its timer removes nothing, so that runs are deterministic.
func (srv *Server) Direct() *Direct {
	srv.mu.Lock()
	srv.rand = rand.New(rand.NewPCG(1, 2))
	srv.activeExpire = false
	srv.mu.Unlock()
	d := &Direct{srv: srv}
	d.open()
	return d
}

func (d *Direct) open() {
	d.sess = d.srv.newSession(peer{addr: "127.0.0.1:1", laddr: "127.0.0.1:2", fd: -1, wake: func() {}})
	d.sess.setOwner()
}

// Do runs a command and returns the replies. It never blocks: a blocked command gets the
// reply of its timeout at once, a pause ends, and a script that is reported as busy is
// killed. When the session has ended, Do opens another.
func (d *Direct) Do(argv [][]byte) []byte {
	if cmd, _ := d.srv.table.find(argv); cmd != nil && cmd.Group == "scripting" || cmd != nil && cmd.Name == "exec" {
		defer d.watch()()
	}
	_, out, ending := d.sess.turn([][][]byte{argv}, nil)
	out = slices.Clone(out)
	d.sess.written()
	if d.sess.stalled.Load() {
		d.srv.do(func() {
			if d.srv.pausedUntil != 0 {
				d.srv.unpause()
			}
			if w := d.sess.blocked; w != nil {
				d.sess.endWait(w, w.timeout)
			}
		})
		more, killed, closed := d.sess.take()
		out, ending = append(out, more...), ending || killed || closed
		d.sess.written()
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
func (d *Direct) Close() { d.sess.close() }

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
				d.srv.mu.Lock()
				if r := d.srv.scripting.running; r != nil && d.srv.busy {
					r.killed = true
				}
				d.srv.mu.Unlock()
			}
		}
	}()
	return func() { close(done) }
}

// LimitScripts sets by how much the process may grow while a script runs.
func (srv *Server) LimitScripts(bytes uint64) { srv.scripting.memoryLimit = bytes }

// Changes returns how many changes there were since it was last called.
func (srv *Server) Changes() int64 {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	n := srv.scope.changes
	srv.scope.changes = 0
	return n
}

// Digest returns a sum of all keys, with their values and deadlines. soon says that one of
// them may expire within a minute: then two digests may differ though nothing was changed.
func (srv *Server) Digest() (sum string, soon bool) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	var all digest
	for _, db := range srv.keys.DBs() {
		for e := range db.All() {
			var d digest
			d.mixInt(uint32(db.ID()))
			d.mix(bytesOf(e.Key()))
			d.mix(strconv.AppendInt(nil, e.Deadline(), 10))
			d.add(e)
			all.xor(d[:])
		}
	}
	return all.String(), srv.keys.Head() < srv.clock().UnixMilli()+60_000
}

// Match is what matches glob patterns.
func Match(pattern, s []byte, nocase bool) bool { return match(pattern, s, nocase) }

// MatchCompiled is Match as it is done for long patterns.
func MatchCompiled(pattern, s []byte, nocase bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	return compileGlob(pattern, nocase).match(s)
}

// SkipChecksums makes RESTORE and FUNCTION RESTORE take what has a wrong one.
func (srv *Server) SkipChecksums() { srv.codec().SkipChecksums = true }

// UnderRace says that the race detector is on, under which a single goroutine only takes ten times as long.
const UnderRace = underRace

// PassDeadline gives a key of database 0 a deadline that has passed: whatever looks at
// it removes it.
func (srv *Server) PassDeadline(key string) {
	srv.do(func() {
		db := srv.keys.DB(0)
		if e := db.Stored(bytesOf(key)); e != nil {
			db.SetDeadline(e, srv.keys.Now()-1000)
		}
	})
}

// Untouched reports whether nothing has looked at a key since PassDeadline.
func (srv *Server) Untouched(key string) bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	e := srv.keys.DB(0).Stored(bytesOf(key))
	return e != nil && e.Deadline() != 0 && e.Deadline() < srv.keys.Now()
}
