package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest"
)

// TestSurvey checks what a dry run reports, and that it changes nothing.
func TestSurvey(t *testing.T) {
	source, target := primary(t), startRedis(t)
	here := clientOf(t, source.Addr())
	must(t, here, "ZADDEX", "z", "EX", 1000, "MEMBERS", 1, 1, "m")
	other := redis.NewClient(&redis.Options{Addr: source.Addr(), DB: 3})
	defer other.Close()
	must(t, other, "MSET", "a", 1, "b", 2)
	for from, keys := range map[string]int64{"": 3, "/3": 2, "/0": 1} {
		o := moveOf(t, source.Addr()+from, target)
		o.LoadLibrary = false
		r, err := Survey(t.Context(), o, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r.Keys != keys || r.Stop < stopWork || r.Stop > 1000*stopWork {
			t.Errorf("%q: %d keys, %v", from, r.Keys, r.Stop)
		}
		if lacks := strings.Contains(fmt.Sprint(r.Obstacles), "lacks the function library"); lacks != (from != "/3") {
			t.Errorf("%q: %q", from, r.Obstacles)
		}
	}
	cluster, _ := startCluster(t)
	for from, want := range map[string]bool{"": true, "/0": false} {
		o := moveOf(t, source.Addr()+from, target)
		o.To = endpoint(t, "redis://"+cluster+"?cluster")
		r, err := Survey(t.Context(), o, 0)
		if got := r != nil && strings.Contains(fmt.Sprint(r.Obstacles), "2 keys of "+source.Addr()+" are in databases other than 0"); err != nil || got != want {
			t.Errorf("%q to a cluster: %+v, %v", from, r, err)
		}
	}
	there := clientOf(t, target)
	if got := must(t, there, "DBSIZE"); got != int64(0) {
		t.Errorf("the target has %v keys", got)
	}
	must(t, there, "SET", "k", "v")
	o := moveOf(t, source.Addr(), target)
	r, err := Survey(t.Context(), o, 0)
	if err != nil || !strings.Contains(fmt.Sprint(r.Obstacles), "has 1 keys: --replace deletes them") {
		t.Errorf("%+v, %v", r, err)
	}
	o.Replace = true
	if r, err = Survey(t.Context(), o, 0); err != nil || len(r.Obstacles) > 0 || !strings.Contains(fmt.Sprint(r.Warnings), "the 1 keys of the target will be deleted") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestFoldKeys checks that the members of changed keys have the deadlines of their companions
// and no others, whether the key or the companion has changed.
func TestFoldKeys(t *testing.T) {
	srv := servertest.Run(t)
	rdb := clientOf(t, srv.Addr())
	m := newMove(&Options{})
	m.t = &target{rdb: rdb, product: product{"zsetd", 8, 6}, note: func(string) {}}
	m.t.companions.Store(true)
	m.sources = []*source{{product: product{"redis", 7, 0}}}
	set := map[keyAt]struct{}{{0, "text"}: {}, {0, "none"}: {}}
	must(t, rdb, "SET", "text", 1)
	must(t, rdb, "ZADDEX", "none", "PXAT", 1<<44, "MEMBERS", 1, 1, "a")
	for i := range 4 {
		key := fmt.Sprint("z", i)
		must(t, rdb, "ZADDEX", key, "PXAT", 1<<44, "MEMBERS", 2, 1, "a", 2, "b")
		must(t, rdb, "ZADD", "zsetd:deadlines:{"+key+"}", 1<<45, "a", 1.5, "b", 1<<45, "absent")
		set[keyAt{0, []string{key, "zsetd:deadlines:{" + key + "}"}[i%2]}] = struct{}{}
	}
	if err := m.foldKeys(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if got := fmt.Sprint(must(t, rdb, "ZPEXPIRETIME", fmt.Sprint("z", i), "MEMBERS", 2, "a", "b")); got != fmt.Sprint([]int64{1 << 45, -1}) {
			t.Errorf("z%d: %s", i, got)
		}
	}
	if got := fmt.Sprint(must(t, rdb, "ZPEXPIRETIME", "none", "MEMBERS", 1, "a")); got != fmt.Sprint([]int64{1 << 44}) {
		t.Errorf("a key without a companion has %s", got)
	}
}

// TestMoveCommand checks MOVE at the source: a target with all databases follows, and a move of
// one database ends with words.
func TestMoveCommand(t *testing.T) {
	for _, database := range []string{"", "/0"} {
		source, target := startRedis(t), startRedis(t)
		here := clientOf(t, source)
		must(t, here, "SET", "k", "v")
		o := moveOf(t, source+database, target)
		f := follow(t, o)
		must(t, here, "MOVE", "k", 4)
		if database != "" {
			if err := <-f.ended; err == nil || !strings.Contains(err.Error(), "(MOVE)") {
				t.Errorf("the move ends with %v", err)
			}
			continue
		}
		f.cutOver()
		there := redis.NewClient(&redis.Options{Addr: target, DB: 4})
		if got := must(t, there, "GET", "k"); got != "v" {
			t.Errorf("the target has %v", got)
		}
		there.Close()
	}
}
