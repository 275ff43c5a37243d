package differential

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestLibraryForRedis compares the function library that emulates zsetd's commands on
// Redis with the commands: same replies, same elements, same deadlines. The library is
// also run in zsetd, where its functions call the commands.
func TestLibraryForRedis(t *testing.T) {
	dial := judge.Start(t)
	redis := judge.NewPeer(dial(), dial())
	native, here := judge.Own(t, server.Options{}), judge.Own(t, server.Options{})
	source, err := os.ReadFile("../../../../cmd/zsetd/zsetd.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*judge.Peer{redis, here} {
		if got := p.Do("FUNCTION", "LOAD", "REPLACE", string(source)); got != "$5\r\nzsetd\r\n" {
			t.Fatal(got)
		}
	}
	seed := *differentialSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	r := eventFuzzer{rand.New(rand.NewPCG(seed, 7))}
	keys := []string{"z", "y", "{tag}z", "", "string", "a b\n"}
	for _, p := range []*judge.Peer{redis, native, here} {
		p.Do("SET", "string", "x")
	}
	call := func(argv []string) []string {
		return slices.Concat([]string{"FCALL", argv[0], "1"}, argv[1:])
	}
	const later = "33177117420000" // a deadline
	for range 3000 {
		argv := r.eventCommand(keys)
		want := native.Do(argv...)
		for name, p := range map[string]*judge.Peer{"in Redis": redis, "in zsetd": here} {
			got := p.Do(call(argv)...)
			if judge.SameWords(got, want) {
				continue
			}
			t.Fatalf("seed %d: %q %s:\n%q\nthe command:\n%q", seed, argv, name, got, want)
		}
		key := argv[1]
		for _, look := range [][]string{
			{"ZRANGE", key, "0", "-1", "WITHSCORES"},
			append([]string{"zpexpiretime", key, "MEMBERS", "4"}, "a", "b", "c", "d"),
		} {
			want := native.Do(look...)
			there := look
			if look[0] != "ZRANGE" {
				there = call(look)
			}
			if got := redis.Do(there...); !judge.SameWords(got, want) {
				t.Fatalf("seed %d: after %q %q:\n%q\nwith the command:\n%q", seed, argv, look, got, want)
			}
		}
	}

	// Deadlines that pass.
	for _, p := range []*judge.Peer{redis, here} {
		p.Do("DEL", "z")
		for _, line := range []string{
			"FCALL zaddex 1 z PX 1 MEMBERS 2 1 a 2 b", "FCALL zaddex 1 z EX 100 MEMBERS 1 3 c", "FCALL zaddex 1 z MEMBERS 1 4 d",
		} {
			p.Do(strings.Fields(line)...)
		}
		wait.Elapse(10 * time.Millisecond)
		for _, step := range []struct{ line, want string }{
			{"FCALL_RO zpttl 1 z MEMBERS 3 a b d", "*3\r\n:-2\r\n:-2\r\n:-1\r\n"},
			{"FCALL_RO zttl 1 z MEMBERS 1 c", "*1\r\n:100\r\n"},
			{"FCALL zpopbyscore 1 z -inf +inf", "*2\r\n$1\r\nc\r\n$1\r\n3\r\n"},
			{"FCALL zpurge 1 z", ":0\r\n"},
			{"ZRANGE z 0 -1", "*1\r\n$1\r\nd\r\n"},
			{"FCALL zaddex 1 z MEMBERS 2 @now-1h old @now+1h new", ":2\r\n"},
			{"FCALL zaddex 1 z EXAT @now+100s MEMBERS 1 5 timed", ":1\r\n"},
			{"FCALL zttl 1 z MEMBERS 1 timed", "*1\r\n:100\r\n"},
			{"FCALL zexpireat 1 z @nowms+200000 MEMBERS 1 timed", "*1\r\n:1\r\n"},
			{"FCALL zttl 1 z MEMBERS 1 timed", "*1\r\n:200\r\n"},
			{"FCALL zpexpireat 1 z @now-1s MEMBERS 1 timed", "*1\r\n:2\r\n"},
			{"FCALL zclaim 1 z @now-2h @now @now+30s COUNT 5", ""},
			{"ZCOUNT z 1e9 inf", ":2\r\n"},
			{"FCALL zaddex 1 z PXAT " + later + " MEMBERS 1 @nowms-1d x", ":1\r\n"},
			{"DEL z", ":1\r\n"},
			{"FCALL zaddex 1 z MEMBERS 1 1 x", ":1\r\n"},
			{"FCALL zttl 1 z MEMBERS 1 x", "*1\r\n:-1\r\n"},
			{"FCALL zaddex 2 z y MEMBERS 1 1 x", "-ERR wrong number of arguments for 'zaddex' command\r\n"},
			{"FCALL zaddex 1 z 1", "-ERR wrong number of arguments for 'zaddex' command\r\n"},
		} {
			if got := p.Do(strings.Fields(step.line)...); step.want != "" && got != step.want {
				t.Errorf("%s: %q, want %q", step.line, got, step.want)
			}
		}
	}
	if got := redis.Do("FCALL", "zpurge", "1", "z"); got != ":0\r\n" {
		t.Error(got)
	}
	redis.Do("FCALL", "zpexpire", "1", "z", "1", "MEMBERS", "1", "x")
	wait.Elapse(10 * time.Millisecond)
	if got := redis.Do("FCALL", "zpurge", "1", "z"); got != ":1\r\n" {
		t.Error(got)
	}
	if got := redis.Do("EXISTS", "z", "zsetd:deadlines:{z}"); got != ":0\r\n" {
		t.Error(got)
	}
}

