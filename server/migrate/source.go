package migrate

import (
	"context"
	"crypto/tls"
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

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/peers/psync"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// source is a primary whose data move.
type source struct {
	Endpoint
	product
	index int
	addr  string
	admin *redis.Client
	info  map[string]string

	// reached is where the stream is applied to. Its id is "" until the data are copied.
	mu      sync.Mutex
	reached position

	copied  atomic.Bool
	ack     chan struct{} // asks to acknowledge now
	applier *applier      // of the stream
	slots   []slotRange   // of a cluster
}

// slotRange is slots of a cluster, from the first to the last.
type slotRange struct{ first, last int }

// has reports whether a key is in a slot of the source.
func (s *source) has(key string) bool {
	slot := keyslot.Of(key)
	return !s.at.Cluster || slices.ContainsFunc(s.slots, func(r slotRange) bool { return slot >= r.first && slot <= r.last })
}

// openSources connects to the source, or to each primary of a cluster.
func openSources(ctx context.Context, e Endpoint) (sources []*source, err error) {
	addrs, owned := e.at.Addrs, map[string][]slotRange{}
	if e.at.Cluster {
		if err := e.checkCluster(ctx); err != nil {
			return nil, err
		}
		c := e.clusterClient()
		//lint:ignore SA1019 Redis has CLUSTER SHARDS since 7.0 only
		slots, err := c.ClusterSlots(ctx).Result()
		if err = errors.Join(err, c.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", e, err)
		}
		addrs = nil
		for _, s := range slots {
			if len(s.Nodes) == 0 {
				continue
			}
			addr := s.Nodes[0].Addr
			if owned[addr] = append(owned[addr], slotRange{s.Start, s.End}); !slices.Contains(addrs, addr) {
				addrs = append(addrs, addr)
			}
		}
		slices.Sort(addrs)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeSources(sources))
		}
	}()
	for i, addr := range addrs {
		s := &source{Endpoint: e, index: i, addr: addr, admin: e.client(addr, 0), ack: make(chan struct{}, 1), slots: owned[addr]}
		sources = append(sources, s)
		if s.info, err = infoOf(ctx, s.admin); err != nil {
			return sources, fmt.Errorf("%s: %w", addr, err)
		}
		s.product = productOf(s.info)
		if (s.info["cluster_enabled"] == "1") != e.at.Cluster && s.name != "zsetd" {
			return sources, fmt.Errorf("%s: the source is a cluster if and only if ?cluster is given", e)
		}
	}
	if len(sources) > maxSources {
		return sources, fmt.Errorf("%s: more than %d primaries", e, maxSources)
	}
	return sources, nil
}

func closeSources(list []*source) error {
	var errs []error
	for _, s := range list {
		errs = append(errs, s.admin.Close())
	}
	return errors.Join(errs...)
}

// databaseInfo is a line of INFO keyspace.
type databaseInfo struct {
	db              int
	keys            int64
	memberDeadlines int64 // keys whose members or fields have deadlines
}

func databasesOf(info map[string]string) (list []databaseInfo) {
	for name, value := range info {
		digits, ok := strings.CutPrefix(name, "db")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil {
			continue
		}
		d := databaseInfo{db: n}
		for _, field := range strings.Split(value, ",") {
			name, digits, _ := strings.Cut(field, "=")
			number, _ := strconv.ParseInt(digits, 10, 64)
			switch name {
			case "keys":
				d.keys = number
			case "subexpiry":
				d.memberDeadlines = number
			}
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b databaseInfo) int { return a.db - b.db })
	return list
}

// position returns where the stream is applied to.
func (s *source) position() position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached
}

func (s *source) reach(p position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached = p
}

// dial connects to the source for a purpose that go-redis has no function for.
func (s *source) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: replyTimeout}
	if s.at.Secure {
		return (&tls.Dialer{NetDialer: &d, Config: s.tls()}).DialContext(ctx, s.at.Network, s.addr)
	}
	return d.DialContext(ctx, s.at.Network, s.addr)
}

// linkTimeout is how long a source may send nothing. It sends PING every 10 seconds by
// default, and newlines while it prepares the data.
const linkTimeout = 70 * time.Second

// link opens a link that continues where the stream is applied to, or begins with the
// data. stop closes it.
func (s *source) link(ctx context.Context) (l *psync.Link, stop func(), err error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	ended := context.AfterFunc(ctx, func() { conn.Close() })
	at := s.position()
	l, err = psync.Handshake(conn, psync.Options{User: s.at.User, Password: s.at.Password, ID: at.id, Offset: at.offset, Timeout: linkTimeout})
	if err != nil {
		ended()
		return nil, nil, errors.Join(err, conn.Close())
	}
	quit := make(chan struct{})
	var alive sync.WaitGroup
	alive.Go(func() { s.acknowledge(l, quit) })
	return l, func() {
		close(quit)
		ended()
		conn.Close() // an error matters no more
		alive.Wait()
	}, nil
}

// acknowledge tells the source every second how far the stream is applied, which WAIT
// at the source waits for.
func (s *source) acknowledge(l *psync.Link, quit chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		var err error
		if s.copied.Load() {
			err = l.Acknowledge(s.position().offset, -1)
		} else {
			err = l.KeepAlive()
		}
		if err != nil {
			return // reading fails, too
		}
		select {
		case <-quit:
			return
		case <-tick.C:
		case <-s.ack:
		}
	}
}

// counted is a reader that counts in the status.
type counted struct {
	io.Reader
	status *status
	err    error // of a read, except the end
}

// Read implements io.Reader.
func (r *counted) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.status.read(n)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// readData reads an RDB file to its end and passes what it has to the functions.
func readData(r io.Reader, add func(archive.Value) error, library func(code string) error) error {
	limits := keyspace.DefaultLimits()
	_, err := rdb.NewCodec(&limits).ReadFile(r, func(e rdb.Entry) error {
		switch {
		case e.Library != "":
			return library(e.Library)
		case e.Module != "":
			return fmt.Errorf("the source has data of module %s, which cannot be moved", e.Module)
		case errors.Is(e.Err, rdb.ErrEmpty):
			return nil
		case e.Err != nil:
			return fmt.Errorf("key %.100q of database %d: %w", e.Key, e.DB, e.Err)
		}
		return add(archive.Value{DB: int(e.DB), Key: e.Key, Value: e.Value, Deadline: e.Deadline})
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return err
}
