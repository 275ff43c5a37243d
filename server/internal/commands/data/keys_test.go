package data_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestKeyAllocations checks that commands that query keys, or change their deadlines,
// allocate nothing.
func TestKeyAllocations(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer s.Close()
	for i := range 1000 {
		s.Turn([][][]byte{{[]byte("SET"), fmt.Appendf(nil, "k%d", i), []byte("v")}}, nil)
		s.Written()
		s.Turn([][][]byte{{[]byte("EXPIRE"), fmt.Appendf(nil, "k%d", i), []byte("1000")}}, nil)
		s.Written()
	}
	for _, test := range []struct {
		name string
		next func(i int) string
		max  float64
	}{
		{"EXISTS", func(i int) string { return fmt.Sprintf("EXISTS k%d nokey", i) }, 0},
		{"TYPE", func(i int) string { return fmt.Sprintf("TYPE k%d", i) }, 0},
		{"TTL", func(i int) string { return fmt.Sprintf("TTL k%d", i) }, 0},
		{"EXPIRE of a key that has a deadline", func(i int) string { return fmt.Sprintf("EXPIRE k%d %d", i, 100+i) }, 0},
		{"DEL", func(i int) string { return fmt.Sprintf("DEL k%d", i) }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := enginetest.Allocations(t, s, test.next); got > test.max {
				t.Errorf("%v allocations, want at most %v", got, test.max)
			}
		})
	}
}

// TestScanComplete checks that SCAN returns every key that exists during the whole scan,
// while others are added and removed.
func TestScanComplete(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for i := range 5000 {
		enginetest.Do(t, srv, "SET", fmt.Sprintf("stays%d", i), "")
	}
	seen := map[string]bool{}
	cursor, calls := "0", 0
	for {
		reply := enginetest.Do(t, srv, "SCAN", cursor, "MATCH", "stays*", "COUNT", "7").([]any)
		for _, key := range reply[1].([]any) {
			seen[key.(string)] = true
		}
		if cursor = reply[0].(string); cursor == "0" {
			break
		}
		for i := range 20 {
			enginetest.Do(t, srv, "SET", fmt.Sprintf("goes%d:%d", calls, i), "")
			enginetest.Do(t, srv, "DEL", fmt.Sprintf("goes%d:%d", calls-3, i))
		}
		calls++
	}
	if len(seen) != 5000 {
		t.Errorf("%d keys of 5000 in %d calls", len(seen), calls)
	}
}

// RANDOMKEY draws every key equally often.
func TestRandomkeyFair(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	const keys, draws = 600, 60_000
	for i := range keys {
		enginetest.Do(t, srv, "SET", fmt.Sprint(i), "")
	}
	hits := map[any]float64{}
	for range draws {
		hits[enginetest.Do(t, srv, "RANDOMKEY")]++
	}
	const want = draws / keys
	chi := 0.0
	for i := range keys {
		d := hits[fmt.Sprint(i)] - want
		chi += d * d / want
	}
	// With that many degrees of freedom it is nearly normal; the limit is six deviations.
	if limit := keys + 6*math.Sqrt(2*keys); chi > limit {
		t.Errorf("chi square is %.0f, want at most %.0f", chi, limit)
	}
}

// TestWaitUnblocked checks that WAIT blocks until CLIENT UNBLOCK.
func TestWaitUnblocked(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, test := range []struct{ how, want string }{
		{"TIMEOUT", ":0\r\n"},
		{"ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"},
	} {
		woken := false
		s := srv.NewSession(engine.Peer{FD: -1, Wake: func() { woken = true }})
		if _, out, _ := s.Turn([][][]byte{{[]byte("WAIT"), []byte("1"), []byte("0")}}, nil); len(out) != 0 {
			t.Fatalf("WAIT 1 0: %q", out)
		}
		enginetest.Do(t, srv, "PING")
		if woken || srv.Blocked() != 1 {
			t.Fatal("WAIT 1 0 does not wait")
		}
		if n := enginetest.Do(t, srv, "CLIENT", "UNBLOCK", s.ID, test.how); n != int64(1) {
			t.Fatalf("CLIENT UNBLOCK: %v", n)
		}
		if out, _, _ := s.Take(); string(out) != test.want || !woken {
			t.Errorf("CLIENT UNBLOCK %s: %q, want %q", test.how, out, test.want)
		}
		s.Close()
	}
}

// TestExpiredKeysDoNotCount checks that DBSIZE counts the keys that exist, before the timer
// removes the others, and counts these where it does not.
func TestExpiredKeysDoNotCount(t *testing.T) {
	_, addr := enginetest.Start(t, map[string]string{"enable-debug-command": "yes"})
	c := enginetest.Dial(t, addr)
	for _, line := range []string{"MULTI", "SET stays v EX 1000", "SET past v EXAT 1", "DBSIZE"} {
		c.Call(line)
	}
	if got := fmt.Sprint(c.Call("EXEC")); got != "[OK OK 1]" {
		t.Error("with the timer: ", got)
	}
	c.Call("DEBUG SET-ACTIVE-EXPIRE 0")
	c.Call("SET past v EXAT 1")
	if got := c.Call("DBSIZE"); got != int64(2) {
		t.Error("without it: ", got)
	}
}
