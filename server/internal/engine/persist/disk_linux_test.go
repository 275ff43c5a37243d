package persist_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// alone runs a test, or a subtest, in a process of its own, and reports whether
// this is that process. Tests that change process-wide state, such as limits and
// descriptors, need it, because parallel tests would be affected.
func alone(t *testing.T) bool {
	t.Helper()
	const variable = "ZSETD_TEST_ALONE"
	switch os.Getenv(variable) {
	case t.Name():
		return true
	case "":
	default: // which must not start processes in turn
		t.Fatalf("this process is to run %s alone", os.Getenv(variable))
	}
	t.Parallel()
	var pattern []string // -test.run is matched element by element
	for _, element := range strings.Split(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(element)+"$")
	}
	cmd := osexec.Command(os.Args[0], "-test.run="+strings.Join(pattern, "/"), "-test.v", "-test.timeout=120s")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	out, err := cmd.CombinedOutput()
	ran := false
	for line := range strings.Lines(string(out)) {
		name, ok := strings.CutPrefix(line, "=== RUN   ")
		if name = strings.TrimSpace(name); !ok {
			continue
		}
		ran = ran || name == t.Name()
		if !strings.HasPrefix(name+"/", t.Name()+"/") && !strings.HasPrefix(t.Name()+"/", name+"/") {
			t.Errorf("the process that was to run %s alone also ran %s", t.Name(), name)
		}
	}
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case !ran:
		t.Errorf("the process that was to run %s has not:\n%s", t.Name(), out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()+" ("):
		t.Skipf("in its own process:\n%s", out)
	}
	return false
}

// limitFiles sets a limit of the size of files of this process, until mend is called.
// Writes beyond it fail with EFBIG.
func limitFiles(t *testing.T, size uint64) (mend func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	mend = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(mend)
	return mend
}

// breakFile replaces the descriptor of the file that the keeper has open by a device:
// with /dev/full all writes fail; with /dev/null written data are
// lost, and fsync fails. The errors are real errors of the system. mend
// puts the file back, unless the keeper has closed the device meanwhile. The
// test must run alone: a descriptor that the keeper closes may be another test's
// a moment later.
func breakFile(t *testing.T, path, device string) (mend func()) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	opened := func(fd int) string {
		to, _ := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
		return to
	}
	fd := -1
	for _, e := range fds {
		if n, err := strconv.Atoi(e.Name()); err == nil && opened(n) == path {
			fd = n
		}
	}
	if fd < 0 {
		t.Fatal("no descriptor of this process has the file open")
	}
	saved, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	done := false
	finish := func(mend bool) {
		if done {
			return
		}
		done = true
		if mend && opened(fd) == device {
			if err := syscall.Dup3(saved, fd, syscall.O_CLOEXEC); err != nil {
				t.Error(err)
			}
		}
		if err := syscall.Close(saved); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { finish(false) })
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Dup3(int(f.Fd()), fd, syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	// After a failed fsync the keeper closes the file, which ends its lock: the copy has it, too.
	if device == "/dev/null" {
		if err := syscall.Flock(saved, syscall.LOCK_UN); err != nil {
			t.Fatal(err)
		}
	}
	return func() { finish(true) }
}

// tmpPath is the path of a file as the system names it.
func tmpPath(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "k.db")
}

