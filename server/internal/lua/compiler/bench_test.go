package compiler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/lua"
)

// sample is a script of a usual kind.
type sample struct{ name, source string }

// samples returns the files of testdata.
func samples(t testing.TB) []sample {
	t.Helper()
	files, err := filepath.Glob("testdata/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	var list []sample
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, sample{strings.TrimSuffix(filepath.Base(name), ".lua"), string(b)})
	}
	return list
}

func never() bool { return false }

// size returns the number of instructions of a function and those within.
func size(p *lua.Proto) int {
	n := len(p.Code)
	for _, inner := range p.Protos {
		n += size(inner)
	}
	return n
}

func BenchmarkCompile(b *testing.B) {
	var c Compiler
	for _, s := range samples(b) {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := c.Compile(s.source, "user_script", 0, never); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
