package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// README.md names all tools, and that of this directory lists them as the help does.
func TestToolsInReadme(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, list, _ := strings.Cut(shortHelp(), "\nTools:\n")
	list, _, found := strings.Cut(list, "\n\n")
	list = strings.ReplaceAll("\n"+list, "\n  ", "\n    zsetd ")
	if !found || !strings.Contains(read("README.md"), list+"\n") {
		t.Errorf("cmd/zsetd/README.md lacks this list of tools:\n%s", list)
	}
	_, named, _ := strings.Cut(read("../../README.md"), "The program has [tools]")
	named, _, _ = strings.Cut(named, "\n\n")
	for _, tool := range tools() {
		if !strings.Contains(named, "`"+tool.name+"`") {
			t.Errorf("README.md does not name the tool %s", tool.name)
		}
	}
}

// The documents name no tool that is not there: in their code, the word after zsetd is a
// tool, a parameter or a file.
func TestToolsInDocuments(t *testing.T) {
	code := regexp.MustCompile("(?ms)^```.*?^```|^    [^\n]*|`[^`]+`")
	called := regexp.MustCompile("^(?:`|    (?:[$] )?)zsetd ([a-z][a-z-]*)(?:[\\s`|,;]|$)")
	names := commandNames()
	seen := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules"}, d.Name()) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, block := range code.FindAllString(string(b), -1) { // a line or a span
			if m := called.FindStringSubmatch(block); m != nil {
				if seen++; !slices.Contains(names, m[1]) {
					t.Errorf("%s: %q: there is no tool %s", path, strings.TrimSpace(m[0]), m[1])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 30 {
		t.Errorf("found %d calls of tools, want at least 30", seen)
	}
}
