package main

import (
	_ "embed"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
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

	// do runs a command, and answers the request with its error.
	do := func(w http.ResponseWriter, r *http.Request, command ...any) {
		if _, err := srv.Do(r.Context(), command...); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	mux.HandleFunc("POST /events", func(w http.ResponseWriter, r *http.Request) {
		do(w, r, "ZADDEX", "news", "EX", 20, "@now", r.FormValue("text"))
	})
	mux.HandleFunc("POST /visitors", func(w http.ResponseWriter, r *http.Request) { // each page, again and again
		do(w, r, "ZADDEX", "visitors", "EX", 75, "@now", r.FormValue("id"))
	})
	mux.HandleFunc("POST /left", func(w http.ResponseWriter, r *http.Request) {
		do(w, r, "ZREM", "visitors", r.FormValue("id"))
	})

	l := must(net.Listen("tcp", *addr))
	fmt.Printf("open http://%s in two windows\n", l.Addr())
	log.Fatal(http.Serve(l, http.NewCrossOriginProtection().Handler(mux)))
}

// must returns a value, or ends the program with an error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
