package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// files yields the files of the repository, by their path from its root.
func files(t *testing.T, yield func(name string, content []byte)) {
	root := "../../../.."
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == ".git" || rel == "bin" {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".go", ".md", ".resp", ".mod", ".sh", ".conf", ".txt", "":
		default:
			if path.Dir(rel) != ".ci" {
				return nil
			}
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		yield(rel, b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestText rejects paths of one machine and to-do comments without an owner in all files.
func TestText(t *testing.T) {
	rerun.Skip(t)
	// Taken apart, so that this file does not contain what it forbids.
	machine := regexp.MustCompile(`(^|[\s"'=(` + "`" + `])/(work` + `|tm` + `p|ro` + `ot|home/\w+|Users/\w+)/`)
	later := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b[^(]`)
	files(t, func(name string, content []byte) {
		if binary := strings.ContainsRune(string(content), 0); binary {
			return
		}
		n := 0
		for line := range strings.Lines(string(content)) {
			n++
			if m := machine.FindString(line); m != "" {
				t.Errorf("%s:%d: %q is a path of one machine", name, n, strings.TrimSpace(m))
			}
			if m := later.FindString(line); m != "" && strings.HasSuffix(name, ".go") && strings.Contains(line, "//") {
				t.Errorf("%s:%d: %s has no owner: do it, or write %s(name)", name, n, m, m[:len(m)-1])
			}
		}
	})
}

// immutable is the file whose variables are values of Lua, which nothing changes, and what they refer to, which
// has an address: constants that Go cannot express.
const immutable = "server/internal/lua/value.go"

// TestStyle rejects undocumented exports, init functions, package variables, packages without a
// doc.go, and names in comments that do not exist.
func TestStyle(t *testing.T) {
	rerun.Skip(t)
	fset := token.NewFileSet()
	packages := map[string][]*ast.File{}
	files(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			return
		}
		f, err := parser.ParseFile(fset, name, content, parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		packages[path.Dir(name)] = append(packages[path.Dir(name)], f)
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			for _, complaint := range judgeDecl(d) {
				if name == immutable && strings.Contains(complaint, "is a variable of the package") {
					continue
				}
				p := fset.Position(d.Pos())
				t.Errorf("%s:%d: %s", name, p.Line, complaint)
			}
		}
	})
	all := identifiers(slices.Concat(slices.Collect(maps.Values(packages))...))
	for dir, list := range packages {
		own := identifiers(list)
		for _, f := range list {
			if name := fset.Position(f.Pos()).Filename; !strings.HasSuffix(name, "_test.go") {
				for _, missing := range missingNames(f.Comments, own, all) {
					t.Errorf("%s: a comment has the name %s, which does not exist in this package: one of another package is written with its package or type", name, missing)
				}
			}
		}
		documented := false
		for _, f := range list {
			base := path.Base(fset.Position(f.Pos()).Filename)
			if f.Doc != nil && (base == "doc.go" || f.Name.Name == "main" && !strings.HasSuffix(base, "_test.go")) {
				documented = true
				what := "Package " + f.Name.Name + " "
				if f.Name.Name == "main" {
					what = "Command " + path.Base(dir) + " "
				}
				if !strings.HasPrefix(f.Doc.Text(), what) {
					t.Errorf("%s: the first sentence begins with %q and says what it is", dir, what)
				}
			}
		}
		if !documented {
			t.Errorf("%s: has no doc.go: a newcomer to a package begins there", dir)
		}
	}
}

// identifiers returns the identifiers of the code of some files, with the words of its strings.
func identifiers(list []*ast.File) map[string]bool {
	names := map[string]bool{}
	for _, f := range list {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				names[n.Name] = true
			case *ast.BasicLit:
				for _, word := range strings.FieldsFunc(n.Value, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
					names[word] = true
				}
			}
			return true
		})
	}
	return names
}

// missingNames returns the names in comments with a capital letter within, such as missingNames,
// that do not exist: alone in own, behind a dot in all.
func missingNames(comments []*ast.CommentGroup, own, all map[string]bool) (missing []string) {
	chain := regexp.MustCompile(`(?:^|[\s(\["*])((?:\w+\.)*[a-z]+(?:[A-Z][a-z0-9]+)+(?:\.\w+)*)\b[^:]`)
	local := regexp.MustCompile(`^[a-z]+(?:[A-Z][a-z0-9]+)+$`)
	for _, group := range comments {
		for _, m := range chain.FindAllStringSubmatch(group.Text(), -1) {
			parts := strings.Split(m[1], ".")
			for _, name := range parts {
				if local.MatchString(name) && !own[name] && (len(parts) == 1 || !all[name]) {
					missing = append(missing, m[1])
				}
			}
		}
	}
	return missing
}

// judgeDecl returns what is wrong with a declaration outside tests.
func judgeDecl(d ast.Decl) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.Name == "init" {
			complain("init runs in every program that embeds the package: let New do it")
		}
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
			complain("%s is exported and not documented", d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					complain("%s is exported and not documented", s.Name.Name)
				}
			case *ast.ValueSpec:
				for i, name := range s.Names {
					if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						complain("%s is exported and not documented", name.Name)
					}
					if d.Tok == token.VAR && name.Name != "_" && !isEmbedded(d) && !(i < len(s.Values) && isError(name.Name, s.Values[i])) {
						complain("%s is a variable of the package: two servers in one program would share it. "+
							"Only errors (var Err… = errors.New) may be", name.Name)
					}
				}
			}
		}
	}
	return complaints
}

func receiver(d *ast.FuncDecl) string {
	x := d.Recv.List[0].Type
	for {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
		case *ast.IndexExpr:
			x = t.X
		case *ast.IndexListExpr:
			x = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// isEmbedded reports whether a declaration is a file that the compiler embeds, which
// is constant by convention.
func isEmbedded(d *ast.GenDecl) bool {
	return d.Doc != nil && slices.ContainsFunc(d.Doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// isError reports whether a variable is a sentinel error: named err… or Err…, and
// initialized with errors.New or with the same error of another package.
func isError(name string, value ast.Expr) bool {
	if !strings.HasPrefix(strings.ToLower(name), "err") {
		return false
	}
	if sel, ok := value.(*ast.SelectorExpr); ok {
		return sel.Sel.Name == name
	}
	call, ok := value.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "errors" && sel.Sel.Name == "New"
}

func TestStyleNames(t *testing.T) {
	own, all := map[string]bool{"ownName": true}, map[string]bool{"ownName": true, "otherName": true}
	for text, want := range map[string]bool{
		"see ownName": true, "see ownName.": true, "see otherName": false, "see pkg.otherName": true, "see otherName.mu": true,
		"(noName)": false, "*noName is": false, "pkg.noName is": false, "Type.noName.mu is": false, "see [noName]": false,
		"a/noName": true, "arXiv:1": true, "UPPER and HyperLogLog": true,
	} {
		missing := missingNames([]*ast.CommentGroup{{List: []*ast.Comment{{Text: "// " + text}}}}, own, all)
		if (len(missing) == 0) != want {
			t.Errorf("%s: %q is missing", text, missing)
		}
	}
}

func TestStyleRules(t *testing.T) {
	for source, want := range map[string]string{
		"func init() {}":                                  "init runs",
		"func Exported() {}":                              "not documented",
		"// Exported is.\nfunc Exported() {}":             "",
		"func (x *T) Exported() {}":                       "not documented",
		"func (x *t) Exported() {}":                       "",
		"func (x T[K]) Exported() {}":                     "not documented",
		"type Exported int":                               "not documented",
		"var cache = map[string]int{}":                    "is a variable of the package",
		"//go:embed x\nvar text string":                   "",
		"var errGone = fmt.Errorf(\"gone\")":              "is a variable of the package",
		"// ErrGone is.\nvar ErrGone = errors.New(\"x\")": "",
		"var ErrGone = errors.New(\"x\")":                 "not documented",
		"// ErrGone is.\nvar ErrGone = engine.ErrGone":    "",
		"// ErrGone is.\nvar ErrGone = engine.Other":      "is a variable of the package",
		"var _ I = (*t)(nil)":                             "",
		"const Limit = 1":                                 "not documented",
		"const limit = 1":                                 "",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		got := judgeDecl(f.Decls[0])
		if (want == "") != (len(got) == 0) || want != "" && !slices.ContainsFunc(got, func(c string) bool { return strings.Contains(c, want) }) {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}

// TestStyleSleep rejects time.Sleep in tests: a sleep that is too short makes a test fail
// on a busy machine, or lets it pass before the error comes.
func TestStyleSleep(t *testing.T) {
	rerun.Skip(t)
	fset := token.NewFileSet()
	files(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		f, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		for _, pos := range sleeps(f) {
			t.Errorf("%s:%d: time.Sleep in a test: wait for the condition with wait.Until (package server/servertest/wait), or for an event that "+
				"comes after the one that must not come. A load calls wait.Pace; a deadline of another process calls wait.Elapse; "+
				"timers in this process run in a synctest bubble, where a sleep takes no time", name, fset.Position(pos).Line)
		}
	})
}

// sleeps returns the uses of time.Sleep that are not in a synctest bubble: a function
// literal that is passed to synctest.Test, or to the helper bubble.
func sleeps(f *ast.File) (list []token.Pos) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			id, _ := n.Fun.(*ast.Ident)
			return !isSelector(n.Fun, "synctest", "Test") && (id == nil || id.Name != "bubble")
		case *ast.SelectorExpr:
			if isSelector(n, "time", "Sleep") {
				list = append(list, n.Pos())
			}
		}
		return true
	})
	return list
}

// isSelector reports whether an expression is pkg.name.
func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

func TestStyleSleepRules(t *testing.T) {
	for source, want := range map[string]int{
		"time.Sleep(1)":                                                      1,
		"for ; !done(); time.Sleep(1) {}":                                    1,
		"go func() { time.Sleep(1); pause := time.Sleep }()":                 2,
		"wait.Pace(1); b.Sleep(1)":                                           0,
		"synctest.Test(t, func(t *testing.T) { time.Sleep(1) })":             0,
		"bubble(t, func(t *testing.T) { for { time.Sleep(1) } })":            0,
		"synctest.Test(t, func(t *testing.T) {}); time.Sleep(1)":             1,
		"t.Run(name, func(t *testing.T) { time.Sleep(1) }); synctest.Wait()": 1,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\nfunc f() { "+source+" }", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(sleeps(f)); got != want {
			t.Errorf("%q: %d sleeps, want %d", source, got, want)
		}
	}
}
