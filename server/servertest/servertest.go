package servertest

import (
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
)

// Server is a server that belongs to a test. Its methods are those of
// [server.Server] and some more; all are safe for concurrent use.
type Server struct {
	*server.Server
	t testing.TB

	listen  sync.Once
	addr    string
	serving sync.WaitGroup
}

// Run starts an empty server, which is closed and verified when the test and
// its subtests have ended. The options, at most one, are those of
// [server.New]; unless they hold a Logger, the server logs to the output of
// the test.
func Run(t testing.TB, options ...server.Options) *Server {
	t.Helper()
	var o server.Options
	switch len(options) {
	case 0:
	case 1:
		o = options[0]
	default:
		t.Fatalf("servertest: Run takes one server.Options, not %d", len(options))
	}
	if o.Logger == nil {
		if o.LogLevel == nil {
			o.LogLevel = new(slog.LevelVar)
		}
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: o.LogLevel}))
	}
	srv, err := server.New(o)
	if err != nil {
		t.Fatalf("servertest: %v", err)
	}
	s := &Server{Server: srv, t: t}
	t.Cleanup(s.end)
	return s
}

func (s *Server) end() {
	if err := s.Close(); err != nil {
		s.t.Errorf("servertest: close: %v", err)
	}
	s.serving.Wait()
	if err := s.Check(); err != nil {
		s.t.Errorf("servertest: %v", err)
	}
}

// Addr returns the address, like "127.0.0.1:41234", at which the server
// accepts clients. It listens from the first call on, on a free port of the
// loopback interface.
func (s *Server) Addr() string {
	s.t.Helper()
	s.listen.Do(func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.t.Errorf("servertest: %v", err)
			return
		}
		s.addr = l.Addr().String()
		s.serving.Go(func() {
			if err := s.Serve(l); err != server.ErrServerClosed {
				s.t.Errorf("servertest: serve: %v", err)
			}
		})
	})
	return s.addr
}

// Must executes a command as [server.Server.Do] does and returns its reply. An
// error fails the test, which continues with nil for the reply.
func (s *Server) Must(args ...any) any {
	s.t.Helper()
	reply, err := s.Do(s.t.Context(), args...)
	if err != nil {
		s.t.Errorf("%v: %v", args, err)
	}
	return reply
}

// SetTime sets the server's clock, which runs on from there. Everything due by then
// has happened when SetTime returns. A time that is not in the years 1970 to 2261 fails the
// test, which continues with the clock as it is.
func (s *Server) SetTime(t time.Time) {
	s.t.Helper()
	s.Advance(t.Sub(s.Now()))
}

// Advance moves the server's clock as [server.Server.Advance] does. A time that is not in the
// years 1970 to 2261 fails the test, which continues with the clock as it is.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	if year := s.Now().UTC().Add(d).Year(); year < 1970 || year > 2261 {
		s.t.Errorf("servertest: the clock cannot advance by %v to the year %d, only in 1970 to 2261", d, year)
		return
	}
	s.Server.Advance(d)
}
