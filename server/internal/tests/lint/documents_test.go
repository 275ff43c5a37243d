package lint

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestReadmeLength checks that README.md can be read in ten minutes.
func TestReadmeLength(t *testing.T) {
	b, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "\n"); n > 260 {
		t.Errorf("README.md has %d lines, at most 260 are allowed: move details to the document of their package", n)
	}
}

// TestLinks checks that the relative links in all Markdown files lead to files, and to
// headings that exist, and that every Markdown file is linked from another one.
func TestLinks(t *testing.T) {
	anchors, linked := map[string][]string{}, map[string]bool{"README.md": true}
	texts := map[string]string{}
	files(t, func(name string, content []byte) {
		if path.Ext(name) == ".md" && !strings.Contains(name, "node_modules/") {
			texts[name] = string(content)
			anchors[name] = anchorsOf(string(content))
		}
	})
	if len(texts) < 8 {
		t.Fatalf("found %d Markdown files, want at least 8", len(texts))
	}
	for name, text := range texts {
		for _, link := range linksOf(text) {
			if strings.Contains(link, "://") {
				continue
			}
			file, anchor, hasAnchor := strings.Cut(link, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
				if _, err := os.Stat(filepath.Join("../../../..", filepath.FromSlash(target))); err != nil || strings.HasPrefix(target, "..") {
					t.Errorf("%s: no file for the link %q", name, link)
					continue
				}
				linked[target] = true
			}
			if hasAnchor && !slices.Contains(anchors[target], anchor) {
				t.Errorf("%s: no heading for the link %q", name, link)
			}
		}
	}
	for name := range texts {
		if !linked[name] {
			t.Errorf("%s: no other document links to it", name)
		}
	}
}

// linksOf returns the targets of the links and images in a Markdown text.
func linksOf(text string) (links []string) {
	for _, m := range regexp.MustCompile(`\]\(([^()\s]+)\)`).FindAllStringSubmatch(proseOf(text), -1) {
		links = append(links, m[1])
	}
	return links
}

// proseOf returns a Markdown text without its code: fenced and indented blocks, and
// the contents of code spans.
func proseOf(text string) string {
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
	text = regexp.MustCompile("(?m)^    .*$").ReplaceAllString(text, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "``")
}

// anchorsOf returns the anchors of the headings in a Markdown text, as GitHub derives
// them: in lower case, spaces as hyphens, without other punctuation, and numbered if
// they repeat.
func anchorsOf(text string) (anchors []string) {
	text = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
	seen := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(text, -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(m[1]))
		if n := seen[anchor]; n > 0 {
			anchors = append(anchors, anchor+"-"+string(rune('0'+n)))
		} else {
			anchors = append(anchors, anchor)
		}
		seen[anchor]++
	}
	return anchors
}

func TestLinkRules(t *testing.T) {
	const text = "# The `a`'s file\n\nSee [x](y.md#z), ![p](p.svg) and `[n](o)`.\n\n    [n](o)\n\n```\n# no\n[n](o)\n```\n## Twice\n## Twice\n"
	if got, want := linksOf(text), []string{"y.md#z", "p.svg"}; !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
	if got, want := anchorsOf(text), []string{"the-as-file", "twice", "twice-1"}; !slices.Equal(got, want) {
		t.Errorf("anchors %q, want %q", got, want)
	}
}

// TestNamedTests checks that the commands "go test" in documents and comments choose tests
// that exist, and have flags that exist.
func TestNamedTests(t *testing.T) {
	var tests, flags []string
	commands := map[string]string{} // with the file of each
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)
	ownFlag := regexp.MustCompile(`flag\.\w+\("([\w.]+)"`)
	command := regexp.MustCompile("go test [^\n`\"#]*")
	files(t, func(name string, content []byte) {
		if strings.Contains(name, "node_modules/") || path.Ext(name) != ".go" && path.Ext(name) != ".md" {
			return
		}
		for _, m := range function.FindAllSubmatch(content, -1) {
			tests = append(tests, string(m[1]))
		}
		for _, m := range ownFlag.FindAllSubmatch(content, -1) {
			flags = append(flags, string(m[1]))
		}
		for _, m := range command.FindAll(content, -1) {
			commands[string(m)] = name
		}
	})
	flags = append(flags, strings.Fields("v run bench fuzz fuzztime benchtime benchmem count json timeout tags race short parallel cpu cpuprofile memprofile args list")...)
	chooses := regexp.MustCompile(`-(?:run|fuzz|bench)[ =](?:'([^']*)'|([^\s']+))`)
	option := regexp.MustCompile(`\s-(\w(?:[\w.]*\w)?)`)
	named := 0
	for line, name := range commands {
		line, _, _ = strings.Cut(line, " | ")
		for _, m := range chooses.FindAllStringSubmatch(line, -1) {
			top, _, _ := strings.Cut(m[1]+m[2], "/")
			pattern, err := regexp.Compile(top)
			if err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			} else if named++; top != "^$" && !slices.ContainsFunc(tests, pattern.MatchString) {
				t.Errorf("%s: %s: there is no such test", name, line)
			}
		}
		for _, m := range option.FindAllStringSubmatch(line, -1) {
			if !slices.Contains(flags, m[1]) {
				t.Errorf("%s: %s: there is no flag -%s", name, line, m[1])
			}
		}
	}
	if named < 10 {
		t.Errorf("found %d commands, want at least 10", named)
	}
}
