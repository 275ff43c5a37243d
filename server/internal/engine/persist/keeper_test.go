package persist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/engine/persist"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// host is a host without commands: a lock, a counter, and one reply that waits.
type host struct {
	lock    sync.Mutex
	keys    *keyspace.Keyspace
	k       *persist.Keeper
	changes int64
	loads   int
	calls   int // of Maintain
	failed  int
	stream  *persist.Stream
	loading []persist.LoadState // as it was shown

	busy    bool // a script lends the lock
	clients int  // that each checkpoint releases, as Durable says
	waits   bool // a reply waits for the checkpoint of the epoch
	epoch   uint64
	durable chan struct{} // closed when the reply may be sent
}

func (h *host) Maintain(f func()) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.calls++; h.calls > 100_000 {
		panic("the keeper does not wait")
	}
	f()
	h.k.Note(h.changes)
}
func (h *host) MaintainUnlessBusy(f func()) bool {
	if h.busy {
		return false
	}
	h.Maintain(f)
	return true
}
func (h *host) OutOfTurn(f func()) {
	h.lock.Lock()
	defer h.lock.Unlock()
	f()
	if l := h.k.Loading; l != nil && l.Total > 0 {
		h.loading = append(h.loading, *l)
	}
}
func (h *host) Attempt(f func()) { f() }
func (h *host) Changes() int64   { return h.changes }
func (h *host) Counted() int64   { return h.changes }
func (h *host) At() time.Time    { return time.Now() }
func (h *host) Clock() time.Time { return time.Now() }
func (h *host) Loaded()          { h.loads++ }

func (h *host) Stream(bool) *persist.Stream { return h.stream }
func (h *host) Continue(s persist.Stream)   { h.stream = &s }
func (h *host) Failed()                     { h.failed++ }
func (h *host) Durable() (released int) {
	if h.waits && h.k.Saved(h.epoch) {
		h.waits = false
		close(h.durable)
	}
	return h.clients
}

// open returns a host whose keeper has loaded the file at path. With standby "yes" in
// settings its keyspace is that of a replica.
func open(path string, settings map[string]string) (*host, error) {
	return openOn(path, settings, nil)
}

// openOn is open on a simulated disk.
func openOn(path string, settings map[string]string, disk func(operation string) error) (*host, error) {
	h := hostOf(path, settings, disk)
	if err := h.k.Open(); err != nil {
		return nil, err
	}
	<-h.k.Ready()
	return h, h.k.LoadError()
}

// hostOf returns a host whose keeper is not open yet.
func hostOf(path string, settings map[string]string, disk func(operation string) error) *host {
	c := config.Defaults()
	c.Dir, c.Dbfilename = filepath.Dir(path), filepath.Base(path)
	c.Save = nil
	if settings["appendfsync"] == "always" {
		c.Appendonly, c.Appendfsync = true, "always"
	}
	h := &host{keys: keyspace.New(16, keyspace.Hooks{}), durable: make(chan struct{})}
	h.keys.Standby(settings["standby"] == "yes")
	h.keys.SetNow(time.Now().UnixMilli())
	h.k = persist.New(persist.Options{Keys: h.keys, Settings: &c, Log: slog.New(slog.DiscardHandler), Start: time.Now(), Disk: disk}, h)
	return h
}

// set changes a key.
func (h *host) set(key, value string) {
	h.keys.DB(0).Put([]byte(key), keyspace.NewString([]byte(value)), false)
	h.keys.Seal()
	h.changes++
}

func (h *host) get(key string) string {
	e := h.keys.DB(0).Peek([]byte(key))
	if e == nil {
		return "(none)"
	}
	return string(e.Value().(*keyspace.String).Content())
}

func ExampleKeeper() {
	dir, err := os.MkdirTemp("", "keeper")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "example.db")

	h, err := open(path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	h.Maintain(func() { h.set("greeting", "hello") })
	fmt.Println("saved:", h.k.Save(context.Background()))
	fmt.Println("closed:", h.k.Close(false))

	again, err := open(path, nil)
	fmt.Println("loaded:", err)
	fmt.Println(again.get("greeting"))
	fmt.Println("closed:", again.k.Close(false))
	// Output:
	// saved: <nil>
	// closed: <nil>
	// loaded: <nil>
	// hello
	// closed: <nil>
}

