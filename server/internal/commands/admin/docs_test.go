package admin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/wiring"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// Tests of what the commands that Redis does not have say of themselves, and of the
// errors that go beyond Redis's.

// COMMAND DOCS has the version of zsetd, the group and the syntax of each of them.
func TestDocsOfOwnCommands(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	var own []string
	for _, c := range engine.NewTable(wiring.Families()).Rows {
		if c.Since != process.ExtensionVersion {
			continue
		}
		own = append(own, c.Name)
		reply, err := srv.Do(t.Context(), "COMMAND", "DOCS", c.Name)
		if err != nil {
			t.Fatal(err)
		}
		facts := map[string]any{}
		for _, pair := range reply.(protocol.Map)[0].Value.(protocol.Map) {
			facts[pair.Key.(string)] = pair.Value
		}
		if facts["since"] != process.ExtensionVersion || facts["group"] != "sorted-set" {
			t.Errorf("%s: since %v, group %v", c.Name, facts["since"], facts["group"])
		}
		for _, name := range []string{"summary", "complexity", "arguments"} {
			if facts[name] == nil || facts[name] == "" {
				t.Errorf("%s has no %s", c.Name, name)
			}
		}
	}
	want := strings.Fields("bzclaim bzpopbyscore zaddex zclaim zexpire zexpireat zexpiretime zpersist zpexpire zpexpireat zpexpiretime zpopbyscore zpttl zremifeq zttl")
	if slices.Sort(own); !slices.Equal(own, want) {
		t.Errorf("own commands: %v, want %v", own, want)
	}
}

// A call with too few arguments is answered with the syntax; of Redis's commands, as
// by Redis.
func TestSyntaxInErrors(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for line, want := range map[string]string{
		"ZEXPIRE due 10 a": "ERR wrong number of arguments for 'zexpire' command: ZEXPIRE key seconds [NX|XX|GT|LT] MEMBERS nummembers member [member ...]",
		"ZTTL due":         "ERR wrong number of arguments for 'zttl' command: ZTTL key MEMBERS nummembers member [member ...]",
		"ZADDEX z EX 1 NX MEMBERS": "ERR wrong number of arguments for 'zaddex' command: ZADDEX key [NX|XX] [GT|LT] [CH] [INCR] " +
			"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] [ENX] " +
			"[MAXLEN count [MIN|MAX] [REJECT]] score member | MEMBERS nummembers score member [score member ...]",
		"BZCLAIM 0 1 due":   "ERR wrong number of arguments for 'bzclaim' command: BZCLAIM timeout numkeys key [key ...] min max newscore [COUNT count] [LEASE]",
		"ZEXPIRE z 1 a b c": "ERR unknown argument: a",
		"HEXPIRE h 10 a":    "ERR wrong number of arguments for 'hexpire' command",
		"ZADD z 1":          "ERR wrong number of arguments for 'zadd' command",
	} {
		words := strings.Fields(line)
		args := make([]any, len(words))
		for i, w := range words {
			args[i] = w
		}
		if _, err := srv.Do(t.Context(), args...); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for _, c := range engine.NewTable(wiring.Families()).Rows {
		if s := protocol.PlainSyntax(c.Syntax); c.Since == process.ExtensionVersion && (strings.ContainsAny(s, ":()") || strings.Contains(s, "  ")) {
			t.Errorf("%s: %s", c.Name, s)
		}
	}
}

// A script sees one instant in all the places where a time may stand, and what is kept
// is the number.
func TestOneInstant(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.db")
	times := func(srv *enginetest.Server) string {
		reply, err := srv.Do(t.Context(), "EVAL", `
			local h = redis.call('HPEXPIRETIME', 'h', 'FIELDS', 1, 'f')[1]
			local m = redis.call('ZPEXPIRETIME', 'z', 'MEMBERS', 1, 'm')[1]
			return {redis.call('PEXPIRETIME', 's'), redis.call('PEXPIRETIME', 'e'), h, m, tonumber(redis.call('ZSCORE', 'z', 'm'))}`, 0)
		if err != nil {
			t.Fatal(err)
		}
		list := reply.([]any)
		for _, at := range list {
			if at != list[0] {
				t.Errorf("not one instant: %v", list)
			}
		}
		return fmt.Sprint(list)
	}
	srv, err := enginetest.New(engine.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if _, err := srv.Do(t.Context(), "EVAL", `
		redis.call('SET', 's', 'v', 'EXAT', '@now+1h')
		redis.call('SET', 'e', 'v')
		for i = 1, 1000000 do end
		redis.call('EXPIREAT', 'e', '@nowms+1h')
		redis.call('HSET', 'h', 'f', 'v')
		redis.call('HEXPIREAT', 'h', '@now+1h', 'FIELDS', 1, 'f')
		redis.call('ZADDEX', 'z', 'PXAT', '@now+1h', 'MEMBERS', 1, '@nowms+1h', 'm')`, 0); err != nil {
		t.Fatal(err)
	}
	before := times(srv)
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := enginetest.New(engine.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := times(again); after != before {
		t.Errorf("after a restart %s, before %s", after, before)
	}
}

// TestFunctionsOfOwnCommands checks that the rows whose commands servers other than zsetd have
// as functions are those that the library for them has, besides the function zpurge.
func TestFunctionsOfOwnCommands(t *testing.T) {
	source, err := os.ReadFile("../../../../cmd/zsetd/zsetd.lua")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)local names = \{(.*?)\}`).FindSubmatch(source)
	if list == nil {
		t.Fatal("zsetd.lua has no list of names")
	}
	want := []string{}
	for _, m := range regexp.MustCompile(`'(\w+)'`).FindAllSubmatch(list[1], -1) {
		if name := string(m[1]); name != "zpurge" {
			want = append(want, name)
		}
	}
	var got []string
	for _, c := range engine.NewTable(wiring.Families()).Rows {
		if !c.Function {
			continue
		}
		got = append(got, c.Name)
		if keys := c.Spec.Keys; !strings.HasPrefix(keys, "1 ") || c.Since != process.ExtensionVersion {
			t.Errorf("%s is no command of zsetd with one key: %q", c.Name, keys)
		}
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("the rows have the functions %v, the library has %v", got, want)
	}
}
