package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
)

// TestOlderCommands checks that Redis before 7.0 receives only commands and options that it has, and
// that they have the same effect.
func TestOlderCommands(t *testing.T) {
	srv := servertest.Run(t, server.Options{})
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: "older", Password: "p"})
	defer rdb.Close()
	do := func(args ...any) any {
		t.Helper()
		reply, err := rdb.Do(t.Context(), args...).Result()
		if err != nil && err != redis.Nil {
			t.Fatalf("%q: %v", args, err)
		}
		return reply
	}
	setUser := []any{"ACL", "SETUSER", "older", "on", ">p", "~*", "&*", "+@all", "-lmove", "-xgroup|createconsumer"}
	if _, err := srv.Do(t.Context(), setUser...); err != nil {
		t.Fatal(err)
	}
	offset := 0
	// apply applies a command of a stream.
	apply := func(line string) error {
		offset++
		u := newUnit("{k}offset")
		words := strings.Fields(line)
		args := make([]any, len(words))
		for i, w := range words {
			args[i] = w
		}
		u.add(int64(offset), 0, [][]byte{[]byte("{k}l"), []byte("{k}m"), []byte("{k}s")}, args...)
		script := scriptFor(product{"redis", 6, 0})
		if err := script.Load(t.Context(), rdb).Err(); err != nil {
			t.Fatal(err)
		}
		p := rdb.Pipeline()
		call := u.call(t.Context(), p, script.Hash())
		_, _ = p.Exec(t.Context())
		return call.Err()
	}
	do("RPUSH", "{k}l", "a", "b", "c", "d")
	for i := range 9 {
		do("XADD", "{k}s", fmt.Sprintf("%d-0", i+1), "f", "v")
	}
	list := func(key string) string { return fmt.Sprint(do("LRANGE", key, 0, -1)) }
	entries := func() string { return fmt.Sprint(do("XLEN", "{k}s"), do("XRANGE", "{k}s", "-", "+", "COUNT", 1)) }
	for _, step := range []struct {
		line string
		got  func() string
		want string
	}{
		{"LMOVE {k}l {k}m LEFT RIGHT", func() string { return list("{k}l") + list("{k}m") }, "[b c d][a]"},
		{"LMOVE {k}l {k}m RIGHT LEFT", func() string { return list("{k}l") + list("{k}m") }, "[b c][d a]"},
		{"LMOVE {k}l {k}l LEFT RIGHT", func() string { return list("{k}l") }, "[c b]"},
		{"LMOVE {k}none {k}m LEFT RIGHT", func() string { return list("{k}m") }, "[d a]"},
		{"RPUSH {k}m e", func() string { return list("{k}m") }, "[d a e]"},
		{"XTRIM {k}s MINID 3-0", entries, "7 [[3-0 [f v]]]"},
		{"XTRIM {k}s MINID 4-1", entries, "5 [[5-0 [f v]]]"},
		{"XTRIM {k}s MINID 1-0", entries, "5 [[5-0 [f v]]]"},
		{"XTRIM {k}s MAXLEN 4", entries, "4 [[6-0 [f v]]]"},
		{"XSETID {k}s 20-0 ENTRIESADDED 99 MAXDELETEDID 15-0", func() string {
			info, err := rdb.XInfoStream(t.Context(), "{k}s").Result()
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintln(info.LastGeneratedID, info.EntriesAdded, info.MaxDeletedEntryID)
		}, "20-0 9 0-0"},
		{"XGROUP CREATE {k}s ENTRIESREAD 7-0 ENTRIESREAD 3", func() string {
			groups, err := rdb.XInfoGroups(t.Context(), "{k}s").Result()
			if err != nil || len(groups) != 1 {
				t.Fatal(groups, err)
			}
			return fmt.Sprintln(groups[0].Name, groups[0].LastDeliveredID, groups[0].EntriesRead)
		}, "ENTRIESREAD 7-0 0"},
		{"XGROUP CREATECONSUMER {k}s ENTRIESREAD c", func() string { return fmt.Sprint(do("XINFO", "CONSUMERS", "{k}s", "ENTRIESREAD")) }, "[]"},
		{"XGROUP DESTROY {k}s ENTRIESREAD", func() string { return fmt.Sprint(do("XINFO", "GROUPS", "{k}s")) }, "[]"},
	} {
		if err := apply(step.line); err != nil {
			t.Errorf("%s: %v", step.line, err)
		}
		if got := strings.Join(strings.Fields(step.got()), " "); got != step.want {
			t.Errorf("after %s: %s, want %s", step.line, got, step.want)
		}
	}
	if err := apply("LMOVE {k}s {k}l LEFT RIGHT"); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("LMOVE of a stream: %v", err)
	}
}
