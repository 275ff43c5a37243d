package data_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/commands/data"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/score"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// naiveSet is a reference implementation of ZADDEX on a map.
type naiveSet map[string]naiveMember

type naiveMember struct {
	score    float64
	deadline int64 // 0: none
}

// naiveZaddex is a ZADDEX.
type naiveZaddex struct {
	nx, xx, gt, lt, ch, incr, keep, enx, max, reject bool

	deadline int64 // 0: none is given
	maxLen   int   // 0: none
	members  []string
	scores   []string
}

func (s naiveSet) sorted() []string {
	return slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		return cmp.Or(cmp.Compare(s[a].score, s[b].score), strings.Compare(a, b))
	})
}

// run returns the reply.
func (o *naiveZaddex) run(s naiveSet, now int64) string {
	switch {
	case o.nx && o.xx:
		return "-ERR XX and NX options at the same time are not compatible"
	case o.nx && o.gt, o.nx && o.lt, o.gt && o.lt:
		return "-ERR GT, LT, and/or NX options at the same time are not compatible"
	case o.incr && len(o.members) > 1:
		return "-ERR INCR option supports a single increment-element pair"
	case o.enx && o.deadline == 0:
		return "-ERR ENX needs one of EX, PX, EXAT and PXAT"
	case o.incr && o.scores[0] == "*":
		return "-" + protocol.ErrNotFloat + score.NoIncrement
	}
	fresh := map[string]bool{}
	for _, m := range o.members {
		if _, there := s[m]; !there && !o.xx {
			fresh[m] = true
		}
	}
	full := o.reject && len(fresh) > 0 && len(s)+len(fresh) > o.maxLen
	added, updated, result := 0, 0, "nil"
	for i, m := range o.members {
		old, there := s[m]
		if !there && (full || o.xx) || there && o.nx {
			continue
		}
		score := old.score
		switch {
		case o.scores[i] == "*" && (!there || o.xx):
			score = 1
			if all := s.sorted(); len(all) > 0 {
				score = s[all[len(all)-1]].score + 1
			}
		case o.scores[i] != "*":
			score, _ = strconv.ParseFloat(o.scores[i], 64)
			if o.incr {
				score += old.score
			}
		}
		past := o.deadline != 0 && o.deadline <= now && !(o.enx && old.deadline != 0)
		switch {
		case math.IsNaN(score) && !past:
			return "-" + data.ErrScoreNaN
		case there && (o.gt && score <= old.score || o.lt && score >= old.score):
			continue
		case past:
			delete(s, m)
			continue
		}
		next := naiveMember{score, old.deadline}
		switch {
		case o.deadline != 0 && !(o.enx && old.deadline != 0):
			next.deadline = o.deadline
		case o.deadline == 0 && !o.keep && !o.incr:
			next.deadline = 0
		}
		s[m] = next
		result = "$" + strconv.FormatFloat(score, 'g', -1, 64)
		switch {
		case !there:
			added++
		case score != old.score:
			updated++
		}
	}
	if o.maxLen > 0 && !o.reject {
		for all := s.sorted(); len(all) > o.maxLen; {
			if o.max {
				delete(s, all[len(all)-1])
				all = all[:len(all)-1]
			} else {
				delete(s, all[0])
				all = all[1:]
			}
		}
	}
	switch {
	case full:
		return "nil"
	case o.incr:
		return result
	case o.ch:
		return fmt.Sprint(":", added+updated)
	}
	return fmt.Sprint(":", added)
}

