package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/peers/remote"
)

const (
	// maxRedirects is how many nodes a request may be sent to.
	maxRedirects = 16
	// tryAgainTime is how long a request waits for its keys to be at one node, and
	// tryAgainPause the time between two attempts.
	tryAgainTime  = 5 * time.Second
	tryAgainPause = 20 * time.Millisecond
	// directWrite is the most that is written before replies are read. More is written
	// by a goroutine: the server may not read on before its replies are read.
	directWrite = 16 << 10
)

// upstream is the connection of a session to the new home: one to the server, or to each
// node of the cluster that the session has used.
type upstream struct {
	home    *Home
	session *engine.Session
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex // guards queue and running
	queue   []*remote.Request
	running bool // run runs, and has the fields below

	conns     map[string]*conn
	last      string           // address of the last node
	failed    map[string]error // nodes that were away at the first attempt of this batch
	watch     *conn            // has the watched keys; nil without
	watchSlot int
	watchLost bool   // a connection with watched keys was lost
	out       []byte // replies that the session has not got
	answered  int    // their number, with those that the client does not want
}

// Send implements engine.Upstream.
func (u *upstream) Send(r *remote.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queue = append(u.queue, r)
	if !u.running {
		u.running = true
		u.home.gone.Go(u.run)
	}
}

// Close implements engine.Upstream.
func (u *upstream) Close() { u.cancel() }

// run serves requests until there are no more.
func (u *upstream) run() {
	for {
		u.mu.Lock()
		batch := u.queue
		u.queue = nil
		u.running = len(batch) > 0
		u.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		u.failed = map[string]error{}
		for len(batch) > 0 {
			batch = batch[u.serve(batch):]
		}
		u.flush()
	}
}

// flush gives the session the replies that have arrived.
func (u *upstream) flush() {
	if u.answered > 0 {
		out, n := u.out, u.answered
		u.out, u.answered = nil, 0
		u.session.Answer(u, out, n)
	}
}

// answer adds the reply to a request.
func (u *upstream) answer(r *remote.Request, reply []byte) {
	u.answered++
	switch {
	case r.Mute:
	case len(u.out) == 0:
		u.out = reply
	default:
		u.out = append(u.out, reply...)
	}
}

// serve serves the first requests of a batch, and returns how many.
func (u *upstream) serve(batch []*remote.Request) (n int) {
	r := batch[0]
	clustered := u.home.to.Cluster
	switch {
	case r.Kind == remote.Transaction:
		u.answer(r, u.transaction(r))
	case r.Kind == remote.Watch:
		u.answer(r, u.watchKeys(r))
	case r.Kind == remote.Unwatch:
		u.unwatch(r)
		u.answer(r, []byte("+OK\r\n"))
	case clustered && r.Slot < 0 && r.Place == remote.NoNode:
		u.answer(r, errorReply("FORWARD "+r.Name+" concerns all keys, which are at the nodes of "+u.home.to.String()))
	case clustered && r.Slot < 0 && r.Place == remote.AllNodes:
		u.answer(r, u.everywhere(r))
	case clustered && r.Slot < 0 && r.Place == remote.ScanOfNodes:
		u.answer(r, u.scan(r))
	case clustered && r.Slot < 0 && r.Place == remote.OneOfNodes:
		u.answer(r, u.oneOf(r))
	case clustered && r.Slot < 0 && r.Place.Joins():
		u.answer(r, u.joined(r))
	default:
		c, err := u.toSlot(r)
		if err != nil {
			u.answer(r, u.unreached(err))
			return 1
		}
		n = 1
		for n < len(batch) && !batch[n-1].Blocking && u.joins(batch[n], c) {
			n++
		}
		u.pipeline(c, batch[:n])
		return n
	}
	return 1
}

// joins reports whether a request may be written together with others for c.
func (u *upstream) joins(r *remote.Request, c *conn) bool {
	if r.Kind != remote.Command || r.Version != c.version || r.DB != c.db {
		return false
	}
	if !u.home.to.Cluster {
		return true
	}
	if r.Slot < 0 {
		return r.Place == remote.AnyNode
	}
	addr, err := u.home.node(r.Slot)
	return err == nil && addr == c.addr
}

