package browser

import (
	"fmt"
	"strings"
	"testing"
)

// TestQuestions answers what a person asks who opens the page for the first time, with two clicks
// at most after the key that the question names. Each click is on a word that the page shows.
func TestQuestions(t *testing.T) {
	browser := startBrowser(t)
	start := func(t *testing.T) (p *page, click func(selector, text string)) {
		p = open(t, browser)
		clicks := 0
		return p, func(selector, text string) {
			t.Helper()
			if clicks++; clicks > 3 {
				t.Errorf("%d clicks, the last on %q", clicks, text)
			}
			p.click(selector, text)
		}
	}
	t.Run("RankOfMember", func(t *testing.T) {
		p, click := start(t)
		p.srv.Must("EVAL", `for i = 1, 5000 do redis.call('ZADD', 'game', i, 'player' .. i) end`, 0)
		p.visit("")
		click("nav a", "Keys")
		click("#tree .item", "game")
		p.keys("#detail input[name=member]", "player4711\n")
		p.shows("#detail [role=status]", "rank 289, score 4711")
		p.shows("#detail tr.found", "player4711")
		// A part of the name is enough.
		p.fill("#detail input[name=member]", "")
		p.keys("#detail input[name=member]", "yer123\n")
		click("#detail [role=status] button", "player123")
		p.shows("#detail [role=status]", "rank ")
	})
	t.Run("DueNext", func(t *testing.T) {
		p, click := start(t)
		p.srv.Must("ZADD", "reminders", "@now-10s", "call", "@now+90m", "tea", "@now+5h", "sleep")
		p.visit("")
		click("nav a", "Keys")
		click("#tree .item", "reminders")
		p.shows("#detail .lane:first-child", "call")
		p.shows("#detail .lane:last-child li:first-child", "tea")
		p.shows("#detail .lane:last-child li:first-child", "in 1h")
	})
	t.Run("ExpiresNext", func(t *testing.T) {
		p, click := start(t)
		p.srv.Must("ZADDEX", "sessions", "EX", 50000, "MEMBERS", 1, 10, "ann")
		p.srv.Must("ZADDEX", "sessions", "EX", 5000, "MEMBERS", 1, 10, "ben")
		p.visit("")
		click("nav a", "Keys")
		click("#tree .item", "sessions")
		p.shows("#detail tbody tr:first-child", "ben")
		p.shows("#detail tbody tr:first-child .n", "1h")
	})
	t.Run("WhyMemoryGrew", func(t *testing.T) {
		p, click := start(t)
		p.visit("")
		p.shows("#facts", "What takes memory")
		p.until("the plots have begun", func() bool { return p.holds(`document.querySelectorAll('.plot .line').length >= 10`) })
		for i := range 40 {
			p.srv.Must("SET", fmt.Sprintf("cache:page:%d", i), strings.Repeat("x", 100000))
			p.srv.Must("SET", fmt.Sprint("user:", i), "small")
		}
		// The plot of memory names the kind that grew; keys and folders stand by their size.
		p.is(`[...document.querySelectorAll('.plot small')].some((e) => /: data \+\d\.\d MB/.test(e.textContent))`)
		click("#facts button", "Measure keys")
		p.is(`/^80 keys, \d\.\d MB$/.test(document.querySelector('#scan-text').textContent)`)
		p.shows("#tree .item:first-child", "cache:")
		p.shows("#tree .item:first-child .meta", "MB")
		click("#tree .item", "cache:")
		click("#tree .item", "page:")
		p.is(`/page:.*10\d KB/s.test(document.querySelector('#tree').innerText)`)
	})
}
