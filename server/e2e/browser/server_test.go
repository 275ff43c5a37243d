package browser

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

// TestServer opens the parts of the console about the server, each with a server of its own.
func TestServer(t *testing.T) {
	tab := startBrowser(t)
	for _, one := range []struct {
		name string
		test func(*testing.T, func(...string) *page)
	}{
		{"Clients", testClients}, {"Users", testUsers}, {"Parameters", testParameters}, {"Functions", testFunctions}, {"HotKeys", testHotKeys}, {"Backup", testBackup},
		{"Channels", testChannels}, {"Monitor", testMonitor}, {"Columns", testColumns}, {"Plots", testPlots}, {"Away", testAway}, {"Palette", testPalette}, {"Face", testFace}, {"Narrow", testNarrow},
	} {
		t.Run(one.name, func(t *testing.T) {
			one.test(t, func(parameters ...string) *page { return open(t, tab, parameters...) })
		})
	}
}

// closed holds while no dialog is open.
const closed = `!document.querySelector('#dialog').open`

func testClients(t *testing.T, open func(...string) *page) {
	p := open()
	nc, err := p.srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprintf(nc, "CLIENT SETNAME worker\r\nBLPOP jobs:mail jobs:sms 0\r\n")
	p.until("a client waits", func() bool { return p.srv.Stats().BlockedClients == 1 })
	p.visit("server")
	p.shows(".clients tbody", "worker")
	p.shows(".clients tbody", "waits for jobs:mail, jobs:sms")
	p.fill("#server-part input[type=search]", "WORKER")
	p.is(`document.querySelectorAll('.clients tbody tr').length === 1`)
	p.fill("#server-part input[type=search]", "")
	p.click("#server-part label", "that wait")
	p.is(`document.querySelectorAll('.clients tbody tr').length === 1`)
	p.click("#server-part label", "that wait")

	// The heading sorts, and turns the order.
	order := `[...document.querySelectorAll('.clients tbody tr')].map((r) => Number(r.dataset.id))`
	p.is(order + `.length > 1`)
	for _, way := range []string{"descending", "ascending"} {
		p.click(".clients th button", "ID")
		p.is(`document.querySelector('.clients th[aria-sort=` + way + `]')`)
		compare := map[string]string{"descending": ">", "ascending": "<"}[way]
		p.is(order + `.every((id, i, all) => !i || all[i - 1] ` + compare + ` id)`)
	}

	row := `[...document.querySelectorAll('.clients tbody tr')].find((r) => r.textContent.includes('worker'))`
	p.script(row + `.querySelector('.tools button').click()`)
	p.shows("#dialog .command", "CLIENT KILL ID ")
	if p.srv.Stats().BlockedClients != 1 {
		t.Error("the command ran before it was confirmed")
	}
	p.click("#dialog button", "Kill")
	p.until("the client is gone", func() bool { return p.srv.Stats().BlockedClients == 0 })
	p.is(`!` + row)
}

func testUsers(t *testing.T, open func(...string) *page) {
	p := open()
	p.visit("server?part=users")
	p.shows("#server-part tbody", "default")
	p.shows("#server-part", "lost at the next start")
	p.click("#server-part button", "New user …")
	p.fill("#d-name", "ann")
	p.fill("#d-rules", "on >pw ~user:* +get (~shared +set)")
	p.shows("#dialog .command", "ACL SETUSER ann on >pw ~user:* +get (~shared +set)")
	if p.srv.Must("ACL", "GETUSER", "ann") != nil {
		t.Error("the command ran before it was confirmed")
	}
	p.click("#dialog button", "Run")
	p.shows(`tr[data-user=ann]`, "~user:*")
	p.shows(`tr[data-user=ann]`, "(~shared resetchannels -@all +set)")
	if strings.Contains(p.text("#server-part"), "#") {
		t.Error("a hash of a password is shown")
	}

	p.fill("#dry-user", "ann")
	for _, one := range [][2]string{{`GET "user:1"`, "Yes: ann may run it."}, {"SET user:1 x", "No: "}, {"NOSUCH", "not found"}} {
		p.fill("#dry-line", one[0])
		p.click("#server-part button", "Ask")
		p.shows("#server-part [role=status]", one[1])
	}

	p.click("tr[data-user=ann] button", "Rules …")
	p.fill("#d-rules", "off")
	p.click("#dialog button", "Run")
	p.shows("tr[data-user=ann]", "off")
	p.click("tr[data-user=ann] button", "Delete …")
	p.shows("#dialog .command", "ACL DELUSER ann")
	p.click("#dialog button", "Delete")
	p.is(`!document.querySelector('tr[data-user=ann]')`)
}

