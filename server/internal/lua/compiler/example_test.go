package compiler_test

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/zsetd/zsetd/server/internal/lua/compiler"
)

func Example() {
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer L.Close()
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
		L.Push(L.NewFunctionFromProto(proto))
		L.Call(0, 1)
		fmt.Println(L.Get(-1))
	}
	// Output:
	// 10
	// user_script:1: unexpected symbol near '='
}
