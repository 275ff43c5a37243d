package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/zsetd/zsetd/server/e2e/program"
)

// axeSource returns the script axe-core, which looks for what people with a disability cannot
// use, or skips the test. .ci/clients installs it with the libraries of Node.js.
func axeSource(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(program.NodeModules(t), "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// violation is a rule that elements of the page break.
type violation struct {
	ID, Impact, Help string
	Targets          []string
}

// violations returns the rules that the page breaks and axe calls serious or critical.
func (p *page) violations(axe string) []violation {
	p.t.Helper()
	if !p.holds(`window.axe`) {
		p.script(axe + "\n;undefined")
	}
	p.script(`window.axeResult = null; axe.run(document, {resultTypes: ['violations']}).then((r) => window.axeResult = r, (e) => window.axeResult = {error: String(e)}); undefined`)
	p.is(`window.axeResult`)
	if failed := eval[string](p, `window.axeResult.error || ''`); failed != "" {
		p.t.Fatalf("axe: %s", failed)
	}
	if !p.holds(`window.axeResult.testEngine.name === 'axe-core'`) {
		p.t.Fatal("axe has not run")
	}
	return eval[[]violation](p, `window.axeResult.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical').map((v) =>
		({ID: v.id, Impact: v.impact, Help: v.help, Targets: v.nodes.slice(0, 4).map((n) => n.target.join(' ') + ': ' + (n.any[0]?.message || n.html).slice(0, 200))}))`)
}

// scheme chooses light or dark colours.
func (p *page) scheme(name string) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return err
	}))
}

// TestAccessible opens each view on a desk and on a phone, light and dark, and lets axe-core
// examine it.
func TestAccessible(t *testing.T) {
	axe := axeSource(t)
	p := open(t, startBrowser(t), append(live(), "slowlog-log-slower-than", "0")...)
	p.srv.Must("EVAL", `
		for i = 1, 150 do redis.call('ZADD', 'game', i, 'player' .. i) redis.call('RPUSH', 'list', i) end
		for i = 1, 20 do redis.call('HSET', 'user:' .. i, 'name', i) end
		for i = 1, 5000 do redis.call('ZADD', 'many', '@now+' .. i .. 's', i) end`, 0)
	p.srv.Must("HSET", "hash", "f", "v")
	p.srv.Must("SADD", "set", "a", "b")
	p.srv.Must("XADD", "stream", "*", "f", "v")
	p.srv.Must("XGROUP", "CREATE", "stream", "group", "0")
	p.srv.Must("XREADGROUP", "GROUP", "group", "reader", "STREAMS", "stream", ">")
	p.srv.Must("SET", "string", "value", "EX", 1000)
	p.srv.Must("ZADD", "due", "@now-3s", "account_1", "@now+3s", "account_2", "@now+1h", "account_3")
	p.srv.Must("ZADD", "details:account_1", 1, "likes")
	for i := range 40 {
		p.srv.Must("ZADDEX", "club", "EX", 2000+i, "MEMBERS", 1, "*", fmt.Sprint("user", i))
		p.srv.Must("ZADDEX", "hits", "INCR", "EX", 3000, "ENX", "MEMBERS", 1, 60+i, fmt.Sprintf("12:%02d:00", i))
		p.srv.Must("ZADDEX", "news", "EX", 600*(i+1), "MEMBERS", 1, "@now", fmt.Sprintf(`{"url":"/n/%d"}`, i))
	}
	p.srv.Must("FUNCTION", "LOAD", "#!lua name=mylib\nredis.register_function('hello', function() return 1 end)")
	p.srv.Must("HOTKEYS", "START", "METRICS", 1, "CPU")
	p.srv.Must("GET", "string")
	value := `document.querySelector('#detail .keyhead') && document.querySelector('#detail .value').children.length && document.querySelector('#scan-stop').textContent === 'Reload'`
	type look struct{ path, ready string }
	views := []look{
		{"", `document.querySelectorAll('.plot .line').length && document.querySelector('#slow td')`},
		{"keys", `document.querySelector('#tree .item') && document.querySelector('#scan-stop').textContent === 'Reload'`},
		{"messages?pattern=*", `document.querySelector('#subs .livedot.on')`},
		{"keys?map=1", `document.querySelectorAll('.tile').length > 3 && document.querySelector('.histogram')`},
		{"prompt?line=zrange%20game%200%203%20withscores", `document.querySelector('#hint').innerText`},
	}
	for part, ready := range map[string]string{"clients": ".clients tbody tr", "users": "#server-part tbody tr", "parameters": ".parameter", "functions": ".library", "hotkeys": "#server-part tbody tr", "backup": "#server-part .facts b"} {
		views = append(views, look{"server?part=" + part, `document.querySelector('` + ready + `')`})
	}
	for _, key := range []string{"hash", "list", "set", "stream", "string", "many", "game", "game&view=timeline", "club&view=deadlines",
		"news&view=live", "hits&view=boxes", "due&view=folder", "club&view=line"} {
		views = append(views, look{"keys?key=" + key, value})
	}
	examine := func(what string) {
		t.Helper()
		for _, v := range p.violations(axe) {
			t.Errorf("%s: %s (%s): %s\n\t%s", what, v.ID, v.Impact, v.Help, strings.Join(v.Targets, "\n\t"))
		}
	}
	for _, width := range []int64{1280, 360} {
		p.size(width, 800)
		for _, view := range views {
			p.visit(view.path)
			p.is(view.ready)
			for _, scheme := range []string{"light", "dark"} {
				p.scheme(scheme)
				examine(fmt.Sprintf("%q, %d px, %s", view.path, width, scheme))
			}
		}
		// Parts of views that a user opens.
		p.visit("keys?key=game")
		p.shows("#detail td", "player150")
		p.click("#detail button", "Add …")
		p.is(`document.querySelector('#dialog').open`)
		examine(fmt.Sprintf("the dialog, %d px", width))
		p.click("#dialog button", "Cancel")
		p.script(`document.querySelector('#detail .menu').open = true`)
		examine(fmt.Sprintf("a menu, %d px", width))
		p.visit("keys?key=stream")
		p.click(".groups td button", "group")
		p.shows(".groups", "reader")
		examine(fmt.Sprintf("a group, %d px", width))
		p.visit("keys")
		p.item("#browser .menu", "Select keys …")
		p.mark("game")
		examine(fmt.Sprintf("boxes of keys, %d px", width))
		p.click("#selection button", "Expire …")
		p.is(`document.querySelector('#d-t')`)
		examine(fmt.Sprintf("many keys, %d px", width))
		p.visit("prompt?line=zrange%20game%200%203%20withscores")
		p.click("#command button", "Run")
		p.shows(".replies article", "player1")
		p.keys("#line", "z")
		p.is(`!document.querySelector('#suggestions').hidden`)
		examine(fmt.Sprintf("a reply and suggestions, %d px", width))
		p.click("#palette-open", "Go to")
		p.is(`document.querySelectorAll('#palette-list li').length`)
		examine(fmt.Sprintf("the palette, %d px", width))
		p.srv.Must("CONFIG", "SET", "requirepass", "secret")
		p.visit("login")
		examine(fmt.Sprintf("the login, %d px", width))
		p.srv.Must("CONFIG", "SET", "requirepass", "")
	}
}
