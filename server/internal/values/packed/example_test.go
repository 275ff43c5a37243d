package packed_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/values/packed"
)

func Example() {
	// A small hash.
	var pairs []byte
	for _, text := range []string{"name", "ada", "born", "1815"} {
		pairs = packed.AppendText(pairs, text)
	}
	at, end := packed.FindField(pairs, "born")
	value, _ := packed.ReadText(pairs, at)
	fmt.Printf("%s, %d bytes\n", value, len(pairs))
	pairs = packed.SetPair(pairs, at, end, []byte("born"), []byte("10.12."))
	fmt.Printf("%q\n", pairs)

	// A list of one element, read from its end.
	element := []byte("last")
	list := make([]byte, packed.EntrySize(len(element)))
	packed.PutEntry(list, element)
	last, size := packed.LastEntry(list)
	fmt.Printf("%s, %d bytes\n", last, size)
	// Output:
	// 1815, 19 bytes
	// "\x04name\x03ada\x04born\x0610.12."
	// last, 6 bytes
}
