package browser

import (
	"fmt"
	"strconv"
	"testing"
)

// mark clicks the box of the row of the tree with this name.
func (p *page) mark(name string) {
	p.t.Helper()
	row := fmt.Sprintf(`[...document.querySelectorAll('#tree .item')].find(e => e.querySelector('.name').textContent === %s)?.querySelector('.box')`, strconv.Quote(name))
	p.is(row)
	p.script(row + `.click()`)
}

// item takes an item of a menu.
func (p *page) item(menu, label string) {
	p.t.Helper()
	p.is(fmt.Sprintf(`document.querySelector(%q)`, menu))
	p.script(fmt.Sprintf(`document.querySelector(%q).open = true`, menu))
	p.click(menu+" button", label)
}

// testBulk deletes and expires many keys at once: those with a mark, those of a folder, and those that a search finds.
func testBulk(t *testing.T, open func(...string) *page) {
	p := open()
	closed := `!document.querySelector('#dialog').open`
	keys := func(want int64) {
		t.Helper()
		if got := p.srv.Must("DBSIZE"); got != want {
			t.Errorf("there are %v keys, want %d", got, want)
		}
	}
	search := func(pattern string, found int) {
		t.Helper()
		p.fill("#pattern", pattern)
		p.click("#search button", "Search")
		p.until(fmt.Sprint(found, " keys are found"), func() bool {
			return p.holds(fmt.Sprintf(`document.querySelector('#scan-stop').textContent === 'Reload' && document.querySelector('#scan-text').textContent.split(' ')[0].replace(',', '') === '%d'`, found))
		})
		p.item("#browser .menu", "Select keys …")
	}
	fill := func() {
		p.srv.Must("EVAL", `for i = 1, 1200 do redis.call('SET', 'session:' .. i, i) end`, 0)
		p.srv.Must("MSET", "keep:1", 1, "keep:2", 2, "alone", 3)
	}

	// A folder is counted before anything is done.
	fill()
	p.visit("keys")
	search("", 1203)
	p.mark("session:")
	p.shows("#selection", "1 folder")
	p.picture("bulk")
	p.click("#selection button", "Delete …")
	p.shows("#dialog [role=status]", "1,200 keys chosen. They are sent in 3 batches of 500.")
	p.shows("#dialog .command", "UNLINK session:")
	keys(1203)
	p.picture("bulk-delete")
	p.click("#dialog button", "Cancel")
	p.is(closed)
	keys(1203)
	p.click("#selection button", "Delete …")
	p.click("#dialog button", "Delete 1,200 keys")
	p.shows("#dialog [role=status]", "1,200 of 1,200: 1,200 deleted.")
	keys(3)
	p.click("#dialog button", "Close")
	p.shows("#scan-text", "3 keys")
	p.is(`document.querySelector('#selection').hidden`)

	// Between two batches it can be stopped.
	fill()
	search("", 1203)
	p.mark("session:")
	p.click("#selection button", "Delete …")
	p.shows("#dialog", "1,200 keys chosen")
	p.script(`window.sent = 0; window.plain = window.fetch; window.fetch = async (...args) => {
		if (args[1].body.includes('UNLINK') && ++window.sent === 2) await new Promise((go) => (window.release = go));
		return window.plain(...args);
	}`)
	p.click("#dialog button", "Delete 1,200 keys")
	p.is(`window.release`)
	keys(703)
	p.click("#dialog button", "Stop")
	p.script(`window.release(); window.fetch = window.plain`)
	p.shows("#dialog [role=status]", "Stopped at 1,000 of 1,200: 1,000 deleted.")
	keys(203)
	p.click("#dialog button", "Close")
	p.shows("#scan-text", "203 keys")

	// All that a search finds, and a folder within a search.
	p.srv.Must("MSET", "x:a:1", 1, "x:a:2", 1, "x:b:1", 1, "y:a:1", 1, "y:b:1", 1)
	search("?:*:1", 4)
	p.mark("x:")
	p.click("#selection button", "Delete …")
	p.shows("#dialog", "2 keys chosen")
	p.click("#dialog button", "Delete 2 keys")
	p.shows("#dialog [role=status]", "2 deleted")
	p.click("#dialog button", "Close")
	if p.srv.Must("EXISTS", "x:a:2", "y:a:1", "y:b:1") != int64(3) {
		t.Error("a key that the search did not find is deleted")
	}
	search("session:1*", len(p.srv.Must("KEYS", "session:1*").([]any)))
	p.script(`document.querySelector('#selection input').click()`)
	p.click("#selection button", "Expire …")
	p.is(`document.querySelector('#d-t')`)
	p.fill("#d-t", "soon")
	p.shows("#dialog .error", "Give seconds")
	p.click("#dialog button", "Change ")
	p.is(`document.querySelector('#d-t')`)
	p.fill("#d-t", "1000")
	p.shows("#dialog .command", "EXPIRE session:1")
	p.click("#dialog button", "Change ")
	p.shows("#dialog [role=status]", "changed.")
	p.click("#dialog button", "Close")
	for _, key := range p.srv.Must("KEYS", "session:1*").([]any) {
		if ttl := p.srv.Must("TTL", key).(int64); ttl < 900 || ttl > 1000 {
			t.Errorf("%v has a time to live of %d", key, ttl)
		}
	}
	if p.srv.Must("TTL", "x:a:2") != int64(-1) {
		t.Error("a key that the search did not find expires")
	}

	// One key with a mark; an empty time is none.
	p.srv.Must("SET", "single", "v", "EX", 1000)
	search("single", 1)
	p.mark("single")
	p.shows("#selection", "1 key")
	p.click("#selection button", "Expire …")
	p.shows("#dialog .command", "PERSIST single")
	p.click("#dialog button", "Change 1 key")
	p.shows("#dialog [role=status]", "1 of 1: 1 changed.")
	p.click("#dialog button", "Close")
	if p.srv.Must("TTL", "single") != int64(-1) {
		t.Error("the key still expires")
	}

	// An error ends the run, and one run has a bound.
	p.srv.Must("ACL", "SETUSER", "default", "-unlink")
	search("single", 1)
	p.mark("single")
	p.click("#selection button", "Delete …")
	p.click("#dialog button", "Delete 1 key")
	p.shows("#dialog .error", "NOPERM")
	p.shows("#dialog [role=status]", "0 of 1")
	p.click("#dialog button", "Close")
	p.srv.Must("EVAL", `for i = 1, 100001 do redis.call('SET', 'n' .. i, '') end`, 0)
	search("n*", 100001)
	p.script(`document.querySelector('#selection input').click()`)
	p.click("#selection button", "Delete …")
	p.shows("#dialog [role=status]", "100,000 keys are chosen. There are more")
	p.click("#dialog button", "Cancel")
}
