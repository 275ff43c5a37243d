package browser

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// edit is a dialog of a key.
type edit struct {
	name, key string
	make      []any  // the command that makes the key
	and       []any  // and another one
	row       string // text of the row with the button
	button    string
	field     string // selector of the field
}

// edits are the dialogs of each kind of value, with byte strings that a text field does not hold.
func edits() (list []edit) {
	values := []string{"plain", "", " spaces\t", "a\nb", "a\r\nb\rc", "a\x00b", "\xff\xfe", `back\slash \n`, "\ufefftext\u202e", `{"n":12345678901234567890,"n":1.0}`, `"\ud800"`, "\n", "é😀"}
	for i, v := range values {
		n := strconv.Itoa(i)
		list = append(list,
			edit{"string " + strconv.Quote(v), "s" + n, []any{"SET", "s" + n, v, "PX", 1e9}, nil, "", "Edit …", "#d-value"},
			edit{"hash " + strconv.Quote(v), "h" + n, []any{"HSET", "h" + n, "field", v}, []any{"HPEXPIRE", "h" + n, 1e9, "FIELDS", 1, "field"}, "field", "Edit", "#d-value"},
			edit{"list " + strconv.Quote(v), "l" + n, []any{"RPUSH", "l" + n, "first", v, "last"}, nil, "1", "Edit", "#d-v"})
		if v != "" {
			list = append(list, edit{"name " + strconv.Quote(v), "n" + v, []any{"SET", "n" + v, "x"}, nil, "", "Rename …", "#d-to"})
		}
	}
	long := strings.Repeat("long\r\n", 15000)
	return append(list,
		edit{"long string", "long", []any{"SET", "long", long}, nil, "", "Edit …", "#d-value"},
		edit{"long field", "longh", []any{"HSET", "longh", "f", long}, nil, "f", "Edit", "#d-value"},
		edit{"score", "z", []any{"ZADD", "z", "0.1", "m\r\n\xff"}, []any{"ZPEXPIRE", "z", 1e9, "MEMBERS", 1, "m\r\n\xff"}, "m", "Score", "#d-s"},
		edit{"negative zero", "z0", []any{"ZADD", "z0", "-0", "m"}, nil, "m", "Score", "#d-s"},
		edit{"infinite score", "zi", []any{"ZADD", "zi", "-inf", "m"}, nil, "m", "Score", "#d-s"},
		edit{"precise score", "zp", []any{"ZADD", "zp", "12345678901234567", "m"}, nil, "m", "Score", "#d-s"},
		edit{"deadline of a key", "t", []any{"SET", "t", "v", "PX", 123456789}, nil, "", "TTL …", "#d-t"},
		edit{"no deadline of a key", "t0", []any{"SET", "t0", "v"}, nil, "", "TTL …", "#d-t"},
		edit{"deadline of a field", "th", []any{"HSET", "th", "f", "v"}, []any{"HPEXPIRE", "th", 123456789, "FIELDS", 1, "f"}, "f", "TTL", "#d-t"},
		edit{"deadline of a member", "tz", []any{"ZADD", "tz", 1, "m"}, []any{"ZPEXPIRE", "tz", 123456789, "MEMBERS", 1, "m"}, "m", "TTL", "#d-t"})
}

// state returns all that a server has of a key.
func (p *page) state(key string) string {
	p.t.Helper()
	return fmt.Sprintf("%q %v", p.srv.Must("DUMP", key), p.srv.Must("PEXPIRETIME", key))
}

// dialog opens the dialog of an edit.
func (p *page) dialog(e edit) {
	p.t.Helper()
	p.visit("keys?key64=" + escape(base64.StdEncoding.EncodeToString([]byte(e.key))) + "&view=" + map[bool]string{true: "board", false: "value"}[e.key[0] == 'z' || e.key == "tz"])
	if e.row == "" {
		p.click("#detail button", e.button)
	} else {
		row := fmt.Sprintf(`[...document.querySelectorAll('#detail tbody tr')].find(r => r.children[0].textContent.startsWith(%[1]q) || r.children[1].textContent.startsWith(%[1]q))`, e.row)
		p.is(row)
		p.script(fmt.Sprintf(`[...%s.querySelectorAll('button')].find(b => b.textContent === %q).click()`, row, e.button))
	}
	p.is(`document.querySelector('#dialog').open && document.querySelector('` + e.field + `')`)
}

