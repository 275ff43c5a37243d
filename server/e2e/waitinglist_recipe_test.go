package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// checkIn draws a ticket for a user without one, and keeps the position for the grace
// period. A user with a rank below the capacity of the room is inside.
func checkIn(ctx context.Context, rdb *redis.Client, room, user string, grace time.Duration) (rank int64, err error) {
	var place *redis.IntCmd
	_, err = rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "ZADDEX", room, "PX", grace.Milliseconds(), "*", user)
		place = p.ZRank(ctx, room, user)
		return nil
	})
	return place.Val(), err
}

// A line tells the users of a room their ranks, over one connection.
type line struct {
	room  string
	sub   *redis.PubSub
	users sync.Map // by channel
}

// follow makes run tell a user's rank, and again whenever it changes.
func (l *line) follow(ctx context.Context, user string) error {
	channel := "__query@0__:ZRANK " + quote(l.room) + " " + quote(user)
	l.users.Store(channel, user)
	return l.sub.Subscribe(ctx, channel)
}

// run calls tell with each message, until sub is closed. Without a place the rank is nil.
func (l *line) run(tell func(user string, rank *int)) error {
	for m := range l.sub.Channel(redis.WithChannelSize(10000)) {
		var reply struct{ Result *int }
		if err := json.Unmarshal([]byte(m.Payload), &reply); err != nil {
			return err
		}
		if user, followed := l.users.Load(m.Channel); followed {
			tell(user.(string), reply.Result)
		}
	}
	return nil
}

// notified has the ranks that a tier has sent to the users of a room.
type notified struct {
	mu    sync.Mutex
	ranks map[string][]rankAt
}

type rankAt struct {
	rank int
	at   time.Time
}

// of returns the ranks that were sent to a user.
func (l *notified) of(user string) []rankAt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ranks[user])
}

