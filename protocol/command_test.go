package protocol

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func mustCompile(t testing.TB, f Facts, subcommands ...*Command) *Command {
	t.Helper()
	c, err := Compile(f, subcommands...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDerivedFacts compares the results of Compile with COMMAND INFO of Redis.
func TestDerivedFacts(t *testing.T) {
	check := func(f Facts, want string, subcommands ...*Command) {
		t.Helper()
		c := mustCompile(t, f, subcommands...)
		first, last, step := c.LegacyKeys()
		got := fmt.Sprintf("%v %d %d %d %v", c.Flags().Names(), first, last, step, c.Categories().Names())
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", f.Name, got, want)
		}
	}
	check(Facts{Name: "zadd", Arity: -4, Flags: "write denyoom fast", Keys: "1 RW update", Group: "sorted-set"},
		"[write denyoom fast] 1 1 1 [write sortedset fast]")
	check(Facts{Name: "bzpopmin", Arity: -3, Flags: "write blocking fast", Keys: "1..-2 RW access delete", Group: "sorted-set"},
		"[write blocking fast] 1 -2 1 [write sortedset fast blocking]")
	check(Facts{Name: "zunionstore", Arity: -4, Flags: "write denyoom", Keys: "1 OW update; 2# RO access", Group: "sorted-set"},
		"[write denyoom movablekeys] 1 1 1 [write sortedset slow]")
	check(Facts{Name: "zinter", Arity: -3, Flags: "readonly", Keys: "1# RO access", Group: "sorted-set"},
		"[readonly movablekeys] 0 0 0 [read sortedset slow]")
	check(Facts{Name: "mset", Arity: -3, Flags: "write denyoom", Keys: "1..-1/2 OW update", Group: "string"},
		"[write denyoom] 1 -1 2 [write string slow]")
	check(Facts{Name: "rename", Arity: 3, Flags: "write", Keys: "1 RW access delete; 2 OW update", Group: "generic"},
		"[write] 1 2 1 [keyspace write slow]")
	check(Facts{Name: "pfmerge", Arity: -2, Flags: "write denyoom", Keys: "1 RW access insert; 2..-1 RO access", Group: "hyperloglog"},
		"[write denyoom] 1 -1 1 [write hyperloglog slow]")
	check(Facts{Name: "lcs", Arity: -3, Flags: "readonly", Keys: "1..+1 RO access", Group: "string"},
		"[readonly] 1 2 1 [read string slow]")
	check(Facts{Name: "ssubscribe", Arity: -2, Flags: "pubsub noscript loading stale", Keys: "1..-1 not_key", Group: "pubsub"},
		"[pubsub noscript loading stale] 1 -1 1 [pubsub slow]")
	check(Facts{Name: "eval_ro", Arity: -3, Flags: "readonly noscript stale skip_monitor no_mandatory_keys", Keys: "2# RO access", Group: "scripting"},
		"[readonly noscript stale skip_monitor no_mandatory_keys movablekeys] 0 0 0 [slow scripting]")
	check(Facts{Name: "publish", Arity: 3, Flags: "pubsub loading stale fast may_replicate", Group: "pubsub"},
		"[pubsub loading stale fast] 0 0 0 [pubsub fast]")
	check(Facts{Name: "bgsave", Arity: -1, Flags: "admin noscript no_async_loading", Group: "server"},
		"[admin noscript no_async_loading] 0 0 0 [admin slow dangerous]")
	check(Facts{Name: "flushall", Arity: -1, Flags: "write", Group: "server", Categories: "keyspace dangerous"},
		"[write] 0 0 0 [keyspace write slow dangerous]")
	help := Facts{Name: "client|help", Arity: 2, Flags: "loading stale", Group: "connection"}
	check(help, "[loading stale] 0 0 0 [slow connection]")
	check(Facts{Name: "client", Arity: -2, Group: "connection"}, "[] 0 0 0 [slow]", mustCompile(t, help))
}

func TestCompileErrors(t *testing.T) {
	bad := func(f Facts, want string) {
		t.Helper()
		f.Name += "x"
		if f.Arity == 0 {
			f.Arity = 1
		}
		if _, err := Compile(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", f, err, want)
		}
	}
	bad(Facts{Name: "X"}, "bad name")
	bad(Facts{Flags: "write quick"}, `unknown word "quick"`)
	bad(Facts{Categories: "zset"}, `unknown word "zset"`)
	bad(Facts{Keys: "1 RX"}, `unknown word "RX"`)
	bad(Facts{Keys: "one RO"}, "invalid syntax")
	bad(Facts{Keys: "1..-1/0 RO"}, "bad step")
	bad(Facts{Keys: "1 RO (no end"}, "has no end")
	bad(Facts{Syntax: "[key"}, "has no end")
	if _, err := Compile(Facts{Name: "x"}); err == nil {
		t.Error("Compile accepts arity 0")
	}
}

func TestDocs(t *testing.T) {
	c := mustCompile(t, Facts{
		Name: "georadius", Arity: -6, Deprecated: "6.2.0", System: true,
		History: []string{"6.2.0 Added the `ANY` option for `COUNT`.", "7.0.0 Added support for uppercase unit names."},
		Tips:    "request_policy:all_shards response_policy:agg_sum",
	})
	if got := c.DocFlags(); !slices.Equal(got, []string{"deprecated", "syscmd"}) {
		t.Error(got)
	}
	if got := c.Tips(); !slices.Equal(got, []string{"request_policy:all_shards", "response_policy:agg_sum"}) {
		t.Error(got)
	}
	var got []string
	c.EachHistory(func(version, change string) { got = append(got, version+"|"+change) })
	if want := []string{"6.2.0|Added the `ANY` option for `COUNT`.", "7.0.0|Added support for uppercase unit names."}; !slices.Equal(got, want) {
		t.Error(got)
	}
}

// TestAppendKeysMatchesRedis compares AppendKeys with the keys that Redis found,
// recorded in testdata/getkeys.txt.
func TestAppendKeysMatchesRedis(t *testing.T) {
	data, err := os.ReadFile("testdata/getkeys.txt")
	if err != nil {
		t.Fatal(err)
	}
	var c *Command
	var refs []KeyRef
	lines := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if row, ok := strings.CutPrefix(line, "row "); ok {
			fields := strings.SplitN(row, ";", 4)
			arity, err := strconv.Atoi(strings.TrimSpace(fields[1]))
			if err != nil {
				t.Fatal(err)
			}
			c = mustCompile(t, Facts{
				Name: fields[0], Arity: arity, Flags: fields[2], Keys: strings.TrimSpace(fields[3]), KeysBy: finders()[fields[0]],
			})
			continue
		}
		lines++
		words, want, _ := strings.Cut(line, " =>")
		var argv [][]byte
		for word := range strings.FieldsSeq(words) {
			argv = append(argv, []byte(strings.ReplaceAll(word, `""`, "")))
		}
		got := ""
		switch refs = c.AppendKeys(refs[:0], argv); {
		case !c.HasKeys():
			got = " ! ERR The command has no key arguments"
		case !c.ArityOK(len(argv)):
			got = " ! ERR Invalid number of arguments specified for command"
		case len(refs) == 0 && !c.Flags().Has(NoMandatoryKeys):
			got = " ! ERR Invalid arguments specified for command"
		default:
			for _, ref := range refs {
				key := string(argv[ref.Index])
				if key == "" {
					key = `""`
				}
				got += " " + key + ":" + strings.Join(ref.Flags.Names(), ",")
			}
		}
		if got != want {
			t.Errorf("%s\n got%s\nwant%s", words, got, want)
		}
	}
	if lines < 90 {
		t.Errorf("only %d lines", lines)
	}
}

