//go:build linux

package main

import (
	"fmt"
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
	n := 0
	for _, s := range list {
		n += len(s.curves)
	}
	b := newSVG(panelWidth*panelsInRow, legendSpace+panelHeight*((n+panelsInRow-1)/panelsInRow), 10)
	b.text(12, 22, "start", `font-size="15" font-weight="bold"`, "How cost grows (lower is better, but for throughput; axes are logarithmic)")
	b.legend(35, r.names())
	n = 0
	for _, s := range list {
		for _, c := range s.curves {
			fmt.Fprintf(b, "<g transform=\"translate(%d,%d)\">\n", panelWidth*(n%panelsInRow), legendSpace+panelHeight*(n/panelsInRow))
			b.panel(c, s)
			b.WriteString("</g>\n")
			n++
		}
	}
	return b.end()
}

// panel draws one curve.
func (b *svg) panel(c *curve, s scaling) {
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
	b.text(panelLeft, 20, "start", `font-size="11" font-weight="bold"`, c.title+", "+c.unit)
	if first < 0 {
		b.text(panelLeft, 60, "start", "", "nothing was measured")
		return
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
		b.line(panelLeft, y(v), right, y(v), "#ddd")
		b.text(panelLeft-5, y(v)+3.5, "end", `fill="#666"`, short(v))
	}
	for i := first; i <= last; i++ {
		b.line(x(i), bottom, x(i), bottom+4, "#ddd")
		b.text(x(i), bottom+15, "middle", `fill="#666"`, short(float64(s.at[i])))
	}
	b.text((panelLeft+right)/2, bottom+29, "middle", `fill="#666"`, s.what)
	fmt.Fprintf(b, `<path d="M%d %d V%d H%d" fill="none" stroke="#999"/>`+"\n", panelLeft, panelTop, bottom, right)
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
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"><title>%s: %s</title></circle>`+"\n",
				x(i), y(v), colour(t), grouped(s.at[i]), micros(v))
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6"/>`+"\n", path.String(), colour(t))
	}
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