// savedAs checks what the file holds, of a server that has it open.
func savedAs(t *testing.T, path, key, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(other, b, 0o600); err != nil {
		t.Fatal(err)
	}
	srv, err := enginetest.OpenKeep(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if got := enginetest.Say(srv, "GET "+key); got != want {
		t.Errorf("the file has %s for %s, want %s", got, key, want)
	}
}

func TestNoRoom(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, stop := range []string{"yes", "no"} {
		t.Run(stop, func(t *testing.T) {
			path := tmpPath(t)
			srv := enginetest.Keep(t, path, map[string]string{"save": "1 1", "stop-writes-on-bgsave-error": stop})
			enginetest.Must(t, srv, "SET a 1", "SAVE")
			before, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			mend := limitFiles(t, 8192) // only the meta pages fit
			enginetest.Must(t, srv, "SET a 2")
			wait.Until(t, "saving fails", func() bool { return enginetest.Info(t, srv, "rdb_last_bgsave_status") == "err" })
			if e := enginetest.Info(t, srv, "snapshot_last_error"); !strings.Contains(e, "file too large") || !strings.Contains(e, path) {
				t.Error(e)
			}
			want := "OK"
			if stop == "yes" {
				want = engine.ErrNotSaved
			}
			enginetest.Must(t, srv, "SET a 3 -> "+want, "GET x -> <nil>", "SAVE -> ERR")
			if stop == "yes" {
				enginetest.Must(t, srv, "PING -> "+engine.ErrNotSaved, "CONFIG SET stop-writes-on-bgsave-error no", "SET a 3 -> OK", "CONFIG SET stop-writes-on-bgsave-error yes")
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := srv.Do(ctx, "SHUTDOWN"); err == nil || !strings.HasPrefix(err.Error(), "ERR Errors trying to SHUTDOWN") {
				t.Error(err)
			}
			enginetest.Must(t, srv, "BGSAVE -> Background saving started") // fails, and says so
			wait.Until(t, "it fails", func() bool { return enginetest.Info(t, srv, "rdb_bgsave_in_progress") == "0" })
			mend()
			wait.Until(t, "saving succeeds", func() bool { return enginetest.Info(t, srv, "rdb_last_bgsave_status") == "ok" })
			enginetest.Rest(t, srv)
			after, err := os.Stat(path)
			if err != nil || !os.SameFile(before, after) {
				t.Error("the file is another: ", err)
			}
			enginetest.Must(t, srv, "SET b 1 -> OK", "SAVE -> OK")
			savedAs(t, path, "a", "3")
			srv = enginetest.Again(t, srv, nil)
			enginetest.Must(t, srv, "GET a -> 3", "GET b -> 1")
		})
	}
}

// A signal stops a server that cannot save only if shutdown-on-sigterm, or
// shutdown-on-sigint, has the word force.
func TestSignalWithoutRoom(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, interrupt := range []bool{false, true} {
		name := map[bool]string{false: "shutdown-on-sigterm", true: "shutdown-on-sigint"}[interrupt]
		for _, test := range []struct {
			save, flags string
			stops       bool
			want        string
		}{
			{"3600 1", "default", false, "2"},
			{"3600 1", "now", false, "2"},
			{"3600 1", "force", true, "1"},
			{"3600 1", "nosave", true, "1"},
			{"", "default", true, "1"},
			{"", "save", false, "2"},
			{"", "save now force", true, "1"},
		} {
			path := tmpPath(t)
			srv := enginetest.Keep(t, path, map[string]string{"save": test.save, name: test.flags})
			enginetest.Must(t, srv, "SET a 1", "SAVE", "SET a 2", "RPUSH l "+strings.Repeat("x", 100_000))
			mend := limitFiles(t, 8192)
			err := srv.Signaled(interrupt)
			if stops := err == nil; stops != test.stops {
				t.Errorf("save %q, %s %q: Signaled returns %v", test.save, name, test.flags, err)
			}
			if !test.stops {
				enginetest.Must(t, srv, "GET a -> 2")
				mend()
				if err := srv.Signaled(interrupt); err != nil {
					t.Errorf("save %q, %s %q: with room again, Signaled returns %v", test.save, name, test.flags, err)
				}
			}
			if err := srv.Shutdown(t.Context()); err != nil {
				t.Errorf("save %q, %s %q: Shutdown returns %v", test.save, name, test.flags, err)
			}
			mend()
			srv = enginetest.Keep(t, path, nil)
			if got := enginetest.Say(srv, "GET a"); got != test.want {
				t.Errorf("save %q, %s %q: a is %s afterwards, want %s", test.save, name, test.flags, got, test.want)
			}
			srv.Close()
		}
	}
}

// TestFailingBGSAVE checks that a failed BGSAVE does not block the next.
func TestFailingBGSAVE(t *testing.T) {
	if !alone(t) {
		return
	}
	path := tmpPath(t)
	srv := enginetest.Keep(t, path, map[string]string{"save": ""})
	enginetest.Must(t, srv, "SET a 1", "SAVE")
	mend := limitFiles(t, 8192)
	for i := range 4 {
		enginetest.Must(t, srv, fmt.Sprint("SET a ", i), "BGSAVE -> Background saving started")
		wait.Until(t, "it fails", func() bool { return enginetest.Info(t, srv, "rdb_bgsave_in_progress") == "0" })
		if status := enginetest.Info(t, srv, "rdb_last_bgsave_status"); status != "err" {
			t.Fatal(status)
		}
	}
	mend()
	enginetest.Must(t, srv, "SET a 5", "SAVE -> OK")
	if status := enginetest.Info(t, srv, "rdb_last_bgsave_status"); status != "ok" {
		t.Fatal(status)
	}
	savedAs(t, path, "a", "5")
}

// TestNoRoomInAlways checks that with appendfsync always a client receives no reply to
// changes that could not be saved: its connection is closed. Later writes are refused, or
// run without waiting for the disk, as configured.
func TestNoRoomInAlways(t *testing.T) {
	for _, stop := range []string{"yes", "no"} {
		for _, device := range []string{"/dev/full", "/dev/null"} {
			t.Run(stop+device, func(t *testing.T) {
				if !alone(t) {
					return
				}
				path := tmpPath(t)
				srv := enginetest.Keep(t, path, map[string]string{"appendonly": "yes", "appendfsync": "always", "stop-writes-on-bgsave-error": stop})
				enginetest.Must(t, srv, "SET a 1")
				n := enginetest.Saves(t, srv)
				mend := breakFile(t, path, device)
				c, other := enginetest.Pipe(t, srv), enginetest.Pipe(t, srv)
				c.Send("SET a 2\r\nGET a\r\n")
				if got := c.All(); got != "" {
					t.Errorf("the client got %q", got)
				}
				if device == "/dev/null" { // fsync failed: a new file is written, without intervention
					wait.Until(t, "a fresh file is there", func() bool { return enginetest.Info(t, srv, "rdb_last_bgsave_status") == "ok" })
					enginetest.Must(t, srv, "SET a 3")
					savedAs(t, path, "a", "3")
					if enginetest.Saves(t, srv) == n {
						t.Error("nothing was saved")
					}
					return // no repair is necessary: the keeper has closed the broken file
				}
				want := "OK"
				if stop == "yes" {
					want = "MISCONF"
				}
				other.Send("SET a 3\r\nGET a\r\n")
				if got := fmt.Sprint(other.Reply()); !strings.HasPrefix(got, want) {
					t.Errorf("after the failure: %v", got)
				}
				other.Reply()
				if stop == "no" { // without a limit the journal would use all memory
					srv.InTurn(func() { srv.Keeper.Limits.Pending = 100_000 })
					for range 300 {
						enginetest.Must(t, srv, "SET b "+strings.Repeat("x", 1000)+" -> OK")
					}
					if n := enginetest.Info(t, srv, "snapshot_pending_bytes"); len(n) > 6 {
						t.Errorf("%s bytes wait", n)
					}
				}
				mend()
				wait.Until(t, "saving succeeds", func() bool { return enginetest.Info(t, srv, "rdb_last_bgsave_status") == "ok" })
				enginetest.Must(t, srv, "SET c 3 -> OK")
				savedAs(t, path, "c", "3")
				want = "2"
				if stop == "no" {
					want = "3"
				}
				savedAs(t, path, "a", want)
			})
		}
	}
}

// TestAloneInAlways checks that the replies to a client depend on no other client with
// appendfsync always, whatever happens to the file: each write is confirmed, and is then in
// the file, or the connection ends and later writes are refused until the file is mended.
func TestAloneInAlways(t *testing.T) {
	aside := func(put func(path string) error) func(string) (func() error, error) {
		return func(path string) (func() error, error) {
			err := errors.Join(os.Rename(path, path+".old"), put(path))
			return func() error { return os.Remove(path) }, err
		}
	}
	once := func(disturb func(path string) error) func(string) (func() error, error) {
		return func(path string) (func() error, error) { return nil, disturb(path) }
	}
	for name, disturb := range map[string]func(path string) (mend func() error, err error){
		"nothing":     once(func(string) error { return nil }),
		"removed":     once(os.Remove),
		"moved":       once(func(path string) error { return os.Rename(path, path+".moved") }),
		"cut to 0":    once(func(path string) error { return os.Truncate(path, 0) }),
		"cut to half": once(func(path string) error { return os.Truncate(path, sizeOf(path)/2) }),
		"overwritten": once(func(path string) error { return overwrite(path, 0, 100) }),
		"longer":      once(func(path string) error { return os.Truncate(path, sizeOf(path)+8192) }),
		"touched":     once(func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }),
		"no rights":   once(func(path string) error { return os.Chmod(path, 0) }),
		"other folder": once(func(path string) error {
			return errors.Join(os.Rename(filepath.Dir(path), filepath.Dir(path)+".moved"), os.Mkdir(filepath.Dir(path), 0o700))
		}),
		"a file":   aside(func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) }),
		"a folder": aside(func(path string) error { return os.Mkdir(path, 0o700) }),
		"a pipe":   aside(func(path string) error { return syscall.Mkfifo(path, 0o600) }),
		"no folder": func(path string) (func() error, error) {
			dir := filepath.Dir(path)
			return func() error { return os.Rename(dir+".moved", dir) }, os.Rename(dir, dir+".moved")
		},
	} {
		for _, transport := range []string{"epoll", "net"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(filepath.Dir(tmpPath(t)), "folder", "k.db")
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				srv, addr := enginetest.StartWith(t, engine.Options{File: path, Config: map[string]string{"appendonly": "yes", "appendfsync": "always", "transport": transport}})
				srv.InTurn(func() { srv.Keeper.Limits.Direct = time.Hour })
				c := enginetest.Dial(t, addr)
				for range 3 { // a transaction, and appends to the log
					c.Send("SET a 1\r\n")
					c.Expect("OK")
				}
				wait.Elapse(10 * time.Millisecond) // the kernel's clock ticks, and no check counts any more
				mend, err := disturb(path)
				if err != nil {
					t.Fatal(err)
				}
				c.Send("SET a 2\r\n")
				if mend != nil {
					if got := c.All(); got != "" {
						t.Errorf("the client got %q", got)
					}
					c = enginetest.Dial(t, addr)
					c.Send("SET a 2\r\n")
					if got := fmt.Sprint(c.Reply()); !strings.HasPrefix(got, "MISCONF") {
						t.Errorf("after the failure: %s", got)
					}
					if err := mend(); err != nil {
						t.Fatal(err)
					}
					wait.Until(t, "the client may write", func() bool {
						c.Send("SET a 2\r\n")
						got := fmt.Sprint(c.Reply())
						return got == "OK"
					})
				} else {
					c.Expect("OK")
				}
				savedAs(t, path, "a", "2")
				c.Send("RPUSH b x\r\nSET a 3\r\nBLPOP b 0\r\n")
				c.Conn.(*net.TCPConn).CloseWrite()
				if got := c.All(); got != ":1\r\n+OK\r\n*2\r\n$1\r\nb\r\n$1\r\nx\r\n" {
					t.Errorf("a pipeline of a client that sends no more: %q", got)
				}
				savedAs(t, path, "a", "3")
			})
		}
	}
}

