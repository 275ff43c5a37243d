package admin_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

func TestClientUnblock(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	a, b := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	id := b.Call("CLIENT ID").(int64)
	for _, test := range []struct {
		how  string
		want any
	}{
		{"", nil},
		{" TIMEOUT", nil},
		{" ERROR", protocol.ReplyError("UNBLOCKED client unblocked via CLIENT UNBLOCK")},
	} {
		b.Send("BLPOP l 0\r\n")
		enginetest.Until(t, srv, "blocked", func() bool { return srv.Stats.BlockedClients == 1 })
		if list := a.Call("CLIENT LIST").(string); !strings.Contains(list, " flags=b ") || !strings.Contains(list, " cmd=blpop ") {
			t.Errorf("CLIENT LIST of a blocked client: %s", list)
		}
		if got := a.Call(fmt.Sprintf("CLIENT UNBLOCK %d%s", id, test.how)); got != int64(1) {
			t.Errorf("CLIENT UNBLOCK%s: %v", test.how, got)
		}
		if got := b.Reply(); got != test.want {
			t.Errorf("after CLIENT UNBLOCK%s: %v, want %v", test.how, got, test.want)
		}
		if got := a.Call(fmt.Sprintf("CLIENT UNBLOCK %d", id)); got != int64(0) {
			t.Errorf("CLIENT UNBLOCK of a client that is not blocked: %v", got)
		}
	}
	stats := a.Call("INFO commandstats").(string)
	if !regexp.MustCompile(`cmdstat_blpop:calls=3,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=1\r`).MatchString(stats) {
		t.Errorf("INFO commandstats: %s", stats)
	}
	if got := a.Call("INFO errorstats").(string); got != "# Errorstats\r\nerrorstat_UNBLOCKED:count=1\r\n" {
		t.Errorf("INFO errorstats: %q", got)
	}
}

func TestMonitor(t *testing.T) {
	_, addr := enginetest.Start(t, nil)
	m, c := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	if got := m.Call("MONITOR"); got != protocol.Status("OK") {
		t.Fatal(got)
	}
	if list := c.Call("CLIENT LIST").(string); !strings.Contains(list, " flags=O ") {
		t.Errorf("CLIENT LIST: %s", list)
	}
	for _, line := range []string{
		"SELECT 3", `SET a "x\"\\\n\x01\xff"`, "AUTH secret", "AUTH default secret", "HELLO 2 AUTH default secret", "CONFIG GET port",
		"FOO", "GET", "MULTI", "GET a", "ZADD z 1 a", "EXEC", "BLPOP l 0.01", "ZADD z x a", "RESET", "PING",
	} {
		c.Call(line)
	}
	want := []string{
		`[3 ADDR] "SELECT" "3"`, `[3 ADDR] "SET" "a" "x\"\\\n\x01\xff"`, `[3 ADDR] "AUTH" "(redacted)"`,
		`[3 ADDR] "AUTH" "(redacted)" "(redacted)"`, `[3 ADDR] "HELLO" "2" "AUTH" "(redacted)" "(redacted)"`,
		`[3 ADDR] "MULTI"`, `[3 ADDR] "GET" "a"`, `[3 ADDR] "ZADD" "z" "1" "a"`, `[3 ADDR] "EXEC"`,
		`[3 ADDR] "BLPOP" "l" "0.01"`, `[3 ADDR] "ZADD" "z" "x" "a"`, `[0 ADDR] "RESET"`, `[0 ADDR] "PING"`,
	}
	line := regexp.MustCompile(`^\d{10}\.\d{6} (.*)$`)
	for _, w := range want {
		w = strings.ReplaceAll(w, "ADDR", c.LocalAddr().String())
		got := string(m.Reply().(protocol.Status))
		if parts := line.FindStringSubmatch(got); parts == nil || parts[1] != w {
			t.Errorf("got %s, want %s", got, w)
		}
	}

	c.Send("CLIENT REPLY OFF\r\nMONITOR\r\nECHO there\r\n")
	for line := ""; !strings.Contains(line, "there"); line = string(m.Reply().(protocol.Status)) {
	}
	m.Call("PING")
	c.Send("CLIENT REPLY ON\r\n")
	if got := c.Reply(); got != protocol.Status("OK") {
		t.Errorf("a client with CLIENT REPLY OFF got %v", got)
	}
}

