package watch

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
	"github.com/zsetd/zsetd/server/servertest"
)

// dial connects to a server of the test.
func dial(t *testing.T, srv *servertest.Server) *client.Conn {
	t.Helper()
	host, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), &client.Options{Host: host, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestStatLine(t *testing.T) {
	at := time.Unix(100, 0)
	before := parse("# Stats\r\ntotal_commands_processed:1000\r\nexpired_keys:5\r\ntotal_net_input_bytes:0\r\ntotal_net_output_bytes:100\r\n", at)
	now := parse("# Clients\r\nconnected_clients:7\r\nblocked_clients:2\r\nused_memory:1572864\r\ntotal_commands_processed:401000\r\nexpired_keys:25\r\n"+
		"total_net_input_bytes:2048\r\ntotal_net_output_bytes:90\r\ndb0:keys=10,expires=1\r\ndb3:keys=5,expires=0\r\ndb0_distrib_strings_sizes:1=1\r\n", at.Add(2*time.Second))
	if got, want := statLine(&before, now), "      15    1.5 MB        7        2        200k         10    1.0 KB      45 B\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := statLine(nil, now), "      15    1.5 MB        7        2           -          -         -         -\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(header) != len(statLine(nil, now)) || len(header) > 81 {
		t.Errorf("the header has %d columns, a line %d", len(header), len(statLine(nil, now)))
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 99_999: "99999", 100_000: "100k", 12_345_678: "12M", 3e10: "30G"} {
		if got := count(n); got != want {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0 B", 999: "999 B", 1024: "1.0 KB", 1 << 40: "1.0 TB", 5 << 40: "5.0 TB"} {
		if got := size(n); got != want {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
}

// Stat repeats the header, and ends after its lines or with its context.
func TestStat(t *testing.T) {
	srv := servertest.Run(t)
	srv.Must("SET", "a", 1)
	c := dial(t, srv)
	ticks := make(chan time.Time, 100)
	for range 100 {
		ticks <- time.Time{}
	}
	var out bytes.Buffer
	if err := Stat(t.Context(), c, &out, ticks, 41); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(out.String(), "\n")
	if len(lines) != 45 || lines[0] != header || lines[21] != header || lines[42] != header || !strings.HasPrefix(lines[1], "       1 ") {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out.Reset()
	if err := Stat(ctx, c, &out, nil, 0); err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%v, %q", err, out.String())
	}
	srv.Must("CLIENT", "KILL", "TYPE", "normal")
	if err := Stat(ctx, c, &out, nil, 0); err == nil {
		t.Error("no error after the connection has ended")
	}
}
