package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/zset"
)

// logged makes the options collect what a move says.
func logged(o *Options) *[]string {
	lines := &[]string{}
	o.Log = func(line string) { *lines = append(*lines, line) }
	return lines
}

// TestForwardRefused checks that a source that cannot forward refuses writes all the same, as the data
// have moved, and that the same command ends the move later. Redis cannot forward.
func TestForwardRefused(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	here := clientOf(t, source.Addr())
	must(t, here, "SET", "k", "v")
	g := gateTo(t, source.Addr())
	o := moveOf(t, g.addr, target.Addr())
	o.Forward, o.Unpause = true, false
	lines := logged(&o)
	refuse := func(call string) {
		g.set(func(args []string) []string {
			if callOf(args) == call && (call != "EXISTS" || args[1] == progressKey) {
				return failing(refusal)
			}
			return args
		})
	}
	refuse("CONFIG SET FORWARD-TO")
	for range 2 {
		want := "the data have moved, but " + g.addr + " does not forward: CONFIG SET forward-to: " + refusal
		if err := run(t, o); err == nil || err.Error() != want {
			t.Errorf("the move ends with %v", err)
		}
		info, err := infoOf(t.Context(), here, "clients")
		if err != nil {
			t.Fatal(err)
		}
		if left, err := time.ParseDuration(info["paused_timeout_milliseconds"] + "ms"); err != nil || left < pausedTime-time.Hour {
			t.Errorf("the source refuses writes for %v, %v", left, err)
		}
	}
	refuse("EXISTS")
	*lines = nil
	if err := run(t, o); err != nil {
		t.Fatal(err)
	}
	if want := []string{"the data have moved already", g.addr + " forwards, but its clients receive errors: " + refusal}; fmt.Sprint(*lines) != fmt.Sprint(want) {
		t.Errorf("the move says %q", *lines)
	}
	if got := must(t, here, "GET", "k"); got != "v" {
		t.Errorf("the source answers %v", got)
	}
	if n := must(t, clientOf(t, target.Addr()), "DBSIZE"); n != int64(1) {
		t.Errorf("the target has %v keys", n)
	}
	o.From = endpoint(t, "redis://"+startRedis(t))
	if err := run(t, o); err == nil || !strings.Contains(err.Error(), "is redis 7.0, which cannot forward") {
		t.Errorf("a move from Redis ends with %v", err)
	}
}

// TestFlushedWhileVerified checks that a source which is emptied during the verification is verified
// again, and that nothing is left at the target.
func TestFlushedWhileVerified(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	here, there := clientOf(t, source.Addr()), clientOf(t, target.Addr())
	must(t, here, "SET", "k", "v")
	g := gateTo(t, source.Addr())
	pauses := 0
	g.set(func(args []string) []string {
		if callOf(args) == "CLIENT PAUSE 3000" {
			if pauses++; pauses == 1 {
				must(t, here, "FLUSHALL")
			}
		}
		return args
	})
	o := moveOf(t, g.addr, target.Addr())
	lines := logged(&o)
	if err := run(t, o); err != nil {
		t.Fatal(err)
	}
	if n := must(t, there, "DBSIZE"); n != int64(0) || strings.Count(strings.Join(*lines, "\n"), "whole databases have changed: verifying again") != 1 {
		t.Errorf("the target has %v keys; the move says %q", n, *lines)
	}
	m, _, _, _ := repairing(t)
	m.changes.watch()
	m.changes.add([]keyAt{{0, "k"}}, true)
	if err := m.verifyChanged(t.Context(), 0); err != errChanged {
		t.Errorf("after a change of whole databases: %v", err)
	}
}

// TestRefusedWhileFollowed checks that a move ends with the error of a source that refuses to say how
// much it has sent.
func TestRefusedWhileFollowed(t *testing.T) {
	g := gateTo(t, primary(t).Addr())
	f := follow(t, moveOf(t, g.addr, servertest.Run(t).Addr()))
	g.set(func(args []string) []string {
		if callOf(args) == "INFO REPLICATION" {
			return failing(refusal)
		}
		return args
	})
	if err := <-f.ended; err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("the move ends with %v", err)
	}
}

