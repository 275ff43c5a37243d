package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/zset"
)

// tick is the time between two steps.
const tick = 100 * time.Millisecond

// Run changes the data of a server until ctx ends or a command fails. Random numbers come from
// rng, which no other goroutine may use meanwhile.
func Run(ctx context.Context, srv *server.Server, rng *rand.Rand) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for worker := range 2 {
		rng := rand.New(rand.NewPCG(rng.Uint64(), uint64(worker)))
		go func() { cancel(publish(ctx, srv, rng)) }()
	}
	a := &application{ctx: ctx, srv: srv, rng: rng}
	err := a.begin()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-ticker.C:
			err = a.step()
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause // why a worker has ended, or ctx
	}
	return err
}

// application is the clients of the server, except the workers.
type application struct {
	ctx      context.Context
	srv      *server.Server
	rng      *rand.Rand
	news     int // events that have been published
	arrivals int // users who have come to the club
	guests   []guest
}

// do runs a command whose reply does not matter.
func (a *application) do(args ...any) error {
	_, err := a.srv.Do(a.ctx, args...)
	return err
}

// guest is a user in the club or in its line.
type guest struct {
	name    string
	checkIn int // steps until the next one
	stay    int // steps until the user leaves, or falls silent
}

func people() []string {
	return strings.Fields("ann ben cid dee eve fay gus hal ida jon kim leo mia ned ona pam")
}

func photos() []string { return strings.Fields("sunset harbour cat forest bridge market") }

