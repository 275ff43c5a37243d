package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
)

// testNeighbour opens pages of all kinds of keys: the statistics of the server stay as they are.
// The slow log has the evaluations of all live queries.
func testNeighbour(t *testing.T, open func(...string) *page) {
	p := open("slowlog-log-slower-than", "0", "slowlog-max-len", "10000", "notify-keyspace-events", "SKA")
	for _, command := range [][]any{{"SET", "s", "x"}, {"RPUSH", "l", "x"}, {"SADD", "set", "x"}, {"HSET", "h", "f", "v"}, {"ZADD", "z", 1, "m"}, {"XADD", "x", "*", "f", "v"},
		{"ZADD", "due", 1700000000, "group"}, {"SADD", "details:group", "e"}, {"HSET", "participants", "f", "v"}, {"ZADD", "waiting", 1, "m"}, {"ZADD", "checkin", 1700000000, "m"}} {
		p.srv.Must(command...)
	}
	counted := func() string {
		t.Helper()
		var b strings.Builder
		for _, command := range [][]any{{"INFO", "commandstats"}, {"INFO", "errorstats"}, {"SLOWLOG", "GET", -1}, {"INFO", "stats"}} {
			reply, err := p.srv.Do(server.Apart(t.Context()), command...)
			if err != nil {
				t.Fatal(err)
			}
			if entries, is := reply.([]any); is {
				reply = len(slices.DeleteFunc(entries, func(entry any) bool { return strings.Contains(fmt.Sprint(entry), "__query@") }))
			}
			for line := range strings.Lines(fmt.Sprintln(command, reply)) {
				if name, _, _ := strings.Cut(line, ":"); command[1] != "stats" || strings.HasPrefix(name, "keyspace_") || name == "total_commands_processed" || name == "total_error_replies" || name == "apart_error_replies" {
					b.WriteString(line)
				}
			}
		}
		return b.String()
	}
	before := counted()
	for _, key := range []string{"s", "l", "set", "h", "z", "x", "due", "participants", "waiting", "none"} {
		p.visit("keys?key=" + key)
		if key == "none" {
			p.shows("#detail", "There is no key none")
			continue
		}
		p.shows("#detail .livedot", "live")
		for _, view := range []string{"deadlines", "live", "boxes", "folder", "line", "timeline"} {
			if key == "z" || key == "due" || key == "waiting" {
				p.visit("keys?key=" + key + "&view=" + view)
				p.shows("#detail .livedot", "live")
				p.is(`document.querySelector('#detail .value').childElementCount`)
			}
		}
	}
	p.visit("")
	p.shows("#facts", "Memory")
	p.visit("messages")
	if after := counted(); after != before {
		t.Errorf("the page has counted:\n%s\nbefore:\n%s", after, before)
	}
}
