package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestConsole opens each view of the console in one browser, each with a server of its own.
func TestConsole(t *testing.T) {
	browser := startBrowser(t)
	for _, one := range []struct {
		name string
		test func(*testing.T, func(...string) *page)
	}{
		{"Prompt", testPrompt}, {"Keys", testKeys}, {"ManyKeys", testManyKeys}, {"Values", testValues}, {"Edits", testEdits}, {"Writes", testWrites}, {"Neighbour", testNeighbour},
		{"Leaderboard", testLeaderboard}, {"Timeline", testTimeline}, {"Deadlines", testDeadlines}, {"Follows", testFollows}, {"Unconfigured", testUnconfigured},
		{"Overview", testOverview}, {"Events", testEvents}, {"Systems", testSystems},
		{"Bulk", testBulk}, {"Make", testMake}, {"Forms", testForms}, {"Groups", testGroups}, {"Map", testMap}, {"Looks", testLooks},
		{"Hostile", testHostile}, {"Phone", testPhone}, {"Dark", testDark}, {"Login", testLogin},
	} {
		t.Run(one.name, func(t *testing.T) {
			one.test(t, func(parameters ...string) *page { return open(t, browser, parameters...) })
		})
	}
}

// live are the parameters of a server whose pages follow changes.
func live() []string { return []string{"notify-keyspace-events", "SKA"} }

func testPrompt(t *testing.T, open func(...string) *page) {
	p := open()
	p.visit("prompt")
	p.keys("#line", "zadd game 10 ann 20 ben")
	p.shows("#hint", "score member")
	p.shows("#hint", "O(")
	p.keys("#line", "\n")
	p.shows(".replies article", "integer")
	if got := p.srv.Must("ZCARD", "game"); got != int64(2) {
		t.Errorf("ZCARD: %v", got)
	}
	command := func(line string) { p.keys("#line", line+"\n") }
	command("zrange game 0 -1 withscores")
	p.shows(".replies article:last-child", "ben")
	p.shows(".replies article:last-child", "double")
	command("nosuch")
	p.shows(".replies article:last-child .v-error", "unknown command")
	command(`set "a\x00\xff" 'two words'`)
	p.shows(".replies article:last-child .v-simple", "OK")
	if got := p.srv.Must("GET", "a\x00\xff"); got != "two words" {
		t.Errorf("a quoted argument: %q", got)
	}
	p.keys("#line", kb.ArrowUp+kb.ArrowUp)
	p.is(`document.querySelector('#line').value === 'nosuch'`)
	p.fill("#line", "")

	// A pipeline of lines is one connection.
	p.fill("#line", "multi\nincr n\nincr n\nexec")
	p.click("#command button", "Run")
	p.shows(".replies article:last-child", "QUEUED")
	p.until("EXEC has run", func() bool { return p.srv.Must("GET", "n") == "2" })

	command("blpop nothing 0")
	p.click(".replies article:last-child button", "Cancel")
	p.shows(".replies article:last-child", "Cancelled")
	p.until("no client is blocked", func() bool { return p.srv.Stats().BlockedClients == 0 })

	command("flushall")
	p.shows("#dialog", "deletes all keys")
	p.click("#dialog button", "Cancel")
	p.is(`document.querySelector('#line').value === 'flushall'`) // to be changed
	p.fill("#line", "")
	command("ping")
	p.shows(".replies article:last-child", "PONG")
	if got := p.srv.Must("ZCARD", "game"); got != int64(2) {
		t.Error("a command that was not confirmed ran")
	}
	command("flushall")
	p.click("#dialog button", "Run it")
	p.until("FLUSHALL has run", func() bool { return p.srv.Must("DBSIZE") == int64(0) })
	p.picture("prompt")
}

