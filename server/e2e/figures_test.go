package e2e

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

var figures = flag.Duration("figures", 0, "measure the cost of persistence, each load for this `time`; of redis-server, too, if it is installed")

// peerServer is a server process that a test measures.
type peerServer struct {
	t    *testing.T
	name string
	bin  string
	args []string
	dir  string
	port int
	cmd  *exec.Cmd
	rdb  *redis.Client
}

// peers returns the servers to measure, not started: zsetd, and redis-server if it is
// installed and redisArgs is not nil.
func peers(t *testing.T, zsetd, redisArgs []string) []*peerServer {
	if *figures == 0 {
		t.Skip("needs a flag such as -figures 10s")
	}
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	bin := binary.Path(t)
	list := []*peerServer{{t: t, name: "zsetd", bin: bin, args: zsetd, dir: t.TempDir(), port: 7621}}
	if bin, err := exec.LookPath("redis-server"); err == nil && redisArgs != nil {
		list = append(list, &peerServer{t: t, name: "redis", bin: bin, args: redisArgs, dir: t.TempDir(), port: 7622})
	}
	return list
}

// start starts the process and returns the time until it serves data.
func (s *peerServer) start() time.Duration {
	s.t.Helper()
	args := append([]string{"--port", strconv.Itoa(s.port), "--dir", s.dir}, s.args...)
	s.cmd = exec.Command(s.bin, args...)
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.rdb = redis.NewClient(&redis.Options{Addr: s.addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	s.t.Cleanup(func() { s.stop() })
	wait.Until(s.t, s.name+" starts", func() bool { return s.rdb.Ping(context.Background()).Err() == nil })
	return time.Since(begin)
}

func (s *peerServer) stop() {
	if s.cmd != nil {
		s.rdb.Close()
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *peerServer) addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// proc returns the number after a name in a file of the process in /proc.
func (s *peerServer) proc(file, name string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.cmd.Process.Pid, file))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n
		}
	}
	s.t.Fatalf("no %s in %s", name, file)
	return 0
}

// pipe sends n commands in a pipeline and waits for all replies.
func (s *peerServer) pipe(n int, command func(i int, b []byte) []byte) {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.addr())
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	done := make(chan error, 1)
	go func() {
		r := bufio.NewReaderSize(nc, 1<<16)
		for range n {
			if _, err := r.ReadSlice('\n'); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	w := bufio.NewWriterSize(nc, 1<<16)
	var b []byte
	for i := range n {
		b = command(i, b[:0])
		if _, err := w.Write(b); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		s.t.Fatal(err)
	}
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
}

func zadd(b []byte, key string, score, member int) []byte {
	return fmt.Appendf(b, "ZADD %s %d m:%010d\r\n", key, score, member)
}

// TestFiguresLoading measures the time of loading one set of a million members, and
// 300 000 sets of 5.
func TestFiguresLoading(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, data := range []struct {
		name string
		n    int
		fill func(i int, b []byte) []byte
	}{
		{"1 M members in one set", 1_000_000, func(i int, b []byte) []byte { return zadd(b, "big", r.IntN(1e9), i) }},
		{"300 000 sets of 5", 1_500_000, func(i int, b []byte) []byte { return zadd(b, fmt.Sprintf("s:%06d", i/5), r.IntN(1e9), i) }},
	} {
		for _, how := range []string{"as written", "rewritten"} {
			var took []time.Duration
			for _, s := range peers(t, []string{"--dbfilename", "z.db"}, []string{"--save", "3600 1"}) {
				s.start()
				s.pipe(data.n, data.fill)
				if s.name == "zsetd" && how == "rewritten" {
					s.rewrite()
				}
				s.rdb.Shutdown(context.Background())
				s.cmd.Wait()
				times := []time.Duration{s.start(), 0, 0}
				for i := range 2 {
					s.stop()
					times[i+1] = s.start()
				}
				slices.Sort(times)
				took = append(took, times[1])
				s.stop()
			}
			if len(took) == 2 {
				t.Logf("loading %s, %s: zsetd %v, redis %v: %.2f times", data.name, how,
					took[0].Round(time.Millisecond), took[1].Round(time.Millisecond), float64(took[0])/float64(took[1]))
			} else {
				t.Logf("loading %s, %s: zsetd %v", data.name, how, took)
			}
		}
	}
}

// rewrite starts a rewrite of the file and waits for its end.
func (s *peerServer) rewrite() {
	ctx := context.Background()
	if err := s.rdb.BgRewriteAOF(ctx).Err(); err != nil {
		s.t.Fatal(err)
	}
	wait.Until(s.t, "the rewrite has ended", func() bool {
		return s.info("aof_rewrites") != "0" && s.info("aof_rewrite_in_progress") == "0"
	})
}

func (s *peerServer) info(field string) string {
	for line := range strings.Lines(s.rdb.Info(context.Background(), "everything").Val()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value
		}
	}
	return ""
}

