package replication_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// scripted is a primary that plays a part: answer sends the reply to each PSYNC, and what
// follows. It lives in the bubble of a test, as the connections do.
type scripted struct {
	mu       sync.Mutex
	answer   func(nc net.Conn)
	attempts []time.Time // of PSYNC
	refuses  bool        // connections
	conns    []net.Conn
}

// dial implements server.Options.Dial.
func (p *scripted) dial(context.Context, string, string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	p.conns = append(p.conns, there)
	go p.serve(there)
	return pipe{here}, nil
}

// pipe is an end of a connection in memory, which takes deadlines after the other end has
// closed, as a socket does.
type pipe struct{ net.Conn }

// SetReadDeadline implements net.Conn.
func (p pipe) SetReadDeadline(t time.Time) error {
	p.Conn.SetReadDeadline(t)
	return nil
}

// serve answers a replica until the connection ends.
func (p *scripted) serve(nc net.Conn) {
	defer nc.Close()
	r := bufio.NewReader(nc)
	for {
		if b, err := r.Peek(1); err == nil && b[0] == '\n' { // it only shows that the replica lives
			r.Discard(1)
			continue
		}
		v, err := transcript.ReadReply(r, nil)
		if err != nil {
			return
		}
		switch text := string(v); {
		case strings.Contains(text, "PSYNC"):
			p.mu.Lock()
			answer := p.answer
			p.attempts = append(p.attempts, time.Now())
			p.mu.Unlock()
			go answer(nc) // the replica sends bytes meanwhile
		case !strings.Contains(text, "ACK"):
			if _, err := io.WriteString(nc, "+OK\r\n"); err != nil {
				return
			}
		}
	}
}