func testKeys(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	for i := range 30 {
		p.srv.Must("HSET", fmt.Sprintf("user:%d", i), "name", fmt.Sprintf("name %d", i))
	}
	p.srv.Must("SET", "single", "x", "EX", 1000)
	p.visit("keys")
	p.shows("#scan-text", "31 keys")
	p.shows("#tree", "user:")
	p.shows("#tree", "single")
	p.shows("#tree .type", "string")
	p.click("#tree .item", "user:")
	p.click("#tree .item", "29")
	p.shows("#detail .keyhead h2", "user:29")
	p.shows("#detail td", "name 29")
	p.shows("#detail .livedot", "live")
	p.picture("keys")

	// A change is shown as a command, and then runs.
	p.click("#detail button", "Add …")
	p.fill("#d-field", "mail")
	p.fill("#d-value", "a b")
	p.shows("#dialog .command", `HSET user:29 mail "a b"`)
	if p.srv.Must("HEXISTS", "user:29", "mail") != int64(0) {
		t.Error("the command ran before it was confirmed")
	}
	p.click("#dialog button", "Run")
	p.shows("#detail td", "a b")

	// Another client's change shows by itself.
	p.srv.Must("HSET", "user:29", "age", "77")
	p.shows("#detail td", "77")

	p.fill("#pattern", "user:1*")
	p.click("#search button", "Search")
	p.shows("#scan-text", "11 keys")

	p.click("#detail button", "Delete …")
	p.shows("#dialog .command", "UNLINK user:29")
	p.click("#dialog button", "Delete")
	p.until("the key is deleted", func() bool { return p.srv.Must("EXISTS", "user:29") == int64(0) })
	p.visit("keys?key=nosuch")
	p.shows("#detail", "There is no key nosuch")
}

func testManyKeys(t *testing.T, open func(...string) *page) {
	const keys = 30000
	p := open()
	p.srv.Must("EVAL", `for i = 1, ARGV[1] do redis.call('SET', 'session:' .. i % 3 .. ':' .. i, 'x') end`, 0, keys)
	p.visit("keys")
	p.shows("#scan-text", "30,000 keys")
	p.is(`document.querySelector('#scan-stop').textContent === 'Reload'`)
	p.click("#tree .item", "0:")
	p.is(`document.querySelector('#tree .virtual').offsetHeight > 10000 * 20`)
	if !p.holds(`document.querySelectorAll('#tree .item').length < 200`) {
		t.Error("rows out of sight exist")
	}
	p.script(`document.querySelector('#tree').scrollTop = 1e9`)
	p.shows("#tree", "2:")
	p.script(`document.querySelector('#tree').focus()`)
	p.do(chromedp.KeyEvent(kb.Home))
	p.is(`document.querySelector('#tree').scrollTop === 0`)
}

func testValues(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	p.srv.Must("EVAL", `
		for i = 1, 5000 do redis.call('RPUSH', 'l', 'element' .. i) redis.call('SADD', 's', 'member' .. i) redis.call('HSET', 'h', 'field' .. i, i) end
		for i = 1, 300 do redis.call('XADD', 'x', i .. '-1', 'n', i) end
		redis.call('SET', 'long', string.rep('0123456789abcdef', 10000))`, 0)
	p.visit("keys?key=l")
	p.shows("#detail", "0 to 99 of 5,000")
	p.click("#detail button", "Last »")
	p.shows("#detail td", "element5000")
	p.visit("keys?key=s")
	p.shows("#detail .pager", "there is more")
	p.fill("#detail input[type=search]", "member4321")
	p.shows("#detail td", "member4321")
	p.visit("keys?key=h")
	p.shows("#detail td", "field")
	if !p.holds(`document.querySelectorAll('#detail tbody tr').length < 1000`) {
		t.Error("the whole hash is loaded")
	}
	p.visit("keys?key=x")
	p.shows("#detail td", "300-1")
	p.click("#detail button", "Older ›")
	p.shows("#detail td", "200-1")
	p.srv.Must("XADD", "x", "301-1", "n", 1)
	p.click("#detail button", "« Newest")
	p.shows("#detail td", "301-1")
	p.visit("keys?key=long")
	p.shows("#detail", "bytes 0 to 16,384 of 160,000")
	p.click("#detail button", "Next ›")
	p.shows("#detail", "bytes 16,384 to 32,768")
}

