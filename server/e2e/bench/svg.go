//go:build linux

package main

import (
	"fmt"
	"html"
	"strings"
)

// An svg is a drawing. Coordinates are in pixels, from the top left.
type svg struct{ strings.Builder }

func newSVG(width, height, fontSize int) *svg {
	s := &svg{}
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="%d">`+"\n",
		width, height, fontSize)
	s.rect(0, 0, float64(width), height, "white")
	return s
}

// end returns the whole drawing.
func (s *svg) end() string { return s.String() + "</svg>\n" }

func (s *svg) rect(x, y int, width float64, height int, fill string) {
	fmt.Fprintf(s, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y, width, height, fill)
}

func (s *svg) line(x1, y1, x2, y2 float64, stroke string) {
	fmt.Fprintf(s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, stroke)
}

// text writes a text. The anchor, which is start, middle or end, is what is at x.
func (s *svg) text(x, y float64, anchor, style, text string) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(text))
}

// legend writes the names of the servers with their colours at y.
func (s *svg) legend(y int, names []string) {
	for i, name := range names {
		s.rect(12+90*i, y, 12, 12, colour(i))
		s.text(float64(29+90*i), float64(y+10), "start", `font-size="11"`, name)
	}
}

// colour returns the colour of server n.
func colour(n int) string { return []string{"#c0392b", "#1f6fb2", "#7a8b3c"}[n%3] }
