package engine

import (
	"fmt"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// CommandLog keeps the latest commands that exceeded a limit, the newest last.
type CommandLog struct {
	Entries []CommandLogEntry
	lastID  int64
}

// CommandLogEntry is one command in a log.
type CommandLogEntry struct {
	ID         int64
	At         int64 // seconds since 1970
	Value      int64 // microseconds of the slow log, bytes of the others
	Argv       []string
	Addr, Name string
}

// The numbers of arguments that an entry keeps, and of bytes of each.
const (
	slowlogArgs     = 32
	slowlogArgBytes = 128
)

// note enters a command whose value is at least from, and removes the oldest entries above limit.
// A log whose from is negative, or whose limit is 0, stays as it is.
func (l *CommandLog) note(c *Call, now time.Time, value, from, limit int64) {
	if from < 0 || limit == 0 || value < from && int64(len(l.Entries)) <= limit || c.Command.Spec.Flags().Has(protocol.SkipSlowlog) {
		return
	}
	if value >= from {
		l.add(c, now, value)
	}
	if n := len(l.Entries) - ClampInt(limit); n > 0 {
		clear(l.Entries[:n])
		l.Entries = l.Entries[n:]
	}
}

// add enters a command.
func (l *CommandLog) add(c *Call, now time.Time, value int64) {
	client := c.Session
	if c.OfScript && c.Engine.Config.Valkey() {
		client = c.Engine.Scripting.Running.Caller
	}
	e := CommandLogEntry{ID: l.lastID, At: now.Unix(), Value: value, Addr: client.Peer.Addr, Name: client.Login.Name}
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
}
