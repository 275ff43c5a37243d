package forward

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zsetd/zsetd/server/internal/peers/remote"
)

// TestSlots checks which node has a slot, and in which order a scan visits the nodes.
func TestSlots(t *testing.T) {
	h := &Home{to: remote.Address{Cluster: true}, slots: make([]string, slotCount), primaries: []string{"b:1", "a:1", "c:1"}}
	for s := range h.slots {
		switch {
		case s < 100, s >= 300 && s < 400:
			h.slots[s] = "a:1"
		case s < 200:
			h.slots[s] = "b:1"
		case s == slotCount-1:
			h.slots[s] = "c:1"
		}
	}
	for slot, want := range map[int]string{-1: "b:1 <nil>", 0: "a:1 <nil>", 99: "a:1 <nil>", 100: "b:1 <nil>", 200: " no node of the cluster has slot 200", 300: "a:1 <nil>", slotCount - 1: "c:1 <nil>"} {
		addr, err := h.node(slot)
		if got := fmt.Sprint(addr, " ", err); got != want {
			t.Errorf("slot %d: %s, not %s", slot, got, want)
		}
	}
	const last = slotCount - 1
	for from, want := range map[int][2]int{0: {0, 100}, 50: {50, 100}, 100: {100, last}, 199: {199, last}, 200: {300, last}, 399: {399, last}, 400: {last, -1}, last: {last, -1}} {
		slot, next, err := h.scanned(from)
		if slot != want[0] || next != want[1] || err != nil {
			t.Errorf("a scan from slot %d: %d, then %d, %v; not %d", from, slot, next, err, want)
		}
	}
	if all, err := h.nodes(); err != nil || !slices.Equal(all, h.primaries) {
		t.Errorf("nodes: %q, %v", all, err)
	}
	h.slots[last], h.order = "", nil
	if _, _, err := h.scanned(400); err == nil || err.Error() != "no node of the cluster has slot 400" {
		t.Errorf("a scan of slots without a node: %v", err)
	}
	h.stale = false
	if h.moved(250, "c:1"); h.slots[250] != "c:1" || h.order != nil || h.stale {
		t.Errorf("moved to a node that is known: %q, %v, %v", h.slots[250], h.order, h.stale)
	}
	if slot, next, err := h.scanned(150); slot != 150 || next != 250 || err != nil {
		t.Errorf("after a move: %d, then %d, %v", slot, next, err)
	}
	if h.moved(251, "d:1"); h.slots[251] != "d:1" || !h.stale {
		t.Error("moved to a node that is not known, and the slots are not read again")
	}
	h.stale = false
	if h.moved(252, "a:1"); h.stale {
		t.Error("stale")
	}
	if h.lost(); !h.stale {
		t.Error("a node is lost, and the slots are not read again")
	}
	none := new(Home)
	none.moved(1, "a:1") // before the first use
	alone := &Home{to: remote.Address{Addrs: []string{"x:1", "y:1"}}}
	first, err := alone.node(5)
	if all, err2 := alone.nodes(); first != "x:1" || err != nil || err2 != nil || !slices.Equal(all, []string{"x:1"}) {
		t.Errorf("no cluster: %s, %v; %q, %v", first, err, all, err2)
	}
}

// TestSlotRange checks entries of CLUSTER SLOTS.
func TestSlotRange(t *testing.T) {
	node := func(host any, port any, more ...any) any { return append([]any{host, port}, more...) }
	for _, test := range []struct {
		entry any
		want  string
	}{
		{[]any{int64(0), int64(16383), node("a", int64(1), "id")}, "0 16383 [a:1] true"},
		{[]any{int64(5), int64(5), node("a", int64(1)), node("::1", int64(2)), node("", int64(3)), node(nil, int64(4))}, "5 5 [a:1 [::1]:2 :3 :4] true"},
		{[]any{int64(0), int64(16384), node("a", int64(1))}, "0 0 [] false"},
		{[]any{int64(-1), int64(5), node("a", int64(1))}, "0 0 [] false"},
		{[]any{int64(0), int64(5)}, "0 0 [] false"},
		{[]any{"0", int64(5), node("a", int64(1))}, "0 0 [] false"},
		{[]any{int64(0), "5", node("a", int64(1))}, "0 0 [] false"},
		{[]any{int64(0), int64(5), []any{"a"}}, "0 0 [] false"},
		{[]any{int64(0), int64(5), node("a", "1")}, "0 0 [] false"},
		{"x", "0 0 [] false"},
		{nil, "0 0 [] false"},
	} {
		first, last, addrs, ok := slotRange(test.entry)
		if got := fmt.Sprint(first, last, addrs, ok); got != test.want {
			t.Errorf("%v: %s, not %s", test.entry, got, test.want)
		}
	}
	for addr, want := range map[string]string{"a:1": "a:1", ":1": "from:1", "?:1": "from:1", "::1:7": "[::1]:7", "[::1]:7": "[::1]:7", "path": "path"} {
		if got := completeAddr(addr, "from:9"); got != want {
			t.Errorf("%s: %s, not %s", addr, got, want)
		}
	}
}
