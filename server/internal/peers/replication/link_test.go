package replication

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/zsetd/zsetd/server/internal/peers/psync"
)

// TestFailureOf checks that the log names a refused password and a timeout.
func TestFailureOf(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{&psync.RefusedError{Step: "AUTH", Reply: "WRONGPASS"}, "Unable to AUTH to MASTER"},
		{&psync.RefusedError{Step: "PSYNC", Reply: "LOADING"}, "no link to the primary"},
		{fmt.Errorf("PING: %w", os.ErrDeadlineExceeded), "Timeout connecting to the MASTER"},
		{errors.New("refused"), "no link to the primary"},
	} {
		if got := failureOf(test.err); got != test.want {
			t.Errorf("%v: %q", test.err, got)
		}
	}
}
