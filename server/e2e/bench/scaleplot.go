//go:build linux

package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Dimensions of the plot of scalings in pixels. Its panels are side by side.
const (
	panelsInRow = 3
	panelWidth  = 300
	panelHeight = 210
	panelLeft   = 46 // numbers of the vertical axis
	panelRight  = 14
	panelTop    = 34 // title
	panelBottom = 40 // numbers and name of the horizontal axis
	legendSpace = 56
)

// scalePlot draws all curves as an SVG, each in its own panel with logarithmic
// axes.
func (r *report) scalePlot(list []scaling) string {
	var panels []string
	for _, s := range list {
		for _, c := range s.curves {
			x := panelWidth * (len(panels) % panelsInRow)
			y := legendSpace + panelHeight*(len(panels)/panelsInRow)
			panels = append(panels, fmt.Sprintf("<g transform=\"translate(%d,%d)\">\n%s</g>\n", x, y, c.panel(s)))
		}
	}
	width, height := panelWidth*panelsInRow, legendSpace+panelHeight*((len(panels)+panelsInRow-1)/panelsInRow)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="10">`+"\n",
		width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	b.WriteString(`<text x="12" y="22" font-size="15" font-weight="bold">How cost grows (lower is better, but for throughput; axes are logarithmic)</text>` + "\n")
	for i, t := range r.targets {
		fmt.Fprintf(&b, `<rect x="%d" y="35" width="12" height="12" fill="%s"/><text x="%d" y="45" font-size="11">%s</text>`+"\n",
			12+90*i, colour(i), 29+90*i, html.EscapeString(t.name))
	}
	for _, p := range panels {
		b.WriteString(p)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// panel draws one curve.
func (c *curve) panel(s scaling) string {
	var b strings.Builder
	text := func(x, y float64, anchor, style, t string) { svgText(&b, x, y, anchor, style, t) }
	low, high := math.Inf(1), 0.0
	first, last := -1, -1
	for i, values := range c.values {
		for _, v := range values {
			if v > 0 {
				low, high = min(low, v), max(high, v)
				if first < 0 {
					first = i
				}
				last = i
			}
		}
	}
	text(panelLeft, 20, "start", `font-size="11" font-weight="bold"`, c.title+", "+c.unit)
	if first < 0 {
		text(panelLeft, 60, "start", "", "nothing was measured")
		return b.String()
	}
	low, high = low/1.25, high*1.25
	if narrow := high / low; narrow < 4 { // shows nearly equal values as nearly equal
		low, high = low/math.Sqrt(4/narrow), high*math.Sqrt(4/narrow)
	}
	const right, bottom = panelWidth - panelRight, panelHeight - panelBottom
	from, to := math.Log(float64(s.at[first])), math.Log(float64(s.at[last]))
	x := func(i int) float64 {
		if from == to {
			return (panelLeft + right) / 2
		}
		return panelLeft + 8 + (right-panelLeft-16)*(math.Log(float64(s.at[i]))-from)/(to-from)
	}
	y := func(v float64) float64 {
		return bottom - (bottom-panelTop)*math.Log(v/low)/math.Log(high/low)
	}
	for _, v := range ticks(low, high) {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f" stroke="#ddd"/>`+"\n", panelLeft, right, y(v))
		text(panelLeft-5, y(v)+3.5, "end", `fill="#666"`, short(v))
	}
	for i := first; i <= last; i++ {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1[1]f" y1="%d" y2="%d" stroke="#ddd"/>`+"\n", x(i), bottom, bottom+4)
		text(x(i), bottom+15, "middle", `fill="#666"`, short(float64(s.at[i])))
	}
	text((panelLeft+right)/2, bottom+29, "middle", `fill="#666"`, s.what)
	fmt.Fprintf(&b, `<path d="M%d %d V%d H%d" fill="none" stroke="#999"/>`+"\n", panelLeft, panelTop, bottom, right)
	for t := range c.values[first] {
		var path strings.Builder
		for i := first; i <= last; i++ {
			v := c.values[i][t]
			if !(v > 0) {
				continue
			}
			word := "L"
			if path.Len() == 0 {
				word = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1f ", word, x(i), y(v))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"><title>%s: %s</title></circle>`+"\n",
				x(i), y(v), colour(t), grouped(s.at[i]), micros(v))
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6"/>`+"\n", path.String(), colour(t))
	}
	return b.String()
}

// ticks returns round numbers between low and high: 1, 2 and 5 times powers of ten,
// or only the powers if these suffice.
func ticks(low, high float64) (list []float64) {
	steps := []float64{1, 2, 5}
	if high/low > 300 {
		steps = steps[:1]
	}
	for e := math.Floor(math.Log10(low)); e <= math.Log10(high); e++ {
		for _, m := range steps {
			if v := m * math.Pow(10, e); v >= low && v <= high {
				list = append(list, v)
			}
		}
	}
	return list
}

// short formats a number for an axis: 20k, 3M.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}
