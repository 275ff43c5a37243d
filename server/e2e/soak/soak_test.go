//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/e2e/program"
)

// TestDifferences checks that the model detects wrong values.
func TestDifferences(t *testing.T) {
	now := time.Now().UnixMilli()
	make := func() *value {
		v := newValue("hash")
		v.fields["a"], v.fields["b"] = "1", "2"
		v.setDue("b", now+60_000)
		return v
	}
	for name, spoil := range map[string]func(*value){
		"without a field":      func(v *value) { v.drop("a") },
		"with another value":   func(v *value) { v.fields["a"] = "2" },
		"with one too many":    func(v *value) { v.fields["c"] = "" },
		"without a deadline":   func(v *value) { delete(v.due, "b") },
		"with a wrong one":     func(v *value) { v.setDue("b", now+60_001) },
		"with one of the key":  func(v *value) { v.at = now + 60_000 },
		"of another type":      func(v *value) { v.kind = "set" },
		"with a deadline more": func(v *value) { v.setDue("a", now+60_000) },
	} {
		v := make()
		spoil(v)
		if difference(make(), v) == "" || difference(v, make()) == "" {
			t.Errorf("difference does not detect a value %s", name)
		}
	}
	if d := difference(make(), make()); d != "" {
		t.Error(d)
	}
	if v := make().purge(now + 60_000); v == nil || v.has("b") || !v.has("a") {
		t.Errorf("after the deadline of b there is %v", v)
	}
}

func TestMatches(t *testing.T) {
	for _, x := range []struct {
		want, got any
		ok        bool
	}{
		{"a", "a", true}, {"1", int64(1), false}, {1, int64(1), true}, {1, int64(2), false}, {nil, nil, true}, {nil, "", false},
		{num(0.5), "0.5", true}, {num(0.5), 0.5, true}, {num(0.5), "0.25", false},
		{bag{"a", "b"}, []any{"b", "a"}, true}, {bag{"a", "b"}, []any{"b", "b"}, false},
		{row{"a", nil}, []any{"a", nil}, true}, {row{"a"}, []any{"a", "a"}, false},
		{hashed{"a": "1"}, []any{"a", "1"}, true}, {hashed{"a": "1"}, []any{"a", "2"}, false},
		{ranked{{"a", 1}}, []any{[]any{"a", 1.0}}, true}, {ranked{{"a", 1}}, []any{"a", "1"}, true}, {ranked{{"a", 1}}, []any{"a", "2"}, false},
		{"OK", errorReply("ERR no"), false}, {errorLike("WRONGTYPE"), errorReply("WRONGTYPE x"), true},
	} {
		if matches(x.want, x.got) != x.ok {
			t.Errorf("matches(%v, %v) is %v", x.want, show(x.got), !x.ok)
		}
	}
}

// A second of each stage; make soak is the rest. Then with a model that believes
// something wrong, so that one sees that it would be noticed.
func TestShort(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a server")
	}
	o := &options{time: 2 * time.Second, seed: 1, owners: 3, rate: 3000, dir: t.TempDir(), stages: "steady,crash"}
	var out strings.Builder
	o.out = &out
	var err error
	if o.binary, err = program.Build(t.TempDir(), false); err != nil {
		t.Fatal(err)
	}
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	o = &options{time: 5 * time.Second, seed: 1, owners: 3, rate: 3000, dir: t.TempDir(), stages: "steady", binary: o.binary, out: &out, lie: true}
	if err := o.run(); err == nil || !strings.Contains(out.String(), "FAILED") {
		t.Errorf("what is not so was not noticed: %v\n%s", err, &out)
	}
	if _, err := os.Stat(filepath.Join(o.dir, "steady", "log")); err != nil {
		t.Error("the log of the server that failed is gone")
	}
}
