package data_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/zsetd/zsetd/protocol"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestLargeSets checks that results of large sets, which share memory with them, are
// independent of later changes, and survive a restart.
func TestLargeSets(t *testing.T) {
	options := engine.Options{File: t.TempDir() + "/file"}
	srv, err := enginetest.New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { srv.Close() }()
	do := func(args ...any) any {
		t.Helper()
		reply, err := srv.Do(context.Background(), args...)
		if err != nil {
			t.Fatal(args, err)
		}
		return reply
	}
	type set = map[string]bool
	model := map[string]set{}
	compare := func() {
		t.Helper()
		for key, want := range model {
			got := set{}
			if len(want) > 0 {
				for _, m := range do("SMEMBERS", key).(protocol.Set) {
					got[m.(string)] = true
				}
			}
			if !maps.Equal(got, want) {
				t.Fatalf("%s has %d members, want %d", key, len(got), len(want))
			}
			if n := do("SCARD", key); n != int64(len(want)) {
				t.Fatalf("SCARD %s: %v, want %d", key, n, len(want))
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i, size := range []int{0, 3, 100, 600, 3000, 5000} {
		key := fmt.Sprint("set:", i)
		model[key] = set{}
		for range size {
			member := "member:" + strconv.Itoa(r.IntN(6000))
			if r.IntN(4) == 0 {
				member = strconv.Itoa(r.IntN(2000))
			}
			do("SADD", key, member)
			model[key][member] = true
		}
	}
	keys := slices.Sorted(maps.Keys(model))
	for range 120 {
		from := []string{keys[r.IntN(len(keys))], keys[r.IntN(len(keys))], keys[r.IntN(len(keys))]}[:1+r.IntN(3)]
		command := []string{"SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE"}[r.IntN(3)]
		result := set{}
		switch command {
		case "SUNIONSTORE":
			for _, key := range from {
				maps.Copy(result, model[key])
			}
		default:
			maps.Copy(result, model[from[0]])
			for _, key := range from[1:] {
				maps.DeleteFunc(result, func(m string, _ bool) bool { return model[key][m] != (command == "SINTERSTORE") })
			}
		}
		destination := fmt.Sprint("result:", r.IntN(4))
		args := []any{command, destination}
		for _, key := range from {
			args = append(args, key)
		}
		if n := do(args...); n != int64(len(result)) {
			t.Fatalf("%s %v: %v, want %d", command, from, n, len(result))
		}
		model[destination] = result
		for range 20 {
			key := destination
			if r.IntN(2) == 0 {
				key = from[0]
			}
			member := "member:" + strconv.Itoa(r.IntN(6000))
			if r.IntN(2) == 0 {
				do("SADD", key, member)
				model[key][member] = true
			} else {
				do("SREM", key, member)
				delete(model[key], member)
			}
		}
		compare()
	}
	popped := set{}
	for _, m := range do("SPOP", "set:5", "100000").(protocol.Set) {
		popped[m.(string)] = true
	}
	if !maps.Equal(popped, model["set:5"]) {
		t.Errorf("%d members popped of %d", len(popped), len(model["set:5"]))
	}
	model["set:5"] = nil
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	if srv, err = enginetest.New(options); err != nil {
		t.Fatal(err)
	}
	compare()
}
