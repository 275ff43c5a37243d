package server_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// TestRepliesDocument plays all transcripts in RESP3 and compares the types of the replies to each
// command with REPLIES.md. With -rewrite it writes them there.
func TestRepliesDocument(t *testing.T) {
	rerun.Skip(t)
	if *against != "" {
		t.Skip("the document has the replies of zsetd")
	}
	known := server.Commands()
	replies := map[string]shapes{}
	seen := func(command []string, encoded string) {
		name := strings.ToLower(command[0])
		if c := known[name]; c == nil {
			return
		} else if len(command) > 1 {
			for _, sub := range c.Subcommands() {
				if sub.Name == name+"|"+strings.ToLower(command[1]) {
					name = sub.Name
				}
			}
		}
		v, _, err := protocol.Decode([]byte(encoded))
		if err != nil || v == protocol.Status("QUEUED") {
			return
		}
		if replies[name] == nil {
			replies[name] = shapes{}
		}
		replies[name].add(v)
	}
	files, err := filepath.Glob("testdata/*.resp")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := transcript.Parse(filepath.Base(name), string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.Sections {
			if !s.Marks["noresp3"] && !s.Marks["noplain"] {
				runSectionSeen(t, f, s, "resp3", false, seen)
			}
		}
	}

	var rows strings.Builder
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(names(known))) {
		shown := strings.ToUpper(strings.ReplaceAll(name, "|", " "))
		if s := replies[name].String(); s != "" {
			fmt.Fprintf(&rows, "| %s | %s |\n", shown, s)
		} else if c := names(known)[name]; len(c.Subcommands()) == 0 {
			missing = append(missing, shown)
		}
	}
	const path = "REPLIES.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const line = "| command | replies |\n|---|---|\n"
	head, _, found := strings.Cut(string(b), line)
	want := head + line + rows.String() + "\nNo transcript has a reply to " + strings.Join(missing, ", ") + ".\n"
	switch {
	case !found:
		t.Fatalf("%s has no table", path)
	case want == string(b):
	case *rewrite:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has other types: go test ./server -run TestRepliesDocument -rewrite", path)
	}
}

// names returns commands and their subcommands by name.
func names(commands map[string]*protocol.Command) map[string]*protocol.Command {
	all := map[string]*protocol.Command{}
	for name, c := range commands {
		all[name] = c
		for _, sub := range c.Subcommands() {
			all[sub.Name] = sub
		}
	}
	return all
}

// shapes are the types that replies, or elements of replies, have had, each with those of its own
// elements: of maps, the keys and the values.
type shapes map[string][2]shapes

// add adds the type of a value. Errors have none: Do returns them apart.
func (s shapes) add(v any) {
	var name string
	var elements, values []any
	switch v := v.(type) {
	case protocol.ReplyError:
		return
	case nil:
		name = "nil"
	case []any:
		name, elements = "[]any", v
	case protocol.Set:
		name, elements = "protocol.Set", v
	case protocol.Push:
		name, elements = "protocol.Push", v
	case protocol.Map:
		name = "protocol.Map"
		for _, pair := range v {
			elements, values = append(elements, pair.Key), append(values, pair.Value)
		}
	default:
		name = fmt.Sprintf("%T", v)
	}
	of := s[name]
	for i, list := range [][]any{elements, values} {
		if of[i] == nil {
			of[i] = shapes{}
		}
		for _, e := range list {
			of[i].add(e)
		}
	}
	s[name] = of
}

// String returns the types as the document has them.
func (s shapes) String() string {
	order := []string{"string", "protocol.Status", "int64", "float64", "bool", "protocol.BigNumber", "[]any", "protocol.Set", "protocol.Map", "protocol.Push", "nil"}
	var list []string
	for _, name := range slices.SortedFunc(maps.Keys(s), func(a, b string) int { return cmp.Compare(slices.Index(order, a), slices.Index(order, b)) }) {
		text := name
		if of := s[name]; len(of[1]) > 0 {
			text += " of " + of[0].element() + " to " + of[1].element()
		} else if len(of[0]) > 0 {
			text += " of " + of[0].element()
		}
		list = append(list, strings.ReplaceAll(text, "protocol.", ""))
	}
	return strings.Join(list, " or ")
}

// element is String for what an element is.
func (s shapes) element() string {
	if len(s) > 1 {
		return "(" + s.String() + ")"
	}
	return s.String()
}