// plays sets what the primary sends from now on, and ends what it has sent.
func (p *scripted) plays(answer func(nc net.Conn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
	for _, nc := range p.conns {
		nc.Close()
	}
	p.conns = nil
}

// times returns the times between the attempts.
func (p *scripted) times() (between []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := 1; i < len(p.attempts); i++ {
		between = append(between, p.attempts[i].Sub(p.attempts[i-1]))
	}
	return between
}

// data is an RDB file with the key new, a library, and a kilobyte more. The types are those
// of strings.
func data(library string) []byte {
	b := []byte("REDIS0009")
	text := func(s string) {
		b = append(b, 0x80)
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	if library != "" {
		b = append(b, 0xf5)
		text(library)
	}
	b = append(b, 0xfe, 0)
	for _, key := range []string{"new", "large"} {
		b = append(b, 0)
		text(key)
		text(strings.Repeat(key, 200))
	}
	return append(append(b, 0xff), make([]byte, 8)...)
}

const history = "0123456789012345678901234567890123456789"

// full sends all data, or the first part of them.
func full(file []byte, part int) func(nc net.Conn) {
	return func(nc net.Conn) {
		fmt.Fprintf(nc, "+FULLRESYNC %s 0\r\n$%d\r\n%s", history, len(file), file[:part])
	}
}

// replicaOf starts a replica of p, which has the key old unless it is empty.
func replicaOf(t *testing.T, p *scripted, empty bool, o server.Options) *servertest.Server {
	t.Helper()
	o.Dial = p.dial
	srv := servertest.Run(t, o)
	if !empty {
		srv.Must("SET", "old", "1")
	}
	if o.File != "" {
		srv.Must("SAVE")
	}
	srv.Must("REPLICAOF", "primary", "6379")
	return srv
}

// fields returns fields of INFO.
func fields(srv *servertest.Server, names ...string) (values []string) {
	info := strings.Split(fmt.Sprint(srv.Must("INFO", "everything")), "\r\n")
	for _, name := range names {
		i := slices.IndexFunc(info, func(line string) bool { return strings.HasPrefix(line, name+":") })
		if i < 0 {
			values = append(values, name+" is missing")
			continue
		}
		values = append(values, info[i])
	}
	return values
}

// infoHas checks that INFO has lines.
func infoHas(t *testing.T, srv *servertest.Server, want ...string) {
	t.Helper()
	var names []string
	for _, line := range want {
		name, _, _ := strings.Cut(line, ":")
		names = append(names, name)
	}
	if got := fields(srv, names...); !slices.Equal(got, want) {
		t.Errorf("INFO: %q, want %q", got, want)
	}
}

// on runs commands on a connection to the server.
func on(t *testing.T, srv *servertest.Server) func(line string) string {
	t.Helper()
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	r := bufio.NewReader(nc)
	return func(line string) string {
		t.Helper()
		if line != "" {
			fmt.Fprintf(nc, "%s\r\n", line)
		}
		v, err := transcript.ReadReply(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(v)
	}
}

// TestTransferInInfo checks what INFO says of a transfer.
func TestTransferInInfo(t *testing.T) {
	file := data("")
	synctest.Test(t, func(t *testing.T) {
		srv := replicaOf(t, &scripted{answer: full(file, len(file)/4)}, true, server.Options{})
		time.Sleep(10*time.Second + 500*time.Millisecond)
		n, part := int64(len(file)), int64(len(file)/4)
		want := []string{
			"master_link_status:down", "master_sync_in_progress:1", "master_current_sync_attempts:1", "master_total_sync_attempts:1",
			fmt.Sprint("master_sync_total_bytes:", n), fmt.Sprint("master_sync_read_bytes:", part), fmt.Sprint("master_sync_left_bytes:", n-part),
			fmt.Sprintf("master_sync_perc:%.2f", 100*float64(part)/float64(n)), "master_sync_last_io_seconds_ago:10", "master_link_down_since_seconds:-1",
			"total_disconnect_time_sec:0", // it never had a link
		}
		infoHas(t, srv, want...)
	})
}

// TestTransferFails checks what a replica has while it receives the data of a primary that
// stalls, and after a transfer that has failed: all that it had, in memory and in its file, or
// with flushdb nothing in memory. It is promoted at once.
func TestTransferFails(t *testing.T) {
	file := data("")
	wrong := slices.Clone(file)
	wrong[20] = 0xee // a type that does not exist
	future := slices.Clone(file)
	copy(future, "REDIS9999")
	for name, fault := range map[string]struct {
		answer    func(nc net.Conn)
		transfers string // master_sync_in_progress
		failed    bool
	}{
		"stalls before the reply":  {func(net.Conn) {}, "0", false},
		"stalls before the data":   {func(nc net.Conn) { fmt.Fprintf(nc, "+FULLRESYNC %s 0\r\n", history) }, "1", false},
		"stalls within the data":   {full(file, 700), "1", false},
		"stalls before the end":    {full(file, len(file)-1), "1", false},
		"is cut within the data":   {func(nc net.Conn) { full(file, 700)(nc); nc.Close() }, "", true},
		"is cut before the end":    {func(nc net.Conn) { full(file, len(file)-1)(nc); nc.Close() }, "", true},
		"sends damaged data":       {full(wrong, len(wrong)), "", true},
		"sends data of the future": {full(future, len(future)), "", true},
		"refuses":                  {func(nc net.Conn) { fmt.Fprintf(nc, "+FULLRESYNC %s 0\r\n-ERR no\r\n", history) }, "", true},
	} {
		for _, mode := range []string{"disabled", "on-empty-db", "swapdb", "flushdb"} {
			t.Run(name+", "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &scripted{answer: fault.answer}
					dir := t.TempDir()
					srv := replicaOf(t, p, false, server.Options{File: filepath.Join(dir, "data.db"), Config: map[string]string{
						"repl-diskless-load": mode, "repl-timeout": "50", "save": "1 1",
					}})
					time.Sleep(10 * time.Second)
					has, priority := "1", "slave_priority:100"
					switch reached := fault.transfers == "1" && !strings.Contains(name, "before the data") || fault.failed && name != "refuses"; {
					case mode == "flushdb" && reached:
						has, priority = "MASTERDOWN", "slave_priority:0"
					case mode == "swapdb" && reached && !fault.failed:
						has = "LOADING"
					}
					get := func(when string) {
						t.Helper()
						got, err := srv.Do(t.Context(), "GET", "old")
						text := fmt.Sprint(got)
						if err != nil {
							text, _, _ = strings.Cut(err.Error(), " ")
						}
						if text != has {
							t.Errorf("%s: %v, %v, want %s", when, got, err, has)
						}
					}
					if has != "LOADING" { // Do waits
						get("before repl-timeout")
					}
					want := []string{priority, "master_link_status:down"}
					if fault.transfers != "" {
						want = append(want, "master_sync_in_progress:"+fault.transfers)
					}
					if mode == "disabled" {
						want = append(want, "loading:0", "async_loading:0")
					}
					infoHas(t, srv, want...)
					if mode == "disabled" {
						srv.Must("SAVE")
					}
					copied, err := os.ReadFile(filepath.Join(dir, "data.db"))
					if err != nil {
						t.Fatal(err)
					}
					killed := filepath.Join(dir, "killed.db")
					if err := os.WriteFile(killed, copied, 0o600); err != nil {
						t.Fatal(err)
					}
					if got := servertest.Run(t, server.Options{File: killed}).Must("GET", "old"); got != "1" {
						t.Errorf("the file has %v", got)
					}
					if has == "LOADING" { // REPLICAOF, too
						time.Sleep(time.Minute)
						has = "1"
						p.plays(func(net.Conn) {})
						time.Sleep(time.Second)
					}
					before := time.Now()
					if mode == "flushdb" && !fault.failed && has == "MASTERDOWN" {
						return // -LOADING
					}
					srv.Must("REPLICAOF", "NO", "ONE")
					if d := time.Since(before); d > 100*time.Millisecond {
						t.Errorf("REPLICAOF NO ONE took %v", d)
					}
					if has == "MASTERDOWN" {
						has = "<nil>"
					}
					get("promoted")
				})
			})
		}
	}
}

