package admin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/version"
)

// LOLWUT draws a random picture: by default a sunflower, whose seed number i is at
// rank i, as in a sorted set; as VERSION 5 Georg Nees's Schotter, as VERSION 6 a
// town at night.

// lolwut is the handler of LOLWUT.
func lolwut(c *engine.Call) {
	picture := int64(7)
	if c.Len() >= 2 && c.Is("VERSION") {
		picture = c.Int()
	}
	// Sizes are optional; further arguments are ignored, as in Redis.
	size := func(initial, limit int64) int {
		if !c.More() {
			return int(initial)
		}
		return int(min(max(c.Int(), 1), limit))
	}
	draw, title := sunflower, "Sunflower, by rank and golden angle"
	switch picture {
	case 5:
		columns, perRow, perColumn := size(66, 1000), size(8, 200), size(12, 200)
		draw = func(r *rand.Rand) string { return schotter(r, columns, perRow, perColumn) }
		title = "Georg Nees - Schotter, plotter on paper, 1968"
	case 6:
		columns, rows := size(80, 1000), size(20, maxLines)
		draw = func(r *rand.Rand) string { return town(r, columns, rows) }
		title = "A town at night"
	}
	if !c.OK() {
		return
	}
	c.Reply.Verbatim("txt", draw(c.Rand())+"\n"+title+". Redis ver. "+version.Redis+"\n")
}

// canvas is a picture of dots; Braille characters show two by four of them.
type canvas struct {
	columns, rows int // characters
	cells         []byte
}

func newCanvas(width, height int) *canvas {
	columns, rows := (width+1)/2, (height+3)/4
	return &canvas{columns, rows, make([]byte, columns*rows)}
}

func (v *canvas) dot(x, y int) {
	if x < 0 || y < 0 || x >= v.columns*2 || y >= v.rows*4 {
		return
	}
	bit := byte(1) << (y%4 + x%2*3)
	if y%4 == 3 { // the lowest row was added to Braille later
		bit = 0x40 << (x % 2)
	}
	v.cells[y/4*v.columns+x/2] |= bit
}

func (v *canvas) line(x0, y0, x1, y1 float64) {
	steps := max(math.Abs(x1-x0), math.Abs(y1-y0), 1)
	for i := range int(steps) + 1 {
		f := float64(i) / steps
		v.dot(int(math.Round(x0+f*(x1-x0))), int(math.Round(y0+f*(y1-y0))))
	}
}

func (v *canvas) String() string {
	var b strings.Builder
	for i, cell := range v.cells {
		b.WriteRune(0x2800 + rune(cell))
		if i%v.columns == v.columns-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// maxLines is the greatest number of lines of a picture. Redis bounds the arguments
// of version 5 alone, and draws 300 MB in 4 s for LOLWUT VERSION 5 1000 1 200.
const maxLines = 1000

// schotter draws rows of squares that lose their order on the way down. Rows beyond
// maxLines are left out, except the first.
func schotter(r *rand.Rand, columns, perRow, perColumn int) string {
	width := columns * 2
	padding := 0
	if width > 4 {
		padding = 2
	}
	side := float64(max((width-2*padding)/perRow, 1))
	perColumn = min(perColumn, max(1, (4*maxLines-2*padding)/int(side)))
	v := newCanvas(width, int(side)*perColumn+2*padding)
	for row := range perColumn {
		disorder := float64(row) / float64(perColumn)
		for column := range perRow {
			x := float64(padding) + side*(float64(column)+0.5)
			y := float64(padding) + side*(float64(row)+0.5)
			if row > 0 {
				x += disorder * side / 3 * (r.Float64() - 0.5)
				y += disorder * side / 3 * (r.Float64() - 0.5)
			}
			square(v, x, y, side/math.Sqrt2, math.Pi/4+disorder*math.Pi/2*(r.Float64()-0.5))
		}
	}
	return v.String()
}

// square draws a square around x, y whose corners have this distance from it.
func square(v *canvas, x, y, radius, angle float64) {
	for i := range 4 {
		a, b := angle+float64(i)*math.Pi/2, angle+float64(i+1)*math.Pi/2
		v.line(x+radius*math.Cos(a), y+radius*math.Sin(a), x+radius*math.Cos(b), y+radius*math.Sin(b))
	}
}

// sunflower places each seed a golden angle after the previous one, at a distance
// that grows with the root of its rank, and petals around them.
func sunflower(r *rand.Rand) string {
	const size = 96
	const center = size / 2
	v := newCanvas(size, size)
	golden := math.Pi * (3 - math.Sqrt(5))
	turn := r.Float64() * 2 * math.Pi
	seeds := 250 + r.IntN(150)
	head := 0.62 * center
	for rank := range seeds {
		a := turn + float64(rank)*golden
		d := head * math.Sqrt(float64(rank)/float64(seeds))
		v.dot(int(math.Round(center+d*math.Cos(a))), int(math.Round(center+d*math.Sin(a))))
	}
	petals := 13 + 8*r.IntN(2) // Fibonacci numbers, as in nature
	for i := range petals {
		a := turn + 2*math.Pi*float64(i)/float64(petals)
		half := 0.8 * math.Pi / float64(petals)
		tip := 0.9*center + 4*r.Float64()
		for _, side := range []float64{-half, half} {
			v.line(center+1.05*head*math.Cos(a+side), center+1.05*head*math.Sin(a+side), center+tip*math.Cos(a), center+tip*math.Sin(a))
		}
	}
	return v.String()
}

// town draws houses in front of houses, darker when nearer, with lights in some of
// the nearest windows, in greys of the terminal.
func town(r *rand.Rand, columns, rows int) string {
	const sky, far, near, night = 252, 245, 238, 232
	shade := make([][]int, rows)
	for y := range shade {
		shade[y] = make([]int, columns)
		for x := range shade[y] {
			shade[y][x] = sky
		}
	}
	for depth, grey := range []int{far, near, night} {
		for x := -r.IntN(6); x < columns; {
			width := 4 + r.IntN(9)
			height := int(float64(rows) * (0.85 - 0.25*float64(depth)) * (0.4 + 0.6*r.Float64()))
			for y := rows - height; y < rows; y++ {
				for dx := range width {
					if x+dx < 0 || x+dx >= columns || y < 0 {
						continue
					}
					shade[y][x+dx] = grey
					if window := grey == night && dx%2 == 1 && dx < width-1 && (rows-y)%2 == 0; window && r.IntN(3) == 0 {
						shade[y][x+dx] = 229
					}
				}
			}
			x += width + r.IntN(4)
		}
	}
	var b strings.Builder
	for _, line := range shade {
		for _, grey := range line {
			fmt.Fprintf(&b, "\x1b[48;5;%dm ", grey)
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String()
}
