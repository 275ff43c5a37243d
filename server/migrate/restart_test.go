package migrate

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/port"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// serveFile serves a data file at an address until stop is called.
func serveFile(t *testing.T, path, addr string) (stop func()) {
	t.Helper()
	srv, err := server.New(server.Options{File: path, Config: map[string]string{"repl-diskless-sync-delay": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	wait.Until(t, "the address is free", func() bool {
		l, err = net.Listen("tcp", addr)
		return err == nil
	})
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(l) }) // Close ends it
	stop = sync.OnceFunc(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// TestSourceRestarts checks that a move goes on when its source restarts in the middle, whether
// the source continues its stream or not, and that the target has what the source has.
func TestSourceRestarts(t *testing.T) {
	for _, kind := range []string{"zsetd", "redis-server", "ZSETD_JUDGE_REDIS8", "ZSETD_JUDGE_VALKEY9"} {
		t.Run(kind, func(t *testing.T) {
			free, err := port.Free()
			if err != nil {
				t.Fatal(err)
			}
			addr, dir := net.JoinHostPort("127.0.0.1", free), t.TempDir()
			var stop func()
			start := func() {
				switch kind {
				case "zsetd":
					stop = serveFile(t, filepath.Join(dir, "zsetd.db"), addr)
					return
				case "redis-server":
					path, _ := exec.LookPath("redis-server")
					startProgramAt(t, path, free, dir)
				default:
					startProgramAt(t, os.Getenv(kind), free, dir)
				}
				stop = func() { _ = clientOf(t, addr).Do(t.Context(), "SHUTDOWN", "SAVE").Err() } // it has no reply
			}
			start()
			target := servertest.Run(t)
			here, there := clientOf(t, addr), clientOf(t, target.Addr())
			must(t, here, "RPUSH", "list", "a")
			must(t, here, "ZADD", "z", 1, "a")
			f := follow(t, moveOf(t, addr, target.Addr()))
			must(t, here, "RPUSH", "list", "b")
			stop()
			wait.Until(t, "the source has stopped", func() bool {
				c, err := net.Dial("tcp", addr)
				if err == nil {
					c.Close()
				}
				return err != nil
			})
			start()
			here = clientOf(t, addr)
			wait.Until(t, "the source is back", func() bool { return here.RPush(t.Context(), "list", "c").Err() == nil })
			wait.Until(t, "the target follows", func() bool { return text(t, there, "list") == "[a b c]" })
			must(t, here, "RPUSH", "list", "d")
			f.cutOver()
			if got, want := text(t, there, "list")+text(t, there, "z"), "[a b c d]"+text(t, here, "z"); got != want {
				t.Errorf("the target has %s, want %s", got, want)
			}
		})
	}
}
