package journal_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/values/journal"
)

func Example() {
	var log journal.Log
	log.Put("field")
	log.Text("value")
	log.Remove("other")

	o := journal.Operands{Rest: log.Ops}
	for len(o.Rest) > 0 {
		op := o.Rest[0]
		o.Rest = o.Rest[1:]
		switch op {
		case journal.OpPut:
			fmt.Printf("put %s %s\n", o.Text(), o.Text())
		case journal.OpRemove:
			fmt.Printf("remove %s\n", o.Text())
		}
	}
	fmt.Println(log.Count, o.Failed)
	// Output:
	// put field value
	// remove other
	// 2 false
}