func testLeaderboard(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	p.srv.Must("EVAL", `for i = 1, 100000 do redis.call('ZADD', 'game', i, 'player' .. i) end`, 0)
	p.visit("keys?key=game")
	p.shows("#detail .keyhead", "100,000 members")
	p.shows("#detail td", "player100000")
	p.shows("#detail .livedot", "live")
	if !p.holds(`document.querySelectorAll('#detail tbody tr').length <= 100`) {
		t.Error("more than a page is loaded")
	}
	p.fill("#detail .pager input[type=number]", "50000")
	p.shows("#detail", "50,001 to 50,100 of 100,000")
	p.fill("#detail input[name=member]", "player777")
	p.click("#detail button", "Find")
	p.shows("#detail [role=status]", "rank 99,223, score 777")
	p.shows("#detail tr.found", "player777")
	p.srv.Must("ZADD", "game", "inf", "player777") // the rank of a member that was found follows
	p.shows("#detail [role=status]", "rank 0, score inf")
	p.srv.Must("ZADD", "game", 777, "player777")

	// The row moves when another client changes the score.
	p.click("#detail button", "«")
	p.shows("#detail tbody tr:first-child", "player100000")
	p.srv.Must("ZADD", "game", 1000000, "player5")
	p.shows("#detail tbody tr:first-child", "player5")
	p.srv.Must("ZREM", "game", "player5")
	p.shows("#detail tbody tr:first-child", "player100000")
	p.picture("leaderboard")
}

func testTimeline(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	for i, at := range []string{"@now-50s", "@now-20s", "@now+1h", "@now+2h", "@now+3h"} {
		p.srv.Must("ZADD", "jobs", at, fmt.Sprintf("job%d", i))
	}
	p.size(1100, 700)
	p.visit("keys?key=jobs") // the scores are recognised as times
	p.shows("#detail .lane:first-child b", "2")
	p.shows("#detail .lane:last-child", "job2")
	p.is(`document.querySelectorAll('.timeline .dot').length === 5 && document.querySelector('.timeline .now')`)
	p.srv.Must("ZADD", "jobs", "@now-1s", "late")
	p.shows("#detail .lane:first-child", "late")
	p.click("#detail button", "1 min")
	p.shows("#detail .pager", "of 6 in sight")
	for i := range 25 {
		p.srv.Must("ZADD", "jobs", fmt.Sprintf("@now%+ds", i*i%97-30), fmt.Sprint("mail:", 1000+i))
	}
	p.shows("#detail .pager", "of 31 in sight")
	p.is(`document.querySelectorAll('.timeline .label').length > 10`)
	p.picture("timeline")

	p.srv.Must("EVAL", `for i = 1, 5000 do redis.call('ZADD', 'many', '@now+' .. i .. 's', i) end`, 0)
	p.visit("keys?key=many")
	p.shows("#detail .pager", "5,000 of 5,000 in sight, counted")
	p.is(`document.querySelectorAll('.timeline rect.bar1').length > 10 && document.querySelectorAll('.timeline .dot').length === 0`)
}

func testDeadlines(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	p.srv.Must("ZADDEX", "sessions", "EX", 5000, "MEMBERS", 2, 1, "ann", 2, "ben")
	p.srv.Must("ZADD", "sessions", 3, "stays")
	p.visit("keys?key=sessions&view=deadlines")
	p.shows("#detail", "2 of 3 expire")
	p.shows("#detail td", "never")
	p.is(`document.querySelectorAll('.drain i').length === 3`)
	p.shows("#detail .livedot", "live")
	// The page receives an event of the expiry: it does not see the server's clock move.
	p.srv.Advance(10_000e9)
	p.until("the members are gone", func() bool { return !strings.Contains(p.text("#detail tbody"), "ann") })
	p.shows("#detail tbody", "stays")
}

