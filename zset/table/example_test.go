package table_test

import (
	"fmt"

	"github.com/zsetd/zsetd/zset/table"
)

func Example() {
	var t table.Table[int]
	t.Set("one", 1)
	t.Set("two", 2)
	*t.Ref("two")++
	fmt.Println(t.Get("two"))
	fmt.Println(t.Get("three"))
	// Output:
	// 3 true
	// 0 false
}

// A scan is complete even though the table changes between its calls.
func ExampleTable_Scan() {
	var t table.Table[struct{}]
	for i := range 1000 {
		t.Set(fmt.Sprint("key ", i), struct{}{})
	}
	seen := map[string]bool{}
	for cursor := uint64(0); ; {
		cursor = t.Scan(cursor, 100, func(key string, _ struct{}) { seen[key] = true })
		if cursor == 0 {
			break
		}
		t.Set(fmt.Sprint("another ", cursor), struct{}{})
	}
	missed := 0
	for i := range 1000 {
		if !seen[fmt.Sprint("key ", i)] {
			missed++
		}
	}
	fmt.Println(missed, "missed")
	// Output: 0 missed
}
