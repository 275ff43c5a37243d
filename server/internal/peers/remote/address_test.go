package remote_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/peers/remote"
)

func ExampleParseAddress() {
	a, err := remote.ParseAddress("rediss://ann:p%40ss@10.0.0.1,10.0.0.2:7000?cluster")
	fmt.Println(a.Addrs, a.User, a.Password, a.Secure, a.Cluster, err)
	fmt.Println(a)
	// Output:
	// [10.0.0.1:6379 10.0.0.2:7000] ann p@ss true true <nil>
	// rediss://10.0.0.1:6379,10.0.0.2:7000?cluster
}
