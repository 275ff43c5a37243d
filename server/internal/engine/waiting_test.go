package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// waits runs blocking commands, each in a goroutine, in the order given. It sends their
// replies, with the milliseconds until then, to the channel. It is for bubbles of
// synctest.
func waits(srv *enginetest.Server, answers chan<- string, lines ...string) {
	start := time.Now()
	for i, line := range lines {
		go func() {
			var args []any
			for _, word := range strings.Fields(line) {
				args = append(args, word)
			}
			reply, err := srv.Do(context.Background(), args...)
			if err != nil {
				reply = err
			}
			answers <- fmt.Sprintf("%d after %d: %v", i+1, time.Since(start).Milliseconds(), reply)
		}()
		synctest.Wait() // it blocks
	}
}

// bubble runs a test in a bubble, with an empty server.
func bubble(t *testing.T, test func(t *testing.T, srv *enginetest.Server, answers chan string)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := enginetest.New(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan string, 10_000)
		test(t, srv, answers)
		if err := srv.Check(); err != nil {
			t.Error(err)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
}

// next expects an answer, none before it, and none after it in the same instant.
func next(t *testing.T, answers <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		select {
		case got := <-answers:
			if got != w {
				t.Errorf("answered %q, want %q", got, w)
			}
		case <-time.After(time.Hour):
			t.Fatalf("no answer, want %q", w)
		}
	}
	silent(t, answers)
}

func silent(t *testing.T, answers <-chan string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-answers:
		t.Errorf("answered %q, want nothing", got)
	default:
	}
}

// TestServedWhenDue checks that due members are served exactly at their time, to the
// clients that are blocked longest.
func TestServedWhenDue(t *testing.T) {
	bubble(t, func(t *testing.T, srv *enginetest.Server, answers chan string) {
		waits(srv, answers,
			"BZPOPBYSCORE 0 1 due -inf @now",
			"BZPOPBYSCORE 0 2 other due -inf @now",
			"BZCLAIM 0 1 due -inf @now 4102444800 LEASE",
			"BZPOPBYSCORE 0.5 1 due -inf @now")
		enginetest.Must(t, srv, "ZADD due @now+2s b @now+1s a @now+1h c")
		silent(t, answers)
		next(t, answers, "4 after 500: <nil>")
		next(t, answers, "1 after 1000: [due [[a 9.46684801e+08]]]")
		next(t, answers, "2 after 2000: [due [[b 9.46684802e+08]]]")
		enginetest.Must(t, srv, "ZADD due @now+10s c")
		next(t, answers, "3 after 12000: [due [[c 4.1024448e+09]]]")
		enginetest.Must(t, srv, "ZSCORE due c -> 4.1024448e+09", "ZCARD due -> 1")
	})
}

// TestDueTogether checks that of several members that fall due together each waiter gets
// one, in the order of blocking, and that the rest stays.
func TestDueTogether(t *testing.T) {
	bubble(t, func(t *testing.T, srv *enginetest.Server, answers chan string) {
		enginetest.Must(t, srv, "ZADD due @now+1s a @now+1s b @now+1s c")
		waits(srv, answers, "BZPOPBYSCORE 0 1 due (@now-1m @now", "BZPOPBYSCORE 0 1 due (@now-1m @now")
		time.Sleep(time.Second)
		synctest.Wait()
		got := []string{<-answers, <-answers}
		if got[0] > got[1] {
			got[0], got[1] = got[1], got[0]
		}
		if want := "[1 after 1000: [due [[a 9.46684801e+08]]] 2 after 1000: [due [[b 9.46684801e+08]]]]"; fmt.Sprint(got) != want {
			t.Errorf("%v, want %v", got, want)
		}
		enginetest.Must(t, srv, "ZCARD due -> 1")
	})
}

