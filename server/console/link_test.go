package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/console"
)

const (
	firstSecret  = "a-secret-of-links"
	linkSecret   = "0123456789abcdef"
	secondSecret = "fedcba9876543210"
)

// link returns a link that expires after a time.
func link(t *testing.T, secret string, after time.Duration, of console.LiveQueries) string {
	t.Helper()
	s, err := console.Link(secret, time.Now().Add(after), of)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLink checks that a link is served without a login for its queries, and for nothing else.
func TestLink(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"requirepass": "pw", "http-link-secret": linkSecret + " " + secondSecret,
		"user": "viewer on nopass ~k* &__query@* -@all +subscribe +get", "http-link-user": "viewer", "protected-mode": "no"})
	srv.Must("SET", "k 1", "x")
	for name, of := range map[string]console.LiveQueries{
		"one":         {Queries: []string{`GET "k 1"`}},
		"an interval": {Queries: []string{`GET "k 1"`}, Interval: time.Second},
	} {
		for _, secret := range []string{linkSecret, secondSecret, secondSecret + " " + firstSecret} {
			w := watch(t, web, link(t, secret, time.Hour, of))
			if got := w.next(); got != `data: {"query":0,"result":"x"}` {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	good := link(t, linkSecret, time.Hour, console.LiveQueries{Queries: []string{"GET k", "GET kb"}})
	watch(t, web, good).expect(`data: {"query":0,"result":null}`, `data: {"query":1,"result":null}`)
	change := func(f func(q url.Values)) string {
		q, err := url.ParseQuery(strings.TrimPrefix(good, "/live?"))
		if err != nil {
			t.Fatal(err)
		}
		f(q)
		return "/live?" + q.Encode()
	}
	for name, one := range map[string]struct{ path, want string }{
		"another query":     {change(func(q url.Values) { q["q"] = []string{"GET k", "GET kc"} }), "signature is wrong"},
		"one query more":    {change(func(q url.Values) { q.Add("q", "GET kc") }), "signature is wrong"},
		"one query less":    {change(func(q url.Values) { q["q"] = q["q"][:1] }), "signature is wrong"},
		"queries joined":    {change(func(q url.Values) { q["q"] = []string{"GET k\nGET kb"} }), "line end"},
		"another database":  {change(func(q url.Values) { q.Set("db", "1") }), "signature is wrong"},
		"another interval":  {change(func(q url.Values) { q.Set("interval", "1ms") }), "signature is wrong"},
		"a later end":       {change(func(q url.Values) { q.Set("exp", "9999999999") }), "signature is wrong"},
		"no end":            {change(func(q url.Values) { q.Del("exp") }), "signature is wrong"},
		"no signature":      {change(func(q url.Values) { q.Set("sig", "") }), "signature is wrong"},
		"half a signature":  {change(func(q url.Values) { q.Set("sig", q.Get("sig")[:32]) }), "signature is wrong"},
		"no hexadecimal":    {change(func(q url.Values) { q.Set("sig", "x") }), "signature is wrong"},
		"another secret":    {link(t, firstSecret, time.Hour, console.LiveQueries{Queries: []string{"GET k"}}), "signature is wrong"},
		"an expired link":   {link(t, linkSecret, -time.Second, console.LiveQueries{Queries: []string{"GET k"}}), "has expired"},
		"a forbidden key":   {link(t, linkSecret, time.Hour, console.LiveQueries{Queries: []string{"GET other"}}), "NOPERM"},
		"another path":      {strings.Replace(good, "/live", "/events", 1), "NOAUTH"},
		"a signature alone": {"/live?q=GET+k", "NOAUTH"},
	} {
		status := http.StatusForbidden
		if one.want == "NOAUTH" {
			status = http.StatusUnauthorized
		}
		if got := watch(t, web, one.path).refused(status); !strings.Contains(got, one.want) || !strings.HasPrefix(got, `{"error":"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
	// A login does not add to the rights of a link.
	both := link(t, linkSecret, time.Hour, console.LiveQueries{Queries: []string{"GET other"}})
	watch(t, web, both, "Authorization: Bearer pw").refused(http.StatusForbidden)
	watch(t, web, both+"&user=default&password=pw").refused(http.StatusForbidden)
	// The secrets and the user change at run time.
	srv.Must("CONFIG", "SET", "http-link-secret", secondSecret)
	watch(t, web, good).refused(http.StatusForbidden)
	srv.Must("CONFIG", "SET", "http-link-secret", linkSecret)
	for _, user := range []string{"none", "off"} {
		srv.Must("ACL", "SETUSER", "off", "off", "allkeys", "allchannels", "+@all")
		srv.Must("CONFIG", "SET", "http-link-user", user)
		if got := watch(t, web, good).refused(http.StatusForbidden); !strings.Contains(got, "NOPERM") {
			t.Errorf("as %s: %s", user, got)
		}
	}
	srv.Must("CONFIG", "SET", "http-link-user", "default")
	watch(t, web, good).next()
	srv.Must("CONFIG", "SET", "http-link-secret", "")
	if got := watch(t, web, good).refused(http.StatusForbidden); !strings.Contains(got, "http-link-secret is not set") {
		t.Errorf("without a secret: %s", got)
	}
	if _, err := srv.Do(t.Context(), "CONFIG", "SET", "http-link-secret", linkSecret+" short"); err == nil {
		t.Error("a short secret is accepted")
	}
}

// TestLinkExpires checks that the stream of a link ends when the link expires.
func TestLinkExpires(t *testing.T) {
	t.Parallel()
	_, web := serving(t, map[string]string{"http-link-secret": linkSecret})
	w := watch(t, web, link(t, linkSecret, 2*time.Second, console.LiveQueries{Queries: []string{"GET k"}}))
	if w.res.StatusCode == http.StatusForbidden {
		t.Skip("the machine is too busy to request the link within its time")
	}
	w.expect(`data: {"query":0,"result":null}`, "event: end\ndata: {\"error\":\"the stream has ended: the link has expired\",\"reason\":\"expired\"}")
	w.refused(http.StatusOK)
}

// TestLinkOfOrigin checks that pages of configured sites may read a link, and others not.
func TestLinkOfOrigin(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{Origins: []string{"https://example.org"}}, map[string]string{"http-link-secret": linkSecret})
	web := httptest.NewServer(c)
	defer web.Close()
	path := link(t, linkSecret, time.Hour, console.LiveQueries{Queries: []string{"GET k"}})
	w := watch(t, web, path, "Origin: https://example.org")
	w.next()
	if got := w.res.Header.Get("Access-Control-Allow-Origin"); got != "https://example.org" {
		t.Errorf("Access-Control-Allow-Origin: %q", got)
	}
	w = watch(t, web, path+"0", "Origin: https://example.org")
	w.refused(http.StatusForbidden)
	if got := w.res.Header.Get("Access-Control-Allow-Origin"); got != "https://example.org" {
		t.Errorf("Access-Control-Allow-Origin of an error: %q", got)
	}
	watch(t, web, path, "Origin: https://example.com").refused(http.StatusForbidden)
}

// TestLinkErrors checks what Link refuses.
func TestLinkErrors(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]console.LiveQueries{
		"needs a query": {}, "line end": {Queries: []string{"GET k", "a\nb"}},
		"db is the number": {Queries: []string{"GET k"}, DB: -1}, "interval is": {Queries: []string{"GET k"}, Interval: -1},
	} {
		if _, err := console.Link(linkSecret, time.Now(), of); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", of, err, want)
		}
	}
	if _, err := console.Link(" ", time.Now(), console.LiveQueries{Queries: []string{"GET k"}}); err == nil {
		t.Error("no secret is accepted")
	}
}

func ExampleLink() {
	until := time.Unix(2_000_000_000, 0)
	path, err := console.Link("0123456789abcdef", until, console.LiveQueries{Queries: []string{"ZRANK club ann", "ZCARD club"}})
	fmt.Println(path, err)
	// Output: /live?db=0&exp=2000000000&q=ZRANK+club+ann&q=ZCARD+club&sig=2f2ba842c2322aa3266c0cf1d93857c70d5ce0b7b2a3639ed3980fa357d5d525 <nil>
}
