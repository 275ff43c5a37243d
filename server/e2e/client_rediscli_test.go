package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest"
)

// TestRedisCLI checks that redis-cli prints the messages of a live query, over both
// protocols.
func TestRedisCLI(t *testing.T) {
	if *against != "" {
		t.Skip("a real Redis has no live queries")
	}
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("no redis-cli")
	}
	t.Parallel()
	for _, protocol := range []string{"-2", "-3"} {
		t.Run("RESP"+protocol[1:], func(t *testing.T) {
			t.Parallel()
			srv := servertest.Run(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			const channel = "__query@0__:ZRANGE board 0 -1 WITHSCORES"
			cmd := exec.CommandContext(ctx, "redis-cli", "-u", "redis://"+srv.Addr(), protocol, "--csv", "SUBSCRIBE", channel)
			cmd.Env = append(os.Environ(), "TERM=dumb")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cancel()
			lines := bufio.NewScanner(out)
			expect := func(want string) {
				t.Helper()
				got := "Reading messages..."
				for strings.HasPrefix(got, "Reading messages...") {
					if !lines.Scan() {
						t.Fatalf("redis-cli has ended before %s", want)
					}
					got = lines.Text()
				}
				if got != want {
					t.Errorf("redis-cli prints %s, want %s", got, want)
				}
			}
			expect(`"subscribe","` + channel + `",1`)
			expect(`"message","` + channel + `","{\"result\":[]}"`)
			srv.Must("ZADD", "board", 1.5, "ann")
			expect(`"message","` + channel + `","{\"result\":[[\"ann\",1.5]]}"`)
			srv.Must("DEL", "board")
			expect(`"message","` + channel + `","{\"result\":[]}"`)
		})
	}
}
