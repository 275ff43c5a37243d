package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// testMake makes keys of lines and of JSON, copies, and saves values and tables.
func testMake(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	closed := `!document.querySelector('#dialog').open`
	create := func(key, kind, form, value, ttl string) {
		t.Helper()
		p.click("#new-key", "New key")
		for id, v := range map[string]string{"#d-key": key, "#d-type": kind, "#d-form": form, "#d-value": value, "#d-ttl": ttl} {
			p.fill(id, v)
		}
		p.click("#dialog button", "Create")
	}
	same := func(want any, command ...any) {
		t.Helper()
		if got := p.srv.Must(command...); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	refused := func(value, why string) {
		t.Helper()
		p.fill("#d-value", value)
		p.shows("#dialog .error", why)
		p.click("#dialog button", "Create")
		p.shows("#dialog .error", why)
	}
	p.visit("keys")
	create("z", "zset", "lines", "1 ann\n2.5 \"b c\"\n@now+1h later\n", "1000")
	p.is(closed)
	p.shows("#detail h2", "z")
	same([]any{"ann", "b c", "later"}, "ZRANGE", "z", 0, -1)
	same([]any{1.0, 2.5}, "ZMSCORE", "z", "ann", "b c")
	same(int64(1000), "TTL", "z")
	create("h", "hash", "json", `{"a":12345678901234567890,"b":{"c":[1.0, "x y"]},"d":"text é"}`, "")
	p.is(closed)
	same([]any{"12345678901234567890", `{"c":[1.0,"x y"]}`, "text é"}, "HMGET", "h", "a", "b", "d")
	create("l", "list", "json", `["a", 1, null, "", {"base64":"/w=="}]`, "")
	p.is(closed)
	same([]any{"a", "1", "null", "", "\xff"}, "LRANGE", "l", 0, -1)
	create("s", "set", "lines", "one\ntwo words\n", "")
	p.is(closed)
	same([]any{int64(1), int64(1)}, "SMISMEMBER", "s", "one", "two words")
	create("x", "stream", "json", `[{"f":1},{"f":2,"g":"h"}]`, "")
	p.is(closed)
	same(int64(2), "XLEN", "x")
	create("zj", "zset", "json", `{"ann":1,"ben":-2.5e3}`, "")
	p.is(closed)
	same([]any{"ben", "ann"}, "ZRANGE", "zj", 0, -1)
	create("str", "string", "lines", "two\nlines", "")
	p.is(closed)
	same("two\nlines", "GET", "str")

	// What is wrong is said before anything is written.
	create("bad", "zset", "lines", "ann 1", "")
	p.shows("#dialog .error", "ann is no score")
	refused("1 two words", "2 words are expected")
	refused("", "an element at least")
	p.fill("#d-form", "json")
	refused(`{"a":`, "JSON")
	refused(`[1,2,3]`, "has no value")
	p.fill("#d-ttl", "later")
	refused(`{"a":1}`, "The time to live")
	p.click("#dialog button", "Cancel")
	same(int64(0), "EXISTS", "bad")

	// What the page saves, it makes again.
	p.srv.Must("SET", "v:string", "a\x00\xff", "PXAT", 4e12)
	p.srv.Must("RPUSH", "v:list", "a", "\xff", "", "12")
	p.srv.Must("SADD", "v:set", "a", "\xff", `{"base64":"YQ=="}`+".")
	p.srv.Must("HSET", "v:hash", "f", "v\r", "\xff", `"`, "1", "x")
	p.srv.Must("HPEXPIREAT", "v:hash", 4e12, "FIELDS", 1, "\xff")
	p.srv.Must("ZADD", "v:zset", "inf", "high", "-inf", "low", "0.1", "\xff", "12345678901234567", "large", "1e300", "huge")
	p.srv.Must("ZPEXPIREAT", "v:zset", 4e12, "MEMBERS", 1, "\xff")
	p.srv.Must("XADD", "v:stream", "5-1", "f", "v", "f", "\xff")
	catch := `window.saved = []; URL.createObjectURL = (b) => { b.arrayBuffer().then((a) => window.saved.push(String.fromCharCode(...new Uint8Array(a)))); return '#'; }; HTMLAnchorElement.prototype.click = () => {};
		Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.copied = text; }}}); undefined`
	saved := func(label string) string {
		t.Helper()
		p.script(`window.saved = []`)
		p.item("#detail .menu", label)
		p.is(`window.saved.length`)
		text := eval[string](p, `window.saved[0]`)
		b := make([]byte, 0, len(text))
		for _, r := range text {
			b = append(b, byte(r))
		}
		return string(b)
	}
	for _, kind := range []string{"string", "list", "set", "hash", "zset", "stream"} {
		key := "v:" + kind
		p.visit("keys?key=" + key)
		p.shows("#detail h2", key)
		p.is(`document.querySelector('#detail .menu')`)
		p.script(catch)
		line := saved("Download as JSON")
		if !json.Valid([]byte(line)) || !strings.Contains(line, `"key":"`+key+`"`) {
			t.Errorf("%s is saved as %q", key, line)
		}
		create("again", "zset", "download", line, "")
		p.is(closed)
		state := func(key string) string {
			read := []any{"DUMP", key}
			if kind == "stream" { // whose DUMP has the count of entries that were ever added
				read = []any{"XRANGE", key, "-", "+"}
			}
			return fmt.Sprintf("%q %v", p.srv.Must(read...), p.srv.Must("PEXPIRETIME", key))
		}
		if was, is := state(key), state("again"); is != was {
			t.Errorf("%s is saved as %s and made again as %s of %s", key, line, is, was)
		}
		p.srv.Must("DEL", "again")
	}
	p.visit("keys?key=v:string")
	p.shows("#detail h2", "v:string")
	p.is(`document.querySelector('#detail .menu')`)
	p.script(catch)
	if got := saved("Download the bytes"); got != "a\x00\xff" {
		t.Errorf("the bytes are saved as %q", got)
	}
	folder := t.TempDir()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder})
		return err
	}))
	p.visit("keys?key=v:string")
	p.is(`document.querySelector('#detail .menu')`)
	p.item("#detail .menu", "Download the bytes")
	p.until("the browser has the file", func() bool {
		b, err := os.ReadFile(filepath.Join(folder, "v_string"))
		return err == nil && string(b) == "a\x00\xff"
	})
	p.visit("keys?key=str")
	p.shows("#detail pre", "two")
	p.script(catch)
	p.item("#detail .menu", "Copy the value")
	p.is(`window.copied === 'two\nlines'`)
	p.item("#detail .menu", "Copy the name")
	p.is(`window.copied === 'str'`)

	// The table that is shown, with all of a long member, and without formulas.
	p.srv.Must("ZADD", "table", 3, `a,"b"`, 2, "=1+1", 1.5, strings.Repeat("long", 100), -5, "-5")
	p.visit("keys?key=table")
	p.shows("#detail tbody", "=1+1")
	p.script(catch)
	want := "Rank,Member,Score\r\n0,\"a,\"\"b\"\"\",3\r\n1,'=1+1,2\r\n2," + strings.Repeat("long", 100) + ",1.5\r\n3,-5,-5\r\n"
	if got := saved("Table as CSV"); got != want {
		t.Errorf("the table is saved as %q, want %q", got, want)
	}
	var rows []map[string]string
	if text := saved("Table as JSON"); json.Unmarshal([]byte(text), &rows) != nil || len(rows) != 4 || rows[1]["Member"] != "=1+1" || rows[0]["Score"] != "3" {
		t.Errorf("the table is saved as %s", text)
	}

	// A copy of a key does not replace another one.
	p.item("#detail .menu", "Duplicate …")
	p.shows("#dialog .command", "COPY table table:copy")
	p.click("#dialog button", "Run")
	p.is(closed)
	p.shows("#detail h2", "table:copy")
	same(p.srv.Must("DUMP", "table"), "DUMP", "table:copy")
	p.visit("keys?key=table")
	p.shows("#detail tbody", "=1+1")
	p.item("#detail .menu", "Duplicate …")
	p.click("#dialog button", "Run")
	p.shows("#dialog .error", "A key with this name exists.")
	p.fill("#d-to", "table")
	p.shows("#dialog .error", "another name")
	p.click("#dialog button", "Cancel")

	// A value that is too large is not read.
	p.srv.Must("SETRANGE", "large", 17_000_000, "x")
	p.visit("keys?key=large")
	p.shows("#detail .keyhead", strconv.Itoa(17)) // 17,000,001 bytes
	p.item("#detail .menu", "Download as JSON")
	p.shows("#dialog", "the page reads up to 15.3 MB")
}
