package client

import (
	"context"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

// parse returns the options of a command line.
func parse(t *testing.T, line string) (*Options, error) {
	t.Helper()
	o := &Options{}
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.Flags(f)
	return o, f.Parse(strings.Fields(line))
}

func TestFlags(t *testing.T) {
	t.Setenv(passwordVariable, "from-env")
	for line, want := range map[string]Options{
		"":                                    {Host: "127.0.0.1", Port: "6379", Password: "from-env"},
		"-h a -p 7 -n 3 -a x --user u":        {Host: "a", Port: "7", Password: "x", User: "u", DB: 3},
		"--pass x -s /s --tls --insecure":     {Host: "127.0.0.1", Port: "6379", Password: "x", Socket: "/s", Secure: true, Insecure: true},
		"-u redis://u:p%40s@h:7/4":            {Host: "h", Port: "7", User: "u", Password: "p@s", DB: 4},
		"-u rediss://pass@h":                  {Host: "h", Port: "6379", Password: "pass", Secure: true},
		"-u redis://[::1]:7":                  {Host: "::1", Port: "7", Password: "from-env"},
		"--cacert a --cert b --key c --sni d": {Host: "127.0.0.1", Port: "6379", Password: "from-env", CACert: "a", Cert: "b", Key: "c", ServerName: "d"},
		"--cacertdir a":                       {Host: "127.0.0.1", Port: "6379", Password: "from-env", CACertDir: "a"},
	} {
		if o, err := parse(t, line); err != nil || *o != want {
			t.Errorf("%s: %+v, %v, want %+v", line, o, err, want)
		}
	}
	for line, want := range map[string]string{
		"-u http://h": "unknown scheme", "-u redis://h/x": "invalid database", "-u redis://u:secret@%zz": "invalid address",
	} {
		if _, err := parse(t, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	if o, _ := parse(t, "-h ::1"); o.Address() != "[::1]:6379" {
		t.Error(o.Address())
	}
}

func TestLogin(t *testing.T) {
	srv := servertest.Run(t, server.Options{Config: map[string]string{"requirepass": "secret"}})
	login := func(line string) (*Conn, []error) {
		o, err := parse(t, "-u redis://"+srv.Addr()+" "+line)
		if err != nil {
			t.Fatal(err)
		}
		o.RESP3 = strings.Contains(line, "default")
		c, err := Dial(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		refused, err := c.Login(o)
		if err != nil {
			t.Fatal(err)
		}
		return c, refused
	}
	c, refused := login("-a secret --user default -n 2")
	if len(refused) > 0 {
		t.Fatal(refused)
	}
	if r, err := c.Do("CLIENT", "INFO"); err != nil || !strings.Contains(r.Text, " db=2 ") || !strings.Contains(r.Text, " resp=3") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, refused := login("-a wrong"); len(refused) != 1 || !strings.HasPrefix(refused[0].Error(), "AUTH failed: WRONGPASS") {
		t.Error(refused)
	}
	if _, refused := login("-a secret -n 99"); len(refused) != 1 || !strings.HasPrefix(refused[0].Error(), "SELECT 99 failed: ERR") {
		t.Error(refused)
	}
}
