//go:build linux

package main

import (
	"fmt"
	"math"
	"strings"
)

// A verdict is a target of the project with the measured value.
type verdict struct {
	aim    string
	met    bool
	result string
}

func (v verdict) String() string {
	word := "not reached"
	if v.met {
		word = "reached"
	}
	return fmt.Sprintf("%s: **%s**; %s", v.aim, word, v.result)
}

// Targets.
const (
	aimDeep     = 0.62 // maximum geometric mean of CPU per operation at P16 without scripts, relative to the reference
	aimSingle   = 0.82 // the same at P1
	aimLarge    = 0.5  // the same for each workload on the large sorted set
	aimIdleCPU  = 0.001
	aimIdleRSS  = 12e6
	aimAnswerMS = 50
)

// minMoreRatio is the minimum ratio that counts as more: one that is printed as 1.00 does
// not.
const minMoreRatio = 1.005

// verdicts returns the verdicts on zsetd beside the reference.
func (r *report) verdicts() (list []verdict) {
	first := r.targets[0].name
	among := func(aim string, n int, failing []string) {
		v := verdict{aim, len(failing) == 0, fmt.Sprintf("in all %d", n)}
		if !v.met {
			v.result = fmt.Sprintf("not in %d of %d: %s", len(failing), n, strings.Join(failing, "; "))
		}
		if n > 0 {
			list = append(list, v)
		}
	}
	var worse, large, late []string
	inAll, inLarge, atHalf := 0, 0, 0
	for _, w := range r.rows {
		said := fmt.Sprintf("%s %.2f", w.work.title(), w.ratio(own, 0))
		if inAll++; w.ratio(own, 0) >= minMoreRatio {
			worse = append(worse, said)
		}
		if w.work.halfLoadOf != "" {
			own, other := w.quantiles(own)[2], w.quantiles(0)[2]
			if atHalf++; own >= other*minMoreRatio {
				late = append(late, fmt.Sprintf("%s %s µs, not %s", w.work.title(), micros(own), micros(other)))
			}
		} else if w.work.large {
			if inLarge++; w.ratio(own, 0) >= aimLarge*minMoreRatio {
				large = append(large, said)
			}
		}
	}
	among("no more CPU per operation than "+first, inAll, worse)
	for _, m := range []struct {
		pipeline int
		aim      float64
	}{{16, aimDeep}, {1, aimSingle}} {
		mean, n := r.geometricMean(0, func(w work) bool { return w.pipeline == m.pipeline && !w.script() })
		if n > 0 {
			list = append(list, verdict{fmt.Sprintf("at most %.2f of it at P%d, in the geometric mean without scripts", m.aim, m.pipeline), mean < m.aim*minMoreRatio,
				fmt.Sprintf("%.2f, of %d works", mean, n)})
		}
	}
	var aboveFloor []string
	single := 0
	for _, row := range r.floor {
		if row.work.pipeline > 1 {
			continue
		}
		single++
		if ratio := row.ratio(own+1, 0); ratio >= aimFloor*minMoreRatio {
			aboveFloor = append(aboveFloor, fmt.Sprintf("%d clients %.2f", row.clients, ratio))
		}
	}
	among(fmt.Sprintf("at most %.2f of the floor for a PING at P1", aimFloor), single, aboveFloor)
	among(fmt.Sprintf("at most %.1f of it in each work on %s members in one set", aimLarge, grouped(r.members)), inLarge, large)
	var fat, churned []string
	for _, m := range r.memory {
		if ratio := m.liveOf(own) / m.liveOf(0); ratio >= minMoreRatio {
			fat = append(fat, fmt.Sprintf("%s %.2f", m.name, ratio))
		}
		if ratio := m.churnedOf(own) / m.churnedOf(0); ratio >= minMoreRatio {
			churned = append(churned, fmt.Sprintf("%s %.2f", m.name, ratio))
		}
	}
	among("no more memory than "+first, len(r.memory), fat)
	among("no more after churn", len(r.memory), churned)
	among("p99.9 at half load no later", atHalf, late)
	if len(r.idle.rss) > own {
		cpu, rss, answer := r.idle.cpu[own], float64(r.idle.rss[own]), r.idle.answer[own].Seconds()*1e3
		list = append(list,
			verdict{"idle less than 0.1 % of a core", cpu < aimIdleCPU, fmt.Sprintf("%.3f %%", cpu*100)},
			verdict{"idle less than 12 MB", rss < aimIdleRSS, fmt.Sprintf("%.1f MB", rss/1e6)},
			verdict{"the first reply less than 50 ms after the start", answer < aimAnswerMS, fmt.Sprintf("%.0f ms", answer)})
	}
	return list
}

// verdictText returns the verdicts as lines.
func (r *report) verdictText() string {
	var b strings.Builder
	for _, v := range r.verdicts() {
		fmt.Fprintf(&b, "%s\n", strings.ReplaceAll(v.String(), "**", ""))
	}
	return b.String()
}

// meansText says how much CPU an operation takes in the geometric mean, a line for each other target.
func (r *report) meansText() string {
	var b strings.Builder
	for _, i := range r.others() {
		mean := func(pipeline int, scripts bool) float64 {
			m, _ := r.geometricMean(i, func(w work) bool { return w.pipeline == pipeline && (scripts || !w.script()) })
			return m
		}
		if all := mean(1, true) + mean(16, true); !math.IsNaN(all) {
			fmt.Fprintf(&b, "CPU per operation relative to %s in the geometric mean: %.2f at P1, %.2f at P16; without scripts %.2f and %.2f\n",
				r.targets[i].name, mean(1, true), mean(16, true), mean(1, false), mean(16, false))
		}
	}
	return b.String()
}
