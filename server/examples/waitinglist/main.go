package main

import (
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
)

//go:embed index.html
var page []byte

func main() {
	addr := flag.String("addr", "127.0.0.1:8000", "address of the page")
	flag.Parse()
	secret := rand.Text() // of the signed links
	srv := must(server.New(server.Options{Config: map[string]string{
		"http-link-secret": secret,
		"http-link-user":   "page",
		"user":             "default off\npage on %R~club &__query@* +subscribe +zcard +zrank",
	}}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { w.Write(page) })
	mux.Handle("GET /live", must(console.New(srv, console.Options{})))

	// do runs a command, and answers the request with its error.
	do := func(w http.ResponseWriter, r *http.Request, command ...any) {
		if _, err := srv.Do(r.Context(), command...); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	// A page draws a ticket (*), and keeps its place for 75 seconds.
	mux.HandleFunc("POST /join", func(w http.ResponseWriter, r *http.Request) {
		id := rand.Text()
		do(w, r, "ZADDEX", "club", "EX", 75, "*", id)
		queries := console.LiveQueries{Queries: []string{"ZRANK club " + id, "ZCARD club"}}
		json.NewEncoder(w).Encode(map[string]string{"id": id, "link": must(console.Link(secret, time.Now().Add(24*time.Hour), queries))})
	})
	mux.HandleFunc("POST /stay", func(w http.ResponseWriter, r *http.Request) {
		do(w, r, "ZEXPIRE", "club", 75, "MEMBERS", 1, r.FormValue("id"))
	})
	mux.HandleFunc("POST /leave", func(w http.ResponseWriter, r *http.Request) {
		do(w, r, "ZREM", "club", r.FormValue("id"))
	})

	l := must(net.Listen("tcp", *addr))
	fmt.Printf("open http://%s in three windows\n", l.Addr())
	log.Fatal(http.Serve(l, http.NewCrossOriginProtection().Handler(mux)))
}

// must returns a value, or ends the program with an error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