func TestSlowlog(t *testing.T) {
	_, addr := enginetest.Start(t, map[string]string{"slowlog-log-slower-than": "0", "slowlog-max-len": "4"})
	c := enginetest.Dial(t, addr)
	c.Call("CLIENT SETNAME me")
	c.Call("CONFIG SET requirepass secret timeout 0")
	c.Call("AUTH default secret")
	c.Call("ECHO " + strings.Repeat("x", 200))
	c.Call("DEL" + strings.Repeat(" k", 40))
	var argv []string
	for _, e := range c.Call("SLOWLOG GET").([]any) {
		entry := e.([]any)
		if len(entry) != 6 || entry[4] != c.LocalAddr().String() || entry[5] != "me" {
			t.Errorf("entry: %v", entry)
		}
		argv = append(argv, strings.Join(texts(entry[3]), " "))
	}
	want := []string{
		"DEL" + strings.Repeat(" k", 30) + " ... (10 more arguments)",
		"ECHO " + strings.Repeat("x", 128) + "... (72 more bytes)",
		"AUTH (redacted) (redacted)",
		"CONFIG SET requirepass (redacted) timeout 0",
	}
	if !slices.Equal(argv, want) {
		t.Errorf("got  %q\nwant %q", argv, want)
	}
	// SLOWLOG RESET removes the entries; their IDs are not reused.
	c.Call("SLOWLOG RESET")
	e := c.Call("SLOWLOG GET 1").([]any)[0].([]any)
	if got := fmt.Sprint(e[0], e[3]); got != "6 [SLOWLOG RESET]" {
		t.Errorf("after a reset: %s", got)
	}
}

// TestCommandLog: the entries of COMMANDLOG have the size of the request or of the reply, and
// those of slow commands are those of SLOWLOG.
func TestCommandLog(t *testing.T) {
	_, addr := enginetest.Start(t, map[string]string{"slowlog-log-slower-than": "0"})
	c := enginetest.Dial(t, addr)
	c.Call("CLIENT SETNAME me")
	c.Call("CONFIG SET commandlog-request-larger-than 28 commandlog-reply-larger-than 10")
	c.Send("SET k 0123456789\r\nSET k 12\r\nGET k\r\nSET k 0123456789\r\nGET k\r\n") // a pipeline, as in a fast batch
	for range 5 {
		c.Reply()
	}
	for _, log := range []struct{ name, want string }{
		{"slow", "GET k, SET k 0123456789, GET k, SET k 12, SET k 0123456789"},
		{"large-request", "37 SET k 0123456789, 28 SET k 12, 37 SET k 0123456789"},
		{"large-reply", "17 GET k"},
	} {
		var got []string
		for _, e := range c.Call("COMMANDLOG GET -1 " + log.name).([]any) {
			entry := e.([]any)
			words := texts(entry[3])
			if words[0] != "SET" && words[0] != "GET" {
				continue // a command of this test about the logs
			}
			if len(entry) != 6 || entry[4] != c.LocalAddr().String() || entry[5] != "me" {
				t.Errorf("entry: %v", entry)
			}
			if log.name != "slow" {
				words = append([]string{fmt.Sprint(entry[2])}, words...)
			}
			got = append(got, strings.Join(words, " "))
		}
		if strings.Join(got, ", ") != log.want {
			t.Errorf("%s: %q, not %q", log.name, got, log.want)
		}
	}
	if n, slow := c.Call("COMMANDLOG LEN slow"), c.Call("SLOWLOG LEN"); fmt.Sprint(n) == "0" || fmt.Sprint(slow) == "0" {
		t.Errorf("%v slow commands, SLOWLOG has %v", n, slow)
	}
}

func texts(v any) (list []string) {
	for _, s := range v.([]any) {
		list = append(list, s.(string))
	}
	return list
}