// TestWaitsForCheckpoint checks that with appendfsync always a reply becomes durable
// without a save being requested, and that the data are in the file from then on.
func TestWaitsForCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	h, err := open(path, map[string]string{"appendfsync": "always"})
	if err != nil {
		t.Fatal(err)
	}
	h.Maintain(func() {
		h.set("a", "1")
		h.waits, h.epoch = true, h.k.Epoch()
		if h.k.Saved(h.epoch) {
			t.Error("a checkpoint that was not taken yet is on the disk")
		}
	})
	select {
	case <-h.durable:
	case <-time.After(time.Minute):
		t.Fatal("no checkpoint")
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := h.k.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if err := h.k.Close(false); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, copied} {
		again, err := open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.get("a"); got != "1" || again.loads != 1 {
			t.Errorf("%s: a is %s, loaded %d times", path, got, again.loads)
		}
		again.k.Close(false)
	}
}

// TestDirect checks that a caller may write its changes itself, and that the keeper writes them
// if it does not.
func TestDirect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	h, err := open(path, map[string]string{"appendfsync": "always"})
	if err != nil {
		t.Fatal(err)
	}
	// change changes a key, lets end end the deferral, and returns whether a caller is to write.
	change := func(key string, end func() bool) (taken bool) {
		h.OutOfTurn(func() {
			h.durable = make(chan struct{})
			h.k.Limits.Direct = time.Hour // a machine that is busy has slow checkpoints, too
			h.k.Defer()
			h.set(key, "1")
			h.k.Note(h.changes)
			h.waits, h.epoch = true, h.k.Epoch()
			taken = end()
		})
		return taken
	}
	written := func(key string) {
		select {
		case <-h.durable:
		case <-time.After(time.Minute):
			t.Fatalf("%s: no checkpoint", key)
		}
	}
	few := func() bool { return h.k.TakeDirect(1) }
	if change("first", few) { // nothing tells yet how long a checkpoint takes
		t.Error("the first checkpoint is direct")
	}
	written("first")
	if !change("direct", few) {
		t.Fatal("not direct")
	}
	h.k.WriteDirect()
	h.OutOfTurn(func() {
		if h.waits {
			t.Error("the change is not on the disk after WriteDirect")
		}
		if h.k.Defer(); h.k.TakeDirect(1) {
			t.Error("no changes, and they are to be written")
		}
	})
	if change("many", func() bool { return h.k.TakeDirect(100) }) {
		t.Error("many clients wait, and the checkpoint is direct")
	}
	written("many")
	release := h.k.HoldFiles()
	change("held", few)
	h.k.WriteDirect() // leaves it to the keeper
	release()
	written("held")
	change("busy", few)
	h.busy = true
	h.k.WriteDirect() // leaves the outcome to a goroutine that waits for the script
	h.busy = false
	written("busy")
	change("ended", func() bool { h.k.EndDefer(); return false })
	written("ended")
	if err := h.k.Close(false); err != nil {
		t.Fatal(err)
	}
	again, err := open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.k.Close(false)
	for _, key := range []string{"first", "direct", "many", "held", "busy", "ended"} {
		if again.get(key) != "1" {
			t.Errorf("%s is not in the file", key)
		}
	}
}

