package differential

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestDumpAsRedis moves values of all kinds and sizes to Redis and back, by DUMP and
// RESTORE. Where the bytes of Redis are deterministic, those of zsetd are the same but
// for what is compressed; that has about the same size, and becomes the same payload
// once it is in Redis.
func TestDumpAsRedis(t *testing.T) {
	rerun.Skip(t)
	dial := judge.Start(t)
	real := judge.NewPeer(dial(), dial())
	ours := judge.Own(t, server.Options{})
	r := rand.New(rand.NewPCG(11, 5))
	for i := range 400 {
		if i%8 == 0 {
			compareStreams(t, r, ours, real)
		}
		argv, look, exact := randomValue(r)
		for _, p := range []*judge.Peer{ours, real} {
			p.Do("FLUSHALL")
			if reply := p.Do(argv...); reply[0] == '-' {
				t.Fatal(reply)
			}
		}
		a, b := dumped(t, ours.Do("DUMP", "k")), dumped(t, real.Do("DUMP", "k"))
		plain := ""
		for _, p := range []*judge.Peer{ours, real} {
			p.Do("CONFIG", "SET", "rdbcompression", "no")
			before := plain
			plain = dumped(t, p.Do("DUMP", "k"))
			p.Do("CONFIG", "SET", "rdbcompression", "yes")
			if p == real && exact && before != plain {
				t.Errorf("DUMP without compression after %.200q (%d):\nredis: %.300q\nzsetd: %.300q", argv, i, plain, before)
			}
		}
		if exact && (len(a) > len(plain) || len(a) == len(plain) && a != plain || len(a) > len(b)+len(b)/8+8) {
			t.Errorf("DUMP after %.200q (%d), %d bytes:\nredis, %d bytes: %.300q\nzsetd, %d bytes: %.300q",
				argv, i, len(plain), len(b), b, len(a), a)
		}
		if reply := real.Do("RESTORE", "there", "0", a); reply != "+OK\r\n" {
			t.Fatalf("%.200q: redis refuses a payload: %s%.200q", argv, reply, a)
		}
		if again := dumped(t, real.Do("DUMP", "there")); exact && again != b {
			t.Errorf("DUMP after %.200q (%d):\nredis: %.300q\nafter RESTORE from zsetd: %.300q", argv, i, b, again)
		}
		if reply := ours.Do("RESTORE", "there", "0", b); reply != "+OK\r\n" {
			t.Fatalf("%.200q: a payload of redis is refused: %s%.200q", argv, reply, b)
		}
		want := real.Do(look("k")...)
		for name, got := range map[string]string{
			"redis, from zsetd": real.Do(look("there")...),
			"zsetd, from redis": ours.Do(look("there")...),
		} {
			how := ordered
			if strings.EqualFold(look("k")[0], "hgetall") {
				how = pairs
			}
			if exact {
				how = 0
			}
			if !same(how, got, want) {
				t.Errorf("%s, after %.200q:\nwant %s\ngot %s", name, argv, clipped(want), clipped(got))
			}
		}
		encodings := [2]string{ours.Do("OBJECT", "ENCODING", "k"), ours.Do("OBJECT", "ENCODING", "there")}
		if encodings[0] != encodings[1] && argv[0] != "APPEND" {
			t.Errorf("%.200q: %q here, but after RESTORE %q", argv, encodings[0], encodings[1])
		}
		if t.Failed() {
			return
		}
	}
}

func dumped(t *testing.T, reply string) string {
	t.Helper()
	v, _, err := protocol.Decode([]byte(reply))
	s, ok := v.(string)
	if err != nil || !ok {
		t.Fatalf("%.100q, %v", reply, err)
	}
	return s
}

