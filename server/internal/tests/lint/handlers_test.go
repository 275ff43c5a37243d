package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// TestHandlersSeeTheirCall checks that the handlers of the commands on data and streams see the
// engine and the session only through their Call, so that what they may do is one list of methods.
func TestHandlersSeeTheirCall(t *testing.T) {
	rerun.Skip(t)
	seen := 0
	files(t, func(name string, content []byte) {
		switch dir := path.Dir(name); {
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return
		case dir != "server/internal/commands/data" && dir != "server/internal/commands/stream":
			return
		}
		seen++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && (sel.Sel.Name == "Engine" || sel.Sel.Name == "Session") {
				t.Errorf("%s: a handler sees its Call and not its %s: add a method to engine.Call (call.go)", fset.Position(sel.Pos()), sel.Sel.Name)
			}
			return true
		})
	})
	if seen < 20 {
		t.Errorf("found %d files of handlers", seen)
	}
}
