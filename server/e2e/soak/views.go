//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// viewQuery is the live query that the viewers subscribe to.
const viewQuery = "__query@0__:GET view"

// viewTime is how long a viewer that is behind may wait for the next number.
const viewTime = 20 * time.Second

// views are live queries of a number that only grows. A viewer receives numbers that grow, and one
// within viewTime while it is behind the number that a writer knows.
type views struct {
	*crew
	known      int64 // the number that the writer has received last
	seen, anew int64
}

// viewed is what a viewer has received on its connection.
type viewed struct {
	last   int64     // the latest number; -1 before the first
	behind time.Time // since when it is less than what the writer knows; zero if it is not
}

func newViews(st *stage) *views {
	w := &views{crew: &crew{st: st}}
	w.act("view", 1, w.grow)
	for i := range 8 {
		p := st.player("viewer", i)
		p.hello = i%2 == 1
		w.acts = append(w.acts, func() { w.view(p) })
	}
	return w
}

func (w *views) grow(p *player) error {
	p.rest(5)
	r, err := p.do("INCR", "view")
	if err != nil {
		return err
	}
	if n, ok := r.(int64); ok {
		w.mu.Lock()
		w.known = n
		w.mu.Unlock()
	}
	return nil
}

// view views until the stage is over, with a new connection whenever one breaks.
func (w *views) view(p *player) {
	for !w.st.over.Load() {
		err := w.session(p)
		p.close()
		if m := (*mismatch)(nil); errors.As(err, &m) {
			w.st.fail(p, err)
			return
		}
		w.count(&w.anew, 1)
		p.rest(30)
	}
}

func (w *views) session(p *player) error {
	if err := p.connect(); err != nil || p.c == nil {
		return err
	}
	v := viewed{last: -1}
	var problem error
	handle := func(m []any) {
		if len(m) == 3 && text(m[0]) == "message" && problem == nil {
			problem = w.receive(p, text(m[2]), &v)
		}
	}
	p.c.pushed = handle
	if err := p.c.send([]string{"SUBSCRIBE", viewQuery}); err != nil {
		return err
	}
	leave := time.Now().Add(time.Duration(2+p.int(60)) * time.Second)
	for !w.st.over.Load() && time.Now().Before(leave) && problem == nil {
		if p.hello { // the message is a push, before the reply
			if err := p.c.send([]string{"PING"}); err != nil {
				return err
			}
		}
		r, err := p.c.readFor(time.Second)
		if timedOut(err) && !p.hello {
			return w.overdue(p, &v)
		}
		if err != nil {
			return err
		}
		if isError(r) {
			return nil // query-max, for instance
		}
		if handle(list(r)); p.hello {
			time.Sleep(20 * time.Millisecond)
		}
		if problem == nil {
			problem = w.overdue(p, &v)
		}
	}
	if p.one(2) && problem == nil {
		p.c.reset()
	}
	return problem
}

// receive judges a message by the one before it.
func (w *views) receive(p *player, payload string, v *viewed) error {
	n := int64(0)
	if payload != `{"result":null}` {
		number := strings.TrimSuffix(strings.TrimPrefix(payload, `{"result":"`), `"}`)
		var err error
		if n, err = strconv.ParseInt(number, 10, 64); err != nil {
			return p.wrong("a number has become %s", payload)
		}
	}
	if n <= v.last {
		return p.wrong("%d came after %d", n, v.last)
	}
	v.last, v.behind = n, time.Time{}
	w.count(&w.seen, 1)
	return nil
}

// overdue judges whether a number that the writer knows has not come for too long.
func (w *views) overdue(p *player, v *viewed) error {
	w.mu.Lock()
	known := w.known
	w.mu.Unlock()
	switch {
	case v.last < 0 || v.last >= known:
		v.behind = time.Time{}
	case v.behind.IsZero():
		v.behind = time.Now()
	case time.Since(v.behind) > viewTime:
		return p.wrong("%d has come, and no other number for %v: there is %d", v.last, viewTime, known)
	}
	return nil
}

func (w *views) String() string {
	return fmt.Sprintf("views: the number is %d, %d messages, %d connections", w.known, w.seen, w.anew)
}