// TestRestore checks from which progress a move continues.
func TestRestore(t *testing.T) {
	m, _ := applierTo(t, clientOf(t, servertest.Run(t).Addr()), zsetd86(), nil)
	for _, test := range []struct {
		addrs  []string
		stored map[string]string
		want   string // the positions; "" if the copy starts again
	}{
		{[]string{"a"}, map[string]string{fieldFrom: "x", fieldSource + "a": "id 5 3"}, "[{id 5 3}]"},
		{[]string{"a"}, map[string]string{fieldSource + "other": "id 5 3"}, "[{id 5 3}]"}, // another name of the same server
		{[]string{"a", "b"}, map[string]string{fieldSource + "a": "id 5 3", fieldSource + "b": "jd 6 0"}, "[{id 5 3} {jd 6 0}]"},
		{[]string{"a", "b"}, map[string]string{fieldSource + "a": "id 5 3"}, ""},
		{[]string{"a", "b"}, map[string]string{fieldSource + "a": "id 5 3", fieldSource + "other": "jd 6 0"}, ""},
		{[]string{"a"}, map[string]string{fieldSource + "a": "id 5 3", fieldSource + "b": "jd 6 0"}, ""},
		{[]string{"a"}, map[string]string{fieldFrom: "x"}, ""},
		{[]string{"a"}, map[string]string{fieldSource + "a": "id 5"}, ""},
	} {
		m.sources = nil
		for _, addr := range test.addrs {
			m.sources = append(m.sources, &source{addr: addr})
		}
		got := ""
		if m.restore(test.stored) {
			var list []position
			for _, s := range m.sources {
				list = append(list, s.position())
				if !s.copied.Load() {
					t.Errorf("%v: the source is copied again", test.stored)
				}
			}
			got = fmt.Sprint(list)
		}
		if got != test.want {
			t.Errorf("%v: %s, want %s", test.stored, got, test.want)
		}
	}
}

// TestLostStream checks that the copy starts again if the source does not have the rest of the stream,
// and that the move ends with the error of a target that refuses that.
func TestLostStream(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	here, there := clientOf(t, source.Addr()), clientOf(t, target.Addr())
	g := gateTo(t, target.Addr())
	must(t, here, "SET", "k", "v")
	o := moveOf(t, source.Addr(), g.addr)
	f := follow(t, o)
	f.stop()
	<-f.ended
	must(t, there, "HSET", progressKey, fieldSource+source.Addr(), "0123456789012345678901234567890123456789 1 0")
	must(t, there, "SET", "surplus", "v")
	lines := logged(&o)
	g.set(func(args []string) []string {
		if strings.EqualFold(args[0], "FLUSHALL") {
			return failing(refusal)
		}
		return args
	})
	if err := run(t, o); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("the move ends with %v", err)
	}
	g.set(nil)
	if err := run(t, o); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(must(t, there, "KEYS", "*")); got != "[k]" {
		t.Errorf("the target has %s", got)
	}
	if want := source.Addr() + " does not have the rest of its stream (see repl-backlog-size)"; strings.Count(strings.Join(*lines, "\n"), want) != 2 {
		t.Errorf("the move says %q", *lines)
	}
}

// TestLostCopy checks that a move connects again if the source sends no data.
func TestLostCopy(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	must(t, clientOf(t, source.Addr()), "SET", "k", "v")
	g := gateTo(t, source.Addr())
	altered := 0
	g.alter = func(reply []byte) []byte {
		if altered == 0 && bytes.Contains(reply, []byte("$EOF:")) {
			altered++
			reply = bytes.Replace(reply, []byte("$EOF:"), []byte("xEOF:"), 1)
		}
		return reply
	}
	o := moveOf(t, g.addr, target.Addr())
	if err := run(t, o); err != nil || altered != 1 {
		t.Errorf("the move ends with %v", err)
	}
	if got := must(t, clientOf(t, target.Addr()), "GET", "k"); got != "v" {
		t.Errorf("the target has %v", got)
	}
}