// randomValue returns a command that makes a value at k, the command that shows it,
// and whether Redis leaves none of it to chance.
func randomValue(r *rand.Rand) (argv []string, look func(key string) []string, exact bool) {
	with := func(words ...string) func(string) []string {
		return func(key string) []string { return append([]string{words[0], key}, words[1:]...) }
	}
	text := func() string {
		switch r.IntN(9) {
		case 0:
			return strconv.Itoa(r.IntN(300) - 150)
		case 1:
			return strconv.FormatInt(int64(r.Uint64())>>r.IntN(63), 10)
		case 2:
			return strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(70))
		case 3:
			return strings.Repeat(fmt.Sprint("word", r.IntN(10)), r.IntN(30))
		case 4:
			if r.IntN(10) == 0 {
				return strings.Repeat("x", 4000+r.IntN(20000))
			}
		case 5:
			return "007"
		}
		b := make([]byte, r.IntN(20))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return string(b)
	}
	n := 1 + r.IntN(4<<r.IntN(9))
	switch r.IntN(7) {
	case 0:
		return []string{"SET", "k", text()}, with("GET"), true
	case 1:
		return []string{"SET", "k", strings.Repeat(text(), r.IntN(100))}, with("GET"), true
	case 2:
		argv = []string{"RPUSH", "k"}
		for range n {
			argv = append(argv, text())
		}
		return argv, with("LRANGE", "0", "-1"), true
	case 3:
		argv = []string{"SADD", "k"}
		width := r.IntN(63)
		for range n {
			argv = append(argv, strconv.FormatInt(int64(r.Uint64())>>width, 10))
		}
		return argv, with("SMEMBERS"), n <= 512
	case 4:
		argv = []string{"SADD", "k", "text"}
		for range n {
			argv = append(argv, text())
		}
		return argv, with("SMEMBERS"), false
	case 5:
		argv = []string{"HSET", "k"}
		small := n <= 512
		for range n {
			field, value := text(), text()
			small = small && len(field) <= 64 && len(value) <= 64
			argv = append(argv, field, value)
		}
		return argv, with("HGETALL"), small
	}
	argv = []string{"ZADD", "k"}
	for range n {
		score := strconv.FormatFloat(float64(r.IntN(1<<20)-1<<19)/64, 'g', -1, 64) // 17 digits identify as few
		switch r.IntN(4) {
		case 0:
			score = strconv.Itoa(r.IntN(1000) - 500)
		case 1:
			score = []string{"inf", "-inf", "0", "1e22", "123456789012345", "-0.0625"}[r.IntN(6)]
		}
		argv = append(argv, score, text())
	}
	return argv, with("ZRANGE", "0", "-1", "WITHSCORES"), true
}

// MIGRATE moves keys of all types to a server of Redis, with their deadlines.
func TestMigrate(t *testing.T) {
	dial := judge.Start(t)
	real := judge.NewPeer(dial(), dial())
	// MIGRATE supports only TCP, and the judge listens on a unix socket: a proxy connects them.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			to := dial()
			go func() {
				io.Copy(to, nc)
				to.Close()
			}()
			go io.Copy(nc, to)
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	ours := judge.Own(t, server.Options{})
	for _, argv := range [][]string{
		{"SET", "s", "text"}, {"PEXPIREAT", "s", "33000000000000"}, {"RPUSH", "l", "a", "b"}, {"SADD", "t", "x", "y"},
		{"SADD", "i", "1", "2"}, {"HSET", "h", "f", "v"}, {"ZADD", "z", "1", "m"}, {"ZADD", "timed", "1", "m"},
		{"ZPEXPIRE", "timed", "1000000", "MEMBERS", "1", "m"},
	} {
		if r := ours.Do(argv...); r[0] == '-' {
			t.Fatal(argv, r)
		}
	}
	for _, step := range []struct{ try, want string }{
		{"MIGRATE 127.0.0.1 PORT s 1 5000 COPY", "+OK\r\n"},
		{"EXISTS s", ":1\r\n"},
		{"MIGRATE 127.0.0.1 PORT s 1 5000", "-ERR Target instance replied with error: BUSYKEY Target key name already exists.\r\n"},
		{"MIGRATE 127.0.0.1 PORT s 1 5000 REPLACE", "+OK\r\n"},
		{"EXISTS s", ":0\r\n"},
		{"MIGRATE 127.0.0.1 PORT s 1 5000 REPLACE", "+NOKEY\r\n"},
		{"MIGRATE 127.0.0.1 PORT l 99 5000", "-ERR Target instance replied with error: ERR DB index is out of range\r\n"},
		{"MIGRATE 127.0.0.1 PORT KEY 1 5000 AUTH secret KEYS l", "-ERR Target instance replied with error: ERR AUTH <password> " +
			"called without any password configured for the default user. Are you sure your configuration is correct?\r\n"},
		{"EXISTS l", ":1\r\n"},
		{"MIGRATE 127.0.0.1 PORT KEY 1 5000 REPLACE KEYS l t none i h z", "+OK\r\n"},
		{"EXISTS l t i h z", ":0\r\n"},
		{"MIGRATE 127.0.0.1 PORT timed 1 5000", "-ERR Target instance replied with error: ERR DUMP payload version or checksum are wrong\r\n"},
		{"EXISTS timed", ":1\r\n"},
	} {
		argv := strings.Fields(strings.ReplaceAll(step.try, "PORT", port))
		for i := range argv {
			if argv[i] == "KEY" {
				argv[i] = ""
			}
		}
		if got := ours.Do(argv...); got != step.want {
			t.Errorf("%s: %q, want %q", step.try, got, step.want)
		}
	}
	real.Do("SELECT", "1")
	for try, want := range map[string]string{
		"GET s": "$4\r\ntext\r\n", "PEXPIRETIME s": ":33000000000000\r\n", "LRANGE l 0 -1": "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
		"SCARD t": ":2\r\n", "SMEMBERS i": "*2\r\n$1\r\n1\r\n$1\r\n2\r\n", "HGET h f": "$1\r\nv\r\n", "ZSCORE z m": "$1\r\n1\r\n",
	} {
		got := real.Do(strings.Fields(try)...)
		if strings.HasPrefix(try, "PEXPIRETIME") { // a time that is left was sent
			got, want = got[:8], want[:8]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", try, got, want)
		}
	}
}

