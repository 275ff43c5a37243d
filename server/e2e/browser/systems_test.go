package browser

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// slower is by how much the times in the sessions are longer here, so that no deadline passes
// while a busy machine draws the page.
const slower = 100

// transcripts returns the sessions in README.md of a system: commands, and pauses as durations of
// lines like "# 15s later". Subscriptions are left out.
func transcripts(t *testing.T, system string) (sessions [][]any) {
	t.Helper()
	b, err := os.ReadFile("../../examples/" + system + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var session []any
	for line := range strings.Lines(string(b)) {
		line, code := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		prompt, command, typed := strings.Cut(line, "> ")
		switch {
		case !code:
		case line == "$ redis-cli":
			sessions = append(sessions, nil)
		case strings.HasPrefix(line, "# "):
			pause, _, _ := strings.Cut(line[2:], "s later")
			d, err := time.ParseDuration(pause + "s")
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			session = append(session, slower*d)
		case typed && strings.HasPrefix(prompt, "127.0.0.1:6379"):
			command = regexp.MustCompile(` (EX |@now[+-])(\d+)(s?) `).ReplaceAllString(command+" ", " ${1}${2}00${3} ")
			if words, _ := protocol.SplitArgs(nil, []byte(command)); !strings.HasSuffix(strings.ToUpper(string(words[0])), "SUBSCRIBE") {
				session = append(session, words)
			}
		}
		if n := len(sessions); n > 0 {
			sessions[n-1] = append(sessions[n-1], session...)
			session = nil
		}
	}
	if len(sessions) < 2 {
		t.Fatalf("%s has %d sessions", system, len(sessions))
	}
	return sessions
}

// typist types commands on one connection, as redis-cli does.
type typist struct {
	p    *page
	in   *bufio.Reader
	send func(b []byte)
}

func (p *page) typist() *typist {
	p.t.Helper()
	nc, err := p.srv.Dialer()(p.t.Context(), "", "")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { nc.Close() })
	return &typist{p, bufio.NewReader(nc), func(b []byte) {
		if _, err := nc.Write(b); err != nil {
			p.t.Fatal(err)
		}
	}}
}

// run types the next lines of a session up to one that begins with a prefix, and that one too.
// It returns the lines after it. The times of a reply to BZCLAIM stand for those of the document.
func (c *typist) run(session []any, upTo string) []any {
	c.p.t.Helper()
	for i, line := range session {
		if pause, is := line.(time.Duration); is {
			c.p.srv.Advance(pause)
			continue
		}
		words := line.([][]byte)
		b := fmt.Appendf(nil, "*%d\r\n", len(words))
		for _, word := range words {
			b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
		}
		c.send(b)
		reply, err := protocol.DecodeFrom(c.in)
		if _, failed := reply.(protocol.ReplyError); failed || err != nil {
			c.p.t.Fatalf("%q: %v %v", words, reply, err)
		}
		var text []string
		for _, word := range words {
			text = append(text, string(word))
		}
		if strings.HasPrefix(strings.Join(text, " "), upTo) {
			return session[i+1:]
		}
	}
	c.p.t.Fatalf("the session has no %s", upTo)
	return nil
}

// opens clicks a key in the tree, once it is there, and waits for the view that the page
// chooses for it.
func (p *page) opens(key, view string) {
	p.t.Helper()
	row := fmt.Sprintf(`[...document.querySelectorAll('#tree .item')].find(e => e.querySelector('.name').textContent.endsWith(%q))`, key)
	p.is(row)
	p.script(row + `.click()`)
	p.shows("#detail h2", key)
	p.until("the view is "+view, func() bool { return p.text("#detail .tabs [aria-selected=true]") == view })
	p.until("the page is live", func() bool { return p.text("#detail .livedot") == "live" })
}

