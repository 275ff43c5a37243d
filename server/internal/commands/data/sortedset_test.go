package data_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestSortedSetAllocations checks the allocation limits of the hot paths.
func TestSortedSetAllocations(t *testing.T) {
	c := enginetest.NewSession(t)
	for i := range 1000 {
		c.Do(fmt.Sprintf("ZADD k %d member:%d", i, i))
	}
	for _, test := range []struct {
		line string
		max  float64
	}{
		{"ZADD k 500 member:500", 0},
		{"ZADD k GT CH 500.5 member:500 501.5 member:501", 0},
		{"ZADD k 3 member:3 4 member:4 5 member:5", 0},
		{"ZSCORE k member:77", 0},
		{"ZSCORE k nobody", 0},
		{"ZMSCORE k member:77 nobody member:78", 0},
		{"ZRANK k member:77", 0},
		{"ZREVRANK k member:77 WITHSCORE", 0},
		{"ZCARD k", 0},
		{"ZCOUNT k (100 +inf", 0},
		{"ZRANGE k 10 19", 0},
		{"ZRANGE k 10 19 REV WITHSCORES", 0},
		{"ZRANGEBYSCORE k -inf +inf LIMIT 0 10", 0},
		{"ZRANGE k 500 (0 BYSCORE REV LIMIT 100 10 WITHSCORES", 0},
		{"ZREVRANGEBYSCORE k +inf 500 WITHSCORES LIMIT 0 10", 0},
		{"ZREM k nobody", 0},
		{"ZREMRANGEBYSCORE k -inf -1", 0},
	} {
		batch := enginetest.Words(test.line)
		if got := testing.AllocsPerRun(100, func() { c.Run(batch) }); got > test.max {
			t.Errorf("%s: %v allocations, at most %v wanted", test.line, got, test.max)
		}
	}
	// Scores that change, and members that come and go.
	batch := enginetest.Words("ZADD k 000 member:500")
	score := batch[0][2]
	i := 0
	if got := testing.AllocsPerRun(500, func() {
		i++
		score[0], score[1], score[2] = '0'+byte(i/100%10), '0'+byte(i/10%10), '0'+byte(i%10)
		c.Run(batch)
	}); got > 0 {
		t.Errorf("ZADD of a changing score: %v allocations", got)
	}
	batch = append(enginetest.Words("ZADD k 7.5 guest"), enginetest.Words("ZREM k guest")...)
	if got := testing.AllocsPerRun(500, func() { c.Run(batch) }); got > 1 {
		t.Errorf("ZADD of a new member and ZREM: %v allocations, one wanted", got)
	}
}

// TestZsetEncoding checks that a sorted set reports the encoding of Redis: a skiplist stays
// one until the set is stored as a whole, restored or loaded. TestEncodingsAsRedis
// compares with a real server.
func TestZsetEncoding(t *testing.T) {
	c := enginetest.NewSession(t)
	long := strings.Repeat("x", 65)
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " %d m%d", i, i)
		}
		return b.String()
	}
	for _, step := range []struct{ line, key, want string }{
		{"ZADD a" + many(128), "a", "listpack"},
		{"ZADD a 1 m0", "a", "listpack"},
		{"ZADD a 1 m128", "a", "skiplist"},
		{"ZREMRANGEBYRANK a 5 -1", "a", "skiplist"},
		{"COPY a b", "b", "skiplist"},
		{"RENAME b c", "c", "skiplist"},
		{"ZUNIONSTORE d 1 a", "d", "listpack"},
		{"ZRANGESTORE d a 0 -1", "d", "listpack"},
		{"ZADD d XX 1 " + long, "d", "listpack"},
		{"ZINCRBY d 1 " + long, "d", "skiplist"},
		{"ZREM d " + long, "d", "skiplist"},
		{"ZADDEX e MEMBERS 1 1 " + long, "e", "skiplist"},
		{"ZADDEX e MAXLEN 1 MEMBERS 2 2 x 3 y", "e", "skiplist"},
		{"GEOADD g 1 1 " + long + " 1 1 x", "g", "skiplist"},
		{"ZREM g " + long, "g", "skiplist"},
		{"ZADD s 1 1 2 2", "s", "listpack"},
		{"SORT s", "s", "skiplist"},
		{"ZADD r 1 1 2 2", "r", "listpack"},
		{"SORT_RO r BY nosort LIMIT 0 1", "r", "skiplist"},
		{"CONFIG SET zset-max-listpack-entries 2", "d", "skiplist"},
		{"ZADD l 1 a 2 b", "l", "listpack"},
		{"CONFIG SET zset-max-listpack-entries 1", "l", "listpack"},
		{"ZADD l 3 a", "l", "listpack"},
		{"ZADD l 3 c", "l", "skiplist"},
		{"CONFIG SET zset-max-listpack-entries 128", "l", "skiplist"},
		{"DEL l", "a", "skiplist"},
		{"ZADD l 3 c", "l", "listpack"},
	} {
		c.Do(step.line)
		if got := c.Do("OBJECT ENCODING " + step.key); !strings.Contains(got, step.want) {
			t.Errorf("after %.50s: %q is a %q, want %s", step.line, step.key, got, step.want)
		}
	}
}

