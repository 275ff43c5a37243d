package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the source of package mutant
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

//go:embed mutant.go.txt
var mutantSource []byte

// tree is a copy of the source with the places in it.
type tree struct {
	dir    string // has src, the copy, and bin, the compiled tests
	module string
	places []place
}

// sourceHash returns a hash of the files of the repository.
func sourceHash(root string) (files []string, hash string, err error) {
	out, err := command(root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, "", err
	}
	h := sha256.New()
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, but not yet in the index
		}
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(b), b)
		files = append(files, name)
	}
	return files, hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// copyTree copies files to dir/src.
func copyTree(root, dir string, files []string) error {
	for _, name := range files {
		from, err := os.Open(filepath.Join(root, name))
		if err != nil {
			return err
		}
		err = copyFile(from, filepath.Join(dir, "src", name))
		from.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from *os.File, name string) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode())
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// load parses the packages of the programs in the copy: those that only tests import are left out.
func (t *tree) load(src string) ([]*packages.Package, error) {
	out, err := command(src, "go", "list", "-m")
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, out)
	}
	t.module = strings.TrimSpace(string(out))
	roots, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps,
		Dir: src,
		Env: environment(),
	}, "./...")
	if err != nil {
		return nil, err
	}
	program := map[string]*packages.Package{}
	var visit func(p *packages.Package)
	visit = func(p *packages.Package) {
		if program[p.PkgPath] == nil && strings.HasPrefix(p.PkgPath, t.module+"/") {
			program[p.PkgPath] = p
			for _, i := range p.Imports {
				visit(i)
			}
		}
	}
	for _, p := range roots {
		if p.Name == "main" {
			visit(p)
		}
	}
	for _, p := range program {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("package %s: %v", p.PkgPath, p.Errors[0])
		}
	}
	return slices.SortedFunc(maps.Values(program), func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) }), nil
}

// newTree copies the source to dir, and inserts the faults.
func newTree(root, dir string, files []string) (*tree, error) {
	t := &tree{dir: dir}
	src := filepath.Join(dir, "src")
	if err := copyTree(root, dir, files); err != nil {
		return nil, err
	}
	loaded, err := t.load(src)
	if err != nil {
		return nil, err
	}
	mutant := filepath.Join(src, "mutant", "mutant.go")
	if err := os.MkdirAll(filepath.Dir(mutant), 0o777); err != nil {
		return nil, err
	}
	if err := os.WriteFile(mutant, mutantSource, 0o666); err != nil {
		return nil, err
	}
	rejected := map[string]bool{} // lines of files whose places the compiler does not accept
	for range 10 {
		t.places = nil
		if err := t.insert(loaded, src, rejected); err != nil {
			return nil, err
		}
		output, err := command(src, "go", "build", "-gcflags=-e", "./...")
		if err == nil {
			return t, nil
		}
		before := len(rejected)
		for _, m := range regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`).FindAllStringSubmatch(string(output), -1) {
			rejected[filepath.Clean(m[1])+":"+m[2]] = true
		}
		if len(rejected) == before {
			return nil, fmt.Errorf("the copy does not compile: %w\n%s", err, output)
		}
	}
	return nil, errors.New("the copy does not compile after ten attempts")
}

// insert writes the files of the packages with their places, but those on rejected lines.
func (t *tree) insert(loaded []*packages.Package, src string, rejected map[string]bool) error {
	for _, p := range loaded {
		for i, f := range p.Syntax {
			if ast.IsGenerated(f) {
				continue
			}
			rel, err := filepath.Rel(src, p.CompiledGoFiles[i])
			if err != nil || strings.HasPrefix(rel, "..") {
				continue // a file that the compiler's cache has
			}
			source, err := original(p.CompiledGoFiles[i])
			if err != nil {
				return err
			}
			in := &instrumenter{file: f, name: filepath.ToSlash(rel), source: source, fset: p.Fset, pkg: p.Types, info: p.TypesInfo, first: len(t.places), rejected: rejected}
			if err := os.WriteFile(p.CompiledGoFiles[i], in.instrument(t.module+"/mutant"), 0o666); err != nil {
				return err
			}
			t.places = append(t.places, in.places...)
		}
	}
	return nil
}

// original returns the content of a file of the copy before any place was inserted, and
// keeps it beside the file.
func original(name string) ([]byte, error) {
	kept := name + ".original"
	b, err := os.ReadFile(kept)
	if !errors.Is(err, os.ErrNotExist) {
		return b, err
	}
	if b, err = os.ReadFile(name); err != nil {
		return nil, err
	}
	return b, os.WriteFile(kept, b, 0o666)
}

// compile compiles the tests of the packages of all modules whose names match, and returns
// their programs with the directories in which they run.
func (t *tree) compile(files []string, only *regexp.Regexp) (binaries []binary, err error) {
	var modules []string
	for _, name := range files {
		if path.Base(name) == "go.mod" && !strings.Contains(name, "testdata/") {
			modules = append(modules, filepath.Join(t.dir, "src", path.Dir(name)))
		}
	}
	for _, mod := range modules {
		out, err := command(mod, "go", "list", "-f", `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`, "./...")
		if err != nil {
			return nil, fmt.Errorf("go list: %w\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			pkg, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
			if !ok || strings.HasSuffix(pkg, "/mutate") {
				continue
			}
			if !only.MatchString(strings.TrimPrefix(pkg, t.module+"/")) {
				continue
			}
			b := binary{Name: strings.TrimPrefix(pkg, t.module+"/"), Dir: dir, Program: filepath.Join(t.dir, "bin", strconv.Itoa(len(binaries))+".test")}
			if out, err := command(mod, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", b.Program, pkg); err != nil {
				return nil, fmt.Errorf("compile the tests of %s: %w\n%s", pkg, err, out)
			}
			binaries = append(binaries, b)
		}
	}
	return binaries, nil
}

// environment returns the environment of the go tool and of tests.
func environment(more ...string) []string {
	return append(append(os.Environ(), "GOFLAGS=-pgo=off", "CGO_ENABLED=0"), more...)
}

func command(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = environment()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.Bytes(), err
}

func writeJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o666)
}

func readJSON(name string, v any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