// TestFiguresWriteAmplification measures the ratio of bytes written to bytes changed,
// under a steady load of 20 000 random ZADDs a second over 10 000 sets.
func TestFiguresWriteAmplification(t *testing.T) {
	s := peers(t, []string{"--dbfilename", "z.db"}, nil)[0]
	s.start()
	// wchar also counts bytes written to sockets, which are subtracted.
	changed, n := 0, 0
	r := rand.New(rand.NewPCG(3, 4))
	output := func() int64 { n, _ := strconv.ParseInt(s.info("total_net_output_bytes"), 10, 64); return n }
	files, sockets := s.proc("io", "wchar"), output()
	for begin := time.Now(); time.Since(begin) < *figures; {
		const rate, step = 20000, 50 * time.Millisecond
		due := int(time.Since(begin).Seconds() * rate)
		if n >= due {
			wait.Pace(step)
			continue
		}
		s.pipe(due-n, func(_ int, b []byte) []byte {
			changed += len("m:0123456789") + 8
			return zadd(b, fmt.Sprintf("s:%05d", r.IntN(10000)), r.IntN(1e9), r.IntN(1e9))
		})
		n = due
	}
	wait.Elapse(1500 * time.Millisecond)
	written := s.proc("io", "wchar") - files - (output() - sockets)
	t.Logf("%d ZADDs in %v: %d bytes of members and scores changed, %d written: %.2f times; journal %s, bases %s, file %s bytes, %s rewrites",
		n, *figures, changed, written, float64(written)/float64(changed),
		s.info("snapshot_journal_bytes"), s.info("snapshot_bases_bytes"), s.info("snapshot_file_bytes"), s.info("aof_rewrites"))
}

// TestFiguresSmallChange measures the bytes written for ten changed members of a set of
// a million.
func TestFiguresSmallChange(t *testing.T) {
	s := peers(t, []string{"--dbfilename", "z.db"}, nil)[0]
	s.start()
	s.pipe(1_000_000, func(i int, b []byte) []byte { return zadd(b, "big", i, i) })
	s.rdb.Save(context.Background())
	s.rewrite()
	files := s.proc("io", "write_bytes")
	s.pipe(10, func(i int, b []byte) []byte { return zadd(b, "big", -i, i*99_000) })
	s.rdb.Save(context.Background())
	t.Logf("ten members of a million: %d bytes written", s.proc("io", "write_bytes")-files)
}

// TestFiguresPause measures the latency of replies during a rewrite of 1.5 M members in
// 15 000 sets, under a steady load.
func TestFiguresPause(t *testing.T) {
	for _, s := range peers(t, []string{"--dbfilename", "z.db"}, []string{"--save", ""}) {
		s.start()
		r := rand.New(rand.NewPCG(5, 6))
		s.pipe(1_500_000, func(i int, b []byte) []byte { return zadd(b, fmt.Sprintf("s:%05d", i%15000), r.IntN(1e9), i) })
		wait.Elapse(2 * time.Second)
		baseline := s.probe(*figures, nil)
		rss := s.proc("status", "VmRSS")
		os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.cmd.Process.Pid), []byte("5"), 0) // resets VmHWM
		during := s.probe(*figures, func() {
			if s.name == "redis" {
				s.rdb.BgSave(context.Background())
			} else {
				s.rdb.BgRewriteAOF(context.Background())
			}
		})
		t.Logf("%s: without a rewrite p50 %v p99.9 %v longest %v; during a rewrite p50 %v p99.9 %v longest %v; RSS %d MB, at most %d MB (%.2f times)",
			s.name, at(baseline, .5), at(baseline, .999), at(baseline, 1), at(during, .5), at(during, .999), at(during, 1),
			rss>>10, s.proc("status", "VmHWM")>>10, float64(s.proc("status", "VmHWM"))/float64(rss))
		if s.name == "zsetd" {
			t.Logf("zsetd: %s rewrites", s.info("aof_rewrites"))
		}
		s.stop()
	}
}

// at returns a quantile of sorted times.
func at(times []time.Duration, p float64) time.Duration {
	return times[min(len(times)-1, int(p*float64(len(times))))].Round(10 * time.Microsecond)
}

// probe sends single commands for d, under a load of 10 000 ZADDs a second, and returns
// their sorted latencies. It calls middle after a quarter of the time.
func (s *peerServer) probe(d time.Duration, middle func()) (times []time.Duration) {
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := rand.New(rand.NewPCG(7, 8))
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				s.pipe(50, func(_ int, b []byte) []byte {
					return zadd(b, fmt.Sprintf("s:%05d", r.IntN(15000)), r.IntN(1e9), r.IntN(1_500_000))
				})
			}
		}
	}()
	nc, err := net.Dial("tcp", s.addr())
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	buf := make([]byte, 64)
	r := rand.New(rand.NewPCG(9, 10))
	for begin, asked := time.Now(), false; time.Since(begin) < d; {
		if middle != nil && !asked && time.Since(begin) > d/4 {
			asked = true
			middle()
		}
		i := r.IntN(1_500_000)
		b := zadd(nil, fmt.Sprintf("s:%05d", i%15000), r.IntN(1e9), i)
		sent := time.Now()
		if _, err := nc.Write(b); err != nil {
			s.t.Fatal(err)
		}
		n, err := io.ReadAtLeast(nc, buf, 4)
		if err != nil || !bytes.HasPrefix(buf[:n], []byte(":")) {
			s.t.Fatalf("%s: %q, %v", s.name, buf[:n], err)
		}
		times = append(times, time.Since(sent))
		wait.Pace(200 * time.Microsecond)
	}
	close(stop)
	<-done
	slices.Sort(times)
	return times
}
