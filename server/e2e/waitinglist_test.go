package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// waitingList implements "Using Redis sorted sets to build a scalable real-time web
// waiting list": a room with a capacity, and a queue of users that wait for it.
type waitingList struct {
	rdb  *redis.Client
	now  func() time.Time
	room string
	max  int64
	// pipeline sends several commands at once. The document uses a pipeline without
	// MULTI, between whose commands other clients may write; with MULTI and EXEC
	// the decisions are exact.
	pipeline func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

const (
	dropoutTime = 15 * time.Second // since the last check-in
	keyTTL      = time.Hour        // "we go ahead and set the expiration time for that data structure"
)

func (l *waitingList) participants() string { return l.room + ":participants" }
func (l *waitingList) waiting() string      { return l.room + ":waiting" }
func (l *waitingList) checkins() string     { return l.room + ":checkin" }

// connect moves a user into the room: "When a user successfully enters a room".
func (l *waitingList) connect(ctx context.Context, user string) error {
	_, err := l.pipeline(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, l.participants(), user, "data of "+user)
		p.Expire(ctx, l.participants(), keyTTL)
		p.ZRem(ctx, l.waiting(), user)
		return nil
	})
	return err
}

// disconnect moves a user from the room to the queue: "remove the user from participant hash and then immediately add
// the user to the waiting set at the front of the line (i.e. with score 0)".
func (l *waitingList) disconnect(ctx context.Context, user string) error {
	_, err := l.pipeline(ctx, func(p redis.Pipeliner) error {
		p.HDel(ctx, l.participants(), user)
		l.ticket(ctx, p, user)
		return nil
	})
	return err
}

// ticket puts a user at the front of the queue.
func (l *waitingList) ticket(ctx context.Context, p redis.Pipeliner, user string) {
	p.ZAdd(ctx, l.waiting(), redis.Z{Score: 0, Member: user})
	p.Expire(ctx, l.waiting(), keyTTL)
	l.checkin(ctx, p, user)
}

func (l *waitingList) checkin(ctx context.Context, p redis.Pipeliner, user string) {
	p.ZAdd(ctx, l.checkins(), redis.Z{Score: score(l.now()), Member: user})
	p.Expire(ctx, l.checkins(), keyTTL)
}