// TestReplicaWithoutData checks that a replica that has never had data neither replies as if
// it were empty nor offers itself to Sentinel, and that one whose primary is empty does both.
func TestReplicaWithoutData(t *testing.T) {
	for _, mode := range []string{"disabled", "on-empty-db", "swapdb", "flushdb"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				empty := append([]byte("REDIS0009\xff"), make([]byte, 8)...)
				p := &scripted{answer: full(data(""), 700)}
				srv := replicaOf(t, p, true, server.Options{Config: map[string]string{"repl-diskless-load": mode, "repl-timeout": "5"}})
				do := on(t, srv)
				check := func(when string, bare bool) {
					t.Helper()
					time.Sleep(1500 * time.Millisecond)
					priority, prefix := "slave_priority:100", ""
					if bare {
						priority, prefix = "slave_priority:0", "-MASTERDOWN "
					}
					if got := fields(srv, "slave_priority"); got[0] != priority {
						t.Errorf("%s: %s", when, got)
					}
					for _, line := range []string{"DBSIZE", "GET new", "KEYS *", "SCAN 0", "EXISTS new", "PING", "EVAL return{} 0", "RANDOMKEY"} {
						if got := do(line); strings.HasPrefix(got, "-MASTERDOWN ") != bare || !strings.HasPrefix(got, prefix) {
							t.Errorf("%s: %s: %q", when, line, got)
						}
					}
					do("MULTI")
					do("GET new")
					if got := do("EXEC"); strings.HasPrefix(got, "-") != bare {
						t.Errorf("%s: EXEC: %q", when, got)
					}
					if got := do("CONFIG GET replica-priority"); !strings.Contains(got, "\r\n100\r\n") {
						t.Errorf("%s: %q", when, got)
					}
				}
				check("in the first transfer", true)
				p.plays(func(nc net.Conn) { nc.Close() })
				check("after it", true)
				p.plays(full(empty, len(empty)))
				wait.Until(t, "the replica is linked", func() bool { return fields(srv, "master_link_status")[0] == "master_link_status:up" })
				check("linked to an empty primary", false)
				p.plays(func(net.Conn) {})
				check("without a link to it", false)
				srv.Must("REPLICAOF", "NO", "ONE")
				if got := do("DBSIZE"); got != ":0\r\n" {
					t.Errorf("promoted: %q", got)
				}
			})
		})
	}
}

