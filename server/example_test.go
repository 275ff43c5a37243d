package server_test

import (
	"context"
	"fmt"
	"time"

	"github.com/zsetd/zsetd/server"
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

func ExampleNew() {
	_, err := server.New(server.Options{Config: map[string]string{"maxclients": "many"}})
	fmt.Println(err)
	// Output: zsetd: parameter maxclients: argument couldn't be parsed into an integer
}
