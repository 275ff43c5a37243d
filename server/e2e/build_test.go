package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// binary is zsetd, built once.
var binary struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// TestMain runs the tests and removes what they have built.
func TestMain(m *testing.M) {
	status := m.Run()
	if binary.dir != "" {
		os.RemoveAll(binary.dir)
	}
	os.Exit(status)
}

// build builds zsetd as make build does, and returns its path.
func build(t *testing.T) string {
	t.Helper()
	binary.once.Do(func() {
		if binary.dir, binary.err = os.MkdirTemp("", "zsetd-e2e-"); binary.err != nil {
			return
		}
		binary.path = filepath.Join(binary.dir, "zsetd")
		cmd := exec.Command("go", "build", "-o", binary.path, "./cmd/zsetd")
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			binary.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if binary.err != nil {
		t.Fatal(binary.err)
	}
	return binary.path
}