// testFollows checks that a view shows the replies of live queries, in one stream: a change is
// shown without a request, also one of a deadline, which changes no other reply.
func testFollows(t *testing.T, open func(...string) *page) {
	p := open()
	p.srv.Must("ZADD", "game", 1, "ann", 2, "ben \\ \"b\"\n")
	p.srv.Must("RPUSH", "list", "one")
	follows := func(key, query string) {
		t.Helper()
		p.visit("keys?key=" + key)
		p.until("the page is live", func() bool { return p.text("#detail .livedot") == "live" })
		p.until("the query is "+query, func() bool {
			return strings.Contains(fmt.Sprint(p.srv.Must("PUBSUB", "CHANNELS", "__query@*")), "__query@0,100ms__:"+query)
		})
		p.script(`window.fetch = () => Promise.reject(new Error('a request'))`)
	}
	follows("game", `ZPEXPIRETIME game MEMBERS 2 ann "ben \x5c \x22b\x22\x0a"`)
	p.shows("#detail tbody tr:first-child", "ben")
	p.srv.Must("ZADD", "game", 3, "ann")
	p.shows("#detail tbody tr:first-child.flash", "ann")
	p.srv.Must("ZADDEX", "game", "EX", 100000, "MEMBERS", 1, 3, "ann")
	p.shows("#detail tbody tr:first-child", "1d 3h")
	follows("list", "LRANGE list 0 99")
	p.srv.Must("RPUSH", "list", "two")
	p.shows("#detail tbody", "two")

	p.srv.Must("SADD", "set", "one")
	follows("set", "SMEMBERS set")
	p.srv.Must("SADD", "set", "two")
	p.shows("#detail tbody", "two")
	p.srv.Must("HSET", "hash", "b", 1, "a", 2)
	follows("hash", "HPEXPIRETIME hash FIELDS 2 a b")
	p.srv.Must("HSET", "hash", "a", "three")
	p.shows("#detail tbody", "three")
	p.srv.Must("HEXPIRE", "hash", 100000, "FIELDS", 1, "a")
	p.shows("#detail tbody", "1d 3h")

	follows("game&view=deadlines", "ZPEXPIRETIME game MEMBERS 2 ann")
	p.shows("#detail .pager", "1 of 2 expire")
	p.srv.Must("ZADD", "game", 4, "carl")
	p.shows("#detail .pager", "1 of 3 expire")
	p.srv.Must("ZEXPIRE", "game", 100, "MEMBERS", 1, "carl")
	p.shows("#detail tbody tr:first-child", "carl")
	follows("hash&view=deadlines", "HPEXPIRETIME hash FIELDS 2 a b")
	p.srv.Must("HPERSIST", "hash", "FIELDS", 1, "a")
	p.shows("#detail .pager", "0 of 2 expire")

	// The clock of the server moves a member between the lists: the page asks for nothing.
	p.srv.Must("ZADD", "jobs", "@now-50s", "job1", "@now+500s", "job2")
	follows("jobs&view=timeline", `ZRANGE jobs "(@now+0ms" +inf BYSCORE LIMIT 0 8 WITHSCORES`)
	p.shows("#detail .lane:first-child b", "1")
	p.srv.Must("ZADD", "jobs", "@now+5h", "job3")
	p.shows("#detail .lane:last-child", "job3")
	p.is(`document.querySelectorAll('.timeline .dot').length === 3`) // the view of the whole set is wider
	p.srv.Advance(600e9)
	p.shows("#detail .lane:first-child b", "2")
	p.srv.Must("EVAL", `for i = 1, 500 do redis.call('ZADD', 'many', i, i) end`, 0)
	follows("many&view=timeline", "ZCOUNT many ")
	p.shows("#detail .pager", "500 of 500 in sight, counted")
	p.is(`document.querySelectorAll('.timeline rect.bar1').length > 10`)
	p.srv.Must("ZADD", "many", 100.5, "one more")
	p.shows("#detail .pager", "501 of 501 in sight")

	// The sizes of the groups are those of other keys. One of them is a set, the others are not.
	p.srv.Must("ZADD", "details:account_1", 1, "likes")
	p.srv.Must("SADD", "details:account_2", "likes")
	p.srv.Must("ZADD", "due", "@now-1s", "account_1", "@now+500s", "account_2")
	follows("due&view=folder", "ZCARD details:account_1")
	p.shows(".lane:nth-child(1)", "1 events")
	p.shows(".lane:nth-child(3)", "1 events")
	p.srv.Must("ZADD", "details:account_1", 1, "shares")
	p.shows(".lane:nth-child(1)", "2 events")
	p.srv.Must("ZADD", "due", "@now+2s", "account_3")
	p.shows(".lane:nth-child(2)", "account_3")
	p.srv.Advance(10e9)
	p.shows(".lane:nth-child(1)", "account_3")

	p.srv.Must("HSET", "lobby:participants", "ann", 1)
	p.srv.Must("ZADD", "lobby:waiting", 1, "ben")
	follows("lobby:waiting&view=line", "HKEYS lobby:participants")
	p.srv.Must("HSET", "lobby:participants", "carl", 1)
	p.shows(".lane:nth-child(1)", "carl")

	// A cursor chooses what is shown of a large set: that is no query. It is one when the set is smaller.
	p.srv.Must("EVAL", `for i = 1, 1000 do redis.call('SADD', 'large', 'm' .. i) end`, 0)
	p.visit("keys?key=large")
	p.shows("#detail .pager", "there is more")
	p.until("no query is left, and the page is live", func() bool {
		return fmt.Sprint(p.srv.Must("PUBSUB", "CHANNELS", "__query@*")) == "[]" && p.text("#detail .livedot") == "live"
	})
	p.srv.Must("SPOP", "large", 990)
	p.is(`document.querySelectorAll('#detail tbody tr').length === 10`)
	p.until("the set is a query", func() bool {
		return strings.Contains(fmt.Sprint(p.srv.Must("PUBSUB", "CHANNELS", "__query@*")), "SMEMBERS large")
	})

	// The names of these members are too long for a query.
	for i := range 10 {
		p.srv.Must("ZADD", "long", i, fmt.Sprint(i, strings.Repeat("m", 10_000)))
	}
	p.visit("keys?key=long")
	p.shows("#detail tbody tr:first-child", "9mmm")
	p.until("no query is left, and the page is live", func() bool {
		return fmt.Sprint(p.srv.Must("PUBSUB", "CHANNELS", "__query@*")) == "[]" && p.text("#detail .livedot") == "live"
	})
	p.srv.Must("ZADD", "long", 10, "short")
	p.shows("#detail tbody tr:first-child", "short")

	p.visit("keys?key=list")
	p.until("a query is asked for", func() bool { return fmt.Sprint(p.srv.Must("PUBSUB", "CHANNELS", "__query@*")) != "[]" })
	p.visit("prompt")
	p.until("no query is left", func() bool { return fmt.Sprint(p.srv.Must("PUBSUB", "CHANNELS", "__query@*")) == "[]" })
}

