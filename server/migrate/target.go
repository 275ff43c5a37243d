package migrate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/rdb"
)

// target is the server or the cluster that receives the data. Its methods are safe for
// concurrent use, as long as each unit has one user.
type target struct {
	Endpoint
	product
	rdb    redis.UniversalClient
	nodes  *redis.ClusterClient // nil for a server
	tags   []string             // of the slots; nil for a server
	script *redis.Script        // it does not change
	byDB   clients
	note   func(string) // receives why the target makes the move wait; "" when it goes on

	waiting    atomic.Int32 // calls that the target makes wait
	companions atomic.Bool  // it may have deadlines of members in companions
}

// clients are the clients of a server, or one of a cluster, by database. They are opened
// when they are needed. It is safe for concurrent use.
type clients struct {
	mu   sync.Mutex
	list map[int]redis.UniversalClient
}

// of returns the client of a database, which open opens.
func (c *clients) of(db int, open func() redis.UniversalClient) redis.UniversalClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list[db] == nil {
		if c.list == nil {
			c.list = map[int]redis.UniversalClient{}
		}
		c.list[db] = open()
	}
	return c.list[db]
}

func (c *clients) close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.list {
		err = errors.Join(err, client.Close())
	}
	return err
}

// client returns a client that has selected a database.
func (t *target) client(db int) redis.UniversalClient {
	if db == 0 {
		return t.rdb
	}
	return t.byDB.of(db, func() redis.UniversalClient { return t.Endpoint.client(t.at.Addrs[0], db) })
}

func (t *target) close() error { return errors.Join(t.rdb.Close(), t.byDB.close()) }

// product is what a server is.
type product struct {
	name         string // redis, valkey or zsetd
	major, minor int
}

func (p product) String() string { return fmt.Sprintf("%s %d.%d", p.name, p.major, p.minor) }

// form returns the target of files that the product loads.
func (p product) form() rdb.Target {
	switch {
	case p.name == "zsetd":
		return rdb.Any
	case p.name == "valkey" && p.major >= 9:
		return rdb.Valkey9
	case p.name == "redis" && (p.major > 7 || p.major == 7 && p.minor >= 4):
		return rdb.Redis8
	case p.major >= 7:
		return rdb.Redis7
	}
	return rdb.Redis5
}

// infoOf returns the fields of INFO.
func infoOf(ctx context.Context, c redis.Cmdable, sections ...string) (map[string]string, error) {
	text, err := c.Info(ctx, sections...).Result()
	if err != nil {
		return nil, err
	}
	return fieldsOf(text), nil
}

// fieldsOf returns the fields of a text like that of INFO.
func fieldsOf(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// productOf reads what a server is from the fields of INFO.
func productOf(info map[string]string) product {
	p := product{name: "redis"}
	version := info["redis_version"]
	if info["zsetd_version"] != "" {
		p.name = "zsetd"
	} else if v := info["valkey_version"]; v != "" {
		p.name, version = "valkey", v
	}
	parts := strings.SplitN(version, ".", 3)
	p.major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		p.minor, _ = strconv.Atoi(parts[1])
	}
	return p
}

// openTarget connects to a target.
func openTarget(ctx context.Context, e Endpoint, note func(string)) (*target, error) {
	t := &target{Endpoint: e, note: note}
	if e.at.Cluster {
		if err := e.checkCluster(ctx); err != nil {
			return nil, err
		}
		t.nodes = e.clusterClient()
		t.rdb, t.tags = t.nodes, slotTags()
	} else {
		t.rdb = e.client(e.at.Addrs[0], 0)
	}
	if err := t.inspect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", e, err), t.rdb.Close())
	}
	return t, nil
}

func (t *target) inspect(ctx context.Context) error {
	info, err := infoOf(ctx, t.rdb)
	if err != nil {
		return err
	}
	t.product = productOf(info)
	switch clustered := info["cluster_enabled"] == "1"; {
	case clustered && t.nodes == nil:
		return errors.New("the server is a node of a cluster: add ?cluster")
	case t.nodes == nil && info["role"] != "master":
		return errors.New("the server is a replica: name its primary")
	}
	t.script = scriptFor(t.product)
	return t.loadScript(ctx)
}

