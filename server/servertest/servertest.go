package servertest

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
)

// Server is a server that belongs to a test. Its methods are those of
// [server.Server] and some more; all are safe for concurrent use, but for
// [Server.Start] and [Server.StartEmpty].
type Server struct {
	*server.Server
	t       testing.TB
	options server.Options
	folder  string // of the data that Stop keeps; "" for none

	mu      sync.Mutex // guards the rest, and Server while it is replaced
	plain   *listening // what Addr returns
	secure  *listening // what TLS returns
	client  *tls.Config
	stopped bool
	stands  bool
	seed    *uint64
	serving sync.WaitGroup
	faults  faults
	join    func(*server.Server) // a node of a cluster: what it is told when it starts
}

// listening is an address at which the server accepts clients.
type listening struct {
	addr string
	tls  *tls.Config // nil for an address without TLS
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
	s := &Server{Server: srv, t: t, options: o}
	t.Cleanup(s.end)
	return s
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
	if s.folder != "" {
		if err := os.RemoveAll(s.folder); err != nil {
			s.t.Errorf("servertest: %v", err)
		}
	}
}

// close closes and verifies the server. The lock is held.
func (s *Server) close() {
	if s.stopped {
		return
	}
	s.stopped = true
	if err := s.Server.Close(); err != nil {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plain == nil {
		s.plain = new(listening)
		s.listen(s.plain)
	}
	return s.plain.addr
}

// TLS returns the address at which the server accepts clients with TLS, and the configuration of a
// client, which trusts the server's certificate:
//
//	addr, config := srv.TLS()
//	client := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: config})
//
// The certificate is generated at the first call, and names localhost, 127.0.0.1 and ::1.
// Clients need none. The parameters whose names begin with tls- have no effect on it.
func (s *Server) TLS() (addr string, client *tls.Config) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secure == nil {
		config, client, err := certificate()
		if err != nil {
			s.t.Errorf("servertest: %v", err)
			return "", nil
		}
		s.secure, s.client = &listening{tls: config}, client
		s.listen(s.secure)
	}
	return s.secure.addr, s.client.Clone()
}

// listen begins to accept clients at an address, unless the server is stopped. The lock is held.
func (s *Server) listen(at *listening) {
	s.t.Helper()
	if s.stopped {
		s.t.Error("servertest: the server is stopped")
		return
	}
	addr := at.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		s.t.Errorf("servertest: %v", err)
		return
	}
	at.addr = l.Addr().String()
	if at.tls != nil {
		l = tls.NewListener(l, at.tls)
	}
	srv := s.Server
	s.serving.Go(func() {
		if err := srv.Serve(l); err != server.ErrServerClosed {
			s.t.Errorf("servertest: serve: %v", err)
		}
	})
}

// Stop stops the server, keeps its data for [Server.Start], and closes all connections. Clients cannot
// connect, and Do returns [server.ErrServerClosed]. All writes that were acknowledged are among the data, unless
// options with a File say otherwise (save "").
func (s *Server) Stop() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	if s.options.File == "" || s.folder != "" {
		if err := s.keep(); err != nil {
			s.t.Errorf("servertest: the data are not kept: %v", err)
		}
	}
	s.close()
}

// keep writes the data to the file with which Start begins. Writes wait from then on.
func (s *Server) keep() (err error) {
	ctx := context.WithoutCancel(s.t.Context())
	if _, err := s.Do(ctx, "CLIENT", "PAUSE", int64(time.Hour/time.Millisecond), "WRITE"); err != nil {
		return err
	}
	if s.folder != "" {
		return s.Save(ctx)
	}
	if s.folder, err = os.MkdirTemp("", "servertest"); err != nil {
		return err
	}
	s.options.File = filepath.Join(s.folder, "kept.db")
	return s.BackupFile(ctx, s.options.File)
}

// Start starts a stopped server again, with its data, at the same addresses. It is another process to
// clients: scripts, subscriptions, statistics and what CONFIG SET has set are gone. The clock, faults and
// a seed go on. From then on the server keeps its data in a file. No other goroutine may use
// srv meanwhile; clients may.
func (s *Server) Start() {
	s.t.Helper()
	s.start(true)
}

// StartEmpty is [Server.Start] without the data.
func (s *Server) StartEmpty() {
	s.t.Helper()
	s.start(false)
}

func (s *Server) start(keep bool) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.t.Errorf("servertest: the server runs: Stop stops it")
		return
	}
	o := s.options
	if !keep && o.File != "" {
		if err := os.Remove(o.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.t.Fatalf("servertest: %v", err)
		}
	}
	// A minute before the time of the stopped server, so that the data are loaded before any of them expires.
	at := s.Now()
	if o.Now = at.Add(-time.Minute); o.Now.Unix() < 0 {
		o.Now = at
	}
	srv, err := server.New(o)
	if err == nil {
		err = srv.Ready(context.WithoutCancel(s.t.Context()))
	}
	if err != nil {
		s.t.Fatalf("servertest: %v", err)
	}
	s.Server, s.stopped = srv, false
	if s.stands {
		s.simulate(srv.Simulation().StopClock(true))
	}
	srv.Advance(at.Sub(srv.Now()))
	if s.seed != nil {
		s.simulate(srv.Simulation().Seed(*s.seed))
	}
	if s.join != nil {
		s.join(srv)
	}
	if s.faults.used {
		s.simulate(srv.Simulation().Intercept(s.faults.decide))
	}
	for _, at := range []*listening{s.plain, s.secure} {
		if at != nil {
			s.listen(at)
		}
	}
}

// Dialer is [server.Server.Dialer]. The function connects to the server that runs when it is called.
func (s *Server) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		s.mu.Lock()
		srv := s.Server
		s.mu.Unlock()
		return srv.Dialer()(ctx, network, addr)
	}
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

// SetTime sets the server's clock, which runs on from there, unless it stands. Everything due by then
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

// StopClock makes the clock of the server stand still: TTL, TIME and the IDs of streams are exactly
// those that the test expects, and only [Server.Advance] and [Server.SetTime] make keys expire and
// blocked clients time out.
func (s *Server) StopClock() { s.t.Helper(); s.stand(true) }

// StartClock lets the clock run on from where it stands.
func (s *Server) StartClock() { s.t.Helper(); s.stand(false) }

func (s *Server) stand(still bool) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stands = still
	s.simulate(s.Simulation().StopClock(still))
}

// Seed makes the replies of random commands repeatable: SPOP, SRANDMEMBER, HRANDFIELD, ZRANDMEMBER and
// RANDOMKEY. After the same seed, with the same data, the same commands have the same replies,
// in each run of the test.
func (s *Server) Seed(seed uint64) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seed = &seed
	s.simulate(s.Simulation().Seed(seed))
}

// simulate reports an error of the control of the server.
func (s *Server) simulate(err error) {
	s.t.Helper()
	if err != nil && !errors.Is(err, server.ErrServerClosed) {
		s.t.Errorf("servertest: %v", err)
	}
}