// randomZaddex returns a command line and what it means.
func randomZaddex(r *rand.Rand, now int64) (line string, o naiveZaddex) {
	words := []string{}
	maybe := func(p *bool, word string, one int) {
		if *p = r.IntN(one) == 0; *p {
			words = append(words, word)
		}
	}
	maybe(&o.nx, "NX", 8)
	maybe(&o.xx, "XX", 8)
	maybe(&o.gt, "GT", 8)
	maybe(&o.lt, "LT", 8)
	maybe(&o.ch, "CH", 3)
	maybe(&o.incr, "INCR", 6)
	switch in := int64(r.IntN(40)) - 1; r.IntN(8) {
	case 0:
		in = max(in, 0)
		o.deadline = now + in*1000
		words = append(words, fmt.Sprint("EX ", in))
	case 1:
		in = max(in, 0)
		o.deadline = now + in
		words = append(words, fmt.Sprint("PX ", in))
	case 2:
		o.deadline = (now/1000 + in) * 1000
		words = append(words, fmt.Sprint("EXAT ", now/1000+in))
	case 3:
		o.deadline = now + in
		words = append(words, fmt.Sprint("PXAT ", now+in))
	case 4:
		o.keep = true
		words = append(words, "KEEPTTL")
	}
	if o.deadline != 0 {
		maybe(&o.enx, "ENX", 3)
	} else {
		maybe(&o.enx, "ENX", 40)
	}
	r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	if r.IntN(4) == 0 {
		o.maxLen = 1 + r.IntN(12)
		words = append(words, "MAXLEN", strconv.Itoa(o.maxLen))
		if maybe(&o.max, "MAX", 2); !o.max && r.IntN(2) == 0 {
			words = append(words, "MIN")
		}
		maybe(&o.reject, "REJECT", 2)
	}
	n := 1 + r.IntN(4)
	if o.incr && r.IntN(20) > 0 {
		n = 1
	}
	words = append(words, "MEMBERS", strconv.Itoa(n))
	for range n {
		score := strconv.Itoa(r.IntN(12) - 2)
		switch r.IntN(20) {
		case 0, 1, 2, 3, 4:
			score = "*"
		case 5:
			score = "inf"
		case 6:
			score = "-inf"
		}
		if score == "*" && o.incr && r.IntN(3) > 0 {
			score = "1.5"
		}
		member := string(rune('a' + r.IntN(14)))
		o.scores, o.members = append(o.scores, score), append(o.members, member)
		words = append(words, score, member)
	}
	return strings.Join(words, " "), o
}

// TestZaddexModel compares 20 000 random ZADDEX of all options with the reference, while
// members expire in between.
func TestZaddexModel(t *testing.T) {
	rerun.Skip(t)
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	at := time.UnixMilli(1_700_000_000_000)
	s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	srv.Mu.Lock() // keeps the timer from running: the test sets the time
	defer srv.Mu.Unlock()
	turn := func(line string) string {
		t.Helper()
		args, ok := protocol.SplitArgs(nil, []byte(line))
		if !ok {
			t.Fatal(line)
		}
		srv.SetClock(at)
		s.Exec(args)
		srv.Turn.Scope.Commit()
		return string(s.Out.Swap(nil))
	}
	r := rand.New(rand.NewPCG(4, 2))
	model := naiveSet{}
	const commands = 20_000
	for i := range commands {
		now := at.UnixMilli()
		maps.DeleteFunc(model, func(_ string, m naiveMember) bool { return m.deadline != 0 && m.deadline < now })
		line, o := randomZaddex(r, now)
		got := strings.TrimSuffix(turn("ZADDEX z "+line), "\r\n")
		want := o.run(model, now)
		if want == "nil" {
			want = "$-1"
		} else if text, ok := strings.CutPrefix(want, "$"); ok {
			f, _ := strconv.ParseFloat(text, 64)
			text = string(protocol.AppendFloat(nil, f))
			want = fmt.Sprintf("$%d\r\n%s", len(text), text)
		}
		if got != want {
			t.Fatalf("command %d, ZADDEX %s: %q, want %q", i, line, got, want)
		}
		var b strings.Builder
		all := model.sorted()
		fmt.Fprintf(&b, "*%d\r\n", 2*len(all))
		for _, m := range all {
			score := protocol.AppendFloat(nil, model[m].score)
			fmt.Fprintf(&b, "$%d\r\n%s\r\n$%d\r\n%s\r\n", len(m), m, len(score), score)
		}
		if got := turn("ZRANGE z 0 -1 WITHSCORES"); got != b.String() {
			t.Fatalf("after command %d, ZADDEX %s: %q, want %q", i, line, got, b.String())
		}
		if len(all) > 0 {
			b.Reset()
			fmt.Fprintf(&b, "*%d\r\n", len(all))
			for _, m := range all {
				fmt.Fprintf(&b, ":%d\r\n", cmp.Or(model[m].deadline, -1))
			}
			if got := turn(fmt.Sprint("ZPEXPIRETIME z MEMBERS ", len(all), " ", strings.Join(all, " "))); got != b.String() {
				t.Fatalf("after command %d, ZADDEX %s: deadlines %q, want %q", i, line, got, b.String())
			}
		}
		if r.IntN(50) == 0 {
			turn("DEL z")
			clear(model)
		}
		at = at.Add(time.Duration(r.IntN(8)) * time.Millisecond * time.Duration(1+r.IntN(100)*r.IntN(2)))
	}
	if err := srv.Keys.Check(); err != nil {
		t.Error(err)
	}
}
