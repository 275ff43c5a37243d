package protocol_test

import (
	"fmt"

	"github.com/zsetd/zsetd/protocol"
)

func ExampleReader() {
	var r protocol.Reader
	input := "*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\nPING\r\n*1\r\n$4\r\nQU"
	r.Filled(copy(r.Space(), input))
	for {
		args, ok, err := r.Next(nil)
		if !ok {
			fmt.Println("more to come:", err == nil)
			return
		}
		fmt.Printf("%q\n", args)
	}
	// Output:
	// ["ECHO" "hello"]
	// ["PING"]
	// more to come: true
}

func ExampleReply() {
	for _, version := range []int{2, 3} {
		r := protocol.NewReply(nil, version)
		r.Map(1)
		r.BulkString("score")
		r.Double(1.5)
		fmt.Printf("%q\n", r.Bytes())
	}
	// Output:
	// "*2\r\n$5\r\nscore\r\n$3\r\n1.5\r\n"
	// "%1\r\n$5\r\nscore\r\n,1.5\r\n"
}

func ExampleArgs() {
	a := protocol.NewArgs([][]byte{[]byte("10"), []byte("LIMIT"), []byte("x")})
	n := a.Int()
	limit := int64(-1)
	if a.Is("LIMIT") {
		limit = a.Int()
	}
	fmt.Println(n, limit, a.Err())
	// Output: 10 0 ERR value is not an integer or out of range
}

func ExampleDecode() {
	v, n, err := protocol.Decode([]byte("*2\r\n:1\r\n$1\r\na\r\n+OK\r\n"))
	fmt.Println(v, n, err)
	// Output: [1 a] 15 <nil>
}

func ExampleCompile() {
	c, err := protocol.Compile(protocol.Facts{
		Name: "zadd", Arity: -4, Flags: "write denyoom fast", Keys: "1 RW update",
		Group: "sorted-set", Since: "1.2.0", Syntax: "key [NX|XX] score member [score member ...]",
	})
	fmt.Println(c.Categories().Names(), err)
	// Output: [write sortedset fast] <nil>
}
