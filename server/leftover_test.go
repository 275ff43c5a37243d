package server

import (
	"fmt"
	"strings"
	"testing"
)

// TestSentBehindABlock checks that commands behind a blocked command run unchanged, though
// the client continues to send meanwhile.
func TestSentBehindABlock(t *testing.T) {
	srv, addr := start(t, nil)
	waits, other := dialRaw(t, addr), dialRaw(t, addr)
	expect := func(want string) {
		t.Helper()
		if got := waits.reply(); got != want {
			t.Fatalf("got %v, want %q", got, want)
		}
	}
	var behind strings.Builder
	behind.WriteString("BLPOP list 0\r\n")
	for i := range 40 {
		fmt.Fprintf(&behind, "ECHO first-%d\r\n", i)
	}
	waits.send(behind.String())
	until(t, srv, "blocked", func() bool { return srv.BlockedClients == 1 })
	for i := range 2000 { // enough for the buffer to be used again, several times
		waits.send(fmt.Sprintf("ECHO second-%d-%s\r\n", i, strings.Repeat("x", 50)))
	}
	other.send("RPUSH list a\r\n")
	other.reply()
	waits.reply()
	for i := range 40 {
		expect(fmt.Sprint("first-", i))
	}
	for i := range 2000 {
		expect(fmt.Sprintf("second-%d-%s", i, strings.Repeat("x", 50)))
	}
}
