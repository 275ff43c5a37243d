//go:build linux

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a connection to a server.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func (s *server) dial() (*conn, error) {
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", s.port))
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReaderSize(c, 16<<10)}, nil
}

func (c *conn) close() { c.Close() }

// do sends a command and discards its reply.
func (c *conn) do(args ...string) error {
	var b batch
	b.command(args...)
	if _, err := c.Write(b.text); err != nil {
		return err
	}
	return skipReply(c.r)
}

// integer sends a command and returns its integer reply.
func (c *conn) integer(args ...string) (int64, error) {
	var b batch
	b.command(args...)
	if _, err := c.Write(b.text); err != nil {
		return 0, err
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != ':' {
		return 0, fmt.Errorf("%s: %q", args[0], line)
	}
	return strconv.ParseInt(line[1:len(line)-2], 10, 64)
}

// text sends a command and returns its reply, a bulk string.
func (c *conn) text(args ...string) (string, error) {
	var b batch
	b.command(args...)
	if _, err := c.Write(b.text); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "$")))
	if line[0] != '$' || err != nil || n < 0 {
		return "", fmt.Errorf("%s: %q", args[0], line)
	}
	reply := make([]byte, n+len("\r\n"))
	_, err = io.ReadFull(c.r, reply)
	return string(reply[:n]), err
}

// A batch is a sequence of commands that are sent at once.
type batch struct {
	text     []byte
	commands int
}

func (b *batch) command(args ...string) {
	b.commands++
	b.header('*', len(args))
	for _, a := range args {
		b.header('$', len(a))
		b.text = append(append(b.text, a...), "\r\n"...)
	}
}

func (b *batch) header(kind byte, n int) {
	b.text = strconv.AppendInt(append(b.text, kind), int64(n), 10)
	b.text = append(b.text, "\r\n"...)
}

// fill sends the commands of steps [from, to) and discards their replies. It builds
// the next batch while the server executes the current one.
func (c *conn) fill(from, to int64, step func(b *batch, i int64)) error {
	sent := make(chan int, 4)
	written := make(chan error, 1)
	go func() {
		defer close(sent)
		var b batch
		for i := from; i < to; {
			b.text, b.commands = b.text[:0], 0
			for ; i < to && b.commands < 500; i++ {
				step(&b, i)
			}
			sent <- b.commands
			if _, err := c.Write(b.text); err != nil {
				written <- err
				return
			}
		}
	}()
	var err error
	for n := range sent {
		for ; err == nil && n > 0; n-- {
			if err = skipReply(c.r); err != nil {
				c.Close() // ends the writer, too
			}
		}
	}
	select {
	case err2 := <-written:
		return cmp.Or(err, err2)
	default:
		return err
	}
}

// A sample is the measurement of one round.
type sample struct {
	ops     int64
	elapsed time.Duration
	cpu     time.Duration // CPU time of the server
	flushes int64         // of the disk
	latency histogram
}

func (s *sample) perOp() float64  { return float64(s.cpu.Nanoseconds()) / 1e3 / float64(s.ops) }
func (s *sample) perSec() float64 { return float64(s.ops) / s.elapsed.Seconds() }

// A generator generates the load of one round.
type generator struct {
	server  *server
	clients int
	rate    float64       // operations per second of all clients; 0 is unlimited
	length  time.Duration // measured time; a warm-up of a tenth of it precedes
	limits  limits

	ops       atomic.Int64
	budget    atomic.Int64 // remaining operations, if limited
	limited   bool
	measuring atomic.Bool
	stopped   atomic.Bool
}

// run applies a workload with all clients.
func (g *generator) run(ctx context.Context, w work) (*sample, error) {
	tmpl, err := parseTemplate(w.command, g.limits)
	if err != nil {
		return nil, err
	}
	setup, err := g.server.dial()
	if err != nil {
		return nil, err
	}
	defer setup.close()
	if w.data != nil {
		if err := w.data(setup, g.limits); err != nil {
			return nil, err
		}
	}
	if g.limited = w.consumes; g.limited {
		g.budget.Store(g.limits.members * 3 / 10)
		g.length *= 10 // the budget ends the round first
	}
	if w.subscribers > 0 {
		return g.fanOut(ctx, tmpl, w)
	}
	var clients []func(*histogram) error
	for i := range g.clients {
		c, err := g.server.dial()
		if err != nil {
			return nil, err
		}
		defer c.close()
		clients = append(clients, func(h *histogram) error { return g.client(c, tmpl, w.pipeline, i, h) })
	}
	return g.measure(ctx, clients)
}

