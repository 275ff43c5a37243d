package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// tell runs a command line in a session and returns the content of its output queue.
func tell(t *testing.T, s *engine.Session, line string) string {
	t.Helper()
	argv, ok := protocol.SplitArgs(nil, []byte(line))
	if !ok {
		t.Fatal(line)
	}
	out, _ := enginetest.Turn(s, argv)
	s.Written()
	return string(out)
}

// heard returns the output of a session from the turns of others.
func heard(s *engine.Session) string {
	var all []byte
	for out, _, _ := s.Take(); out != nil; out = s.Written() {
		all = append(all, out...)
	}
	return string(all)
}

// newSessions returns a server and sessions.
func newSessions(t *testing.T, n int) (*enginetest.Server, []*engine.Session) {
	t.Helper()
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	list := make([]*engine.Session, n)
	for i := range list {
		list[i] = srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	}
	return srv, list
}

func invalidation(keys ...string) string {
	b := fmt.Sprintf("*%d\r\n", len(keys))
	for _, key := range keys {
		b += fmt.Sprintf("$%d\r\n%s\r\n", len(key), key)
	}
	return b
}

func TestTrackingRedirect(t *testing.T) {
	srv, c := newSessions(t, 3)
	reader, writer, ear := c[0], c[1], c[2]
	const message = "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n"
	const push = ">2\r\n$10\r\ninvalidate\r\n"
	id := strconv.FormatInt(ear.ID, 10)
	tell(t, reader, "CLIENT TRACKING ON REDIRECT "+id)
	if got := tell(t, reader, "CLIENT GETREDIR"); got != ":"+id+"\r\n" {
		t.Errorf("GETREDIR: %q", got)
	}
	if line := tell(t, reader, "CLIENT LIST ID "+strconv.FormatInt(reader.ID, 10)); !strings.Contains(line, " flags=t ") ||
		!strings.Contains(line, " redir="+id+" ") {
		t.Errorf("CLIENT LIST: %q", line)
	}
	change := func(want string) {
		t.Helper()
		tell(t, reader, "GET k")
		tell(t, writer, "SET k 1")
		if got := heard(ear); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := heard(reader); got != "" {
			t.Errorf("the reader hears %q itself", got)
		}
	}
	change("") // the other one is not subscribed
	tell(t, ear, "SUBSCRIBE elsewhere")
	change(message + invalidation("k"))
	tell(t, writer, "FLUSHALL")
	if got, want := heard(ear), message+"$-1\r\n"; got != want {
		t.Errorf("FLUSHALL: %q, want %q", got, want)
	}
	tell(t, reader, "HELLO 3")
	tell(t, writer, "FLUSHALL") // a null in the protocol version of the receiver
	if got, want := heard(ear), message+"$-1\r\n"; got != want {
		t.Errorf("FLUSHALL: %q, want %q", got, want)
	}
	tell(t, ear, "RESET")
	tell(t, ear, "HELLO 3")
	change(push + invalidation("k"))
	ear.Close()
	tell(t, reader, "GET k")
	tell(t, writer, "SET k 1")
	if got, want := heard(reader), ">2\r\n$21\r\ntracking-redir-broken\r\n:"+id+"\r\n"; got != want {
		t.Errorf("broken: %q, want %q", got, want)
	}
	if line := tell(t, reader, "CLIENT INFO"); !strings.Contains(line, " flags=tR ") {
		t.Errorf("CLIENT INFO: %q", line)
	}
	tell(t, reader, "CLIENT TRACKING ON")
	tell(t, reader, "GET k")
	tell(t, writer, "SET k 1")
	if got, want := heard(reader), push+invalidation("k"); got != want {
		t.Errorf("no redirection any more: %q, want %q", got, want)
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

// TestTrackingTableLimit checks that the table keeps at most the configured number of
// keys, and sends invalidations of the keys that it drops.
func TestTrackingTableLimit(t *testing.T) {
	srv, c := newSessions(t, 2)
	kept := func() int { // the timer trims, too
		srv.Mu.Lock()
		defer srv.Mu.Unlock()
		return srv.Tracking.Keys()
	}
	reader, writer := c[0], c[1]
	tell(t, reader, "HELLO 3")
	tell(t, reader, "CLIENT TRACKING ON")
	const n = 3 * engine.TrimBatch
	for i := range n {
		tell(t, reader, "GET key"+strconv.Itoa(i))
	}
	if kept() != n {
		t.Fatalf("%d keys", kept())
	}
	tell(t, writer, "CONFIG SET tracking-table-max-keys 10")
	for turns := 0; kept() > 10; turns++ {
		if turns > n/engine.TrimBatch {
			t.Fatalf("%d keys are left", kept())
		}
		tell(t, writer, "PING")
	}
	if got := strings.Count(heard(reader), "invalidate"); got != n-10 {
		t.Errorf("got invalidations of %d keys, want %d", got, n-10)
	}
	out := tell(t, reader, "MGET a b c d e")
	if got := strings.Count(out, "invalidate"); got != 5 || !strings.HasPrefix(out, "*5\r\n") {
		t.Errorf("%q", out)
	}
	reader.Close()
	if kept() != 0 {
		t.Errorf("the table has %d keys after the last tracking client has closed", kept())
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

// TestTrackingKeepsCachesFresh checks with random commands that a client cache that applies
// the invalidations never has a stale value.
func TestTrackingKeepsCachesFresh(t *testing.T) {
	srv, c := newSessions(t, 3)
	reader, writers := c[0], c[1:]
	tell(t, reader, "HELLO 3")
	tell(t, reader, "CLIENT TRACKING ON")
	for _, w := range writers {
		tell(t, w, "HELLO 3")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	key := func() string { return string(rune('a' + rnd.IntN(5))) }
	cached := map[string]string{}
	hear := func(out string) {
		for _, part := range strings.Split(out, ">2\r\n$10\r\ninvalidate\r\n")[1:] {
			if strings.HasPrefix(part, "_") {
				clear(cached)
			}
			if lines := strings.Split(part, "\r\n"); lines[0] == "*1" {
				delete(cached, lines[2])
			}
		}
	}
	for range 20000 {
		w := writers[rnd.IntN(2)]
		switch rnd.IntN(12) {
		case 0, 1, 2, 3:
			k := key()
			out := tell(t, reader, "GET "+k)
			hear(out) // some may have expired meanwhile
			if cached[k] = out; strings.Contains(out, "invalidate") {
				delete(cached, k)
			}
		case 4, 5:
			tell(t, w, fmt.Sprintf("SET %s %d", key(), rnd.IntN(1000)))
		case 6:
			tell(t, w, "DEL "+key())
		case 7:
			tell(t, w, "RENAME "+key()+" "+key())
		case 8:
			tell(t, w, fmt.Sprintf("PEXPIRE %s %d", key(), rnd.IntN(100)))
		case 9:
			tell(t, w, "COPY "+key()+" "+key()+" REPLACE")
		case 10:
			tell(t, w, "MULTI")
			tell(t, w, "APPEND "+key()+" x")
			tell(t, w, "INCR "+key())
			tell(t, w, "EXEC")
		case 11:
			if rnd.IntN(20) == 0 {
				tell(t, w, "FLUSHALL")
			}
			srv.Advance(20e6)
		}
		k := key()
		is := tell(t, w, "GET "+k) // which may be what removes it
		hear(heard(reader))
		if was, ok := cached[k]; ok && was != is {
			t.Fatalf("%s is %q in the cache and %q in the server", k, was, is)
		}
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}
