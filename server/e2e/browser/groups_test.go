package browser

import (
	"fmt"
	"testing"
)

// testGroups makes a consumer group, follows its consumers and pending entries, and acknowledges and claims these.
func testGroups(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	closed := `!document.querySelector('#dialog').open`
	for i := range 120 {
		p.srv.Must("XADD", "orders", fmt.Sprint(i+1, "-0"), "n", i)
	}
	p.visit("keys?key=orders")
	p.shows("#detail .groups", "none")
	p.click("#detail button", "New group …")
	p.fill("#d-name", "mail")
	p.fill("#d-id", "0")
	p.shows("#dialog .command", "XGROUP CREATE orders mail 0")
	p.click("#dialog button", "Run")
	p.is(closed)
	p.shows(".groups table", "mail")
	p.click("#detail button", "New group …")
	p.fill("#d-name", "mail")
	p.click("#dialog button", "Run")
	p.shows("#dialog .error", "BUSYGROUP")
	p.click("#dialog button", "Cancel")
	// The groups stand above the entries.
	p.is(`document.querySelector('.groups').compareDocumentPosition([...document.querySelectorAll('#detail td')].find(e => e.textContent === '120-0')) & Node.DOCUMENT_POSITION_FOLLOWING`)

	p.click(".groups td button", "mail")
	p.shows(".groups", "None has read yet.")
	p.srv.Must("XREADGROUP", "GROUP", "mail", "host-1", "COUNT", 60, "STREAMS", "orders", ">")
	p.srv.Must("XREADGROUP", "GROUP", "mail", "host-2", "COUNT", 1, "STREAMS", "orders", ">")
	// Another client's reading shows by itself.
	row := func(text string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('.groups tbody tr')].find(e => [...e.cells].some(c => c.textContent === %q))`, text)
	}
	p.is(row("host-2"))
	p.is(row("50-0"))
	p.picture("groups")
	press := func(text, button string) {
		t.Helper()
		p.is(row(text))
		p.script(fmt.Sprintf(`[...%s.querySelectorAll('button')].find(b => b.textContent === %q).click()`, row(text), button))
		p.is(`document.querySelector('#dialog').open`)
	}
	press("1-0", "Ack")
	p.shows("#dialog .command", "XACK orders mail 1-0")
	p.click("#dialog button", "Acknowledge")
	p.is(closed)
	p.is(`![...document.querySelectorAll('.groups td')].some(e => e.textContent === '1-0')`)
	if got := p.srv.Must("XPENDING", "orders", "mail").([]any)[0]; got != int64(60) {
		t.Errorf("%v entries are pending", got)
	}
	press("2-0", "Ack")
	p.srv.Must("XACK", "orders", "mail", "2-0")
	p.click("#dialog button", "Acknowledge")
	p.shows("#dialog .error", "It is no longer pending.")
	p.click("#dialog button", "Cancel")

	// A claim fails if another client was faster.
	p.srv.Advance(5000e9)
	p.is(row("1h 23m"))
	press("3-0", "Claim")
	p.shows("#dialog .error", "Name the consumer.")
	p.fill("#d-consumer", "host-3")
	p.click("#dialog button", "Claim")
	p.is(closed)
	p.is(row("host-3"))
	if got := fmt.Sprint(p.srv.Must("XPENDING", "orders", "mail", "3-0", "3-0", 1).([]any)[0].([]any)[1]); got != "host-3" {
		t.Errorf("the entry is pending for %s", got)
	}
	press("4-0", "Claim")
	p.srv.Must("XCLAIM", "orders", "mail", "host-4", 0, "4-0")
	p.fill("#d-consumer", "host-3")
	p.click("#dialog button", "Claim")
	p.shows("#dialog .error", "Another client has claimed or acknowledged it meanwhile.")
	p.click("#dialog button", "Cancel")

	// Pages of pending entries, and what loses some.
	p.click(".groups button", "Next ›")
	p.is(row("61-0"))
	p.click(".groups button", "« First")
	p.is(row("5-0"))
	press("host-1", "Delete")
	p.shows("#dialog", "are lost to the group")
	p.srv.Must("XACK", "orders", "mail", "5-0")
	p.click("#dialog button", "Delete")
	p.shows("#dialog .error", "Another client has changed this meanwhile")
	p.click("#dialog button", "Cancel")
	press("host-2", "Delete")
	p.click("#dialog button", "Delete")
	p.is(closed)
	p.is(`!` + row("host-2"))
	press("61-0", "Set ID") // which the row of the group has as its last ID
	p.fill("#d-id", "$")
	p.click("#dialog button", "Run")
	p.is(closed)
	p.is(row("120-0"))
	press("mail", "Delete")
	p.click("#dialog button", "Delete")
	p.is(closed)
	p.shows("#detail .groups", "none")
	if got := fmt.Sprint(p.srv.Must("XINFO", "GROUPS", "orders")); got != "[]" {
		t.Errorf("the stream has the groups %s", got)
	}
}
