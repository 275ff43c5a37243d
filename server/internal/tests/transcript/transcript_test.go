package transcript_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/tests/transcript"
)

func Example() {
	f, err := transcript.Parse("example", `# A queue.

--- the head is taken first
> RPUSH q a "b c"
:2
2> BLPOP q 0
*["q" "a"]
`)
	if err != nil {
		panic(err)
	}
	for _, it := range f.Sections[1].Items {
		for _, reply := range it.Replies {
			fmt.Printf("client %d sends %q, receives %q\n", it.Client, it.Command, reply)
		}
	}
	// Output:
	// client 1 sends ["RPUSH" "q" "a" "b c"], receives ":2\r\n"
	// client 2 sends ["BLPOP" "q" "0"], receives "*2\r\n$1\r\nq\r\n$1\r\na\r\n"
}

func ExampleNotation() {
	text, err := transcript.Notation("*3\r\n$3\r\na\r\n\r\n:1\r\n$-1\r\n")
	fmt.Println(text, err)
	// Output: *["a\r\n" :1 null] <nil>
}

// replies are texts as Notation writes them, and what they encode.
func replies() map[string]string {
	return map[string]string{
		"+OK":                         "+OK\r\n",
		"+":                           "+\r\n",
		"-ERR a 'b' [c]\\x20":         "-ERR a 'b' [c] \r\n",
		`+"a\\b"`:                     "+\"a\\b\"\r\n",
		":-1":                         ":-1\r\n",
		"(123":                        "(123\r\n",
		",1.5":                        ",1.5\r\n",
		"#t":                          "#t\r\n",
		"_":                           "_\r\n",
		`""`:                          "$0\r\n\r\n",
		`"a\" \\\r\n\t\x00\xff "`:     "$10\r\na\" \\\r\n\t\x00\xff \r\n",
		`="txt:a b"`:                  "=7\r\ntxt:a b\r\n",
		`!"ERR a"`:                    "!5\r\nERR a\r\n",
		"null":                        "$-1\r\n",
		"*null":                       "*-1\r\n",
		"*[]":                         "*0\r\n",
		`*[+OK +"a b" -"" _ #f ,inf]`: "*6\r\n+OK\r\n+a b\r\n-\r\n_\r\n#f\r\n,inf\r\n",
		`*["a" *[:1 null] *null]`:     "*3\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n*-1\r\n",
		`~["a"]`:                      "~1\r\n$1\r\na\r\n",
		`>["message" "a" "b"]`:        ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
		`%{"a" :1 "b" *[]}`:           "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*0\r\n",
		`|{"ttl" :1} +"x"`:            "|1\r\n$3\r\nttl\r\n:1\r\n+x\r\n",
		`*[|{} _ :1]`:                 "*2\r\n|0\r\n_\r\n:1\r\n",
	}
}

func TestReplies(t *testing.T) {
	for text, encoded := range replies() {
		text := strings.Replace(text, `} +"x"`, `} +x`, 1)
		if got, err := transcript.Notation(encoded); got != text || err != nil {
			t.Errorf("Notation(%q) is %s, not %s (%v)", encoded, got, text, err)
		}
		if got, n, err := transcript.ParseReply([]string{text, "> NEXT"}); got != encoded || n != 1 || err != nil {
			t.Errorf("ParseReply(%s) is %q, not %q (%d lines, %v)", text, got, encoded, n, err)
		}
		if got, err := transcript.ReadReply(bufio.NewReader(strings.NewReader(encoded+"+next\r\n")), nil); string(got) != encoded || err != nil {
			t.Errorf("ReadReply(%q) is %q (%v)", encoded, got, err)
		}
	}
}

// TestBroken verifies where a long reply is broken.
func TestBroken(t *testing.T) {
	x := strings.Repeat("x", 50)
	text := `*[
  "` + x + `" "` + x + `"
  "` + x + `" *["a" :1]
  *["b" :2]
  %{
    "key" *["` + x + `"]
    "` + x + `" *[
      "` + x + `" "` + x + `"
    ]
  }
]`
	encoded, n, err := transcript.ParseReply(append(strings.Split(text, "\n"), ":1"))
	if err != nil || n != strings.Count(text, "\n")+1 {
		t.Fatal(n, err)
	}
	if got, err := transcript.Notation(encoded); got != text || err != nil {
		t.Errorf("written as\n%s\nnot\n%s\n(%v)", got, text, err)
	}
}

