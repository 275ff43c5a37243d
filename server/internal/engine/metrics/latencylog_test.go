package metrics_test

import (
	"fmt"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

func ExampleLatencyLog() {
	var l metrics.LatencyLog
	at := time.Unix(1_000_000_000, 0)
	l.Add("command", at, 12*time.Millisecond)
	l.Add("command", at.Add(time.Second/2), 30*time.Millisecond)
	l.Add("command", at.Add(time.Second), 7*time.Millisecond)
	fmt.Println(l.Events["command"].Samples, l.Events["command"].Max)
	// Output: [{1000000000 30} {1000000001 7}] 30
}
