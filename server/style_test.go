package server_test

// Lint rules of this repository: the imports that each package may have, what Go files
// declare, the names in comments, how tests wait, and paths and to-do comments in all files.
// Each failure message gives the reason for its rule.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/zsetd/zsetd/server/internal/rerun"
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
			"zset/table github.com/tidwall/btree -net -os -io/fs",
			"programs embed zset alone: it depends on one module, which depends on none, and on nothing of Redis, files or networks",
		},
		"protocol": {
			"github.com/tidwall/redcon -net -os",
			"protocol turns bytes into arguments and replies into bytes; it knows neither values nor sockets",
		},
		"snapshot": {
			"go.etcd.io/bbolt -net",
			"a snapshot keeps records in a file; it knows nothing of values, commands or networks",
		},
		"server/servertest/wait":    {"-net -log/slog", "tests wait with it, and no package imports it"},
		"server/servertest/iofault": {"golang.org/x/sys -net -log/slog", "tests have system calls fail with it, and no package imports it"},
		"server/servertest/port":    {"-os -log/slog", "tests choose ports with it, and no package imports it"},
		"server/internal/packed":    {"-net -os -io -log/slog", "an algorithm on bytes"},
		"server/internal/journal": {
			"zset -net -os -io -log/slog",
			"a format of changes: the values that change and the file are above it",
		},
		"server/internal/sequence": {
			"server/internal/journal server/internal/packed github.com/tidwall/btree -net -os -io -log/slog",
			"two kinds of values: keys, deadlines and commands are above it",
		},
		"server/internal/slotindex": {
			"-net -os -io -log/slog",
			"an index of strings: the keyspace is above it",
		},
		"server/internal/prefetch":   {"-net -os -io -log/slog", "an instruction of the processor: values are above it"},
		"server/internal/latencylog": {"-net -os -io -log/slog", "samples of events: commands and sessions are above it"},
		"server/internal/keyslot":    {"-net -os -io -log/slog", "a hash of texts: keys and nodes are above it"},
		"server/internal/remote": {
			"protocol server/internal/keyslot -net -os -io -log/slog",
			"the form of a request: the engine makes requests, and package forward sends them",
		},
		"server/internal/nameindex": {"-net -os -io -log/slog", "an index of names: commands are above it"},
		"server/internal/keysizes":  {"-net -os -io -log/slog", "it counts numbers: the keyspace is above it"},
		"server/internal/frequency": {"-net -os -io -log/slog", "an algorithm on numbers: the keyspace is above it"},
		"server/internal/operation": {
			"server/internal/journal server/internal/sequence -net -os -io -log/slog",
			"a form of changes: the keyspace writes them, and its followers read them",
		},
		"server/internal/keyspace": {
			"server/internal/frequency server/internal/journal server/internal/keysizes server/internal/operation server/internal/packed server/internal/sequence server/internal/slotindex zset zset/table -net -os -io/fs -log/slog",
			"the keyspace holds values: clients, files and networks are above it",
		},
		"server/archive": {
			"protocol server/internal/journal server/internal/keyspace server/internal/packed server/internal/sequence server/rdb snapshot zset -net -log/slog",
			"an archive moves values between a keyspace and a file; the server and the tools are above it",
		},
		"server/internal/geo": {
			"-net -os -io -log/slog",
			"an algorithm on numbers: commands and sorted sets are above it",
		},
		"server/rdb": {
			"protocol server/internal/keyspace server/internal/sequence zset -net -os -log/slog",
			"a format of values: files and commands are above it",
		},
		"server/internal/bitmap": {
			"-net -os -io -log/slog",
			"an algorithm on bytes: commands and keys are above it",
		},
		"server/internal/hyperloglog": {
			"-net -os -io -log/slog",
			"an algorithm on bytes: commands and keys are above it",
		},
		"server/internal/lcs": {
			"-net -os -io -log/slog",
			"an algorithm on bytes: commands and keys are above it",
		},
		"server/internal/script": {
			"server/internal/luacompiler server/internal/luaconv github.com/yuin/gopher-lua -net -os -io -log/slog",
			"a language: it knows nothing of commands, keys or files, and gives scripts no way to them",
		},
		"server/internal/luacompiler": {
			"server/internal/luaconv github.com/yuin/gopher-lua -net -os -io -log/slog",
			"sources to code: what runs the code, with its libraries, is above it",
		},
		"server/internal/luaconv":    {"github.com/yuin/gopher-lua -net -os -io -log/slog", "an algorithm on numbers and strings"},
		"server/internal/simulation": {"", "tests run servers in it, and no package imports it"},
		"server/internal/rerun":      {"-net -log/slog", "tests decide with it whether they run, and no package imports it"},
		"server/internal/transcript": {"protocol -net -os -log/slog", "tests read and compare transcripts with it, and no package imports it"},
		"server/internal/address":    {"-os -io -log/slog", "a syntax: connections are above it"},
		"server/internal/glob":       {"-net -os -io -log/slog", "an algorithm on bytes"},
		"server/internal/longdouble": {"protocol -net -os -io -log/slog", "an algorithm on numbers"},
		"server/internal/subscription": {
			"protocol server/internal/glob -net -os -io -log/slog",
			"a table of names: messages and sessions are above it",
		},
		"server/internal/tracking":    {"protocol -net -os -io -log/slog", "a table of keys: messages and sessions are above it"},
		"server/internal/score":       {"protocol zset -net -os -io -log/slog", "a syntax: commands are above it"},
		"server/internal/clock":       {"golang.org/x/sys -net -os -io -log/slog", "times only: what waits for them is above it"},
		"server/internal/process":     {"-net -os -io -log/slog", "readings only: what they decide is above it"},
		"server/internal/histogram":   {"-net -os -io -log/slog", "an algorithm on numbers"},
		"server/internal/memberlist":  {"-net -os -io -log/slog", "a format of texts"},
		"server/internal/hotkeys":     {"-net -os -io -log/slog", "an algorithm on keys and numbers"},
		"server/internal/version":     {"-net -os -io -log/slog", "facts: the server that has them is above it"},
		"server/internal/infotext":    {"-net -os -io -log/slog", "a form of text: the fields are above it"},
		"server/internal/scriptcache": {"-net -os -io -log/slog", "a script is of any type"},
		"server/internal/slotstats":   {"-net -os -io -log/slog", "counters: commands and slots are above it"},
		"server/internal/acl": {
			"protocol server/internal/glob -net -log/slog",
			"users and rules: sessions, the lock and the handlers of ACL are above it",
		},
		"server/internal/config": {
			"protocol server/internal/slotstats -net -log/slog",
			"the values of the parameters: what they do is in the packages that read them",
		},
		"server/internal/persist": {
			"protocol server/archive server/internal/config server/internal/journal server/internal/keyspace snapshot golang.org/x/sys -net",
			"the keeper of the data file: the lock, sessions and commands are above it",
		},
		"server/internal/psync": {
			"protocol -os -log/slog",
			"the replica's side of a protocol: servers and tools that follow a primary are above it",
		},
		"server/internal/forward": {
			"protocol server/internal/address server/internal/config server/internal/engine server/internal/keyslot server/internal/remote server/internal/subscription",
			"forward moves requests and replies: the engine, which knows no other server, decides which ones",
		},
		"server/internal/replication": {
			"protocol server/internal/config server/internal/engine server/internal/keyspace server/internal/operation server/internal/sequence server/internal/psync server/rdb",
			"replication feeds replicas through sessions and the lock of the engine; no part of the engine knows its protocol",
		},
		"server/internal/engine": {
			"protocol server/archive server/internal/acl server/internal/address server/internal/clock server/internal/config server/internal/keyspace server/internal/sequence server/internal/persist server/internal/process server/rdb server/internal/score server/internal/script server/internal/subscription server/internal/tracking zset " +
				"server/internal/glob server/internal/histogram server/internal/hotkeys server/internal/infotext server/internal/keyslot server/internal/latencylog server/internal/longdouble server/internal/memberlist server/internal/nameindex server/internal/remote server/internal/scriptcache server/internal/slotstats server/internal/version " +
				"github.com/yuin/gopher-lua github.com/zeebo/xxh3 golang.org/x/sys",
			"the engine executes commands and has none: the packages with handlers are above it",
		},
		"server/internal/transport": {
			"protocol server/internal/config server/internal/engine server/internal/prefetch golang.org/x/sys",
			"transports move bytes between sockets and sessions: they know no commands, keys or values",
		},
		"server/internal/command": {
			"protocol server/internal/bitmap server/internal/config server/internal/geo server/internal/hyperloglog server/internal/keyspace server/internal/lcs server/internal/score server/internal/sequence server/rdb zset " +
				"server/internal/engine server/internal/glob server/internal/keyslot server/internal/longdouble server/internal/version github.com/zeebo/xxh3",
			"a handler sees only its Call: not files, networks, scripts or the handlers about the server",
		},
		"server/internal/admin": {
			"protocol server/internal/acl server/internal/config server/internal/keyspace server/internal/sequence server/internal/persist zset server/internal/command server/internal/engine server/internal/process server/internal/glob " +
				"server/internal/histogram server/internal/hotkeys server/internal/infotext server/internal/keyslot server/internal/latencylog server/internal/slotstats server/internal/subscription server/internal/tracking server/internal/version",
			"these handlers show the state of the engine: transports, files and scripts are the engine's",
		},
		"server/internal/stream": {
			"protocol server/internal/keyspace server/internal/sequence server/internal/engine -net -os -io -log/slog",
			"a handler sees only its Call, as in package command",
		},
		"server/internal/commandlog": {
			"protocol server/internal/engine -net -os -io -log/slog",
			"these handlers show logs of the engine, which writes them",
		},
		"server/internal/pubsub": {
			"protocol server/internal/engine server/internal/glob server/internal/subscription -net -os -io -log/slog",
			"these handlers change subscriptions: the engine delivers messages",
		},
		"server/internal/scripting": {
			"protocol server/internal/keyspace server/rdb server/internal/script server/internal/luaconv server/internal/command server/internal/engine server/internal/glob server/internal/version " +
				"github.com/yuin/gopher-lua",
			"scripts call commands through the engine, as clients do",
		},
		"server": {
			"protocol server/archive server/internal/keyspace server/rdb " +
				"server/internal/admin server/internal/command server/internal/commandlog server/internal/config server/internal/engine server/internal/forward server/internal/pubsub server/internal/replication server/internal/scripting server/internal/stream server/internal/subscription server/internal/transport github.com/tidwall/redcon",
			"the server puts the parts together, and is what an embedding program imports",
		},
		"server/console": {
			"protocol server github.com/VictoriaMetrics/metrics github.com/a-h/templ",
			"the console is a client of the server, as a program that embeds both",
		},
		"server/servertest": {"server", "tests drive the server as any program does, through what it exports"},
		"server/migrate": {
			"protocol server server/archive server/internal/address server/internal/engine server/internal/keyslot server/internal/keyspace server/internal/psync server/rdb zset github.com/redis/go-redis/v9",
			"a move is a client of two servers: it uses the parts of a server that need none, and no other package imports go-redis",
		},
		"cmd/zsetd": {"protocol server server/archive server/console server/migrate server/rdb snapshot github.com/schollz/progressbar/v3 golang.org/x/term", "the command holds no logic: what it could do, an embedding program must be able to do"},
	}
}

func TestImports(t *testing.T) {
	rerun.Skip(t)
	cmd := exec.Command("go", "list", "-pgo=off", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
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
