package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// Keep returns a server that keeps its data in the file at path, and has loaded
// them. Unless config says otherwise, it keeps a journal and writes nothing before it
// is closed without being asked for.
func Keep(t testing.TB, path string, config map[string]string) *Server {
	t.Helper()
	srv, err := OpenKeep(path, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv
}

// OpenKeep is Keep, with the error of the file.
func OpenKeep(path string, config map[string]string) (*Server, error) {
	c := map[string]string{"save": "1000000 1", "enable-debug-command": "yes"}
	for name, value := range config {
		c[name] = value
	}
	srv, err := New(engine.Options{File: path, Config: c})
	if err != nil {
		return nil, err
	}
	if err := srv.Ready(context.Background()); err != nil {
		srv.Close()
		return nil, err
	}
	return srv, nil
}

// Rest waits until the keeper has nothing to do.
func Rest(t testing.TB, srv *Server) {
	t.Helper()
	k := srv.Keeper
	wait.Until(t, "the keeper rests", func() (rests bool) {
		srv.InTurn(func() {
			rests = !k.SaveRequested && !k.Saving && k.Rewrite == nil && k.ObsoleteUpTo == 0 && !k.WantsFresh && !k.Pending()
		})
		return rests
	})
}

// Again closes a server and returns another with the same file.
func Again(t testing.TB, srv *Server, config map[string]string) *Server {
	t.Helper()
	path := srv.Keeper.Path
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	return Keep(t, path, config)
}

// Saves returns how often the data were saved.
func Saves(t testing.TB, srv *Server) int {
	n, err := strconv.Atoi(Info(t, srv, "rdb_saves"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Fill makes n strings, without the commands.
func Fill(srv *Server, n, size int) {
	for at := 0; at < n; at += 10_000 {
		srv.InTurn(func() {
			for i := at; i < min(n, at+10_000); i++ {
				srv.Keys.DB(0).Put(fmt.Appendf(nil, "fill:%d", i), keyspace.NewString(bytes.Repeat([]byte{'x'}, size)), false)
				srv.Keys.Seal()
			}
		})
	}
}
