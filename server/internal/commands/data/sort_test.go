package data_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestSortRange compares ranges of LIMIT with those of a model, which sorts all: elements with equal
// sort keys keep their order.
func TestSortRange(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 10, 500} {
		enginetest.Must(t, srv, "FLUSHALL")
		elements := make([]string, n)
		weights := map[string]string{}
		for i, k := range r.Perm(n) {
			element := fmt.Sprint("e", k)
			elements[i] = element
			enginetest.Do(t, srv, "RPUSH", "l", element)
			if k := r.IntN(1 + n/5); k > 0 {
				weights[element] = fmt.Sprint(k)
				enginetest.Do(t, srv, "SET", "w_"+element, k)
			}
		}
		for range 200 {
			text, desc := r.IntN(2) == 0, r.IntN(2) == 0
			want := slices.Clone(elements)
			slices.SortStableFunc(want, func(a, b string) int {
				var order int
				if text {
					order = strings.Compare(weights[a], weights[b])
				} else {
					order = cmp.Or(cmp.Compare(len(weights[a]), len(weights[b])), strings.Compare(weights[a], weights[b]), strings.Compare(a, b))
				}
				if desc {
					return -order
				}
				return order
			})
			start := r.IntN(n + 1)
			count := r.IntN(n - start + 1)
			args := []any{"SORT", "l", "BY", "w_*", "LIMIT", start, count}
			if text {
				args = append(args, "ALPHA")
			}
			if desc {
				args = append(args, "DESC")
			}
			reply := enginetest.Do(t, srv, args...)
			if got, want := fmt.Sprint(reply), fmt.Sprint(want[start:start+count]); got != want {
				t.Fatalf("%v of %d: %s, want %s", args, n, got, want)
			}
		}
	}
}
