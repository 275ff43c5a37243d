package remote_test

import (
	"fmt"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/peers/remote"
)

// A command of zsetd goes to a server that has it as a function, too.
func Example() {
	spec, err := protocol.Compile(protocol.Facts{Name: "zclaim", Arity: 2, Flags: "write", Keys: "1 RW update", Group: "sorted-set", Syntax: "key:key"})
	if err != nil {
		panic(err)
	}
	argv := [][]byte{[]byte("ZCLAIM"), []byte("jobs")}
	r := remote.Request{Slot: -1}
	r.Add(spec, argv, spec.AppendHashed(nil, argv), true)
	fmt.Println(r.Slot)
	fmt.Printf("%q\n%q\n", r.Commands, r.Calls)
	// Output:
	// 9631
	// ["*2\r\n$6\r\nZCLAIM\r\n$4\r\njobs\r\n"]
	// ["*4\r\n$5\r\nFCALL\r\n$6\r\nzclaim\r\n$1\r\n1\r\n$4\r\njobs\r\n"]
}