// sizeOf returns the size of a file.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// TestFsyncFails checks that after a failed fsync the file is not written again, and that
// a new file with all data replaces it.
func TestFsyncFails(t *testing.T) {
	if !alone(t) {
		return
	}
	path := tmpPath(t)
	srv := enginetest.Keep(t, path, map[string]string{"save": "1 1"})
	enginetest.Fill(srv, 20_000, 20)
	enginetest.Must(t, srv, "SET a 1", "SAVE")
	breakFile(t, path, "/dev/null")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Must(t, srv, "SET a 2", "SAVE -> ERR")
	savedAs(t, path, "a", "1")
	enginetest.Must(t, srv, "CONFIG SET stop-writes-on-bgsave-error no", "SET a 3", "DEL fill:7")
	wait.Until(t, "a fresh file is there", func() bool { return enginetest.Info(t, srv, "rdb_last_bgsave_status") == "ok" })
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if os.SameFile(before, after) {
		t.Error("it is the same file")
	}
	want := enginetest.DebugDigest(srv)
	srv = enginetest.Again(t, srv, map[string]string{"stop-writes-on-bgsave-error": "no"})
	if enginetest.DebugDigest(srv) != want {
		t.Error("the data differ")
	}
	enginetest.Must(t, srv, "GET a -> 3", "DBSIZE -> 20000")

	// SAVE does the same at once.
	breakFile(t, path, "/dev/null")
	enginetest.Must(t, srv, "SET a 4", "SAVE -> ERR", "SET a 5", "SAVE -> OK")
	want = enginetest.DebugDigest(srv)
	srv = enginetest.Again(t, srv, nil)
	if enginetest.DebugDigest(srv) != want {
		t.Error("the data differ")
	}
}

