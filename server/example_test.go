package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/zset"
)

// A server without a network.
func ExampleServer_Do() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	fmt.Println(srv.Do(ctx, "ZADD", "due", 1.5, "a", 2, "b"))
	fmt.Println(srv.Do(ctx, "ZRANGE", "due", 0, -1))
	fmt.Println(srv.Do(ctx, "ZSCORE", "due", "a"))
	fmt.Println(srv.Do(ctx, "ZSCORE", "due", "nobody"))
	_, err = srv.Do(ctx, "ZADD", "due", "soon", "c")
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// [a b] <nil>
	// 1.5 <nil>
	// <nil> <nil>
	// ERR value is not a valid float
}

// Two counters change together, or neither does.
func ExampleServer_Tx() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	srv.DoMany(ctx, []any{"SET", "seats", 1}, []any{"ZADD", "waiting", 1, "ann", 2, "ben"})
	seat := func() error {
		return srv.Tx(ctx, func(tx *server.Tx) error {
			first, err := server.Scan[zset.Element](tx.Do("ZPOPMIN", "waiting"))
			if err != nil {
				return err
			}
			left, err := server.Scan[int](tx.Do("DECR", "seats"))
			if err == nil && left < 0 {
				return fmt.Errorf("no seat for %s", first.Member)
			}
			return err
		})
	}
	fmt.Println(seat())
	fmt.Println(seat())
	fmt.Println(srv.DoMany(ctx, []any{"GET", "seats"}, []any{"ZRANGE", "waiting", 0, -1}))
	// Output:
	// <nil>
	// no seat for ben
	// [0 [ben]] <nil>
}

// Replies as Go types.
func ExampleScan() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	srv.DoMany(ctx, []any{"ZADD", "due", 1.5, "a", 2, "b"}, []any{"HSET", "user:1", "name", "ann", "born", 1985})

	due, err := server.Scan[[]zset.Element](srv.Do(ctx, "ZRANGE", "due", 0, -1, "WITHSCORES"))
	fmt.Println(due, err)

	type User struct {
		Name string
		Year int `redis:"born"`
	}
	user, err := server.Scan[User](srv.Do(ctx, "HGETALL", "user:1"))
	fmt.Println(user.Name, user.Year, err)

	_, err = server.Scan[string](srv.Do(ctx, "GET", "none"))
	fmt.Println(err == server.ErrNull)
	// Output:
	// [{a 1.5} {b 2}] <nil>
	// ann 1985 <nil>
	// true
}

// A blocking command waits for as long as its context allows.
func ExampleServer_Do_blocking() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = srv.Do(ctx, "BZPOPMIN", "jobs", 0)
	fmt.Println(err)
	// Output: context deadline exceeded
}

// A backup of a server that runs is the file of another.
func ExampleServer_BackupFile() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	srv, err := server.New(server.Options{File: filepath.Join(dir, "data.db")})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	srv.Do(ctx, "SET", "greeting", "hello")
	path := filepath.Join(dir, "monday.db")
	if err := srv.BackupFile(ctx, path); err != nil {
		panic(err)
	}
	other, err := server.New(server.Options{File: path})
	if err != nil {
		panic(err)
	}
	defer other.Close()
	if err := other.Ready(ctx); err != nil { // it has loaded the file
		panic(err)
	}
	fmt.Println(other.Do(ctx, "GET", "greeting"))
	// Output: hello <nil>
}

// A backup without a file of its own: w may be a network connection.
func ExampleServer_Backup() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	var w bytes.Buffer
	n, err := srv.Backup(context.Background(), &w)
	fmt.Println(n == int64(w.Len()), err)
	// Output: true <nil>
}

func ExampleServer_Save() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	srv, err := server.New(server.Options{
		File:   filepath.Join(dir, "data.db"),
		Config: map[string]string{"save": ""}, // only when the program says so
	})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	srv.Do(ctx, "SET", "greeting", "hello")
	fmt.Println(srv.Save(ctx))
	// Output: <nil>
}

func ExampleServer_Stats() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	srv.Do(ctx, "SET", "session", "ann", "EX", time.Hour)
	srv.Do(ctx, "GET", "session")
	s := srv.Stats()
	fmt.Println(s.Databases, s.Commands, s.Hits, s.Misses)
	// Output: [{0 1 1}] 2 1 0
}

func ExampleServer_Keys() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	srv.Do(ctx, "MSET", "user:1", "ann", "user:2", "bob", "page", 1)
	for key, err := range srv.Keys(ctx, 0, "user:*") {
		if err != nil {
			panic(err)
		}
		name, _ := srv.Do(ctx, "GET", key) // the loop holds no lock
		fmt.Println(key, name)
	}
	// Unordered output:
	// user:1 ann
	// user:2 bob
}

