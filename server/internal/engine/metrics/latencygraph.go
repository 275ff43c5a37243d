package metrics

import (
	"fmt"
	"slices"
	"strings"
)

// The graph of LATENCY GRAPH: a column for each sample, its height on a scale of
// graphRows rows of three steps each, and below it its age.
const (
	graphColumns = 80
	graphRows    = 4
	graphSteps   = "_o#"
)

// Graph draws the samples, as LATENCY GRAPH does. now is in seconds since 1970. s has samples.
func (s *Latencies) Graph(name string, now int64) string {
	low, high := s.Samples[0].Ms, s.Samples[0].Ms
	for _, sample := range s.Samples {
		low, high = min(low, sample.Ms), max(high, sample.Ms)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", name, high, low, s.Max, strings.Repeat("-", graphColumns))
	first := true
	for part := range slices.Chunk(s.Samples, graphColumns) {
		if !first {
			b.WriteByte('\n')
		}
		first = false
		drawGraph(&b, part, low, high, now)
	}
	return b.String()
}

func drawGraph(b *strings.Builder, samples []Latency, low, high, now int64) {
	const steps = graphRows * len(graphSteps)
	line := make([]byte, len(samples))
	for row := range graphRows {
		for i, sample := range samples {
			step := min(int((sample.Ms-low)*int64(steps)/max(high-low, 1)), steps-1)
			step -= (graphRows - 1 - row) * len(graphSteps)
			switch {
			case step < 0:
				line[i] = ' '
			case step < len(graphSteps):
				line[i] = graphSteps[step]
			default:
				line[i] = '|'
			}
		}
		fmt.Fprintf(b, "%s\n", line)
	}
	b.WriteString(strings.Repeat(" ", len(samples)) + "\n")
	// The labels are vertical.
	for more, row := true, 0; more; row++ {
		more = false
		for i, sample := range samples {
			line[i] = ' '
			if label := ago(now - sample.At); row < len(label) {
				line[i], more = label[row], true
			}
		}
		if more {
			fmt.Fprintf(b, "%s\n", line)
		}
	}
}

// ago writes a time in the largest whole unit.
func ago(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm", seconds/60)
	case seconds < 24*3600:
		return fmt.Sprintf("%dh", seconds/3600)
	}
	return fmt.Sprintf("%dd", seconds/(24*3600))
}
