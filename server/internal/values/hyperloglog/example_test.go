package hyperloglog_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/values/hyperloglog"
)

func Example() {
	visitors := hyperloglog.New()
	for _, who := range []string{"ann", "ben", "ann", "cid"} {
		register, count := hyperloglog.RegisterOf([]byte(who))
		visitors, _, _ = hyperloglog.Raise(visitors, register, count, 3000)
	}
	n, _ := hyperloglog.Count(visitors)
	fmt.Println(n)
	// Output: 3
}
