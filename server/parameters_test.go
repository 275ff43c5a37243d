package server_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestIgnoredParameters checks that the log names the parameters of old files, which are ignored.
func TestIgnoredParameters(t *testing.T) {
	var log bytes.Buffer
	srv, err := server.New(server.Options{
		Config: map[string]string{"list-max-ziplist-entries": "512", "LUA-replicate-commands": "yes", "list-compress-depth": "0"},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"level=WARN msg=\"a parameter is ignored\" parameter=list-max-ziplist-entries reason=\"no effect: ", "parameter=lua-replicate-commands "} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "is ignored"); n != 2 {
		t.Errorf("%d parameters are ignored", n)
	}
}

// TestParametersAsRedis checks that every parameter of Redis exists, with the default of
// Redis unless a reason is listed.
func TestParametersAsRedis(t *testing.T) {
	rerun.Skip(t)
	for version, start := range map[string]func(*testing.T, ...string) func() net.Conn{judge.Version: judge.Start, "8.6": judge.StartNewer} {
		t.Run(version, func(t *testing.T) { testParameters(t, start(t)(), version) })
	}
}

func testParameters(t *testing.T, conn net.Conn, version string) {
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "HELLO 3\r\nCONFIG GET *\r\n"); err != nil {
		t.Fatal(err)
	}
	var theirs protocol.Map
	var in []byte
	for replies := 0; replies < 2; {
		if reply, n, err := protocol.Decode(in); err == nil {
			in, theirs = in[n:], reply.(protocol.Map)
			replies++
			continue
		}
		var b [1 << 16]byte
		n, err := conn.Read(b[:])
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, b[:n]...)
	}
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	reply, err := srv.Do(context.Background(), "CONFIG", "GET", "*")
	if err != nil {
		t.Fatal(err)
	}
	ours := map[any]any{}
	for _, pair := range reply.(protocol.Map) {
		ours[pair.Key] = pair.Value
	}
	const started = "the other server was started with it"
	differs := map[any]string{
		"port": started, "unixsocket": started, "save": started, "dir": started,
		"bind":       "nobody else is served unless it is asked for",
		"dbfilename": "a server in a program keeps its data in memory",

		"client-output-buffer-limit": "whoever has stopped reading holds what waits for him for a minute, not for ever",
	}
	for _, pair := range theirs {
		value, there := ours[pair.Key]
		if !there && (pair.Key == "io-threads-do-reads" || pair.Key == "cluster-compatibility-sample-ratio") {
			continue // since 8.0 only files have the one; the other samples what a cluster of several nodes refuses
		}
		if !there {
			t.Errorf("%s is not there", pair.Key)
			continue
		}
		if differs[pair.Key] == "" && value != pair.Value {
			t.Errorf("%s is %q, in Redis %q", pair.Key, value, pair.Value)
		}
	}
}