// TestLeaving exports a file with deadlines of members for Redis, as commands and as RDB: the
// functions there read the same deadlines.
func TestLeaving(t *testing.T) {
	library, err := os.ReadFile("../../../../cmd/zsetd/zsetd.lua")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f.db")
	deadlines := timedFile(t, path)
	for _, format := range []string{"commands", "rdb"} {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			dir := t.TempDir()
			export := archive.ExportCommands
			if format == "rdb" {
				export = archive.ExportRDB
			}
			done, err := export(&out, path, rdb.Redis7, time.Now(), nil)
			if err != nil || done.MemberDeadlines != int64(len(deadlines)) {
				t.Fatalf("%+v, %v", done, err)
			}
			if format == "rdb" {
				if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dial := judge.Start(t, "--dir", dir)
			redis := judge.NewPeer(dial(), dial())
			if format == "commands" {
				sendCommands(t, redis, out.Bytes())
			}
			if got := redis.Do("FUNCTION", "LOAD", "REPLACE", string(library)); strings.HasPrefix(got, "-") {
				t.Fatal(got)
			}
			checkDeadlines(t, redis, deadlines)
		})
	}
}

// sendCommands sends an export to a server, which must refuse none of it.
func sendCommands(t *testing.T, p *judge.Peer, commands []byte) {
	t.Helper()
	var lines [][]string
	for r := bufio.NewReader(bytes.NewReader(commands)); ; {
		v, err := protocol.DecodeFrom(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var argv []string
		for _, a := range v.([]any) {
			argv = append(argv, a.(string))
		}
		lines = append(lines, argv)
	}
	replies, err := p.Pipeline(lines)
	if err != nil {
		t.Fatal(err)
	}
	for i, reply := range replies {
		if strings.HasPrefix(reply, "-") {
			t.Fatalf("%.200q: %s", lines[i], reply)
		}
	}
}

// timedFile makes a file of sorted sets whose names have braces in all places, and returns the deadlines of
// their members m. All deadlines differ.
func timedFile(t *testing.T, path string) (deadlines map[string]string) {
	t.Helper()
	deadlines = map[string]string{}
	srv, err := server.New(server.Options{File: path})
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range bracedKeys() {
		deadlines[key] = strconv.Itoa(33e12 + i)
		for _, argv := range [][]any{
			{"ZADD", key, 1, "m", 2, "n"}, {"ZPEXPIREAT", key, deadlines[key], "MEMBERS", 1, "m"},
		} {
			if _, err := srv.Do(context.Background(), argv...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := srv.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	return deadlines
}

// eventFuzzer draws calls of the functions.
type eventFuzzer struct{ *rand.Rand }

func pick[T any](r eventFuzzer, list ...T) T { return list[r.IntN(len(list))] }

// eventCommand draws a command that only zsetd has.
func (r eventFuzzer) eventCommand(keys []string) []string {
	words := func(list ...string) []string { return list }
	maybe := func(one int, list ...string) []string {
		if r.IntN(one) == 0 {
			return list
		}
		return nil
	}
	member := func() string { return pick(r, "a", "b", "c", "d", "", "x y") }
	score := func() string {
		return pick(r, "1", "2", "2.5", "-3", "0", "1e3", "inf", "-inf", "10", "7", "0.1", pick(r, "nan", "x", "", "@now+", "@soon", "*", "1_0"))
	}
	bound := func() string {
		return pick(r, score(), "("+score(), "-inf", "+inf", "@now+1h", "(@now-1d", "@now-1h30m", "@nowms", "@now-5x")
	}
	time := func() string {
		return pick(r, "33177117420000", "33177117420001", "40000000000000", "1000", "1000", pick(r, "x", "-1", "", "99999999999999999999", "70368744177664", "1.5", "01", "@now-1h", "@soon"))
	}
	list := func(width int) []string {
		n := 1 + r.IntN(3)
		out := words("MEMBERS", pick(r, string(rune('0'+n)), string(rune('0'+n)), string(rune('0'+n)), string(rune('0'+n)), "0", "9", "x"))
		if r.IntN(8) != 0 {
			out[1] = string(rune('0' + n))
		}
		for range n {
			if width == 2 {
				out = append(out, pick(r, score(), "*", score()))
			}
			out = append(out, member())
		}
		return out
	}
	key := keys[0]
	if r.IntN(3) == 0 {
		key = pick(r, keys...)
	}
	var argv []string
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		argv = slices.Concat(words("zaddex", key), maybe(8, "NX"), maybe(8, "XX"), maybe(8, "GT"), maybe(8, "lt"), maybe(6, "CH"), maybe(8, "INCR"),
			maybe(2, "PXAT", time()), maybe(12, "KEEPTTL"), maybe(6, "ENX"), maybe(4, slices.Concat(words("MAXLEN", pick(r, "1", "2", "3", "0", "x")),
				maybe(3, "MAX"), maybe(3, "REJECT"))...), list(2))
	case 4, 5:
		argv = slices.Concat(words(pick(r, "zpexpireat", "zpexpireat", "zexpireat"), key, time()), maybe(2, pick(r, "NX", "XX", "GT", "LT")), list(1),
			maybe(4, pick(r, "nx", "XX", "GT", "LT", "KEEPTTL", "")), maybe(20, "MEMBERS", "1", "a"))
	case 6:
		argv = slices.Concat(words(pick(r, "zpexpiretime", "zexpiretime", "zpersist"), key), list(1))
	case 7:
		argv = slices.Concat(words("zpopbyscore", key, bound(), bound()), maybe(3, "MAX"), maybe(2, "COUNT", pick(r, "1", "2", "9", "0", "x")), maybe(20, "x"))
	case 8:
		argv = slices.Concat(words("zclaim", key, bound(), bound(), score()), maybe(3, "LEASE"), maybe(2, "COUNT", pick(r, "1", "2", "9", "0", "x")), maybe(20, "x"))
	default:
		argv = words("zremifeq", key)
		for range 1 + r.IntN(2) {
			argv = append(argv, score(), member())
		}
		argv = slices.Concat(argv, maybe(10, "1"))
	}
	return argv
}

// bracedKeys are names with braces and colons in all places.
func bracedKeys() []string {
	return []string{"z", "a", "{a}", ":{a}", "::{a}", "x{a}", "{a}x", "{a}{b}", "{a}x}", "", "{}", "a}b", "}", "{", "a{", "{x", ":", "a:{b}", "\x00", "{\n}", "\xff"}
}

// checkDeadlines asks the functions of a server for deadlines.
func checkDeadlines(t *testing.T, p *judge.Peer, deadlines map[string]string) {
	t.Helper()
	for key, at := range deadlines {
		if got, want := p.Do("FCALL_RO", "zpexpiretime", "1", key, "MEMBERS", "2", "m", "n"), "*2\r\n:"+at+"\r\n:-1\r\n"; got != want {
			t.Errorf("key %q: %q, want %q", key, got, want)
		}
	}
}

// TestLibrarySeparatesKeys gives members of keys deadlines with the functions in Redis: no key has
// those of another one.
func TestLibrarySeparatesKeys(t *testing.T) {
	dial := judge.Start(t)
	redis := judge.NewPeer(dial(), dial())
	source, err := os.ReadFile("../../../../cmd/zsetd/zsetd.lua")
	if err != nil {
		t.Fatal(err)
	}
	if got := redis.Do("FUNCTION", "LOAD", string(source)); strings.HasPrefix(got, "-") {
		t.Fatal(got)
	}
	deadlines := map[string]string{}
	for i, key := range bracedKeys() {
		deadlines[key] = strconv.Itoa(33e12 + i)
		redis.Do("ZADD", key, "2", "n")
		if got := redis.Do("FCALL", "zaddex", "1", key, "PXAT", deadlines[key], "MEMBERS", "1", "1", "m"); got != ":1\r\n" {
			t.Fatalf("%q: %s", key, got)
		}
	}
	checkDeadlines(t, redis, deadlines)
}
