package differential

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/wiring"
)

// allCommands returns the facts of all commands, subcommands in place of their
// containers.
func allCommands() (specs []*protocol.Command) {
	engine.NewTable(wiring.Families()).Each(func(c *engine.Command) {
		if len(c.Subcommands) == 0 {
			specs = append(specs, c.Spec)
		}
	})
	return specs
}

// subject is a server of whose engine a test sees more than clients do.
type subject struct{ *enginetest.Server }

func newSubject(config map[string]string) (*subject, error) {
	srv, err := enginetest.New(engine.Options{Config: config})
	return &subject{srv}, err
}

// Direct is a session without a transport, for tests that run many commands and
// want to know after each what it has done.
type Direct struct {
	srv  *engine.Engine
	sess *engine.Session
}

// Direct returns a session with all permissions. The server's random seed is fixed, and
// its timer removes nothing, so that runs are deterministic.
func (srv *subject) Direct() *Direct {
	srv.Mu.Lock()
	srv.Rand = rand.New(rand.NewPCG(1, 2))
	srv.Timers.ActiveExpire = false
	srv.Mu.Unlock()
	d := &Direct{srv: srv.Engine}
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
		d.srv.InTurn(func() {
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
func (srv *subject) LimitScripts(bytes uint64) {
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	srv.Scripting.MemoryLimit = bytes
}

// Digest returns a sum of all keys, with their values and deadlines. soon says that one of
// them may expire within a minute: then two digests may differ though nothing was changed.
func (srv *subject) Digest() (sum string, soon bool) { return enginetest.Digest(srv.Engine) }

// collector is a replication that keeps the effects of turns.
type collector struct {
	engine.Replication
	effects []*keyspace.Effects
}

// Feed keeps the effects of a turn.
func (c *collector) Feed(e *keyspace.Effects) { c.effects = append(c.effects, e) }

// Follow begins the list of effects.
func (srv *subject) Follow() {
	srv.InTurn(func() {
		srv.Replication = &collector{Replication: srv.Replication}
		srv.Keys.Follow(true)
	})
}

// TakeEffects returns the effects of each turn since it was last called. With sweep it
// first removes everything that has expired.
func (srv *subject) TakeEffects(sweep bool) (effects []*keyspace.Effects) {
	srv.InTurn(func() {
		if sweep {
			srv.Keys.Sweep(math.MaxInt)
		}
	})
	srv.InTurn(func() {
		c := srv.Replication.(*collector)
		effects, c.effects = c.effects, nil
	})
	return effects
}

// SkipChecksums makes RESTORE and FUNCTION RESTORE take what has a wrong one.
func (srv *subject) SkipChecksums() { srv.Codec().SkipChecksums = true }

// PassDeadline gives a key of database 0 a deadline that has passed: whatever looks at
// it removes it.
func (srv *subject) PassDeadline(key string) {
	srv.InTurn(func() {
		db := srv.Keys.DB(0)
		if e := db.Stored(protocol.BytesOf(key)); e != nil {
			db.SetDeadline(e, srv.Keys.Now()-1000)
		}
	})
}

// Untouched reports whether nothing has looked at a key since PassDeadline.
func (srv *subject) Untouched(key string) bool {
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	e := srv.Keys.DB(0).Stored(protocol.BytesOf(key))
	return e != nil && e.Deadline() != 0 && e.Deadline() < srv.Keys.Now()
}