// TestMigrateFails checks the replies of MIGRATE to a destination that fails, and what it sends.
func TestMigrateFails(t *testing.T) {
	ours := judge.Own(t, server.Options{})
	ours.Do("SET", "k", "v")
	large := make([]byte, 32<<20) // that cannot be compressed
	rand.NewChaCha8([32]byte{}).Read(large)
	ours.Do("SET", "large", string(large))
	const reading = "-IOERR error or timeout reading to target instance\r\n"
	for _, step := range []struct{ options, replies, reply string }{
		{"k 1 5000 REPLACE AUTH2 user word", "+OK\r\n+OK\r\n-ERR no\r\n", "-ERR Target instance replied with error: ERR no\r\n"},
		{"k 1 5000 AUTH word", "-ERR no\r\n", "-ERR Target instance replied with error: ERR no\r\n"},
		{"k 1 5000", "+OK\r\n", reading},
		{"k 1 50", "", reading}, // and says nothing
		{"large 1 50", "", "-IOERR error or timeout writing to target instance\r\n"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		sent, over := make(chan string, 1), make(chan struct{})
		go func() {
			nc, err := l.Accept()
			if err != nil {
				sent <- err.Error()
				return
			}
			defer nc.Close()
			if step.replies == "" {
				sent <- ""
				<-over
				return
			}
			io.WriteString(nc, step.replies)
			head := make([]byte, 60)
			io.ReadFull(nc, head)
			sent <- string(head)
			nc.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, nc)
		}()
		if got := ours.Do(append([]string{"MIGRATE", "127.0.0.1", port}, strings.Fields(step.options)...)...); got != step.reply {
			t.Errorf("MIGRATE %s: %q, want %q", step.options, got, step.reply)
		}
		close(over)
		if got, want := <-sent, "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$4\r\nword\r\n*2\r\n$6\r\nSELECT"; strings.Contains(step.options, "user") && !strings.HasPrefix(got, want) {
			t.Errorf("MIGRATE %s sends %q, want %q", step.options, got, want)
		}
		l.Close()
		if got := ours.Do("EXISTS", "k", "large"); got != ":2\r\n" {
			t.Errorf("MIGRATE %s: %q keys are left", step.options, got)
		}
	}
	if got := ours.Do("MIGRATE", "host.invalid", "1", "k", "0", "1"); got != "-IOERR error or timeout connecting to the client\r\n" {
		t.Errorf("a host that does not exist: %q", got)
	}
}