// TestFirstComeAcrossRanges checks that waiters for different ranges are served in the
// order of blocking.
func TestFirstComeAcrossRanges(t *testing.T) {
	bubble(t, func(t *testing.T, srv *enginetest.Server, answers chan string) {
		waits(srv, answers, "BZPOPBYSCORE 0 1 k 6 10", "BZPOPBYSCORE 0 1 k 0 10", "BZPOPMIN k 0", "BZPOPBYSCORE 0 1 k 5 5", "BZPOPBYSCORE 0 1 k 0 10")
		for i, want := range []string{"2 after 0: [k [[x 5]]]", "3 after 0: [k x 5]", "4 after 0: [k [[x 5]]]", "5 after 0: [k [[x 5]]]"} {
			enginetest.Must(t, srv, "ZADD k 5 x")
			next(t, answers, want)
			if t.Failed() {
				t.Fatal("at ", i)
			}
		}
		enginetest.Must(t, srv, "ZADD k 5 x", "ZADD k 6 x")
		next(t, answers, "1 after 0: [k [[x 6]]]")
	})
}

// TestDueWaitersServedFirst checks that due waiters are served before any command that runs
// later, even when the timer is late.
func TestDueWaitersServedFirst(t *testing.T) {
	bubble(t, func(t *testing.T, srv *enginetest.Server, answers chan string) {
		enginetest.Must(t, srv, "ZADD due @now+1s a")
		waits(srv, answers, "BZPOPBYSCORE 0 1 due -inf @now")
		srv.Time.Advance(time.Hour) // the timer does not know yet
		enginetest.Must(t, srv, "ZPOPBYSCORE due -inf +inf -> []")
		next(t, answers, "1 after 0: [due [[a 9.46684801e+08]]]")
	})
}

// TestClosedBeforeDue checks that a closed client is not served, even if the lock hold
// that removes it is the first after the deadline.
func TestClosedBeforeDue(t *testing.T) {
	bubble(t, func(t *testing.T, srv *enginetest.Server, _ chan string) {
		enginetest.Must(t, srv, "ZADD due @now+1s a")
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if reply, err := srv.Do(ctx, "BZPOPBYSCORE", 0, 1, "due", "-inf", "@now"); err == nil {
				t.Errorf("it was given %v", reply)
			}
		}()
		synctest.Wait()
		srv.Time.Advance(time.Hour)
		cancel()
		<-done
		enginetest.Must(t, srv, "ZCARD due -> 1")
	})
}

// TestAlarmFollowsKey checks that changes of a key adjust the time at which its waiters are
// served.
func TestAlarmFollowsKey(t *testing.T) {
	for _, test := range []struct{ change, want string }{
		{"ZADD due @now+3s a", "1 after 3000: [due [[a 9.46684803e+08]]]"},
		{"ZADD due @now+1ms a", "1 after 1: [due [[a 9.46684800001e+08]]]"},
		{"ZREM due a", "1 after 9000: <nil>"},
		{"DEL due", "1 after 9000: <nil>"},
		{"SET due x", "1 after 9000: <nil>"},
		{"RENAME later due", "1 after 5000: [due [[b 9.46684805e+08]]]"},
		{"COPY later due REPLACE", "1 after 5000: [due [[b 9.46684805e+08]]]"},
		{"RENAME due x", "1 after 9000: <nil>"},
		{"ZPEXPIRE due 500 MEMBERS 1 a", "1 after 9000: <nil>"},
		{"PEXPIRE due 500", "1 after 9000: <nil>"},
		{"PEXPIRE due 5000", "1 after 2000: [due [[a 9.46684802e+08]]]"},
		{"FLUSHALL", "1 after 9000: <nil>"},
		{"CLIENT PAUSE 4000 WRITE", "1 after 4000: [due [[a 9.46684802e+08]]]"},
		{"ZADD due @now+1h a -5 b", "1 after 0: [due [[b -5]]]"},
		{"ZUNIONSTORE due 1 later", "1 after 5000: [due [[b 9.46684805e+08]]]"},
		{"SWAPDB 0 1", "1 after 9000: <nil>"},
	} {
		t.Run(test.change, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *enginetest.Server, answers chan string) {
				enginetest.Must(t, srv, "ZADD due @now+2s a", "ZADD later @now+5s b")
				waits(srv, answers, "BZPOPBYSCORE 9 1 due -inf @now")
				enginetest.Must(t, srv, test.change)
				next(t, answers, test.want)
			})
		})
	}
}

