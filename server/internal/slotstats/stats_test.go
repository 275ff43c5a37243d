package slotstats_test

import (
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/slotstats"
)

func TestKinds(t *testing.T) {
	for text, want := range map[string]string{
		"yes": "yes", "no": "no", "NET cpu": "cpu net", "mem": "mem", "net no": "net", "cpu net mem": "yes", "": "", "cpu x": "",
	} {
		k, ok := slotstats.ParseKinds(text)
		if ok != (want != "") || ok && k.String() != want {
			t.Errorf("%q: %q, %v", text, k, ok)
		}
	}
}

func TestStats(t *testing.T) {
	var s slotstats.Stats
	s.Add(7, slotstats.Work{Time: time.Second, In: 1, Out: 2})
	s.Add(7, slotstats.Work{In: 3})
	s.Add(8, slotstats.Work{Out: 5})
	if got := s.Of(7); got != (slotstats.Work{Time: time.Second, In: 4, Out: 2}) {
		t.Errorf("%+v", got)
	}
	if s.Forget(7); s.Of(7) != (slotstats.Work{}) || s.Of(8).Out != 5 {
		t.Errorf("%+v %+v", s.Of(7), s.Of(8))
	}
	if s.Reset(); s.Of(8) != (slotstats.Work{}) {
		t.Errorf("%+v", s.Of(8))
	}
}
