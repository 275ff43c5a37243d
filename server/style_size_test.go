package server_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/rerun"
)

// Limits of what is read in one sitting. A regular package may be larger: command has a
// file for each family, engine one for each part.
const (
	maxFileLines    = 1000
	maxPackageLines = 6300
	maxRegularLines = 11_000
	maxFields       = 25
)

// TestStyleSizes checks that files, packages and structs are small enough to be read.
func TestStyleSizes(t *testing.T) {
	rerun.Skip(t)
	packages := map[string]int{}
	files(t, func(name string, content []byte) {
		if path.Ext(name) != ".go" {
			return
		}
		n := bytes.Count(content, []byte("\n"))
		if n > maxFileLines {
			t.Errorf("%s has %d lines: split it into files of at most %d, one for each noun", name, n, maxFileLines)
		}
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		packages[path.Dir(name)] += n
		f, err := parser.ParseFile(token.NewFileSet(), name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		for _, complaint := range largeStructs(f) {
			t.Errorf("%s: %s", name, complaint)
		}
	})
	for dir, n := range packages {
		limit := maxPackageLines
		if dir == "server/internal/command" || dir == "server/internal/engine" {
			limit = maxRegularLines
		}
		if n > limit {
			t.Errorf("%s has %d lines without tests: at most %d are readable. Move a part with one reason to exist below it", dir, n, limit)
		}
	}
}

// largeStructs returns a complaint for each struct with too many fields. An embedded
// struct is one field. The values of the parameters are a list, whose length is theirs.
func largeStructs(f *ast.File) (list []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		t, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		s, ok := t.Type.(*ast.StructType)
		if !ok || f.Name.Name == "config" && t.Name.Name == "Settings" {
			return true
		}
		fields := 0
		for _, x := range s.Fields.List {
			fields += max(1, len(x.Names))
		}
		if fields > maxFields {
			list = append(list, fmt.Sprintf("type %s has %d fields: more than %d are two things. Embed named parts", t.Name.Name, fields, maxFields))
		}
		return true
	})
	return list
}

func TestStyleSizeRules(t *testing.T) {
	source := func(fields int) string {
		return "package x\ntype part struct{ a, b int }\ntype whole struct {\n\tpart\n" + strings.Repeat("\tx, y int\n", fields/2) + "}\n"
	}
	for fields, want := range map[int]int{24: 0, 26: 1} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", source(fields), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := largeStructs(f); len(got) != want {
			t.Errorf("%d fields and a part: %q", fields, got)
		}
	}
}
