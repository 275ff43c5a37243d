package persist_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	process "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// How many faults to try. The long form of the tests of faults:
//
//	go test ./server/internal/engine/persist -run 'Killed|Damage' -v -faults.n 200 -timeout 30m
var faults = flag.Int("faults.n", 0, "how many faults to try (0: few)")

// TestCrashChild is not a test but the server that TestKilled kills.
func TestCrashChild(t *testing.T) { enginetest.ServeChild(t) }

// crashWriter is a client that sends numbers, each higher by one than the last.
type crashWriter struct {
	id      int
	sent    int64
	acked   atomic.Int64
	history []acked // acknowledged numbers, with the time
}

type acked struct {
	n  int64
	at time.Time
}

// command appends the n-th command of a writer, and returns its number of replies.
func (w *crashWriter) command(b []byte, n int64) ([]byte, int) {
	words := func(words ...any) {
		b = fmt.Appendf(b, "*%d\r\n", len(words))
		for _, word := range words {
			s := fmt.Sprint(word)
			b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(s), s)
		}
	}
	switch w.id % 5 {
	case 0:
		words("ZADD", fmt.Sprint("zset:", w.id), n, fmt.Sprint("m", n))
	case 1:
		words("SET", fmt.Sprint("string:", w.id, ":", n%1000), n)
	case 2:
		words("HSET", fmt.Sprint("hash:", w.id), fmt.Sprint("f", n), n)
	case 3:
		words("LPUSH", fmt.Sprint("list:", w.id), n)
	case 4:
		words("MULTI")
		words("SET", fmt.Sprint("a:", w.id), n)
		words("ZADD", fmt.Sprint("b:", w.id), n, "member")
		words("EXEC")
		return b, 4
	}
	return b, 1
}

// run sends commands in pipelines until the connection breaks.
func (w *crashWriter) run(socket string, rng *rand.Rand) {
	nc, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer nc.Close()
	r := bufio.NewReader(nc)
	var out []byte
	for {
		out = out[:0]
		replies, n := []int{}, w.sent
		for range 1 + rng.IntN(50) {
			n++
			var k int
			out, k = w.command(out, n)
			replies = append(replies, k)
		}
		w.sent = n
		if _, err := nc.Write(out); err != nil {
			return
		}
		for _, k := range replies {
			for range k {
				reply, err := protocol.DecodeFrom(r)
				if err != nil {
					return
				}
				if e, ok := reply.(protocol.ReplyError); ok {
					panic("a command was refused: " + e.Error())
				}
			}
			w.acked.Add(1)
		}
		w.history = append(w.history, acked{w.acked.Load(), time.Now()})
	}
}

// rewriter asks for fresh files until the connection breaks.
func rewriter(socket string, rng *rand.Rand) {
	nc, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer nc.Close()
	r := bufio.NewReader(nc)
	for err == nil {
		wait.Pace(time.Duration(rng.Int64N(int64(500 * time.Millisecond))))
		fmt.Fprint(nc, "BGREWRITEAOF\r\n")
		_, err = r.ReadString('\n')
	}
}

// acknowledgedBefore returns the last number that was acknowledged by then.
func (w *crashWriter) acknowledgedBefore(t time.Time) (n int64) {
	for _, a := range w.history {
		if a.at.Before(t) {
			n = a.n
		}
	}
	return n
}

// found returns the last number of a writer that a server has, and fails if the
// numbers up to it are not all there.
func (w *crashWriter) found(t *testing.T, srv *enginetest.Server) int64 {
	t.Helper()
	number := func(command string) int64 {
		reply := enginetest.Say(srv, command)
		if reply == "<nil>" {
			return 0
		}
		f, err := strconv.ParseFloat(strings.Trim(reply, "[]"), 64)
		if err != nil {
			t.Fatalf("%s: %s", command, reply)
		}
		return int64(f)
	}
	var n int64
	switch w.id % 5 {
	case 0:
		if n = number(fmt.Sprint("ZCARD zset:", w.id)); n > 0 {
			if last := strings.Fields(strings.Trim(enginetest.Say(srv, fmt.Sprintf("ZRANGE zset:%d -1 -1", w.id)), "[]")); last[0] != fmt.Sprint("m", n) {
				t.Fatalf("writer %d: %d members, the last is %s", w.id, n, last[0])
			}
		}
	case 1:
		slots := map[int64]int64{}
		for i := range int64(1000) {
			slots[i] = number(fmt.Sprint("GET string:", w.id, ":", i))
			n = max(n, slots[i])
		}
		for i := max(1, n-999); i <= n; i++ {
			if slots[i%1000] != i {
				t.Fatalf("writer %d: the string of %d has %d, the last is %d", w.id, i, slots[i%1000], n)
			}
		}
	case 2:
		if n = number(fmt.Sprint("HLEN hash:", w.id)); n > 0 {
			if number(fmt.Sprint("HGET hash:", w.id, " f", n)) != n {
				t.Fatalf("writer %d: %d fields, and not the last", w.id, n)
			}
		}
	case 3:
		if n = number(fmt.Sprint("LLEN list:", w.id)); n > 0 {
			if first, last := number(fmt.Sprint("LINDEX list:", w.id, " 0")), number(fmt.Sprint("LINDEX list:", w.id, " -1")); first != n || last != 1 {
				t.Fatalf("writer %d: %d elements, from %d to %d", w.id, n, last, first)
			}
		}
	case 4:
		n = number(fmt.Sprint("GET a:", w.id))
		if b := number(fmt.Sprintf("ZSCORE b:%d member", w.id)); b != n {
			t.Fatalf("writer %d: the pair is torn: %d and %d", w.id, n, b)
		}
	}
	return n
}