// TestFreshFileFails checks that the old file stays intact when a new file cannot be
// written, and that retries are limited.
func TestFreshFileFails(t *testing.T) {
	path := tmpPath(t)
	srv := enginetest.Keep(t, path, map[string]string{"save": "1 1"})
	enginetest.Must(t, srv, "SET a 1", "SAVE")
	if err := os.Mkdir(path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new/x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	enginetest.Must(t, srv, "SET a 2", "BGREWRITEAOF")
	wait.Until(t, "that fails", func() bool { return enginetest.Info(t, srv, "aof_last_bgrewrite_status") == "err" })
	enginetest.Must(t, srv, "SET a 3 -> OK", "SAVE -> OK")
	if status := enginetest.Info(t, srv, "rdb_last_bgsave_status"); status != "ok" {
		t.Error(status)
	}
	savedAs(t, path, "a", "3")
	enginetest.Rest(t, srv)
	if err := os.RemoveAll(path + ".new"); err != nil {
		t.Fatal(err)
	}
	enginetest.Must(t, srv, "BGREWRITEAOF")
	wait.Until(t, "that succeeds", func() bool { return enginetest.Info(t, srv, "aof_last_bgrewrite_status") == "ok" })
	enginetest.Rest(t, srv)
	savedAs(t, path, "a", "3")
}

// TestFullFileSystem saves to a file system of 2 MB that is full.
func TestFullFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("only root may mount file systems: ", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	path := filepath.Join(dir, "k.db")
	srv := enginetest.Keep(t, path, map[string]string{"save": "1 1"})
	enginetest.Must(t, srv, "SET a 1", "SAVE -> OK")
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		enginetest.Must(t, srv, fmt.Sprintf("SET big%d %s", i, strings.Repeat("x", 50_000)))
	}
	enginetest.Must(t, srv, "SET a 2", "SAVE -> ERR")
	if status := enginetest.Info(t, srv, "rdb_last_bgsave_status"); status != "err" {
		t.Error(status)
	}
	savedAs(t, path, "a", "1")
	enginetest.Must(t, srv, "SET a 3 -> "+engine.ErrNotSaved, "GET a -> 2", "CONFIG SET stop-writes-on-bgsave-error no")
	for i := range 95 {
		enginetest.Must(t, srv, fmt.Sprintf("DEL big%d", i))
	}
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	enginetest.Must(t, srv, "SET a 3 -> OK")
	enginetest.Say(srv, "SAVE") // the journal may need more room than there is; then a fresh file is written
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "saving succeeds", func() bool { return enginetest.Info(t, srv, "rdb_last_bgsave_status") == "ok" })
	enginetest.Must(t, srv, "SAVE -> OK")
	want := enginetest.DebugDigest(srv)
	srv = enginetest.Again(t, srv, nil)
	if enginetest.DebugDigest(srv) != want {
		t.Error("the data differ")
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
}