// measure runs clients until the time is over or all of them end, and returns the
// first error.
func (g *generator) measure(ctx context.Context, clients []func(*histogram) error) (*sample, error) {
	latencies := make([]histogram, len(clients))
	failed := make(chan error, len(clients))
	var running sync.WaitGroup
	begin := func() {
		for i, client := range clients {
			running.Go(func() {
				if err := client(&latencies[i]); err != nil {
					failed <- err
				}
			})
		}
	}
	wait := func(d time.Duration) (err error) {
		ended := make(chan struct{})
		go func() { running.Wait(); close(ended) }()
		select {
		case <-time.After(d):
		case <-ended:
		case err = <-failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		return err
	}
	var err error
	if !g.limited {
		begin()
		err = wait(g.length / 10)
	}
	before, cpuErr := g.server.cpu()
	flushes := diskFlushes(g.server.dir)
	from, done := time.Now(), g.ops.Load()
	g.measuring.Store(true)
	if g.limited {
		begin()
	}
	// Wait longer if a busy machine completes no operation in the time.
	for tries := 0; err == nil && tries < 20 && (tries == 0 || g.ops.Load() == done); tries++ {
		err = wait(g.length)
	}
	s := &sample{ops: g.ops.Load() - done, elapsed: time.Since(from)}
	after, cpuErr2 := g.server.cpu()
	s.cpu, s.flushes = after-before, diskFlushes(g.server.dir)-flushes
	g.stopped.Store(true)
	if err = errors.Join(err, cpuErr, cpuErr2); err != nil {
		return nil, err
	}
	running.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	for i := range latencies {
		s.latency.merge(&latencies[i])
	}
	if s.ops == 0 {
		return nil, errors.New("no operation completed in the measured time")
	}
	return s, nil
}

// client sends requests and waits for their replies, until the generator stops.
func (g *generator) client(c *conn, tmpl *template, pipeline, i int, h *histogram) error {
	rnd := rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano())))
	request := tmpl.repeated(pipeline)
	n := pipeline * tmpl.commands
	t := schedule{}
	if g.rate > 0 {
		t.interval = time.Duration(float64(g.clients*n) / g.rate * float64(time.Second))
		t.due = time.Now().Add(t.interval * time.Duration(i) / time.Duration(g.clients))
	}
	for !g.stopped.Load() {
		if g.limited && g.budget.Add(int64(-n)) < 0 {
			return nil
		}
		tmpl.fill(request, rnd)
		start := t.next(time.Now, time.Sleep)
		if _, err := c.Write(request); err != nil {
			return err
		}
		for range n {
			if err := skipReply(c.r); err != nil {
				return err
			}
		}
		if g.measuring.Load() {
			h.add(time.Since(start))
		}
		g.ops.Add(int64(n))
	}
	return nil
}

// schedule is the schedule of a client. Without an interval the client sends
// immediately.
type schedule struct {
	interval time.Duration
	due      time.Time // time of the next request
}

// next waits until the next request is due and returns the start of its latency. If
// a late reply delayed the client, that is the due time, which avoids coordinated
// omission. If only the sleep was too long, it is the current time.
func (t *schedule) next(now func() time.Time, sleep func(time.Duration)) time.Time {
	begin := now()
	if t.interval == 0 {
		return begin
	}
	due := t.due
	t.due = due.Add(t.interval)
	if !begin.Before(due) {
		return due
	}
	sleep(due.Sub(begin))
	begin = now()
	if t.due.Before(begin) {
		t.due = begin // the sleep missed the next due time, too, which is not caused by the server
	}
	return begin
}

// fanOut measures pub/sub. One client publishes a request, and the next one after
// all subscribers received all messages of it, so no subscriber falls behind. The
// latency is from the publication to each delivery. An operation is a delivery.
func (g *generator) fanOut(ctx context.Context, tmpl *template, w work) (*sample, error) {
	publisher, err := g.server.dial()
	if err != nil {
		return nil, err
	}
	defer publisher.close()
	var begun, delivered atomic.Int64
	target := int64(w.pipeline * w.subscribers)
	complete := make(chan struct{}, 1)
	zero := time.Now()
	var subscribers []*conn
	leave := func() {
		for _, c := range subscribers {
			c.close()
		}
	}
	defer leave()
	var clients []func(*histogram) error
	for range w.subscribers {
		c, err := g.server.dial()
		if err != nil {
			return nil, err
		}
		subscribers = append(subscribers, c)
		if err := c.do("SUBSCRIBE", "news"); err != nil {
			return nil, err
		}
		clients = append(clients, func(h *histogram) error {
			for {
				if err := skipReply(c.r); errors.Is(err, net.ErrClosed) {
					return nil // the publisher has ended
				} else if err != nil {
					return err
				}
				if g.measuring.Load() {
					h.add(time.Since(zero) - time.Duration(begun.Load()))
				}
				g.ops.Add(1)
				if delivered.Add(1) == target {
					complete <- struct{}{}
				}
			}
		})
	}
	publish := func(*histogram) error {
		defer leave()
		request := tmpl.repeated(w.pipeline)
		for !g.stopped.Load() {
			delivered.Store(0)
			begun.Store(int64(time.Since(zero)))
			if _, err := publisher.Write(request); err != nil {
				return err
			}
			for range w.pipeline {
				if err := skipReply(publisher.r); err != nil {
					return err
				}
			}
			select {
			case <-complete:
			case <-time.After(20 * time.Second):
				return fmt.Errorf("%d of %d messages did not arrive", target-delivered.Load(), target)
			}
		}
		return nil
	}
	return g.measure(ctx, slices.Insert(clients, 0, publish))
}
