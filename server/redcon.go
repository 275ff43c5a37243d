package server

import (
	"strings"
	"sync"
	"time"

	"github.com/tidwall/redcon"
	"github.com/zsetd/zsetd/server/internal/peers/transport"
)

// Redcon mounts srv in a program that runs a redcon server: it returns the three
// functions of redcon.ListenAndServe, redcon.Serve and similar. The program passes all
// three, or calls them from functions of its own.
//
//	handler, accept, closed := server.Redcon(srv)
//	err := redcon.ListenAndServe(":6380", handler, accept, closed)
//
// Each connection is a client of srv like any other, with a session, the commands of
// srv, transactions, RESP3, the ACL, maxclients and the limits of output. The handler
// runs the rest of a pipeline at once (ReadPipeline), so it is called once for each
// pipeline. A connection that subscribes, blocks, or receives anything else that it has
// not requested (MONITOR, CLIENT TRACKING) is detached from the redcon server, and
// served by goroutines of srv from then on: the closed function of a program that wraps
// the one returned is called then, with an error, and not again.
//
// Close and Shutdown of srv close the connections, but not the redcon server. Close the
// redcon server first, then srv; both wait for no client. Shutdown runs the commands
// that redcon has read, and not those that are still in the socket. A program that
// leaves out the closed function keeps Close waiting.
//
// The commands are read and parsed by redcon, which trusts its clients. [Server.Serve]
// has none of these limits, and is the choice for clients that are not trusted:
//
//   - There is no limit on the size of a command, nor on those that wait behind it,
//     neither before AUTH nor after it: client-query-buffer-limit and
//     proto-max-bulk-len have no effect. The memory of input does not count for
//     maxmemory-clients.
//   - A request with an overflowing length panics in a goroutine of redcon, which ends
//     the program (redcon 1.6.2).
//   - Replies are written before more is read, so a client that sends a pipeline
//     without reading replies can come to a stop.
//   - Errors in the protocol have redcon's texts; "*0" and empty lines of the inline
//     form are treated in its way, too.
func Redcon(srv *Server) (handler func(redcon.Conn, redcon.Command), accept func(redcon.Conn) bool, closed func(redcon.Conn, error)) {
	m := &redconMount{srv: srv.transport}
	return m.handle, m.accept, m.closed
}

// redconMount serves the connections of a redcon server.
type redconMount struct {
	srv   *transport.Transport
	conns sync.Map // redcon.Conn to *transport.Attached, while redcon serves it
}

// maxBuffered is how many bytes of replies may wait in redcon's buffer while a pipeline
// runs.
const maxBuffered = 64 << 10

func (m *redconMount) accept(conn redcon.Conn) bool {
	c, refusal := m.srv.Attach(conn.NetConn())
	if c == nil {
		conn.WriteRaw([]byte(refusal))
		return false
	}
	m.conns.Store(conn, c)
	return true
}

func (m *redconMount) closed(conn redcon.Conn, _ error) {
	if c, ok := m.conns.LoadAndDelete(conn); ok {
		c := c.(*transport.Attached)
		c.End(func([]byte) error { return nil }) // the connection is closed
		c.Done()
	}
}

func (m *redconMount) handle(conn redcon.Conn, cmd redcon.Command) {
	found, ok := m.conns.Load(conn)
	if !ok { // another accept function has accepted it
		conn.WriteError("ERR the functions of server.Redcon belong together")
		conn.Close()
		return
	}
	c := found.(*transport.Attached)
	var in redconInput
	in.add(cmd)
	for _, next := range conn.ReadPipeline() {
		in.add(next)
	}
	w := redcon.BaseWriter(conn) // nil if the program wraps the connection
	rest, progress := c.Run(in.commands, in.bytes, func(b []byte) error {
		conn.WriteRaw(b)
		if w != nil && (b == nil || len(w.Buffer()) > maxBuffered) {
			return w.Flush()
		}
		return nil
	})
	switch progress {
	case transport.Ended:
		conn.Close()
	case transport.Detach:
		m.conns.Delete(conn)
		go serveDetached(conn.Detach(), c, rest)
	}
}

// redconInput is a list of commands.
type redconInput struct {
	commands [][][]byte
	bytes    int // as they arrived, about
}

func (in *redconInput) add(cmd redcon.Command) {
	in.commands = append(in.commands, cmd.Args)
	in.bytes += len(cmd.Raw)
}

// gather adds a command and those that have arrived behind it. It returns false when
// the input has ended.
func (in *redconInput) gather(cmd redcon.Command, input <-chan redcon.Command) (open bool) {
	for {
		in.add(cmd)
		if len(in.commands) >= maxDetachedBatch {
			return true
		}
		select {
		case cmd, open = <-input:
			if !open {
				return false
			}
		default:
			return true
		}
	}
}

const (
	// maxDetachedBatch is how many commands of a detached connection run in one go.
	maxDetachedBatch = 64
	// maxDetachedWaiting is how many commands of a blocked connection are read ahead.
	maxDetachedWaiting = 1 << 10
)

// serveDetached serves a detached connection until its end. A second goroutine reads
// commands, so that the end of the connection is noticed while the session is blocked.
func serveDetached(d redcon.DetachedConn, c *transport.Attached, commands [][][]byte) {
	defer c.Done()
	d.NetConn().SetReadDeadline(time.Time{}) // that of redcon's idle timeout
	if c.Leaving() {
		d.NetConn().SetReadDeadline(time.Unix(1, 0))
	}
	write := func(b []byte) error {
		d.WriteRaw(b)
		return d.Flush()
	}
	input, failed := make(chan redcon.Command, maxDetachedBatch), ""
	go func() {
		defer close(input)
		defer func() {
			if p := recover(); p != nil { // of redcon's parser
				c.Lost(p)
			}
		}()
		for {
			cmd, err := d.ReadCommand()
			if err != nil {
				if strings.HasPrefix(err.Error(), "Protocol error") {
					failed = err.Error()
				}
				return
			}
			input <- cmd
		}
	}()
	defer func() {
		c.End(write)
		for range input { // until the reader has ended
		}
	}()
	d.Flush() // the replies that precede
	in := redconInput{commands: commands}
	for open := true; ; {
		rest, progress := c.Run(in.commands, in.bytes, write)
		in = redconInput{commands: rest}
		switch {
		case progress == transport.Ended:
			return
		case !open:
			if failed != "" {
				d.WriteError("ERR " + failed)
				d.Flush()
			}
			return
		}
		from := input
		if len(rest) >= maxDetachedWaiting {
			from = nil
		}
		select {
		case <-c.Woken:
		case cmd, more := <-from:
			open = more && in.gather(cmd, input)
		}
	}
}
