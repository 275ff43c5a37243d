package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
)

// TestLinkTool checks that a server with the configuration of the tool serves its link.
func TestLinkTool(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zsetd.conf")
	if err := os.WriteFile(file, []byte("http-link-secret \"0123456789abcdef fedcba9876543210\"\nrequirepass pw\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	values, err := server.ReadArgs([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Config: values})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	c, err := console.New(srv, console.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	web := httptest.NewServer(c)
	defer web.Close()
	link := func(args ...string) (status int, out, errs string) {
		var o, e strings.Builder
		status, _ = runTool(append([]string{"link"}, args...), strings.NewReader(""), &o, &e)
		return status, o.String(), e.String()
	}
	get := func(args ...string) string {
		t.Helper()
		status, out, errs := link(append(args, "--config", file, "--url", web.URL+"/")...)
		if status != statusOK {
			t.Fatal(errs)
		}
		res, err := http.Get(strings.TrimSpace(out))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b := make([]byte, 200)
		n, _ := io.ReadAtLeast(res.Body, b, len("retry: 2000\n\nd"))
		return string(b[:n])
	}
	if got := get("GET k", "--db", "1", "--interval", "250ms"); !strings.Contains(got, "data: ") {
		t.Errorf("a link: %s", got)
	}
	if got := get("GET k", "--for", "-1s"); !strings.Contains(got, "has expired") {
		t.Errorf("an expired link: %s", got)
	}
	t.Setenv(optionsVariable, "--http-link-secret 0123456789abcdef")
	if status, out, errs := link("GET k"); status != statusOK || !strings.HasPrefix(out, "/live?") {
		t.Errorf("the environment: %d %s %s", status, out, errs)
	}
	t.Setenv(optionsVariable, "")
	for want, args := range map[string][]string{
		"1 a link needs a secret": {"GET k"}, "1 line end": {"GET k\n", "--config", file},
		"2 no argument is given": {}, "2 no such file": {"GET k", "--config", file + "x"}, "2 invalid value": {"GET k", "--for", "x"},
	} {
		status, _, errs := link(args...)
		if code, text, _ := strings.Cut(want, " "); string(rune('0'+status)) != code || !strings.Contains(errs, text) {
			t.Errorf("%q: %d %s, want %s", args, status, errs, want)
		}
	}
}
