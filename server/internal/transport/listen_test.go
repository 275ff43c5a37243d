package transport

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestUnixSocketFile checks that a unix socket has its permissions from the first instant,
// that a stale socket is replaced, and that a socket with a listener and a regular file
// are not.
func TestUnixSocketFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions of sockets differ on this system")
	}
	dir, err := os.MkdirTemp("", "socket") // not t.TempDir: the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	mode := func() os.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for _, perm := range []string{"700", "770", "777", "600"} {
		l, err := listenUnix(path, perm)
		if err != nil {
			t.Fatal(err)
		}
		if got := mode().String(); got != map[string]string{
			"700": "-rwx------", "770": "-rwxrwx---", "777": "-rwxrwxrwx", "600": "-rw-------",
		}[perm] {
			t.Errorf("unixsocketperm %s: %s", perm, got)
		}
		if _, err := listenUnix(path, perm); err == nil || !strings.Contains(err.Error(), "another process listens on it") {
			t.Errorf("a socket with a listener is replaced: %v", err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false) // as of a server that was killed
		l.Close()
	}
	withPrivateUmask(func() {
		l, err := net.Listen("unix", path+"2")
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		if info, err := os.Stat(path + "2"); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may connect before the permissions are set: %v, %v", info.Mode(), err)
		}
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path, "0"); err == nil {
		t.Error("a regular file is replaced by a socket")
	}
}
