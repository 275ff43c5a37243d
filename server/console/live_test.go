package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// liveOf returns the path of GET /live for queries.
func liveOf(queries ...string) string { return "/live?" + url.Values{"q": queries}.Encode() }

// TestLive checks that several queries in one stream have their numbers, their present replies
// first, and each reply that differs.
func TestLive(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	srv.Must("SET", "s", "one")
	w := watch(t, web, liveOf("ZRANGE board 0 9", "GET s", `GET "a\x00\n"`)+"&interval=0s")
	w.expect(`data: {"query":0,"result":[]}`, `data: {"query":1,"result":"one"}`, `data: {"query":2,"result":null}`)
	if got := w.res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type: %s", got)
	}
	srv.Must("ZADD", "board", 1, "ann\n\xff")
	w.expect(`data: {"query":0,"result":[{"base64":"YW5uCv8="}]}`)
	srv.Must("SET", "a\x00\n", "<img>")
	w.expect(`data: {"query":2,"result":"\u003cimg\u003e"}`)
	srv.Must("SET", "board", "x")
	w.expect(`data: {"query":0,"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}`)
	srv.Must("DEL", "board")
	w.expect(`data: {"query":0,"result":[]}`)
	one := watch(t, web, liveOf("GET s")+"&db=1")
	one.expect(`data: {"query":0,"result":null}`)
	srv.Must("SWAPDB", 0, 1)
	one.expect(`data: {"query":0,"result":"one"}`)
}

// TestLiveTime checks that the passing of time changes a reply.
func TestLiveTime(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	srv.Must("ZADD", "hits", "@now", "a")
	w := watch(t, web, liveOf("ZCOUNT hits @now-5m +inf"))
	w.expect(`data: {"query":0,"result":1}`)
	srv.Advance(6 * time.Minute)
	w.expect(`data: {"query":0,"result":0}`)
}

// TestLiveShared checks that viewers of one query, one that comes late too, share a subscription
// on one connection, which ends with the last of them.
func TestLiveShared(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	srv.Must("SET", "s", "x")
	var all []*watcher
	for i := range 20 {
		w := watch(t, web, liveOf("GET s", "GET s", fmt.Sprintf("GET s%d", i)))
		w.expect(`data: {"query":0,"result":"x"}`, `data: {"query":1,"result":"x"}`, `data: {"query":2,"result":null}`)
		all = append(all, w)
	}
	if n := srv.Stats().Clients; n != 1 {
		t.Errorf("%d clients", n)
	}
	if n := srv.Stats().Channels; n != 21 {
		t.Errorf("%d channels", n)
	}
	srv.Must("SET", "s", "y")
	for _, w := range all {
		w.expect(`data: {"query":0,"result":"y"}`, `data: {"query":1,"result":"y"}`)
		w.cancel()
	}
	wait.Until(t, "the subscriptions have ended", func() bool { return srv.Stats().Channels == 0 && srv.Stats().Clients == 0 })
}

func TestLiveRefused(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"user": "ann on >secret ~k* &__query@* +@all", "protected-mode": "no"})
	for path, want := range map[string]string{
		"/live":                                "name between 1 and 100 queries",
		"/live?" + strings.Repeat("q=a&", 101): "name between 1 and 100 queries",
		"/live?q=GET+k&db=x":                   "db is the number",
		"/live?q=GET+k&db=99":                  "DB index is out of range",
		"/live?q=GET+k&interval=x":             "interval is a duration",
		"/live?q=GET+k&interval=-1s":           "interval is a duration",
		"/live?q=GET+k&interval=25h":           "interval is a duration",
		"/live?q=":                             "a live query is a channel of the form",
		"/live?q=GET":                          "wrong number of arguments",
		"/live?q=NOSUCH":                       "unknown command",
		"/live?q=SET+k+v":                      "not a command that only reads",
		"/live?q=ZRANDMEMBER+k":                "differs for the same data",
		"/live?q=GET+%22k":                     "unbalanced quotes",
		"/live?q=GET+k&q=SET+k+v":              "not a command that only reads",
	} {
		if got := watch(t, web, path).refused(http.StatusBadRequest); !strings.Contains(got, want) {
			t.Errorf("%.50s: %s", path, got)
		}
	}
	const ann = "Authorization: Bearer ann:secret"
	if got := watch(t, web, liveOf("GET other"), ann).refused(http.StatusForbidden); !strings.Contains(got, "NOPERM") {
		t.Errorf("another key: %s", got)
	}
	watch(t, web, liveOf("GET k")+"&user=ann&password=x").refused(http.StatusUnauthorized)
	watch(t, web, liveOf("GET k")+"&user=ann&password=secret").expect(`data: {"query":0,"result":null}`)
	srv.Must("CONFIG", "SET", "query-max", 1)
	if got := watch(t, web, liveOf("GET k1", "GET k2")).refused(http.StatusServiceUnavailable); !strings.Contains(got, "query-max") {
		t.Errorf("above query-max: %s", got)
	}
	srv.Must("CONFIG", "SET", "query-max", 1000)
	srv.Must("CONFIG", "SET", "http-streams-per-address", 2)
	watch(t, web, liveOf("GET k")).next()
	watch(t, web, liveOf("GET k")).refused(http.StatusTooManyRequests)
	wait.Until(t, "nothing of what was refused is left", func() bool { return srv.Stats().Channels == 1 })
}

