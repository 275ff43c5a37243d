package luaconv_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/luaconv"
)

func Example() {
	f, _ := luaconv.ParseNumber(" 010 ")
	fmt.Println(f, luaconv.NumberString(0.1+0.2), luaconv.ToInt(-2.9))
	_, ok := luaconv.ParseNumber("1_000")
	fmt.Println(ok)
	// Output:
	// 10 0.3 -2
	// false
}