// toSlot returns a connection to the node of a request. If that is away, the cluster may
// have another one by now.
func (u *upstream) toSlot(r *remote.Request) (*conn, error) {
	addr := u.last
	if r.Slot >= 0 || addr == "" || u.failed[addr] != nil {
		var err error
		if addr, err = u.home.node(r.Slot); err != nil {
			return nil, err
		}
	}
	c, err := u.connect(addr, r)
	if err == nil || !u.home.to.Cluster || u.failed[addr] == nil {
		return c, err
	}
	u.home.lost()
	next, failed := u.home.node(r.Slot)
	if failed != nil || next == addr {
		return nil, errors.Join(err, failed)
	}
	return u.connect(next, r)
}

// connect returns a connection to a server, with the protocol and the database of a
// request.
func (u *upstream) connect(addr string, r *remote.Request) (*conn, error) {
	if err := u.failed[addr]; err != nil {
		return nil, err
	}
	c := u.conns[addr]
	if c != nil && !c.alive() {
		u.drop(c)
		c = nil
	}
	if c == nil {
		u.flush()
		var err error
		if c, err = u.home.dial(u.ctx, addr); err != nil {
			u.failed[addr] = err
			return nil, err
		}
		u.conns[addr] = c
	}
	if c.version != r.Version || c.db != r.DB {
		u.flush()
		if err := c.prepare(r.Version, r.DB); err != nil {
			u.drop(c)
			return nil, err
		}
	}
	u.last = addr
	return c, nil
}

// drop closes a connection.
func (u *upstream) drop(c *conn) {
	c.close()
	delete(u.conns, c.addr)
	if c == u.watch {
		u.watch, u.watchLost = nil, true
	}
}

// unreached is the reply if a request was not sent.
func (u *upstream) unreached(err error) []byte {
	return errorReply(fmt.Sprintf("FORWARD cannot reach %s: %v; the command has not run", u.home.to, err))
}

// lost is the reply if a request was sent and has no reply. It drops the connection.
func (u *upstream) lost(c *conn, err error) []byte {
	u.drop(c)
	if u.home.to.Cluster {
		u.home.lost()
	}
	if u.ctx.Err() != nil {
		err = errors.New("forwarding has ended")
	}
	return errorReply(fmt.Sprintf("FORWARD lost the connection to %s before the reply: %v; the command may have run", u.home.to, err))
}

// write writes pieces, and returns a channel that receives a value when all are written,
// which need not be before the replies are read. An error closes the connection.
func (c *conn) write(pieces ...[]byte) <-chan struct{} {
	done := make(chan struct{}, 1)
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	all := func() {
		defer func() { done <- struct{}{} }()
		small := make([]byte, 0, min(total, directWrite))
		for i, p := range pieces {
			if len(small)+len(p) <= cap(small) {
				small = append(small, p...)
				if i < len(pieces)-1 {
					continue
				}
				p = nil
			}
			if len(small) > 0 {
				if _, err := c.Write(small); err != nil {
					c.Close()
					return
				}
				small = small[:0]
			}
			if len(p) > 0 {
				if _, err := c.Write(p); err != nil {
					c.Close()
					return
				}
			}
		}
	}
	if total <= directWrite {
		all()
	} else {
		go all()
	}
	return done
}

// pipeline sends requests to one server, and answers them.
func (u *upstream) pipeline(c *conn, group []*remote.Request) {
	var pieces [][]byte
	purges := make([]int, len(group)) // before each request
	for i, r := range group {
		calls := u.home.purges(c, r, false)
		pieces, purges[i] = append(append(pieces, calls...), u.home.encoded(c, r)[0]), len(calls)
	}
	written := c.write(pieces...)
	var aside [][]byte // replies from the first redirected one on
	for i, r := range group {
		if c.in.Buffered() == 0 && aside == nil {
			u.flush()
		}
		reply, err := u.read(c, purges[i], r.Limit)
		if err != nil {
			text := u.lost(c, err)
			for range group[i:] {
				if aside == nil {
					u.answer(group[i], text)
					i++
				} else {
					aside = append(aside, text)
				}
			}
			break
		}
		if aside == nil && !u.redirects(reply, c) {
			u.answer(r, reply)
		} else {
			aside = append(aside, reply)
		}
	}
	<-written
	c.usedAt = time.Now()
	for i, r := range group[len(group)-len(aside):] {
		reply := aside[i]
		if u.redirects(reply, c) {
			u.answerAside(r, reply, c)
		} else {
			u.answer(r, reply)
		}
	}
}