// TestClaimsWhenIdle checks that clients that wait for pending entries of a group, too, are
// served when an entry has been idle for long enough, whatever happens to it before.
func TestClaimsWhenIdle(t *testing.T) {
	const (
		never    = "1 after 9000: <nil>"
		received = "1 after %d: [{s [[1-0 [f v] %d %d]]}]"
	)
	for _, test := range []struct{ change, want string }{
		{"PING", fmt.Sprintf(received, 2000, 2000, 1)},
		{"XACK s g 1-0", never},
		{"XDEL s 1-0", never},
		{"XCLAIM s g c 0 1-0 IDLE 500", fmt.Sprintf(received, 1500, 2000, 2)},
		{"XCLAIM s g c 0 1-0 IDLE 5000", fmt.Sprintf(received, 0, 5000, 2)},
		{"XCLAIM s h c 0 1-0 FORCE IDLE 5000", fmt.Sprintf(received, 2000, 2000, 1)},
		{"XAUTOCLAIM s g c 0 0", fmt.Sprintf(received, 2000, 2000, 2)},
		{"XGROUP DELCONSUMER s g c", never},
		{"XREADGROUP GROUP g c STREAMS s 0", fmt.Sprintf(received, 2000, 2000, 2)},
		{"XADD s 2-0 f v", "1 after 0: [{s [[2-0 [f v] 0 0]]}]"},
		{"XGROUP DESTROY s g", "1 after 0: NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"},
		{"COPY s2 s REPLACE", fmt.Sprintf(received, 2000, 2000, 1)},
		{"FLUSHALL", "1 after 0: NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"},
	} {
		t.Run(test.change, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *enginetest.Server, answers chan string) {
				enginetest.Must(t, srv, "XADD s 1-0 f v", "XGROUP CREATE s g 0", "XGROUP CREATE s h 0", "XREADGROUP GROUP g c STREAMS s >", "COPY s s2")
				waits(srv, answers, "XREADGROUP GROUP g d BLOCK 9000 CLAIM 2000 STREAMS s >")
				enginetest.Must(t, srv, test.change)
				next(t, answers, test.want)
			})
		})
	}
}

// TestManyWaiters checks that a change tests waiters with equal conditions once, and
// retries only waiters that it serves.
func TestManyWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, srv *enginetest.Server, answers chan string) {
		const n = 2000
		var lines []string
		for range n {
			lines = append(lines, "BZPOPBYSCORE 0 1 due -inf @now")
		}
		waits(srv, answers, lines...)
		tries := func() (tries int) {
			srv.InTurn(func() {
				for _, s := range srv.Clients.Sessions {
					if s.Stall.Blocked != nil {
						tries += s.Stall.Blocked.Tries
					}
				}
			})
			return tries
		}
		enginetest.Must(t, srv, "ZADD due @now+1s a @now+2s b")
		for i := range 20 {
			enginetest.Must(t, srv, fmt.Sprint("ZADD due @now+1h x", i))
		}
		if got := tries(); got != 0 {
			t.Errorf("%d useless retries", got)
		}
		next(t, answers, "1 after 1000: [due [[a 9.46684801e+08]]]")
		next(t, answers, "2 after 2000: [due [[b 9.46684802e+08]]]")
		if got := tries(); got != 0 {
			t.Errorf("%d useless retries", got)
		}
		enginetest.Must(t, srv, "CLIENT KILL TYPE normal")
	})
}