// escape returns a key for the query of an address.
func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		fmt.Fprintf(&b, "%%%02x", key[i])
	}
	return b.String()
}

func testEdits(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	closed := `!document.querySelector('#dialog').open`
	for _, e := range edits() {
		p.srv.Must(e.make...)
		if e.and != nil {
			p.srv.Must(e.and...)
		}
		// Without typing, nothing is changed.
		before := p.state(e.key)
		p.dialog(e)
		p.shows("#dialog .command", "Nothing is changed.")
		p.click("#dialog button", "Run")
		p.is(closed)
		if after := p.state(e.key); after != before {
			t.Errorf("%s: Run without typing makes %.300s of %.300s", e.name, after, before)
		}
		// What another client has written meanwhile is kept.
		p.dialog(e)
		p.srv.Must(append([]any{"RESTORE"}, "kept", 0, p.srv.Must("DUMP", e.key), "REPLACE")...)
		typed, other := `x\r\n\x00\xff\\`, []any(nil)
		if e.field == "#d-s" || e.field == "#d-t" {
			typed = "77"
		}
		switch {
		case e.button == "Score":
			other = []any{"ZINCRBY", e.key, 1, e.make[3]}
			if e.key == "zi" {
				other = []any{"ZADD", e.key, 1, "m"}
			} else if e.key == "zp" {
				other = []any{"ZINCRBY", e.key, 2, "m"}
			}
		case e.field == "#d-t" && e.row == "f":
			other = []any{"HPEXPIRE", e.key, 5000000, "FIELDS", 1, "f"}
		case e.field == "#d-t" && e.row == "m":
			other = []any{"ZPEXPIRE", e.key, 5000000, "MEMBERS", 1, "m"}
		case e.field == "#d-t":
			other = []any{"PEXPIRE", e.key, 5000000}
		case e.button == "Rename …":
			other = []any{"DEL", e.key}
		case e.make[0] == "SET":
			other = []any{"APPEND", e.key, "."}
		case e.make[0] == "HSET":
			other = []any{"HSET", e.key, e.make[2], fmt.Sprint(e.make[3]) + "."}
		default:
			other = []any{"LPOP", e.key}
		}
		p.srv.Must(other...)
		theirs := p.state(e.key)
		p.fill(e.field, typed)
		p.click("#dialog button", "Run")
		p.shows("#dialog .error", "Another client has changed this meanwhile")
		if after := p.state(e.key); after != theirs {
			t.Errorf("%s: overwritten: %.300s, want %.300s", e.name, after, theirs)
		}
		p.click("#dialog button", "Cancel")
		p.is(closed)
		p.srv.Must("DEL", e.key, "kept")
	}
}

