package transport

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestAlarm checks that a key expires at its deadline, with the timer of a loop, and with
// that of the runtime where the system has no timer descriptors; and also after the loop
// has ended.
func TestAlarm(t *testing.T) {
	for _, c := range []struct {
		name   string
		create func() (int, error)
		alarm  bool
	}{
		{"timer descriptor", createTimer, true},
		{"no timer descriptors", func() (int, error) { return -1, unix.ENOSYS }, false},
		{"a descriptor that epoll refuses", func() (int, error) { return unix.MemfdCreate("", 0) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTransport(t, engine.Options{})
			l, err := newLoop(tr)
			if err != nil {
				t.Fatal(err)
			}
			if l.useAlarm(c.create); (l.alarm != nil) != c.alarm {
				t.Errorf("the loop has an alarm: %v", l.alarm != nil)
			}
			tr.loops.all = append(tr.loops.all, l)
			tr.loops.gone.Go(l.run)
			expires(t, tr.engine, 1)
			tr.loops.stop()
			expires(t, tr.engine, 2)
		})
	}
}

// expires adds a key with a deadline, and waits until the server has removed the given
// number of expired keys.
func expires(t *testing.T, e *engine.Engine, removed int64) {
	t.Helper()
	e.InTurn(func() {
		db := e.Keys.DB(0)
		db.SetDeadline(db.AddString([]byte("key"), []byte("value"), true), e.Keys.Now()+5)
	})
	wait.Until(t, "the key has expired", func() bool {
		var n int64
		e.OutOfTurn(func() { n = e.Stats.ExpiredKeys })
		return n == removed
	})
}