func testParameters(t *testing.T, open func(...string) *page) {
	p := open("maxmemory", "100mb")
	p.visit("server?part=parameters")
	row := func(name string) string { return ".parameter[data-name=" + name + "]" }
	p.shows(row("maxmemory")+".changed", "default: 0")
	p.shows(row("maxmemory"), "Memory limit in bytes")
	p.shows(row("http-title"), "Name of this server")
	p.is(`!document.querySelector('` + row("auto-aof-rewrite-min-size") + `.changed')`) // 64mb
	p.click("#server-part label", "that differ")
	p.until("others are not shown", func() bool { return !p.holds(`document.querySelector('` + row("appendfsync") + `')`) })
	p.click("#server-part label", "that differ")
	p.fill("#server-part input[type=search]", "eviction policy")
	p.is(`document.querySelectorAll('.parameter').length < 10`)
	p.click(row("maxmemory-policy")+" button", "Set …")
	p.shows("#dialog .command", "Nothing is changed.")
	p.fill("#d-v", "allkeys-lru")
	p.shows("#dialog .command", "CONFIG SET maxmemory-policy allkeys-lru")
	p.click("#dialog button", "Run")
	p.shows(row("maxmemory-policy")+".changed", "default: noeviction")
	if got := p.srv.Must("CONFIG", "GET", "maxmemory-policy"); !strings.Contains(fmt.Sprint(got), "allkeys-lru") {
		t.Errorf("CONFIG GET: %v", got)
	}
	p.fill("#server-part input[type=search]", "http-port")
	p.shows(row("http-port"), "at the start")
	p.is(`!document.querySelector('` + row("http-port") + ` button')`)
}

func testFunctions(t *testing.T, open func(...string) *page) {
	p := open()
	p.srv.Must("SET", "k", "value")
	p.visit("server?part=functions")
	p.shows("#server-part", "No function libraries.")
	p.click("#server-part button", "Load a library …")
	p.fill("#d-code", "#!lua name=mylib\nredis.register_function{function_name='peek', description='<b>reads', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}")
	p.click("#dialog button", "Load")
	p.shows(".library", "<b>reads")
	p.click(".library summary", "Source")
	p.shows(".library pre", "register_function{")
	p.click(".library button", "Run …")
	p.fill("#call-keys", "k")
	p.shows("#call .command", "FCALL_RO peek 1 k")
	p.click("#call button", "Run")
	p.shows("#call .reply", "value")
	p.fill("#call-kind", "EVAL")
	p.fill("#call-what", "return {KEYS[1], ARGV[1], ARGV[2]}")
	p.fill("#call-args", `one "two words"`)
	p.click("#call button", "Run")
	p.shows("#call .reply", "two words")
	p.fill("#call-what", "return nosuch")
	p.click("#call button", "Run")
	p.shows("#call .reply .v-error", "nosuch")
	p.click(".library button", "Delete …")
	p.shows("#dialog .command", "FUNCTION DELETE mylib")
	p.click("#dialog button", "Delete")
	p.shows("#server-part", "No function libraries.")
}

func testHotKeys(t *testing.T, open func(...string) *page) {
	p := open()
	p.visit("server?part=hotkeys")
	p.shows("#server-part", "Nothing is collected.")
	p.click("#server-part button", "Start …")
	p.fill("#d-seconds", "600")
	p.shows("#dialog .command", "HOTKEYS START METRICS 2 CPU NET COUNT 16 DURATION 600 SAMPLE 1")
	p.click("#dialog button", "Start")
	p.shows("#server-part", "Collecting")
	for range 20 {
		p.srv.Must("SET", "hot <i>", strings.Repeat("x", 100))
	}
	p.shows("#server-part tbody", "hot <i>")
	p.click("#server-part button", "Stop …")
	p.click("#dialog button", "Run")
	p.shows("#server-part", "Collected for")
	p.shows("#server-part tbody", "hot <i>")
	p.click("#server-part button", "Forget …")
	p.click("#dialog button", "Run")
	p.shows("#server-part", "Nothing is collected.")
}

func testBackup(t *testing.T, open func(...string) *page) {
	p := open()
	p.srv.Must("SET", "k", "v")
	p.visit("server?part=backup")
	p.shows("#server-part .facts", "Not saved yet")
	p.click("#server-part button", "Save now …")
	p.shows("#dialog .command", "BGSAVE")
	p.click("#dialog button", "Cancel")

	// What INFO says of backups is shown, also of one that failed.
	p.script(`(() => {
		const ask = window.fetch;
		window.fetch = async (...args) => {
			const response = await ask(...args);
			if (!String(args[1]?.body).includes('persistence')) return response;
			const reply = await response.json();
			reply.result.value += 'backup_last_time:1\r\nbackup_last_status:err\r\nbackup_last_file:/backups/one.db\r\nbackups_kept:3\r\n';
			return new Response(JSON.stringify(reply));
		};
	})()`)
	p.shows("#server-part .facts .bad", "Last backup")
	p.shows("#server-part .facts", "the last one failed")
	p.shows("#server-part .facts", "/backups/one.db")

	folder := t.TempDir()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder})
		return err
	}))
	p.click("#server-part button", "Download a backup")
	var files []string
	p.until("a file is there", func() bool {
		files, _ = filepath.Glob(filepath.Join(folder, "zsetd-*.db"))
		return len(files) == 1
	})
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := servertest.Run(t, server.Options{File: copied}).Must("GET", "k"); got != "v" {
		t.Errorf("the copy has %v", got)
	}
}