// read returns a reply that follows those to so many calls of Home.purges.
func (u *upstream) read(c *conn, purges, limit int) ([]byte, error) {
	for range purges {
		reply, err := appendReply(nil, c.in, limit)
		if err != nil {
			return nil, err
		}
		u.home.purged(reply)
	}
	return appendReply(nil, c.in, limit)
}

func (u *upstream) answerAside(r *remote.Request, reply []byte, from *conn) {
	reply, _ = u.follow(r, reply, from)
	u.answer(r, reply)
}

// redirects reports whether a reply is a redirection of a cluster.
func (u *upstream) redirects(reply []byte, from *conn) bool {
	if !u.home.to.Cluster || len(reply) == 0 || reply[0] != '-' {
		return false
	}
	_, ok := redirectionOf(errorText(reply), from.addr)
	return ok
}

// redirect is one attempt to follow a redirection.
type redirect struct {
	asking bool
	c      *conn
	tries  int
	began  time.Time
}

// next returns the connection that a redirection names. It returns the reply that ends the
// attempts, if there are no more.
func (u *upstream) next(d *redirect, r *remote.Request, reply []byte) (end []byte) {
	if d.began.IsZero() {
		d.began = time.Now()
	}
	to, _ := redirectionOf(errorText(reply), d.c.addr)
	if to.kind == "TRYAGAIN" {
		if time.Since(d.began) > tryAgainTime {
			return reply
		}
		u.flush()
		select {
		case <-u.ctx.Done():
			return reply
		case <-time.After(tryAgainPause):
		}
		return nil
	}
	if d.tries++; d.tries > maxRedirects {
		return reply
	}
	d.asking = to.kind == "ASK"
	if !d.asking {
		u.home.moved(to.slot, to.addr)
	}
	c, err := u.connect(to.addr, r)
	if err != nil {
		u.home.lost()
		return u.unreached(err)
	}
	d.c = c
	return nil
}

// follow sends a request to the nodes that redirections name, and returns the reply and
// the connection that has sent it.
func (u *upstream) follow(r *remote.Request, reply []byte, from *conn) ([]byte, *conn) {
	d := redirect{c: from}
	for u.redirects(reply, d.c) {
		if end := u.next(&d, r, reply); end != nil {
			return end, d.c
		}
		reply = u.exchange(d.c, r, d.asking)
	}
	return reply, d.c
}

// exchange sends a request alone, and returns its reply.
func (u *upstream) exchange(c *conn, r *remote.Request, asking bool) []byte {
	u.flush()
	pieces := u.home.purges(c, r, asking)
	if asking {
		pieces = append(pieces, encode("ASKING"))
	}
	before := len(pieces)
	written := c.write(append(pieces, u.home.encoded(c, r)[0])...)
	reply, err := u.read(c, before, r.Limit)
	if err != nil {
		reply = u.lost(c, err)
	}
	<-written
	c.usedAt = time.Now()
	return reply
}

// everywhere sends a request to all primaries, one after the other, and returns the first
// error or the last reply.
func (u *upstream) everywhere(r *remote.Request) (reply []byte) {
	addrs, err := u.home.nodes()
	if err != nil {
		return u.unreached(err)
	}
	for _, addr := range addrs {
		c, err := u.connect(addr, r)
		if err != nil {
			u.home.lost()
			return errorReply(fmt.Sprintf("FORWARD cannot reach %s: %v; the command has not run at all nodes", addr, err))
		}
		if reply = u.exchange(c, r, false); errorText(reply) != "" {
			return reply
		}
	}
	return reply
}

