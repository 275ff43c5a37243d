package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// root returns the directory of the module of zsetd.
func root() (string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/zsetd/zsetd").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	return strings.TrimSpace(string(dir)), nil
}

// Build builds zsetd in dir as make build does, with the race detector if asked for, and
// returns its path.
func Build(dir string, race bool) (path string, err error) {
	path = filepath.Join(dir, "zsetd")
	args, cgo := []string{"build", "-o", path}, "0"
	if race {
		args, cgo = append(args, "-race"), "1"
	}
	cmd := exec.Command("go", append(args, "./cmd/zsetd")...)
	if cmd.Dir, err = root(); err != nil {
		return "", err
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
}

// Zsetd is the zsetd of the tests of a package, whose TestMain calls Remove.
type Zsetd struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// Path returns the path of zsetd, which the first call builds. It may be called concurrently.
func (z *Zsetd) Path(t testing.TB) string {
	t.Helper()
	z.once.Do(func() {
		if z.dir, z.err = os.MkdirTemp("", "zsetd-e2e-"); z.err == nil {
			z.path, z.err = Build(z.dir, false)
		}
	})
	if z.err != nil {
		t.Fatal(z.err)
	}
	return z.path
}

// Remove removes what Path has built.
func (z *Zsetd) Remove() {
	if z.dir != "" {
		os.RemoveAll(z.dir)
	}
}

// NodeModules returns the directory of the Node.js libraries that .ci/clients has installed,
// or skips the test.
func NodeModules(t testing.TB) string {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Skip(err)
		}
		cache = filepath.Join(home, ".cache")
	}
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(dir, "server", "e2e", "testdata", "node", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "zsetd-clients")
	if installed, _ := os.ReadFile(filepath.Join(folder, "package-lock.json")); !bytes.Equal(installed, want) {
		t.Skip("the Node.js libraries are not installed: run .ci/clients, which needs npm")
	}
	return filepath.Join(folder, "node_modules")
}
