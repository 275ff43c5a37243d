package archive_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/server/servertest/rerun"
	"github.com/zsetd/zsetd/server/servertest/wait"
	"github.com/zsetd/zsetd/snapshot"
)

// open starts a server on a file.
func open(t testing.TB, path string, config ...string) *server.Server {
	t.Helper()
	values := map[string]string{"enable-debug-command": "yes", "save": "1000000 1"}
	for i := 0; i < len(config); i += 2 {
		values[config[i]] = config[i+1]
	}
	srv, err := server.New(server.Options{File: path, Config: values})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv
}

func do(t testing.TB, srv *server.Server, args ...any) any {
	t.Helper()
	reply, err := srv.Do(context.Background(), args...)
	if err != nil {
		t.Fatalf("%.60q: %v", args, err)
	}
	return reply
}

// client returns a function that sends commands in one session.
func client(t testing.TB, srv *server.Server) func(args ...string) {
	nc, err := srv.Dialer()(context.Background(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	r := bufio.NewReader(nc)
	return func(args ...string) {
		t.Helper()
		if _, err := fmt.Fprintf(nc, "%s\r\n", strings.Join(args, " ")); err != nil {
			t.Fatal(err)
		}
		if reply, err := protocol.DecodeFrom(r); err != nil {
			t.Fatal(args, err)
		} else if e, bad := reply.(protocol.ReplyError); bad {
			t.Fatal(args, e)
		}
	}
}

// digest returns the digest of the data in a file.
func digest(t testing.TB, path string) string {
	t.Helper()
	srv := open(t, path)
	defer srv.Close()
	return fmt.Sprint(do(t, srv, "DEBUG", "DIGEST"))
}

const aYear = 365 * 24 * time.Hour

// sampleStreams makes streams with a history.
func sampleStreams(t testing.TB, srv *server.Server) {
	for i := range 350 {
		do(t, srv, "XADD", "stream", fmt.Sprint(i/3+1, "-", i%3), "field", i, "\xff", "text")
	}
	do(t, srv, "XDEL", "stream", "1-1", "50-0", "117-0")
	do(t, srv, "XTRIM", "stream", "MAXLEN", 345)
	do(t, srv, "XGROUP", "CREATE", "stream", "g", "0", "ENTRIESREAD", 0)
	do(t, srv, "XGROUP", "CREATE", "stream", "\xffh", "$")
	do(t, srv, "XREADGROUP", "GROUP", "g", "c", "COUNT", 120, "STREAMS", "stream", ">")
	do(t, srv, "XREADGROUP", "GROUP", "g", "", "COUNT", 1, "STREAMS", "stream", ">")
	do(t, srv, "XCLAIM", "stream", "g", "d", 0, "3-1", "TIME", 1000, "RETRYCOUNT", 7)
	do(t, srv, "XACK", "stream", "g", "4-1", "4-2")
	do(t, srv, "XGROUP", "CREATE", "new", "g", "5-5", "MKSTREAM")
	do(t, srv, "XADD", "emptied", "7-7", "f", "v")
	do(t, srv, "XDEL", "emptied", "7-7")
}

// sample makes a file of values of all kinds with a history, and returns the digest
// of the data.
func sample(t testing.TB, path string) string {
	t.Helper()
	srv := open(t, path)
	r := rand.New(rand.NewPCG(1, 1))
	bytesOf := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	do(t, srv, "SET", "text", "a\r\nb\"\\\x01\u2028é")
	do(t, srv, "SET", "binary", "\xff\x00\xfe")
	do(t, srv, "SET", "\x80key\x00", "v")
	do(t, srv, "SET", "", "the empty key")
	do(t, srv, "SET", "empty", "")
	do(t, srv, "SET", strings.Repeat("long", 10_000), "of a key of 40 KB")
	do(t, srv, "SET", "large", bytesOf(1<<20+1))
	do(t, srv, "SET", "soon", "x", "PXAT", time.Now().Add(aYear).UnixMilli())
	do(t, srv, "SAVE")
	do(t, srv, "ZADD", "scores", "inf", "a", "-inf", "b", "-0", "c", "0.1", "d", "1e-300", "e", "5e-324", "f",
		"1.7976931348623157e308", "g", "3", "h", "-123456789.123456789", "\xff\xfe", "123456789012345678", "i")
	for i := range 20 {
		args := []any{"ZADD", "sorted"}
		set, list, hash := []any{"SADD", "set"}, []any{"RPUSH", "list"}, []any{"HSET", "hash"}
		for j := range 150 {
			member := fmt.Sprintf("member:%d", i*150+j)
			args = append(args, r.NormFloat64(), member)
			set = append(set, member)
			list = append(list, bytesOf(j))
			hash = append(hash, member, bytesOf(j))
		}
		do(t, srv, args...)
		do(t, srv, set...)
		do(t, srv, list...)
		do(t, srv, hash...)
	}
	sampleStreams(t, srv)
	do(t, srv, "SADD", "ints", 3, 1, 2)
	do(t, srv, "SADD", "small", 3, "x", 2)
	do(t, srv, "HSET", "smallhash", "f", "v", "", "", "\xff", "\x00")
	do(t, srv, "SAVE")
	do(t, srv, "ZREM", "sorted", "member:7")
	do(t, srv, "LPOP", "list", 3)
	do(t, srv, "DEL", "small")
	do(t, srv, "EXPIREAT", "hash", time.Now().Add(aYear).Unix())
	do(t, srv, "COPY", "list", "list2", "DB", 15)
	do(t, srv, "COPY", "set", "cleared", "DB", 3)
	do(t, srv, "SAVE")
	for i := range 300 {
		do(t, srv, "COPY", "ints", fmt.Sprint("copy:", i), "DB", 2)
	}
	do(t, srv, "SAVE")
	clear := client(t, srv)
	clear("SELECT", "3")
	clear("FLUSHDB")
	do(t, srv, "SAVE")
	digest := do(t, srv, "DEBUG", "DIGEST")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(digest)
}

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	sample(t, path)
	r, err := archive.Check(path, time.Now().Add(2*aYear), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Databases) != 3 || r.Void == 0 || r.Journal.Records == 0 || r.Size == 0 || r.Generation < 4 {
		t.Errorf("%+v", r)
	}
	db := r.Databases[0]
	types := map[string]archive.TypeReport{}
	for _, x := range db.Types {
		types[x.Type] = x
	}
	if db.DB != 0 || db.Keys != 18 || db.Volatile != 2 || db.Expired != 2 || types["string"].Keys != 8 ||
		types["zset"].Elements != 3009 || types["set"].Elements != 3003 || types["list"].Elements != 2997 || types["hash"].Elements != 3003 ||
		types["stream"].Elements != 345 {
		t.Errorf("%+v", db)
	}
	if r.Databases[1].DB != 2 || r.Databases[1].Keys != 300 || r.Databases[2].DB != 15 {
		t.Errorf("%+v", r.Databases)
	}
	if len(r.MostBytes) != 10 || r.MostBytes[0].Key != "large" || r.MostElements[0].Elements != 3000 {
		t.Errorf("%+v %+v", r.MostBytes, r.MostElements)
	}
}

func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	want := sample(t, path)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	before, after, err := archive.Compact(path, nil)
	if err != nil || after >= before {
		t.Fatalf("%d bytes before, %d after, %v", before, after, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 || info.Size() != after {
		t.Errorf("%v, %v", info, err)
	}
	r, err := archive.Check(path, time.Now(), nil)
	if err != nil || r.Void != 0 || r.Journal.Records != 0 || r.Free > 64<<10 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := digest(t, path); got != want {
		t.Errorf("digest %s, not %s", got, want)
	}
	srv := open(t, path)
	do(t, srv, "GET", "text")
	if _, _, err := archive.Compact(path, nil); !errors.Is(err, snapshot.ErrInUse) {
		t.Errorf("a file in use: %v", err)
	}
	srv.Close()
	before = after
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("of a key of 40 KB"))] ^= 1
	if err := os.WriteFile(path, b, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, _, err := archive.Compact(path, nil); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("a damaged file: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) {
		t.Error("a damaged file was changed")
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("files are left: %q", left)
	}
}

// Deadlines of members and fields survive compaction.
func TestMemberDeadlines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.db")
	srv := open(t, path)
	at := time.Now().Add(aYear).UnixMilli()
	do(t, srv, "ZADD", "z", 1, "a", 2, "b", 3, "c")
	do(t, srv, "ZPEXPIREAT", "z", at, "MEMBERS", 2, "a", "b")
	do(t, srv, "HSET", "h", "f", "v", "g", "w")
	do(t, srv, "HPEXPIREAT", "h", at, "FIELDS", 1, "f")
	do(t, srv, "SAVE")
	srv.Close()
	if _, _, err := archive.Compact(path, nil); err != nil {
		t.Fatal(err)
	}
	srv = open(t, path)
	if got, want := fmt.Sprint(do(t, srv, "ZPEXPIRETIME", "z", "MEMBERS", 3, "a", "b", "c")), fmt.Sprintf("[%d %d -1]", at, at); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := fmt.Sprint(do(t, srv, "HPEXPIRETIME", "h", "FIELDS", 2, "f", "g")), fmt.Sprintf("[%d -1]", at); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestExportImport(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.db")
	want := sample(t, path)
	for _, kind := range []string{"commands", "json"} {
		to := filepath.Join(dir, kind)
		var out bytes.Buffer
		var done archive.Exported
		var in archive.Imported
		var err error
		if kind == "json" {
			done, err = archive.ExportJSON(&out, path, time.Now(), nil)
		} else {
			done, err = archive.ExportCommands(&out, path, rdb.Any, time.Now(), nil)
		}
		if err != nil || done.Bytes != int64(out.Len()) {
			t.Fatal(kind, done, err)
		}
		source := out.String()
		if kind == "json" {
			in, err = new(archive.Import).JSON(&out, to)
		} else {
			in, err = server.ImportCommands(&out, to, 0, new(archive.Import))
		}
		if err != nil || in.Keys != done.Keys {
			t.Fatal(kind, in, err)
		}
		if got := digest(t, to); got != want {
			t.Errorf("%s: digest %s, not %s", kind, got, want)
		}
		// The deadlines and the order are unchanged.
		out.Reset()
		if kind == "json" {
			_, err = archive.ExportJSON(&out, to, time.Now(), nil)
		} else {
			_, err = archive.ExportCommands(&out, to, rdb.Any, time.Now(), nil)
		}
		if err != nil || len(out.String()) != len(source) {
			t.Errorf("%s: exported again it has %d bytes, not %d; %v", kind, out.Len(), len(source), err)
		}
		out.Reset()
		done, err = archive.ExportCommands(&out, path, rdb.Any, time.Now().Add(2*aYear), nil)
		if err != nil || done.Expired != 2 || strings.Contains(out.String(), "PEXPIREAT") {
			t.Errorf("two years later: %+v, %v", done, err)
		}
	}
}

// redisIn starts a real redis-server in a folder, whose dump.rdb it loads, and
// returns a function that runs redis-cli with it.
func redisIn(t *testing.T, dir string) func(input io.Reader, args ...string) string {
	t.Helper()
	redis, err := exec.LookPath(cmp.Or(os.Getenv("ZSETD_JUDGE_REDIS8"), "redis-server"))
	if err != nil {
		t.Skip("no redis-server is installed")
	}
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(redis, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--enable-debug-command", "yes")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	cli := func(input io.Reader, args ...string) string {
		c := exec.Command("redis-cli", append([]string{"-s", socket}, args...)...)
		c.Stdin = input
		out, err := c.CombinedOutput()
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(string(out))
	}
	wait.Until(t, "redis-server starts", func() bool { return cli(nil, "PING") == "PONG" })
	return cli
}

// digestsAlike reports whether a redis-server has the same digests: since 7.2 it writes
// doubles as zsetd does.
var digestsAlike = os.Getenv("ZSETD_JUDGE_REDIS8") != ""

// A real Redis can load the output of export, and its own files can be imported.
func TestExportToRedis(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.db")
	want := sample(t, path)
	t.Run("commands", func(t *testing.T) {
		cli := redisIn(t, t.TempDir())
		var out bytes.Buffer
		if _, err := archive.ExportCommands(&out, path, rdb.Any, time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		if said := cli(&out, "--pipe"); !strings.Contains(said, "errors: 0") {
			t.Fatal(said)
		}
		if got := cli(nil, "DEBUG", "DIGEST"); got != want && digestsAlike {
			t.Errorf("Redis has the digest %s, not %s", got, want)
		}
	})
	t.Run("rdb", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "dump.rdb")
		var out bytes.Buffer
		done, err := archive.ExportRDB(&out, path, rdb.Any, time.Now(), nil)
		if err != nil || done.Bytes != int64(out.Len()) {
			t.Fatal(done, err)
		}
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		cli := redisIn(t, dir)
		if got := cli(nil, "DEBUG", "DIGEST"); got != want && digestsAlike {
			t.Errorf("Redis has the digest %s, not %s", got, want)
		}
		cli(nil, "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")
		if said := cli(nil, "SAVE"); said != "OK" {
			t.Fatal(said)
		}
		saved, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, source := range map[string][]byte{"ours": out.Bytes(), "theirs": saved} {
			to := filepath.Join(dir, name)
			in, err := new(archive.Import).RDB(bytes.NewReader(source), to)
			if err != nil || in.Keys != done.Keys || (in.Functions > 0) != (name == "theirs") {
				t.Fatal(name, in, err)
			}
			if got := digest(t, to); got != want {
				t.Errorf("%s: digest %s, not %s", name, got, want)
			}
			for _, damage := range []string{"cut", "flip"} {
				b := bytes.Clone(source)
				if damage == "cut" {
					b = b[:len(b)/2]
				} else {
					b[len(b)/2] ^= 4
				}
				to := filepath.Join(dir, "damaged")
				if _, err := new(archive.Import).RDB(bytes.NewReader(b), to); err == nil {
					t.Errorf("%s, %s: imported all the same", name, damage)
				}
				if _, err := os.Stat(to); err == nil {
					t.Errorf("%s, %s: there is a file", name, damage)
				}
			}
		}
	})
}

