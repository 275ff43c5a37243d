package judge

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
)

// Asker returns a function that sends a command and waits for the reply.
func Asker(t *testing.T, nc net.Conn) func(args ...string) any {
	t.Cleanup(func() { nc.Close() })
	r := bufio.NewReader(nc)
	return func(args ...string) any {
		t.Helper()
		if _, err := nc.Write(transcript.AppendCommand(nil, args)); err != nil {
			t.Fatal(err)
		}
		v, err := protocol.DecodeFrom(r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Ours is Asker for a new zsetd.
func Ours(t *testing.T) func(args ...string) any { return OursWith(t, nil) }

// OursWith is Ours for a zsetd with these parameters.
func OursWith(t *testing.T, config map[string]string) func(args ...string) any {
	srv, err := server.New(server.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return Asker(t, nc)
}

// Sorted returns the elements of a list, sorted.
func Sorted(reply any) []string {
	var out []string
	for _, e := range reply.([]any) {
		out = append(out, fmt.Sprint(e))
	}
	slices.Sort(out)
	return out
}
