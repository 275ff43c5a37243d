package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// watcher reads a stream of Server-Sent Events.
type watcher struct {
	t      *testing.T
	res    *http.Response
	lines  *bufio.Reader
	cancel func()
}

// watch requests a stream with a header, as "name: value".
func watch(t *testing.T, web *httptest.Server, path string, headers ...string) *watcher {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", web.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return &watcher{t, res, bufio.NewReader(res.Body), cancel}
}

// next returns the next event: its lines without the empty one. Comments and the interval of
// reconnection are skipped.
func (w *watcher) next() string {
	w.t.Helper()
	var event []string
	for {
		line, err := w.lines.ReadString('\n')
		if err != nil {
			w.t.Fatalf("after %q: %v", event, err)
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && len(event) > 0:
			return strings.Join(event, "\n")
		case line != "" && !strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "retry:"):
			event = append(event, line)
		}
	}
}

// TestChanges checks that changes of a key are streamed without keyspace events, those of other
// keys are not, and many at once are few events.
func TestChanges(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"user": "ann on >pw ~* +@all -client"})
	w := watch(t, web, "/events?changes=k&changes=gone")
	const change = `data: {"key":"k","event":"change"}`
	srv.Must("SET", "k2", "v")
	srv.Must("ZADDEX", "k", "PX", 100000, "MEMBERS", 1, 1, "a")
	w.expect(change)
	srv.Advance(101e9)
	w.expect(change)
	for i := range 1000 {
		srv.Must("SET", "k", i)
	}
	srv.Must("SET", "gone", "v")
	n := 0
	for w.next() == change {
		if n++; n > 900 {
			t.Fatal("changes are not collected")
		}
	}
	srv.Must("FLUSHALL")
	for w.next() == change { // the last one of SET may come late
	}
	watch(t, web, "/events?changes=k&format=raw", "Authorization: Bearer ann:pw").refused(403)
}

// expect reads the next events.
func (w *watcher) expect(events ...string) {
	w.t.Helper()
	for _, want := range events {
		if got := w.next(); got != want {
			w.t.Errorf("event %q, want %q", got, want)
		}
	}
}

// refused returns the body of a response that is no stream.
func (w *watcher) refused(status int) string {
	w.t.Helper()
	b, _ := io.ReadAll(w.res.Body)
	if w.res.StatusCode != status {
		w.t.Errorf("status %d %s, want %d", w.res.StatusCode, b, status)
	}
	return string(b)
}

// serving starts a server, a console of it and an HTTP server.
func serving(t *testing.T, config map[string]string) (*servertest.Server, *httptest.Server) {
	srv, c := run(t, console.Options{}, config)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	t.Cleanup(func() { c.Close() })
	return srv, web
}

func TestEvents(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	a := watch(t, web, "/events?channel=a&channel=b&pattern=a*")
	raw := watch(t, web, "/events?channel=a&format=raw")
	srv.Must("PUBLISH", "b", "<img onerror=x>\x00") // subscriptions have no common order
	a.expect(`data: {"channel":"b","message":"\u003cimg onerror=x\u003e\u0000"}`)
	srv.Must("PUBLISH", "abc", "\xff")
	a.expect(`data: {"channel":"abc","pattern":"a*","message":{"base64":"/w=="}}`)
	srv.Must("PUBLISH", "a", "one\ndata: two\r\nid: 5\rend")
	raw.expect("data: one\ndata: data: two\ndata: id: 5\ndata: end")
	if got := a.res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type: %s", got)
	}
}

// TestEventsShared checks that viewers of one channel share a subscription, which ends with
// the last of them.
func TestEventsShared(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	var all []*watcher
	for range 20 {
		all = append(all, watch(t, web, "/events?channel=a"))
	}
	if got := srv.Must("PUBLISH", "a", "x"); got != int64(1) {
		t.Errorf("%v subscribers", got)
	}
	for _, w := range all {
		w.expect(`data: {"channel":"a","message":"x"}`)
	}
	for i, w := range all {
		if i > 0 {
			w.cancel()
		}
	}
	srv.Must("PUBLISH", "a", "y")
	all[0].expect(`data: {"channel":"a","message":"y"}`)
	all[0].cancel()
	wait.Until(t, "the subscription has ended", func() bool { return srv.Stats().Channels == 0 && srv.Stats().Clients == 0 })
}

func TestEventsRefused(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"user": "ann on >secret ~k* &news* +@all", "protected-mode": "no"})
	for path, want := range map[string]string{
		"/events":                                  "name what to receive",
		"/events?channel=a&format=xml":             "format is json or raw",
		"/events?key=a&db=x":                       "db is the number",
		"/events?stream=a&stream=b":                "only one stream",
		"/events?" + strings.Repeat("key=a&", 101): "at most 100",
	} {
		if got := watch(t, web, path).refused(http.StatusBadRequest); !strings.Contains(got, want) {
			t.Errorf("%.50s: %s", path, got)
		}
	}
	if got := watch(t, web, "/events?key=a").refused(http.StatusConflict); !strings.Contains(got, "CONFIG SET notify-keyspace-events SAK") {
		t.Errorf("without events: %s", got)
	}
	if got := watch(t, web, "/events?channel=other", "Authorization: Bearer ann:secret").refused(http.StatusForbidden); !strings.Contains(got, "NOPERM") {
		t.Errorf("another channel: %s", got)
	}
	srv.Must("SET", "k", "a string")
	if got := watch(t, web, "/events?stream=k").refused(http.StatusBadRequest); !strings.Contains(got, "WRONGTYPE") {
		t.Errorf("a string: %s", got)
	}
}