func TestLatencyGraph(t *testing.T) {
	var l metrics.LatencyLog
	now := time.Unix(1e9, 0)
	for i, ms := range []int{1, 2, 9, 300, 40, 40, 150} {
		l.Add("command", now.Add(time.Duration(i)*50*time.Second), time.Duration(ms)*time.Millisecond)
	}
	l.Add("command", now.Add(300*time.Second), 7*time.Millisecond) // less in the same second
	s := l.Events["command"]
	want := `command - high 300 ms, low 1 ms (all time high 300 ms)
--------------------------------------------------------------------------------
   #   
   |   
   |  #
___|oo|
       
5432150
mmmmm0s
     s 
`
	if got := s.Graph("command", 1e9+300); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for i := range 500 {
		l.Add("command", now.Add(time.Duration(1000+i)*time.Second), time.Second)
	}
	if len(s.Samples) != metrics.MaxSamples || s.Samples[0].At != 1e9+1000+500-metrics.MaxSamples || s.Max != 1000 {
		t.Errorf("%d samples since %d, max %d", len(s.Samples), s.Samples[0].At, s.Max)
	}
}

func TestLatencyEvents(t *testing.T) {
	_, addr := enginetest.Start(t, map[string]string{"latency-monitor-threshold": "5", "enable-debug-command": "yes"})
	c := enginetest.Dial(t, addr)
	c.Call("DEBUG SLEEP 0.02")
	latest := c.Call("LATENCY LATEST").([]any)
	if len(latest) != 1 || latest[0].([]any)[0] != "command" || latest[0].([]any)[3].(int64) < 20 {
		t.Fatalf("LATENCY LATEST: %v", latest)
	}
	spike := fmt.Sprintf("  command: 1 samples, mean %d ms,", latest[0].([]any)[3])
	if report := c.Call("LATENCY DOCTOR").(string); !strings.Contains(report, spike) ||
		!strings.Contains(report, "SLOWLOG GET lists") {
		t.Errorf("LATENCY DOCTOR: %s", report)
	}
	if got := c.Call("LATENCY RESET command foo"); got != int64(1) {
		t.Errorf("LATENCY RESET: %v", got)
	}
}

// TestLatencyCommands checks the replies about given events, and the advice of LATENCY DOCTOR.
func TestLatencyCommands(t *testing.T) {
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"latency-monitor-threshold": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	add := func(event string, ago time.Duration, ms int) {
		srv.InTurn(func() { srv.Stats.Latency.Add(event, srv.Turn.At.Add(-ago), time.Duration(ms)*time.Millisecond) })
	}
	srv.Do(t.Context(), "PING")
	add("command", 2*time.Minute, 7)
	add("command", time.Second, 5)
	var now int64
	srv.InTurn(func() { now = srv.Turn.At.Unix() })
	if got, want := enginetest.Say(srv, "LATENCY HISTORY command"), fmt.Sprintf("[[%d 7] [%d 5]]", now-120, now-1); got != want {
		t.Errorf("HISTORY: %s, want %s", got, want)
	}
	if got := enginetest.Say(srv, "LATENCY GRAPH command"); !strings.HasPrefix(got, "command - high 7 ms, low 5 ms (all time high 7 ms)\n") || !strings.Contains(got, "\n21\n") {
		t.Errorf("GRAPH: %s", got)
	}
	const slow = "- SLOWLOG GET lists slow commands with their arguments.\n"
	for _, test := range []struct{ config, advice string }{
		{"slowlog-log-slower-than -1", "- The slow log is off. CONFIG SET slowlog-log-slower-than 2000 makes it record the commands of these events.\n" + slow},
		{"slowlog-log-slower-than 0 slowlog-max-len 0", "- The slow log has no room. CONFIG SET slowlog-max-len 128 makes it record the commands of these events.\n" + slow},
		{"slowlog-log-slower-than 3000 slowlog-max-len 128", "- The slow log records only commands of 3000 microseconds or longer. " +
			"CONFIG SET slowlog-log-slower-than 2000 makes it record the commands of these events.\n" + slow},
		{"slowlog-log-slower-than 2000", slow},
		{"slowlog-log-slower-than 0", slow},
	} {
		enginetest.Must(t, srv, "CONFIG SET "+test.config)
		if _, got, _ := strings.Cut(enginetest.Say(srv, "LATENCY DOCTOR"), "Advice:\n"); got != test.advice {
			t.Errorf("%s: %s", test.config, got)
		}
	}
	for event, advice := range map[string]string{
		"expire-cycle":   "- Many keys expired at once. ",
		"eviction-cycle": "- Many keys were evicted at once. ",
		"fast-command":   "- Commands with little work were slow: ",
		"other":          "",
	} {
		enginetest.Must(t, srv, "LATENCY RESET")
		add(event, 0, 9)
		_, got, any := strings.Cut(enginetest.Say(srv, "LATENCY DOCTOR"), "Advice:\n")
		if !strings.HasPrefix(got, advice) || strings.Count(got, "\n") > 1 || any != (advice != "") {
			t.Errorf("%s: %q", event, got)
		}
	}
	enginetest.Must(t, srv, "CONFIG RESETSTAT", "CONFIG GET port", "OBJECT HELP")
	if got := enginetest.Say(srv, "LATENCY HISTOGRAM config nosuch"); !strings.HasPrefix(got, "[{config|get [{calls 1} ") ||
		!strings.Contains(got, " {config|resetstat [{calls 1} ") || strings.Count(got, "calls") != 2 {
		t.Errorf("HISTOGRAM config: %s", got)
	}
}

