package differential

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
)

// TestObservationsOfLargeSets compares observations of ranks and ranges of two large sorted sets with
// the replies of the same commands, after each of many random changes.
func TestObservationsOfLargeSets(t *testing.T) {
	seed := *observationsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -observations.seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	srv, err := server.New(server.Options{Config: map[string]string{"query-cpu": "100"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	const members = 600
	key := func() string { return string("ab"[r.IntN(2)]) }
	member := func() string { return fmt.Sprint("m", r.IntN(members)) }
	score := func() any {
		if r.IntN(30) == 0 {
			return []any{"+inf", "-inf", "1e300", "-0.5"}[r.IntN(4)]
		}
		return r.IntN(200)
	}
	fill := func(k string) []any {
		args := []any{"ZADD", k}
		for i := range members {
			if r.IntN(4) > 0 {
				args = append(args, score(), fmt.Sprint("m", i))
			}
		}
		return args
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []*observed
	for _, k := range []string{"a", "b"} {
		if _, err := srv.Do(ctx, fill(k)...); err != nil {
			t.Fatal(err)
		}
		lists := [][]any{
			{"ZRANGE", k, 0, 9}, {"ZRANGE", k, 0, 9, "REV", "WITHSCORES"}, {"ZRANGE", k, -5, -1}, {"ZREVRANGE", k, -5, -2}, {"ZRANGE", k, 3, -3},
			{"ZRANGE", k, 100, 104}, {"ZRANGE", k, 0, 5000}, {"ZRANGE", k, 5, 4}, {"ZRANGE", k, 50, 60, "BYSCORE", "LIMIT", 1, 3}, {"ZREVRANGEBYSCORE", k, "(60", 55},
			{"ZCOUNT", k, 100, 110}, {"ZCOUNT", k, "-inf", "(3"}, {"ZCOUNT", k, "@now-5m", "+inf"}, {"ZRANGEBYLEX", k, "-", "[m2"}, {"ZCARD", k},
			{"ZRANK", k, "m1", "WITHSCORE"}, {"ZUNION", 2, "a", "b"}, {"EVAL_RO", "return redis.call('ZRANGE', KEYS[1], 0, 5)", 1, k},
		}
		for range 20 {
			lists = append(lists, []any{"ZRANK", k, member()}, []any{"ZREVRANK", k, member()})
		}
		for _, args := range lists {
			o := &observed{args: args, line: fmt.Sprint(args...)}
			if !o.begin(ctx, t, srv) {
				t.Fatalf("%v is refused", args)
			}
			all = append(all, o)
		}
	}
	change := func() []any {
		k := key()
		switch r.IntN(60) {
		case 0:
			return []any{"RENAME", "a", "b"}
		case 1:
			return []any{"RENAME", "b", "a"}
		case 2:
			return []any{"COPY", "a", "b", "REPLACE"}
		case 3:
			return []any{"SWAPDB", 0, 1}
		case 4:
			return []any{"ZUNIONSTORE", k, 2, "a", "b"}
		case 5:
			return []any{"PEXPIRE", k, r.IntN(3000)}
		case 6:
			return []any{"SET", k, "v"}
		case 7:
			return []any{"DEL", k}
		case 8:
			return []any{"ZREMRANGEBYSCORE", k, r.IntN(200), r.IntN(200)}
		case 9, 10, 11, 12, 13:
			return fill(k)
		case 14, 15, 16:
			return []any{"ZADDEX", k, "PX", 1 + r.IntN(3000), "MEMBERS", 1, score(), member()}
		case 17:
			return []any{"ZRANGESTORE", k, k, 0, r.IntN(300)}
		case 18:
			return []any{"EVAL", "redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2]) redis.call('RENAME', KEYS[1], 'c') redis.call('ZADD', 'c', 1, ARGV[2]) redis.call('RENAME', 'c', KEYS[1])", 1, k, r.IntN(200), member()}
		case 19, 20, 21, 22:
			return []any{"ZPOPMIN", k, 1 + r.IntN(3)}
		case 23, 24, 25, 26:
			return []any{"ZPOPMAX", k}
		case 27, 28, 29:
			return []any{"ZREMRANGEBYRANK", k, r.IntN(50), r.IntN(52)}
		case 30, 31, 32, 33, 34:
			return []any{"ZREM", k, member(), member()}
		case 35, 36, 37, 38, 39:
			return []any{"ZINCRBY", k, r.IntN(9) - 4, member()}
		case 40:
			return []any{"PERSIST", k}
		default:
			return []any{"ZADD", k, score(), member(), score(), member()}
		}
	}
	for i := range *observationsN / 2 {
		var what []any
		if r.IntN(10) == 0 {
			d := time.Duration(r.IntN(1500)) * time.Millisecond
			what = []any{"advance", d}
			srv.Advance(d)
		} else {
			what = change()
			srv.Do(ctx, what...)
		}
		for _, o := range all {
			if err := o.check(ctx, srv); err != nil {
				t.Fatalf("after change %d, %.200q: %v", i, fmt.Sprint(what...), err)
			}
		}
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}