// spoilings returns modifications of a file in use by another program. older is the
// content of the file some saves ago.
func spoilings() map[string]func(path string, older []byte) error {
	all := map[string]func(path string, older []byte) error{
		"emptied": func(path string, _ []byte) error { return os.Truncate(path, 0) },
		"cut short and extended": func(path string, _ []byte) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return errors.Join(os.Truncate(path, info.Size()/2), os.Truncate(path, info.Size()))
		},
		"overwritten": func(path string, _ []byte) error { return overwrite(path, 0, 100) },
		"a page":      func(path string, _ []byte) error { return overwrite(path, 50, 51) },
		"the metas":   func(path string, _ []byte) error { return overwrite(path, 0, 2) },
		"another":     func(path string, older []byte) error { return os.WriteFile(path, older, 0o600) }, // cp
		"removed":     func(path string, _ []byte) error { return os.Remove(path) },
	}
	for _, percent := range []int64{1, 5, 15, 30, 50, 75, 90} {
		all[fmt.Sprint("cut to ", percent, " %")] = func(path string, _ []byte) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()*percent/100)
		}
	}
	return all
}

// overwrite fills so many percent of a file, from some percent on, with zeros.
func overwrite(path string, from, to int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, info.Size()*to/100-info.Size()*from/100), info.Size()*from/100)
	return errors.Join(err, f.Close())
}