// testUnconfigured follows a key of a server that publishes no events of keys, and one with a user
// who may not follow it.
func testUnconfigured(t *testing.T, open func(...string) *page) {
	p := open()
	p.visit("keys?key=game")
	p.shows("#detail", "There is no key game")
	p.srv.Must("ZADD", "game", 1, "ann")
	p.shows("#detail td", "ann") // it appears
	p.until("the page is live", func() bool { return p.text("#detail .livedot") == "live" })
	p.srv.Must("ZADD", "game", 2, "ben")
	p.shows("#detail td", "ben")
	p.srv.Must("DEL", "game")
	p.shows("#detail", "There is no key game")

	p.srv.Must("ZADD", "game", 1, "ann")
	p.srv.Must("ACL", "SETUSER", "default", "-client", "-subscribe")
	p.visit("keys?key=game")
	p.shows("#detail .notice", "NOPERM")
	p.srv.Must("ZADD", "game", 2, "carl")
	p.click("#detail .notice button", "Read again")
	p.shows("#detail td", "carl")
}

func testOverview(t *testing.T, open func(...string) *page) {
	p := open("slowlog-log-slower-than", "0")
	p.srv.Must("SET", "k", "v")
	p.visit("")
	p.shows("#facts", "Replication")
	p.shows("#slow", "SET k v")
	p.until("the plots have lines", func() bool {
		p.srv.Must("GET", "k")
		return p.holds(`document.querySelectorAll('.plot .line').length >= 10`)
	})
	p.shows(".plot .legend", "p99")
	p.is(`document.querySelectorAll('.plot svg[aria-label*="all"]').length`)
	p.shows("#facts", "Hit rate\n100.0 %")
	p.shows("#notable", "starting zsetd")
	p.picture("overview")
}

