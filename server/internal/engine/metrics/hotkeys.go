package metrics

import "time"

// HotKeysOptions say what a session measures.
type HotKeysOptions struct {
	TimeOf, BytesOf bool          // the metrics CPU and NET
	Count           int           // of keys that are reported
	Duration        time.Duration // after which the session ends; 0: it does not end by itself
	Sample          int64         // one command of so many is measured
	Slots           []bool        // the slots of keys that are measured, by number; nil: all
}

// HotKeys is one measurement. It is not for concurrent use.
type HotKeys struct {
	HotKeysOptions
	Start   time.Time
	Stopped time.Time     // zero while it measures
	CPU     *Top          // nanoseconds; nil without the metric
	Net     *Top          // bytes; nil without the metric
	All     HotKeysTotals // of all commands
	Chosen  HotKeysTotals // of commands on the slots
	Sampled HotKeysTotals // of those, the ones that were measured

	used         func() (system, user time.Duration)
	began, ended processor
}

// processor is the processor time of the process at an instant.
type processor struct{ system, user time.Duration }

// HotKeysTotals are sums over commands.
type HotKeysTotals struct {
	Time  time.Duration
	Bytes int64
}

func (t *HotKeysTotals) add(took time.Duration, bytes int64) {
	t.Time += took
	t.Bytes += bytes
}

// spare is the number of counters for each key that is reported.
const spare = 32

// NewHotKeys begins a session. used returns the processor time of the process so far.
func NewHotKeys(o HotKeysOptions, now time.Time, used func() (system, user time.Duration)) *HotKeys {
	s := &HotKeys{HotKeysOptions: o, Start: now, used: used}
	s.began.system, s.began.user = used()
	if o.TimeOf {
		s.CPU = NewTop(spare * o.Count)
	}
	if o.BytesOf {
		s.Net = NewTop(spare * o.Count)
	}
	return s
}

// Active reports whether the session measures. A session whose duration has passed ends.
func (s *HotKeys) Active(now time.Time) bool {
	if s.Stopped.IsZero() && s.Duration > 0 && now.Sub(s.Start) >= s.Duration {
		s.Stopped = s.Start.Add(s.Duration)
	}
	return s.Stopped.IsZero()
}

// Stop ends the session.
func (s *HotKeys) Stop(now time.Time) {
	if s.Active(now) {
		s.Stopped = now
		s.Processor()
	}
}

// Lasted returns for how long the session has measured.
func (s *HotKeys) Lasted(now time.Time) time.Duration {
	if s.Active(now) {
		return now.Sub(s.Start)
	}
	return s.Stopped.Sub(s.Start)
}

// Measure adds a command. Its time and bytes are divided among its keys; slot is theirs, and
// draw a random number.
func (s *HotKeys) Measure(keys [][]byte, slot int, took time.Duration, bytes int64, draw uint64) {
	s.All.add(took, bytes)
	if s.Slots != nil && (slot < 0 || !s.Slots[slot]) {
		return
	}
	s.Chosen.add(took, bytes)
	if len(keys) == 0 || draw%uint64(s.Sample) != 0 {
		return
	}
	s.Sampled.add(took, bytes)
	n := int64(len(keys))
	for _, key := range keys {
		if s.CPU != nil {
			s.CPU.Add(key, took.Nanoseconds()/n)
		}
		if s.Net != nil {
			s.Net.Add(key, bytes/n)
		}
	}
}

// Processor returns the processor time that the process has used while the session measured.
// If the session has ended by itself that is up to the first call since.
func (s *HotKeys) Processor() (system, user time.Duration) {
	if s.Stopped.IsZero() || s.ended == (processor{}) {
		s.ended.system, s.ended.user = s.used()
	}
	return s.ended.system - s.began.system, s.ended.user - s.began.user
}
