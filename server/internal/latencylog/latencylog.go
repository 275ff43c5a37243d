package latencylog

import (
	"slices"
	"time"
)

// Log keeps the worst latencies of each kind of event. The zero value is empty. It is not
// safe for concurrent use.
type Log struct {
	Events map[string]*Series
}

// Series holds the latest samples of one event, the newest last.
type Series struct {
	Samples []Sample
	Max     int64 // milliseconds; since the start or LATENCY RESET
}

// Sample is the longest latency within one second.
type Sample struct{ At, Ms int64 } // at in seconds since 1970

// Most is the number of samples that are kept for one event.
const Most = 160

// Add records the duration of an event. O(Most).
func (l *Log) Add(event string, now time.Time, took time.Duration) {
	s := l.Events[event]
	if s == nil {
		if l.Events == nil {
			l.Events = map[string]*Series{}
		}
		s = &Series{}
		l.Events[event] = s
	}
	at, ms := now.Unix(), took.Milliseconds()
	s.Max = max(s.Max, ms)
	if n := len(s.Samples); n > 0 && s.Samples[n-1].At == at {
		s.Samples[n-1].Ms = max(s.Samples[n-1].Ms, ms)
		return
	}
	if len(s.Samples) == Most {
		s.Samples = slices.Delete(s.Samples, 0, 1)
	}
	s.Samples = append(s.Samples, Sample{at, ms})
}

// Summary returns the mean of the samples and its mean deviation, in milliseconds,
// and the mean interval between samples in seconds up to now. s has samples.
func (s *Series) Summary(now int64) (average, deviation int64, period float64) {
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
