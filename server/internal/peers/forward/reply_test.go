package forward

import (
	"bufio"
	"strings"
	"testing"
)

// TestAppendReply checks that replies keep their bytes and their extent, and that
// malformed and too large ones are errors.
func TestAppendReply(t *testing.T) {
	for _, reply := range []string{
		"+OK\r\n", "-ERR x\r\n", ":1\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "$0\r\n\r\n", "$5\r\na\r\nb:\r\n", "*0\r\n",
		"*2\r\n*1\r\n:1\r\n$1\r\nx\r\n", "%1\r\n+k\r\n*1\r\n#t\r\n", "~2\r\n,1.5\r\n(123\r\n", "!3\r\nERR\r\n", "=5\r\ntxt:a\r\n",
		"|1\r\n+a\r\n+b\r\n:7\r\n", "+" + strings.Repeat("x", 100_000) + "\r\n", "$100000\r\n" + strings.Repeat("y", 100_000) + "\r\n",
	} {
		r := bufio.NewReader(strings.NewReader(reply + "+next\r\n"))
		got, err := appendReply([]byte("before"), r, 0)
		if err != nil || string(got) != "before"+reply {
			t.Errorf("%.40q became %.40q, %v", reply, got, err)
		}
		if got, err = appendReply(nil, r, 0); err != nil || string(got) != "+next\r\n" {
			t.Errorf("after %.40q: %.40q, %v", reply, got, err)
		}
		if len(reply) > 1 {
			if _, err := appendReply(nil, bufio.NewReader(strings.NewReader(reply[:len(reply)-1])), 0); err == nil {
				t.Errorf("%.40q without its end is accepted", reply)
			}
		}
	}
	for _, bad := range []string{"?\r\n", "$x\r\n", "*-2\r\n", "\r\n", "+a\n", "$9999999999999999999\r\n", "*2\r\n+a\r\n?\r\n"} {
		if got, err := appendReply(nil, bufio.NewReader(strings.NewReader(bad)), 0); err == nil || len(got) > 0 {
			t.Errorf("%q is accepted: %q", bad, got)
		}
	}
	for _, large := range []string{"$1001\r\n" + strings.Repeat("x", 1001) + "\r\n", "*500\r\n" + strings.Repeat(":1\r\n", 500), "$1001\r\n"} {
		if _, err := appendReply(nil, bufio.NewReader(strings.NewReader(large)), 1000); err != errTooLarge {
			t.Errorf("%.20q...: %v", large, err)
		}
	}
	push := bufio.NewReader(strings.NewReader(">2\r\n+invalidate\r\n*0\r\n:1\r\n"))
	if got, err := appendReply(nil, push, 0); err != nil || string(got) != ":1\r\n" {
		t.Errorf("a message before the reply: %q, %v", got, err)
	}
}

// TestRedirection checks what names another node.
func TestRedirection(t *testing.T) {
	for text, want := range map[string]redirection{
		"MOVED 3 10.0.0.1:7000": {"MOVED", 3, "10.0.0.1:7000"}, "ASK 16383 h:1": {"ASK", 16383, "h:1"}, "MOVED 3 :7": {"MOVED", 3, "node:7"},
		"MOVED 3 ?:7": {"MOVED", 3, "node:7"}, "MOVED 3 ::1:7": {"MOVED", 3, "[::1]:7"}, "TRYAGAIN Multiple keys": {kind: "TRYAGAIN"},
		"MOVED 16384 h:1": {}, "MOVED x h:1": {}, "MOVED": {}, "ERR": {}, "": {},
	} {
		got, ok := redirectionOf(text, "node:1")
		if got != want || ok != (want.kind != "") {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
	if got := errorText([]byte("!5\r\nERR x\r\n")); got != "ERR x" {
		t.Errorf("the text of a long error is %q", got)
	}
	if got := string(errorReply("a\r\nb")); got != "-a  b\r\n" {
		t.Errorf("an error of two lines becomes %q", got)
	}
}

// TestReplyLimits checks replies at the limits of their size, and what is said of those beyond.
func TestReplyLimits(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	for _, test := range []struct {
		reply string
		limit int
		want  string // the error
	}{
		{"$992\r\n" + text(992) + "\r\n", 1000, ""},
		{"$993\r\n" + text(993) + "\r\n", 1000, errTooLarge.Error()},
		{"$1000\r\n", 1000, "EOF"},
		{"$1001\r\n", 1000, errTooLarge.Error()},
		{"*1\r\n+" + text(993) + "\r\n", 1000, ""},
		{"*1\r\n+" + text(994) + "\r\n", 1000, errTooLarge.Error()},
		{"*1\r\n!1001\r\n", 1000, errTooLarge.Error()},
		{"$1099511627776\r\n", 0, "EOF"}, // no memory is taken before the bytes are there
		{"$1099511627777\r\n", 0, `malformed reply: "$1099511627777"`},
		{"*-1\r\n", 0, ""},
		{"%-1\r\n", 0, ""},
		{"*-2\r\n", 0, `malformed reply: "*-2"`},
		{"?" + text(60) + "\r\n", 0, `malformed reply: "?` + text(39) + `"`},
		{"\r\n", 0, "malformed reply: an empty line"},
		{"+x\n", 0, "malformed reply: a line without its end"},
		{"\n", 0, "malformed reply: a line without its end"},
		{"+" + text(maxLine-3) + "\r\n", 0, ""},
		{"+" + text(maxLine-2) + "\r\n", 0, "bufio: buffer full"},
		{"$200000\r\n" + text(200_000) + "\r\n", 0, ""}, // in pieces
	} {
		got, err := appendReply([]byte("before"), bufio.NewReader(strings.NewReader(test.reply)), test.limit)
		want := "before"
		if test.want == "" {
			want += test.reply
		}
		said := ""
		if err != nil {
			said = err.Error()
		}
		if said != test.want || string(got) != want {
			t.Errorf("%.40q of %d bytes: %.40q, %q, not %q", test.reply, len(test.reply), got, said, test.want)
		}
	}
	for reply, want := range map[string]string{"": "", "-": "", "-\r\n": "", "-E\r\n": "E", "-ERR x\r\n": "ERR x", "+OK\r\n": "", "!1\r\nE\r\n": "E", "$5\r\nERR x\r\n": ""} {
		if got := errorText([]byte(reply)); got != want {
			t.Errorf("the error in %q is %q", reply, got)
		}
	}
	if got := string(nullArray(2)) + string(nullArray(3)); got != "*-1\r\n_\r\n" {
		t.Errorf("null: %q", got)
	}
	for text, want := range map[string]bool{"MOVED 0 h:1": true, "ASK 0 h:1": true, "ASK 16383 h:1": true, "ASK 16384 h:1": false, "ASK -1 h:1": false, "ASK 1 h:1 x": false, "moved 1 h:1": false} {
		if got, ok := redirectionOf(text, "node:1"); ok != want {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
}
