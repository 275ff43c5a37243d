package data_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestNearest compares the places that COUNT leaves of a search with Redis's. Many places
// are the same: there, Redis's choice and order are those of an unstable sort, while here
// the reply is the beginning of the reply without COUNT, which is the same in both.
func TestNearest(t *testing.T) {
	dial := judge.Start(t)
	real := judge.NewPeer(dial(), dial())
	ours := judge.Own(t, server.Options{})
	r := rand.New(rand.NewPCG(17, 4))
	for range 300 {
		add := []string{"GEOADD", "k"}
		for i := range 1 + r.IntN(4<<r.IntN(7)) {
			degrees := func() string { return "1." + strconv.Itoa(r.IntN(1+r.IntN(40))) }
			add = append(add, degrees(), degrees(), "m"+strconv.Itoa(i))
		}
		for _, p := range []*judge.Peer{ours, real} {
			p.Do("FLUSHALL")
			if reply := p.Do(add...); reply[0] != ':' {
				t.Fatal(reply)
			}
		}
		for range 5 {
			order := []string{"ASC", "DESC"}[r.IntN(2)]
			search := strings.Fields("GEOSEARCH k FROMLONLAT 1.1 1.2 BYRADIUS " + strconv.Itoa(r.IntN(100)) + " km WITHDIST " + order)
			n := 1 + r.IntN(20)
			limited := append(search[:len(search):len(search)], "COUNT", strconv.Itoa(n))
			whole := nearest(t, ours.Do(search...))
			if want := nearest(t, real.Do(search...)); !slices.Equal(whole, want) {
				t.Fatalf("%s\nof %q\nredis: %q\nzsetd: %q", search, add, want, whole)
			}
			got, want := nearest(t, ours.Do(limited...)), nearest(t, real.Do(limited...))
			if !slices.Equal(got, whole[:min(n, len(whole))]) {
				t.Fatalf("%s\nof %q\nwithout COUNT: %q\nwith it: %q", limited, add, whole, got)
			}
			distance := func(e [2]string) string { return e[1] }
			if !slices.EqualFunc(got, want, func(g, w [2]string) bool { return distance(g) == distance(w) }) {
				t.Fatalf("%s\nof %q\nredis: %q\nzsetd: %q", limited, add, want, got)
			}
		}
	}
}

// nearest returns the members and distances of a reply to GEOSEARCH WITHDIST.
func nearest(t *testing.T, reply string) (list [][2]string) {
	t.Helper()
	v, _, err := protocol.Decode([]byte(reply))
	if err != nil {
		t.Fatalf("%q: %v", reply, err)
	}
	leaves := transcript.Leaves(nil, v)
	for i := 0; i+1 < len(leaves); i += 2 {
		list = append(list, [2]string{leaves[i], leaves[i+1]})
	}
	return list
}

// TestPolygons compares the places within random polygons, and their distances, with Valkey's. Of polygons
// as wide as the earth Valkey 9.1 finds no places.
func TestPolygons(t *testing.T) {
	real, ours := judge.NewerServers()[1].Start(t), judge.Own(t, server.Options{})
	r := rand.New(rand.NewPCG(9, 23))
	degrees := func(limit, scale float64) string {
		return strconv.FormatFloat(min(max((2*r.Float64()-1)*scale, -limit), limit), 'f', r.IntN(6), 64)
	}
	for range 200 {
		scale := []float64{0.01, 1, 10, 40}[r.IntN(4)]
		add := []string{"GEOADD", "k"}
		for i := range 1 + r.IntN(60) {
			add = append(add, degrees(180, scale), degrees(85, scale), "m"+strconv.Itoa(i))
		}
		for _, p := range []*judge.Peer{ours, real} {
			p.Do("FLUSHALL")
			if reply := p.Do(add...); reply[0] != ':' {
				t.Fatal(reply)
			}
		}
		for range 10 {
			n := 3 + r.IntN(5)
			search := []string{"GEOSEARCH", "k", "BYPOLYGON", strconv.Itoa(n)}
			for range n {
				search = append(search, degrees(180, scale), degrees(85, scale))
			}
			search = append(search, "WITHDIST", "ASC")
			got, want := nearest(t, ours.Do(search...)), nearest(t, real.Do(search...))
			byName := func(a, b [2]string) int { return strings.Compare(a[0], b[0]) }
			slices.SortFunc(got, byName)
			slices.SortFunc(want, byName)
			if !slices.Equal(got, want) {
				t.Fatalf("%q\nof %q\nvalkey: %q\nzsetd:  %q", search, add, want, got)
			}
		}
	}
}
