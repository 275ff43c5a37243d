//go:build linux

package main

import (
	"fmt"
	"math"
)

// Dimensions of the plot in pixels.
const (
	plotLeft  = 260 // names of workloads
	plotWidth = 500 // length of the axis
	plotRight = 120 // value after the longest bar, and the ratio
	plotTop   = 60
	plotHead  = 50 // title of a chart
	plotFoot  = 34
	barHeight = 9
	rowGap    = 9
)

// bars is a group of bars: a value for each server.
type bars struct {
	name   string
	values []float64
}

// plot draws the CPU per operation of all workloads, and the memory of all data
// sets, as an SVG with a bar for each server on a logarithmic axis.
func (r *report) plot() string {
	var cpu, memory []bars
	for _, w := range r.rows {
		group := bars{name: w.work.title()}
		for i := range r.targets {
			group.values = append(group.values, w.cpu(i))
		}
		cpu = append(cpu, group)
	}
	for _, m := range r.memory {
		live, churned := bars{name: m.name}, bars{name: "after churn"}
		for _, c := range m.cells {
			live.values = append(live.values, float64(c.live)/1e6)
			churned.values = append(churned.values, float64(c.churned)/1e6)
		}
		memory = append(memory, live, churned)
	}
	height := func(rows []bars) int {
		return plotHead + len(rows)*(len(r.targets)*barHeight+rowGap) + plotFoot
	}
	width, total := plotLeft+plotWidth+plotRight, plotTop-plotFoot/2+height(cpu)
	if len(memory) > 0 {
		total += height(memory)
	}
	s := newSVG(width, total, 11)
	s.legend(12, r.names())
	s.text(float64(width-8), 22, "end", `fill="#666"`, r.targets[own].name+" : "+r.targets[0].name)
	s.bars(plotTop, "The server's CPU per operation, µs (shorter is better, logarithmic)", cpu)
	if len(memory) > 0 {
		s.bars(plotTop+height(cpu), "Resident memory, MB (shorter is better, logarithmic)", memory)
	}
	return s.end()
}

// bars draws a chart with its title at the vertical position top.
func (s *svg) bars(top int, title string, rows []bars) {
	lowest, highest := math.Inf(1), 0.0
	for _, row := range rows {
		for _, v := range row.values {
			if v > 0 {
				lowest, highest = min(lowest, v), max(highest, v)
			}
		}
	}
	if highest == 0 {
		lowest, highest = 1, 1
	}
	from, to := math.Floor(math.Log10(lowest)), math.Ceil(math.Log10(highest))
	to = max(to, from+1)
	x := func(v float64) float64 {
		return plotLeft + plotWidth*max(math.Log10(max(v, 1e-9))-from, 0)/(to-from)
	}
	s.text(12, float64(top), "start", `font-size="15" font-weight="bold"`, title)
	top += plotHead - rowGap
	bottom := top
	if len(rows) > 0 {
		bottom += len(rows) * (len(rows[0].values)*barHeight + rowGap)
	}
	for e := from; e <= to; e++ {
		v := math.Pow(10, e)
		s.line(x(v), float64(top-6), x(v), float64(bottom), "#ccc")
		s.text(x(v), float64(top-10), "middle", `fill="#666"`, fmt.Sprintf("%g", v))
		s.text(x(v), float64(bottom+14), "middle", `fill="#666"`, fmt.Sprintf("%g", v))
	}
	for n, row := range rows {
		y := top + n*(len(row.values)*barHeight+rowGap)
		middle := float64(y) + float64(len(row.values)*barHeight)/2 + 4
		s.text(plotLeft-8, middle, "end", "", row.name)
		for i, v := range row.values {
			bar := y + i*barHeight
			s.rect(plotLeft, bar, x(v)-plotLeft, barHeight-1, colour(i))
			s.text(x(v)+4, float64(bar+barHeight-1), "start", `font-size="9" fill="#444"`, micros(v))
		}
		s.text(plotLeft+plotWidth+plotRight-8, middle, "end", `font-weight="bold"`, fmt.Sprintf("%.2f", row.values[own]/row.values[0]))
	}
}
