package compiler_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/lua"

	"github.com/zsetd/zsetd/server/internal/lua/compiler"
)

func Example() {
	vm := lua.New()
	var compiler compiler.Compiler
	for _, source := range []string{
		"local n = 0 for i = 1, 4 do n = n + i end return n",
		"local n = = 1",
	} {
		proto, err := compiler.Compile(source, "user_script", 0, func() bool { return false })
		if err != nil {
			fmt.Println(err)
			continue
		}
		result, _ := vm.Call1(lua.NewClosure(proto).Value())
		fmt.Println(lua.Display(result))
	}
	// Output:
	// 10
	// user_script:1: unexpected symbol near '='
}