// TestFileSpoiled checks that modifications of the file by another program lose no data
// and cause no error for clients: the next save writes a new file.
func TestFileSpoiled(t *testing.T) {
	for name, spoil := range spoilings() {
		t.Run(name, func(t *testing.T) {
			path := tmpPath(t)
			srv := enginetest.Keep(t, path, nil)
			enginetest.Fill(srv, 3000, 200)
			enginetest.Must(t, srv, "SET a 1", "SAVE")
			older, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			enginetest.Must(t, srv, "SET b 1", "SAVE")
			hurt := func() {
				t.Helper()
				wait.Elapse(10 * time.Millisecond) // the kernel's clock ticks
				if err := spoil(path, older); err != nil {
					t.Fatal(err)
				}
			}
			hurt()
			enginetest.Must(t, srv, "SET a 2")
			ended := time.AfterFunc(time.Minute, func() { panic("a save has not ended") })
			enginetest.Must(t, srv, "SAVE -> OK")
			savedAs(t, path, "a", "2")
			enginetest.Must(t, srv, "SET a 3", "SAVE -> OK")
			savedAs(t, path, "b", "1")
			hurt()
			enginetest.Must(t, srv, "SET a 4", "BGSAVE")
			enginetest.Rest(t, srv)
			wait.Until(t, "it is saved", func() bool { return enginetest.Info(t, srv, "rdb_changes_since_last_save") == "0" })
			savedAs(t, path, "a", "4")
			want := enginetest.DebugDigest(srv)
			srv = enginetest.Again(t, srv, map[string]string{"save": "3600 1"})
			if enginetest.DebugDigest(srv) != want {
				t.Error("the data differ")
			}

			// There is no later save than that of a stop.
			hurt()
			enginetest.Must(t, srv, "SET a 5")
			srv = enginetest.Again(t, srv, map[string]string{"appendonly": "yes", "appendfsync": "always"})
			enginetest.Must(t, srv, "GET a -> 5", "GET b -> 1")

			// A client that waits for the disk is answered.
			hurt()
			enginetest.Must(t, srv, "SET a 6 -> OK")
			savedAs(t, path, "a", "6")
			ended.Stop()
		})
	}
}

// TestFileTouched checks that a change of only the file's times causes no rewrite.
func TestFileTouched(t *testing.T) {
	path := tmpPath(t)
	srv := enginetest.Keep(t, path, nil)
	enginetest.Must(t, srv, "SET a 1", "SAVE")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if err := os.Chtimes(path, time.Time{}, time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
		enginetest.Must(t, srv, fmt.Sprint("SET a ", i), "SAVE -> OK")
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Error("the file is another: ", err)
	}
	savedAs(t, path, "a", "5")
}

// TestFileRemoved checks that a file that is removed while in use is written again, and
// that a file of another program in its place is not changed and prevents saving until
// it is removed.
func TestFileRemoved(t *testing.T) {
	for _, config := range []map[string]string{{"save": "3600 1"}, {"save": "1 1"}, {"appendonly": "yes", "appendfsync": "always"}} {
		path := tmpPath(t)
		srv := enginetest.Keep(t, path, config)
		enginetest.Fill(srv, 1000, 20)
		enginetest.Must(t, srv, "SET a 1", "SAVE")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		enginetest.Must(t, srv, "SET a 2 -> OK", "BGSAVE")
		wait.Until(t, "the file is there", func() bool { _, err := os.Stat(path); return err == nil })
		enginetest.Rest(t, srv)
		savedAs(t, path, "a", "2")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		want := enginetest.DebugDigest(srv)
		srv = enginetest.Again(t, srv, config) // which closes it first
		if enginetest.DebugDigest(srv) != want {
			t.Errorf("%v: the data differ", config)
		}

		if err := os.Rename(path, path+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		enginetest.Must(t, srv, "CONFIG SET appendonly no", "SET a 3 -> OK", "SAVE -> ERR")
		srv.InTurn(func() { srv.Keeper.WantsFresh = true })
		enginetest.Must(t, srv, "CONFIG SET stop-writes-on-bgsave-error no", "SET a 4 -> OK", "SAVE -> ERR", "SAVE -> ERR") // the second one comes after all work for the first
		if b, err := os.ReadFile(path); string(b) != "mine" {
			t.Errorf("%v: the file is %.20q, %v", config, b, err)
		}
		if err := os.Rename(path+".old", path); err != nil {
			t.Fatal(err)
		}
		enginetest.Must(t, srv, "SET a 5 -> OK", "SAVE -> OK")
		savedAs(t, path, "a", "5")
		want = enginetest.DebugDigest(srv)
		srv = enginetest.Again(t, srv, config)
		if enginetest.DebugDigest(srv) != want {
			t.Errorf("%v: the data differ", config)
		}
	}
}
