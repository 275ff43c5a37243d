package conv_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/lua/conv"
)

func Example() {
	f, _ := conv.ParseNumber(" 010 ")
	fmt.Println(f, conv.NumberString(0.1+0.2), conv.ToInt(-2.9))
	_, ok := conv.ParseNumber("1_000")
	fmt.Println(ok)
	// Output:
	// 10 0.3 -2
	// false
}
