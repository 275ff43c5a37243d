package server

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The tables in the README are the command table and the parameter table.
func TestReadme(t *testing.T) {
	const path = "../README.md"
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
		t.Fatal("the tables in README.md are not up to date: go test ./server -run TestReadme -rewrite")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaceSection puts text between <!-- name --> and the next heading, or the
// next such line.
func replaceSection(t *testing.T, doc, name, text string) string {
	t.Helper()
	start, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	i := strings.Index(doc, start)
	if i < 0 {
		t.Fatalf("README.md has no line %q", start)
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
	for _, c := range newTable().rows {
		if names[c.Group] == nil {
			groups = append(groups, c.Group)
		}
		name := strings.ToUpper(c.Name)
		if len(c.subcommands) > 0 {
			var subs []string
			for _, s := range c.subcommands {
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
	var works, refused, kept strings.Builder
	works.WriteString("| parameter | default | at run time | meaning |\n|---|---|---|---|\n")
	for _, p := range parameters() {
		change := "yes"
		if p.fixed {
			change = "no"
		}
		name := "`" + p.name + "`"
		if p.alias != "" {
			name += ", `" + p.alias + "`"
		}
		initial := ""
		if p.initial != "" {
			initial = "`" + p.initial + "`"
		}
		switch {
		case p.refused:
			fmt.Fprintf(&refused, "| %s | %s |\n", name, p.doc)
		case p.kept:
			fmt.Fprintf(&kept, "| %s | %s | %s |\n", name, initial, p.doc)
		default:
			fmt.Fprintf(&works, "| %s | %s | %s | %s |\n", name, initial, change, p.doc)
		}
	}
	return works.String() + "\nThese take one value only, for what another one asks for would not be done:\n\n" +
		"| parameter | takes |\n|---|---|\n" + refused.String() +
		"\nThese are accepted, checked and reported as Redis does, and **without effect**, so that a redis.conf need not be changed:\n\n" +
		"| parameter | default | why |\n|---|---|---|\n" + kept.String()
}
