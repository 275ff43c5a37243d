//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The load of the row with many viewers.
const (
	sseViewers       = 1000
	respSubscribers  = 300
	messagesPerSec   = 1000
	consoleRounds    = 15 // the differences are small, and the noise is not
	consoleMessages  = 10 * messagesPerSec
	deliveryDeadline = 30 * time.Second // after the last message
)

// measureConsole measures what the console costs: works on a server without it, with it, and
// with one viewer of its overview; and a channel that many browsers watch.
func (r *report) measureConsole(ctx context.Context, list []work, viewers bool, l limits) error {
	t := r.targets[1]
	var servers []*server
	start := func(console bool) (s *server, web string, err error) {
		with := t
		if console {
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, "", err
			}
			_, port, _ := net.SplitHostPort(free.Addr().String())
			free.Close()
			with.flags = append(slices.Clone(t.flags), "--http-port", port)
			web = "127.0.0.1:" + port
		}
		s, err = with.start(ctx)
		return s, web, err
	}
	for i := range 3 {
		s, web, err := start(i > 0)
		if err != nil {
			return err
		}
		defer s.stop()
		servers = append(servers, s)
		if i < 2 {
			continue
		}
		viewer, err := openStream(web, "/stats")
		if err != nil {
			return err
		}
		defer viewer.Close()
		go io.Copy(io.Discard, viewer)
	}
	rounds := r.options.rounds
	if !r.options.short {
		rounds = max(rounds, consoleRounds)
	}
	fmt.Println("console: CPU µs per operation without it; of that with it, and with one viewer of its overview: median of rounds (lowest to highest)")
	for _, w := range list {
		var cpu [3][]float64
		for round := range rounds {
			for i := range servers {
				at := (round + i) % len(servers)
				g := &generator{server: servers[at], clients: r.options.clients, length: r.options.length, limits: l}
				s, err := g.run(ctx, w)
				if err != nil {
					return fmt.Errorf("%s: %w", w.title(), err)
				}
				cpu[at] = append(cpu[at], s.perOp())
			}
		}
		line := fmt.Sprintf("%-22s %6.2f", w.title(), middle(cpu[0]))
		for _, with := range cpu[1:] {
			ratios := make([]float64, rounds)
			for i := range ratios {
				ratios[i] = with[i] / cpu[0][i]
			}
			line += fmt.Sprintf("   %.3f (%.3f to %.3f)", middle(ratios), slices.Min(ratios), slices.Max(ratios))
		}
		fmt.Println(line)
	}
	if !viewers {
		return nil
	}
	s, web, err := start(true)
	if err != nil {
		return err
	}
	defer s.stop()
	return s.measureViewers(ctx, web, r.options.short)
}

// middle returns the median.
func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// openStream requests a stream of the console.
func openStream(addr, path string) (net.Conn, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		nc.Close()
		return nil, err
	}
	status := make([]byte, len("HTTP/1.1 200"))
	nc.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := nc.Read(status); err != nil || string(status) != "HTTP/1.1 200" {
		nc.Close()
		return nil, fmt.Errorf("%s: %q, %w", path, status, errors.Join(err))
	}
	nc.SetReadDeadline(time.Time{})
	return nc, nil
}

// measureViewers publishes messages to viewers of one channel over HTTP, and to subscribers
// beside them.
func (s *server) measureViewers(ctx context.Context, web string, short bool) error {
	var arrived [2]atomic.Int64 // at viewers, at subscribers
	var lateness [2]struct {
		sync.Mutex
		h histogram
	}
	var reading sync.WaitGroup
	read := func(nc net.Conn, kind int, sampled bool) {
		defer nc.Close()
		in := bufio.NewReaderSize(nc, 32<<10)
		mark := []byte("sent=")
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return
			}
			i := bytes.Index(line, mark)
			if i < 0 {
				continue
			}
			arrived[kind].Add(1)
			if !sampled {
				continue
			}
			text := strings.TrimRight(string(line[i+len(mark):]), "\"}\r\n")
			if sent, err := strconv.ParseInt(text, 10, 64); err == nil {
				l := &lateness[kind]
				l.Lock()
				l.h.add(time.Since(time.Unix(0, sent)))
				l.Unlock()
			}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer reading.Wait()
	defer cancel()
	follow := func(nc net.Conn, kind, i int) {
		context.AfterFunc(ctx, func() { nc.Close() })
		reading.Go(func() { read(nc, kind, i%50 == 0) })
	}
	for i := range sseViewers {
		nc, err := openStream(web, "/events?channel=news")
		if err != nil {
			return err
		}
		follow(nc, 0, i)
	}
	for i := range respSubscribers {
		c, err := s.dial()
		if err != nil {
			return err
		}
		if _, err := c.Write([]byte("SUBSCRIBE news\r\n")); err != nil {
			return err
		}
		follow(c.Conn, 1, i)
	}
	publisher, err := s.dial()
	if err != nil {
		return err
	}
	defer publisher.close()
	messages := int64(consoleMessages)
	if short {
		messages /= 10
	}
	before, err := s.cpu()
	if err != nil {
		return err
	}
	begin := time.Now()
	for i := range messages {
		if early := time.Until(begin.Add(time.Duration(i) * time.Second / messagesPerSec)); early > 0 {
			time.Sleep(early)
		}
		if err := publisher.do("PUBLISH", "news", fmt.Sprintf("sent=%d", time.Now().UnixNano())); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	after, err := s.cpu()
	if err != nil {
		return err
	}
	all := arrived[0].Load() < messages*sseViewers || arrived[1].Load() < messages*respSubscribers
	for end := time.Now().Add(deliveryDeadline); all && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
		all = arrived[0].Load() < messages*sseViewers || arrived[1].Load() < messages*respSubscribers
	}
	fmt.Printf("console: %d viewers and %d subscribers of a channel, %d messages in %.1f s: %.0f %% of a core; %d of %d and %d of %d messages arrived\n",
		sseViewers, respSubscribers, messages, took.Seconds(), 100*(after-before).Seconds()/took.Seconds(),
		arrived[0].Load(), messages*sseViewers, arrived[1].Load(), messages*respSubscribers)
	for kind, name := range []string{"viewer", "subscriber"} {
		l := &lateness[kind]
		l.Lock()
		fmt.Printf("console: from PUBLISH to a %s: median %v, p99 %v, longest %v\n", name, l.h.quantile(0.5), l.h.quantile(0.99), l.h.quantile(1))
		l.Unlock()
	}
	return ctx.Err()
}
