package migrate

import (
	"testing"

	"github.com/zsetd/zsetd/server/servertest"
)

// TestEnded checks that the end of a move is stored, and that no progress is after it: keys of
// the move that are deleted do not come back.
func TestEnded(t *testing.T) {
	srv := servertest.Run(t)
	o := moveOf(t, srv.Addr(), srv.Addr())
	m := newMove(&o)
	m.t = &target{rdb: clientOf(t, srv.Addr()), product: product{"zsetd", 8, 6}, note: func(string) {}}
	if err := m.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.handOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := must(t, clientOf(t, srv.Addr()), "HGET", progressKey, fieldDone); got != "1" {
		t.Errorf("the progress says %v", got)
	}
	if err := m.clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.save(t.Context()); err != nil || !m.hasEnded() {
		t.Errorf("the move has not ended: %v", err)
	}
	if got := must(t, clientOf(t, srv.Addr()), "DBSIZE"); got != int64(0) {
		t.Errorf("the target has %v keys", got)
	}
}
