package console_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// run starts a server with parameters and a console of it.
func run(t *testing.T, o console.Options, config map[string]string) (*servertest.Server, *console.Console) {
	t.Helper()
	srv := servertest.Run(t, server.Options{Config: config})
	c, err := console.New(srv.Server, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return srv, c
}

// request returns a request of a program on this machine.
func request(t *testing.T, method, target, body string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Host = "localhost:8379"
	r.RemoteAddr = "127.0.0.1:1234"
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// serve returns the response to a request: its status and its body.
func serve(c http.Handler, r *http.Request) (int, string) {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	b, _ := io.ReadAll(w.Result().Body)
	return w.Code, strings.TrimSpace(string(b))
}

func TestCommand(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, nil)
	for _, one := range []struct {
		target, body string
		status       int
		want         string
	}{
		{"/command", `["SET","k","<b>"]`, 200, `{"result":"OK"}`},
		{"/command", `["GET","k"]`, 200, `{"result":"\u003cb\u003e"}`},
		{"/command", `["GET","none"]`, 200, `{"result":null}`},
		{"/command?db=1", `["GET","k"]`, 200, `{"result":null}`},
		{"/command?db=99", `["GET","k"]`, 400, `{"error":"ERR DB index is out of range"}`},
		{"/command", `["ZADD","z",1,"a",2.5,"b"]`, 200, `{"result":2}`},
		{"/command", `["ZRANGE","z",0,-1,"WITHSCORES"]`, 200, `{"result":[["a",1],["b",2.5]]}`},
		{"/command", `["ZADD","z","inf","c"]`, 200, `{"result":1}`},
		{"/command", `["ZSCORE","z","c"]`, 200, `{"result":"inf"}`},
		{"/command?types=1", `["ZSCORE","z","b"]`, 200, `{"result":{"type":"double","value":2.5}}`},
		{"/command", `["SET",{"base64":"AP8="},"a\u0000b"]`, 200, `{"result":"OK"}`},
		{"/command", `["GET",{"base64":"AP8="}]`, 200, `{"result":"a\u0000b"}`},
		{"/command", `["KEYS","*\u0000*"]`, 200, `{"result":[{"base64":"AP8="}]}`},
		{"/command?types=1", `["ECHO",{"base64":"AP8="}]`, 200, `{"result":{"type":"bulk","base64":true,"value":"AP8="}}`},
		{"/command", `["ECHO",{"base64":"AP8="}]`, 200, `{"result":{"base64":"AP8="}}`},
		{"/command?types=1", `["PING"]`, 200, `{"result":{"type":"simple","value":"PONG"}}`},
		{"/command?types=1", `["HGETALL","none"]`, 200, `{"result":{"type":"map","value":[]}}`},
		{"/command?types=1", `["SMEMBERS","none"]`, 200, `{"result":{"type":"set","value":[]}}`},
		{"/command?types=1", `["GET","none"]`, 200, `{"result":{"type":"null","value":null}}`},
		{"/command?types=1", `["EVAL","redis.setresp(3); return {{double=3.5},{map={a=true}},{set={x=true}}}",0]`, 200,
			`{"result":{"type":"array","value":[{"type":"double","value":3.5},{"type":"map","value":[[{"type":"bulk","value":"a"},{"type":"boolean","value":true}]]},` +
				`{"type":"set","value":[{"type":"bulk","value":"x"}]}]}}`},
		{"/command", `["NONE"]`, 400, `{"error":"ERR unknown command 'NONE'"}`},
		{"/command", `[["SET","n",1],["INCR","n"],["INCR","z"],["GET","n"]]`, 200,
			`[{"result":"OK"},{"result":2},{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},{"result":"2"}]`},
		{"/command", `[["MULTI"],["INCR","n"],["INCR","z"],["EXEC"]]`, 200,
			`[{"result":"OK"},{"result":"QUEUED"},{"result":"QUEUED"},{"result":[3,{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}]}]`},
		{"/command", `[["LPUSH","l","x"],["CLIENT","TRACKING","ON"],["GET","k"],["SET","k","2"],["GET","k"]]`, 200,
			`[{"result":1},{"result":"OK"},{"result":"\u003cb\u003e"},{"result":"OK"},{"result":"2"}]`},
		{"/command", `["SUBSCRIBE","a"]`, 400, `{"error":"ERR SUBSCRIBE takes over its connection: GET /events streams messages and events"}`},
		{"/command", `["auth","a"]`, 400, `{"error":"ERR AUTH is not for requests: log in, or send the header Authorization"}`},
		{"/command", `["psync","?","-1"]`, 400, `{"error":"ERR PSYNC is for connections of replicas"}`},
		{"/command", `["a",{"base64":1}]`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", `["a",{"base64":"","b":""}]`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", `["a",]`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", `["CLIENT"]`, 400, `{"error":"ERR wrong number of arguments for 'client' command"}`},
		{"/command", `["CLIENT","reply","off"]`, 400, `{"error":"ERR CLIENT REPLY is not for requests: each has its response"}`},
		{"/command", `[]`, 400, `{"error":"ERR empty command"}`},
		{"/command", `[[]]`, 400, `{"error":"ERR empty command"}`},
		{"/command", `null`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", `["a"`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", `["a"] x`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", `["a",["b"]]`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", `[["PING"],"a"]`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", `[` + strings.Repeat("1,", 1<<20) + `1]`, 400, `{"error":"ERR a request has at most 1048576 arguments"}`},
		{"/command", `["a",null]`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", `["a",{"base64":"?"}]`, 400, `{"error":"ERR the body is no JSON array of strings, nor an array of such arrays"}`},
		{"/command", "[\"a\xff\"]", 400, `{"error":"ERR the body is no UTF-8: send other bytes as {\"base64\": \"…\"}"}`},
		{"/command", `["ECHO","\ud800"]`, 400, `{"error":"ERR the body has an escape of half a character: send other bytes as {\"base64\": \"…\"}"}`},
		{"/command", `["ECHO","\ufffd\uFFFD` + "\uFFFD" + `"]`, 200, `{"result":"` + "\uFFFD\uFFFD\uFFFD" + `"}`},
	} {
		status, got := serve(c, request(t, "POST", one.target, one.body))
		if status != one.status || got != one.want {
			t.Errorf("%s %.100s: %d %s, want %d %s", one.target, one.body, status, got, one.status, one.want)
		}
	}
}

// FuzzCommand checks that the response to any body is JSON, and to an array of arrays an array.
func FuzzCommand(f *testing.F) {
	for _, body := range []string{`["PING"]`, `[["SET","k",{"base64":"/w=="}],["GET","k"]]`, `["EVAL","return {1,{map={a=2.5}}}",0]`, `["COMMAND","DOCS","get"]`, `[[]]`, "[\"\xff\"]", `[1e999,"\ud800"]`, `{}`} {
		f.Add(body)
	}
	srv, err := server.New(server.Options{Config: map[string]string{"rename-command": `"SHUTDOWN" "" "DEBUG" "" "CONFIG" "" "REPLICAOF" "" "SLAVEOF" ""`}})
	if err != nil {
		f.Fatal(err)
	}
	c, err := console.New(srv, console.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.Close(); srv.Close() })
	f.Fuzz(func(t *testing.T, body string) {
		for _, types := range []string{"0", "1"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // it may block
			status, text := serve(c, request(t, "POST", "/command?types="+types, body).WithContext(ctx))
			cancel()
			if !json.Valid([]byte(text)) || status >= 500 {
				t.Errorf("%q: %d %s", body, status, text)
			}
		}
	})
}

// TestLargePipeline checks that replies and commands that exceed all buffers pass each other.
func TestLargePipeline(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, nil)
	value := strings.Repeat("x", 100_000)
	commands := make([][]string, 200)
	for i := range commands {
		commands[i] = []string{"ECHO", value}
	}
	body, _ := json.Marshal(commands)
	status, got := serve(c, request(t, "POST", "/command", string(body)))
	if want := len(commands) * len(value); status != 200 || len(got) < want || strings.Count(got, value) != len(commands) {
		t.Errorf("status %d, %d bytes, want more than %d", status, len(got), want)
	}
}

// TestBodyLimit checks that a body above client-query-buffer-limit is refused.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, map[string]string{"client-query-buffer-limit": "1mb"})
	body := `["ECHO","` + strings.Repeat("x", 1<<20) + `"]`
	if status, got := serve(c, request(t, "POST", "/command", body)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, %.100s", status, got)
	}
	r := request(t, "POST", "/command", body)
	r.ContentLength = -1
	if status, got := serve(c, r); status != http.StatusRequestEntityTooLarge {
		t.Errorf("without a length: status %d, %.100s", status, got)
	}
}

// TestAdmission checks requests that are refused before their user counts.
func TestAdmission(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{Hosts: []string{"Example.org"}}, nil)
	for name, one := range map[string]struct {
		change func(r *http.Request)
		want   int
	}{
		"localhost":        {func(r *http.Request) { r.Host = "localhost:1" }, 200},
		"a loopback name":  {func(r *http.Request) { r.Host = "a.localhost" }, 200},
		"an address":       {func(r *http.Request) { r.Host = "127.0.0.1:8379" }, 200},
		"an IPv6 address":  {func(r *http.Request) { r.Host = "[::1]:8379" }, 200},
		"a configured":     {func(r *http.Request) { r.Host = "example.org:80" }, 200},
		"another host":     {func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		"no host":          {func(r *http.Request) { r.Host = "" }, http.StatusMisdirectedRequest},
		"a suffix":         {func(r *http.Request) { r.Host = "localhost.evil.example" }, http.StatusMisdirectedRequest},
		"own origin":       {func(r *http.Request) { r.Header.Set("Origin", "http://localhost:8379") }, 200},
		"another origin":   {func(r *http.Request) { r.Header.Set("Origin", "http://localhost:8380") }, http.StatusForbidden},
		"no origin":        {func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"another site":     {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"a form":           {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"no type":          {func(r *http.Request) { r.Header.Del("Content-Type") }, http.StatusUnsupportedMediaType},
		"another machine":  {func(r *http.Request) { r.RemoteAddr = "192.0.2.1:5" }, http.StatusForbidden},
		"loopback of IPv6": {func(r *http.Request) { r.RemoteAddr = "[::1]:5" }, 200},
		"a unix socket":    {func(r *http.Request) { r.RemoteAddr = "@" }, 200},
		"GET":              {func(r *http.Request) { r.Method = "GET" }, http.StatusMethodNotAllowed},
		"another path":     {func(r *http.Request) { r.URL.Path = "/commands" }, http.StatusNotFound},
	} {
		r := request(t, "POST", "/command", `["PING"]`)
		one.change(r)
		if status, got := serve(c, r); status != one.want {
			t.Errorf("%s: status %d, want %d: %s", name, status, one.want, got)
		}
	}
	if _, err := console.New(nil, console.Options{Hosts: []string{"http://x"}}); err == nil {
		t.Error("a URL is accepted as a host")
	}
}

// TestOrigins checks that configured sites may read streams, and nothing else.
func TestOrigins(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{Origins: []string{"https://example.org"}}, nil)
	for _, one := range []struct {
		method, path, origin string
		want                 int
	}{
		{"GET", "/events", "https://example.org", http.StatusBadRequest}, // it names no channel
		{"GET", "/rank", "https://example.org", http.StatusBadRequest},
		{"GET", "/live", "https://example.org", http.StatusBadRequest},
		{"GET", "/events", "http://example.org", http.StatusForbidden},
		{"GET", "/varz", "https://example.org", http.StatusForbidden},
		{"POST", "/command", "https://example.org", http.StatusForbidden},
	} {
		r := request(t, one.method, one.path, `["PING"]`)
		r.Header.Set("Origin", one.origin)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		if w.Code != one.want || (allowed == one.origin) != (one.want == http.StatusBadRequest) || w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s of %s: %d, allowed %q", one.method, one.path, one.origin, w.Code, allowed)
		}
	}
	// A browser asks before it sends a request with a header, and may then send it.
	for path, want := range map[string]int{"/events": http.StatusNoContent, "/rank": http.StatusNoContent, "/live": http.StatusNoContent, "/varz": http.StatusForbidden, "/command": http.StatusForbidden} {
		r := request(t, "OPTIONS", path, "")
		r.Header.Set("Origin", "https://example.org")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Access-Control-Request-Method", "GET")
		r.Header.Set("Access-Control-Request-Headers", "authorization")
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		h := w.Header()
		if w.Code != want || (want == http.StatusNoContent) != (h.Get("Access-Control-Allow-Methods") == "GET" && strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization") &&
			h.Get("Access-Control-Allow-Origin") == "https://example.org" && h.Get("Access-Control-Max-Age") != "") {
			t.Errorf("OPTIONS %s: %d %v", path, w.Code, h)
		}
	}
	for mode, want := range map[string]int{"no-cors": http.StatusForbidden, "navigate": http.StatusOK} {
		r := request(t, "GET", "/varz", "")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", mode)
		if status, _ := serve(c, r); status != want {
			t.Errorf("%s from another site: %d, want %d", mode, status, want)
		}
	}
	if _, err := console.New(nil, console.Options{Origins: []string{"*"}}); err == nil {
		t.Error("* is accepted as an origin")
	}
}

// TestOriginsWithPassword checks that a page of a configured site names its user in the address
// or by a header, and has no session.
func TestOriginsWithPassword(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{Origins: []string{"https://example.org"}}, map[string]string{"requirepass": "pw"})
	srv.Must("ACL", "SETUSER", "viewer", "on", ">public", "resetkeys", "resetchannels", "&news", "-@all", "+subscribe") // of the package comment
	web := httptest.NewServer(c)
	defer web.Close()
	w := watch(t, web, "/events?channel=news&user=viewer&password=public", "Origin: https://example.org")
	srv.Must("PUBLISH", "news", "hello")
	w.expect(`data: {"channel":"news","message":"hello"}`)
	w.cancel()
	b := &browser{t, c, map[string]*http.Cookie{}}
	b.login("default", "pw")
	for _, one := range []struct {
		path, origin, header string
		want                 int // 400: the user is known, and nothing is named
	}{
		{"/events", "https://example.org", "", 401},
		{"/events?user=viewer&password=public", "https://example.org", "", 400},
		{"/rank?user=viewer&password=public", "https://example.org", "", 400},
		{"/events?password=pw", "https://example.org", "", 400},
		{"/events?user=viewer", "https://example.org", "", 401},
		{"/events?user=viewer&password=x", "https://example.org", "", 401},
		{"/events", "https://example.org", "Bearer viewer:public", 400},
		{"/events?user=viewer&password=x", "https://example.org", "Bearer viewer:public", 400},
		{"/events", "", "", 400}, // the session
		{"/events", "http://localhost:8379", "", 400},
		{"/events?user=viewer&password=x", "", "", 401},
		{"/varz?user=viewer&password=x", "", "", 200},
	} {
		r := request(t, "GET", one.path, "")
		if one.origin != "" {
			r.Header.Set("Origin", one.origin)
		}
		if one.header != "" {
			r.Header.Set("Authorization", one.header)
		}
		if got := b.do(r).StatusCode; got != one.want {
			t.Errorf("%s of %q: %d, want %d", one.path, one.origin, got, one.want)
		}
	}
}

// TestProtectedMode checks that a password, or protected-mode no, admits other machines.
func TestProtectedMode(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	ask := func() int {
		r := request(t, "POST", "/command", `["PING"]`)
		r.RemoteAddr = "192.0.2.1:5"
		status, _ := serve(c, r)
		return status
	}
	if got := ask(); got != http.StatusForbidden {
		t.Errorf("without a password: %d", got)
	}
	srv.Must("CONFIG", "SET", "protected-mode", "no")
	if got := ask(); got != http.StatusOK {
		t.Errorf("with protected-mode no: %d", got)
	}
	srv.Must("CONFIG", "SET", "protected-mode", "yes", "requirepass", "pw")
	if got := ask(); got != http.StatusUnauthorized {
		t.Errorf("with a password: %d", got)
	}
}

// TestHeaders checks the headers that restrict what a browser does with a response.
func TestHeaders(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, nil)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, request(t, "GET", "/", ""))
	for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'self'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"} {
		if got := w.Header().Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("Access-Control-Allow-Origin: %s", got)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, map[string]string{"requirepass": "pw", "user": "ann on >se:cret ~a* +@all -@dangerous"})
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, one := range []struct {
		header, body string
		status       int
		want         string
	}{
		{"", `["PING"]`, 401, "NOAUTH"},
		{"Bearer pw", `["ACL","WHOAMI"]`, 200, `"default"`},
		{basic("default:pw"), `["ACL","WHOAMI"]`, 200, `"default"`},
		{basic(":pw"), `["ACL","WHOAMI"]`, 200, `"default"`},
		{basic("ann:se:cret"), `["ACL","LIST"]`, 400, "NOPERM"},
		{basic("ann:se:cret"), `["GET","b"]`, 400, "NOPERM"},
		{"bearer ann:se:cret", `["GET","a"]`, 200, "null"},
		{basic("ann:secret"), `["PING"]`, 401, "WRONGPASS"},
		{basic("missing:x"), `["PING"]`, 401, "WRONGPASS"},
		{"Basic !", `["PING"]`, 401, "not understood"},
		{"Digest x", `["PING"]`, 401, "not understood"},
		{"Bearer", `["PING"]`, 401, "not understood"},
	} {
		r := request(t, "POST", "/command", one.body)
		if one.header != "" {
			r.Header.Set("Authorization", one.header)
		}
		if status, got := serve(c, r); status != one.status || !strings.Contains(got, one.want) {
			t.Errorf("%q %s: %d %s, want %d %s", one.header, one.body, status, got, one.status, one.want)
		}
	}
}