// TestDataReplaced checks what the clients of a replica notice when the data of another
// primary replace those that they see.
func TestDataReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const library = "#!lua name=l\nredis.register_function{function_name='f', callback=function() return 'new' end, flags={'no-writes'}}"
		file := data(library)
		p := &scripted{answer: full(file, len(file)-1)}
		path := filepath.Join(t.TempDir(), "data.db")
		srv := replicaOf(t, p, false, server.Options{File: path, Config: map[string]string{"appendonly": "yes", "appendfsync": "always", "maxmemory": "1gb"}})
		old, gone, free, caching := on(t, srv), on(t, srv), on(t, srv), on(t, srv)
		old("WATCH old")
		gone("WATCH new")
		free("WATCH neither")
		caching("HELLO 3")
		caching("CLIENT TRACKING ON")
		if got := caching("GET old"); got != "$1\r\n1\r\n" {
			t.Fatal(got)
		}
		time.Sleep(time.Second)
		for _, do := range []func(string) string{old, gone, free} {
			do("MULTI")
			do("DBSIZE")
		}
		nc := func() net.Conn {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.conns[0]
		}()
		nc.Write(file[len(file)-1:])
		wait.Until(t, "the replica is linked", func() bool { return fields(srv, "master_link_status")[0] == "master_link_status:up" })
		if got := old("EXEC"); got != "*-1\r\n" {
			t.Errorf("EXEC after WATCH of a key that has gone: %q", got)
		}
		if got := gone("EXEC"); got != "*-1\r\n" {
			t.Errorf("EXEC after WATCH of a key that has come: %q", got)
		}
		if got := free("EXEC"); got != "*1\r\n:2\r\n" {
			t.Errorf("EXEC after WATCH of a key that is in neither: %q", got)
		}
		if got := caching(""); got != ">2\r\n$10\r\ninvalidate\r\n_\r\n" {
			t.Errorf("tracking: %q", got)
		}
		if got := srv.Must("FCALL_RO", "f", "0"); got != "new" {
			t.Errorf("FCALL_RO: %v", got)
		}
		if got := srv.Must("EXISTS", "old"); got != int64(0) {
			t.Errorf("the old key exists")
		}
		wait.Until(t, "the file has the new data", func() bool {
			copied, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			killed := path + ".killed"
			if err := os.WriteFile(killed, copied, 0o600); err != nil {
				t.Fatal(err)
			}
			again, err := server.New(server.Options{File: killed})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			keys, err := again.Do(t.Context(), "KEYS", "*")
			if text := fmt.Sprint(keys); err != nil || text != "[old]" && text != "[new large]" && text != "[large new]" {
				t.Fatalf("the file has %v, %v", keys, err)
			}
			return fmt.Sprint(keys) != "[old]"
		})
	})
}

// TestBackOff checks when a replica asks for all data again after it could not read them:
// later and later, but at once when it is told to follow, and soon when the primary comes back.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := data("")
		wrong[11] = 0xee // a type that does not exist
		p := &scripted{answer: full(wrong, len(wrong))}
		srv := replicaOf(t, p, false, server.Options{})
		time.Sleep(5*time.Minute + time.Second)
		var got []time.Duration
		for _, d := range p.times() {
			got = append(got, d.Truncate(time.Second))
		}
		s := time.Second
		if want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s}; !slices.Equal(got, want) {
			t.Errorf("attempts after %v, want %v", got, want)
		}
		if got := fields(srv, "master_sync_consecutive_failures", "master_sync_last_error"); got[0] != "master_sync_consecutive_failures:10" || !strings.Contains(got[1], "transfer of the data: ") {
			t.Errorf("INFO: %q", got)
		}
		if got := srv.Must("GET", "old"); got != "1" {
			t.Errorf("GET: %v", got)
		}
		n := len(p.times())
		if got := fmt.Sprint(srv.Must("REPLICAOF", "primary", "6379")); got != "OK Already connected to specified master" {
			t.Errorf("REPLICAOF: %v", got)
		}
		time.Sleep(s / 2)
		if got := len(p.times()) - n; got != 1 {
			t.Errorf("%d attempts after REPLICAOF", got)
		}
		time.Sleep(4 * s) // after 1 and 2 seconds
		if got := len(p.times()) - n; got != 3 {
			t.Errorf("%d attempts 4 s after REPLICAOF", got)
		}
		time.Sleep(5 * time.Minute)
		p.mu.Lock()
		p.refuses = true
		p.mu.Unlock()
		time.Sleep(time.Minute) // an attempt is refused
		p.mu.Lock()
		p.refuses, p.attempts = false, nil
		p.mu.Unlock()
		time.Sleep(4500 * time.Millisecond) // the first comes within a second, then after 1 and 2
		if got := len(p.times()) + 1; got != 3 {
			t.Errorf("%d attempts after the primary has come back", got)
		}
		whole := data("")
		p.plays(full(whole, len(whole)))
		time.Sleep(time.Minute)
		if got := fields(srv, "master_link_status", "master_sync_consecutive_failures"); got[0] != "master_link_status:up" || !strings.HasSuffix(got[1], "missing") {
			t.Errorf("INFO: %q", got)
		}
	})
}

