package lint

// The rule that tests pass on a busy machine: only tests that make faults runs
// have limits of time and memory.

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// ceilings returns the lines of a test file that fail a test at a time limit below a
// minute, or that read how much memory is in use.
func ceilings(fset *token.FileSet, f *ast.File) (lines []int) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			name := n.Name.Name
			return !strings.HasPrefix(name, "TestMeasure") && !strings.HasPrefix(name, "Benchmark")
		case *ast.CallExpr: // in a bubble of synctest time does not depend on the machine
			bubble, ok := n.Fun.(*ast.Ident)
			return !isCall(n, "synctest", "Test") && !(ok && bubble.Name == "bubble")
		case *ast.SelectorExpr:
			if slices.Contains([]string{"HeapAlloc", "HeapInuse", "HeapSys"}, n.Sel.Name) {
				lines = append(lines, fset.Position(n.Pos()).Line)
			}
		case *ast.IfStmt:
			if !mentions(n.Cond, "fuzzing") && tooLong(n.Cond) && fails(n.Body) {
				lines = append(lines, fset.Position(n.Pos()).Line)
			}
		}
		return true
	})
	return lines
}

// tooLong reports whether a condition holds when something exceeds a duration of less
// than a minute.
func tooLong(cond ast.Expr) (found bool) {
	ast.Inspect(cond, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok {
			limit := b.Y
			if b.Op == token.LSS || b.Op == token.LEQ {
				limit = b.X
			} else if b.Op != token.GTR && b.Op != token.GEQ {
				return true
			}
			if d, ok := duration(limit); ok && d < time.Minute {
				found = true
			}
		}
		return true
	})
	return found
}

// duration evaluates an expression such as 3*time.Second.
func duration(x ast.Expr) (time.Duration, bool) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return duration(x.X)
	case *ast.SelectorExpr:
		if p, ok := x.X.(*ast.Ident); ok && p.Name == "time" {
			unit, ok := map[string]time.Duration{"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
				"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}[x.Sel.Name]
			return unit, ok
		}
	case *ast.BinaryExpr:
		if x.Op != token.MUL {
			d, ok := duration(x.X)
			if more, also := duration(x.Y); ok || also { // plus something
				return d + more, true
			}
			return 0, false
		}
		if d, ok := duration(x.Y); ok {
			return d * factor(x.X), true
		}
		if d, ok := duration(x.X); ok {
			return d * factor(x.Y), true
		}
	}
	return 0, false
}

func factor(x ast.Expr) time.Duration {
	if lit, ok := x.(*ast.BasicLit); ok {
		f, _ := constant.Float64Val(constant.ToFloat(constant.MakeFromLiteral(lit.Value, lit.Kind, 0)))
		return time.Duration(f)
	}
	return 1
}

// fails reports whether statements fail a test.
func fails(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			for _, name := range []string{"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"} {
				found = found || isCall(call, "t", name)
			}
		}
		return !found
	})
	return found
}

func isCall(call *ast.CallExpr, on, name string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == on
}

func mentions(x ast.Expr, name string) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return !found
	})
	return found
}

func TestCeilings(t *testing.T) {
	rerun.Skip(t)
	fset := token.NewFileSet()
	files(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "server/e2e/faults/") || name == "zset/compare/compare_test.go" ||
			path.Base(name) == "ceilings_test.go" || strings.HasPrefix(path.Base(name), "measure") {
			return
		}
		f, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		for _, line := range ceilings(fset, f) {
			t.Errorf("%s:%d: a ceiling in time or memory, which a busy machine can break: count work, use a bubble of synctest, wait for a minute or more, "+
				"or make it a test of server/e2e/faults, or a TestMeasure… in measure_test.go", name, line)
		}
	})
}

func TestCeilingRules(t *testing.T) {
	for source, want := range map[string]bool{
		"if took := time.Since(start); took > 3*time.Second { t.Errorf(`late`) }":       true,
		"if took > time.Second { t.Error(`late`) }":                                     true,
		"if err != nil || time.Second+late <= time.Since(x) { t.Fatal(`late`) }":        true,
		"if took < time.Second { t.Error(`early`) }":                                    false,
		"if took > 2*time.Minute { t.Error(`never`) }":                                  false,
		"if took > time.Second { t.Log(`late`) }":                                       false,
		"if took > time.Second && fuzzing() { t.Error(`late`) }":                        false,
		"synctest.Test(t, func(t *testing.T) { if took > time.Second { t.Error(1) } })": false,
		"bubble(t, func(t *testing.T) { if took > time.Second { t.Error(1) } })":        false,
		"runtime.ReadMemStats(&m); n := m.HeapAlloc":                                    true,
		"runtime.ReadMemStats(&m); n := m.TotalAlloc":                                   false,
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x\nfunc TestX(t *testing.T) {\n"+source+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(ceilings(fset, f)) > 0; got != want {
			t.Errorf("%s: %v", source, got)
		}
	}
}

// TestMeasuredApart checks that make test runs no test that measures, and that .ci/run
// runs them all.
func TestMeasuredApart(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	makefile := read("../../../../Makefile")
	target := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `:.*\n((?:\t.*\n)+)`).FindStringSubmatch(makefile)
		if m == nil {
			t.Fatalf("there is no make %s", name)
		}
		return m[1]
	}
	for _, name := range []string{"test", "test-net", "test-unsettled", "race"} {
		if recipe := target(name); strings.Contains(recipe, "faults") || strings.Contains(recipe, "ZSETD_MEASURE") {
			t.Errorf("make %s measures: %s", name, recipe)
		} else if strings.ContainsAny(recipe, "|") || strings.Contains(recipe, "-skip") {
			t.Errorf("make %s names tests, so it misses new ones: a test leaves itself out with rerun.Skip: %s", name, recipe)
		}
	}
	measured := target("faults")
	if !strings.Contains(measured, "./faults") || !strings.Contains(measured, "ZSETD_MEASURE=1") {
		t.Errorf("make faults: %s", measured)
	}
	if !strings.Contains(read("../../../../.ci/run"), "make faults") {
		t.Error(".ci/run does not run make faults")
	}
	if !strings.Contains(read("../../../e2e/faults/harness_test.go"), `os.Getenv("ZSETD_MEASURE") == ""`) {
		t.Error("go test ./... runs the package faults")
	}
	files(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, m := range regexp.MustCompile(`(?m)^func (TestMeasure[A-Z]\w*)\(t \*testing\.T\) \{\n(.*)\n`).FindAllStringSubmatch(string(content), -1) {
			if m[2] != "\tmeasured(t)" && m[2] != "\tenginetest.Measured(t)" {
				t.Errorf("%s: %s does not begin with measured(t)", name, m[1])
			}
			if dir := "./" + strings.TrimPrefix(path.Dir(name), "server/e2e/"); !slices.Contains(strings.Fields(measured), dir) {
				t.Errorf("make faults does not run %s in %s", m[1], dir)
			}
		}
	})
}
