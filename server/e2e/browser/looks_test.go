package browser

import (
	"fmt"
	"strings"
	"testing"
)

// testLooks checks what a person sees at a glance: columns in line, nothing cut without a hint, and texts that can be read.
func testLooks(t *testing.T, open func(...string) *page) {
	p := open()
	p.srv.Must("SET", "deep:down:alone", "v", "EX", 100000)
	p.srv.Must("MSET", "user:1", 1, "user:2", 2)
	p.srv.Must("EVAL", `for i = 1, 200 do redis.call('ZADD', 'game', i, 'player' .. i) end`, 0)
	p.srv.Must("ZADD", "due", "@now-3s", "account_1", "@now-1h", "account_12345", "@now+1h", "account_4", "@now+90000s", "a")
	p.srv.Must("ZADD", "details:account_1", 1, "likes")
	p.srv.Must("ZADD", "jobs", "@now-3s", "late", "@now-1h", "later", "@now-2d", "latest", "@now+1h", "b")
	for i, name := range []string{"a", "a long name", strings.Repeat("much longer ", 20), "b"} {
		p.srv.Must("ZADDEX", "club", "EX", 200*(i*i+1), "MEMBERS", 1, 10*i*i*i+1, name)
	}
	for i := range 20 {
		p.srv.Must("ZADD", "hits", 60+i, fmt.Sprintf("12:%02d:00", i))
	}
	// inLine waits until the parts of the rows of a lane begin, or end, at one place.
	inLine := func(lane int, part, side string) {
		t.Helper()
		p.is(fmt.Sprintf(`(() => {
			const at = [...document.querySelectorAll('.lane:nth-child(%d) li %s')].map(e => Math.round(e.getBoundingClientRect().%s));
			return at.length > 1 && new Set(at).size === 1;
		})()`, lane, part, side))
	}
	for _, width := range []int64{1280, 360} {
		p.size(width, 740)
		p.visit("keys?key=club&view=line")
		for _, part := range []string{".name", ".what", ".drain", ".note"} {
			inLine(1, part, "left")
			inLine(1, part, "right")
		}
		p.visit("keys?key=due&view=folder")
		inLine(1, ".name", "left")
		inLine(1, ".note", "right")
	}
	// On a phone, the options of a view and what can be done with a key are closed, and a table that goes on has a shadow.
	p.script(`document.querySelector('.options').open = true`)
	p.is(`[...document.querySelectorAll('.options :is(select, input)')].every(e => e.getBoundingClientRect().right <= 360)`)
	for _, key := range []string{"game", "jobs", "due", "club"} {
		p.visit("keys?key=" + key)
		p.is(`document.querySelector('#detail .keyhead') && document.querySelector('#detail :is(tbody tr, .timeline, .lane li)')`)
		if top := eval[float64](p, `document.querySelector('#detail :is(table, .timeline, .lane)').getBoundingClientRect().top`); top > 370 {
			t.Errorf("%s: the value begins at %.0f of 740 pixels", key, top)
		}
	}
	p.visit("keys?key=game")
	p.is(`document.querySelector('#detail .scroll-x.after:not(.before)')`)
	p.script(`document.querySelector('#detail .scroll-x').scrollLeft = 1000`)
	p.is(`document.querySelector('#detail .scroll-x.before:not(.after)')`)
	p.size(1280, 800)
	p.is(`document.querySelector('#detail .scroll-x:not(.before, .after)')`)

	// The view that fits has a tab, and a menu the others.
	p.is(`document.querySelectorAll('#detail .tabs button').length === 1 && document.querySelectorAll('#detail .views option').length === 7`)
	p.fill("#detail .views select", "timeline")
	p.is(`document.querySelectorAll('#detail .tabs button').length === 2 && document.querySelector('.timeline')`)
	p.click("#detail .tabs button", "Leaderboard")
	p.shows("#detail tbody", "player200")
	p.shows("#detail .keyhead", "B-tree (skiplist)")

	// A folder of one key is a row; rows have types and times to live.
	p.is(`[...document.querySelectorAll('#tree .item .name')].some(e => e.textContent === 'deep:down:alone')`)
	p.is(`[...document.querySelectorAll('#tree .item .name')].some(e => e.textContent === 'user:')`)
	p.is(`[...document.querySelectorAll('#tree .item')].some(e => /^stringdeep:down:alone1d 3h/.test(e.textContent))`)
	p.srv.Must("PERSIST", "deep:down:alone")
	p.is(`[...document.querySelectorAll('#tree .item')].some(e => /^stringdeep:down:alone\d+ B/.test(e.textContent))`)

	p.visit("keys?key=jobs")
	p.shows(".lane:first-child li:first-child", "late")
	p.shows(".lane:first-child li:first-child", "s ago")
	p.shows(".lane:first-child li:last-child", "latest")
	p.visit("keys?key=hits")
	p.shows("#detail .axis", "12:00:00")
	p.shows("#detail .axis", "12:19:00")
	p.shows("#detail .axis", "79")
	p.visit("messages")
	p.is(`document.querySelector('#subs > *') && [...document.querySelectorAll('#subs > *')].every((e) => e.role === 'listitem')`)

	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		for _, text := range []string{"--text", "--muted", "--accent", "--t1", "--t2", "--bad"} {
			for _, back := range []string{"--flash", "--soft", "--sunk"} {
				ratio := eval[float64](p, fmt.Sprintf(`(() => {
					const probe = document.body.appendChild(document.createElement('i'));
					const light = (name) => {
						probe.style.color = 'var(' + name + ')';
						const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
						return 0.2126 * r + 0.7152 * g + 0.0722 * b;
					};
					const [a, b] = [light(%q), light(%q)].sort((x, y) => y - x);
					probe.remove();
					return (a + 0.05) / (b + 0.05);
				})()`, text, back))
				if ratio < 4.5 {
					t.Errorf("%s on %s has the contrast %.2f in %s", text, back, ratio, scheme)
				}
			}
		}
	}
}
