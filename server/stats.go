package server

import (
	"strings"
	"sync/atomic"
	"time"
)

// stats are the counters behind INFO. Those without a note are guarded by the
// server's lock.
type stats struct {
	commands       int64
	connections    int64
	expiredKeys    int64
	keyspaceHits   int64
	keyspaceMisses int64
	blockedClients int
	errors         map[string]int64 // by the first word of the error
	errorReplies   int64

	outputLimitDisconnections int64

	input, output atomic.Int64 // bytes
	rejected      atomic.Int64 // connections
}

// commandStats are the counters of one command, guarded by the server's lock.
type commandStats struct {
	calls    int64
	time     time.Duration
	rejected int64 // stopped before they ran
	failed   int64 // replied an error
}

func (srv *Server) countInput(n int)  { srv.input.Add(int64(n)) }
func (srv *Server) countOutput(n int) { srv.output.Add(int64(n)) }
func (srv *Server) refused()          { srv.rejected.Add(1) }

// account closes the books on a call whose reply starts at mark.
func (srv *Server) account(c *Call, mark int) {
	now := srv.clock()
	took := now.Sub(srv.at)
	srv.at = now // the next unit of this turn starts here; its clock stands still
	srv.commands++
	c.cmd.stats.calls++
	c.cmd.stats.time += took
	if out := c.Reply.Bytes(); len(out) > mark && out[mark] == '-' {
		c.cmd.stats.failed++
		line, _, _ := strings.Cut(string(out[mark+1:]), "\r")
		srv.countError(line)
	}
}

// countError counts an error reply by its code.
func (srv *Server) countError(msg string) {
	srv.errorReplies++
	code, _, _ := strings.Cut(msg, " ")
	if srv.errors == nil {
		srv.errors = map[string]int64{}
	}
	srv.errors[code]++
}

// resetStats sets the counters that CONFIG RESETSTAT resets to zero.
func (srv *Server) resetStats() {
	srv.stats.reset()
	for _, c := range srv.table.rows {
		c.resetStats()
	}
}

func (s *stats) reset() {
	blocked := s.blockedClients
	s.commands, s.connections, s.expiredKeys, s.keyspaceHits, s.keyspaceMisses = 0, 0, 0, 0, 0
	s.errors, s.errorReplies, s.outputLimitDisconnections = nil, 0, 0
	s.blockedClients = blocked
	s.input.Store(0)
	s.output.Store(0)
	s.rejected.Store(0)
}

func (c *Command) resetStats() {
	c.stats = commandStats{}
	for i := range c.subcommands {
		c.subcommands[i].resetStats()
	}
}