// The unit of a duration is that which the command demands.
func ExampleServer_Do_durations() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	srv.Do(ctx, "SET", "session", "ann", "EX", time.Hour) // sends 3600
	fmt.Println(srv.Do(ctx, "TTL", "session"))
	srv.Do(ctx, "PEXPIRE", "session", time.Minute) // sends 60000
	fmt.Println(srv.Do(ctx, "TTL", "session"))
	srv.Do(ctx, "ZADD", "due", time.Unix(1700000000, 0), "backup")
	fmt.Println(srv.Do(ctx, "ZSCORE", "due", "backup"))
	srv.Do(ctx, "SADD", "colors", []string{"red", "green"})
	fmt.Println(srv.Do(ctx, "SCARD", "colors"))
	// Output:
	// 3600 <nil>
	// 60 <nil>
	// 1.7e+09 <nil>
	// 2 <nil>
}

func ExampleNew() {
	_, err := server.New(server.Options{Config: map[string]string{"maxclients": "many"}})
	fmt.Println(err)
	// Output: zsetd: parameter maxclients: argument couldn't be parsed into an integer
}

// A subscription without a connection. It is in effect before the loop begins.
func ExampleServer_Subscribe() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	sub, err := srv.Subscribe(ctx, "news")
	if err != nil {
		panic(err)
	}
	srv.Do(ctx, "PUBLISH", "news", "hello")
	srv.Do(ctx, "PUBLISH", "news", "goodbye")
	for m, err := range sub.Messages() {
		if err != nil {
			panic(err)
		}
		fmt.Println(m.Channel, m.Payload)
		if m.Payload == "goodbye" {
			break // closes the subscription
		}
	}
	// Output:
	// news hello
	// news goodbye
}

// Keyspace events call a Go function: no client and no other interface is needed.
func ExampleServer_PSubscribe() {
	srv, err := server.New(server.Options{Config: map[string]string{"notify-keyspace-events": "Ezg"}})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	events, err := srv.PSubscribe(ctx, "__keyevent@0__:*")
	if err != nil {
		panic(err)
	}
	srv.Do(ctx, "ZADD", "due", 1, "a")
	srv.Do(ctx, "DEL", "due")
	for e, err := range events.Messages() {
		if err != nil {
			panic(err)
		}
		event := strings.TrimPrefix(e.Channel, "__keyevent@0__:")
		fmt.Println(event, e.Payload)
		if event == "del" {
			break
		}
	}
	// Output:
	// zadd due
	// del due
}

// A live query: the reply to a command, and each reply that differs from the one before.
func ExampleServer_Observe() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	top, err := srv.Observe(ctx, "ZRANGE", "board", 0, 1, "REV")
	if err != nil {
		panic(err)
	}
	moves := []string{"ann", "ben", "cid"}
	for reply, err := range top.Replies() {
		if err != nil {
			panic(err)
		}
		fmt.Println(reply)
		if len(moves) == 0 {
			break // closes the observation
		}
		srv.Do(ctx, "ZADD", "board", "@now", moves[0])
		moves = moves[1:]
	}
	// Output:
	// []
	// [ann]
	// [ben ann]
	// [cid ben]
}

// A program that runs a redcon server mounts zsetd in it.
func ExampleRedcon() {
	srv, err := server.New(server.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	handler, accept, closed := server.Redcon(srv)
	go redcon.Serve(l, handler, accept, closed)
	defer l.Close()

	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	fmt.Fprint(nc, "ZADD due 1 a\r\nZRANK due a\r\nQUIT\r\n")
	replies, _ := io.ReadAll(nc)
	fmt.Printf("%q\n", replies)
	// Output: ":1\r\n:0\r\n+OK\r\n"
}

// A command of the program's own, which clients and scripts call as any other.
func ExampleCommand() {
	srv, err := server.New(server.Options{Commands: []server.Command{{
		Name: "stock.reserve", Arity: 3, Flags: "write denyoom fast", Keys: "1 RW access update",
		Summary: "Take items from a stock, if there are enough",
		Run: func(c *server.Call) (any, error) {
			stock, err := c.Do("GET", c.Arg(0))
			if err != nil {
				return nil, err
			}
			have, _ := stock.(string)
			n, _ := strconv.Atoi(have)
			want, err := strconv.Atoi(c.Arg(1))
			if err != nil || want < 0 {
				return nil, errors.New("ERR the quantity is not a number")
			}
			if n < want {
				return nil, fmt.Errorf("SOLDOUT %d are left", n)
			}
			return c.Do("DECRBY", c.Arg(0), want) // nothing has happened since GET
		},
	}}})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()
	srv.Do(ctx, "SET", "pens", 10)
	fmt.Println(srv.Do(ctx, "STOCK.RESERVE", "pens", 7))
	fmt.Println(srv.Do(ctx, "STOCK.RESERVE", "pens", 7))
	// Output:
	// 3 <nil>
	// <nil> SOLDOUT 3 are left
}
