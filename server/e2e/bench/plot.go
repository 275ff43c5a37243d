//go:build linux

package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The measures of the plot, in pixels.
const (
	plotLeft  = 240 // names of works
	plotWidth = 520 // of the axis
	plotRight = 120 // the number behind the longest bar, and the ratio
	plotTop   = 74
	barHeight = 9
	rowGap    = 9
)

// colour is that of the nth target.
func colour(n int) string { return []string{"#c0392b", "#1f6fb2", "#7a8b3c"}[n%3] }

// plot draws the CPU per operation of all works as an SVG: a bar for each
// server, on a logarithmic axis.
func (r *report) plot() string {
	lowest, highest := math.Inf(1), 0.0
	for _, w := range r.rows {
		for i := range r.targets {
			if v := w.cpu(i); v > 0 {
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
	rowHeight := len(r.targets)*barHeight + rowGap
	bottom := plotTop + len(r.rows)*rowHeight
	width, height := plotLeft+plotWidth+plotRight, bottom+30
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="11">`+"\n",
		width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text := func(x, y float64, anchor, style, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(s))
	}
	text(12, 22, "start", `font-size="15" font-weight="bold"`, "The server's CPU per operation, µs (shorter is better, logarithmic)")
	at := 12.0
	for i, t := range r.targets {
		fmt.Fprintf(&b, `<rect x="%.0f" y="35" width="12" height="12" fill="%s"/>`+"\n", at, colour(i))
		text(at+17, 45, "start", "", t.name)
		at += 90
	}
	text(plotLeft+plotWidth+plotRight-8, 45, "end", `fill="#666"`, r.targets[1].name+" : "+r.targets[0].name)
	for e := from; e <= to; e++ {
		v := math.Pow(10, e)
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1[1]f" y1="%d" y2="%d" stroke="#ccc"/>`+"\n", x(v), plotTop-6, bottom)
		text(x(v), plotTop-10, "middle", `fill="#666"`, fmt.Sprintf("%g", v))
		text(x(v), float64(bottom+14), "middle", `fill="#666"`, fmt.Sprintf("%g", v))
	}
	for n, w := range r.rows {
		y := plotTop + n*rowHeight
		middle := float64(y) + float64(len(r.targets)*barHeight)/2 + 4
		text(plotLeft-8, middle, "end", "", w.work.title())
		for i := range r.targets {
			v := w.cpu(i)
			top := y + i*barHeight
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", plotLeft, top, x(v)-plotLeft, barHeight-1, colour(i))
			text(x(v)+4, float64(top+barHeight-1), "start", `font-size="9" fill="#444"`, micros(v))
		}
		text(float64(width-8), middle, "end", `font-weight="bold"`, fmt.Sprintf("%.2f", w.ratio(1)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
