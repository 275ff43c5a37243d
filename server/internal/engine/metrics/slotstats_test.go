package metrics_test

import (
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

func TestSlotKinds(t *testing.T) {
	for text, want := range map[string]string{
		"yes": "yes", "no": "no", "NET cpu": "cpu net", "mem": "mem", "net no": "net", "cpu net mem": "yes", "": "", "cpu x": "",
	} {
		k, ok := metrics.ParseSlotKinds(text)
		if ok != (want != "") || ok && k.String() != want {
			t.Errorf("%q: %q, %v", text, k, ok)
		}
	}
}

func TestStats(t *testing.T) {
	var s metrics.SlotStats
	s.Add(7, metrics.Work{Time: time.Second, In: 1, Out: 2})
	s.Add(7, metrics.Work{In: 3})
	s.Add(8, metrics.Work{Out: 5})
	if got := s.Of(7); got != (metrics.Work{Time: time.Second, In: 4, Out: 2}) {
		t.Errorf("%+v", got)
	}
	if s.Forget(7); s.Of(7) != (metrics.Work{}) || s.Of(8).Out != 5 {
		t.Errorf("%+v %+v", s.Of(7), s.Of(8))
	}
	if s.Reset(); s.Of(8) != (metrics.Work{}) {
		t.Errorf("%+v", s.Of(8))
	}
}
