package script

import (
	"os"
	"testing"

	"github.com/zsetd/zsetd/server/internal/lua"
)

// BenchmarkRun runs compiled scripts that call no command.
func BenchmarkRun(b *testing.B) {
	for _, name := range []string{"closures", "arithmetic"} {
		b.Run(name, func(b *testing.B) {
			source, err := os.ReadFile("../compiler/testdata/" + name + ".lua")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			st := machine()
			fn, err := st.Compile(string(source), "user_script")
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				if _, failed := st.Call(fn); failed != nil {
					b.Fatal(lua.Display(failed.Value))
				}
			}
		})
	}
}
