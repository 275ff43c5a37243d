package compiler

import (
	"strings"
	"testing"
)

// Compiling takes time in proportion to the source, and its recursion does not follow
// long chains.
func TestCompilingIsLinear(t *testing.T) {
	var c Compiler
	for name, source := range map[string]struct{ before, repeated, after string }{
		"elseif":     {"local x = 1 if x then x = 2 ", "elseif x then x = 1 ", "end"},
		"or":         {"local x = 1 return x", " or x", ""},
		"or compare": {"local x = 1 return x == 0", " or x == 5", ""},
		"and":        {"local x = 1 return x", " and x", ""},
		"and or":     {"local x = 1 if x", " and x == 1 or x == 2", " then return 1 end"},
		"and not or": {"local x = 1 return x", " and not (x or x)", ""},
		"break":      {"while true do ", "if x then break end ", "end"},
		"while":      {"", "while x do end ", ""},
		"constants":  {"return {", "'a', 1.5, ", "}"},
	} {
		const n = 60_000
		src := source.before + strings.Repeat(source.repeated, n) + source.after
		work := 0
		if _, err := c.Compile(src, "x", 0, func() bool { work++; return false }); err != nil && !strings.Contains(err.Error(), "control structure too long") {
			t.Errorf("%s: %v", name, err)
		}
		if work > 30*n {
			t.Errorf("%s: %d tokens, variables and instructions for %d links", name, work, n)
		}
	}
}

// A compilation can be ended at any token, variable, and instruction, and the next one
// is not concerned.
func TestCompilingCanBeInterrupted(t *testing.T) {
	var c Compiler
	for _, s := range samples(t) {
		total := 0
		if _, err := c.Compile(s.source, "x", 0, func() bool { total++; return false }); err != nil {
			t.Fatal(err)
		}
		for at := 1; at <= total; at++ {
			n := 0
			_, err := c.Compile(s.source, "x", 0, func() bool {
				n++
				return n == at
			})
			if err != ErrStopped {
				t.Fatalf("%s at %d of %d: %v", s.name, at, total, err)
			}
		}
		if p, err := c.Compile(s.source, "x", 0, never); err != nil || size(p) == 0 {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// The code of usual scripts is no longer than it was measured to be.
func TestSizes(t *testing.T) {
	want := map[string]int{
		"get": 7, "lock": 20, "limiter": 44, "bucket": 83, "queue": 108, "closures": 124, "arithmetic": 15, "calls": 81,
	}
	var c Compiler
	for _, s := range samples(t) {
		p, err := c.Compile(s.source, "user_script", 0, never)
		if err != nil {
			t.Fatal(err)
		}
		if n := size(p); n > want[s.name] {
			t.Errorf("%s: %d instructions, want at most %d", s.name, n, want[s.name])
		}
	}
}

// A compiler that is in use, as when a source is compiled while another one is, is
// not shared; and a large source leaves no large buffers behind.
func TestNestedCompilation(t *testing.T) {
	var c Compiler
	n := 0
	p, err := c.Compile("local a = 1 return a", "outer", 0, func() bool {
		if n++; n == 4 {
			if _, err := c.Compile("local b = {} b.x = b", "inner", 0, never); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	if err != nil || len(p.Code) != 2 {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := c.Compile(strings.Repeat("x.y = z ", 10_000), "large", 0, never); err != nil {
		t.Error(err)
	}
	for _, g := range c.generators {
		if cap(g.code) > 4*keptCode {
			t.Errorf("a buffer of %d instructions is kept", cap(g.code))
		}
	}
	for _, e := range c.tree.exprs.kept {
		if e != (expr{}) {
			t.Fatal("a node is kept")
		}
	}
}

// The memory that a source takes is bounded, whatever it consists of: the source is not
// read to its end.
func TestSizeOfSources(t *testing.T) {
	var c Compiler
	for _, part := range []string{"do end ", "x = 1 + 1 "} {
		tokens := 0
		_, err := c.Compile(strings.Repeat(part, maxNodes+1), "x", 0, func() bool { tokens++; return false })
		if err == nil || !strings.HasSuffix(err.Error(), "code size overflow") || tokens > 4*maxNodes {
			t.Errorf("%s: %v after %d tokens", part, err, tokens)
		}
	}
}
