package forward

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/internal/peers/remote"
)

const slotCount = keyslot.Count

const (
	// dialTimeout is how long opening a connection and logging in may take, each.
	dialTimeout = 5 * time.Second
	// idleTime is the silence after which a connection is examined before it is used:
	// the server may have closed it.
	idleTime = time.Second
)

// Home is the server, or the cluster, that has the data. All methods are safe for
// concurrent use.
type Home struct {
	engine *engine.Engine
	to     remote.Address
	tls    *config.TLS // nil without TLS
	ctx    context.Context
	cancel context.CancelFunc
	gone   sync.WaitGroup
	hub    *hub
	kind   atomic.Uint32 // of the servers, see encoded

	mu        sync.Mutex
	slots     []string // the addresses of the primaries, by slot; nil before the first use
	primaries []string
	replicas  []string
	order     []int // the lowest slot of each primary, sorted; nil after a change of slots
	stale     bool  // a node is away: read the slots again
}

// New returns the new home of the data of an engine, whose lock is held.
func New(e *engine.Engine, to remote.Address) engine.Forwarder {
	h := &Home{engine: e, to: to}
	if to.Secure {
		p := e.Config.TLS
		h.tls = &p
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.hub = newHub(h)
	return h
}

// Upstream implements engine.Forwarder.
func (h *Home) Upstream(s *engine.Session) engine.Upstream {
	u := &upstream{home: h, session: s, conns: map[string]*conn{}}
	u.ctx, u.cancel = context.WithCancel(h.ctx)
	return u
}

// Subscribe implements engine.Forwarder.
func (h *Home) Subscribe(kind subscription.Topic, names []string, done func()) {
	h.hub.subscribe(kind, names, done)
}

// Unsubscribe implements engine.Forwarder.
func (h *Home) Unsubscribe(kind subscription.Topic, name string) {
	h.hub.unsubscribe(topic{kind, name})
}

// Close implements engine.Forwarder.
func (h *Home) Close() { h.cancel() }

// Wait implements engine.Forwarder.
func (h *Home) Wait() { h.gone.Wait() }

// conn is a connection to a server.
type conn struct {
	net.Conn
	in      *bufio.Reader
	addr    string
	version int
	db      int
	usedAt  time.Time
	unhook  func() bool
}

// dial opens a connection and logs in. It ends with ctx.
func (h *Home) dial(ctx context.Context, addr string) (*conn, error) {
	nc, err := h.open(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, in: bufio.NewReaderSize(nc, 16<<10), addr: addr, version: 2, usedAt: time.Now()}
	c.unhook = context.AfterFunc(ctx, func() { nc.Close() })
	if h.to.Password != "" {
		words := []string{"AUTH", h.to.Password}
		if h.to.User != "" {
			words = []string{"AUTH", h.to.User, h.to.Password}
		}
		if err := c.call(words...); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// open opens a connection, with TLS by the parameters of the server. Without authorities
// among them, those of the system sign the certificate, which must have the name.
func (h *Home) open(ctx context.Context, addr string) (net.Conn, error) {
	if h.tls != nil && (h.tls.CACertFile != "" || h.tls.CACertDir != "") {
		return h.engine.Transports.Dial(ctx, h.to.Network, addr, dialTimeout, h.tls)
	}
	nc, err := h.engine.Transports.Dial(ctx, h.to.Network, addr, dialTimeout, nil)
	if err != nil || h.tls == nil {
		return nc, err
	}
	host, _, _ := net.SplitHostPort(addr)
	secure := tls.Client(nc, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return secure, nil
}

func (c *conn) close() {
	c.unhook()
	c.Close()
}

// call sends a command of the connection itself, within dialTimeout; an error reply is an
// error.
func (c *conn) call(words ...string) error {
	_, err := c.ask(words...)
	return err
}

func (c *conn) ask(words ...string) ([]byte, error) {
	c.SetDeadline(time.Now().Add(dialTimeout))
	defer c.SetDeadline(time.Time{})
	if _, err := c.Write(encode(words...)); err != nil {
		return nil, err
	}
	reply, err := appendReply(nil, c.in, 0)
	if err == nil {
		if text := errorText(reply); text != "" {
			err = fmt.Errorf("%s: %s", words[0], text)
		}
	}
	return reply, err
}

func encode(words ...string) []byte {
	b := []byte("*" + strconv.Itoa(len(words)) + "\r\n")
	for _, w := range words {
		b = append(b, "$"+strconv.Itoa(len(w))+"\r\n"+w+"\r\n"...)
	}
	return b
}

// prepare selects the version of the protocol and the database.
func (c *conn) prepare(version, db int) error {
	if c.version != version {
		if err := c.call("HELLO", strconv.Itoa(version)); err != nil {
			return err
		}
		c.version = version
	}
	if c.db != db {
		if err := c.call("SELECT", strconv.Itoa(db)); err != nil {
			return err
		}
		c.db = db
	}
	return nil
}

// alive reports whether an idle connection can be used: the server has not closed it.
func (c *conn) alive() bool {
	if time.Since(c.usedAt) < idleTime {
		return true
	}
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.in.Peek(1)
	c.SetReadDeadline(time.Time{})
	var timeout net.Error
	return err == nil || errors.As(err, &timeout) && timeout.Timeout()
}

// Values of Home.kind.
const (
	kindUnknown = iota
	kindZsetd
	kindOther // Redis or Valkey
	kindBare  // Redis or Valkey, without the library of functions
)

// encoded returns the commands of a request as the server of c understands them. A server
// that is no zsetd has the commands of zsetd as functions, if the library is loaded; its
// error says so otherwise. The first such request asks c, which must not wait for replies.
func (h *Home) encoded(c *conn, r *remote.Request) [][]byte {
	if r.Calls != nil && h.kindOf(c) >= kindOther {
		return r.Calls
	}
	return r.Commands
}

// purges returns the calls that precede a request, whose replies do not matter: they remove
// members past their deadlines, which a server that is no zsetd would show.
func (h *Home) purges(c *conn, r *remote.Request, asking bool) (calls [][]byte) {
	if len(r.Purges) == 0 || h.kindOf(c) != kindOther {
		return nil
	}
	for _, call := range r.Purges {
		if asking {
			calls = append(calls, encode("ASKING"))
		}
		calls = append(calls, call)
	}
	return calls
}

// purged takes the reply to such a call.
func (h *Home) purged(reply []byte) {
	if text := errorText(reply); strings.HasPrefix(text, "ERR Function not found") || strings.HasPrefix(text, "ERR unknown command") {
		h.kind.Store(kindBare)
	}
}

func (h *Home) kindOf(c *conn) uint32 {
	if h.kind.Load() == kindUnknown {
		reply, err := c.ask("INFO", "server")
		switch {
		case err != nil:
		case bytes.Contains(reply, []byte("\nzsetd_version:")):
			h.kind.Store(kindZsetd)
		default:
			h.kind.Store(kindOther)
		}
	}
	return h.kind.Load()
}

// node returns the address of the server that has a slot; -1 is any.
func (h *Home) node(slot int) (string, error) {
	if !h.to.Cluster {
		return h.to.Addrs[0], nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slots == nil || h.stale {
		if err := h.readSlots(); err != nil {
			return "", err
		}
	}
	if slot < 0 {
		return h.primaries[0], nil
	}
	if h.slots[slot] == "" {
		return "", fmt.Errorf("no node of the cluster has slot %d", slot)
	}
	return h.slots[slot], nil
}

// nodes returns the addresses of all primaries.
func (h *Home) nodes() ([]string, error) {
	first, err := h.node(-1)
	if err != nil || !h.to.Cluster {
		return []string{first}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.primaries), nil
}

// scanned returns the first slot at or after a slot that a node has, and the lowest slot
// of the node that a scan of all nodes visits after that one; -1 if it is the last.
func (h *Home) scanned(from int) (slot, next int, err error) {
	if _, err := h.node(-1); err != nil {
		return 0, 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.order == nil {
		seen := map[string]bool{}
		for s, addr := range h.slots {
			if addr != "" && !seen[addr] {
				seen[addr] = true
				h.order = append(h.order, s)
			}
		}
	}
	for slot = from; slot < slotCount && h.slots[slot] == ""; slot++ {
	}
	if slot == slotCount {
		return 0, 0, fmt.Errorf("no node of the cluster has slot %d", from)
	}
	for _, s := range h.order {
		if s > slot && h.slots[s] != h.slots[slot] {
			return slot, s, nil
		}
	}
	return slot, -1, nil
}

// moved records that a slot has moved.
func (h *Home) moved(slot int, addr string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slots != nil {
		h.slots[slot], h.order = addr, nil
		h.stale = h.stale || !slices.Contains(h.primaries, addr)
	}
}

// lost records that a node is away.
func (h *Home) lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stale = true
}

// readSlots reads the map of slots from the first node that has one. It is called with
// the lock of h held.
func (h *Home) readSlots() error {
	var failed error
	candidates := slices.Compact(slices.Sorted(slices.Values(slices.Concat(h.to.Addrs, h.primaries, h.replicas))))
	before := h.slots
	for _, addr := range candidates {
		err := h.readSlotsFrom(addr)
		if err == nil {
			h.stale = false
			if before != nil && !slices.Equal(before, h.slots) {
				h.gone.Go(h.hub.placeAgain)
			}
			return nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", addr, err))
	}
	return failed
}

func (h *Home) readSlotsFrom(addr string) error {
	c, err := h.dial(h.ctx, addr)
	if err != nil {
		return err
	}
	defer c.close()
	reply, err := c.ask("CLUSTER", "SLOTS")
	if err != nil {
		return err
	}
	v, _, err := protocol.Decode(reply)
	if err != nil {
		return err
	}
	slots, primaries, replicas := make([]string, slotCount), []string{}, []string{}
	ranges, _ := v.([]any)
	for _, r := range ranges {
		first, last, nodes, ok := slotRange(r)
		if !ok {
			return errors.New("CLUSTER SLOTS: malformed reply")
		}
		for i, node := range nodes {
			nodes[i] = completeAddr(node, addr)
		}
		for i := first; i <= last; i++ {
			slots[i] = nodes[0]
		}
		if !slices.Contains(primaries, nodes[0]) {
			primaries = append(primaries, nodes[0])
			replicas = append(replicas, nodes[1:]...)
		}
	}
	if len(primaries) == 0 {
		return errors.New("the node has no map of slots")
	}
	h.slots, h.primaries, h.replicas, h.order = slots, primaries, replicas, nil
	return nil
}

// slotRange reads an entry of CLUSTER SLOTS, with the primary before its replicas. The
// host is empty if it is that of the node that was asked.
func slotRange(v any) (first, last int64, addrs []string, ok bool) {
	entry, _ := v.([]any)
	if len(entry) < 3 {
		return 0, 0, nil, false
	}
	first, ok1 := entry[0].(int64)
	last, ok2 := entry[1].(int64)
	if !ok1 || !ok2 || first < 0 || last >= slotCount {
		return 0, 0, nil, false
	}
	for _, v := range entry[2:] {
		node, _ := v.([]any)
		if len(node) < 2 {
			return 0, 0, nil, false
		}
		host, _ := node[0].(string)
		port, ok := node[1].(int64)
		if !ok {
			return 0, 0, nil, false
		}
		addrs = append(addrs, net.JoinHostPort(host, strconv.FormatInt(port, 10)))
	}
	return first, last, addrs, true
}

// completeAddr returns the address of a node as the node at from names it: it omits the
// host if it does not know its own, or if it is the same.
func completeAddr(addr, from string) string {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return addr
	}
	host, port := strings.Trim(addr[:i], "[]"), addr[i+1:]
	if host == "" || host == "?" {
		host, _, _ = net.SplitHostPort(from)
	}
	return net.JoinHostPort(host, port)
}