// compareStreams makes a stream with groups here and in Redis, and moves it.
func compareStreams(t *testing.T, r *rand.Rand, ours, real *judge.Peer) {
	t.Helper()
	lines := [][]string{{"FLUSHALL"}, {"XGROUP", "CREATE", "k", "g1", "$", "MKSTREAM"}}
	n := r.IntN(250)
	for i := range n {
		argv := []string{"XADD", "k", fmt.Sprint(1+i/3, "-", 1+i%3)}
		for j := range 1 + r.IntN(3) {
			argv = append(argv, fmt.Sprint("field", j), strings.Repeat(strconv.Itoa(r.IntN(1000)), r.IntN(20)))
		}
		lines = append(lines, argv)
	}
	exact := r.IntN(2) == 0
	if !exact && n > 10 {
		lines = append(lines, []string{"XDEL", "k", "1-2", "2-1"}, []string{"XTRIM", "k", "MAXLEN", strconv.Itoa(n - 7)})
	}
	lines = append(lines, []string{"XGROUP", "CREATE", "k", "g2", "1-2"})
	for _, name := range []string{"idle", "c", "d"} { // before 7.2 a consumer that gets nothing is not made
		lines = append(lines, []string{"XGROUP", "CREATECONSUMER", "k", "g2", name})
	}
	lines = append(lines,
		[]string{"XREADGROUP", "GROUP", "g2", "c", "COUNT", "7", "STREAMS", "k", ">"},
		[]string{"XREADGROUP", "GROUP", "g2", "d", "COUNT", "5", "STREAMS", "k", ">"},
		[]string{"XCLAIM", "k", "g2", "d", "0", "2-2", "TIME", "1000000000000", "RETRYCOUNT", "9"}, []string{"XACK", "k", "g2", "2-3"})
	if r.IntN(4) == 0 {
		lines = append(lines, []string{"XSETID", "k", "999999-5"})
	}
	for _, p := range []*judge.Peer{ours, real} {
		if _, err := p.Pipeline(lines); err != nil {
			t.Fatal(err)
		}
	}
	a, b := dumped(t, ours.Do("DUMP", "k")), dumped(t, real.Do("DUMP", "k"))
	for i, p := range []*judge.Peer{ours, real, ours} {
		payload := []string{b, a, a}[i]
		if reply := p.Do("RESTORE", "there", "0", payload, "REPLACE"); reply != "+OK\r\n" {
			t.Fatalf("stream of %d entries: %s %.200q", n, reply, payload)
		}
		for _, look := range []string{"XRANGE KEY - +", "XINFO STREAM KEY", "XINFO GROUPS KEY", "XPENDING KEY g2", "XLEN KEY"} {
			ask := func(p *judge.Peer, key string) string {
				return p.Do(strings.Fields(strings.ReplaceAll(look, "KEY", key))...)
			}
			want, got := ask(real, "k"), ask(p, "there")
			if strings.HasPrefix(look, "XINFO STREAM") && !exact { // blocks without what was deleted
				want, got = ask(real, "k")[strings.Index(want, "last-gen"):], got[strings.Index(got, "last-gen"):]
			}
			if withoutIdempotence(got) != want {
				t.Fatalf("%s of %d entries (%d):\nwant %s\ngot %s", look, n, i, clipped(want), clipped(got))
			}
		}
	}
}

// withoutIdempotence returns a reply to XINFO STREAM without the six fields that are newer
// than the judge.
func withoutIdempotence(reply string) string {
	from, to := strings.Index(reply, "$13\r\nidmp-duration\r\n"), strings.Index(reply, "$6\r\ngroups\r\n")
	if from < 0 || to < from {
		return reply
	}
	reply = reply[:from] + reply[to:]
	if header, rest, _ := strings.Cut(reply, "\r\n"); header[0] == '*' {
		n, _ := strconv.Atoi(header[1:])
		reply = fmt.Sprintf("*%d\r\n%s", n-12, rest)
	}
	return reply
}