// TestCompareErrors checks that a comparison ends with the error of each call that a server refuses.
func TestCompareErrors(t *testing.T) {
	m, s, from, to := repairing(t)
	there := m.t.rdb.(*redis.Client)
	for _, c := range []*redis.Client{s.admin, there} {
		must(t, c, append([]any{"RPUSH", "large"}, some(largeElements+1)...)...)
	}
	must(t, s.admin, "ZADDEX", "z", "PXAT", 1<<44, "MEMBERS", 1, 1, "a")
	must(t, there, "ZADD", "z", 2, "a")
	must(t, there, "ZADD", "zsetd:deadlines:{z}", 1<<44, "a")
	m.t.companions.Store(true)
	compare := func(whole bool, key string) func() error {
		return func() error {
			_, err := m.compare(t.Context(), 0, []string{key}, whole)
			return err
		}
	}
	fold := func() error { return m.foldKeys(t.Context(), map[keyAt]struct{}{{0, "z"}: {}}) }
	large := largeComparison{m: m, here: side{s.admin, zsetd86()}, there: side{there, zsetd86()}, key: "large"}
	differs := func() error {
		_, err := large.settle(t.Context(), func() (bool, error) { return false, nil })
		return err
	}
	redis80 := product{"redis", 8, 0}
	for _, test := range []struct {
		here, there product
		at          *gate
		call, key   string
		n           int
		f           func() error
	}{
		{zsetd86(), redis80, from, "LLEN", "large", 1, compare(false, "large")},
		{zsetd86(), redis80, from, "LLEN", "large", 2, compare(false, "large")},
		{zsetd86(), redis80, to, "LLEN", "large", 1, compare(false, "large")},
		{zsetd86(), redis80, to, "LRANGE", "large", 1, compare(true, "large")},
		{zsetd86(), redis80, from, "DUMP", "z", 1, compare(true, "z")},
		{zsetd86(), redis80, to, "DUMP", "z", 1, compare(true, "z")},
		{zsetd86(), redis80, to, "PEXPIRETIME", "z", 1, compare(true, "z")},
		{zsetd86(), redis80, to, "DUMP", "zsetd:deadlines:{z}", 1, compare(true, "z")},
		{zsetd86(), redis80, to, "ZRANGEBYSCORE", "zsetd:deadlines:{z}", 1, compare(true, "z")},
		{redis80, zsetd86(), from, "ZRANGEBYSCORE", "zsetd:deadlines:{z}", 1, compare(true, "z")},
		{redis80, zsetd86(), to, "EXISTS", "zsetd:deadlines:{z}", 1, fold},
		{redis80, zsetd86(), to, "EVAL", "", 1, fold},
		{zsetd86(), zsetd86(), from, "INFO", "replication", 1, differs},
	} {
		m.t.product, s.product = test.there, test.here
		count := 0
		test.at.set(func(args []string) []string {
			if strings.EqualFold(args[0], test.call) && (test.key == "" || args[1] == test.key) {
				if count++; count == test.n {
					return failing(refusal)
				}
			}
			return args
		})
		if err := test.f(); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s %s number %d is refused: %v", test.call, test.key, test.n, err)
		}
		test.at.set(nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.settle(ctx, 0, []string{"k"}, still, "differs", func(keys []string) ([]string, error) { return keys, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a comparison that is stopped: %v", err)
	}
}

// TestOtherDatabases checks that a move to a cluster ends if the source has keys in other databases,
// and leaves out databases that do not move.
func TestOtherDatabases(t *testing.T) {
	limits := keyspace.DefaultLimits()
	w := rdb.NewWriter(rdb.NewCodec(&limits), rdb.Redis7)
	b := w.AppendHead(nil)
	for db := range 2 {
		b = w.AppendKey(b, 3*db, "k", keyspace.NewString([]byte("v")), 0)
	}
	b = w.AppendEnd(b)
	path := filepath.Join(t.TempDir(), "dump.rdb")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	there := clientOf(t, servertest.Run(t).Addr())
	for _, test := range []struct {
		tags []string
		dbs  databases
		want string
	}{
		{slotTags(), databases{anyDatabase, anyDatabase}, "the source has keys in database 3"},
		{slotTags(), databases{3, anyDatabase}, "the source has keys in database 3"},
		{slotTags(), databases{3, 0}, ""}, {slotTags(), databases{0, 0}, ""},
		{nil, databases{anyDatabase, anyDatabase}, ""}, {nil, databases{3, anyDatabase}, ""},
	} {
		for _, file := range []bool{false, true} {
			must(t, there, "FLUSHALL")
			m, _ := applierTo(t, there, zsetd86(), test.tags)
			m.dbs, m.o.From = test.dbs, endpoint(t, path)
			var err error
			if file {
				err = m.fromFile(t.Context())
			} else {
				err = m.copy(t.Context(), &counted{Reader: bytes.NewReader(b), status: &m.status})
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v: %v, want %q", test.dbs, err, test.want)
			}
			if err != nil {
				continue
			}
			want := map[databases]string{{3, 0}: "0", {0, 0}: "0", {anyDatabase, anyDatabase}: "0 3", {3, anyDatabase}: "3"}[test.dbs]
			info, err := infoOf(t.Context(), there, "keyspace")
			if err != nil {
				t.Fatal(err)
			}
			var dbs []string
			for _, d := range databasesOf(info) {
				dbs = append(dbs, fmt.Sprint(d.db))
			}
			if got := strings.Join(dbs, " "); got != want {
				t.Errorf("%v: the keys are in databases %s, want %s", test.dbs, got, want)
			}
		}
	}
}

// TestFileErrors checks how moves of files end that cannot be read or written, and which databases
// they have.
func TestFileErrors(t *testing.T) {
	source, target := primary(t), servertest.Run(t)
	here := clientOf(t, source.Addr())
	must(t, here, "SET", "k", "v")
	dir := t.TempDir()
	o := moveOf(t, source.Addr(), target.Addr())
	for name, content := range map[string]string{"garbage": "no file of this kind\n" + strings.Repeat("x", 5000), "cut.rdb": "REDIS0011\xfe\x00"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"garbage", "cut.rdb", "none.rdb", "none.db"} {
		from := o
		from.Replace = true
		from.From = endpoint(t, filepath.Join(dir, name))
		if err := run(t, from); err == nil {
			t.Errorf("a move from %s succeeds", name)
		}
	}
	for _, name := range []string{"none/dump.rdb", "none/zsetd.db"} {
		to := o
		to.To = endpoint(t, filepath.Join(dir, name))
		if err := run(t, to); err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("a move to %s ends with %v", name, err)
		}
	}
	g := gateTo(t, source.Addr())
	g.alter = func(reply []byte) []byte { return bytes.ReplaceAll(reply, []byte("REDIS0"), []byte("REDISX")) }
	for _, name := range []string{"dump.rdb", "zsetd.db"} {
		to := o
		to.From, to.To = endpoint(t, "redis://"+g.addr), endpoint(t, filepath.Join(dir, name))
		if err := run(t, to); err == nil || !strings.Contains(err.Error(), g.addr) {
			t.Errorf("a move of nonsense to %s ends with %v", name, err)
		}
		if _, err := os.Stat(to.To.path); !os.IsNotExist(err) {
			t.Errorf("after a move of nonsense there is %s: %v", name, err)
		}
	}
	three := redis.NewClient(&redis.Options{Addr: source.Addr(), DB: 3})
	defer three.Close()
	must(t, three, "SET", "three", "v")
	must(t, here, "SET", StatePrefix+"0", 1)
	o.From, o.To = endpoint(t, "redis://"+source.Addr()+"/3"), endpoint(t, filepath.Join(dir, "three.rdb"))
	lines := logged(&o)
	if err := run(t, o); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(*lines, " "); got != o.To.String()+": 1 keys written" {
		t.Errorf("the move says %q", got)
	}
	if list, err := filepath.Glob(filepath.Join(dir, ".migrate-*")); err != nil || len(list) > 0 {
		t.Errorf("files are left: %q, %v", list, err)
	}
}

// TestWithoutDue checks which members at Redis count: those past their deadlines do not.
func TestWithoutDue(t *testing.T) {
	g := gateTo(t, servertest.Run(t).Addr())
	there := clientOf(t, g.addr)
	m, _ := applierTo(t, there, zsetd86(), nil)
	m.sources = []*source{{product: product{"redis", 7, 0}}}
	redis70 := m.sources[0].product
	for key, due := range map[string][]any{"some": {1, "a"}, "all": {1, "a", 2, "b"}, "later": {1 << 45, "a"}, "none": nil} {
		must(t, there, "ZADD", key, 1, "a", 2, "b")
		if due != nil {
			must(t, there, append([]any{"ZADD", archive.CompanionOf(key)}, due...)...)
		}
	}
	must(t, there, "SET", "text", 1)
	limits := keyspace.DefaultLimits()
	names := []string{"some", "all", "later", "none", "text", "absent"}
	values, err := m.values(t.Context(), there, rdb.NewCodec(&limits), names)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, v := range values {
		v, err := m.withoutDue(t.Context(), there, redis70, v)
		if err != nil {
			t.Fatal(err)
		}
		switch s := v.Value.(type) {
		case nil:
			got += " -"
		case *zset.Set:
			got += fmt.Sprint(" ", s.Len())
		default:
			got += " other"
		}
	}
	if got != " 1 - 2 2 other -" {
		t.Errorf("the values have%s members", got)
	}
	for p, want := range map[product]string{redis70: "[some later none text]", zsetd86(): "[some all later none text absent]"} {
		if list, err := m.living(t.Context(), there, p, names); err != nil || fmt.Sprint(list) != want {
			t.Errorf("%v: %v, %v", p, list, err)
		}
	}
	for _, call := range []string{"DUMP", "PEXPIRETIME", "ZRANGEBYSCORE"} {
		g.set(func(args []string) []string {
			if strings.EqualFold(args[0], call) {
				return failing(refusal)
			}
			return args
		})
		if _, err := m.living(t.Context(), there, redis70, names); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s is refused: %v", call, err)
		}
	}
}

