package engine

import (
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
)

// TestForLog checks how the log shows the command that has panicked.
func TestForLog(t *testing.T) {
	for _, test := range []struct {
		name, line string
		secret     bool
		want       string
	}{
		{"", "", false, ""},
		{"get", "", false, ""},
		{"get", "get k", false, `GET "k"`},
		{"client|list", "client list a b", false, `CLIENT LIST "a" "b"`},
		{"auth", "auth word", true, "AUTH (redacted)"},
		{"del", "del" + strings.Repeat(" k", 31), false, "DEL" + strings.Repeat(` "k"`, 31)},
		{"del", "del" + strings.Repeat(" k", 33), false, "DEL" + strings.Repeat(` "k"`, 31) + " ... (2 more arguments)"},
		{"get", "get " + strings.Repeat("k", 128), false, `GET "` + strings.Repeat("k", 128) + `"`},
		{"get", "get " + strings.Repeat("k", 131) + " x", false, `GET "` + strings.Repeat("k", 128) + `"... (3 more bytes) "x"`},
	} {
		c := new(Call)
		if test.name != "" {
			c.Command = &Command{Facts: protocol.Facts{Name: test.name}, Secret: test.secret}
		}
		for word := range strings.FieldsSeq(test.line) {
			c.Argv = append(c.Argv, []byte(word))
		}
		if got := c.ForLog(); got != test.want {
			t.Errorf("%.40s: %s, want %s", test.line, got, test.want)
		}
	}
}
