package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/zset"
)

//go:embed index.html
var page []byte

func main() {
	addr := flag.String("addr", "127.0.0.1:8000", "address of the page")
	file := flag.String("file", "", "file that keeps the data")
	flag.Parse()
	srv := must(server.New(server.Options{File: *file}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { w.Write(page) })
	mux.Handle("GET /live", must(console.New(srv, console.Options{})))
	mux.HandleFunc("POST /likes", func(w http.ResponseWriter, r *http.Request) {
		if err := fold(r.Context(), srv, r.FormValue("photo"), r.FormValue("by")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	go func() { log.Fatal(publish(context.Background(), srv)) }()

	l := must(net.Listen("tcp", *addr))
	fmt.Printf("open http://%s\n", l.Addr())
	log.Fatal(http.Serve(l, http.NewCrossOriginProtection().Handler(mux)))
}

// fold adds a like to its photo. The photo is due five seconds after the first one (NX).
func fold(ctx context.Context, srv *server.Server, photo, by string) error {
	return srv.Tx(ctx, func(tx *server.Tx) error {
		if _, err := tx.Do("ZADD", "due", "NX", "@now+5s", photo); err != nil {
			return err
		}
		_, err := tx.Do("RPUSH", "likes:"+photo, by)
		return err
	})
}

// publish waits until a photo is due, without polling, and claims it. If the program ends before
// the notice is written, the photo is due again when the lease ends.
func publish(ctx context.Context, srv *server.Server) error {
	for {
		claim, err := server.Scan[struct {
			Key string
			Due []zset.Element
		}](srv.Do(ctx, "BZCLAIM", 0, 1, "due", "-inf", "@now", "@now+30s", "LEASE"))
		if err != nil {
			return err
		}
		photo := claim.Due[0].Member
		err = srv.Tx(ctx, func(tx *server.Tx) error { // all of it, or nothing
			likes, err := server.Scan[[]string](tx.Do("LRANGE", "likes:"+photo, 0, -1))
			if err != nil {
				return err
			}
			notice := fmt.Sprintf("%s: %d likes, by %s", photo, len(likes), strings.Join(likes, ", "))
			for _, command := range [][]any{
				{"LPUSH", "notices", notice}, {"LTRIM", "notices", 0, 9},
				{"DEL", "likes:" + photo}, {"ZREM", "due", photo},
			} {
				if _, err := tx.Do(command...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// must returns a value, or ends the program with an error.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
