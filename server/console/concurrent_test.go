package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/zsetd/zsetd/server/console"
)

// TestConcurrentUse uses each handler beside each other one and beside commands that change
// what they show, for the race detector. None of them ends the other, or the server.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	type try struct{ method, target, body string }
	tries := []try{
		{"POST", "/command", `["ZADD","z","1","a"]`},
		{"POST", "/command", `[["CLIENT","LIST"],["CLIENT","KILL","TYPE","normal"]]`},
		{"POST", "/command", `["CONFIG","SET","http-streams","20"]`},
		{"POST", "/command", `["ACL","SETUSER","u","on",">p","~*","&*","+@all"]`},
		{"POST", "/command", `["ACL","DELUSER","u"]`},
		{"POST", "/command", `["FLUSHALL"]`},
		{"POST", "/command", `{"watch":["s"],"if":[[["GET","s"],null]],"then":[["SET","s","1"]]}`},
		{"GET", "/events?channel=c", ""}, {"GET", "/events?pattern=*", ""}, {"GET", "/events?key=z&state=1", ""}, {"GET", "/events?stats=1", ""},
		{"GET", "/events?channel=c&user=u&password=p", ""},
		{"GET", "/rank?key=z&member=a", ""}, {"GET", "/stats", ""}, {"GET", "/log", ""}, {"GET", "/varz", ""}, {"GET", "/metrics", ""},
		{"GET", "/blocked", ""}, {"GET", "/parameters", ""}, {"POST", "/backup", ""},
		{"GET", "/healthz", ""}, {"GET", "/readyz", ""}, {"GET", "/login", ""}, {"POST", "/login", "user=u&password=p"}, {"POST", "/logout", ""}, {"GET", "/", ""},
	}
	srv, c := run(t, console.Options{}, nil)
	use := func(ctx context.Context, one try) {
		r := request(t, one.method, one.target, one.body)
		if one.target == "/login" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		c.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
	}
	for i, a := range tries {
		for _, b := range tries[i:] {
			ctx, cancel := context.WithCancel(t.Context())
			var both sync.WaitGroup
			for _, one := range []try{a, b} {
				both.Go(func() {
					for range 2 {
						use(ctx, one)
					}
				})
			}
			srv.Must("PUBLISH", "c", "m")
			srv.Must("ZINCRBY", "z", "1", "a")
			cancel()
			both.Wait()
		}
	}
	if status, body := serve(c, request(t, http.MethodPost, "/command", `["PING"]`)); status != http.StatusOK {
		t.Errorf("PING: %d, %s", status, body)
	}
	var all sync.WaitGroup // beside Close
	for _, one := range tries {
		all.Go(func() { use(t.Context(), one) })
	}
	all.Go(func() { c.Close() })
	all.Wait()
}