// TestLoginLimit checks that failed logins are in ACL LOG, and limited by address and user.
func TestLoginLimit(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, map[string]string{"requirepass": "pw", "user": "ann on >secret +@all"})
	try := func(addr, password string) int {
		r := request(t, "POST", "/command", `["PING"]`)
		r.RemoteAddr = addr
		r.Header.Set("Authorization", "Bearer "+password)
		status, _ := serve(c, r)
		return status
	}
	if got := try("[2001:db8::7]:5", "ann:secret"); got != http.StatusOK {
		t.Fatalf("ann: %d", got)
	}
	failures := 0
	for try("[2001:db8::1]:5", "x") == http.StatusUnauthorized {
		if failures++; failures > 100 {
			t.Fatal("no limit")
		}
	}
	if failures < 10 {
		t.Errorf("limited after %d failures", failures)
	}
	if got := try("[2001:db8::2]:6", "pw"); got != http.StatusTooManyRequests {
		t.Errorf("another address of the network: %d", got)
	}
	// Others behind the address are not concerned, nor is what has worked there.
	for range 20 {
		try("[2001:db8::1]:5", "ann:guess")
		try("[2001:db8::1]:5", "nosuch:guess")
	}
	for password, want := range map[string]int{"ann:secret": http.StatusOK, "ann:guess": http.StatusTooManyRequests, "other:x": http.StatusUnauthorized} {
		if got := try("[2001:db8::9]:5", password); got != want {
			t.Errorf("%s: %d, want %d", password, got, want)
		}
	}
	srv.Must("ACL", "SETUSER", "ann", "resetpass", ">new")
	for _, want := range []int{http.StatusUnauthorized, http.StatusTooManyRequests} {
		if got := try("[2001:db8::9]:5", "ann:secret"); got != want {
			t.Errorf("the password of before: %d, want %d", got, want)
		}
	}
	if got := try("192.0.2.2:5", "ann:new"); got != http.StatusOK {
		t.Errorf("ann elsewhere: %d", got)
	}
	if got := try("192.0.2.1:5", "pw"); got != http.StatusOK {
		t.Errorf("another network: %d", got)
	}
	if entries := fmt.Sprint(srv.Must("ACL", "LOG")); !strings.Contains(entries, "auth") {
		t.Errorf("ACL LOG: %s", entries)
	}
}