// Values that cannot be imported are named, and skipped if requested.
func TestImportRDB(t *testing.T) {
	const source = "REDIS0009\xfa\x09redis-ver\x055.0.0\xfe\x03\xfb\x01\x00" +
		"\x00\x01a\x01x" + // a string
		"\x07\x01m\x01\x02\x05\x05\x01x\x00" + // a value of a module
		"\x0f\x01s\x00\x00\x00\x00\x00" + // a stream
		"\x01\x01e\x00" + // an empty list
		"\xfd\x01\x00\x00\x00\x00\x01o\x01x" + // long expired
		"\xff\x00\x00\x00\x00\x00\x00\x00\x00"
	dir := t.TempDir()
	if _, err := new(archive.Import).RDB(strings.NewReader(source), filepath.Join(dir, "x")); err == nil || !strings.Contains(err.Error(), `key "m" of database 3`) {
		t.Error(err)
	}
	var failed []string
	o := archive.Import{Failed: func(err error) { failed = append(failed, err.Error()) }}
	path := filepath.Join(dir, "y")
	out, err := o.RDB(strings.NewReader(source), path)
	if err != nil || out.Keys != 2 || out.Done != 3 || out.Failed != 1 || len(failed) != 1 {
		t.Error(out, err, failed)
	}
	srv := open(t, path)
	defer srv.Close()
	if got := do(t, srv, "DBSIZE"); got != int64(0) {
		t.Error("database 0:", got)
	}
	for _, bad := range []string{"REDIS0099\xff", "REDIS0009\xff", "REDIS0009\x63\x01a\x01x\xff", "REDIS00", "REDIS0009\xfe"} {
		if _, err := o.RDB(strings.NewReader(bad), filepath.Join(dir, "z")); err == nil {
			t.Errorf("%q is imported", bad)
		}
	}
}

