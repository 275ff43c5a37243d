package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	entered, err := parse([]byte(`github.com/zsetd/zsetd/zset/set.go:12:	*Set.Add	80.0%
github.com/zsetd/zsetd/server/internal/engine/call.go:7:	*Call.OK	100.0%
github.com/zsetd/zsetd/server/internal/engine/turn.go:9:	*Engine.begin	33.3%
github.com/zsetd/zsetd/server/internal/engine/call.go:3:	*Call.End	66.7%
github.com/zsetd/zsetd/server/internal/engine/call.go:9:	*Call.Help	0.0%
github.com/zsetd/zsetd/server/e2e/way/main.go:9:	run	50.0%
total	(statements)	3.0%
`))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	order := []string{"github.com/zsetd/zsetd/zset", "github.com/zsetd/zsetd/server/internal/engine"}
	if err := report(&b, entered, order, false); err != nil {
		t.Fatal(err)
	}
	want := `server/internal/engine           3
                        call.go  2
                        turn.go  1
zset                             1
                        set.go   1
2 packages              3 files  4 functions
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if _, err := parse([]byte("a.go:1: f x%\n")); err == nil {
		t.Error("no error for a percentage that is no number")
	}
}