// TestRenamedCommands checks that a new name opens no way around the limit of logins, and that
// the console itself works when the commands that it uses have other names.
func TestRenamedCommands(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, map[string]string{"requirepass": "pw",
		"rename-command": "AUTH b840fc CONFIG hidden-config HELLO greet SUBSCRIBE listen CLIENT customer INFO facts LATENCY delays SLOWLOG slow GET SET2"})
	command := func(body string) (int, string) {
		r := request(t, "POST", "/command", body)
		r.Header.Set("Authorization", "Bearer pw")
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute) // a subscriber would wait forever
		defer cancel()
		return serve(c, r.WithContext(ctx))
	}
	for _, one := range []struct {
		body   string
		status int
		want   string
	}{
		{`["b840fc","guess"]`, 400, "ERR B840FC is not for requests"},
		{`["B840fc","default","guess"]`, 400, "log in"},
		{`[["PING"],["b840fc","guess"]]`, 400, "log in"},
		{`["greet","3","AUTH","default","guess"]`, 400, "log in"},
		{`["auth","guess"]`, 400, "unknown command"},
		{`["listen","channel"]`, 400, "takes over its connection"},
		{`["customer","REPLY","OFF"]`, 400, "each has its response"},
		{`["customer","GETNAME"]`, 200, "http:"},
		{`["set2","k"]`, 200, "null"},
		{`["get","k"]`, 400, "unknown command"},
		{`["hidden-config","GET","port"]`, 200, `"port"`},
	} {
		if status, got := command(one.body); status != one.status || !strings.Contains(got, one.want) {
			t.Errorf("%s: %d %s, want %d %s", one.body, status, got, one.status, one.want)
		}
	}
	if entries := fmt.Sprint(srv.Must("ACL", "LOG")); strings.Contains(entries, "auth") {
		t.Errorf("a password was tried: %s", entries)
	}
	// A body above 1 MB needs CONFIG, and samples need INFO and LATENCY.
	if status, got := command(`["ECHO","` + strings.Repeat("x", 2<<20) + `"]`); status != 200 {
		t.Errorf("a large body: %d %.200s", status, got)
	}
	r := request(t, "GET", "/metrics", "")
	r.Header.Set("Authorization", "Bearer pw")
	if status, got := serve(c, r); status != 200 || !strings.Contains(got, "redis_slowlog_length") || !strings.Contains(got, "redis_commands_latencies_usec") {
		t.Errorf("/metrics: %d %.300s", status, got)
	}
}

