package server_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// TestParametersDocument checks that PARAMETERS.md has the tables of the code.
func TestParametersDocument(t *testing.T) {
	rerun.Skip(t) // with the other transport a default differs
	checkDocument(t, "PARAMETERS.md", "parameters", parameterTable())
}

// checkDocument checks that a document has this text between <!-- section --> and
// <!-- end of section -->, or writes it with the flag -rewrite.
func checkDocument(t *testing.T, path, section, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(b), "<!-- "+section+" -->\n")
	_, after, ended := strings.Cut(rest, "<!-- end of "+section+" -->\n")
	if !found || !ended {
		t.Fatalf("server/%s has no section %s", path, section)
	}
	want := before + "<!-- " + section + " -->\n\n" + text + "\n<!-- end of " + section + " -->\n" + after
	if want == string(b) {
		return
	}
	// The flag is that of the transcripts, in the other test package.
	if f := flag.Lookup("rewrite"); f == nil || f.Value.String() != "true" {
		t.Fatalf("server/%s differs from the code: go test ./server -run Document -rewrite", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
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
