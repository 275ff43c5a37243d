package prompt

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

// known returns the commands of the table, and those of COMMAND DOCS in both versions of the
// protocol.
func known(t *testing.T) map[string]commands {
	t.Helper()
	all := map[string]commands{"table": tableCommands(server.Commands())}
	host, port, _ := strings.Cut(servertest.Run(t).Addr(), ":")
	for name, resp3 := range map[string]bool{"RESP2": false, "RESP3": true} {
		o := &client.Options{Host: host, Port: port, RESP3: resp3}
		c, err := client.Dial(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Login(o); err != nil {
			t.Fatal(err)
		}
		docs, err := c.Do("COMMAND", "DOCS")
		if err != nil {
			t.Fatal(err)
		}
		all[name] = serverCommands(&docs)
	}
	return all
}

func TestHints(t *testing.T) {
	all := known(t)
	for line, want := range map[string]string{
		"":                        "",
		"nosuch ":                 "",
		"config ":                 "",
		"ping":                    " [message]",
		"get":                     " key",
		"get ":                    "key",
		"get a":                   "",
		"get a ":                  "",
		"GET \"open":              "",
		"hset k ":                 "field value [field value ...]",
		"hset k f ":               "value [field value ...]",
		"hset k f v":              " [field value ...]",
		"hset k f v g ":           "value [field value ...]",
		"del a":                   " [key ...]",
		"zadd k nx ":              "[GT|LT] [CH] [INCR] score member [score member ...]",
		"zadd k 1 a":              " [score member ...]",
		"set a 1 ex ":             "seconds [NX|XX|IFEQ ifeq-value|IFNE ifne-value|IFDEQ ifdeq-digest|IFDNE ifdne-digest] [GET]",
		"set a 1 ex 5 nx ":        "[GET]",
		"config get":              " parameter [parameter ...]",
		"xadd s maxlen ~ 5 ":      "",
		"zrange z 0 -1 limit 0 ":  "",
		"lpos l e rank 1 ":        "[COUNT num-matches] [MAXLEN len]",
		"lpos l e count 1 rank 1": " [MAXLEN len]",
	} {
		for from, c := range all {
			got := c.hint(line)
			switch line {
			case "xadd s maxlen ~ 5 ":
				if !strings.Contains(got, "*|id field value [field value ...]") || strings.Contains(got, "MAXLEN") {
					t.Errorf("%s: hint after %q is %q", from, line, got)
				}
			case "zrange z 0 -1 limit 0 ":
				if !strings.HasPrefix(got, "count ") {
					t.Errorf("%s: hint after %q is %q", from, line, got)
				}
			default:
				if got != want {
					t.Errorf("%s: hint after %q is %q, want %q", from, line, got, want)
				}
			}
		}
	}
}

func TestComplete(t *testing.T) {
	for from, c := range known(t) {
		for line, want := range map[string]string{
			"zran": "dmember ge gebylex gebyscore gestore k", "ZRANGEB": "YLEX YSCORE", "nosuch": "", "get": "bit del ex range set",
			"config re": "setstat write", "CONFIG  RE": "SETSTAT WRITE", "help zrangeb": "ylex yscore", "help @sorted": "-set", "get a": "", "conn": "ect",
		} {
			if got := c.complete(line); !slices.Equal(got, strings.Fields(want)) {
				t.Errorf("%s: %q is completed by %q, want %s", from, line, got, want)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	for from, c := range known(t) {
		get := "\n  GET key\n  summary: " + c["get"].summary + "\n  since: 1.0.0\n  group: string\n\n"
		if got := c.help([]string{"Get"}, false); got != get {
			t.Errorf("%s: help is %q, want %q", from, got, get)
		}
		if got := c.help([]string{"config"}, true); !strings.Contains(got, "\x1b[1mCONFIG GET\x1b[0m \x1b[90mparameter") || !strings.Contains(got, "CONFIG SET") {
			t.Errorf("%s: %q", from, got)
		}
		if got := c.help([]string{"@geo"}, false); strings.Count(got, "group: geo") < 8 {
			t.Errorf("%s: %q", from, got)
		}
		if got := c.help(nil, false); got != generalHelp {
			t.Errorf("%s: %q", from, got)
		}
	}
}
