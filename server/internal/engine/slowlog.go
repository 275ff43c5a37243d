package engine

import (
	"fmt"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// slowLog keeps the latest slow commands, the newest last.
type slowLog struct {
	Entries []slowEntry
	lastID  int64
}

type slowEntry struct {
	ID         int64
	At         int64 // seconds since 1970
	Took       int64 // microseconds
	Argv       []string
	Addr, Name string
}

// The numbers of arguments that an entry keeps, and of bytes of each.
const (
	slowlogArgs     = 32
	slowlogArgBytes = 128
)

// logSlow enters a command in the slow log.
func (srv *Engine) logSlow(c *Call, now time.Time, took time.Duration) {
	limit := ClampInt(srv.Config.SlowlogMaxLen)
	if c.Command.Spec.Flags().Has(protocol.SkipSlowlog) {
		return
	}
	l := &srv.Slowlog
	e := slowEntry{ID: l.lastID, At: now.Unix(), Took: took.Microseconds(), Addr: c.Session.Addr, Name: c.Session.Name}
	l.lastID++
	e.Argv = make([]string, min(len(c.Argv), slowlogArgs))
	for i := range e.Argv {
		arg := c.shown(i)
		switch {
		case i == slowlogArgs-1 && len(c.Argv) > slowlogArgs:
			e.Argv[i] = fmt.Sprintf("... (%d more arguments)", len(c.Argv)-slowlogArgs+1)
		case len(arg) > slowlogArgBytes:
			e.Argv[i] = fmt.Sprintf("%s... (%d more bytes)", arg[:slowlogArgBytes], len(arg)-slowlogArgBytes)
		default:
			e.Argv[i] = string([]byte(arg))
		}
	}
	l.Entries = append(l.Entries, e)
	if n := len(l.Entries) - limit; n > 0 {
		clear(l.Entries[:n])
		l.Entries = l.Entries[n:]
	}
}