func testEvents(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	p.visit("messages")
	p.fill("#sub-name", "news")
	p.click("#subscribe button", "Subscribe")
	p.is(`document.querySelector('#subs .livedot.on')`)
	p.srv.Must("PUBLISH", "news", "hello <b>")
	p.shows("#live-list", "hello <b>")
	p.visit("messages?key=game&pattern=other.*")
	p.is(`document.querySelectorAll('#subs .livedot.on').length === 2`)
	p.srv.Must("ZADD", "game", 5, "ann")
	p.shows("#live-list", "zadd ann")
	p.srv.Must("PUBLISH", "other.1", "one")
	p.shows("#live-list", "one")
	p.fill("#live-filter", "zadd")
	p.until("the filter holds", func() bool { return !strings.Contains(p.text("#live-list"), "other.1") })
	p.fill("#live-filter", "")
	p.click("#live-pause", "Pause")
	p.srv.Must("PUBLISH", "other.1", "unseen")
	p.shows("#live-rate", "paused, 1 not kept")
	p.click("#live-pause", "Resume")
	for i := range 3000 {
		p.srv.Must("PUBLISH", "other.1", fmt.Sprint("number", i))
	}
	p.shows("#live-list", "number2999")
	p.shows("#live-rate", "2,000 shown")
	p.picture("events")
}

func testSystems(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	p.size(1100, 700)
	for i, title := range []string{"Elections: first results", "Rain until Friday", "Tram 7 stops early", "A second moon?", "Chess: a draw after 9 hours", "Bakery wins prize", "New bridge opens", "Lost cat found"} {
		p.srv.Must("ZADDEX", "live:123:news", "EX", 600*(i+1), "MEMBERS", 1, fmt.Sprintf("@now-%ds", 10*i), fmt.Sprintf(`{"url":"/n/%d","title":%q}`, i, title))
	}
	p.visit("keys?key=live:123:news&view=live")
	p.shows("#detail .facts", "Live events\n8")
	p.shows("#detail tbody tr:first-child", "/n/0")
	p.srv.Must("ZADDEX", "live:123:news", "EX", 4800, "MEMBERS", 1, "@now", `{"url":"/n/9","title":"Just in"}`)
	p.shows("#detail tbody tr:first-child", "/n/9")
	p.picture("live-events")

	for i := range 60 {
		p.srv.Must("ZADDEX", "hits:/front", "INCR", "EX", 3000, "ENX", "MEMBERS", 1, 60+i*i%47+30*(i/20%2), fmt.Sprintf("12:%02d:00", i))
	}
	p.visit("keys?key=hits:/front&view=boxes")
	p.shows("#detail .facts", "Boxes\n60")
	p.is(`document.querySelectorAll('.boxes div').length === 60`)
	p.is(`[...document.querySelectorAll('.axis span')].slice(1).map((e) => e.textContent).join() === '12:00:00,12:30:00,12:59:00'`)
	p.picture("timeboxes")

	p.srv.Must("ZADD", "due", "@now-3s", "account_1", "@now-1s", "account_8", "@now+1h", "account_4", "@now+300s", "account_6", "@now+500s", "account_3")
	p.srv.Must("ZADD", "details:account_1", 1, "likes", 2, "shares")
	p.visit("keys?key=due&view=folder")
	p.shows(".lane:nth-child(1)", "2 events")
	p.shows(".lane:nth-child(3)", "account_4")
	p.fill(".options input[type=number]", "600")
	p.shows(".lane:nth-child(2)", "account_3")
	p.picture("folder")
	p.srv.Must("ZCLAIM", "due", "-inf", "@now", "@now+1h")
	p.shows(".lane:nth-child(3)", "account_1")

	for i := range 40 {
		p.srv.Must("ZADDEX", "club", "EX", 2000+i*37%60, "MEMBERS", 1, "*", fmt.Sprint("user", i))
	}
	p.visit("keys?key=club&view=line")
	p.shows(".lane:nth-child(1) b", "30 of 30")
	p.shows(".lane:nth-child(2) li:first-child", "user30")
	p.picture("waiting-list")
	p.srv.Must("ZREM", "club", "user3")
	p.shows(".lane:nth-child(2) li:first-child", "user31")
}

