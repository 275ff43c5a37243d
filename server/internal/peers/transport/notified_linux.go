package transport

import (
	"math"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// The clients of a loop that have pending work without a turn of their own: output from other
// sessions, a reply that has waited, an end.

// waited returns an upper bound of how long output for other sessions has waited
// for flushNotified.
func (l *loop) waited() time.Duration {
	d := l.t.engine.Clock().Sub(l.since)
	if d < 0 {
		return math.MaxInt64 // the clock was set back
	}
	return d
}

// markNotified adds c to the clients that flushNotified handles.
func (l *loop) markNotified(c *polled) {
	if !c.inNotified {
		c.inNotified = true
		l.notified = append(l.notified, c)
	}
}

// flushNotified handles the clients that have output from other sessions, may continue, or
// are to end, and writes that output.
func (l *loop) flushNotified() {
	l.t.engine.OutOfTurn(l.takeNotified)
	told := l.notified
	l.notified = nil
	for i, c := range told {
		told[i] = nil
		if !c.inLoop() {
			continue
		}
		if out := c.out; out != nil {
			c.out = nil
			switch {
			case !c.write(out):
			case c.spare == nil && cap(out) <= keepOut:
				c.spare = out[:0] // keep a small buffer: subscribers tend to receive again
			default:
				c.sess.Recycle(out)
			}
		}
		l.proceed(c)
	}
	if l.notified == nil {
		l.notified = told[:0]
	}
}

// takeNotified takes the output of the clients that flushNotified handles. It is called with the
// engine's lock held.
func (l *loop) takeNotified() {
	for _, c := range l.notified {
		c.inNotified = false
		if !c.inLoop() {
			continue
		}
		out, killed, closed := c.sess.TakeLocked(c.spare)
		if out != nil {
			c.out, c.spare = out, nil
		}
		if killed || closed && c.state.load() != leaving {
			c.state.die()
		}
		if c.sess.End != engine.Serving {
			c.advance(draining)
		}
	}
}
