package enginetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/commands/admin"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// Say runs a command line, split at spaces, and returns the reply or the error.
func Say(srv *Server, line string) string {
	var args []any
	for _, word := range strings.Fields(line) {
		if word == `""` {
			word = ""
		}
		args = append(args, word)
	}
	return SayArgs(srv, args...)
}

// SayArgs runs a command and returns the reply or the error.
func SayArgs(srv *Server, args ...any) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reply, err := srv.Do(ctx, args...)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(reply)
}

// Must runs command lines, each of which has to have the reply behind its "->",
// or any but an error.
func Must(t testing.TB, srv *Server, lines ...string) {
	t.Helper()
	for _, line := range lines {
		line, want, given := strings.Cut(line, " -> ")
		var args []any
		for _, word := range strings.Fields(line) {
			args = append(args, strings.ReplaceAll(word, `""`, ""))
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		reply, err := srv.Do(ctx, args...)
		cancel()
		got := fmt.Sprint(reply)
		if err != nil {
			if got = err.Error(); !given {
				t.Fatalf("%s: %v", line, err)
			}
		}
		if given && got != want {
			t.Fatalf("%s: %s, want %s", line, got, want)
		}
	}
}

// DebugDigest returns a sum of all data but their deadlines.
func DebugDigest(srv *Server) string { return Say(srv, "DEBUG DIGEST") }

// Info returns a field of INFO.
func Info(t testing.TB, srv *Server, field string) string {
	t.Helper()
	for line := range strings.Lines(SayArgs(srv, "INFO", "everything")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value
		}
	}
	t.Fatalf("INFO has no %s", field)
	return ""
}

// Do runs a command that must succeed and returns the reply.
func Do(t *testing.T, srv *Server, args ...any) any {
	t.Helper()
	reply, err := srv.Do(t.Context(), args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

// Digest returns a sum of all keys, with their values and deadlines. soon says that one of
// them may expire within a minute: then two digests may differ though nothing was changed.
func Digest(e *engine.Engine) (sum string, soon bool) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	var all admin.Digest
	for _, db := range e.Keys.DBs() {
		for x := range db.All() {
			var d admin.Digest
			d.MixInt(uint32(db.ID()))
			d.Mix(protocol.BytesOf(x.Key()))
			d.Mix(strconv.AppendInt(nil, x.Deadline(), 10))
			d.Add(x)
			all.Xor(d[:])
		}
	}
	return all.String(), e.Keys.Head() < e.Clock().UnixMilli()+60_000
}
