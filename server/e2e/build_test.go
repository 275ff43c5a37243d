package e2e

import (
	"os"
	"testing"

	"github.com/zsetd/zsetd/server/e2e/program"
)

// binary is zsetd, built once.
var binary program.Zsetd

// TestMain runs the tests and removes what they have built.
func TestMain(m *testing.M) {
	status := m.Run()
	binary.Remove()
	os.Exit(status)
}