// TestHelloZone checks that HELLO has the availability zone where there is one.
func TestHelloZone(t *testing.T) {
	for zone, want := range map[string]int{"": 7, "zone 1": 8} {
		srv, addr := enginetest.Start(t, map[string]string{"availability-zone": zone})
		c := enginetest.Dial(t, addr)
		hello, _ := c.Call("HELLO 2").([]any)
		if len(hello) != 2*want || zone != "" && fmt.Sprint(hello[14:]) != "[availability_zone "+zone+"]" {
			t.Errorf("zone %q: %v", zone, hello)
		}
		c.Send("PING\r\n")
		c.Expect("PONG")
		if got := enginetest.Say(srv, "COMMAND COUNT"); got != fmt.Sprint(len(c.Call("COMMAND INFO").([]any))) {
			t.Errorf("COMMAND INFO has not all %s commands", got)
		}
	}
}

// TestKeyMemory checks the histograms of memory in INFO keysizes.
func TestKeyMemory(t *testing.T) {
	for _, on := range []string{"yes", "no"} {
		srv, err := enginetest.New(engine.Options{Config: map[string]string{"key-memory-histograms": on}})
		if err != nil {
			t.Fatal(err)
		}
		enginetest.Must(t, srv, "RPUSH l a b", "SADD s a", "ZADD z 1 a", "HSET h f v")
		info := enginetest.Say(srv, "INFO keysizes")
		for _, name := range []string{"lists", "sets", "zsets", "hashes"} {
			if !strings.Contains(info, "db0_distrib_"+name+"_items:") || strings.Contains(info, "db0_distrib_"+name+"_sizes:") != (on == "yes") {
				t.Errorf("key-memory-histograms %s: %s", on, info)
			}
		}
		srv.Close()
	}
}

// TestSupervised checks the supervisor that INFO names.
func TestSupervised(t *testing.T) {
	for _, test := range []struct{ mode, notify, job, want string }{
		{"auto", "/run/x", "", "systemd"}, {"systemd", "/run/x", "", "systemd"}, {"upstart", "/run/x", "", "no"}, {"no", "/run/x", "job", "no"},
		{"auto", "", "job", "upstart"}, {"upstart", "", "job", "upstart"}, {"systemd", "", "job", "no"}, {"auto", "", "", "no"},
	} {
		t.Setenv("NOTIFY_SOCKET", test.notify)
		t.Setenv("UPSTART_JOB", test.job)
		srv, err := enginetest.New(engine.Options{Config: map[string]string{"supervised": test.mode}})
		if err != nil {
			t.Fatal(err)
		}
		if got := enginetest.Info(t, srv, "process_supervised"); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
		srv.Close()
	}
}

