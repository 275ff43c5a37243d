package data_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// Values that have grown and shrunk are compared with a real server: the encoding that
// OBJECT ENCODING names, and what depends on it (the sign of -0, how ZSCAN writes large
// scores). After DEBUG RELOAD, too.
func TestEncodingsAsRedis(t *testing.T) {
	rerun.Skip(t)
	redis := judge.Asker(t, judge.Start(t, "--enable-debug-command", "yes")())
	srv, err := server.New(server.Options{
		File:   filepath.Join(t.TempDir(), "data.db"),
		Config: map[string]string{"enable-debug-command": "yes", "set-max-listpack-entries": "0", "save": ""}, // sets as in 7.0
	})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	zsetd := judge.Asker(t, nc)
	r := rand.New(rand.NewPCG(1, 2))
	long := strings.Repeat("x", 65)
	pickOne := func(list ...string) string { return list[r.IntN(len(list))] }
	score := func() string { return pickOne("1", "2", "-0.0", "0", "688332863258710671", "2.5", "-1") }
	member := func() string { return pickOne("a", "b", "c", "1", "2", "3", "4", long) }
	keys := map[string]int{"z": 3, "y": 3, "s": 3, "h": 3}
	for _, ask := range []func(...string) any{redis, zsetd} {
		for _, name := range []string{"zset-max-listpack-entries", "hash-max-listpack-entries", "set-max-intset-entries"} {
			ask("CONFIG", "SET", name, "4")
		}
	}
	seen := map[string]int{}
	for i := range 6000 {
		z := pickOne("z", "y")
		var argv []string
		switch r.IntN(14) {
		case 0, 1, 2, 3:
			argv = []string{"ZADD", z, score(), member()}
		case 4:
			argv = []string{"ZINCRBY", z, score(), member()}
		case 5, 6:
			argv = []string{"ZREM", z, long, member(), member()}
		case 7:
			argv = [][]string{{"SORT", z, "BY", "nosort"}, {"COPY", "z", "y", "REPLACE"}, {"ZUNIONSTORE", z, "1", z}, {"ZRANGESTORE", "y", "z", "0", "-1"},
				{"RENAME", "y", "z"}, {"ZSCAN", z, "0", "COUNT", "100"}, {"ZPOPMIN", z}, {"ZPOPMAX", z, "9"}}[r.IntN(8)]
		case 8, 9:
			argv = []string{"SADD", "s", member()}
		case 10:
			argv = []string{"SREM", "s", long, member(), member()}
		case 11:
			argv = []string{"HSET", "h", member(), "v"}
		case 12:
			argv = []string{"HDEL", "h", long, member(), member()}
		default:
			argv = []string{"ZSCORE", z, member()}
			if i%20 == 0 {
				argv = []string{"DEBUG", "RELOAD"}
			}
		}
		want, got := fmt.Sprint(redis(argv...)), fmt.Sprint(zsetd(argv...))
		if argv[0] != "ZSCAN" && argv[0] != "SORT" && !judge.SameWords(got, want) {
			t.Fatalf("%d: %q: %s, want %s", i, argv, got, want)
		}
		for key := range keys {
			want, got := redis("OBJECT", "ENCODING", key), zsetd("OBJECT", "ENCODING", key)
			if got != want {
				t.Fatalf("%d: after %q %s is %v, want %v", i, argv, key, got, want)
			}
			seen[fmt.Sprint(key, " ", want)]++
			if key != "z" && key != "y" {
				continue
			}
			if want, got := fmt.Sprint(redis("ZRANGE", key, "0", "-1", "WITHSCORES")), fmt.Sprint(zsetd("ZRANGE", key, "0", "-1", "WITHSCORES")); !judge.SameWords(got, want) {
				t.Fatalf("%d: after %q %s holds %s, want %s", i, argv, key, got, want)
			}
		}
	}
	for _, kind := range []string{"z listpack", "z skiplist", "s intset", "s hashtable", "h listpack", "h hashtable"} {
		if seen[kind] < 50 {
			t.Errorf("%s was met %d times", kind, seen[kind])
		}
	}
}