// testWrites changes values, and finds what was not changed as it was.
func testWrites(t *testing.T, open func(...string) *page) {
	p := open(live()...)
	closed := `!document.querySelector('#dialog').open`
	type change struct{ fill, value string }
	write := func(e edit, verb string, fields ...change) {
		t.Helper()
		p.dialog(e)
		for _, f := range fields {
			p.fill(f.fill, f.value)
		}
		p.click("#dialog button", verb)
		p.is(closed)
	}
	same := func(want any, command ...any) {
		t.Helper()
		if got := p.srv.Must(command...); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	p.srv.Must("HSET", "h", "f", "a\r\xff", "g", "other\r")
	p.srv.Must("HPEXPIREAT", "h", 4e12, "FIELDS", 1, "f")
	write(edit{key: "h", row: "f", button: "Edit", field: "#d-value"}, "Run", change{"#d-value", `b\r\xff\\`})
	same([]any{"b\r\xff\\"}, "HMGET", "h", "f")
	same([]any{int64(4e12)}, "HPEXPIRETIME", "h", "FIELDS", 1, "f")
	same("other\r", "HGET", "h", "g")
	p.srv.Must("SET", "s", "a", "PXAT", 4e12)
	write(edit{key: "s", button: "Edit …", field: "#d-value"}, "Run", change{"#d-value", `b\n"`})
	same(`b\n"`, "GET", "s")
	same(int64(4e12), "PEXPIRETIME", "s")
	p.srv.Must("RPUSH", "l", "x", "y", "x", "z")
	write(edit{key: "l", row: "2", button: "Edit", field: "#d-v"}, "Run", change{"#d-v", "new"})
	same([]any{"x", "y", "new", "z"}, "LRANGE", "l", 0, -1)
	p.srv.Must("LSET", "l", 2, "x")
	p.visit("keys?key=l")
	write(edit{key: "l", row: "2", button: "Remove", field: ".command"}, "Remove")
	same([]any{"x", "y", "z"}, "LRANGE", "l", 0, -1)
	p.srv.Must("ZADD", "z", 5, "m")
	p.srv.Must("ZPEXPIREAT", "z", 4e12, "MEMBERS", 1, "m")
	write(edit{key: "z", row: "m", button: "Score", field: "#d-s"}, "Run", change{"#d-s", "6.5"})
	same(6.5, "ZSCORE", "z", "m")
	same([]any{int64(4e12)}, "ZPEXPIRETIME", "z", "MEMBERS", 1, "m")
	p.srv.Must("SET", "to\r\n", "x")
	write(edit{key: "to\r\n", button: "Rename …", field: "#d-to"}, "Run", change{"#d-to", `from\xff`})
	same("x", "GET", "from\xff")

	// A name that exists is not added over.
	p.visit("keys?key=z&view=board")
	p.click("#detail button", "Add …")
	p.fill("#d-m", "m")
	p.click("#dialog button", "Run")
	p.shows("#dialog .error", "ZSCORE z m is now 6.5")
	p.click("#dialog button", "Cancel")
	p.visit("keys?key=h")
	p.click("#detail button", "Add …")
	p.fill("#d-field", "g")
	p.click("#dialog button", "Run")
	p.shows("#dialog .error", "HGET h g is now other")
	p.picture("conflict")
	p.click("#dialog button", "Cancel")
	p.click("#new-key", "New key")
	p.fill("#d-key", "s")
	p.fill("#d-type", "string")
	p.click("#dialog button", "Create")
	p.shows("#dialog .error", "EXISTS s is now 1")
	same(`b\n"`, "GET", "s")
	p.click("#dialog button", "Cancel")
	p.visit("keys?key=s")
	p.click("#detail button", "Rename …")
	p.fill("#d-to", "h")
	p.click("#dialog button", "Run")
	p.shows("#dialog .error", "A key with this name exists.")
	p.click("#dialog button", "Cancel")

	// An unknown escape is refused, and a key that changes is not deleted.
	p.srv.Must("SET", "esc", "\x00")
	p.dialog(edit{key: "esc", button: "Edit …", field: "#d-value"})
	p.picture("escapes")
	p.fill("#d-value", `\q`)
	p.shows("#dialog .error", "is not known")
	p.click("#dialog button", "Run")
	p.shows("#dialog .error", "is not known")
	p.click("#dialog button", "Cancel")
	same("\x00", "GET", "esc")
	p.click("#detail button", "Delete …")
	p.shows("#dialog", "1 bytes")
	p.srv.Must("APPEND", "esc", "x")
	p.click("#dialog button", "Delete")
	p.shows("#dialog .error", "STRLEN \"esc\" is now 2")
	p.click("#dialog button", "Cancel")
	p.srv.Must("SET", "huge", strings.Repeat("x", 200000))
	p.visit("keys?key=huge")
	p.click("#detail button", "Edit …")
	p.shows("#dialog", "Longer than 100,000 bytes")

	// JSON is shown with the numbers and names that it has.
	const source = `{"b":12345678901234567890,"1":1.0,"b":[1e400,-0,{}],"0":"\ud800 \" x","e":[]}`
	p.srv.Must("SET", "json", source)
	p.visit("keys?key=json")
	p.is(`document.querySelector('#detail pre')`)
	p.shows("#detail pre", `12345678901234567890`)
	if got := p.text("#detail pre"); strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(source), "") {
		t.Errorf("JSON is shown as %s", got)
	}
	p.picture("json")
	p.srv.Must("HSET", "hjson", "f", source+strings.Repeat(" ", 300))
	p.visit("keys?key=hjson")
	p.click("#detail button", "all")
	p.shows("#dialog pre", `12345678901234567890`)
	if got := p.text("#dialog pre"); strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(source), "") {
		t.Errorf("JSON is shown as %s", got)
	}
}