// browser is a client with cookies.
type browser struct {
	t       *testing.T
	c       http.Handler
	cookies map[string]*http.Cookie
}

func (b *browser) do(r *http.Request) *http.Response {
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	b.c.ServeHTTP(w, r)
	res := w.Result()
	for _, cookie := range res.Cookies() {
		if b.cookies[cookie.Name] = cookie; cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	return res
}

func (b *browser) login(user, password string) *http.Response {
	r := request(b.t, "POST", "/login", url.Values{"user": {user}, "password": {password}}.Encode())
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(r)
}

func (b *browser) command(body string) (int, string) {
	res := b.do(request(b.t, "POST", "/command", body))
	text, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(text)
}

func TestSession(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, map[string]string{"requirepass": "pw", "user": "ann on >secret ~* +@all"})
	b := &browser{t, c, map[string]*http.Cookie{}}
	if res := b.do(request(t, "GET", "/", "")); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "login" {
		t.Errorf("without a login: %d %s", res.StatusCode, res.Header.Get("Location"))
	}
	if res := b.login("ann", "x"); res.StatusCode != http.StatusUnauthorized || len(b.cookies) != 0 {
		t.Errorf("a wrong password: %d, %v", res.StatusCode, b.cookies)
	}
	if res := b.login("ann", "secret"); res.StatusCode != http.StatusSeeOther || len(b.cookies) != 1 {
		t.Fatalf("login: %d, %v", res.StatusCode, b.cookies)
	}
	for _, cookie := range b.cookies {
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || len(cookie.Value) < 22 || strings.Contains(cookie.Value, "secret") {
			t.Errorf("cookie: %v", cookie)
		}
	}
	if status, got := b.command(`["ACL","WHOAMI"]`); status != 200 || !strings.Contains(got, `"ann"`) {
		t.Errorf("with a session: %d %s", status, got)
	}
	if res := b.do(request(t, "POST", "/logout", "")); res.StatusCode != http.StatusSeeOther || len(b.cookies) != 0 {
		t.Errorf("logout: %d, %v", res.StatusCode, b.cookies)
	}
	b.login("ann", "secret")
	srv.Must("ACL", "SETUSER", "ann", "resetpass", ">other")
	if status, got := b.command(`["PING"]`); status != 401 {
		t.Errorf("after a change of the password: %d %s", status, got)
	}
	if status, got := b.command(`["PING"]`); status != 401 || !strings.Contains(got, "NOAUTH") {
		t.Errorf("the session has not ended: %d %s", status, got)
	}
}

