package glob_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestGlob asks zsetd and a real redis-server which of many keys match random
// patterns, made of the characters that mean something.
func TestGlob(t *testing.T) {
	rerun.Skip(t)
	dial := judge.Start(t)
	ours, theirs := judge.Own(t, server.Options{}), judge.NewPeer(dial(), dial())
	r := rand.New(rand.NewPCG(1, 0))
	text := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	set := []string{"MSET"}
	const letters = "abcB-[]^\\\x00\xff"
	for range 600 {
		set = append(set, text(letters, r.IntN(5)), "")
	}
	for range 100 {
		set = append(set, text("ab", 5+r.IntN(20)), "")
	}
	if a, b := ours.Do(set...), theirs.Do(set...); a != "+OK\r\n" || b != a {
		t.Fatalf("%q, %q", a, b)
	}
	var lines [][]string
	for range 5000 {
		pattern := text(letters+"***??[[]]--\\ab", 1+r.IntN(9))
		if r.IntN(4) == 0 {
			pattern = text("ab*?", 4+r.IntN(12))
		}
		lines = append(lines, []string{"KEYS", pattern})
	}
	lines = append(lines, []string{"KEYS", ""})
	for part := range slices.Chunk(lines, 100) {
		got, err := ours.Pipeline(part)
		if err != nil {
			t.Fatal(err)
		}
		want, err := theirs.Pipeline(part)
		if err != nil {
			t.Fatal(err)
		}
		for i := range part {
			g, _, _ := protocol.Decode([]byte(got[i]))
			w, _, _ := protocol.Decode([]byte(want[i]))
			if slices.Equal(judge.Sorted(g), judge.Sorted(w)) {
				continue
			}
			t.Errorf("%s: zsetd finds %q, Redis %q", transcript.Quote(part[i][1]), transcript.Elements(g, 1), transcript.Elements(w, 1))
		}
	}
}