// TestRandomMembers checks that all members are drawn, and no others.
func TestRandomMembers(t *testing.T) {
	c := enginetest.NewSession(t)
	c.Do("ZADD k 1 a 2 b 3 c 4 d")
	for _, line := range []string{"ZRANDMEMBER k", "ZRANDMEMBER k 2", "ZRANDMEMBER k -7", "ZRANDMEMBER k -1 WITHSCORES"} {
		seen := map[string]int{}
		for range 200 {
			out := strings.Split(c.Do(line), "\r\n")
			if line == "ZRANDMEMBER k 2" {
				if out[2] == out[4] {
					t.Fatalf("%s: %q twice", line, out[2])
				}
			}
			for _, w := range out {
				if len(w) == 1 && w >= "a" && w <= "z" {
					seen[w]++
				}
			}
		}
		if len(seen) != 4 || seen["a"] < 10 || seen["d"] < 10 {
			t.Errorf("%s: %v", line, seen)
		}
	}
	if got := c.Do("ZRANDMEMBER k -999999999"); got != "-ERR value is out of range\r\n" {
		t.Errorf("a billion draws: %q", got)
	}
}

// TestZscanWhileChanging checks that a scan returns all members that exist throughout,
// while others are added and removed.
func TestZscanWhileChanging(t *testing.T) {
	c := enginetest.NewSession(t)
	for i := range 2000 {
		c.Do(fmt.Sprintf("ZADD k %d stays:%d", i%7, i))
	}
	seen := map[string]bool{}
	cursor := "0"
	for turn := 0; turn == 0 || cursor != "0"; turn++ {
		out := strings.Split(c.Do("ZSCAN k "+cursor+" COUNT 50"), "\r\n")
		cursor = out[2]
		for _, w := range out[4:] {
			if strings.HasPrefix(w, "stays:") {
				seen[w] = true
			}
		}
		for i := range 40 {
			c.Do(fmt.Sprintf("ZADD k 1 guest:%d:%d", turn, i), fmt.Sprintf("ZREM k guest:%d:%d", turn-2, i))
		}
	}
	if len(seen) != 2000 {
		t.Errorf("%d of 2000 members seen", len(seen))
	}
	var found []string
	for cursor, turn := "0", 0; turn == 0 || cursor != "0"; turn++ {
		out := strings.Split(c.Do("ZSCAN k "+cursor+" MATCH stays:199? COUNT 1000"), "\r\n")
		cursor = out[2]
		for _, w := range out[4:] {
			if strings.HasPrefix(w, "stays:") {
				found = append(found, w)
			}
		}
	}
	if len(found) != 10 {
		t.Errorf("MATCH stays:199?: %q", found)
	}
}