// TestLiveOfOneBrowser checks what one browser that opens more and more streams has: as many as
// the limit of its address, and then an error that says so. Another address has its own. Nothing
// is left when they have gone.
func TestLiveOfOneBrowser(t *testing.T) {
	t.Parallel()
	const limit = 50
	srv, c := run(t, console.Options{}, map[string]string{"http-streams-per-address": strconv.Itoa(limit)})
	defer c.Close()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if address := r.Header.Get("Test-Address"); address != "" {
			r.RemoteAddr = address
		}
		c.ServeHTTP(w, r)
	}))
	defer web.Close()
	counters := func() string {
		t.Helper()
		var b strings.Builder
		for line := range strings.Lines(srv.Must("INFO", "stats").(string)) {
			if name, n, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "live_queries" || name == "live_query_subscriptions" {
				b.WriteString(n + " ")
			}
		}
		return b.String()
	}
	const other = "Test-Address: 127.0.0.2:1"
	for range 2 { // streams that have gone do not count
		var open []*watcher
		for i := range limit {
			w := watch(t, web, liveOf("ZCARD board", fmt.Sprintf("ZRANK board %d", i)))
			w.expect(`data: {"query":0,"result":0}`, `data: {"query":1,"result":null}`)
			open = append(open, w)
		}
		for i := range 10 {
			got := watch(t, web, liveOf(fmt.Sprintf("ZRANK board %d", limit+i))).refused(http.StatusTooManyRequests)
			if !strings.Contains(got, "too many streams to this address: http-streams-per-address is 50") {
				t.Fatal(got)
			}
		}
		w := watch(t, web, liveOf("ZCARD board"), other)
		w.expect(`data: {"query":0,"result":0}`)
		if got := counters(); got != "51 51 " {
			t.Errorf("live_queries, live_query_subscriptions: %s, want 51 51", got)
		}
		srv.Must("ZADD", "board", 1, "a")
		for _, w := range append(open, w) {
			w.expect(`data: {"query":0,"result":1}`)
			w.cancel()
		}
		wait.Until(t, "nothing is left", func() bool { return counters() == "0 0 " && srv.Stats().Clients == 0 })
		srv.Must("DEL", "board")
	}
}

// TestLiveEnds checks the reasons for the end of a stream.
func TestLiveEnds(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, map[string]string{"user": "ann on >secret ~* &* +@all"})
	web := httptest.NewServer(c)
	defer web.Close()
	const ann = "Authorization: Bearer ann:secret"
	reason := func(w *watcher, want string) {
		t.Helper()
		name, data, _ := strings.Cut(w.next(), "\ndata: ")
		var end struct{ Error, Reason string }
		if err := json.Unmarshal([]byte(data), &end); err != nil || name != "event: end" || end.Reason != want || end.Error == "" {
			t.Errorf("%s %s, %v, want the reason %s", name, data, err, want)
		}
		w.refused(http.StatusOK) // and no more
	}
	lost, kept := watch(t, web, liveOf("GET a"), ann), watch(t, web, liveOf("GET k"), ann)
	lost.next()
	kept.next()
	srv.Must("ACL", "SETUSER", "ann", "resetkeys", "~k*")
	reason(lost, "permission")
	reason(kept, "closed")
	w := watch(t, web, liveOf("GET k"), ann)
	w.next()
	srv.Must("ACL", "DELUSER", "ann")
	reason(w, "permission")
	for _, path := range []string{liveOf("GET k"), "/rank?key=z&member=m", "/events?channel=a"} {
		w := watch(t, web, path)
		if path == "/events?channel=a" {
			srv.Must("PUBLISH", "a", "x")
		}
		w.next()
		defer reason(w, "shutdown")
	}
	c.Close()
}

// TestLiveServerEnds checks the end of streams of a server that is closed before its console.
func TestLiveServerEnds(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	w := watch(t, web, liveOf("GET k"))
	w.next()
	srv.Close()
	if got := w.next(); !strings.HasPrefix(got, "event: end\n") || !strings.HasSuffix(got, `"reason":"shutdown"}`) {
		t.Errorf("%s", got)
	}
}

// TestUserOfConnection checks that [server.As] gives a connection a user, and one that is not
// there no permission.
func TestUserOfConnection(t *testing.T) {
	t.Parallel()
	srv, _ := serving(t, map[string]string{"user": "ann on >secret ~k* +get +acl|whoami", "requirepass": "pw"})
	srv.Must("ACL", "SETUSER", "off", "off", "allkeys", "+@all")
	for user, want := range map[string]string{
		"ann": "$3\r\nann\r\n", "default": "$7\r\ndefault\r\n",
		"off": "-NOPERM", "none": "-NOPERM", "": "-NOAUTH",
	} {
		nc, err := srv.Dialer()(server.As(t.Context(), user), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		fmt.Fprint(nc, "ACL WHOAMI\r\n")
		b := make([]byte, 100)
		if n, err := nc.Read(b); err != nil || !strings.HasPrefix(string(b[:n]), want) {
			t.Errorf("%q: %q, %v", user, b[:n], err)
		}
	}
}
