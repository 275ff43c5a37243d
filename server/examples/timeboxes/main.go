package main

import (
	_ "embed"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
)

const (
	width = 2 * time.Second // of an interval
	keep  = 30              // intervals
)

//go:embed index.html
var page []byte

func main() {
	addr := flag.String("addr", "127.0.0.1:8000", "address of the page")
	flag.Parse()
	srv := must(server.New(server.Options{})) // in memory; Options.File keeps the data
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { w.Write(page) })
	mux.Handle("GET /live", must(console.New(srv, console.Options{})))

	// The interval is the member, named by its begin in milliseconds. Its score is the count, and
	// its deadline the last millisecond before there would be an interval too many.
	mux.HandleFunc("POST /hit", func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now().Truncate(width)
		end := begin.Add(keep*width).UnixMilli() - 1
		count, err := server.Scan[int](srv.Do(r.Context(), "ZADDEX", "hits", "INCR", "PXAT", end, 1, begin.UnixMilli()))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, count)
	})

	l := must(net.Listen("tcp", *addr))
	fmt.Printf("open http://%s\n", l.Addr())
	log.Fatal(http.Serve(l, http.NewCrossOriginProtection().Handler(mux)))
}

// must returns a value, or ends the program with an error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
