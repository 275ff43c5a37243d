//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// player is a client that shares keys with others, so that it cannot know what is
// there, but what must always hold.
type player struct {
	st    *stage
	name  string
	rng   *rand.Rand
	c     *client
	id    string // of its connection
	life  int
	hello bool // RESP3
	ring  ring
	setup func() error // after each connect
}

func (st *stage) player(name string, n int) *player {
	st.numbers++
	return &player{st: st, name: fmt.Sprint(name, " ", n), rng: st.random(1<<16 + st.numbers)}
}

func (p *player) String() string { return p.name }

// A crew is what all workers have: players, who work at the same time.
type crew struct {
	st   *stage
	mu   sync.Mutex // protects what they share
	acts []func()
}

// act adds n players, who repeat a step until the stage is over.
func (w *crew) act(name string, n int, step func(p *player) error) (players []*player) {
	for i := range n {
		p := w.st.player(name, i)
		players = append(players, p)
		w.acts = append(w.acts, func() { p.play(func() error { return step(p) }) })
	}
	return players
}

func (w *crew) run() {
	var wg sync.WaitGroup
	for _, act := range w.acts {
		wg.Go(act)
	}
	wg.Wait()
}

func (w *crew) finish(*client) error { return nil }

// count adds to a number that players share.
func (w *crew) count(n *int64, add int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n += int64(add)
}

// play does steps until the stage is over. A step that returns an error has lost
// the connection, or has found what must not be.
func (p *player) play(step func() error) {
	for p.st.enter() {
		err := p.once(step)
		p.st.leave()
		if err != nil {
			p.st.fail(p, fmt.Errorf("%w; what it has done last:\n%s", err, p.ring.last(8, "")))
			break
		}
		p.st.pace(p.rng)
	}
	p.close()
}

func (p *player) once(step func() error) error {
	if p.c == nil {
		if err := p.connect(); err != nil || p.c == nil {
			return err
		}
	}
	err := step()
	if err == nil {
		return nil
	}
	if m := (*mismatch)(nil); errors.As(err, &m) {
		return err
	}
	if r := (*refusal)(nil); errors.As(err, &r) {
		if refused(r.reply) {
			return nil
		}
		return err
	}
	return p.lost(err)
}

// lost closes a connection that was lost. It is an error if a reply did not come in time.
func (p *player) lost(err error) error {
	if timedOut(err) {
		return fmt.Errorf("no reply within %v: %w", answerTime, err)
	}
	p.ring.add("connection lost: " + err.Error())
	p.st.stats.lost.Add(1)
	p.close()
	return nil
}

func (p *player) close() {
	if p.c != nil {
		p.c.close()
		p.c = nil
	}
}

// connect connects. Commands sent over an earlier connection are complete by then,
// or never run.
func (p *player) connect() error {
	c, life, err := p.st.dial()
	if err != nil {
		return err
	}
	if p.id != "" && life == p.life {
		if _, err := c.do("CLIENT", "KILL", "ID", p.id); err != nil {
			c.close()
			return nil
		}
	}
	greeting := [][]string{words("CLIENT", "ID")}
	if p.hello {
		greeting = append(greeting, words("HELLO", 3))
	}
	r, err := c.ask(greeting...)
	if err != nil {
		c.close()
		return nil
	}
	p.c, p.id, p.life = c, text(r[0]), life
	if p.setup != nil {
		if err := p.setup(); err != nil {
			p.close()
		}
	}
	return nil
}

// do sends a command. A reply that is an error is an error.
func (p *player) do(args ...any) (any, error) {
	r, err := p.all(words(args...))
	if err != nil {
		return nil, err
	}
	return r[0], nil
}

// all sends commands at once. The first error that is replied is the error.
func (p *player) all(commands ...[]string) ([]any, error) {
	for _, args := range commands {
		p.ring.add(quoted(args))
	}
	p.st.stats.commands.Add(int64(len(commands)))
	return p.c.ask(commands...)
}

// exec runs commands as a transaction. The replies are nil if a watched key has
// changed.
func (p *player) exec(commands ...[]string) ([]any, error) {
	r, err := p.all(slices.Concat([][]string{{"MULTI"}}, commands, [][]string{{"EXEC"}})...)
	if r == nil {
		return nil, err
	}
	if e, bad := last(r).(errorReply); bad {
		return nil, &refusal{[]string{"EXEC"}, e}
	}
	l := list(last(r))
	for i, r := range l {
		if e, bad := r.(errorReply); bad {
			return nil, &refusal{commands[i], e}
		}
	}
	return l, nil
}

func last(l []any) any { return l[len(l)-1] }

func (p *player) int(n int) int  { return p.rng.IntN(n) }
func (p *player) one(n int) bool { return p.rng.IntN(n) == 0 }

// rest sleeps for less than n milliseconds.
func (p *player) rest(n int) { time.Sleep(time.Duration(p.int(n)) * time.Millisecond) }

// wrong returns a mismatch.
func (p *player) wrong(format string, args ...any) error {
	return &mismatch{p.name, fmt.Sprintf(format, args...)}
}

// notDone reports whether an error is that nothing was done.
func notDone(err error) bool {
	r := (*refusal)(nil)
	return errors.As(err, &r) && refused(r.reply)
}

// losses are the times at which the server was killed so that it may have lost
// what was acknowledged.
func (st *stage) lossy(at time.Time) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, l := range st.lives {
		if l.killed && !l.always && at.After(l.ended.Add(-window)) && at.Before(l.ended.Add(time.Second)) {
			return true
		}
	}
	return false
}

// ring has the last that a worker has done.
type ring struct {
	lines [400]string
	n     int
}

func (r *ring) add(line string) {
	r.lines[r.n%len(r.lines)] = time.Now().Format("15:04:05.000000 ") + line
	r.n++
}

// last returns the last n lines, and of those before them the lines that have a text, and
// those that are no commands.
func (r *ring) last(n int, about string) string {
	var b strings.Builder
	for i := max(0, r.n-len(r.lines)); i < r.n; i++ {
		line := r.lines[i%len(r.lines)]
		if r.n-i <= n || about != "" && strings.Contains(line, about) || !strings.Contains(line, `"`) {
			fmt.Fprintln(&b, "   ", line)
		}
	}
	return b.String()
}

// quoted writes a command for people.
func quoted(args []string) string {
	return strings.Trim(fmt.Sprintf("%.40q", args[:min(len(args), 24)]), "[]")
}