// TestDirectDisturbed checks that a reply to a change that its caller writes itself is
// confirmed though another program has changed the file, and though no other client wakes the
// keeper: a fresh file has the change, and those before.
func TestDirectDisturbed(t *testing.T) {
	for name, disturb := range map[string]func(path string) error{
		"removed":         os.Remove,
		"moved":           func(path string) error { return os.Rename(path, path+".moved") },
		"cut to nothing":  func(path string) error { return os.Truncate(path, 0) },
		"cut to one page": func(path string) error { return os.Truncate(path, 4096) },
		"longer": func(path string) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, info.Size()+4096))
		},
	} {
		path := filepath.Join(t.TempDir(), "k.db")
		h, err := open(path, map[string]string{"appendfsync": "always"})
		if err != nil {
			t.Fatal(err)
		}
		h.OutOfTurn(func() { h.k.Limits.Direct = time.Hour })
		change := func(key string) {
			t.Helper()
			var taken bool
			h.OutOfTurn(func() {
				h.durable = make(chan struct{})
				h.k.Defer()
				h.set(key, "1")
				h.k.Note(h.changes)
				h.waits, h.epoch = true, h.k.Epoch()
				taken = h.k.TakeDirect(1)
			})
			if taken {
				h.k.WriteDirect()
			} else if key == "direct" {
				t.Fatalf("%s: not direct", name)
			}
			select {
			case <-h.durable:
			case <-time.After(time.Minute):
				t.Fatalf("%s: %s is not confirmed", name, key)
			}
		}
		change("first")
		if err := disturb(path); err != nil {
			t.Fatal(err)
		}
		change("direct")
		b, err := os.ReadFile(path) // as after kill -9
		if err != nil {
			t.Fatal(err)
		}
		if h.failed != 0 {
			t.Errorf("%s: %d failures", name, h.failed)
		}
		if err := h.k.Close(false); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".copy", b, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := open(path+".copy", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.get("first") + again.get("direct"); got != "11" {
			t.Errorf("%s: the file has %s", name, got)
		}
		again.k.Close(false)
	}
}

// TestExpiredOnStandby checks that a fresh file of a replica has the keys that the primary
// has not removed yet, though they are expired here: changes of them may follow.
func TestExpiredOnStandby(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	replica := map[string]string{"standby": "yes", "appendfsync": "always"}
	h, err := open(path, replica)
	if err != nil {
		t.Fatal(err)
	}
	write := func(value string, deadline int64) {
		h.Maintain(func() {
			h.keys.Reveal(true)
			db := h.keys.DB(0)
			e := db.Edit([]byte("a"))
			if e == nil {
				h.set("a", value)
				e = db.Edit([]byte("a"))
			}
			db.SetString(e, []byte(value))
			db.SetDeadline(e, deadline)
			h.keys.Seal()
			h.keys.Reveal(false)
			h.changes++
			h.waits, h.epoch, h.durable = true, h.k.Epoch(), make(chan struct{})
		})
		select {
		case <-h.durable:
		case <-time.After(time.Minute):
			t.Fatal("no checkpoint")
		}
	}
	past := time.Now().Add(-time.Hour).UnixMilli()
	write("1", past)
	h.Maintain(h.k.LoseTrack) // a fresh file follows
	write("2", past)
	write("3", past)
	if err := h.k.Close(false); err != nil {
		t.Fatal(err)
	}
	again, err := open(path, replica)
	if err != nil {
		t.Fatal(err)
	}
	defer again.k.Close(false)
	if got := again.get("a"); got != "(none)" {
		t.Errorf("clients see %s", got)
	}
	again.keys.Reveal(true)
	if got := again.get("a"); got != "3" {
		t.Errorf("commands of the primary see %s", got)
	}
}

// TestFullDisk checks that with appendfsync always a keeper whose disk is full waits between
// two attempts, and saves when there is space.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		var attempts atomic.Int64
		h, err := openOn(path, map[string]string{"appendfsync": "always"}, func(operation string) error {
			if operation == "commit" && full.Load() {
				attempts.Add(1)
				return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		h.Maintain(func() {
			full.Store(true)
			h.set("a", "1")
		})
		time.Sleep(10500 * time.Millisecond)
		h.Maintain(func() { h.set("b", "2") })
		time.Sleep(10500 * time.Millisecond)
		if n := attempts.Load(); n < 20 || n > 30 {
			t.Errorf("%d attempts in 21 seconds", n)
		}
		h.Maintain(func() {
			if h.calls > 1000 {
				t.Errorf("%d times the lock was taken", h.calls)
			}
			full.Store(false)
		})
		time.Sleep(2 * time.Second)
		h.Maintain(func() {
			if !h.k.Saved(h.k.Epoch() - 1) {
				t.Error("the data are not on the disk")
			}
		})
		if err := h.k.Close(false); err != nil {
			t.Error(err)
		}
	})
	again, err := open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.k.Close(false)
	if got := again.get("a") + again.get("b"); got != "12" {
		t.Errorf("a and b are %s", got)
	}
}

