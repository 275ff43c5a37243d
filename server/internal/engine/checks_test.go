package engine

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// noTransport is a transport without listeners and connections.
type noTransport struct{}

func (noTransport) ApplyTLS(*config.Settings) (undo func(), err error) { return func() {}, nil }
func (noTransport) Relisten(*config.Settings) error                    { return nil }
func (noTransport) ShutdownSoon(func(context.Context) error)           {}
func (noTransport) Dial(context.Context, string, string, time.Duration, *config.TLS) (net.Conn, error) {
	return nil, errors.New("no transport")
}
func (noTransport) CloseAfterPanic() {}

// TestAddedCheck adds a check to a server: single commands and fast batches follow it.
func TestAddedCheck(t *testing.T) {
	ran, asked, refused := 0, 0, 0
	on := false
	srv, err := New(Options{}, Parts{
		Commands: [][]Command{{{
			Facts: protocol.Facts{Name: "count", Arity: 1, Flags: "fast", Group: "generic", Since: "1.0.0", Summary: "Count"},
			Run: func(c *Call) {
				ran++
				c.Reply.OK()
			},
		}}},
		Libraries: func(*Engine, *keyspace.Keyspace, LibraryLimits) Functions { return Functions{} },
		Transport: func(*Engine) (Transport, error) { return noTransport{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Finish()
	s := srv.NewSession(Peer{FD: -1, Wake: func() {}})
	defer s.Close()
	turn := func(commands, wantRan, wantAsked, wantRefused int) {
		t.Helper()
		ran, asked, refused = 0, 0, 0
		batch := make([][][]byte, commands)
		for i := range batch {
			batch[i] = [][]byte{[]byte("count")}
		}
		done, out, _ := s.Turn(batch, nil)
		s.Written()
		want := strings.Repeat("+OK\r\n", wantRan) + strings.Repeat("-ERR no\r\n", wantRefused)
		if done != commands || !bytes.Equal(out, []byte(want)) {
			t.Errorf("%d commands done, reply %q, want %d and %q", done, out, commands, want)
		}
		if ran != wantRan || asked != wantAsked || refused != wantRefused {
			t.Errorf("ran %d, state asked %d times, refused %d, want %d, %d, %d", ran, asked, refused, wantRan, wantAsked, wantRefused)
		}
	}
	refusal := func(*Session, *Command, [][]byte) string {
		refused++
		return "ERR no"
	}
	srv.addCheck(check{name: "state", state: func(*Session) bool { asked++; return on }, refusal: refusal})
	turn(8, 8, 1, 0) // once for the batch
	on = true
	turn(1, 0, 2, 1) // by the batch, which is not formed, and by the command
	turn(8, 0, 16, 8)
	on = false
	turn(8, 8, 1, 0)

	// The state of the server is asked once for a lock hold, and after a command that may
	// change it.
	inServer, onServer := 0, false
	srv.addCheck(check{name: "server", server: func(*Engine) bool { inServer++; return onServer }, refusal: refusal})
	turn(40, 40, 3, 0) // three fast batches
	if inServer != 1 {
		t.Errorf("the state of the server was asked %d times for three fast batches of a turn, want 1", inServer)
	}
	onServer = true
	turn(1, 0, 2, 1)
	inServer = 0
	ran, refused = 0, 0
	onServer = false
	batch := [][][]byte{{[]byte("count")}, {[]byte("unwatch")}, {[]byte("count")}}
	s.Turn(batch, nil)
	s.Written()
	if ran != 2 || inServer != 2 {
		t.Errorf("around UNWATCH: ran %d, state of the server asked %d times, want 2 and 2", ran, inServer)
	}

	srv.addCheck(check{name: "flags of other commands", flags: protocol.Admin, refusal: refusal})
	turn(8, 8, 1, 0)
	srv.addCheck(check{name: "flags", flags: protocol.Fast, refusal: refusal})
	turn(8, 0, 8, 8)
}