func (t *target) loadScript(ctx context.Context) error {
	return t.each(ctx, func(ctx context.Context, c *redis.Client) error {
		return t.script.Load(ctx, c).Err()
	})
}

// each calls f for the server, or for each primary of the cluster, one after the other.
func (t *target) each(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	return eachPrimary(ctx, t.rdb, f)
}

func eachPrimary(ctx context.Context, c redis.UniversalClient, f func(context.Context, *redis.Client) error) error {
	nodes, ok := c.(*redis.ClusterClient)
	if !ok {
		return f(ctx, c.(*redis.Client))
	}
	turn := make(chan struct{}, 1) // ForEachMaster calls f concurrently
	return nodes.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		return f(ctx, c)
	})
}

// keys returns how many keys the target has, without those of moves.
func (t *target) keys(ctx context.Context) (n int64, err error) {
	err = t.each(ctx, func(ctx context.Context, c *redis.Client) error {
		info, err := infoOf(ctx, c, "keyspace")
		for _, db := range databasesOf(info) {
			n += db.keys
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	own, err := t.ownKeys(ctx, func(p redis.Pipeliner, key string) { p.Exists(ctx, key) })
	return n - own, err
}

// ownKeys calls a command that replies the number of keys concerned, for all keys of
// moves, and returns the sum.
func (t *target) ownKeys(ctx context.Context, command func(p redis.Pipeliner, key string)) (n int64, err error) {
	err = t.retry(ctx, func() error {
		n = 0
		p := t.rdb.Pipeline()
		command(p, progressKey)
		for i := range max(len(t.tags), maxSources) {
			command(p, t.unitKey(i))
		}
		replies, err := p.Exec(ctx)
		for _, r := range replies {
			n += r.(*redis.IntCmd).Val()
		}
		return err
	})
	return n, err
}

// maxSources is the number of primaries that a source may have at most if the target
// is a server.
const maxSources = 1000

// unitKey returns the key with the offset of a unit: of a slot of a cluster, or of a
// source.
func (t *target) unitKey(unit int) string {
	if t.tags == nil {
		return StatePrefix + strconv.Itoa(unit)
	}
	return StatePrefix + "{" + t.tags[unit] + "}"
}

// unitOf returns the unit of a key from a source.
func (t *target) unitOf(source int, key []byte) int {
	if t.tags == nil {
		return source
	}
	return keyslot.Of(key)
}

// empty deletes all keys and the libraries of functions.
func (t *target) empty(ctx context.Context) error {
	return t.each(ctx, func(ctx context.Context, c *redis.Client) error {
		if err := c.FlushAll(ctx).Err(); err != nil {
			return err
		}
		if t.major < 7 {
			return nil
		}
		return c.FunctionFlush(ctx).Err()
	})
}

// transient reports whether a call may succeed if it is repeated.
func transient(err error) bool {
	var network net.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, redis.ErrClosed):
		return false
	case errors.As(err, &network), errors.Is(err, redis.ErrPoolTimeout):
		return true
	}
	text := err.Error()
	for _, code := range []string{"TRYAGAIN", "CLUSTERDOWN", "LOADING", "READONLY", "MASTERDOWN", "MOVED", "ASK ", "NOREPLICAS", "BUSY ", "EOF", "NOSCRIPT", "MISCONF", "unexpected EOF", "ERR max number of clients"} {
		if strings.HasPrefix(text, code) {
			return true
		}
	}
	return strings.Contains(text, "non local key") || strings.HasPrefix(text, "redis: connection")
}

const (
	firstPause, longestPause = 20 * time.Millisecond, time.Second
	// patience is how long a target may refuse a call before the move ends. It can be
	// continued.
	patience = 5 * time.Minute
)

// retry repeats a call until it succeeds or fails with an error that is not transient.
func (t *target) retry(ctx context.Context, call func() error) error {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := call()
		if pause > firstPause && !transient(err) && t.waiting.Add(-1) == 0 {
			t.note("")
		}
		if !transient(err) {
			return err
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%s has refused for %v: %w", t.Endpoint, patience, err)
		}
		if pause == firstPause {
			t.waiting.Add(1)
		}
		if strings.HasPrefix(err.Error(), "NOSCRIPT") {
			if err := t.loadScript(ctx); err != nil && !transient(err) {
				return err
			}
		}
		t.note(fmt.Sprintf("waiting for the target: %v", err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
