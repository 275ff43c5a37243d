package server_test

// The rules of this repository, as far as a program can judge them: which
// package may import which, and how files are written. Each failure says why
// there is the rule.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/zsetd/zsetd"

// mayImport says what each package may import besides the standard library:
// downwards only. "-" forbids a part of the standard library.
func mayImport() map[string]struct{ imports, why string } {
	return map[string]struct{ imports, why string }{
		"zset/table": {
			"",
			"the hash table is under everything else, and people embed it with zset",
		},
		"zset": {
			"zset/table -net -os -io/fs",
			"people embed zset alone: it brings no other module, and nothing of Redis, files or networks",
		},
		"protocol": {
			"github.com/tidwall/redcon -net -os",
			"protocol turns bytes into arguments and replies into bytes; it knows neither values nor sockets",
		},
		"snapshot": {
			"go.etcd.io/bbolt -net",
			"a snapshot keeps records in a file; it knows nothing of values, commands or networks",
		},
		"server/keyspace": {
			"zset zset/table github.com/tidwall/btree -net -os -io/fs -log/slog",
			"the keyspace is values behind doors: what clients say, files and networks are above it",
		},
		"server/archive": {
			"protocol server/keyspace server/rdb snapshot zset -net -log/slog",
			"an archive moves values between a keyspace and a file; the server and the tools are above it",
		},
		"server/geo": {
			"-net -os -io -log/slog",
			"an algorithm on numbers: commands and sorted sets are above it",
		},
		"server/rdb": {
			"protocol server/keyspace zset -net -os -log/slog",
			"a format of values: files and commands are above it",
		},
		"server/hyperloglog": {
			"-net -os -io -log/slog",
			"an algorithm on bytes: commands and keys are above it",
		},
		"server/script": {
			"github.com/yuin/gopher-lua github.com/yuin/gopher-lua/ast -net -os -io -log/slog",
			"a language: it knows nothing of commands, keys or files, and gives scripts no way to them",
		},
		"server": {
			"protocol server/archive server/geo server/hyperloglog server/keyspace server/rdb server/script snapshot zset " +
				"github.com/yuin/gopher-lua github.com/zeebo/xxh3 golang.org/x/sys",
			"the server puts the parts together; a new dependency is a decision for everybody who embeds it",
		},
		"server/servertest": {"server", "tests drive the server as any program does, through what it exports"},
		"cmd/zsetd":         {"server server/archive server/rdb snapshot github.com/schollz/progressbar/v3 golang.org/x/term", "the command holds no logic: what it could do, an embedding program must be able to do"},
	}
}

func TestImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], module+"/")
		rule, ok := mayImport()[pkg]
		if !ok {
			t.Errorf("%s is a new package: say in mayImport (style_test.go) what it may import, and why", pkg)
			continue
		}
		for _, imp := range words[1:] {
			if !allowed(imp, strings.Fields(rule.imports)) {
				t.Errorf("%s must not import %s: %s", pkg, imp, rule.why)
			}
		}
	}
}

func allowed(imp string, rules []string) bool {
	first, _, _ := strings.Cut(imp, "/")
	standard := !strings.Contains(first, ".")
	for _, r := range rules {
		if part, no := strings.CutPrefix(r, "-"); no {
			if imp == part || strings.HasPrefix(imp, part+"/") {
				return false
			}
			continue
		}
		if imp == r || imp == module+"/"+r || !standard && strings.HasPrefix(imp, r+"/") {
			return true
		}
	}
	return standard
}

func TestImportRules(t *testing.T) {
	rules := []string{"zset", "github.com/tidwall/btree", "-net"}
	for imp, want := range map[string]bool{
		"strings": true, "math/rand/v2": true, "net": false, "net/http": false, "network": true,
		module + "/zset": true, module + "/zset/table": false, module + "/server": false,
		"github.com/tidwall/btree": true, "github.com/tidwall/btreeplus": false, "github.com/tidwall/redcon": false,
	} {
		if got := allowed(imp, rules); got != want {
			t.Errorf("%s: %v", imp, got)
		}
	}
}

// files yields the files of the repository, by their path from its root.
func files(t *testing.T, yield func(name string, content []byte)) {
	root := ".."
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

// What is written in any file.
func TestText(t *testing.T) {
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
				t.Errorf("%s:%d: %q is a path of somebody's machine, and nobody else has it", name, n, strings.TrimSpace(m))
			}
			if m := later.FindString(line); m != "" && strings.HasSuffix(name, ".go") && strings.Contains(line, "//") {
				t.Errorf("%s:%d: %s: what is left to do is nobody's: do it, or write %s(name)", name, n, m, m[:len(m)-1])
			}
		}
	})
}

// What is written in Go files.
func TestStyle(t *testing.T) {
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
				p := fset.Position(d.Pos())
				t.Errorf("%s:%d: %s", name, p.Line, complaint)
			}
		}
	})
	for dir, list := range packages {
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

// judgeDecl returns what is wrong with a declaration outside tests.
func judgeDecl(d ast.Decl) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.Name == "init" {
			complain("init runs behind everybody's back, in every program that embeds the package: let New do it")
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

// isError reports whether a variable is an error that is never changed.
// isEmbedded reports whether a variable is a file that is compiled in, which
// nobody changes.
func isEmbedded(d *ast.GenDecl) bool {
	return d.Doc != nil && slices.ContainsFunc(d.Doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

func isError(name string, value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok || !strings.HasPrefix(strings.ToLower(name), "err") {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == "errors" && sel.Sel.Name == "New"
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