func TestWrongReplies(t *testing.T) {
	for _, text := range []string{
		"", "x", "$3", `$"a"`, "nullx", `"a`, `"a" `, `"a" "b"`, `"\q"`, `"\x1"`, `+a\r`, "_x", "#x", "|null", "*[", "*[:1", `*[+a"b"]`, "*[:1]x",
		`*["a""b"]`, "*{}", "%[]", `%{"a"}`, `|{"a" :1}`, "=a", "!null]", "*[x]", "*[null", strings.Repeat("*[", 500) + strings.Repeat("]", 500),
	} {
		if got, _, err := transcript.ParseReply([]string{text}); err == nil {
			t.Errorf("%s is read as %q", text, got)
		}
	}
	for _, encoded := range []string{
		"", "+OK", "x\r\n", "$01\r\na\r\n", "$+1\r\na\r\n", "$-2\r\n", "$2\r\na\r\n", "*2\r\n:1\r\n", "|-1\r\n", ":1\r\n:2\r\n", "+a\nb\r\n", "_x\r\n",
		"%4611686018427387904\r\n", strings.Repeat("*1\r\n", 500) + ":1\r\n",
	} {
		if got, err := transcript.Notation(encoded); err == nil {
			t.Errorf("%q is written as %s", encoded, got)
		}
	}
}

// FuzzNotation verifies that the text of a reply encodes it, whatever the reply is, and that a text
// that can be read is written so that it is read as the same reply.
func FuzzNotation(f *testing.F) {
	for text, encoded := range replies() {
		f.Add(text)
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if text, err := transcript.Notation(s); err == nil {
			again(t, text, s)
		}
		if encoded, _, err := transcript.ParseReply(strings.Split(s, "\n")); err == nil {
			text, err := transcript.Notation(encoded)
			if err != nil {
				t.Fatalf("%q is read as %q, but not written: %v", s, encoded, err)
			}
			again(t, text, encoded)
		}
	})
}

func again(t *testing.T, text, encoded string) {
	lines := strings.Split(text, "\n")
	if got, n, err := transcript.ParseReply(lines); got != encoded || n != len(lines) || err != nil {
		t.Fatalf("%q is written as %q, and read as %q (%d lines, %v)", encoded, text, got, n, err)
	}
}

// TestFiles verifies that every transcript is written as it stands in its file, and that each
// reply in it is the only one with its text.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/*.resp")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d transcripts: %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := transcript.Parse(filepath.Base(name), string(text))
		if err != nil {
			t.Error(err)
			continue
		}
		got, want := strings.Split(f.String(), "\n"), strings.Split(string(text), "\n")
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Errorf("%s:%d: %s\nis written as\n%s", name, i+1, want[i], got[i])
				break
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s has %d lines, and is written in %d", name, len(want), len(got))
		}
		for _, s := range f.Sections {
			for _, it := range s.Items {
				for _, r := range it.Replies {
					if r != transcript.Closed {
						again(t, strings.Join(transcript.Lines(r), "\n"), r)
					}
				}
			}
		}
	}
}