// finders are the rules of the commands that have one.
func finders() map[string]KeyFinder {
	return map[string]KeyFinder{
		"set": KeysOfSet, "bitfield": KeysOfBitfield, "sort": KeysOfSort, "sort_ro": KeysOfSort, "migrate": KeysOfMigrate,
		"xread": KeysOfStreams, "xreadgroup": KeysOfStreams, "georadius": KeysOfGeoradius, "georadiusbymember": KeysOfGeoradius,
	}
}

// TestAppendKeysShortCommands checks that AppendKeys stays within truncated
// commands.
func TestAppendKeysShortCommands(t *testing.T) {
	for _, f := range []Facts{
		{Name: "set", Keys: "1 RW variable_flags"}, {Name: "bitfield", Keys: "1 RW variable_flags"},
		{Name: "sort", Keys: "1 RO; ? OW"}, {Name: "migrate", Keys: "3 RW; KEYS@-2..-1 RW incomplete"},
		{Name: "xreadgroup", Keys: "STREAMS@4..-1%2 RO"}, {Name: "zunionstore", Keys: "1 OW; 2# RO"}, {Name: "del", Keys: "1..-1 RM"},
		{Name: "bzpopmin", Keys: "1..-2 RW"}, {Name: "georadius", Keys: "1 RO; STORE@6 OW; STOREDIST@6 OW"},
	} {
		f.Arity, f.KeysBy = -1, finders()[f.Name]
		c := mustCompile(t, f)
		words := []string{"x", "STREAMS", "KEYS", "2", "9", "", "GROUP", "STORE"}
		for n := range 10 {
			for shift := range words {
				argv := [][]byte{[]byte(f.Name)}
				for i := range n {
					argv = append(argv, []byte(words[(i*3+shift)%len(words)]))
				}
				for _, ref := range c.AppendKeys(nil, argv) {
					if ref.Index < 1 || ref.Index >= len(argv) {
						t.Fatalf("%q: key %d", argv, ref.Index)
					}
				}
			}
		}
	}
}

func TestAppendKeysDoesNotAllocate(t *testing.T) {
	for _, line := range []struct {
		facts Facts
		argv  string
	}{
		{Facts{Name: "zadd", Arity: -4, Keys: "1 RW update"}, "zadd k 1 m"},
		{Facts{Name: "zunionstore", Arity: -4, Keys: "1 OW; 2# RO"}, "zunionstore d 2 a b"},
		{Facts{Name: "xread", Arity: -4, Keys: "STREAMS@1..-1%2 RO"}, "xread streams a b 1 2"},
		{Facts{Name: "set", Arity: -3, Keys: "1 RW variable_flags"}, "set k v get"},
	} {
		line.facts.KeysBy = finders()[line.facts.Name]
		c := mustCompile(t, line.facts)
		var argv [][]byte
		for word := range strings.FieldsSeq(line.argv) {
			argv = append(argv, []byte(word))
		}
		refs := make([]KeyRef, 0, 8)
		if n := testing.AllocsPerRun(100, func() { refs = c.AppendKeys(refs[:0], argv) }); n != 0 {
			t.Errorf("%s: %v allocations", line.argv, n)
		}
	}
}

func BenchmarkAppendKeys(b *testing.B) {
	c := mustCompile(b, Facts{Name: "zadd", Arity: -4, Keys: "1 RW update"})
	argv := [][]byte{[]byte("zadd"), []byte("k"), []byte("1"), []byte("m")}
	refs := make([]KeyRef, 0, 1)
	for b.Loop() {
		refs = c.AppendKeys(refs[:0], argv)
	}
}
