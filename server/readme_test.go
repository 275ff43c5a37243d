package server

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/config"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/rerun"
)

// TestReadme checks that the tables in README.md are those of the code.
func TestReadme(t *testing.T) {
	rerun.Skip(t) // with the other transport a default differs
	const path = "README.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(b)
	for name, text := range map[string]string{"commands": commandTable(), "parameters": parameterTable()} {
		want = replaceSection(t, want, name, text)
	}
	if want == string(b) {
		return
	}
	// The flag is that of the transcripts, in the other test package.
	if f := flag.Lookup("rewrite"); f == nil || f.Value.String() != "true" {
		t.Fatal("the tables in server/README.md are not up to date: go test ./server -run TestReadme -rewrite")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaceSection replaces the text between <!-- name --> and <!-- end of name -->.
func replaceSection(t *testing.T, doc, name, text string) string {
	t.Helper()
	start, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	i := strings.Index(doc, start)
	if i < 0 {
		t.Fatalf("server/README.md has no line %q", start)
	}
	i += len(start)
	j := i
	if k := strings.Index(doc, end); k >= 0 {
		j = k + len(end)
	}
	return doc[:i] + "\n" + text + "\n" + end + doc[j:]
}

func commandTable() string {
	names := map[string][]string{}
	var groups []string
	for _, c := range engine.NewTable(families()).Rows {
		if names[c.Group] == nil {
			groups = append(groups, c.Group)
		}
		name := strings.ToUpper(c.Name)
		if len(c.Subcommands) > 0 {
			var subs []string
			for _, s := range c.Subcommands {
				subs = append(subs, strings.ToUpper(s.Name[len(c.Name)+1:]))
			}
			slices.Sort(subs)
			name += " (" + strings.Join(subs, ", ") + ")"
		}
		names[c.Group] = append(names[c.Group], name)
	}
	var b strings.Builder
	b.WriteString("| group | commands |\n|---|---|\n")
	for _, g := range groups {
		slices.Sort(names[g])
		fmt.Fprintf(&b, "| %s | %s |\n", g, strings.Join(names[g], " · "))
	}
	return b.String()
}

func parameterTable() string {
	var works, refused strings.Builder
	var reasons []string // why parameters have no effect, in order of appearance
	kept := map[string][]string{}
	works.WriteString("| parameter | default | at run time | meaning |\n|---|---|---|---|\n")
	for _, p := range config.Parameters() {
		change := "yes"
		if p.Fixed {
			change = "no"
		}
		name := "`" + p.Name + "`"
		if p.Alias != "" {
			name += ", `" + p.Alias + "`"
		}
		initial := ""
		if p.Initial != "" {
			initial = "`" + p.Initial + "`"
		}
		switch {
		case p.Refused:
			fmt.Fprintf(&refused, "| %s | %s |\n", name, p.Doc)
		case p.Kept:
			if kept[p.Doc] == nil {
				reasons = append(reasons, p.Doc)
			}
			line := "`" + strings.TrimSpace(p.Name+" "+p.Initial) + "`"
			if p.Alias != "" {
				line += " (`" + p.Alias + "`)"
			}
			kept[p.Doc] = append(kept[p.Doc], line)
		default:
			fmt.Fprintf(&works, "| %s | %s | %s | %s |\n", name, initial, change, p.Doc)
		}
	}
	var ignored strings.Builder
	for _, reason := range reasons {
		fmt.Fprintf(&ignored, "| %s | %s |\n", reason, strings.Join(kept[reason], ", "))
	}
	return works.String() + "\nThese accept one value only, because the server does not have what other values request:\n\n" +
		"| parameter | value |\n|---|---|\n" + refused.String() +
		"\nThese are accepted, validated and returned by CONFIG GET as in Redis, and have **no effect**, so that a redis.conf works unchanged. " +
		"Each is listed with its default:\n\n| reason | parameters |\n|---|---|\n" + ignored.String()
}
