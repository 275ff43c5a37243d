package protocol

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestSyntaxMatchesRedis compares the trees of ParseSyntax and the hints of Usage
// with recorded ones.
func TestSyntaxMatchesRedis(t *testing.T) {
	data, err := os.ReadFile("testdata/syntax.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for block := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		lines := strings.Split(block, "\n")
		if strings.HasPrefix(lines[0], "#") {
			continue
		}
		if len(lines) != 4 {
			t.Fatalf("%q: %d lines", lines[0], len(lines))
		}
		cases++
		name, specs, _ := strings.Cut(lines[0], " ")
		n, err := strconv.Atoi(specs)
		if err != nil {
			t.Fatal(err)
		}
		args, err := ParseSyntax(lines[1], n)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := Usage(args); got != lines[2] {
			t.Errorf("%s: usage\n got %s\nwant %s", name, got, lines[2])
		}
		if got := tree(args); got != lines[3] {
			t.Errorf("%s: tree\n got %s\nwant %s", name, got, lines[3])
		}
	}
	if cases < 30 {
		t.Errorf("only %d cases", cases)
	}
}

// tree formats arguments in the format of testdata/syntax.txt.
func tree(args []Argument) string {
	var parts []string
	for _, a := range args {
		s := a.Name + ":" + a.Type
		if a.HasToken() {
			s += "=" + strconv.Quote(a.Token)
		}
		if a.KeySpec >= 0 {
			s += "#" + strconv.Itoa(a.KeySpec)
		}
		if a.Since != "" {
			s += "@" + a.Since
		}
		if a.Deprecated != "" {
			s += "-" + a.Deprecated
		}
		for _, flag := range a.Flags() {
			s += map[string]string{"optional": "?", "multiple": "*", "multiple_token": "**"}[flag]
		}
		if a.Arguments != nil {
			s += "(" + tree(a.Arguments) + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

func TestSyntaxNotation(t *testing.T) {
	good := func(text, want string) {
		t.Helper()
		args, err := ParseSyntax(text, 1)
		if err != nil {
			t.Error(err)
		} else if got := tree(args); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	good("", "")
	good("ip:port", "ip:port:string")
	good("[FULL [COUNT count]]", `full_count:block?(full:pure-token="FULL" count:integer="COUNT"?)`)
	good("FULL full:([COUNT count])", `full:block="FULL"(count:integer="COUNT"?)`)
	good("[COUNT count [ANY]]", `count_any:block?(count:integer="COUNT" any:pure-token="ANY"?)`)
	good("[LIMIT offset count]", `offset_count:block="LIMIT"?(offset:integer count:integer)`)
	good("(BY radius) width", `radius:double="BY" width:double`)
	good("NO ONE", `no:pure-token="NO" one:pure-token="ONE"`)
	good("MEMBERS numm member [member ...]", `numm:integer="MEMBERS" member:string*`)
	good("LEFT|RIGHT@6.2.0", `left_right:oneof(left:pure-token="LEFT" right:pure-token="RIGHT"@6.2.0)`)
	good("where:LEFT|RIGHT", `where:oneof(left:pure-token="LEFT" right:pure-token="RIGHT")`)

	bad := func(text, want string) {
		t.Helper()
		if _, err := ParseSyntax(text, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	bad("key [NX", "has no end")
	bad("key (", "has no end")
	bad("key ]", "a word is missing")
	bad("key | a", "unexpected")
	bad("key [] x", "nothing stands")
	bad("key (a | )", "nothing stands")
	bad("key |a", "a word is missing")
	bad("key NX|", "a word is missing")
	bad("member [score ...]", "does not repeat")
	bad("[key ...]", "does not repeat")
	bad("key#1", "no key spec")
	bad("key#", "no key spec")
}

func FuzzParseSyntax(f *testing.F) {
	f.Add("key condition:[NX|XX]@3.0.2 [LIMIT offset count] score:integer member [score member ...]", 1)
	f.Add("a:(b | [C d])... e:*|$ \"\"", 0)
	f.Fuzz(func(t *testing.T, text string, specs int) {
		args, err := ParseSyntax(text, specs)
		if err != nil {
			return
		}
		if strings.Count(text, "...") < 8 { // each nested repetition doubles the text
			Usage(args)
		}
		if slices.ContainsFunc(args, func(a Argument) bool { return a.Type == "" }) {
			t.Errorf("%q: an argument without a type", text)
		}
	})
}