// TestKilled checks that a server that is killed at any moment leaves a file that opens,
// with all commands that were acknowledged more than the interval ago, or with appendfsync
// always, with all acknowledged commands. No command in between is lost, and no MULTI is
// applied in part. The next server continues with the same file, so that kills also hit
// journals and rewrites.
func TestKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no unix sockets to serve on")
	}
	for _, mode := range []string{"interval", "always"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			kills := *faults
			if kills == 0 {
				kills = 3
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "k.db")
			config := "|save|1 1"
			if mode == "always" {
				config = "|appendonly|yes|appendfsync|always"
			}
			rng := rand.New(rand.NewPCG(uint64(kills), uint64(len(mode))))
			writers := make([]*crashWriter, 10)
			for i := range writers {
				writers[i] = &crashWriter{id: i}
			}
			var total, lost int64
			var oldest time.Duration
			rewritten, unfinished := 0, 0
			generations := uint64(0)
			for kill := range kills {
				if kill%15 == 14 { // start with an empty file, to bound the data
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
					for i := range writers {
						writers[i] = &crashWriter{id: i}
					}
					generations = 0
				}
				socket := filepath.Join(dir, fmt.Sprint("s", kill))
				var log bytes.Buffer
				child := process.Command(os.Args[0], "-test.run=^TestCrashChild$", "-test.v")
				child.Env = append(os.Environ(), enginetest.ChildEnv+"="+path+"|"+socket+config)
				child.Stdout, child.Stderr = &log, &log
				if err := child.Start(); err != nil {
					t.Fatal(err)
				}
				awaitSocket(t, socket, child, &log)
				var running sync.WaitGroup
				base := make([]int64, len(writers))
				for i, w := range writers {
					base[i] = w.acked.Load()
					w.history = append(w.history[:0], acked{base[i], time.Now()})
					seed := rng.Uint64()
					running.Go(func() { w.run(socket, rand.New(rand.NewPCG(seed, 1))) })
				}
				seed := rng.Uint64()
				running.Go(func() { rewriter(socket, rand.New(rand.NewPCG(seed, 2))) })
				wait.Pace(20*time.Millisecond + time.Duration(rng.Int64N(int64(1980*time.Millisecond))))
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				killed := time.Now()
				child.Wait()
				running.Wait()
				if strings.Contains(log.String(), "FAIL") || strings.Contains(log.String(), "panic") {
					t.Fatalf("the server: %s", log.String())
				}

				if _, err := os.Stat(path + ".new"); err == nil {
					unfinished++
				}
				srv, err := enginetest.OpenKeep(path, nil)
				if err != nil {
					t.Fatalf("kill %d: %v", kill, err)
				}
				if err := srv.Check(); err != nil {
					t.Fatalf("kill %d: %v", kill, err)
				}
				srv.InTurn(func() {
					if g := srv.Keeper.Stats.Generation; g < generations {
						rewritten++ // a new file counts from 1
					}
					generations = srv.Keeper.Stats.Generation
				})
				for i, w := range writers {
					n := w.found(t, srv)
					now := w.acked.Load()
					total += now - base[i]
					if n < now {
						lost += now - n
						for _, a := range w.history {
							if a.n > n {
								oldest = max(oldest, killed.Sub(a.at))
								break
							}
						}
						if mode == "always" {
							t.Errorf("kill %d, writer %d: %d was acknowledged, %d is there", kill, w.id, now, n)
						} else if must := w.acknowledgedBefore(killed.Add(-interval)); n < must {
							t.Errorf("kill %d, writer %d: %d was acknowledged %v before, %d is there", kill, w.id, must, interval, n)
						}
					}
					if n > w.sent {
						t.Errorf("kill %d, writer %d: %d is there, %d was the last", kill, w.id, n, w.sent)
					}
					w.sent = n
					w.acked.Store(n)
				}
				if err := srv.Close(); err != nil {
					t.Fatal(err)
				}
				if t.Failed() {
					return
				}
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d kills, %d clean opens; %d commands acknowledged, %d of them lost, the oldest acknowledged %v before the kill; "+
				"%d files were replaced by new ones, %d rewrites were killed; the file has %d KB",
				mode, kills, kills, total, lost, oldest.Round(time.Millisecond), rewritten, unfinished, info.Size()>>10)
		})
	}
}

// interval is the maximum age of lost commands: the second of the save rule, and the time
// to write a checkpoint on a busy machine.
const interval = 2500 * time.Millisecond

// awaitSocket waits until a server listens there and has loaded its data.
func awaitSocket(t *testing.T, socket string, child *process.Cmd, log *bytes.Buffer) {
	t.Helper()
	serves := func() bool {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(nc, "PING\r\n")
		line, _ := bufio.NewReader(nc).ReadString('\n')
		return line == "+PONG\r\n"
	}
	if !wait.Holds(serves) {
		child.Process.Kill()
		child.Wait()
		t.Fatalf("the server has not started:\n%s", log.Bytes())
	}
}