// TestTranscripts types the sessions of the four systems beside a page that shows the keys: each
// key appears, the page chooses the view of its system, and follows it. Nothing is configured.
func TestTranscripts(t *testing.T) {
	browser := startBrowser(t)
	start := func(t *testing.T) (*page, *typist) {
		p := open(t, browser)
		p.visit("keys")
		p.shows("#scan-text", "0 keys")
		return p, p.typist()
	}
	t.Run("LiveEventsWritten", func(t *testing.T) {
		p, cli := start(t)
		s := cli.run(transcripts(t, "liveevents")[0], "ZADD news.published:123")
		p.click("#tree .item", "news.published:")
		p.opens("123", "Live events")
		p.shows("#detail tbody tr:first-child", "/n/1")
		cli.run(s, "ZRANGE")
		p.srv.Must("ZADD", "news.published:123", "@now-2d", "old")
		p.shows("#detail .facts", "Live events\n2")
		p.srv.Must("ZREMRANGEBYSCORE", "news.published:123", "-inf", "@now-24h") // as the next reader does
		p.shows("#detail .facts", "Live events\n1")
	})
	t.Run("LiveEvents", func(t *testing.T) {
		p, cli := start(t)
		list := transcripts(t, "liveevents")
		for _, line := range list[1] {
			cli.run([]any{line}, "")
		}
		s := cli.run(list[2], "ZADDEX live:123:news")
		p.visit("keys?key=live:123:news")
		p.shows("#detail .tabs [aria-selected=true]", "Live events")
		p.shows("#detail tbody tr:first-child", "/n/1")
		p.until("the page is live", func() bool { return p.text("#detail .livedot") == "live" })
		s = cli.run(s, "ZADDEX live:123:news")
		p.shows("#detail tbody tr:first-child", "/n/2")
		s = cli.run(s, "ZREM ")
		p.until("the event is removed", func() bool { return !strings.Contains(p.text("#detail tbody"), "/n/2") })
		cli.run(s, "ZCARD") // after the deadline
		p.shows("#detail .facts", "Live events\n0")
	})
	t.Run("TimeboxesWritten", func(t *testing.T) {
		p, cli := start(t)
		s := cli.run(transcripts(t, "timeboxes")[0], "EXEC")
		if len(s) != 0 {
			t.Errorf("%d more lines", len(s))
		}
		p.opens("tb./front", "Timeboxes")
		p.shows("#detail .facts", "Sum\n1")
		p.shows("#detail tbody tr", "26968721")
		p.srv.Must("ZINCRBY", "pv./front", 41, "26968721") // a key beside the one that is open
		p.shows("#detail .facts", "Sum\n42")
		p.opens("pv./front", "Timeboxes")
		p.srv.Must("ZADD", "tb./front", 26968722, "26968722")
		p.shows("#detail tbody tr:first-child", "26968722")
	})
	t.Run("Timeboxes", func(t *testing.T) {
		p, cli := start(t)
		s := cli.run(transcripts(t, "timeboxes")[1], "ZADDEX")
		p.opens("/front", "Timeboxes") // in the folder hits:
		p.shows("#detail .facts", "Sum\n1")
		s = cli.run(s, "ZADDEX")
		p.shows("#detail .facts", "Sum\n2")
		s = cli.run(s, "ZADDEX")
		p.shows("#detail tbody tr:first-child", "12:00:10")
		cli.run(s, "ZRANGE hits:/front 0 -1") // the first box has expired
		p.shows("#detail .facts", "Boxes\n1")
	})
	t.Run("FolderWritten", func(t *testing.T) {
		p, cli := start(t)
		s := cli.run(transcripts(t, "folder")[0], "ZADD folder")
		p.opens("folder", "Folder")
		p.fill(".options input[type=number]", "200")
		p.shows(".lane:nth-child(2)", "account_1")
		p.shows(".lane:nth-child(2)", "2 events")
		s = cli.run(s, "ZRANGEBYSCORE folder") // three seconds later; the page asks for the time once a minute
		p.visit("keys?key=folder")
		p.fill(".options input[type=number]", "200")
		p.shows(".lane:nth-child(1)", "account_1")
		cli.run(s, "ZREM folder")
		p.shows(".lane:nth-child(1) b", "0")
	})
	t.Run("Folder", func(t *testing.T) {
		p, cli := start(t)
		list := transcripts(t, "folder")
		cli.run(list[1], "EXEC")
		p.opens("due", "Folder")
		p.fill(".options input[type=number]", "500")
		p.shows(".lane:nth-child(2)", "account_1")
		p.shows(".lane:nth-child(2)", "1 events")
		p.srv.Advance(600e9)
		cli.run(list[2], "BZCLAIM")
		p.visit("keys?key=due")
		p.shows(".lane:nth-child(3)", "account_1")
		p.until("the page is live", func() bool { return p.text("#detail .livedot") == "live" })
		p.srv.Must("ZREM", "due", "account_1") // the document has the times of another run
		p.shows(".lane:nth-child(3) b", "0")
	})
	t.Run("WaitingListWritten", func(t *testing.T) {
		p, cli := start(t)
		s := cli.run(transcripts(t, "waitinglist")[0], "ZADD lobby:checkin")
		p.opens("waiting", "Waiting list") // the folder lobby: is open, as the only one
		p.shows(".lane:nth-child(2)", "ann")
		p.shows(".lane:nth-child(2)", "seen ")
		p.shows(".lane:nth-child(1) b", "0 of 30")
		s = cli.run(s, "ZREM lobby:waiting")
		p.shows(".lane:nth-child(2) b", "0")
		cli.run(s, "HSET lobby:participants")
		p.shows(".lane:nth-child(1) b", "1 of 30")
		p.shows(".lane:nth-child(1)", "ann")
		p.opens("participants", "Waiting list") // a hash
		p.srv.Must("ZADD", "lobby:waiting", 2, "ben")
		p.shows(".lane:nth-child(2)", "ticket 2")
		p.picture("waiting-list-written")
	})
	t.Run("WaitingList", func(t *testing.T) {
		p, cli := start(t)
		list := transcripts(t, "waitinglist")
		s := cli.run(list[2], "ZADDEX club")
		p.opens("club", "Waiting list")
		p.shows(".lane:nth-child(1)", "ann")
		s = cli.run(s, "ZADDEX club EX 2000 * ben")
		p.shows(".lane:nth-child(1) b", "2 of 30")
		cli.run(s, "ZRANGE club") // ann is silent
		p.shows(".lane:nth-child(1) b", "1 of 30")
		p.fill(".options input[type=number]", "1")
		p.srv.Must("ZADDEX", "club", "EX", 2000, "MEMBERS", 1, "*", "carl")
		p.shows(".lane:nth-child(2)", "carl")
	})
	t.Run("Functions", func(t *testing.T) {
		// On Redis, the functions of the recipes keep the deadlines of a key beside it.
		p, _ := start(t)
		p.srv.Must("ZADD", "club", 1, "ann", 2, "ben")
		p.srv.Must("ZADD", "zsetd:deadlines:{club}", "@nowms+5h", "ann", "@nowms+4h", "ben")
		p.opens("club", "Waiting list")
		p.shows(".lane:nth-child(1)", "ben")
		p.is(`document.querySelectorAll('.lane .drain i:not(.never)').length === 2`)
		p.shows(".lane:nth-child(1)", "4h 59m")
	})
}
