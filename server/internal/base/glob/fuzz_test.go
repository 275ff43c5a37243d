package glob_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/base/glob"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// naiveMatch is a reference implementation of glob matching, by backtracking.
func naiveMatch(p, s string, nocase bool) bool {
	fold := func(c byte) byte {
		if nocase && 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	if p == "" {
		return s == ""
	}
	if p[0] == '*' {
		return naiveMatch(p[1:], s, nocase) || s != "" && naiveMatch(p, s[1:], nocase)
	}
	if s == "" {
		return false
	}
	c := fold(s[0])
	one, rest := false, p[1:]
	switch {
	case p[0] == '?':
		one = true
	case p[0] == '\\' && len(p) > 1:
		one, rest = fold(p[1]) == c, p[2:]
	case p[0] == '[':
		not := strings.HasPrefix(rest, "^")
		rest = strings.TrimPrefix(rest, "^")
		for rest != "" && rest[0] != ']' {
			switch {
			case rest[0] == '\\' && len(rest) > 1:
				one, rest = one || fold(rest[1]) == c, rest[2:]
			case len(rest) > 2 && rest[1] == '-':
				lo, hi := int8(rest[0]), int8(rest[2])
				if lo > hi {
					lo, hi = hi, lo
				}
				one = one || int8(fold(byte(lo))) <= int8(c) && int8(c) <= int8(fold(byte(hi)))
				rest = rest[3:]
			default:
				one, rest = one || fold(rest[0]) == c, rest[1:]
			}
		}
		rest = strings.TrimPrefix(rest, "]")
		one = one != not
	default:
		one = fold(p[0]) == c
	}
	return one && naiveMatch(rest, s[1:], nocase)
}

// FuzzGlob compares both matchers with the reference for short patterns, and checks that
// no pair of pattern and text takes long.
func FuzzGlob(f *testing.F) {
	rerun.Skip(f)
	files, err := filepath.Glob("../../../testdata/*.resp")
	if err != nil || len(files) == 0 {
		f.Fatal("no transcripts: ", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^> .*(?:KEYS|MATCH|PSUBSCRIBE) (\S+)`).FindAllSubmatch(text, -1) {
			f.Add(string(m[1]), "hello world 1", false)
		}
	}
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	f.Add("*a*a*a*a*a*a*b*", strings.Repeat("a", 64), false)
	f.Add(`a\*[^a-c\]x-]?*`, "a*Zqq", true)
	f.Add("[z-a]*[\x80-\x7f][", "\xffb\x00", true)
	f.Add("*"+strings.Repeat("[ab]?", 200)+"c", strings.Repeat("ab", 900), false)
	f.Fuzz(func(t *testing.T, pattern, s string, nocase bool) {
		p, b := []byte(pattern), []byte(s)
		start := time.Now()
		got := glob.Match(p, b, nocase)
		compiled := len(p) == 0
		if len(b) > 0 { // as it is done for long patterns
			compiled = glob.CompileGlob(p, nocase).Match(b)
		}
		if took := time.Since(start); took > 5*time.Second && fuzzing {
			t.Fatalf("%d bytes of pattern, %d of text: %v", len(p), len(b), took)
		}
		if got != compiled {
			t.Fatalf("%.300q matches %.300q: %v, compiled %v", pattern, s, got, compiled)
		}
		if len(s) > 12 || strings.Count(pattern, "*") > 6 {
			return
		}
		want := naiveMatch(pattern, s, nocase)
		if s == "" {
			want = pattern == "" // not even a star
		}
		if got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, s, got, want)
		}
	})
}

// hostilePatterns returns patterns that are slow for backtracking, with their texts.
func hostilePatterns() map[string][2]string {
	r := strings.Repeat
	return map[string][2]string{
		"stars":                {"*a*a*a*a*a*a*b*", r("a", 64)},
		"many stars":           {r("*a", 500) + "*b", r("a", 1000)},
		"unclosed":             {r("*?[a-", 13_000), r("a", 64)},
		"any":                  {r("*?", 32_000) + "b", r("a", 64<<10)},
		"set":                  {"*[" + r("b", 64_000) + "]c", r("a", 64)},
		"half of it":           {"*" + r("a", 32<<10) + "b", r("a", 64<<10)},
		"half of it, and more": {"*" + r("a", 32<<10) + "b*", r("a", 64<<10)},
		"sets":                 {"*" + r("[ab]", 16<<10) + "b*", r("a", 64<<10)},
		"sets and stars":       {r("*"+r("[ab]", 50)+"[^a]", 300) + "*", r("a", 64<<10)},
		"a megabyte":           {"*" + r("a?", 256<<10) + "b*", r("a", 1<<20)},
	}
}

// TestHostilePatterns matches patterns for which a backtracking matcher would take minutes.
func TestHostilePatterns(t *testing.T) {
	rerun.Skip(t)
	for name, c := range hostilePatterns() {
		start := time.Now()
		if glob.Match([]byte(c[0]), []byte(c[1]), false) && name != "unclosed" {
			t.Errorf("%s: matches", name)
		}
		t.Logf("%s: %v", name, time.Since(start))
	}
}
