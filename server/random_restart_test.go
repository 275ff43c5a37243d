package server_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/rdb"
)

// The long form of TestRandomRestarts:
//
//	go test ./server -run RandomRestarts -v -restarts.n 1000 -timeout 60m
var (
	restartsN    = flag.Int("restarts.n", 8, "`number` of restarts between random commands")
	restartsSeed = flag.Uint64("restarts.seed", 0, "`seed` of the commands between restarts (0: random)")
)

// TestRandomRestarts runs random commands with arguments of 0 to 1 MB, and checkpoints of all
// kinds, and compares the data of the server with those in copies of its file: as they are,
// as kill -9 leaves them, and after each of the tools.
func TestRandomRestarts(t *testing.T) {
	seed := *restartsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -restarts.seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "k.db")
	open := func(path string) *server.Server {
		t.Helper()
		srv, err := server.New(server.Options{File: path, Logger: slog.New(slog.DiscardHandler), Config: map[string]string{
			"appendonly": "yes", "enable-debug-command": "yes", "auto-aof-rewrite-min-size": "200kb", "proto-max-bulk-len": "4mb",
		}})
		if err == nil {
			err = srv.Ready(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return srv
	}
	do := func(srv *server.Server, words ...any) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		reply, err := srv.Do(ctx, words...)
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%.200q does not end", words)
			}
			return err.Error()
		}
		return fmt.Sprint(reply)
	}
	digest := func(srv *server.Server) string { return do(srv, "DEBUG", "DIGEST") }
	srv := open(path)
	defer func() { srv.Close() }()
	g := newGenerator(r, slices.DeleteFunc(srv.Commands(), func(c *protocol.Command) bool {
		// Nothing expires between two digests.
		return !hasEffects(c) || c.Flags().Has(protocol.Blocking) || strings.Contains(c.Name, "expire") || strings.Contains(c.Name, "ex") ||
			strings.HasPrefix(c.Name, "restore") || strings.HasPrefix(c.Name, "function")
	}))
	expires := func(argv []string) bool {
		return slices.ContainsFunc(argv, func(w string) bool {
			return slices.Contains([]string{"EX", "PX", "EXAT", "PXAT"}, strings.ToUpper(w))
		})
	}
	enlarge := func(argv []string) []any {
		words := make([]any, len(argv))
		for i, w := range argv {
			words[i] = w
			if i > 1 && r.IntN(5) == 0 {
				n := r.IntN(1 + 1<<r.IntN(21)) // half of them are shorter than 1 KB
				if r.IntN(3) == 0 {
					n = 60_000 + r.IntN(20_000) // about where buffers are handed over
				}
				words[i] = strings.Repeat(fmt.Sprintf("%s%c", w, 'a'+r.IntN(26)), n/(len(w)+1)+1)[:n]
			}
		}
		return words
	}
	checkpoint := func() {
		for _, line := range [][]string{
			{"SAVE"}, {"BGSAVE"}, {"BGREWRITEAOF"}, {"DEBUG RELOAD"}, {"CONFIG SET appendfsync always"},
			{"CONFIG SET appendfsync everysec"}, {"CONFIG SET appendonly no save 3600 1", "CONFIG SET appendonly yes"},
			{"CONFIG SET appendonly no", "CONFIG SET save 1 1", "SAVE", "CONFIG SET appendonly yes"},
		}[r.IntN(8)] {
			var words []any
			for _, w := range strings.Fields(line) {
				words = append(words, w)
			}
			if before := digest(srv); strings.HasPrefix(line, "DEBUG") {
				if reply := do(srv, words...); reply != "OK" || digest(srv) != before {
					t.Fatalf("%s: %s, the data differ: %v", line, reply, digest(srv) != before)
				}
				continue
			}
			do(srv, words...)
		}
	}
	number, keys, size := 0, "", 0
	verify := func(what, path, want string) {
		t.Helper()
		found := open(path)
		defer found.Close()
		if err := found.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got := digest(found); got != want {
			for k := range strings.FieldsSeq(strings.Trim(do(srv, "KEYS", "*"), "[]")) {
				if a, b := do(srv, "DEBUG", "DIGEST-VALUE", k), do(found, "DEBUG", "DIGEST-VALUE", k); a != b {
					t.Errorf("%.100q, %s: %s, not %s", k, do(srv, "TYPE", k), b, a)
				}
			}
			t.Fatalf("%s, seed %d, round %d: the digest is %s, not %s", what, seed, number, got, want)
		}
	}
	for ; number < *restartsN && !t.Failed(); number++ {
		for range 150 + r.IntN(300) {
			_, argv := g.next()
			if r.IntN(60) == 0 {
				checkpoint()
			}
			if !expires(argv) {
				do(srv, enlarge(argv)...)
			}
		}
		// From here on each reply is on the disk.
		if reply := do(srv, "CONFIG", "SET", "appendfsync", "always"); reply != "OK" {
			t.Fatal(reply)
		}
		for range 40 {
			if _, argv := g.next(); !expires(argv) {
				do(srv, enlarge(argv)...)
			}
		}
		do(srv, "SET", "last", number)
		// ZADD builds a sorted set as a listpack, which stores the score -0 as 0, in Redis
		// too: an import of commands does not have it.
		if reply := do(srv, "EVAL", `
			for _, key in ipairs(redis.call('keys', '*')) do
				if redis.call('type', key).ok == 'zset' then
					local zeros = redis.call('zrangebyscore', key, 0, 0, 'withscores')
					for i = 1, #zeros, 2 do
						if zeros[i + 1] == '-0' then
							redis.call('zrem', key, zeros[i])
							redis.call('zadd', key, 0, zeros[i])
						end
					end
				end
			end`, 0); reply != "<nil>" {
			t.Fatal(reply)
		}
		want := digest(srv)
		keys += do(srv, "DBSIZE") + " "
		other := func(name string) string { return filepath.Join(t.TempDir(), name) }
		release := srv.HoldFiles() // a rewrite may be going on
		b, err := os.ReadFile(path)
		release()
		if err != nil {
			t.Fatal(err)
		}
		killed := other("killed.db")
		if err := os.WriteFile(killed, b, 0o600); err != nil {
			t.Fatal(err)
		}
		backup := other("backup.db")
		if _, err := archive.Backup(path, backup, false, nil); err != nil {
			t.Fatal(err)
		}
		tools := map[string]func(to string) error{
			"salvage": func(to string) error {
				s, err := archive.Salvage(backup, to, nil)
				if err == nil && !s.Intact() {
					err = fmt.Errorf("not intact: %+v", s.Pages)
				}
				return err
			},
			"json": func(to string) error {
				var lines bytes.Buffer
				_, err := archive.ExportJSON(&lines, backup, time.Now(), nil)
				if err == nil {
					_, err = new(archive.Import).JSON(&lines, to)
				}
				return err
			},
			"rdb": func(to string) error {
				var file bytes.Buffer
				_, err := archive.ExportRDB(&file, backup, rdb.Any, time.Now(), nil)
				if err == nil {
					_, err = new(archive.Import).RDB(&file, to)
				}
				return err
			},
			"commands": func(to string) error {
				r, w := io.Pipe()
				go func() {
					_, err := archive.ExportCommands(w, backup, rdb.Any, time.Now(), nil)
					w.CloseWithError(err)
				}()
				_, err := server.ImportCommands(r, to, 16, new(archive.Import))
				return err
			},
			"compact": func(to string) error {
				_, err := archive.Backup(backup, to, false, nil)
				if err == nil {
					_, _, err = archive.Compact(to, nil)
				}
				return err
			},
		}
		for name, tool := range tools {
			to := other(name + ".db")
			if err := tool(to); err != nil {
				t.Fatalf("%s, seed %d, round %d: %v", name, seed, number, err)
			}
			verify(name, to, want)
		}
		verify("backup", backup, want)
		verify("killed", killed, want)
		if err := srv.Close(); err != nil {
			t.Fatal(err)
		}
		srv = open(path)
		size += len(b)
		if got := digest(srv); got != want {
			t.Fatalf("after a restart, seed %d, round %d: the digest is %s, not %s", seed, number, got, want)
		}
	}
	t.Logf("keys at the restarts: %s; %d KB of files", keys, size>>10)
}