// headline returns a sentence.
func headline(rng *rand.Rand) string {
	return pick(rng, []string{"A bridge", "The night train", "The old harbour", "A school", "The museum", "The home team", "A choir", "The library"}) + " " +
		pick(rng, []string{"opens again", "wins by a point", "moves to the river", "is full for the first time", "changes its name", "looks for volunteers"})
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// begin fills the keys that the steps do not create.
func (a *application) begin() error {
	for i, name := range people() {
		id := fmt.Sprint("user:", i+1)
		if err := a.do("HSET", id, "name", name, "visits", 0, "since", 2019+i%6); err != nil {
			return err
		}
		if err := a.do("SADD", "tags:"+pick(a.rng, photos()), name, pick(a.rng, people())); err != nil {
			return err
		}
	}
	return a.do("XGROUP", "CREATE", "orders", "billing", "$", "MKSTREAM")
}

// step is a tenth of a second of the application.
func (a *application) step() error {
	for _, one := range []struct {
		chance float64 // of each step
		act    func() error
	}{
		{0.15, a.event}, {0.9, a.hit}, {0.5, a.like}, {1, a.club}, {0.8, a.score}, {0.3, a.visit}, {0.2, a.order}, {0.1, a.bill}, {0.1, a.chat},
	} {
		if a.rng.Float64() >= one.chance {
			continue
		}
		if err := one.act(); err != nil {
			return err
		}
	}
	return nil
}

// event publishes a live event.
func (a *application) event() error {
	a.news++
	text := fmt.Sprintf(`{"id":%d,"title":"%s"}`, a.news, headline(a.rng))
	return a.do("ZADDEX", pick(a.rng, []string{"live:home:news", "live:sport:news"}), "EX", 15+a.rng.IntN(46), "@now", text)
}

// hit counts a view of a page in a box of five seconds.
func (a *application) hit() error {
	const width, keep = 5 * time.Second, 24
	start := time.Now().Truncate(width)
	return a.do("ZADDEX", "hits:"+pick(a.rng, []string{"/front", "/front", "/front", "/shop", "/help"}), "INCR",
		"PXAT", start.Add(keep*width).UnixMilli()-1, 1+a.rng.IntN(3), start.UTC().Format("15:04:05"))
}

// like folds a like into those of its photo, which is due eight seconds after the first.
func (a *application) like() error {
	photo := pick(a.rng, photos())
	if err := a.do("ZADD", "due", "NX", "@now+8s", photo); err != nil {
		return err
	}
	if err := a.do("ZINCRBY", "due", 0.000001, photo); err != nil {
		return err
	}
	return a.do("ZADD", "details:"+photo, "@now", pick(a.rng, people()))
}

// publish is a worker: it claims photos that are due, publishes their likes, and acknowledges.
func publish(ctx context.Context, srv *server.Server, rng *rand.Rand) error {
	const lease = 6 * time.Second
	for {
		claim, err := server.Scan[struct {
			Key string
			Due []zset.Element
		}](srv.Do(ctx, "BZCLAIM", 0, 1, "due", "-inf", "@now", "@now+"+lease.String(), "LEASE"))
		if err != nil {
			return err
		}
		photo, end := claim.Due[0].Member, claim.Due[0].Score
		begin := fmt.Sprintf("%.6f", end-lease.Seconds())
		likes, err := server.Scan[[]string](srv.Do(ctx, "ZRANGE", "details:"+photo, "-inf", begin, "BYSCORE"))
		if err != nil {
			return err
		}
		select {
		case <-time.After(time.Duration(500+rng.IntN(2500)) * time.Millisecond): // the work
		case <-ctx.Done():
			return ctx.Err()
		}
		if rng.IntN(8) == 0 {
			continue // this worker ends in the middle: the photo is due again when the lease ends
		}
		err = srv.Tx(ctx, func(tx *server.Tx) error {
			for _, command := range [][]any{
				{"ZREMIFEQ", "due", end, photo},
				{"ZADD", "due", "XX", "LT", "@now+8s", photo},
				{"ZREMRANGEBYSCORE", "details:" + photo, "-inf", begin},
				{"LPUSH", "notices", fmt.Sprintf("%s: liked by %s", photo, strings.Join(likes, ", "))},
				{"LTRIM", "notices", 0, 49},
			} {
				if _, err := tx.Do(command...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// club lets users come, check in and leave. Some leave without a word, and their places expire.
func (a *application) club() error {
	const grace = 8 // seconds
	if a.rng.Float64() < 0.12 {
		a.arrivals++
		a.guests = append(a.guests, guest{name: fmt.Sprintf("%s-%d", pick(a.rng, people()), a.arrivals), stay: 100 + a.rng.IntN(600)})
	}
	rest := a.guests[:0]
	for _, g := range a.guests {
		g.checkIn--
		g.stay--
		var err error
		switch {
		case g.stay <= 0 && a.rng.IntN(3) > 0:
			err = a.do("ZREM", "club", g.name)
		case g.stay > 0 && g.checkIn <= 0:
			g.checkIn = 30
			err = a.do("ZADDEX", "club", "EX", grace, "*", g.name)
		}
		if err != nil {
			return err
		}
		if g.stay > 0 {
			rest = append(rest, g)
		}
	}
	a.guests = rest
	return nil
}

// score changes the leaderboard.
func (a *application) score() error {
	return a.do("ZINCRBY", "board", a.rng.IntN(25), pick(a.rng, people()))
}

// visit opens a page as a user.
func (a *application) visit() error {
	n := 1 + a.rng.IntN(len(people()))
	for _, command := range [][]any{
		{"ZADDEX", "visitors", "EX", 5 + a.rng.IntN(20), 1, people()[n-1]},
		{"HINCRBY", fmt.Sprint("user:", n), "visits", 1},
		{"SET", fmt.Sprint("session:", n), fmt.Sprintf("%016x", a.rng.Uint64()), "EX", 10 + a.rng.IntN(50)},
		{"RPUSH", fmt.Sprint("cart:", n), pick(a.rng, photos())},
		{"LTRIM", fmt.Sprint("cart:", n), -8, -1},
		{"EXPIRE", fmt.Sprint("cart:", n), 60},
	} {
		if err := a.do(command...); err != nil {
			return err
		}
	}
	return nil
}

// order adds an entry to the stream, which keeps the last 300.
func (a *application) order() error {
	return a.do("XADD", "orders", "MAXLEN", 300, "*", "photo", pick(a.rng, photos()), "by", pick(a.rng, people()), "copies", 1+a.rng.IntN(5))
}

// bill reads entries of the stream for the group, and acknowledges most of them. It claims those that
// have waited for 20 seconds.
func (a *application) bill() error {
	type entry struct {
		ID     string
		Fields []string
	}
	read, err := server.Scan[map[string][]entry](a.srv.Do(a.ctx, "XREADGROUP", "GROUP", "billing", "till-1", "COUNT", 1+a.rng.IntN(5), "STREAMS", "orders", ">"))
	if err != nil {
		return err
	}
	late, err := server.Scan[struct {
		Cursor       string
		IDs, Deleted []string
	}](a.srv.Do(a.ctx, "XAUTOCLAIM", "orders", "billing", "till-2", 20_000, "0-0", "JUSTID"))
	if err != nil {
		return err
	}
	done := late.IDs
	for _, e := range read["orders"] {
		if a.rng.IntN(10) > 0 {
			done = append(done, e.ID)
		}
	}
	if len(done) == 0 {
		return nil
	}
	return a.do("XACK", "orders", "billing", done)
}

// chat publishes a message.
func (a *application) chat() error {
	return a.do("PUBLISH", "chat", pick(a.rng, people())+": "+headline(a.rng))
}