// TestGather checks that after a checkpoint that has released many clients, and has taken
// longer than their next commands will, the keeper waits for these commands.
func TestGather(t *testing.T) {
	for _, c := range []struct {
		clients int
		sync    time.Duration
		want    int // syncs of three commands 300 µs after each other
	}{
		{1, 2 * time.Millisecond, 2}, {50, 2 * time.Millisecond, 1}, {50, 200 * time.Microsecond, 3}, {200, 2 * time.Millisecond, 2},
	} {
		path := filepath.Join(t.TempDir(), "k.db")
		synctest.Test(t, func(t *testing.T) {
			var syncs atomic.Int64
			h, err := openOn(path, map[string]string{"appendfsync": "always"}, func(operation string) error {
				if operation == "sync log" {
					syncs.Add(1)
					time.Sleep(c.sync)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			h.clients = c.clients
			h.Maintain(func() { h.set("a", "0") }) // makes the log
			time.Sleep(time.Second)
			h.Maintain(func() { h.set("a", "1") })
			time.Sleep(c.sync + 20*time.Microsecond) // behind the sync
			syncs.Store(0)
			for i := range 3 {
				h.Maintain(func() { h.set("a", fmt.Sprint(i)) })
				time.Sleep(300 * time.Microsecond)
			}
			time.Sleep(time.Second)
			h.Maintain(func() {
				if n := int(syncs.Load()); n != c.want {
					t.Errorf("%d clients, a sync of %v: %d syncs, want %d", c.clients, c.sync, n, c.want)
				}
			})
			if err := h.k.Close(false); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGatherLoop checks that on a fast disk a checkpoint waits until a loop finds no more input,
// and not for long.
func TestGatherLoop(t *testing.T) {
	const each, once, late = "each", "once", "late"
	for _, c := range []struct {
		name    string
		clients int
		looped  bool   // the changes are those of a loop
		when    string // TakeGathered is called
		want    int    // syncs by the time of the last change, which is the third
		later   int    // by 10 ms after that
	}{
		{"a loop with more input", 50, true, late, 0, 1},
		{"a loop without more input", 50, true, once, 0, 1},
		{"a loop that never has more input", 50, true, each, 3, 3},
		{"few clients", 4, true, late, 3, 3},
		{"no loop", 50, false, late, 3, 3},
	} {
		path := filepath.Join(t.TempDir(), "k.db")
		synctest.Test(t, func(t *testing.T) {
			var syncs atomic.Int64
			h, err := openOn(path, map[string]string{"appendfsync": "always"}, func(operation string) error {
				if operation == "sync log" {
					syncs.Add(1)
					time.Sleep(100 * time.Microsecond)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			h.clients = c.clients
			change := func(value string, looped bool) {
				h.OutOfTurn(func() {
					if looped {
						h.k.Defer()
					}
					h.set("a", value)
					h.k.Note(h.changes)
					if looped && h.k.TakeDirect(100) {
						t.Errorf("%s: a direct checkpoint for 100 clients", c.name)
					}
				})
			}
			gathered := func() {
				var taken bool
				h.OutOfTurn(func() { taken = h.k.TakeGathered() })
				if taken {
					h.k.WriteDirect()
				}
			}
			change("0", false) // makes the log
			time.Sleep(time.Second)
			change("1", c.looped)
			time.Sleep(120 * time.Microsecond) // behind the sync
			syncs.Store(0)
			for i := range 3 {
				change(fmt.Sprint(i), c.looped)
				if c.when == each {
					gathered()
				}
				synctest.Wait() // syncs have begun
				if i < 2 {
					time.Sleep(200 * time.Microsecond)
				}
			}
			got := syncs.Load()
			if c.when == once {
				gathered()
				if got++; syncs.Load() != got {
					t.Errorf("%s: no sync", c.name)
				}
				got--
			}
			time.Sleep(10 * time.Millisecond)
			if later := syncs.Load(); got != int64(c.want) || later != int64(c.later) {
				t.Errorf("%s: %d syncs, and %d later, want %d and %d", c.name, got, later, c.want, c.later)
			}
			if err := h.k.Close(false); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestClosedKeeper checks the errors of a keeper that is closed, and of one without a
// file.
func TestClosedKeeper(t *testing.T) {
	h, err := open(filepath.Join(t.TempDir(), "k.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.k.Close(true); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"Save": h.k.Save(t.Context()), "Backup": h.k.Backup(t.Context(), filepath.Join(t.TempDir(), "x"))} {
		if !errors.Is(err, persist.ErrServerClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	c := config.Defaults()
	c.Dbfilename = ""
	none := &host{keys: keyspace.New(16, keyspace.Hooks{})}
	none.k = persist.New(persist.Options{Keys: none.keys, Settings: &c, Log: slog.New(slog.DiscardHandler)}, none)
	if err := none.k.Open(); err != nil {
		t.Fatal(err)
	}
	if err := none.k.Save(t.Context()); err == nil || err.Error() != "zsetd: there is no data file to save to" {
		t.Error(err)
	}
}

// TestForeignFile checks that a file that is not a data file is refused with advice, by
// Check and by Open, and stays as it is.
func TestForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	text := []byte("not a data file, but longer than a page would need to be\n")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := open(path, nil)
	c := config.Defaults()
	c.Dir, c.Dbfilename = filepath.Dir(path), filepath.Base(path)
	for what, err := range map[string]error{"Open": err, "Check": persist.Check(&c)} {
		var file *persist.FileError
		if !errors.As(err, &file) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(text) {
		t.Errorf("the file is now %q, %v", now, err)
	}
}

// TestSuspended checks that a keeper saves nothing while it is suspended, says so, and saves
// everything once it is resumed.
func TestSuspended(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "k.db")
		h, err := open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Maintain(func() { h.set("a", "1") })
		if err := h.k.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.Maintain(func() {
			h.set("b", "1")
			h.k.Suspend()
			h.set("c", "1")
		})
		const says = "zsetd: the data of the primary are not complete: the file keeps the last state"
		if err := h.k.Save(t.Context()); err == nil || err.Error() != says || !h.k.Suspended() {
			t.Errorf("Save: %v", err)
		}
		h.Maintain(func() {
			if err := h.k.SaveNow(); err == nil || err.Error() != says {
				t.Errorf("SaveNow: %v", err)
			}
			if resumed {
				h.k.Resume()
			}
		})
		if err := h.k.Close(true); err != nil {
			t.Fatal(err)
		}
		again, err := open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := "1(none)(none)"
		if resumed {
			want = "111"
		}
		if got := again.get("a") + again.get("b") + again.get("c"); got != want {
			t.Errorf("resumed %v: %s", resumed, got)
		}
		again.k.Close(false)
	}
}

// TestSizes checks the figures of a file, and of the keys in it, after a restart.
func TestSizes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	h, err := open(path, map[string]string{"appendfsync": "always"})
	if err != nil {
		t.Fatal(err)
	}
	h.Maintain(func() {
		for i := range 100 {
			h.set(fmt.Sprint("key:", i), "value")
		}
	})
	if err := h.k.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Maintain(func() {
		s := h.k.Status()
		if s.Unsaved != 0 || s.InProgress || s.Failures != 0 || s.Saves < 1 || s.Duration < 0 || s.Times.Count != s.Saves || s.SavedAt.IsZero() || !h.k.Settled() {
			t.Errorf("after a save: %+v", s)
		}
		h.set("late", "1")
		if s = h.k.Status(); s.Unsaved != 1 || h.k.Settled() {
			t.Errorf("after a change: %+v", s)
		}
	})
	if err := h.k.Close(true); err != nil {
		t.Fatal(err)
	}
	again, err := open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.k.Close(false)
	if s := again.k.Status(); s.Loaded != 101 || s.Expired != 0 || len(again.loading) == 0 {
		t.Errorf("after a restart: %+v, loading %+v", s, again.loading)
	}
	info, err := os.Stat(path)
	if s := again.k.Stats; err != nil || s.Size != info.Size() || s.Used <= 0 || s.Used > s.Size || s.Journal <= 0 || s.Generation < 2 {
		t.Errorf("%+v of %d bytes", s, info.Size())
	}
}

// fill sets keys of 1 MB together, between a first and a last key in the order of the file.
func (h *host) fill(megabytes int) {
	h.Maintain(func() {
		h.set("0", "1")
		for i := range megabytes * 8 {
			h.set(fmt.Sprintf("key:%d", i), strings.Repeat("x", 128<<10))
		}
		h.set("the last key", "1")
	})
}

// TestRewrites checks that a rewrite on request succeeds though it takes several pieces, in
// which the old file gets the changes, too.
func TestRewrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.db")
	h, err := open(path, map[string]string{"appendfsync": "always"})
	if err != nil {
		t.Fatal(err)
	}
	h.fill(4)
	if err := h.k.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Maintain(func() {
		h.k.WantsFresh = true
		h.k.Wake()
	})
	var s persist.Status
	wait.Until(t, "the rewrite is done", func() bool {
		h.OutOfTurn(func() { s = h.k.Status() })
		return s.Rewrites > 0 || s.RewriteFailed
	})
	if s.Rewrites != 1 || s.RewriteFailed || s.Failures != 0 {
		t.Errorf("%+v", s)
	}
	h.Maintain(func() { h.set("after", "1") })
	if err := h.k.Close(true); err != nil {
		t.Fatal(err)
	}
	again, err := open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.k.Close(false)
	if got := again.get("0") + again.get("the last key") + again.get("after"); got != "111" {
		t.Errorf("the file has %s", got)
	}
	// The progress of loading was shown on the way.
	if n := len(again.loading); n < 3 || again.loading[0].Total < 4<<20 || again.loading[n-1].Done <= again.loading[0].Done || again.loading[n-1].Done > again.loading[n-1].Total {
		t.Errorf("%+v", again.loading)
	}
}

// TestChangeDuringSave checks that a save on request, in pieces, has both keys or neither that
// change together meanwhile, the first and the last in the file, and that it begins again if
// what it has written is of no use any more.
func TestChangeDuringSave(t *testing.T) {
	for name, meanwhile := range map[string]func(h *host){
		"changed": func(h *host) {
			h.set("0", "2")
			h.set("the last key", "2")
		},
		"lost": func(h *host) { h.k.LoseTrack() },
	} {
		path := filepath.Join(t.TempDir(), "k.db")
		var h *host
		commits := 0
		h, err := openOn(path, nil, func(operation string) error {
			if operation == "commit" {
				if commits++; commits == 2 {
					h.OutOfTurn(func() { meanwhile(h) })
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		h.fill(4)
		if err := h.k.Save(t.Context()); err != nil || commits < 3 {
			t.Fatalf("%s: %d commits, %v", name, commits, err)
		}
		if err := h.k.Close(false); err != nil {
			t.Fatal(err)
		}
		again, err := open(path, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if a, b := again.get("0"), again.get("the last key"); a != b || a == "(none)" || again.keys.DB(0).Len() != 4*8+2 {
			t.Errorf("%s: %s and %s, %d keys", name, a, b, again.keys.DB(0).Len())
		}
		again.k.Close(false)
		if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
			t.Errorf("%s: files %q", name, left)
		}
	}
}

// TestBackupInMemory checks a backup of data that are kept in no file, in several pieces.
func TestBackupInMemory(t *testing.T) {
	c := config.Defaults()
	c.Dbfilename = ""
	h := &host{keys: keyspace.New(16, keyspace.Hooks{})}
	h.keys.SetNow(time.Now().UnixMilli())
	h.k = persist.New(persist.Options{Keys: h.keys, Settings: &c, Log: slog.New(slog.DiscardHandler), Start: time.Now()}, h)
	if err := h.k.Open(); err != nil {
		t.Fatal(err)
	}
	h.fill(3)
	path := filepath.Join(t.TempDir(), "b.db")
	if err := h.k.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := h.k.Backup(t.Context(), path); !errors.Is(err, fs.ErrExist) || err.Error() != "backup "+path+": file already exists" {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.k.Backup(ended, path+"2"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("files: %q", left)
	}
	if h.keys.Recording() {
		t.Error("it records changes that nothing takes")
	}
	again, err := open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.k.Close(false)
	if again.keys.DB(0).Len() != 3*8+2 || again.get("0")+again.get("the last key") != "11" {
		t.Errorf("%d keys", again.keys.DB(0).Len())
	}
}
