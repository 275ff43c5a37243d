package console

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// TestSeries checks the number of samples of each span, their distance, and that a sample has the
// mean of its time.
func TestSeries(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	for _, one := range spans() {
		s, keys := &series{span: one}, 0
		for second := range int((one.long + time.Hour).Seconds()) {
			late := time.Duration(second%7) * 20 * time.Millisecond // as timers are
			keys = second
			text := fmt.Sprintf("# Stats\r\ntotal_commands_processed:%d\r\n# Keyspace\r\ndb0:keys=%d\r\n", 7*second, keys)
			if _, err := s.add(&counters{at: begin.Add(time.Duration(second)*time.Second + late), info: parseInfo(text)}); err != nil {
				t.Fatal(err)
			}
		}
		var list []sample
		if err := json.Unmarshal(s.appendTo(nil), &list); err != nil {
			t.Fatal(err)
		}
		if want := int(one.long / one.step); len(list) != want || list[want-1].Keys < int64(keys)-int64(one.step.Seconds()) {
			t.Fatalf("%s: %d samples, the last %+v", one.name, len(list), list[len(list)-1])
		}
		for i := range list[1:] {
			if got := list[i+1].T - list[i].T; got < one.step.Milliseconds()-500 || got > one.step.Milliseconds()+500 || list[i].Ops < 6 || list[i].Ops > 8 {
				t.Fatalf("%s: %d commands a second, the next sample %d ms later", one.name, list[i].Ops, got)
			}
		}
	}
}

// TestLag checks that a late expiry is in the samples of its time alone.
func TestLag(t *testing.T) {
	t.Parallel()
	in := func(histogram string) *counters {
		return &counters{info: parseInfo("# Stats\r\nexpire_lag_histogram_usec:" + histogram + "\r\n")}
	}
	before, late, after := in("sum=0,count=0"), in("2=10,1000000=11,sum=990000,count=11"), in("2=30,1000000=31,sum=990020,count=31")
	if s := newSample(before, late); s.LagMs == nil || *s.LagMs < 500 {
		t.Errorf("a late expiry: %v", s.LagMs)
	}
	if s := newSample(late, after); s.LagMs == nil || *s.LagMs > 0.002 {
		t.Errorf("after it: %v", s.LagMs)
	}
	if s := newSample(after, after); s.LagMs != nil {
		t.Errorf("without an expiry: %v", *s.LagMs)
	}
}
