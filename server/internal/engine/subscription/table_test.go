package subscription

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zsetd/zsetd/protocol"
)

type client struct {
	id    int
	names Names
}

func (c *client) Subscriptions() *Names { return &c.names }

// TestTable compares the table with a plain map of sets, under random changes.
func TestTable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	type key struct {
		kind Topic
		name string
	}
	var table Table[*client]
	model := map[key]map[*client]bool{}
	clients := make([]*client, 20)
	for i := range clients {
		clients[i] = &client{id: i}
	}
	names := []string{"a", "b", "c", "news:*", "*", "news:1", ""}
	for i := range 20_000 {
		c, k := clients[rnd.IntN(len(clients))], key{Topic(rnd.IntN(int(topics))), names[rnd.IntN(len(names))]}
		had, n := model[k][c], len(model[k])
		if rnd.IntN(2) == 0 {
			if added, first := table.Add(c, k.kind, k.name); added == had || first != (n == 0) {
				t.Fatalf("Add to %d: %t, %t, before: %t", n, added, first, had)
			}
			if model[k] == nil {
				model[k] = map[*client]bool{}
			}
			model[k][c] = true
		} else {
			if removed, last := table.Remove(c, k.kind, k.name); removed != had || last != (had && n == 1) {
				t.Fatalf("Remove from %d: %t, %t, before: %t", n, removed, last, had)
			}
			delete(model[k], c)
		}
		if c.names.Has(k.kind, []byte(k.name)) != model[k][c] {
			t.Fatal("Has differs")
		}
		if i%100 != 0 {
			continue
		}
		if err := table.Check(slices.Values(clients)); err != nil {
			t.Fatal(err)
		}
		for kind := range topics {
			all := 0
			for _, name := range names {
				want := slices.Collect(maps.Keys(model[key{kind, name}]))
				got := slices.Clone(table.Subscribers(kind, name))
				byID := func(a, b *client) int { return a.id - b.id }
				slices.SortFunc(want, byID)
				slices.SortFunc(got, byID)
				if !slices.Equal(got, want) {
					t.Fatalf("%q has %d subscribers, want %d", name, len(got), len(want))
				}
				if len(want) > 0 {
					all++
				}
			}
			if len(table.Names(kind)) != all || table.Len(kind) != all {
				t.Fatalf("%d names, want %d", table.Len(kind), all)
			}
		}
		want := len(model[key{Channels, "news:1"}]) + len(model[key{Patterns, "news:*"}]) + len(model[key{Patterns, "*"}]) + len(model[key{Patterns, "news:1"}])
		if got := table.Receivers(false, []byte("news:1")); got != want {
			t.Fatalf("%d receivers, want %d", got, want)
		}
		if got, want := table.Receivers(true, []byte("a")), len(model[key{Shards, "a"}]); got != want {
			t.Fatalf("%d receivers of a sharded channel, want %d", got, want)
		}
	}
	for _, c := range clients {
		for kind := range topics {
			for name := range c.names.All(kind) {
				table.Remove(c, kind, name)
			}
			if c.names.Count(kind) != 0 {
				t.Errorf("client %d has %d names left", c.id, c.names.Count(kind))
			}
		}
	}
	if err := table.Check(slices.Values(clients)); err != nil {
		t.Fatal(err)
	}
}

// TestRemoveBorrows checks that the table keeps no part of the name passed to Remove, whose
// memory the caller uses again.
func TestRemoveBorrows(t *testing.T) {
	for kind := range topics {
		var table Table[*client]
		first, second := &client{id: 1}, &client{id: 2}
		table.Add(first, kind, "news")
		table.Add(second, kind, "news")
		line := []byte("news")
		table.Remove(first, kind, protocol.View(line))
		copy(line, "else")
		if !second.names.Has(kind, []byte("news")) || second.names.Has(kind, line) {
			t.Errorf("kind %d: the other subscriber has the names %q", kind, slices.Collect(second.names.All(kind)))
		}
		if removed, last := table.Remove(second, kind, "news"); !removed || !last || table.Len(kind) != 0 {
			t.Errorf("kind %d: the other subscriber stays in the table: %q", kind, table.Names(kind))
		}
	}
}

func ExampleTable() {
	var table Table[*client]
	reader, archive := &client{id: 1}, &client{id: 2}
	table.Add(reader, Channels, "news:go")
	table.Add(archive, Patterns, "news:*")
	fmt.Println(table.Receivers(false, []byte("news:go")), table.Receivers(false, []byte("news:c")))
	for pattern, subscribers := range table.Matching("news:go") {
		fmt.Println(pattern, subscribers[0].id)
	}
	// Output:
	// 2 1
	// news:* 2
}