// testHostile shows names and values that would run as a script, or look like others, if the page
// took them for markup.
func testHostile(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	const script = `<img src=x onerror="window.hacked=1">`
	names := []string{script, `"><script>window.hacked=1</script>`, "nul\x00byte", "\xff\xfe\x80", "\u202eoverride", strings.Repeat("m", 1<<20), "line\nend", `{{.}}`}
	for i, name := range names {
		p.srv.Must("ZADD", "hostile", i, name)
		p.srv.Must("HSET", "hash", name, name)
		p.srv.Must("SADD", "set", name)
		p.srv.Must("RPUSH", "list", name)
		p.srv.Must("XADD", "stream", "*", name, name)
		p.srv.Must("SET", "key:"+name, name)
		p.srv.Must("ZADD", "z:"+name, "@now", name)
	}
	for _, key := range []string{"hostile", "hash", "set", "list", "stream", "key:" + script, "z:" + script, "z:%FF%FE%80"} {
		for _, view := range []string{"", "&view=timeline", "&view=deadlines", "&view=live", "&view=boxes", "&view=folder", "&view=line"} {
			if view != "" && !strings.HasPrefix(key, "z") && key != "hostile" {
				continue
			}
			address := strings.NewReplacer("<", "%3C", " ", "%20", `"`, "%22", ">", "%3E", "=", "%3D").Replace(key)
			if key == "z:%FF%FE%80" {
				p.visit("keys?key64=ejr//oA=" + view)
			} else {
				p.visit("keys?key=" + address + view)
			}
			p.is(`document.querySelector('#detail .keyhead') && document.querySelector('#detail .value').children.length`)
			p.shows("#scan-text", "21 keys")
		}
	}
	p.visit("keys?key=hostile")
	p.shows("#detail td", `{{.}}`)
	p.shows("#detail td", `line\nend`)
	p.visit("keys?key=key:" + "nul%00byte")
	p.shows("#detail h2", `nul\x00byte`)
	p.visit("keys?key=list")
	p.shows("#detail td", script)
	p.shows("#detail td", `\xff\xfe\x80`)
	p.shows("#detail td", `\u202eoverride`)

	p.srv.Must("XGROUP", "CREATE", "stream", script, "0")
	p.srv.Must("XREADGROUP", "GROUP", script, script, "STREAMS", "stream", ">")
	p.visit("keys?key=stream")
	p.click(".groups td button", script)
	p.is(`[...document.querySelectorAll('.groups td')].filter((e) => e.textContent.startsWith('<img')).length > 2`)
	p.visit("keys?map=1")
	p.shows(".treemap", "hash")
	p.item("#browser .menu", "Select keys …")
	p.script(`document.querySelector('#selection input').click()`)
	p.click("#selection button", "Delete …")
	p.shows("#dialog .command", `<img src=x onerror=\"window.hacked=1\">`)

	p.visit("messages?pattern=*")
	p.is(`document.querySelector('#subs .livedot.on')`)
	for _, name := range names {
		p.srv.Must("PUBLISH", name[:min(len(name), 1000)], name)
	}
	p.shows("#live-list", script)
	p.shows("#live-list", `{{.}}`)
	p.visit("prompt?line=" + "hgetall%20hash")
	p.click("#command button", "Run")
	p.shows(".replies article", script)
	if p.holds("window.hacked") || p.holds(`document.querySelector('main img, main script')`) {
		t.Error("a name became markup")
	}
}

