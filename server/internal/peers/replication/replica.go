package replication

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// replica is the primary's view of a client that is, or may become, a replica. The
// engine's lock guards it.
type replica struct {
	session *engine.Session

	// Announced by REPLCONF.
	port      int64  // that it listens on; 0 if unknown
	address   string // that others reach it at; empty for that of the connection
	eof       bool   // it understands a transfer without a length
	psync2    bool   // it understands a new replication ID in +CONTINUE
	packed    bool   // it loads the types of Redis 7.0
	zsetd     bool   // it is a zsetd, which loads those of Redis 5.0 faster
	rdbOnly   bool   // it wants the data and no stream
	functions bool   // of the data it wants the function libraries only

	state        state
	old          bool // it has sent SYNC in place of PSYNC
	since        time.Time
	offset       int64     // acknowledged
	saved        int64     // acknowledged as on its disk; -1 before the first time
	acknowledged time.Time // when; or when the replica has come
	arrived      int64     // bytes that the replica has sent, and when that last changed
	heard        time.Time
	newline      time.Time // when the last byte was sent that only keeps the connection alive

	untaken int64     // bytes of a transfer in its output queue, when it was last looked at
	moved   time.Time // when these were last few, or have become fewer

	next int64 // offset up to which the stream is in its output queue, or in the data that it receives
}

// state is how far the synchronization of a replica is.
type state uint8

const (
	unsynchronized state = iota
	waiting              // for a transfer to begin
	receiving            // the data
	loading              // the data were sent; it has not acknowledged them
	online               // it receives the stream
	gone
)

// stateName returns the state as INFO does. In Redis "wait_bgsave" includes the time in which
// its child writes a file, or sends the data itself.
func (r *replica) stateName(t *transfer) string {
	switch {
	case r.state == receiving && t != nil && t.length:
		return "send_bulk"
	case r.state == waiting, r.state == receiving:
		return "wait_bgsave"
	case r.state == loading && r.rdbOnly:
		return "rdb_transmitted"
	}
	return "online"
}

// linkOf returns what is known of a client.
func linkOf(s *engine.Session) *replica {
	if r, ok := s.Modes.Link.(*replica); ok {
		return r
	}
	r := &replica{session: s, saved: -1}
	s.Modes.Link = r
	return r
}

// host returns the address that others reach the replica at.
func (r *replica) host() string {
	if r.address != "" {
		return r.address
	}
	host, _, err := net.SplitHostPort(r.session.Peer.Addr)
	if err != nil {
		return strings.TrimSuffix(r.session.Peer.Addr, ":0")
	}
	return host
}

// lag returns the seconds since the last acknowledgement; 0 before the first.
func (r *replica) lag() int64 {
	if r.state != online {
		return 0
	}
	return int64(time.Since(r.acknowledged) / time.Second)
}

// name identifies the replica in the log.
func (r *replica) name() string {
	if r.port == 0 {
		return "client id #" + strconv.FormatInt(r.session.ID, 10)
	}
	return net.JoinHostPort(r.host(), strconv.FormatInt(r.port, 10))
}

// needs reports whether the replica needs the stream from next on.
func (r *replica) needs() bool {
	return r.session.End == engine.Serving && (r.state == online || (r.state == receiving || r.state == loading) && !r.rdbOnly)
}

// window is how many bytes of the stream, or of a transfer, wait in the output queue of a replica
// at most. The rest waits in the backlog, or is not encoded yet.
const window = 1 << 20

// receive passes the stream on to a replica that is online, as far as its output queue has
// space. It closes a replica that is too far behind.
func (r *replica) receive(b *backlog) {
	for r.needs() {
		part := b.at(r.next)
		ready := r.state == online && len(part) > 0 && r.session.Backlog() <= window
		if ready {
			part = part[:min(len(part), partSize)]
			r.next += int64(len(part))
		}
		r.session.Owe(b.end - r.next)
		if !ready {
			return
		}
		r.session.Append(part)
	}
}

// stuck looks how much of a transfer waits for the replica. One that has taken nothing for the
// timeout is disconnected: others that share the transfer go on.
func (r *replica) stuck(now time.Time, timeout time.Duration) bool {
	before := r.untaken
	if r.untaken = r.session.Backlog(); r.untaken <= window || r.untaken != before {
		r.moved = now
	}
	if now.Sub(r.moved) <= timeout {
		return false
	}
	r.session.Engine.Log.Warn("Disconnecting timedout replica (full sync): " + r.name())
	r.session.Kill()
	return true
}

// acknowledge records how much of the stream the replica has.
func (r *replica) acknowledge(offset int64) {
	r.acknowledged = time.Now()
	r.offset = max(r.offset, offset)
	if r.state == loading {
		r.state = online
		of(r.session.Engine).supply()
		r.session.Engine.Log.Info("synchronization with replica succeeded", "replica", r.name())
	}
}

// onTick disconnects a replica that is silent for too long, and keeps the connection of
// one that waits alive.
func (r *replica) onTick(now time.Time, timeout time.Duration) {
	switch r.state {
	case waiting:
		if now.Sub(r.newline) >= time.Second {
			r.newline = now
			r.session.Append([]byte("\n"))
		}
	case loading:
		if r.rdbOnly && now.Sub(r.since) >= time.Second { // it had the time to close by itself
			r.session.EndStream()
			return
		}
		fallthrough
	case online:
		if c := r.session.Peer.Conn; c != nil && c.Arrived() != r.arrived { // newlines, while it loads
			r.arrived, r.heard = c.Arrived(), now
		}
		if !r.old && now.Sub(r.acknowledged) > timeout && now.Sub(r.heard) > timeout {
			r.session.Engine.Log.Warn("disconnecting replica: it is silent for longer than repl-timeout", "replica", r.name())
			r.session.Kill()
		}
	}
}
