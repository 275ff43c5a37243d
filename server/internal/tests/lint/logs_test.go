package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// sharedLogs returns the parts of log messages that stand in Redis's program, too, and why.
func sharedLogs() map[string]string {
	const tests = "programs and Redis's test suite look for it"
	return map[string]string{
		"ready to accept connections":                      "supervisors and tests wait for it",
		"config set slowlog-log-slower-than":               "a command",
		"disconnecting timedout replica (full sync)":       tests,
		"asks for synchronization but with a wrong offset": tests,
		"time out exceeded":                                tests,
		"failover target rejected psync request":           tests,
		"successful partial resynchronization with master": tests,
		"master <-> replica sync":                          tests,
		"loading db in memory":                             tests,
		"finished with success":                            tests,
		"replica generated a reply to command '":           tests,
		"replication backlog freed":                        "too short to be a sentence of one program",
		"stop the server":                                  "too short to be a sentence of one program",
	}
}

// TestLogSentences checks that no log message and no text of a DOCTOR report is a text in
// the program redis-server: each part between full stops, colons and verbs, of three words
// or more.
func TestLogSentences(t *testing.T) {
	rerun.Skip(t)
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed: its texts are not compared")
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	program = bytes.ToLower(program)
	separator := regexp.MustCompile(`[.:;,] |\n|%[.0-9]*[a-z]`)
	seen, shared, used := 0, sharedLogs(), map[string]bool{}
	check := func(where, text string) {
		seen++
		for _, part := range separator.Split(text, -1) {
			part = strings.Trim(strings.ToLower(strings.Join(strings.Fields(part), " ")), "-. ")
			if len(strings.Fields(part)) < 3 || !bytes.Contains(program, []byte(part)) {
				continue
			}
			if shared[part] == "" {
				t.Errorf("%s: %q is in %s", where, part, path)
			}
			used[part] = true
		}
	}
	fset := token.NewFileSet()
	files(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "server/e2e/") {
			return
		}
		f, err := parser.ParseFile(fset, name, content, 0)
		if err != nil {
			t.Fatal(err)
		}
		literals := func(n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					text, _ := strconv.Unquote(l.Value)
					check(fmt.Sprintf("%s:%d", name, fset.Position(l.Pos()).Line), text)
				}
				return true
			})
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if ok && slices.Contains([]string{"Info", "Warn", "Error", "Debug", "Log"}, sel.Sel.Name) && isLog(sel.X) {
					for _, arg := range n.Args {
						literals(arg)
					}
				}
			case *ast.FuncDecl:
				if n.Name.Name == "latencyReport" || n.Name.Name == "memoryReport" {
					literals(n)
				}
			}
			return true
		})
	})
	for part := range shared {
		if !used[part] {
			t.Errorf("%q is listed as shared, and is not", part)
		}
	}
	if seen < 200 {
		t.Errorf("only %d texts", seen)
	}
}

// isLog reports whether an expression is a logger: a variable or field named log or Log.
func isLog(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log")
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "log")
	}
	return false
}