func testPhone(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	p.size(360, 740)
	p.srv.Must("ZADD", "jobs", "@now+1h", strings.Repeat("long", 50), "@now-1h", "b")
	p.srv.Must("HSET", "h", strings.Repeat("f", 200), strings.Repeat("v", 200))
	for _, view := range []string{"", "keys", "keys?key=jobs&view=board", "keys?key=jobs&view=timeline", "keys?key=jobs&view=deadlines", "keys?key=jobs&view=line", "keys?key=h", "messages", "prompt"} {
		p.visit(view)
		p.is(`document.querySelector('.view:not([hidden])').innerText.length > 5`)
		if strings.Contains(view, "key=") {
			p.is(`document.querySelector('#detail .keyhead') && document.querySelector('#detail .value').children.length`)
		}
		if !p.holds(`document.documentElement.scrollWidth <= 360 && document.querySelector('main').scrollWidth <= 360`) {
			t.Errorf("%q is wider than the screen", view)
		}
		p.picture("phone-" + strings.NewReplacer("?", "-", "&", "-", "=", "-").Replace(view))
	}
	p.visit("keys")
	p.click("#tree .item", "jobs")
	p.is(`document.querySelector('#browser').offsetParent === null`)
	p.click("#detail button", "‹ Keys")
	p.is(`document.querySelector('#browser').offsetParent !== null`)
}

func testDark(t *testing.T, open func(...string) *page) {
	p := open()
	p.srv.Must("ZADD", "game", 1, "ann")
	brightness := func() int {
		return eval[int](p, `getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b)`)
	}
	p.visit("keys?key=game")
	p.shows("#detail td", "ann")
	light := brightness()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		return err
	}))
	wait.Until(t, "the page is dark", func() bool { return brightness() < 150 })
	if light < 600 {
		t.Errorf("the light page has brightness %d", light)
	}
	p.picture("dark")
}

func testLogin(t *testing.T, open func(...string) *page) {
	p := open("requirepass", "secret")
	p.visit("keys")
	p.is(`location.pathname === '/login' && document.querySelector('#password')`)
	p.picture("login")
	p.keys("#password", "wrong\n")
	p.shows(".error", "wrong")
	p.keys("#password", "secret\n")
	p.is(`location.pathname === '/' && document.querySelector('nav')`)
	p.shows(".account", "default")
	p.visit("prompt?line=ping")
	p.click("#command button", "Run")
	p.shows(".replies article", "PONG")
	p.click(".account button", "Log out")
	p.is(`location.pathname === '/login' && sessionStorage.length === 0`)

	// A user sees what its ACL permits.
	p.srv.Must("ACL", "SETUSER", "reader", "on", ">word", "~game*", "+@read", "-dbsize")
	p.srv.Must("ZADD", "game", 5, "ann")
	p.fill("#user", "reader")
	p.keys("#password", "word\n")
	p.is(`document.querySelector('nav')`)
	p.visit("keys?key=game")
	p.shows(".account", "reader")
	p.shows("#detail td", "ann")
	p.shows("#scan-text", "1 key")
	p.click("#detail button", "Delete …")
	p.click("#dialog button", "Delete")
	p.shows("#dialog .error", "NOPERM")
	if p.srv.Must("EXISTS", "game") != int64(1) {
		t.Error("a user without the permission deleted a key")
	}
}
