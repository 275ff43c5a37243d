package console_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestRecipe runs the streams of the page in PATTERNS.md, as the user that is declared there.
func TestRecipe(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../PATTERNS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## In a browser\n")
	section, _, _ = strings.Cut(section, "\n## ")
	urls := regexp.MustCompile(`new EventSource\('([^']+)'\)`).FindAllStringSubmatch(section, -1)
	user := regexp.MustCompile(`127.0.0.1:6379> (ACL SETUSER .*)`).FindStringSubmatch(section)
	if len(urls) != 2 || user == nil {
		t.Fatalf("%d streams, user %q", len(urls), user)
	}
	srv, web := serving(t, map[string]string{"notify-keyspace-events": "SAK"})
	var acl []any
	for word := range strings.FieldsSeq(user[1]) {
		acl = append(acl, word)
	}
	srv.Must(acl...)
	rank := watch(t, web, urls[0][1], "Authorization: Basic cGFnZTpzZWNyZXQ=")
	events := watch(t, web, urls[1][1], "Authorization: Basic cGFnZTpzZWNyZXQ=")
	rank.expect(`data: {"rank":null,"score":null,"card":0}`)
	srv.Must("ZADDEX", "club", "EX", 20, "MEMBERS", 1, "*", "ann")
	if got := rank.next(); !strings.HasPrefix(got, `data: {"rank":0,"score":`) {
		t.Errorf("rank: %s", got)
	}
	srv.Must("ZADDEX", "live:123:news", "EX", 20, "MEMBERS", 1, 1, `{"url":"/n/1"}`)
	for _, event := range []string{"zadd", "zexpire"} {
		if got := events.next(); !strings.Contains(got, `"event":"`+event+`","members":["{\"url\":\"/n/1\"}"]`) {
			t.Errorf("%s: %s", event, got)
		}
	}
	watch(t, web, "/rank?key=other&member=a", "Authorization: Basic cGFnZTpzZWNyZXQ=").refused(403)
	watch(t, web, "/events?channel=other", "Authorization: Basic cGFnZTpzZWNyZXQ=").refused(403)
	watch(t, web, "/varz", "Authorization: Basic cGFnZTpzZWNyZXQ=").refused(403)
}