func TestParse(t *testing.T) {
	f, err := transcript.Parse("x", `# all

@noreload
--- one @zsetd
@nomulti
@advance 1500ms
@unordered 2
> HGETALL h
*["a"
"b"]
-ERR
(closed)
@raw
3> a\r\n
@near 7
@any
2> TTL "a \x00"
2< >["x"]
# end
`)
	if err != nil {
		t.Fatal(err)
	}
	type marks = map[string]bool
	want := []*transcript.Section{
		{Marks: marks{"noreload": true}, Items: []*transcript.Item{{Text: []string{"# all", "", "@noreload"}, Group: 1}}},
		{Title: "one", Marks: marks{"noreload": true, "zsetd": true, "nomulti": true}, Items: []*transcript.Item{
			{Text: []string{"--- one @zsetd"}},
			{Line: 6, Text: []string{"@nomulti", "@advance 1500ms"}, Advance: 1500 * time.Millisecond, Group: 1},
			{Line: 8, Text: []string{"@unordered 2", "> HGETALL h"}, Client: 1, Command: []string{"HGETALL", "h"}, Unordered: true, Group: 2,
				Replies: []string{"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "-ERR\r\n", transcript.Closed}},
			{Line: 14, Text: []string{"@raw", `3> a\r\n`}, Client: 3, Command: []string{"@raw"}, Raw: "a\r\n", Group: 1},
			{Line: 17, Text: []string{"@near 7", "@any", `2> TTL "a \x00"`}, Client: 2, Command: []string{"TTL", "a \x00"}, Any: true, Near: 7, Group: 1},
			{Line: 18, Text: []string{"2<"}, Client: 2, Replies: []string{">1\r\n$1\r\nx\r\n"}, Group: 1},
			{Text: []string{"# end"}, Group: 1},
		}},
	}
	if !reflect.DeepEqual(f.Sections, want) {
		for i, s := range f.Sections {
			t.Errorf("section %d: %q %v", i, s.Title, s.Marks)
			for _, it := range s.Items {
				t.Errorf("%+v", it)
			}
		}
	}
}

func TestWrongFiles(t *testing.T) {
	for text, want := range map[string]string{
		"> GET k\n*[:1\n":          `x:2: a bracket is not closed`,
		"> GET k\n$1\na\n":         `x:2: "$1" begins no reply`,
		"GET k":                    `x:1: "GET k" is no command, directive or comment, and no reply can stand here`,
		"0> GET k":                 `x:1: "0> GET k" is no command, directive or comment, and no reply can stand here`,
		"\n+OK":                    `x:2: "+OK" is no command, directive or comment, and no reply can stand here`,
		"2<\n:1":                   `x:1: a reply is missing`,
		">":                        `x:1: a command is missing`,
		`> GET "`:                  `x:1: the quotes in "GET \"" are not balanced`,
		"@some\n> GET k\n":         `x:1: @some: unknown directive`,
		"@advance soon\n> GET k\n": `x:1: @advance soon: time: invalid duration "soon"`,
	} {
		if _, err := transcript.Parse("x", text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, not %s", text, err, want)
		}
	}
}

func TestMatches(t *testing.T) {
	const ab, ba = "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\nb\r\n$1\r\na\r\n"
	for _, c := range []struct {
		it                              transcript.Item
		got, want                       string
		matches, meaning, matchesServer bool
	}{
		{transcript.Item{}, ab, ab, true, true, true},
		{transcript.Item{}, ab, ba, false, false, false},
		{transcript.Item{Unordered: true, Group: 1}, ab, ba, true, true, true},
		{transcript.Item{Unordered: true, Group: 2}, ab, ba, false, true, false},
		{transcript.Item{}, "%1\r\n$1\r\na\r\n$1\r\nb\r\n", ab, false, true, false},
		{transcript.Item{}, "_\r\n", "$-1\r\n", false, true, false},
		{transcript.Item{}, ",1.5\r\n", "$3\r\n1.5\r\n", false, true, false},
		{transcript.Item{}, ":1\r\n", ":2\r\n", false, false, false},
		{transcript.Item{Near: 1}, ":1\r\n", ":2\r\n", true, true, true},
		{transcript.Item{Near: 1}, "*1\r\n:1\r\n", "*1\r\n:3\r\n", false, false, false},
		{transcript.Item{Any: true}, ":1\r\n", "-ERR\r\n", true, true, false},
		{transcript.Item{Any: true}, ":1\r\n", ":2\r\n", true, true, true},
		{transcript.Item{Zsetd: true}, ":1\r\n", "-ERR\r\n", false, false, true},
		{transcript.Item{}, transcript.Closed, "+OK\r\n", false, false, false},
	} {
		if got := c.it.Matches(c.got, c.want, false); got != c.matches {
			t.Errorf("%+v: %q and %q match: %v", c.it, c.got, c.want, got)
		}
		if got := c.it.Matches(c.got, c.want, true); got != c.meaning {
			t.Errorf("%+v: %q and %q mean the same: %v", c.it, c.got, c.want, got)
		}
		if got := c.it.MatchesServer(c.got, c.want); got != c.matchesServer {
			t.Errorf("%+v: %q and %q match as servers: %v", c.it, c.got, c.want, got)
		}
	}
}