// watchKeys watches keys at their node.
func (u *upstream) watchKeys(r *remote.Request) []byte {
	c, err := u.toSlot(r)
	if err != nil {
		return u.unreached(err)
	}
	reply := u.exchange(c, r, false)
	reply, c = u.follow(r, reply, c)
	if errorText(reply) != "" {
		return reply
	}
	if u.watch != nil && u.watch != c {
		if err := c.call("UNWATCH"); err != nil {
			u.drop(c)
		}
		return errorReply("CROSSSLOT the watched keys are at different nodes of " + u.home.to.String())
	}
	u.watch, u.watchSlot = c, r.Slot
	return reply
}

// unwatch ends the watches.
func (u *upstream) unwatch(r *remote.Request) {
	if u.watch != nil {
		u.flush()
		if err := u.watch.call("UNWATCH"); err != nil {
			u.drop(u.watch)
		}
	}
	u.watch, u.watchLost = nil, false
}

// transaction runs a transaction at the node of its keys, and returns the reply of EXEC.
func (u *upstream) transaction(r *remote.Request) (reply []byte) {
	refusal := ""
	switch {
	case !u.home.to.Cluster:
	case r.Place.Joins():
		refusal = "a command concerns all keys, which are at the nodes of " + u.home.to.String()
	case r.Spread:
		refusal = engine.ErrCrossSlot
	}
	if refusal != "" {
		u.unwatch(r)
		return errorReply("EXECABORT Transaction discarded because of: " + refusal)
	}
	var c *conn
	var err error
	if r.Watched {
		if c, reply = u.withWatches(r); c == nil {
			u.unwatch(r)
			return reply
		}
		defer func() { u.watch, u.watchLost = nil, false }()
	} else if c, err = u.toSlot(r); err != nil {
		return u.unreached(err)
	}
	u.flush()
	d := redirect{c: c}
	for {
		reply = u.execute(d.c, r, d.asking)
		if !u.redirects(reply, d.c) {
			return reply
		}
		if r.Watched {
			return nullArray(r.Version)
		}
		if end := u.next(&d, r, reply); end != nil {
			return end
		}
	}
}

// withWatches returns the connection with the watched keys of a transaction, or the reply
// if it cannot run there.
func (u *upstream) withWatches(r *remote.Request) (c *conn, reply []byte) {
	c = u.watch
	if c == nil || u.watchLost || !c.alive() || c.prepare(r.Version, r.DB) != nil {
		return nil, nullArray(r.Version)
	}
	if !u.home.to.Cluster || r.Slot < 0 {
		return c, nil
	}
	switch addr, err := u.home.node(r.Slot); {
	case err == nil && addr == c.addr:
		return c, nil
	case r.Slot == u.watchSlot:
		return nil, nullArray(r.Version)
	}
	return nil, errorReply("CROSSSLOT the watched keys and those of the transaction are at different nodes of " + u.home.to.String())
}

// execute runs a transaction at one server. Its commands are sent only when MULTI has been
// accepted. A redirection of one of them is the reply: then none has run.
func (u *upstream) execute(c *conn, r *remote.Request, asking bool) []byte {
	commands := u.home.encoded(c, r)
	if calls := u.home.purges(c, r, asking); len(calls) > 0 {
		written := c.write(calls...)
		_, err := u.read(c, len(calls)-1, r.Limit)
		if <-written; err != nil {
			u.drop(c)
			return u.unreached(err)
		}
	}
	if asking {
		if _, err := c.ask("ASKING"); err != nil {
			u.drop(c)
			return u.unreached(err)
		}
	}
	if _, err := c.ask("MULTI"); err != nil {
		u.drop(c)
		return u.unreached(err)
	}
	written := c.write(slices.Concat(commands, [][]byte{encode("EXEC")})...)
	defer func() { <-written }()
	refusal := ""
	for range commands {
		reply, err := appendReply(nil, c.in, r.Limit)
		if err != nil {
			return u.lost(c, err)
		}
		if text := errorText(reply); text != "" && refusal == "" {
			refusal = text
		}
	}
	reply, err := appendReply(nil, c.in, r.Limit)
	if err != nil {
		return u.lost(c, err)
	}
	c.usedAt = time.Now()
	if refusal == "" || errorText(reply) == "" {
		return reply
	}
	if u.redirects(errorReply(refusal), c) {
		return errorReply(refusal)
	}
	return errorReply("EXECABORT Transaction discarded because of: " + refusal)
}
