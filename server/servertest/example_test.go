package servertest_test

import (
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest"
)

func ExampleRun() {
	// A test of a program that keeps its sessions in Redis for half an hour.
	_ = func(t *testing.T) {
		srv := servertest.Run(t)
		// The program would connect to srv.Addr(), or through srv.Dialer().
		srv.Must("SET", "session:42", "ada", "EX", 1800)

		srv.Advance(time.Hour)
		if got := srv.Must("GET", "session:42"); got != nil {
			t.Errorf("an hour later the session is still there: %v", got)
		}
	}
}