// TestWaitersAreServed blocks clients on random ranges of a key, with random changes and
// time that passes. Whenever the server is idle, no client waits for an existing member.
func TestWaitersAreServed(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T, srv *enginetest.Server, answers chan string) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			bounds := []string{"-inf", "@now-3s", "(@now-1s", "@now", "(@now", "@now+1s", "@nowms", "5", "+inf", "@now-500ms"}
			scores := func() string {
				if rnd.IntN(3) == 0 {
					return []string{"5 5", "7 7", "6 6"}[rnd.IntN(3)]
				}
				return bounds[rnd.IntN(len(bounds))] + " " + bounds[rnd.IntN(len(bounds))]
			}
			score := func() string {
				return []string{"5", fmt.Sprintf("@now%+dms", rnd.IntN(8000)-2000), "@nowms+1s", "7"}[rnd.IntN(4)]
			}
			waiting := 0
			for range 200 {
				switch rnd.IntN(7) {
				case 0, 1:
					line := "BZPOPBYSCORE 0 2 a b " + scores()
					if rnd.IntN(4) == 0 {
						line = "BZCLAIM 0 2 a b " + scores() + " 6"
					}
					waits(srv, answers, line)
					waiting++
				case 2, 3:
					enginetest.Must(t, srv, fmt.Sprintf("ZADD %c %s m%d", 'a'+rune(rnd.IntN(2)), score(), rnd.IntN(10)))
				case 4:
					enginetest.Must(t, srv, fmt.Sprintf("ZREM a m%d", rnd.IntN(10)))
				case 5:
					enginetest.Must(t, srv, []string{"ZUNIONSTORE a 2 a b", "ZRANGESTORE b a 0 3", "COPY a b REPLACE", "ZINCRBY a 2 m1",
						"ZCLAIM b -inf +inf 7", "SWAPDB 0 1", "SWAPDB 1 0", "ZADDEX a PX 1500 MEMBERS 2 6 m3 5 m4", "DEL a"}[rnd.IntN(9)])
				case 6:
					time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
				}
				synctest.Wait()
				for ; len(answers) > 0; waiting-- {
					<-answers
				}
				srv.InTurn(func() {
					n := 0
					for k, q := range srv.Waits.Waiting {
						for _, l := range q.Groups {
							n += l.Waiters.Len()
							if e := srv.Keys.DB(k.Db).Peek([]byte(k.Key)); e != nil && l.Want.In(e.Value(), srv.Turn.Instant) {
								t.Errorf("seed %d: %d wait for what is there: %+v", seed, l.Waiters.Len(), l.Want)
							}
						}
					}
					if n != 2*waiting {
						t.Errorf("seed %d: %d queue entries of %d waiters", seed, n, waiting)
					}
				})
				if t.Failed() {
					break
				}
			}
			enginetest.Must(t, srv, "CLIENT KILL TYPE normal")
			synctest.Wait()
		})
	}
}

// A client that leaves finds its line in the queue without a search, also after others
// have left; those that remain are served in order of arrival.
func TestWideLinesLeave(t *testing.T) {
	bubble(t, func(t *testing.T, srv *enginetest.Server, answers chan string) {
		const n = 200
		var leave []context.CancelFunc
		for i := range n {
			ctx, cancel := context.WithCancel(context.Background())
			leave = append(leave, cancel)
			go func() {
				if reply, err := srv.Do(ctx, "BZPOPBYSCORE", 0, 1, "k", -i, 10); err == nil {
					answers <- fmt.Sprint(i, reply)
				}
			}()
			synctest.Wait() // it blocks
		}
		order := rand.New(rand.NewPCG(1, 2)).Perm(n)
		gone := map[int]bool{}
		for left, i := range order[:n-5] {
			leave[i]()
			gone[i] = true
			synctest.Wait()
			q := srv.Waits.Waiting[engine.WaitKey{Db: 0, Key: "k"}]
			if len(q.Wide) != n-left-1 || len(q.Groups) != n-left-1 {
				t.Fatalf("after %d clients: %d lines, %d groups", left+1, len(q.Wide), len(q.Groups))
			}
			for at, l := range q.Wide {
				if l.WideIndex != at || q.Groups[l.Want] != l {
					t.Fatalf("after %d clients: the line in place %d has place %d", left+1, at, l.WideIndex)
				}
			}
		}
		enginetest.Must(t, srv, "ZADD k 1 a 2 b 3 c 4 d 5 e")
		want := map[string]bool{}
		for i := range n {
			if !gone[i] {
				want[fmt.Sprintf("%d [k [[%c %d]]]", i, 'a'+len(want), 1+len(want))] = true
			}
		}
		for range 5 {
			if got := <-answers; !want[got] {
				t.Errorf("answered %q, want one of %v", got, want)
			}
		}
		silent(t, answers)
		for _, cancel := range leave {
			cancel()
		}
	})
}
