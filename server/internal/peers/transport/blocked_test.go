package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestSentBehindABlock checks that commands behind a blocked command run unchanged, though
// the client continues to send meanwhile.
func TestSentBehindABlock(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	waits, other := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	expect := func(want string) {
		t.Helper()
		if got := waits.Reply(); got != want {
			t.Fatalf("got %v, want %q", got, want)
		}
	}
	var behind strings.Builder
	behind.WriteString("BLPOP list 0\r\n")
	for i := range 40 {
		fmt.Fprintf(&behind, "ECHO first-%d\r\n", i)
	}
	waits.Send(behind.String())
	enginetest.Until(t, srv, "blocked", func() bool { return srv.Stats.BlockedClients == 1 })
	for i := range 2000 { // enough for the buffer to be used again, several times
		waits.Send(fmt.Sprintf("ECHO second-%d-%s\r\n", i, strings.Repeat("x", 50)))
	}
	other.Send("RPUSH list a\r\n")
	other.Reply()
	waits.Reply()
	for i := range 40 {
		expect(fmt.Sprint("first-", i))
	}
	for i := range 2000 {
		expect(fmt.Sprintf("second-%d-%s", i, strings.Repeat("x", 50)))
	}
}