// TestPieces checks that a large value is written by commands in the slot of its key, that the value
// at an older Redis has the form that it reads, and that errors of each call end the copy.
func TestPieces(t *testing.T) {
	g := gateTo(t, servertest.Run(t).Addr())
	there := clientOf(t, g.addr)
	m, a := applierTo(t, there, zsetd86(), slotTags())
	p := m.t.newPieces(t.Context(), 0)
	for _, c := range batchOf("XADD s 1-1 f v", "XGROUP CREATE s g 0", "XGROUP CREATE s2 g 0 MKSTREAM").Commands {
		p.add(c)
	}
	for slot := range p.units {
		if slot != keyslot.Of("s") && slot != keyslot.Of("s2") {
			t.Errorf("a command is for slot %d", slot)
		}
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	if n := must(t, there, "DBSIZE"); n != int64(2) {
		t.Errorf("the target has %v", must(t, there, "KEYS", "*"))
	}
	must(t, there, "RPUSH", "list", strings.Repeat("x", largeValue/2), strings.Repeat("y", largeValue/2))
	must(t, there, "SET", "small", 1)
	limits := keyspace.DefaultLimits()
	values, err := dumps(t.Context(), there, rdb.NewCodec(&limits), []string{"list", "small"})
	if err != nil {
		t.Fatal(err)
	}
	a.t.product = product{"redis", 6, 0}
	write := func() error {
		w := copyWorker{copier: newCopier(t.Context(), a.t, &m.status), codec: rdb.NewCodec(&limits)}
		defer w.cancel(nil)
		return w.write(values)
	}
	must(t, there, "DEL", "list", "small")
	if err := write(); err != nil || must(t, there, "LLEN", "list") != int64(2) || must(t, there, "GET", "small") != "1" {
		t.Errorf("the values are not written: %v", err)
	}
	for _, test := range []struct {
		call string
		n    int
	}{{"EVALSHA", 1}, {"EVALSHA", 2}, {"DEL", 1}, {"RESTORE", 1}} {
		count := 0
		g.set(func(args []string) []string {
			if strings.EqualFold(args[0], test.call) {
				if count++; count == test.n {
					return failing(refusal)
				}
			}
			return args
		})
		if err := write(); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s number %d of %d is refused: %v", test.call, test.n, count, err)
		}
	}
}

// TestClusterState checks that a cluster which is down is refused.
func TestClusterState(t *testing.T) {
	g := gateTo(t, servertest.Run(t).Addr())
	g.set(func(args []string) []string {
		if callOf(args) == "CLUSTER INFO" {
			return reply(`'cluster_slots_assigned:16384\r\ncluster_state:fail\r\n'`)
		}
		return args
	})
	e := endpoint(t, "redis://"+g.addr+"?cluster")
	defer func() {
		g.set(func(args []string) []string {
			switch callOf(args) {
			case "CLUSTER INFO":
				return reply(`'cluster_slots_assigned:16384\r\ncluster_state:ok\r\n'`)
			case "CLUSTER SLOTS":
				return failing(refusal)
			}
			return args
		})
		if sources, err := openSources(t.Context(), e); err == nil || !strings.Contains(err.Error(), e.String()+": ") {
			t.Errorf("without a map of slots: %v, %v", sources, err)
		}
	}()
	if err := e.checkCluster(t.Context()); err == nil || err.Error() != e.String()+": the cluster is down (cluster_state is fail)" {
		t.Error(err)
	}
}