// TestCancel checks that the end of a request ends its blocked command.
func TestCancel(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	web := httptest.NewServer(c)
	defer web.Close()
	req, _ := http.NewRequestWithContext(t.Context(), "POST", web.URL+"/command", strings.NewReader(`["BLPOP","k",0]`))
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Timeout: time.Minute}
	blocked := func() bool { return srv.Stats().BlockedClients == 1 }
	done := make(chan error, 1)
	go func() {
		_, err := client.Do(req)
		done <- err
	}()
	wait.Until(t, "BLPOP blocks", blocked)
	web.CloseClientConnections()
	if err := <-done; err == nil {
		t.Error("the request has a response")
	}
	wait.Until(t, "BLPOP has ended", func() bool { return !blocked() && srv.Stats().Clients == 0 })
}

// TestClose checks that Close ends requests, and refuses later ones.
func TestClose(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	done := make(chan int, 1)
	go func() {
		status, _ := serve(c, request(t, "POST", "/command", `["BLPOP","k",0]`))
		done <- status
	}()
	wait.Until(t, "BLPOP blocks", func() bool { return srv.Stats().BlockedClients == 1 })
	c.Close()
	if got := <-done; got == http.StatusOK {
		t.Errorf("status %d", got)
	}
	if got, _ := serve(c, request(t, "POST", "/command", `["PING"]`)); got != http.StatusServiceUnavailable {
		t.Errorf("after Close: %d", got)
	}
}