// testChannels publishes, and lists the channels that have subscribers. The prompt's SUBSCRIBE leads here.
func testChannels(t *testing.T, open func(...string) *page) {
	p := open()
	p.visit("prompt")
	p.keys("#line", "subscribe news 'two words'\n")
	p.is(`location.pathname === '/messages' && document.querySelectorAll('#subs .livedot.on').length === 2`)
	p.click("#sub-channels", "Channels")
	p.shows("#channels tbody", "two words")
	p.click("#publish", "Publish …")
	p.fill("#d-channel", "news")
	p.fill("#d-message", "hello <b>")
	p.shows("#dialog .command", `PUBLISH news "hello <b>"`)
	p.click("#dialog button", "Publish")
	p.shows("#live-list", "hello <b>")
	p.shows("#live-notice", "1 subscribers have received it.")
	p.visit("prompt")
	p.keys("#line", "PSUBSCRIBE a*\n")
	p.shows("#subs", "pattern")
	p.is(`document.querySelector('#subs .livedot.on')`)
	p.visit("prompt")
	p.fill("#line", "multi\nsubscribe x")
	p.click("#command button", "Run")
	p.shows(".replies article", "takes over its connection")
}

// testMonitor shows the commands of other clients, until the user ends that.
func testMonitor(t *testing.T, open func(...string) *page) {
	p := open()
	p.visit("prompt")
	p.keys("#line", "monitor\n")
	p.shows("#subs", "commands until")
	p.until("a command is shown", func() bool {
		p.srv.Must("SET", "k", "<i>")
		return strings.Contains(p.text("#live-list"), `"SET" "k" "<i>"`)
	})
	p.click("#subs button", "×")
	p.shows("#subs", "No subscriptions")
	p.srv.Must("ACL", "SETUSER", "default", "-monitor")
	p.click("#subscribe button", "Watch for 30 s")
	p.shows("#live-notice", "NOPERM")
}

// testColumns checks that the columns of a reply line up.
func testColumns(t *testing.T, open func(...string) *page) {
	p := open()
	p.srv.Must("ZADD", "z", 1, "a", 2, "a longer name", 3, "b")
	p.srv.Must("HSET", "h", "f", "v", "a longer field", "w")
	for _, one := range [][2]string{{"zrange z 0 -1 withscores", ".v-double"}, {"hgetall h", ".v-bulk"}} {
		p.visit("prompt?line=" + strings.ReplaceAll(one[0], " ", "%20"))
		p.click("#command button", "Run")
		p.is(fmt.Sprintf(`(() => { const all = [...document.querySelectorAll('.reply %s')].map((e) => Math.round(e.getBoundingClientRect().left)); return all.length > 1 && new Set(all).size === 1; })()`, one[1]))
	}
	p.shows(".replies article", "map of 2")
	p.size(360, 740)
	p.visit("prompt?line=config%20get%20max*")
	p.click("#command button", "Run")
	p.shows(".reply", "maxmemory-policy")
	p.is(`[...document.querySelectorAll('.reply .v-bulk')].every((e) => e.getBoundingClientRect().height < 40)`) // in a line, not below each other
}

// testPlots checks that no label is cut, that a burst does not flatten the rest, and the ranges.
func testPlots(t *testing.T, open func(...string) *page) {
	p := open()
	p.visit("")
	p.until("the plots have lines", func() bool {
		p.srv.Must("GET", "k")
		return p.holds(`document.querySelectorAll('.plot .line').length >= 10`)
	})
	p.is(`[...document.querySelectorAll('.plot svg text')].every((e) => e.getBBox().x >= 0 && e.getBBox().x + e.getBBox().width <= e.ownerSVGElement.viewBox.baseVal.width)`)
	p.script(`import('./assets/plot.js').then(({Plot}) => {
		const p = window.burst = new Plot('Burst', [{name: 'n', value: (s) => s.n}], (n) => n + ' long unit');
		document.querySelector('#plots').append(p.element);
		p.set(Array.from({length: 200}, (_, i) => ({t: 1e12 + i * 1000, n: i === 150 ? 5000 : 10})), 200000, 1e12 + 200000);
	}); undefined`)
	top := `Number([...window.burst.svg.querySelectorAll('text')][2].textContent.split(' ')[0])`
	p.is(`window.burst && ` + top + ` === 20 && window.burst.svg.querySelector('.over') && !window.burst.peak.hidden`)
	p.is(`[...window.burst.svg.querySelectorAll('text')].every((e) => e.getBBox().x >= 0)`)
	p.script(`window.burst.peak.click()`)
	p.is(top + ` === 5000 && !window.burst.svg.querySelector('.over')`)

	p.click("#ranges button", "6 hours")
	p.is(`location.search === '?range=6h' && document.querySelector('[data-range="6h"]').getAttribute('aria-pressed') === 'true'`)
	p.shows("#facts", "Replication")
}