// TestModules checks that modules are refused as libraries that cannot be loaded.
func TestModules(t *testing.T) {
	var log enginetest.LogBuffer
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"enable-module-command": "yes"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	enginetest.Must(t, srv, "MODULE LOAD /lib/x.so -> ERR Error loading the extension. Please check the server logs.",
		"MODULE LOADEX /lib/y.so -> ERR Error loading the extension. Please check the server logs.",
		"MODULE UNLOAD x -> ERR Error unloading module: no such module with that name", "MODULE LIST -> []")
	for _, path := range []string{"/lib/x.so", "/lib/y.so"} {
		if !strings.Contains(log.String(), `msg="cannot load the module: modules are not supported" path=`+path+"\n") {
			t.Errorf("log: %s", log.String())
		}
	}
}

func TestHistogram(t *testing.T) {
	last := -1
	for ns := uint64(1); ns <= uint64(metrics.HistogramMax); ns += 1 + ns/100 {
		i := metrics.BucketOf(ns)
		if i < last || i > last+1 && ns > 1 {
			t.Fatalf("%d ns are in bucket %d, after %d", ns, i, last)
		}
		if last = i; metrics.BucketEnd(i) < ns || i > 0 && metrics.BucketEnd(i-1) >= ns || float64(metrics.BucketEnd(i)) > float64(ns)*17/16 {
			t.Fatalf("%d ns are in bucket %d, which ends at %d", ns, i, metrics.BucketEnd(i))
		}
	}
	if metrics.BucketOf(uint64(metrics.HistogramMax)) >= metrics.HistogramBuckets {
		t.Fatal("too few buckets")
	}
	var h metrics.Histogram
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		h.Add(time.Duration(r.IntN(int(time.Millisecond))))
	}
	h.Add(time.Hour)
	for _, p := range []float64{50, 99, 99.9} {
		if got, want := float64(h.Percentile(p)), p/100*1e6; got < 0.93*want || got > 1.07*want {
			t.Errorf("p%g: %g ns, want about %g", p, got, want)
		}
	}
	steps := h.Cumulative()
	if last := steps[len(steps)-1]; last.Count != h.Total || last.Usec != 1082130 {
		t.Errorf("the last step is %v", last)
	}
	labels := []int64{1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056}
	for i, usec := range labels {
		if want := min(float64(uint64(1024)<<i)/100, 10000); steps[i].Usec != usec ||
			float64(steps[i].Count) < 0.8*want-20 || float64(steps[i].Count) > 1.2*want+20 {
			t.Errorf("step %d: %v", i, steps[i])
		}
	}
}

func TestRates(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	for range 15 {
		c.Call("PING")
		srv.Advance(100 * time.Millisecond)
	}
	srv.Mu.Lock()
	commands, input, _, _ := srv.Rates()
	srv.Mu.Unlock()
	if commands < 5 || commands > 11 || input < 30 || input > 70 {
		t.Errorf("%g commands and %g bytes of input a second", commands, input)
	}
	srv.Advance(time.Minute)
	c.Call("PING")
	srv.Mu.Lock()
	commands, _, _, _ = srv.Rates()
	srv.Mu.Unlock()
	if commands > 1 {
		t.Errorf("%g commands a second after a quiet minute", commands)
	}
}

func TestNoTouch(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	c.Call("SET k v")
	srv.Advance(100 * time.Second)
	c.Call("CLIENT NO-TOUCH ON")
	c.Call("GET k")
	c.Call("STRLEN k")
	if got := c.Call("OBJECT IDLETIME k"); got.(int64) < 100 {
		t.Errorf("after GET: idle for %v s", got)
	}
	c.Call("TOUCH k")
	if got := c.Call("OBJECT IDLETIME k"); got != int64(0) {
		t.Errorf("after TOUCH: idle for %v s", got)
	}
	srv.Advance(100 * time.Second)
	enginetest.Dial(t, addr).Call("GET k")
	if got := c.Call("OBJECT IDLETIME k"); got != int64(0) {
		t.Errorf("after another client's GET: idle for %v s", got)
	}
}

