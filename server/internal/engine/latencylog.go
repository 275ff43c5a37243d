package engine

import (
	"slices"
	"time"
)

// LatencyLog keeps the worst latencies of each kind of event, at most one per
// second, for the LATENCY command.
type LatencyLog struct {
	Events map[string]*LatencySeries
}

// LatencySeries holds the latest samples of one event, the newest last.
type LatencySeries struct {
	Samples []LatencySample
	Max     int64 // since the start or LATENCY RESET
}

// LatencySample is the longest latency within one second.
type LatencySample struct{ At, Ms int64 } // at in seconds since 1970

const LatencySamples = 160 // kept for one event

// Add records the duration of an event, which exceeds the threshold.
func (l *LatencyLog) Add(event string, now time.Time, took time.Duration) {
	s := l.Events[event]
	if s == nil {
		if l.Events == nil {
			l.Events = map[string]*LatencySeries{}
		}
		s = &LatencySeries{}
		l.Events[event] = s
	}
	at, ms := now.Unix(), took.Milliseconds()
	s.Max = max(s.Max, ms)
	if n := len(s.Samples); n > 0 && s.Samples[n-1].At == at {
		s.Samples[n-1].Ms = max(s.Samples[n-1].Ms, ms)
		return
	}
	if len(s.Samples) == LatencySamples {
		s.Samples = slices.Delete(s.Samples, 0, 1)
	}
	s.Samples = append(s.Samples, LatencySample{at, ms})
}