// TestBackOffAfterCuts checks that a transfer that was cut is followed by another one at once,
// and after many cuts each second.
func TestBackOffAfterCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{answer: func(nc net.Conn) {
			full(data(""), 700)(nc)
			nc.Close()
		}}
		replicaOf(t, p, false, server.Options{})
		time.Sleep(5 * time.Minute)
		got := p.times()
		for i, d := range got {
			if want := min(time.Duration(i+1)*20*time.Millisecond, time.Second); d != want {
				t.Fatalf("attempt %d after %v, want %v", i+1, d, want)
			}
		}
		if len(got) < 300 {
			t.Errorf("%d attempts in five minutes", len(got))
		}
	})
}

// TestSkipDamaged checks that a replica leaves out a value that it cannot read only if
// repl-skip-damaged-values says so, and names its key.
func TestSkipDamaged(t *testing.T) {
	module := []byte("\x07\x06broken\x81" + "\x00\x00\x00\x00\x00\x00\x04\x01" + "\x00") // a value of a module
	file := data("")
	file = slices.Concat(file[:len(file)-9], module, file[len(file)-9:])
	for skip, want := range map[string][]string{
		"no":  {"master_link_status:down", "master_sync_last_error:transfer of the data: key \"broken\" of database 0: "},
		"yes": {"master_link_status:up", "master_sync_last_error is missing"},
	} {
		t.Run(skip, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log text
				p := &scripted{answer: full(file, len(file))}
				srv := replicaOf(t, p, false, server.Options{Config: map[string]string{"repl-skip-damaged-values": skip}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				time.Sleep(1500 * time.Millisecond)
				got := fields(srv, "master_link_status", "master_sync_last_error")
				if got[0] != want[0] || !strings.HasPrefix(got[1], want[1]) {
					t.Errorf("%q, want %q", got, want)
				}
				keys, size := "old", int64(1)
				if skip == "yes" {
					keys, size = "new", 2
				}
				if got := srv.Must("DBSIZE"); got != size {
					t.Errorf("%v keys", got)
				}
				if got := srv.Must("EXISTS", keys); got != int64(1) {
					t.Errorf("%s does not exist", keys)
				}
				if s := log.String(); !strings.Contains(s, "broken") {
					t.Errorf("the log does not name the key:\n%s", s)
				}
			})
		})
	}
}

// text is what a server has logged, for concurrent use.
type text struct {
	mu sync.Mutex
	strings.Builder
}

// Write implements io.Writer.
func (t *text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Builder.Write(b)
}

// String returns the text.
func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Builder.String()
}

// TestEndlessLibraryOfPrimary checks that the replica runs the code of the primary's libraries
// without its lock, and that one which never ends stops only itself.
func TestEndlessLibraryOfPrimary(t *testing.T) {
	const endless = "#!lua name=endless\nredis.log(redis.LOG_WARNING, 'registering') while true do end"
	file := data(endless)
	p := &scripted{answer: full(file, len(file))}
	var log text
	var srv *servertest.Server
	started := make(chan struct{})
	registering := func(line string) {
		log.Write([]byte(line))
		if !strings.Contains(line, "registering") {
			return
		}
		<-started
		answered := make(chan error, 1)
		go func() {
			_, err := srv.Do(t.Context(), "GET", "old")
			answered <- err
		}()
		select {
		case err := <-answered:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("GET is not answered while a library runs")
		}
	}
	srv = replicaOf(t, p, false, server.Options{Logger: slog.New(slog.NewTextHandler(writer(registering), nil))})
	close(started)
	wait.Until(t, "the replica is linked", func() bool { return fields(srv, "master_link_status")[0] == "master_link_status:up" })
	if s := log.String(); !strings.Contains(s, "registering") || !strings.Contains(s, "FUNCTION LOAD timeout") {
		t.Errorf("the log does not name the library:\n%s", s)
	}
	if got := srv.Must("DBSIZE"); got != int64(2) {
		t.Errorf("%v keys", got)
	}
}

// writer is a function as an io.Writer.
type writer func(string)

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) {
	w(string(b))
	return len(b), nil
}
