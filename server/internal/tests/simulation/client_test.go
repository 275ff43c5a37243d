package simulation

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// kind is a way to add an element to a key.
type kind struct {
	key string
	add func(element string) [][]any
	all []any // the command that reads the elements
	// element returns the element of the reply at i.
	element func(reply []any, i int) string
	step    int // elements of the reply per element of the key
}

var kinds = []kind{
	{"list", func(e string) [][]any { return [][]any{{"RPUSH", "list", e}} }, []any{"LRANGE", "list", 0, -1}, plain, 1},
	{"set", func(e string) [][]any { return [][]any{{"SADD", "set", e}} }, []any{"SORT_RO", "set", "ALPHA"}, plain, 1},
	{"zset", func(e string) [][]any { return [][]any{{"ZADD", "zset", len(e), e}} }, []any{"ZRANGE", "zset", 0, -1}, plain, 1},
	{"transaction", func(e string) [][]any {
		return [][]any{{"MULTI"}, {"INCR", "count"}, {"RPUSH", "transaction", e}, {"EXEC"}}
	}, []any{"LRANGE", "transaction", 0, -1}, plain, 1},
	{"script", func(e string) [][]any {
		return [][]any{{"EVAL", "redis.call('INCR', 'count') redis.call('SADD', KEYS[1], ARGV[1]) return redis.call('TIME')", 1, "script", e}}
	}, []any{"SORT_RO", "script", "ALPHA"}, plain, 1},
	{"stream", func(e string) [][]any { return [][]any{{"XADD", "stream", "*", "e", e}} }, []any{"XRANGE", "stream", "-", "+"},
		func(reply []any, i int) string {
			return fmt.Sprint(reply[i].([]any)[1].([]any)[1])
		}, 1},
	{"hash", func(e string) [][]any { return [][]any{{"HSET", "hash", e, "1"}} }, []any{"HKEYS", "hash"}, plain, 1},
}

func plain(reply []any, i int) string { return fmt.Sprint(reply[i]) }

// elements returns the elements that a node has.
func (k kind) elements(s *simulation, n *node) (elements []string) {
	reply, _ := s.do(n, k.all...).([]any)
	for i := range reply {
		elements = append(elements, k.element(reply, i))
	}
	return elements
}

// client adds elements until the simulation ends.
type client struct {
	*simulation
	name   string
	random *rand.Rand
	conn   net.Conn
	reign  int // in which the connection was made
	in     *bufio.Reader
}

func (c *client) run() {
	for i := 0; ; i++ {
		select {
		case <-c.stop:
			c.hangUp()
			return
		case <-time.After(time.Duration(c.random.Int64N(int64(2 * time.Second)))):
		}
		if c.paused.Load() {
			continue
		}
		element := fmt.Sprintf("%s-%d", c.name, i)
		c.add(element, kinds[c.random.IntN(len(kinds))].add(element))
		if c.random.IntN(3) == 0 {
			c.other()
		}
		if c.random.IntN(2) == 0 {
			c.viewed()
		}
	}
}

// add executes the commands that add an element, waits for a replica, and remembers what
// the replies promise.
func (c *client) add(element string, commands [][]any) {
	c.mu.Lock()
	c.attempts++
	c.mu.Unlock()
	for _, args := range commands {
		if _, ok := c.do(args...); !ok {
			return
		}
	}
	c.mu.Lock()
	if c.reign == c.simulation.reign {
		c.replied[element] = true
	}
	c.mu.Unlock()
	if n, ok := c.do("WAIT", 1, 1000); ok && n != int64(0) {
		c.mu.Lock()
		c.promised[element] = true
		c.mu.Unlock()
	}
}

// other executes a command that changes keys that no promise is about.
func (c *client) other() {
	key := fmt.Sprint("other", c.random.IntN(20))
	ms := c.random.IntN(60_000)
	all := [][]any{
		{"SET", key + "s", ms, "PX", ms + 1},
		{"INCR", key + "i"},
		{"PEXPIRE", key + "i", ms},
		{"DEL", key + "z"},
		{"ZADD", key + "z", ms, ms % 100},
		{"ZPEXPIRE", key + "z", ms, "MEMBERS", 1, ms % 100},
		{"ZPOPMIN", key + "z"},
		{"LPUSH", key + "l", ms, ms + 1},
		{"BLPOP", key + "l", "0.1"},
		{"LMOVE", key + "l", key + "m", "LEFT", "RIGHT"},
		{"SPOP", key + "t", 1000}, // all, since the server chooses others by chance
		{"SADD", key + "t", ms, ms % 7},
		{"HSET", key + "h", ms % 9, ms},
		{"HPEXPIRE", key + "h", ms, "FIELDS", 1, ms % 9},
		{"SET", key + "s", string(make([]byte, ms))},
		{"COPY", key + "z", key + "y", "REPLACE"},
	}
	c.do(all[c.random.IntN(len(all))]...)
}

// do executes a command on the primary, as far as the client knows it. It returns false
// if there is no reply, or an error.
func (c *client) do(args ...any) (any, bool) {
	if c.conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		c.mu.Lock()
		primary := c.primary.name
		c.reign = c.simulation.reign
		c.mu.Unlock()
		conn, err := c.network.dial(ctx, c.name, primary)
		if err != nil {
			return nil, false
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		text := fmt.Sprint(a)
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(text), text)
	}
	c.conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, err := c.conn.Write(b)
	if err == nil {
		var reply any
		if reply, err = protocol.DecodeFrom(c.in); err == nil {
			if _, failed := reply.(protocol.ReplyError); !failed {
				return reply, true
			}
		}
	}
	c.hangUp()
	return nil, false
}

func (c *client) hangUp() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
