package metrics

import (
	"slices"
	"time"
)

// LatencyLog keeps the worst latencies of each kind of event. The zero value is empty. It is not
// safe for concurrent use.
type LatencyLog struct {
	Events map[string]*Latencies
}

// Latencies holds the latest samples of one event, the newest last.
type Latencies struct {
	Samples []Latency
	Max     int64 // milliseconds; since the start or LATENCY RESET
}

// Latency is the longest latency within one second.
type Latency struct{ At, Ms int64 } // at in seconds since 1970

// MaxSamples is the number of samples that are kept for one event.
const MaxSamples = 160

// Add records the duration of an event. O(MaxSamples).
func (l *LatencyLog) Add(event string, now time.Time, took time.Duration) {
	s := l.Events[event]
	if s == nil {
		if l.Events == nil {
			l.Events = map[string]*Latencies{}
		}
		s = &Latencies{}
		l.Events[event] = s
	}
	at, ms := now.Unix(), took.Milliseconds()
	s.Max = max(s.Max, ms)
	if n := len(s.Samples); n > 0 && s.Samples[n-1].At == at {
		s.Samples[n-1].Ms = max(s.Samples[n-1].Ms, ms)
		return
	}
	if len(s.Samples) == MaxSamples {
		s.Samples = slices.Delete(s.Samples, 0, 1)
	}
	s.Samples = append(s.Samples, Latency{at, ms})
}

// Summary returns the mean of the samples and its mean deviation, in milliseconds,
// and the mean interval between samples in seconds up to now. s has samples.
func (s *Latencies) Summary(now int64) (average, deviation int64, period float64) {
	n := int64(len(s.Samples))
	for _, sample := range s.Samples {
		average += sample.Ms
	}
	average /= n
	for _, sample := range s.Samples {
		deviation += max(sample.Ms-average, average-sample.Ms)
	}
	return average, deviation / n, float64(max(now-s.Samples[0].At, 1)) / float64(n)
}
