// Command zsetd serves sorted sets and the rest of Redis's types over the Redis
// protocol.
package main

import (
	"flag"
	"log/slog"
	"net"
	"os"

	"github.com/zsetd/zsetd/server"
)

func main() {
	port := flag.String("port", "6379", "port to listen on")
	flag.Parse()
	srv, err := server.New(server.Options{Logger: slog.Default()})
	if err == nil {
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+*port); err == nil {
			err = srv.Serve(l)
		}
	}
	slog.Error("cannot serve", "error", err)
	os.Exit(1)
}