// startNotifying starts a tier that tells users their ranks until the test ends.
func startNotifying(t *testing.T, rdb *redis.Client, room string, users ...string) *notified {
	l := &notified{ranks: map[string][]rankAt{}}
	sub := rdb.Subscribe(context.Background())
	tier := &line{room: room, sub: sub}
	for _, user := range users {
		if err := tier.follow(context.Background(), user); err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		err := tier.run(func(user string, rank *int) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if rank != nil {
				l.ranks[user] = append(l.ranks[user], rankAt{*rank, time.Now()})
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		sub.Close()
		running.Wait()
	})
	return l
}

// TestRecipeWaitingListInTurn checks users that check in one after the other.
func TestRecipeWaitingListInTurn(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	const room, grace = "club", time.Second
	rdb := dial()
	l := startNotifying(t, dial(), room, "ann", "ben", "cid", "dan", "eve")
	const channel = `__query@0__:ZRANK "club" "eve"`
	wait.Until(t, "the tier subscribes", func() bool { return must[map[string]int64](t)(rdb.PubSubNumSub(ctx, channel).Result())[channel] > 0 })
	seen := map[string]time.Time{} // when a user's last check-in was sent
	var away []string              // users whose last check-in is so long ago that the place may be lost
	arrive := func(user string) int64 {
		t.Helper()
		sent := time.Now()
		rank := must[int64](t)(checkIn(ctx, rdb, room, user, grace))
		if last, known := seen[user]; known && time.Since(last) > grace-5*time.Millisecond {
			away = append(away, user)
		}
		seen[user] = sent
		return rank
	}
	expect := func(user string, rank int64) {
		t.Helper()
		if got := arrive(user); got != rank && len(away) == 0 {
			t.Fatalf("%s has rank %d, want %d", user, got, rank)
		}
	}
	hasRanks := func(user string, ranks ...int) bool {
		return slices.EqualFunc(l.of(user), ranks, func(r rankAt, rank int) bool { return r.rank == rank })
	}
	// expectRanks waits until a user is notified of ranks. Meanwhile the staying users
	// check in and keep their places.
	expectRanks := func(staying []string, user string, ranks ...int) {
		t.Helper()
		if !wait.Holds(func() bool {
			if len(away) > 0 || hasRanks(user, ranks...) {
				return true
			}
			for _, user := range staying {
				arrive(user)
			}
			return false
		}) {
			t.Fatalf("timeout: %s was notified of %v, want %v", user, l.of(user), ranks)
		}
	}
	var staying []string
	for rank, user := range []string{"ann", "ben", "cid", "dan", "eve"} {
		expect(user, int64(rank))
		staying = append(staying, user)
		expectRanks(staying, user, rank)
	}
	expect("ann", 0) // a second check-in keeps the place
	expect("cid", 2)
	must[int64](t)(rdb.ZRem(ctx, room, "ben").Result()) // leaves
	staying = []string{"ann", "cid", "dan", "eve"}
	expectRanks(staying, "cid", 2, 1)
	expectRanks(staying, "eve", 4, 3)
	staying = []string{"ann", "dan", "eve"} // cid does not check in any more
	expectRanks(staying, "dan", 3, 2, 1)
	expectRanks(staying, "eve", 4, 3, 2)
	expectRanks(staying, "ann", 0)
	expect("dan", 1)
	delete(seen, "cid")
	expect("cid", 3) // at the end of the queue again
	if len(away) > 0 {
		tooSlow(t, fmt.Sprint(away, " may have lost their places"))
	}
}

// A checkin is a check-in of a user and its result.
type checkin struct {
	sent, got time.Time
	rank      int64
}

// A stay is a period in which a user keeps a place.
type stay struct {
	user     string
	checkins []checkin
	fresh    bool      // the user certainly had no place before
	left     time.Time // the time before leaving, or zero
}

// until returns the time until which the user certainly has the place.
func (s *stay) until(grace time.Duration) time.Time {
	end := s.checkins[len(s.checkins)-1].sent.Add(grace - 2*time.Millisecond)
	if !s.left.IsZero() && s.left.Before(end) {
		return s.left
	}
	return end
}

// TestRecipeWaitingListCrowd checks many users and a room with a capacity of 30: some
// leave, some crash, some are away for a moment. It judges the ranks that they have
// received by their own clocks, without the server.
func TestRecipeWaitingListCrowd(t *testing.T) {
	dial := recipe(t)
	ctx := context.Background()
	const room, capacity = "club", 30
	users := of(150, 500)
	grace := time.Duration(of(300, 1500)) * time.Millisecond
	end := time.Now().Add(time.Duration(of(1500, 30_000)) * time.Millisecond)
	names := []string{"last"}
	for n := range users {
		names = append(names, fmt.Sprintf("user%03d", n))
	}
	l := startNotifying(t, dial(), room, names...)

	stays := make([][]*stay, users)
	meters := make([]meter, users)
	checkins, leaves := make([]int, users), make([]int, users)
	var wg sync.WaitGroup
	for n := range users {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(n)))
			user := names[n+1]
			rdb := dial(meters[n].on)
			if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error { return p.Ping(ctx).Err() }); err != nil {
				t.Error(err)
			}
			rdb.Ping(ctx) // go-redis uses a separate connection for pipelines
			meters[n].take()
			pause := func(lo, hi time.Duration) { wait.Pace(lo + time.Duration(r.Int64N(int64(hi-lo)))) }
			pause(0, grace)
			var s *stay
			for time.Now().Before(end) {
				c := checkin{sent: time.Now()}
				var err error
				c.rank, err = checkIn(ctx, rdb, room, user, grace)
				c.got = time.Now()
				if err != nil {
					t.Error(err)
					return
				}
				checkins[n]++
				if s != nil {
					last := s.checkins[len(s.checkins)-1]
					switch {
					case !s.left.IsZero(), c.sent.After(last.got.Add(grace + 5*time.Millisecond)):
						s = nil // the place was lost
					case c.got.After(last.sent.Add(grace - 2*time.Millisecond)):
						s = &stay{user: user} // the place may be lost or not: the rank proves nothing
						stays[n] = append(stays[n], s)
					}
				}
				if s == nil {
					s = &stay{user: user, fresh: true}
					stays[n] = append(stays[n], s)
				}
				s.checkins = append(s.checkins, c)

				switch what := r.IntN(100); {
				case c.rank < capacity && what < 30:
					s.left = time.Now()
					leaves[n]++
					if err := rdb.ZRem(ctx, room, user).Err(); err != nil {
						t.Error(err)
					}
					pause(grace/4, grace)
				case what < 35: // a crash
					pause(grace*5/4, 2*grace)
				case what < 45: // a reload of the page
					pause(grace/2, grace*7/10)
				default:
					pause(grace/8, grace/4)
				}
			}
		})
	}
	wg.Wait()
	must[int64](t)(checkIn(ctx, dial(), room, "last", grace))
	wait.Until(t, "all have been notified", func() bool { return len(l.of("last")) > 0 }) // of later ranks than the others

	var all []*stay
	total, left, trips, returned := 0, 0, 0, 0
	for n := range users {
		all = append(all, stays[n]...)
		total += checkins[n]
		left += leaves[n]
		trips += meters[n].take().trips
	}
	// A user with a place keeps it, and only moves up.
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	admitted := 0
	for _, s := range all {
		inside := -1
		for i, c := range s.checkins {
			if i > 0 && c.rank > s.checkins[i-1].rank {
				t.Fatalf("%s had rank %d, and then %d, want no increase", s.user, s.checkins[i-1].rank, c.rank)
			}
			if i > 0 && c.sent.Sub(s.checkins[i-1].got) > grace/2 {
				returned++
			}
			if c.rank < capacity && inside < 0 {
				inside = i
				admitted++
				edges = append(edges, edge{c.got, 1}, edge{s.until(grace), -1})
			}
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.step - b.step
	})
	count, most := 0, 0
	for _, e := range edges {
		count += e.step
		most = max(most, count)
	}
	if most > capacity {
		t.Errorf("%d users were in the room at once, want at most %d", most, capacity)
	}
	// First come, first served: of two users with a place, the one that came first
	// has the lower rank.
	compared := 0
	for _, later := range all {
		if !later.fresh {
			continue
		}
		for _, earlier := range all {
			if !earlier.checkins[0].got.Before(later.checkins[0].sent) {
				continue
			}
			i := 0
			for _, c := range earlier.checkins {
				for i < len(later.checkins) && later.checkins[i].got.Before(c.sent) {
					i++
				}
				if i == 0 {
					continue
				}
				compared++
				if seen := later.checkins[i-1]; seen.rank <= c.rank {
					t.Fatalf("%s came first and has rank %d, after %s had %d", earlier.user, c.rank, later.user, seen.rank)
				}
			}
		}
	}
	// Users need not poll: a notification has each rank that a check-in returned, or a later one,
	// before or soon after it. One that the user has kept for a moment only may be left out.
	const moment = time.Second
	var delay []time.Duration
	for _, s := range all {
		ranks := l.of(s.user)
		for i, c := range s.checkins {
			gone := i == len(s.checkins)-1 && !s.left.IsZero() // left at once, perhaps before the notification
			if i == 0 || c.rank == s.checkins[i-1].rank || gone {
				continue
			}
			j := slices.IndexFunc(ranks, func(r rankAt) bool { return r.rank <= int(c.rank) && r.at.After(s.checkins[i-1].sent) })
			if j < 0 && s.until(grace).Sub(c.got) < moment {
				continue
			}
			if j < 0 {
				t.Errorf("%s has rank %d, without a notification", s.user, c.rank)
				continue
			}
			delay = append(delay, max(0, ranks[j].at.Sub(c.got)))
		}
	}
	for _, s := range all {
		for i := 1; i < len(s.checkins); i++ {
			last := -1
			for _, r := range l.of(s.user) {
				if r.at.After(s.checkins[0].got.Add(50*time.Millisecond)) && r.at.Before(s.checkins[i].sent) {
					if last >= 0 && r.rank >= last {
						t.Fatalf("%s was notified of rank %d after %d", s.user, r.rank, last)
					}
					last = r.rank
				}
			}
		}
	}
	if trips != total+left {
		t.Errorf("%d round trips, want one for each of %d check-ins and %d leaves", trips, total, left)
	}
	t.Logf("%d users, %d check-ins, %d leaves, %d round trips, %d stays, %d of them inside, at most %d at the same time; "+
		"%d came back within the grace; %d pairs compared; delays of notifications after check-ins: %s",
		users, total, left, trips, len(all), admitted, most, returned, compared, quantiles(delay))
	if most < capacity/2 || returned == 0 || compared == 0 || len(delay) == 0 {
		tooSlow(t, "too little load for the test")
	}
	rdb := dial()
	ranNone(t, rdb, "zrange", "zrangebyscore", "zscan", "hset", "zcard")
	wait.Until(t, "all places have expired", func() bool { return must[int64](t)(rdb.DBSize(ctx).Result()) == 0 })
}