func TestImportCommands(t *testing.T) {
	dir := t.TempDir()
	for i, test := range []struct{ source, says string }{
		{"SET a 1\r\nINCR a\r\nMULTI\r\nINCRBY a 40\r\nRENAME a b\r\nEXEC\r\n\r\n\"SET\" c \"\\x00\"\n\r\n*0\r\n\n", ""},
		{"SET a x\r\nINCR a\r\n", "command 2, INCR at byte 9: ERR value is not an integer"},
		{"SET a x\r\nMULTI\r\nINCR a\r\nEXEC\r\n", "command 4, EXEC at byte 24: ERR value is not an integer"},
		{"NOSUCH\r\n", "command 1, NOSUCH at byte 0: ERR unknown command"},
		{"*2\r\n$3\r\nGET\r\n$1\r\n", "unexpected end of the source within the command at byte 0"},
		{"SET a 1\r\nSET a 2", "unexpected end of the source within the command at byte 9"},
		{"SET a 1\r\n*1\r\n+x\r\n", "the command at byte 9: Protocol error: expected '$'"},
		{"MULTI\r\nSET a 1\r\n", "within a transaction"},
		{"SELECT 99\r\n", "ERR DB index is out of range"},
		{"SUBSCRIBE a\r\n", "the command cannot be imported"},
		{"BLPOP a 0\r\n", "the command cannot be imported"},
		{"SHUTDOWN\r\n", "the command cannot be imported"},
		{"CLIENT REPLY OFF\r\n", "the command cannot be imported"},
		{"QUIT\r\n", "the command cannot be imported"},
		{"WAIT 1 0\r\n", "the command cannot be imported"},
	} {
		to := filepath.Join(dir, fmt.Sprint(i))
		_, err := server.ImportCommands(strings.NewReader(test.source), to, 0, new(archive.Import))
		if test.says == "" {
			if err != nil {
				t.Fatal(err)
			}
			srv := open(t, to)
			if b, c := do(t, srv, "GET", "b"), do(t, srv, "GET", "c"); b != "42" || c != "\x00" {
				t.Errorf("%q %q", b, c)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, not %q", test.source, err, test.says)
		}
		if left, _ := filepath.Glob(to + "*"); len(left) != 0 {
			t.Errorf("%q: files are left: %q", test.source, left)
		}
		var failures []error
		o := archive.Import{Failed: func(err error) { failures = append(failures, err) }}
		if out, err := server.ImportCommands(strings.NewReader(test.source), to, 0, &o); err == nil && (out.Failed != 1 || len(failures) != 1) {
			t.Errorf("%q going on: %+v, %v", test.source, out, failures)
		}
	}
	to := filepath.Join(dir, "99")
	if _, err := server.ImportCommands(strings.NewReader("SELECT 99\r\nSET a 1\r\n"), to, 100, new(archive.Import)); err != nil {
		t.Error(err)
	}
	if _, err := server.ImportCommands(strings.NewReader("SET a 1\r\n"), to, 0, new(archive.Import)); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
}

// stream returns a line about a stream.
func stream(entries, last string, added int, groups string) string {
	return fmt.Sprintf(`{"db":0,"key":"k","type":"stream","value":{"entries":[%s],"last":%q,"added":%d,"deleted":"0-0","groups":[%s]}}`,
		entries, last, added, groups)
}

func TestImportJSON(t *testing.T) {
	dir := t.TempDir()
	for i, test := range []struct{ source, says string }{
		{`{"value":"v","type":"string","key":{"base64":"/w=="},"db":20}`, ""},
		{`{"db":0,"key":"k","type":"zset","value":[["a",-0],["b","-inf"],["\u00e9\ud83d\ude00",1e-7]]}` + "\n\n", ""},
		{`{"db":0,"key":"k","type":"string","value":"\ufffd\uFFFD"}`, ""},
		{`nonsense`, "line 1: "},
		{"\n" + `{"db":0,"key":"k","type":"string"}`, "line 2: missing field"},
		{`{"db":-1,"key":"k","type":"string","value":"v"}`, "no such database: -1"},
		{`{"db":0,"key":"k","type":"heap","value":"v"}`, `unknown type "heap"`},
		{`{"db":0,"key":"k","type":"string","value":"v","ttl":3}`, "ttl"},
		{`{"db":0,"key":"k","type":"string","value":3}`, "want a string"},
		{`{"db":0,"key":"k","type":"string","value":{}}`, `unexpected object, want {"base64"`},
		{`{"db":0,"key":"k","type":"string","value":{"base64":"eA==","base64":"eA=="}}`, `unexpected object, want {"base64"`},
		{`{"db":0,"key":"k","type":"list","value":[{}]}`, `unexpected object, want {"base64"`},
		{`{"db":0,"key":{},"type":"string","value":""}`, `unexpected object, want {"base64"`},
		{`{"db":0,"key":"k","type":"stream","value":{}}`, `missing field "entries"`},
		{`{"db":0,"key":"k","type":"string","value":{"base65":""}}`, `want {"base64"`},
		{`{"db":0,"key":"k","type":"string","value":{"base64":"*"}}`, "base64"},
		{`{"db":0,"key":"k","type":"string","value":{}}`, `unexpected object, want {"base64"`},
		{`{"db":0,"key":"k","type":"string","value":{"base64":"","base64":""}}`, `unexpected object, want {"base64"`},
		{`{"db":0,"key":{},"type":"string","value":"v"}`, `unexpected object, want {"base64"`},
		{`{"db":0,"key":"k","type":"list","value":[{}]}`, `unexpected object, want {"base64"`},
		{`{"db":0,"key":"k","type":"string","value":"\ud800"}`, "surrogate"},
		{`{"db":0,"key":"k","type":"string","value":"` + "\xff" + `"}`, "UTF-8"},
		{`{"db":0,"key":"k","type":"list","value":[]}`, "empty list"},
		{`{"db":0,"key":"k","type":"set","value":["a","a"]}`, "duplicate elements"},
		{`{"db":0,"key":"k","type":"hash","value":[["f"]]}`, "want ,"},
		{`{"db":0,"key":"k","type":"hash","value":{"f":"v"}}`, "array"},
		{`{"db":0,"key":"k","type":"zset","value":[["m","nan"]]}`, "score"},
		{stream(`["1-1",["f","v"]]`, "1-1", 1, ""), ""},
		{stream("", "0-0", 0, ""), ""},
		{stream(`["1-1",["f"]]`, "1-1", 1, ""), "alternating"},
		{stream(`["1-1",["f","v"]],["1-1",["f","v"]]`, "1-1", 2, ""), "must increase"},
		{stream(`["0-0",["f","v"]]`, "1-1", 2, ""), "must increase"},
		{stream(`["1-1",["f","v"]]`, "1-0", 1, ""), "less"},
		{stream(`["1-1",["f","v"]]`, "1-1", 0, ""), "were added"},
		{stream(`["1",["f","v"]]`, "1-1", 0, ""), "ID"},
		{stream("", "1-1", 0, `{"name":"g","last":"1-1","read":-1,"consumers":[["c",5,-1]],"pending":[["1-1","c",5,1]]}`), ""},
		{stream("", "1-1", 0, `{"name":"g","last":"1-1","read":-2,"consumers":[],"pending":[]}`), "read entries"},
		{stream("", "1-1", 0, `{"name":"g","last":"1-1","read":0,"consumers":[]}`), "pending"},
		{stream("", "1-1", 0, `{"name":"g","last":"1-1","read":0,"consumers":[],"pending":[["1-1","c",5,1]]}`), "not in the group"},
		{stream("", "1-1", 0, `{"name":"g","last":"1-1","read":0,"consumers":[["c",5,-1],["c",5,-1]],"pending":[]}`), "duplicate consumer"},
		{stream("", "1-1", 0, `{"name":"g","last":"1-1","read":-1,"consumers":[],"pending":[]},{"name":"g","last":"1-1","read":-1,"consumers":[],"pending":[]}`), `duplicate group "g"`},
		{strings.Replace(stream("", "1-1", 0, ""), `"entries":`, `"other":1,"entries":`, 1), `unknown field "other" of a stream`},
		{strings.Replace(stream("", "1-1", 0, ""), `"entries":`, `"entries":[],"entries":`, 1), `duplicate field "entries"`},
		{`{"db":0,"key":"k","type":"zset","value":[["m",null]]}`, "score"},
		{`{"db":0,"deadlines":[["m",33000000000000]],"key":"k","type":"zset","value":[["m",1]]}`, ""},
		{`{"db":0,"key":"k","type":"hash","value":[["f","v"],["g","w"]],"deadlines":[["g",33000000000000]]}`, ""},
		{`{"db":0,"key":"k","type":"hash","value":[["f","v"]],"deadlines":[]}`, ""},
		{`{"db":0,"key":"k","type":"zset","value":[["m",1]],"deadlines":[["n",5]]}`, `unknown element "n"`},
		{`{"db":0,"key":"k","type":"zset","value":[["m",1]],"deadlines":[["m",5],["m",6]]}`, "duplicate deadline"},
		{`{"db":0,"key":"k","type":"zset","value":[["m",1]],"deadlines":[["m",0]]}`, "invalid deadline"},
		{`{"db":0,"key":"k","type":"zset","value":[["m",1]],"deadlines":[["m",9007199254740993]]}`, "invalid deadline"},
		{`{"db":0,"key":"k","type":"zset","value":[["m",1]],"deadlines":[["m"]]}`, "want ,"},
		{`{"db":0,"key":"k","type":"zset","value":[["m",1]],"deadlines":{"m":5}}`, "an array"},
		{`{"db":0,"key":"k","type":"list","value":["m"],"deadlines":[["m",5]]}`, "require the type zset or hash"},
		{`{"db":0,"key":"k","type":"zset","value":[["m",1e999]]}`, "1e999"},
		{`{"db":0,"key":"k","type":"string","value":"v"} {}`, "more than one"},
		{`{"db":0,"key":"k","type":"string","value":"v"}` + "\n" + `{"db":0,"key":"k","type":"string","value":"v"}`, "line 2: duplicate key \"k\" in database 0"},
	} {
		to := filepath.Join(dir, fmt.Sprint(i))
		out, err := new(archive.Import).JSON(strings.NewReader(test.source), to)
		if test.says == "" {
			if err != nil || out.Keys != 1 {
				t.Errorf("%s: %+v, %v", test.source, out, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, not %q", test.source, err, test.says)
		}
		if left, _ := filepath.Glob(to + "*"); len(left) != 0 {
			t.Errorf("%s: files are left: %q", test.source, left)
		}
		n := 0
		o := archive.Import{Failed: func(error) { n++ }}
		if out, err := o.JSON(strings.NewReader(test.source), to); err != nil || out.Failed != 1 || n != 1 {
			t.Errorf("%s, going on: %+v, %v", test.source, out, err)
		}
	}
}

func TestSalvage(t *testing.T) {
	rerun.Skip(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "f.db")
	want := sample(t, path)
	s, err := archive.Salvage(path, filepath.Join(dir, "sound"), nil)
	if err != nil || !s.Intact() {
		t.Fatalf("%+v, %v", s, err)
	}
	if got := digest(t, filepath.Join(dir, "sound")); got != want {
		t.Errorf("digest %s, not %s", got, want)
	}
	keys := s.Keys
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	salvage := func(b []byte) (*archive.Salvaged, string) {
		t.Helper()
		bad, to := filepath.Join(dir, "bad"), filepath.Join(dir, "new")
		os.Remove(to)
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := archive.Salvage(bad, to, nil)
		if err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(bad); err != nil || !bytes.Equal(now, b) {
			t.Error("the damaged file was changed")
		}
		if _, err := archive.Check(to, time.Now(), nil); err != nil {
			t.Error(err)
		}
		return s, to
	}

	// One damaged record.
	if _, err := archive.Salvage(path, path, nil); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	b := bytes.ReplaceAll(file, []byte("the empty key"), []byte("the EMPTY key"))
	if s, _ := salvage(b); s.Intact() || len(s.Pages) == 0 || s.Keys < keys-200 {
		t.Errorf("a bad record: %+v", s)
	}
	// Any flipped bit: a file that is reported as intact is.
	r := rand.New(rand.NewPCG(5, 6))
	for range 8 {
		b := bytes.Clone(file)
		bit := r.IntN(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
		if s, to := salvage(b); s.Intact() != (digest(t, to) == want) {
			t.Errorf("bit %d: intact %v, %+v", bit, s.Intact(), s)
		}
	}
	// No metas.
	b = bytes.Clone(file)
	clear(b[:8192])
	if s, _ := salvage(b); s.Keys < keys || !s.Scavenged {
		t.Errorf("no metas: %+v", s)
	}
	srv := open(t, path)
	do(t, srv, "PING")
	if _, err := archive.Salvage(path, filepath.Join(dir, "x"), nil); !errors.Is(err, snapshot.ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "foreign"), []byte("# a configuration\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Salvage(filepath.Join(dir, "foreign"), filepath.Join(dir, "x"), nil); !errors.Is(err, snapshot.ErrForeign) {
		t.Errorf("foreign: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("a file is left")
	}
}

// The source is a file that a server writes to every few milliseconds.
func TestSourceInUse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.db")
	sample(t, path)
	srv := open(t, path, "appendonly", "yes", "appendfsync", "always")
	do(t, srv, "PING") // waits until it is loaded
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if _, err := srv.Do(context.Background(), "MSET", "one", i, "two", i); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 2 {
		s, err := archive.OpenSource(path)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Copied {
			t.Error("not a copy")
		}
		if _, err := archive.Check(s.Path, time.Now(), nil); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
	srv.Close()
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("files are left: %q", left)
	}
	s, err := archive.OpenSource(path)
	if err != nil || s.Copied || s.Path != path {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
