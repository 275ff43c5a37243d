package console_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/console"
)

// TestLoginForm checks the form, and what it says of a login that fails.
func TestLoginForm(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, map[string]string{"requirepass": "pw", "user": "ann on >secret +@all"})
	b := &browser{t, c, map[string]*http.Cookie{}}
	text := func(res *http.Response) string {
		all, _ := io.ReadAll(res.Body)
		return string(all)
	}
	if res := b.do(request(t, "GET", "/login", "")); res.StatusCode != 200 || !strings.Contains(text(res), `value="default"`) {
		t.Errorf("the form: %d", res.StatusCode)
	}
	r := request(t, "POST", "/login", "user=%zz")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if res := b.do(r); res.StatusCode != http.StatusBadRequest || !strings.Contains(text(res), "The form cannot be read.") {
		t.Errorf("a damaged form: %d", res.StatusCode)
	}
	for range 10 {
		if res := b.login("ann", "x"); res.StatusCode != http.StatusUnauthorized || !strings.Contains(text(res), "The user or the password is wrong.") {
			t.Errorf("a wrong password: %d", res.StatusCode)
		}
	}
	if res := b.login("ann", "secret"); res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "60" || len(b.cookies) != 0 ||
		!strings.Contains(text(res), "Too many failed logins of this user from this address. Wait a minute.") {
		t.Errorf("too many failures: %d %v", res.StatusCode, res.Header)
	}
	// A second login ends the session of the first.
	b.login("default", "pw")
	var old http.Cookie
	for _, cookie := range b.cookies {
		old = *cookie
	}
	b.login("default", "pw")
	r = request(t, "POST", "/command", `["PING"]`)
	r.AddCookie(&old)
	if status, got := serve(c, r); status != 401 {
		t.Errorf("the first session: %d %s", status, got)
	}
	if status, got := b.command(`["PING"]`); status != 200 {
		t.Errorf("the second session: %d %s", status, got)
	}
}

// TestNoUser checks that every route but those of the health, the login and the files of the
// page wants a user.
func TestNoUser(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, map[string]string{"requirepass": "pw"})
	for _, path := range []string{"/events?channel=a", "/rank?key=z&member=m", "/live?q=GET+k", "/stats", "/log", "/varz", "/metrics", "/parameters", "/blocked", "/backup", "/monitor"} {
		method := "GET"
		if path == "/backup" || path == "/monitor" {
			method = "POST"
		}
		if status, got := serve(c, request(t, method, path, "")); status != 401 || !strings.Contains(got, "NOAUTH") {
			t.Errorf("%s: %d %.200s", path, status, got)
		}
	}
	for _, path := range []string{"/", "/keys", "/messages", "/server", "/prompt"} {
		r := request(t, "GET", path, "")
		if status, _ := serve(c, r); status != http.StatusSeeOther {
			t.Errorf("%s: %d", path, status)
		}
		r.Header.Set("Authorization", "Digest x")
		if status, got := serve(c, r); status != 401 || !strings.Contains(got, "not understood") {
			t.Errorf("%s with a header: %d %.200s", path, status, got)
		}
	}
	for _, path := range []string{"/login", "/assets/app.js", "/healthz", "/readyz"} {
		if status, got := serve(c, request(t, "GET", path, "")); status != 200 {
			t.Errorf("%s: %d %.200s", path, status, got)
		}
	}
	// A browser is not asked for a password in a window of its own.
	for site, want := range map[string]string{"": `Basic realm="zsetd", charset="UTF-8"`, "same-origin": ""} {
		r := request(t, "GET", "/varz", "")
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if got := w.Header().Get("WWW-Authenticate"); got != want {
			t.Errorf("%q: %q", site, got)
		}
	}
}

// TestLogDenied checks that /log has the parts that a user may read, and the reasons for others.
func TestLogDenied(t *testing.T) {
	t.Parallel()
	var kept console.Log
	log := slog.New(kept.Handler(slog.DiscardHandler))
	srv, c := run(t, console.Options{Log: &kept}, map[string]string{"slowlog-log-slower-than": "0", "latency-monitor-threshold": "1", "enable-debug-command": "yes"})
	log.Info("a record", slog.Attr{}, "n", 1)
	srv.Must("DEBUG", "SLEEP", "0.01")
	if status, got := serve(c, request(t, "GET", "/log", "")); status != 200 || !strings.Contains(got, `"event":"command"`) || !strings.Contains(got, `"text":"a record n=1"`) || !strings.Contains(got, `"DEBUG"`) || !strings.Contains(got, `"errors":{}`) {
		t.Errorf("/log: %d %s", status, got)
	}
	srv.Must("ACL", "SETUSER", "ann", "on", ">pw", "+@all", "-slowlog", "-latency", "-acl")
	r := request(t, "GET", "/log", "")
	r.Header.Set("Authorization", "Bearer ann:pw")
	if status, got := serve(c, r); status != 200 || !strings.HasPrefix(got, `{"acl":[],"errors":{"acl":"NOPERM`) || !strings.Contains(got, `"latency":"NOPERM`) || !strings.Contains(got, `"slowlog":"NOPERM`) || !strings.HasSuffix(got, `"events":[],"latency":[],"slowlog":[]}`) && strings.Contains(got, "a record") {
		t.Errorf("/log of ann: %d %s", status, got)
	}
}

// TestStreamsAboveMaxClients checks that streams count against maxclients.
func TestStreamsAboveMaxClients(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	srv.Must("CONFIG", "SET", "maxclients", 12)
	for range 12 {
		watch(t, web, "/events?channel=a")
	}
	if got := watch(t, web, "/events?channel=a").refused(http.StatusServiceUnavailable); !strings.Contains(got, "max number of clients reached") {
		t.Errorf("%s", got)
	}
}

// TestStreamDenied checks the reasons for streams of keys that cannot be read.
func TestStreamDenied(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	srv.Must("SET", "s", "x")
	if got := watch(t, web, "/events?stream=s").refused(http.StatusBadRequest); !strings.Contains(got, "WRONGTYPE") {
		t.Errorf("a string: %s", got)
	}
	for denied, path := range map[string]string{"select": "/events?stream=x", "xrevrange": "/events?stream=x", "client|tracking": "/events?changes=k", "subscribe": "/events?channel=c", "zcard": "/rank?key=z&member=m", "zrank": "/rank?key=z&member=m"} {
		srv.Must("ACL", "SETUSER", "ann", "reset", "on", ">pw", "allkeys", "allchannels", "+@all", "-"+denied)
		if got := watch(t, web, path, "Authorization: Bearer ann:pw").refused(http.StatusForbidden); !strings.Contains(got, "NOPERM") {
			t.Errorf("%s without %s: %s", path, denied, got)
		}
	}
	raw := watch(t, web, "/events?changes=k&format=raw")
	srv.Must("SET", "k", "x")
	raw.expect("data: k")
	if got := watch(t, web, "/events?stream=x&db=99").refused(http.StatusBadRequest); !strings.Contains(got, "DB index") {
		t.Errorf("a database: %s", got)
	}
}

// TestServeAfterClose checks that Serve closes its listener after Close.
func TestServeAfterClose(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, nil)
	c.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Serve(l, nil); err != http.ErrServerClosed {
		t.Errorf("Serve: %v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is open")
	}
}