func TestRandomkeyDuringPause(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	for i := range 100 {
		c.Call(fmt.Sprintf("SET dead%d v EX 1000", i))
	}
	c.Call("CLIENT PAUSE 10000000 WRITE")
	srv.Advance(2000 * time.Second)
	if got := c.Call("RANDOMKEY"); !strings.HasPrefix(fmt.Sprint(got), "dead") { // as in Redis 8.6, where all keys have deadlines
		t.Errorf("RANDOMKEY: %v", got)
	}
	if got := c.Call("DBSIZE"); got.(int64) == 0 {
		t.Errorf("expired during the pause")
	}
	c.Call("CLIENT UNPAUSE")
	c.Call("SET alive v")
	c.Call("CLIENT PAUSE 10000000 WRITE")
	for range 10 {
		if got := c.Call("RANDOMKEY"); got != "alive" {
			t.Errorf("RANDOMKEY: %v", got)
		}
	}
	srv.Advance(10001 * time.Second) // a pause is rounded up
	if got := c.Call("INFO stats").(string); !strings.Contains(got, "\r\nexpired_keys:100\r\n") {
		t.Errorf("INFO stats: %s", got)
	}
}

func TestShutdownCommand(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	c, other := enginetest.Dial(t, l.Addr().String()), enginetest.Dial(t, l.Addr().String())
	other.Call("PING")
	c.Send("SHUTDOWN NOSAVE\r\n")
	if got := c.All(); got != "" {
		t.Errorf("reply: %q", got)
	}
	other.All()
	if err := <-served; !errors.Is(err, engine.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
}

func TestResetstat(t *testing.T) {
	_, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	c.Call("SET k v")
	c.Call("GET k")
	c.Call("GET none")
	c.Call("FOO")
	info := c.Call("INFO stats").(string)
	for _, want := range []string{"keyspace_hits:1\r", "keyspace_misses:1\r", "total_commands_processed:3\r", "total_error_replies:1\r"} {
		if !strings.Contains(info, want) {
			t.Errorf("%s is missing in %s", want, info)
		}
	}
	c.Call("CONFIG RESETSTAT")
	info = c.Call("INFO all").(string)
	for _, want := range []string{"keyspace_hits:0\r", "keyspace_misses:0\r", "total_commands_processed:1\r", "total_error_replies:0\r"} {
		if !strings.Contains(info, want) {
			t.Errorf("%s is missing in %s", want, info)
		}
	}
	if strings.Contains(info, "cmdstat_get") || strings.Contains(info, "errorstat_") || strings.Contains(info, "usec_get") {
		t.Errorf("not reset: %s", info)
	}
}

func TestHumanBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1023: "1023B", 1024: "1.00K", 895 << 10: "895.00K", 1 << 20: "1.00M", 5 << 29: "2.50G"} {
		if got := metrics.HumanBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestLolwutIsBounded checks that a picture has at most a thousand lines of a thousand
// characters (3 bytes each) for all arguments.
func TestLolwutIsBounded(t *testing.T) {
	rerun.Skip(t)
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, args := range [][]any{
		{5, 1000, 200, 200}, {5, 1 << 40, -1, 1 << 40}, {6, 1000, 1000}, {6, 1 << 40, 1 << 40}, {6, -1, 1 << 40},
	} {
		got, err := srv.Do(t.Context(), append([]any{"LOLWUT", "VERSION"}, args...)...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		text := fmt.Sprint(got)
		if lines := strings.Count(text, "\n"); lines < 3 || lines > 1005 || len(text) > 3_010_000 {
			t.Errorf("%v: %d lines, %d bytes", args, lines, len(text))
		}
	}
}

// TestKilledClientIsGone checks that a client does not exist any more for the commands that
// follow the one that kills it, though its connection is still open.
func TestKilledClientIsGone(t *testing.T) {
	_, addr := enginetest.Start(t, nil)
	a, b := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	id := b.Call("CLIENT ID").(int64)
	a.Call("MULTI")
	for _, line := range []string{"CLIENT KILL ID %d", "CLIENT TRACKING ON REDIRECT %d", "CLIENT UNBLOCK %d", "CLIENT LIST ID %d", "CLIENT KILL ID %d"} {
		a.Call(fmt.Sprintf(line, id))
	}
	if got, want := fmt.Sprint(a.Call("EXEC")), "[1 ERR The client ID you want redirect to does not exist 0  0]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
