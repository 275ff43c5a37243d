package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutate plants all faults of a small module, of which its tests notice some.
func TestMutate(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		"go.mod":            "module example.org/small\n\ngo 1.26\n",
		"cmd/small_test.go": "package main\n\nimport \"testing\"\n\nfunc TestMain(m *testing.M) { panic(\"a package whose tests do not run\") }\n",
		"cmd/small.go":      "package main\n\nimport \"example.org/small/sum\"\n\nfunc main() { println(sum.Of(nil)) }\n",
		"sum/sum.go": `// Package sum has a place of each kind.
package sum

import "time"

type count int64

var log func(string)

func Of(list []count) (n count) {
	if list == nil {
		return 0
	}
	for i := 0; i < len(list); i++ {
		n += list[i]
	}
	say("sum")
	return n - 1 + 1
}

func say(s string) {
	if log != nil && len(s) > 2 {
		log(s)
	}
}

// Unreached has no test.
func Unreached(n int) time.Duration {
	return time.Duration(n+1) * (5 * time.Second)
}

const constant = 1<<3 + 1

var array = [constant]bool{2: true}

func Last() bool { return array[2] == true }
`,
		"sum/sum_test.go": `package sum

import "testing"

func TestOf(t *testing.T) {
	if got := Of([]count{1, 2, 4}); got != 7 {
		t.Error(got)
	}
}

func TestSay(t *testing.T) {
	var got string
	log = func(s string) { got += s }
	defer func() { log = nil }()
	say("abc")
	if got != "abc" {
		t.Error(got)
	}
}

func TestFails(t *testing.T) { t.Error(Of(nil)) }
`,
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := command(root, "git", "init", "-q"); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	places := filepath.Join(dir, "places")
	o := options{n: 100, seed: 1, packages: ".", tests: "^sum$", root: root, dir: filepath.Join(dir, "copies"), places: places, parallel: 2}
	var first, second bytes.Buffer
	if err := o.run(&first); err != nil {
		t.Fatal(err)
	}
	got := first.String()
	for _, want := range []string{
		"left out, as it fails without a fault: sum TestFails\n",
		"sum/sum.go:11: condition: list == nil: sum TestOf\n",
		"sum/sum.go:14: comparison: i < len(list): sum TestOf\n",
		"sum/sum.go:14: sign: i++: sum TestOf\n",
		"sum/sum.go:15: sign: list[i]: sum TestOf\n",
		"not noticed: sum/sum.go:17: call: say(\"sum\") (1 tests reach it)\n",
		"sum/sum.go:18: sign: n - 1: sum TestOf\n",
		"not noticed: sum/sum.go:22: comparison: len(s) > 2 (1 tests reach it)\n",
		"not noticed: sum/sum.go:29: constant: (5 * time.Second) (0 tests reach it)\n",
		"sum/sum.go:23: call: log(s): sum TestSay\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	b, err := os.ReadFile(places)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sum/sum.go:29: sign: n+1: no test\n", "sum/sum.go:23: call: log(s): sum TestSay\n"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the list of places lacks %q", want)
		}
	}
	// The second run uses the copy, and repeats the sample.
	if err := o.run(&second); err != nil {
		t.Fatal(err)
	}
	if i := strings.Index(got, "places  no test"); !strings.HasSuffix(got, second.String()) || i < 0 {
		t.Errorf("another report from the same tree:\n%s", second.String())
	}
}

func TestSplice(t *testing.T) {
	source := "package a; var b = 1 // no function\n"
	if got := splice([]byte(source), nil); string(got) != source {
		t.Errorf("%q", got)
	}
	edits := []edit{{18, 18, "("}, {18, 18, "["}, {20, 20, "]"}, {20, 20, ")"}, {19, 19, ","}}
	if got, want := string(splice([]byte("package a; var b = 1"), edits)), "package a; var b =([ ,1])"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