// check implements "Whenever a user attempts to enter a room or a user on the waiting
// list updates their waiting status". It returns whether the user may connect,
// and if not, how many users are ahead in the queue.
func (l *waitingList) check(ctx context.Context, user string) (ready bool, rank int64, err error) {
	var inside, waiting, place *redis.IntCmd
	var participant *redis.StringCmd
	var dropouts *redis.StringSliceCmd
	_, err = l.pipeline(ctx, func(p redis.Pipeliner) error {
		inside = p.HLen(ctx, l.participants())
		waiting = p.ZCard(ctx, l.waiting())
		place = p.ZRank(ctx, l.waiting(), user)
		participant = p.HGet(ctx, l.participants(), user)
		dropouts = p.ZRangeByScore(ctx, l.checkins(), &redis.ZRangeBy{
			Min: "0", Max: strconv.FormatFloat(score(l.now().Add(-dropoutTime)), 'f', -1, 64)})
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, 0, err
	}
	if gone := dropouts.Val(); len(gone) > 0 {
		members := make([]any, len(gone))
		for i, g := range gone {
			members[i] = g
		}
		_, err = l.pipeline(ctx, func(p redis.Pipeliner) error {
			p.ZRem(ctx, l.checkins(), members...)
			p.ZRem(ctx, l.waiting(), members...)
			inside = p.HLen(ctx, l.participants()) // as it is when the others are counted
			waiting = p.ZCard(ctx, l.waiting())
			place = p.ZRank(ctx, l.waiting(), user)
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return false, 0, err
		}
	}
	queued := place.Err() == nil
	if participant.Err() == nil || inside.Val()+waiting.Val() < l.max {
		return true, 0, nil
	}
	if queued && inside.Val()+place.Val() < l.max {
		_, err = l.pipeline(ctx, func(p redis.Pipeliner) error {
			l.ticket(ctx, p, user)
			return nil
		})
		return true, 0, err
	}
	if !queued {
		last, err := l.rdb.ZRangeWithScores(ctx, l.waiting(), -1, -1).Result()
		if err != nil {
			return false, 0, err
		}
		next := 1.0
		if len(last) > 0 {
			next = last[0].Score + 1
		}
		_, err = l.pipeline(ctx, func(p redis.Pipeliner) error {
			p.ZAdd(ctx, l.waiting(), redis.Z{Score: next, Member: user})
			p.Expire(ctx, l.waiting(), keyTTL)
			l.checkin(ctx, p, user)
			place = p.ZRank(ctx, l.waiting(), user)
			return nil
		})
		return false, place.Val(), err
	}
	_, err = l.pipeline(ctx, func(p redis.Pipeliner) error {
		l.checkin(ctx, p, user)
		return nil
	})
	return false, place.Val(), err
}

// TestWaitingListInTurn checks users that come one after the other, with the pipelines of
// the document.
func TestWaitingListInTurn(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	clock := newClock()
	rdb := dial()
	l := &waitingList{rdb, clock.Now, "lobby", 2, rdb.Pipelined}
	expect := func(user string, ready bool, rank int64) {
		t.Helper()
		gotReady, gotRank, err := l.check(ctx, user)
		if err != nil || gotReady != ready || gotRank != rank {
			t.Fatalf("%s: ready %v, rank %d (%v); want %v, %d", user, gotReady, gotRank, err, ready, rank)
		}
	}
	enter := func(user string) {
		t.Helper()
		expect(user, true, 0)
		if err := l.connect(ctx, user); err != nil {
			t.Fatal(err)
		}
	}
	leave := func(user string) {
		t.Helper()
		if err := l.disconnect(ctx, user); err != nil {
			t.Fatal(err)
		}
	}
	enter("ann")
	enter("ben")
	expect("ann", true, 0) // a participant
	expect("cid", false, 0)
	expect("dan", false, 1)
	expect("eve", false, 2)

	leave("ann") // a page reload: the place is kept for a short time
	expect("cid", false, 1)
	enter("ann")
	expect("cid", false, 0)

	leave("ann") // and does not return
	clock.Advance(10 * time.Second)
	expect("cid", false, 1)
	expect("dan", false, 2) // eve does not check in any more
	clock.Advance(5 * time.Second)
	enter("cid") // ann and eve have dropped out
	expect("dan", false, 0)
	if got := must[[]string](t)(rdb.ZRange(ctx, l.waiting(), 0, -1).Result()); !slices.Equal(got, []string{"dan"}) {
		t.Errorf("waiting: %q", got)
	}
	if got := must[[]string](t)(rdb.HVals(ctx, l.participants()).Result()); len(got) != 2 {
		t.Errorf("inside: %q", got)
	}
	if ttl := must[time.Duration](t)(rdb.TTL(ctx, l.participants()).Result()); ttl <= keyTTL-time.Minute {
		t.Errorf("the participants expire in %v", ttl)
	}
	expect("eve", false, 1) // at the end of the queue again
}

// TestWaitingListCrowd checks 200 clients and a room with a capacity of 30. Clients in
// the room leave one by one, some only for a moment; the waiting clients check in
// concurrently.
func TestWaitingListCrowd(t *testing.T) {
	parallel(t)
	dial := connect(t)
	ctx := context.Background()
	const clients, capacity = 200, 30
	clock := newClock()
	lists := make([]*waitingList, clients)
	for i := range lists {
		rdb := dial(func(o *redis.Options) { o.PoolSize = 1 })
		lists[i] = &waitingList{rdb, clock.Now, "lobby", capacity, rdb.TxPipelined}
	}
	name := func(i int) string { return fmt.Sprintf("user%03d", i) }

	// They arrive in order.
	var inside, queue []int
	for i, l := range lists {
		ready, rank, err := l.check(ctx, name(i))
		if err != nil {
			t.Fatal(err)
		}
		if want := i < capacity; ready != want || !ready && rank != int64(i-capacity) {
			t.Fatalf("client %d: ready %v, rank %d", i, ready, rank)
		}
		if !ready {
			queue = append(queue, i)
			continue
		}
		if err := l.connect(ctx, name(i)); err != nil {
			t.Fatal(err)
		}
		inside = append(inside, i)
	}

	// poll lets all waiting clients check in concurrently. Clients that are ready connect.
	poll := func() (admitted []int, ranks map[int]int64) {
		t.Helper()
		var mu sync.Mutex
		var wg sync.WaitGroup
		ranks = map[int]int64{}
		for _, i := range queue {
			wg.Go(func() {
				ready, rank, err := lists[i].check(ctx, name(i))
				if err == nil && ready {
					err = lists[i].connect(ctx, name(i))
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				} else if ready {
					admitted = append(admitted, i)
				} else {
					ranks[i] = rank
				}
			})
		}
		wg.Wait()
		n, err := lists[0].rdb.HLen(ctx, lists[0].participants()).Result()
		if err != nil || n > capacity {
			t.Fatalf("%d clients are in the room, want at most %d (%v)", n, capacity, err)
		}
		return admitted, ranks
	}
	for round := range 12 {
		leaver := inside[0]
		if err := lists[leaver].disconnect(ctx, name(leaver)); err != nil {
			t.Fatal(err)
		}
		admitted, _ := poll()
		if len(admitted) > 0 {
			t.Fatalf("round %d: %v entered while the place was reserved", round, admitted)
		}
		if round%3 == 0 { // for a moment only
			ready, _, err := lists[leaver].check(ctx, name(leaver))
			if err != nil || !ready {
				t.Fatalf("round %d: a client that was away for a moment has to wait (%v)", round, err)
			}
			if err := lists[leaver].connect(ctx, name(leaver)); err != nil {
				t.Fatal(err)
			}
			inside = append(inside[1:], leaver)
			continue
		}
		inside = inside[1:]
		for len(admitted) == 0 {
			clock.Advance(dropoutTime / 3)
			admitted, _ = poll()
		}
		if len(admitted) != 1 || admitted[0] != queue[0] {
			t.Fatalf("round %d: %v entered, want %d", round, admitted, queue[0])
		}
		inside, queue = append(inside, queue[0]), queue[1:]
		_, ranks := poll()
		for place, i := range queue {
			if ranks[i] != int64(place) {
				t.Errorf("round %d: client %d has rank %d, want %d", round, i, ranks[i], place)
			}
		}
	}
}
