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
