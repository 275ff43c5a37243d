package main

import (
	"net"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

func TestTop(t *testing.T) {
	srv := servertest.Run(t)
	host, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	status, out, errs := call("", "top", "-h", host, "-p", port, "--once", "--keys", "-i", "0.001")
	if status != 0 || errs != "" || !strings.HasPrefix(out, srv.Addr()+"  up ") || !strings.Contains(out, "\nCLIENT ") || !strings.Contains(out, "\nKEY BY CPU ") {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	if status, _, errs := call("", "top", "-p", "1"); status != 1 || !strings.HasPrefix(errs, "zsetd top: no connection to 127.0.0.1:1: ") {
		t.Errorf("%d, %q", status, errs)
	}
}

func TestStat(t *testing.T) {
	srv := servertest.Run(t, server.Options{Config: map[string]string{"requirepass": "secret"}})
	host, port, err := net.SplitHostPort(srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   string
		status int
		stdout string // its first words
		lines  int
		errs   string
	}{
		{"-a secret -i 0.001 --count 3", 0, "keys memory clients blocked commands/s", 4, ""},
		{"-a secret --count 1", 0, "keys memory", 2, ""},
		{"--count 1", 1, "", 0, "zsetd stat: " + srv.Addr() + ": NOAUTH Authentication required.\n"},
		{"-a wrong --count 1", 1, "", 0, "zsetd stat: " + srv.Addr() + ": AUTH failed: WRONGPASS invalid username-password pair or user is disabled.\n"},
		{"-p 1", 1, "", 0, "zsetd stat: no connection to 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"-i 0", 2, "", 0, "zsetd stat: -i must be a time above 0, and --count a number from 0\n"},
		{"x", 2, "", 0, "zsetd stat: wrong number of files: 1 given, 0 expected\n"},
	} {
		status, stdout, errs := call("", append([]string{"stat", "-h", host, "-p", port}, strings.Fields(test.args)...)...)
		if status != test.status || !strings.HasPrefix(strings.Join(strings.Fields(stdout), " "), test.stdout) || strings.Count(stdout, "\n") != test.lines ||
			!strings.HasPrefix(errs, test.errs) || test.errs == "" && errs != "" {
			t.Errorf("zsetd stat %s: %d, %q, %q", test.args, status, stdout, errs)
		}
	}
}