// testAway keeps what the page shows while the server is away, says so, and goes on.
func testAway(t *testing.T, open func(...string) *page) {
	p := open()
	p.srv.Must("ZADD", "game", 1, "ann")
	p.visit("keys?key=game")
	p.shows("#detail td", "ann")
	p.until("the page is live", func() bool { return p.text("#detail .livedot") == "live" })
	handler := p.web.Handler
	p.web.Close()
	p.shows("#away", "The server is away")
	p.is(`document.body.classList.contains('away')`)
	p.shows("#detail td", "ann")
	p.picture("away")
	p.srv.Must("ZADD", "game", 2, "ben")
	l, err := net.Listen("tcp", strings.TrimSuffix(strings.TrimPrefix(p.base, "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	p.web = &http.Server{Handler: handler}
	go p.web.Serve(l)
	p.is(`document.querySelector('#away').hidden && !document.body.classList.contains('away')`)
	p.shows("#detail td", "ben")
}

// press presses a key with Ctrl.
func (p *page) press(key string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Modifiers: 2})
		return err
	}))
}

// testPalette goes to a part of a view, to a key, and to the prompt, by the keyboard.
func testPalette(t *testing.T, open func(...string) *page) {
	p := open()
	p.srv.Must("SET", "session:42", "x")
	p.srv.Must("MSET", "odd*<b>", "x", "odd:<b>", "x")
	p.visit("")
	p.press("k")
	p.is(`document.querySelector('#palette').open`)
	p.keys("#palette-text", "param\n")
	p.is(`location.search === '?part=parameters' && !document.querySelector('#palette').open`)
	p.press("k")
	p.keys("#palette-text", "ion:4")
	p.shows("#palette-list", "session:42")
	p.keys("#palette-text", "\n")
	p.shows("#detail .keyhead h2", "session:42")
	p.press("k")
	p.keys("#palette-text", "d*<")
	p.shows("#palette-list", "odd*<b>")
	if strings.Contains(p.text("#palette-list"), "odd:<b>") {
		t.Error("the text is a pattern")
	}
	p.fill("#palette-text", "ping")
	p.click("#palette-list li", "Prompt")
	p.is(`document.querySelector('#line').value === 'ping'`)
	p.visit("")
	p.shows("#facts", "Replication")
	p.do(chromedp.KeyEvent("?"))
	p.shows("#dialog", "Ctrl K")
	p.click("#dialog button", "Close")
	p.is(closed)
}

// testFace shows the name and the colour that the parameters give a server.
func testFace(t *testing.T, open func(...string) *page) {
	p := open("http-title", "Shop <b> two", "http-colour", "red")
	p.visit("keys")
	p.shows(".brand b", "Shop <b> two")
	p.is(`document.title === 'Keys · Shop <b> two' && getComputedStyle(document.querySelector('.bar')).borderTopColor === 'rgb(207, 58, 49)'`)
	p.srv.Must("CONFIG", "SET", "http-colour", "none", "http-title", "")
	p.visit("keys")
	p.is(`document.title === 'Keys · zsetd' && getComputedStyle(document.querySelector('.bar')).borderTopColor === 'rgba(0, 0, 0, 0)'`)
}

// testNarrow checks that no part is wider than a phone.
func testNarrow(t *testing.T, open func(...string) *page) {
	p := open()
	p.size(360, 740)
	p.srv.Must("ACL", "SETUSER", strings.Repeat("u", 100), "~"+strings.Repeat("k", 300))
	for _, path := range []string{"?range=24h", "server", "server?part=users", "server?part=parameters", "server?part=functions", "server?part=hotkeys", "server?part=backup", "messages?monitor=1"} {
		p.visit(path)
		p.is(`document.querySelector('.view:not([hidden])').innerText.length > 80`)
		p.is(`document.documentElement.scrollWidth <= 360 && document.querySelector('main').scrollWidth <= 360 && document.querySelector('nav').scrollWidth <= 360`)
	}
}