// TestEventsRevoked checks that a stream ends when its user loses the permission.
func TestEventsRevoked(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"user": "ann on >secret ~* &* +@all"})
	w := watch(t, web, "/events?channel=a", "Authorization: Bearer ann:secret")
	srv.Must("ACL", "SETUSER", "ann", "resetchannels")
	if got := w.next(); !strings.HasPrefix(got, "event: end\ndata: {\"error\":") || !strings.HasSuffix(got, `"reason":"permission"}`) {
		t.Errorf("after the revocation: %s", got)
	}
	w.refused(http.StatusOK) // and no more
	watch(t, web, "/events?channel=a", "Authorization: Bearer ann:secret").refused(http.StatusForbidden)
}

func TestEventsOfKey(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"notify-keyspace-events": "SAK"})
	w := watch(t, web, "/events?key=z")
	one := watch(t, web, "/events?key=z&db=1")
	srv.Must("ZADD", "z", 1, "a,1:x", 2, "b\xff")
	srv.Must("ZREM", "z", "a,1:x")
	srv.Must("SET", "other", 1)
	srv.Must("DEL", "z")
	w.expect(
		`data: {"channel":"__subkeyspace@0__:z","key":"z","event":"zadd","members":["a,1:x",{"base64":"Yv8="}],"message":{"base64":"emFkZHw1OmEsMTp4LDI6Yv8="}}`,
		`data: {"channel":"__subkeyspace@0__:z","key":"z","event":"zrem","members":["a,1:x"],"message":"zrem|5:a,1:x"}`,
		`data: {"channel":"__keyspace@0__:z","key":"z","event":"del","members":[],"message":"del"}`)
	srv.Must("ZADDEX", "z", "EX", 10, "MEMBERS", 1, 1, "c")
	w.next() // zadd
	w.next() // zexpire
	srv.Advance(time.Minute)
	if got := w.next(); !strings.Contains(got, `"event":"zexpired","members":["c"]`) {
		t.Errorf("after the deadline: %s", got)
	}
	res, err := http.Post(web.URL+"/command?db=1", "application/json", strings.NewReader(`["ZADD","z",1,"a"]`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	one.expect(`data: {"channel":"__subkeyspace@1__:z","key":"z","event":"zadd","members":["a"],"message":"zadd|1:a"}`)
}

// TestEventsReplay checks that a client which connects again receives the entries of a stream
// that it has missed, each once.
func TestEventsReplay(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	add := func(i int) { srv.Must("XADD", "s", fmt.Sprintf("%d-1", i), "text", fmt.Sprint(i), "n", "\xff") }
	event := func(i int) string {
		return fmt.Sprintf("id: %d-1\ndata: {\"stream\":\"s\",\"id\":\"%d-1\",\"fields\":[[\"text\",\"%d\"],[\"n\",{\"base64\":\"/w==\"}]]}", i, i, i)
	}
	for i := range 250 {
		add(i + 1)
	}
	live := watch(t, web, "/events?stream=s")
	again := watch(t, web, "/events?stream=s", "Last-Event-ID: 3-1")
	first := watch(t, web, "/events?stream=s&last=0-0&format=raw")
	add(251)
	live.expect(event(251))
	for i := 4; i <= 251; i++ {
		again.expect(event(i))
	}
	for i := range 251 {
		first.expect(fmt.Sprintf("id: %d-1\ndata: %d", i+1, i+1))
	}
	if got := watch(t, web, "/events?stream=s", "Last-Event-ID: x").next(); !strings.HasPrefix(got, "event: end") {
		t.Errorf("an id that is none: %s", got)
	}
}

// TestSlowViewer checks that a viewer which does not read is cut, and others are not.
func TestSlowViewer(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	slow := watch(t, web, "/events?channel=a&format=raw")
	fast := watch(t, web, "/events?channel=a&format=raw")
	text := strings.Repeat("x", 1<<20)
	for i := range 64 { // more than sockets and the feed hold
		srv.Must("PUBLISH", "a", text)
		if got := fast.next(); len(got) != len("data: ")+len(text) {
			t.Fatalf("message %d has %d bytes", i, len(got))
		}
	}
	// It ends with an event, or without one if a write to it has waited for too long.
	rest, err := io.ReadAll(slow.lines)
	if n := strings.Count(string(rest), "data: x"); n == 64 {
		t.Errorf("the slow viewer has received everything: %v", err)
	}
}

// until reads events up to one.
func (w *watcher) until(event string) {
	w.t.Helper()
	for got := w.next(); got != event; got = w.next() {
		if strings.HasPrefix(got, "event: end") {
			w.t.Fatalf("%s, want %s", got, event)
		}
	}
}

// TestRank checks the standing of members in both orders.
func TestRank(t *testing.T) {
	t.Parallel()
	for _, rev := range []string{"0", "1"} {
		t.Run("rev="+rev, func(t *testing.T) {
			t.Parallel()
			srv, web := serving(t, nil)
			rank := func(i, card int) int {
				if rev == "1" {
					return card - 1 - i
				}
				return i
			}
			query := "/rank?rate=20&rev=" + rev + "&key=z&member="
			a, b := watch(t, web, query+"a"), watch(t, web, query+url.QueryEscape("b\x00\xff"))
			const none = `data: {"rank":null,"score":null,"card":%d}`
			a.expect(fmt.Sprintf(none, 0))
			b.expect(fmt.Sprintf(none, 0))
			srv.Must("ZADD", "z", 2, "a")
			a.until(`data: {"rank":0,"score":2,"card":1}`)
			b.until(fmt.Sprintf(none, 1))
			srv.Must("ZADD", "z", "-inf", "b\x00\xff")
			b.until(fmt.Sprintf(`data: {"rank":%d,"score":"-inf","card":2}`, rank(0, 2)))
			a.until(fmt.Sprintf(`data: {"rank":%d,"score":2,"card":2}`, rank(1, 2)))
			srv.Must("ZADDEX", "z", "XX", "EX", 10, "MEMBERS", 1, 2, "a")
			srv.Advance(time.Minute)
			a.until(fmt.Sprintf(none, 1))
			srv.Must("DEL", "z")
			a.until(fmt.Sprintf(none, 0))
			b.until(fmt.Sprintf(none, 0))
		})
	}
}

// TestRankOneMember checks viewers of one member, some of which leave.
func TestRankOneMember(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	var all []*watcher
	for range 5 {
		w := watch(t, web, "/rank?rate=20&key=z&member=a")
		w.expect(`data: {"rank":null,"score":null,"card":0}`)
		all = append(all, w)
	}
	other := watch(t, web, "/rank?rate=20&key=z&member=b")
	other.next()
	for _, i := range []int{0, 4, 2} {
		all[i].cancel()
	}
	srv.Must("ZADD", "z", 1, "a")
	for _, i := range []int{1, 3} {
		all[i].until(`data: {"rank":0,"score":1,"card":1}`)
	}
	for _, i := range []int{1, 3} {
		all[i].cancel()
	}
	srv.Must("ZADD", "z", 0, "b")
	other.until(`data: {"rank":0,"score":0,"card":2}`)
	other.cancel()
	wait.Until(t, "the connections are closed", func() bool { return srv.Stats().Clients == 0 })
}

func TestRankRefused(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"user": "ann on >secret ~k* &* +@all"})
	for _, query := range []string{"", "key=z", "member=a", "key=z&member=a&rate=0", "key=z&member=a&rate=21", "key=z&member=a&rate=x", "key=z&member=a&db=x", "key=z&member=a&db=99"} {
		watch(t, web, "/rank?"+query).refused(http.StatusBadRequest)
	}
	if got := watch(t, web, "/rank?key=z&member=a", "Authorization: Bearer ann:secret").refused(http.StatusForbidden); !strings.Contains(got, "NOPERM") {
		t.Errorf("another key: %s", got)
	}
	srv.Must("SET", "s", "x")
	if got := watch(t, web, "/rank?key=s&member=a").refused(http.StatusBadRequest); !strings.Contains(got, "WRONGTYPE") {
		t.Errorf("a string: %s", got)
	}
	w := watch(t, web, "/rank?key=k&member=a&rate=20", "Authorization: Bearer ann:secret")
	w.next()
	srv.Must("ACL", "SETUSER", "ann", "resetkeys")
	if got := w.next(); !strings.HasPrefix(got, "event: end") || !strings.HasSuffix(got, `"reason":"permission"}`) {
		t.Errorf("after the revocation: %s", got)
	}
}

// TestJSON checks that every event is JSON, whatever is in the names.
func TestJSON(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"notify-keyspace-events": "SAK"})
	for _, name := range []string{"<img onerror=x>", "a\x00b", "\xff\xfe", "\"\\\u2028", strings.Repeat("m", 1<<20)} {
		w := watch(t, web, "/events?key=z&channel="+url.QueryEscape(name[:min(len(name), 1000)]))
		srv.Must("PUBLISH", name[:min(len(name), 1000)], name)
		srv.Must("ZADD", "z", 1, name)
		for range 2 {
			data, _ := strings.CutPrefix(w.next(), "data: ")
			var v map[string]any
			if err := json.Unmarshal([]byte(data), &v); err != nil || strings.ContainsAny(data, "<>\x00\u2028") {
				t.Errorf("%.20q: %v in %.200s", name, err, data)
			}
		}
		w.cancel()
	}
}
