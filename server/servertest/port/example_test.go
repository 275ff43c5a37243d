package port_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/port"
)

func ExampleFree() {
	number, err := port.Free()
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+number) // as another program does
	fmt.Println(err)
	l.Close()
	// Output: <nil>
}

// TestFree checks that ports are free, different, and not those of listeners on port 0.
func TestFree(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		number, err := port.Free()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:"+number)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if seen[number] {
			t.Errorf("port %s twice", number)
		}
		seen[number] = true
	}
}
