package admin

import (
	"math"
	"strings"

	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// lolwut draws a sunflower whose seed number i is at rank i, as in a sorted set: a golden angle
// behind the previous one, at a distance that grows with the root of the rank. As in Redis,
// versions 5 and 6 have sizes; here these are columns and rows of Braille characters, which show
// two by four seeds each.
func lolwut(c *engine.Call) {
	sizes, given := [3]int64{48, 24}, 0
	if c.Len() >= 2 && c.Is("VERSION") {
		given = map[int64]int{5: 3, 6: 2}[c.Int()]
	}
	for i := range given {
		if c.More() {
			sizes[i] = min(max(c.Int(), 1), 1000)
		}
	}
	if !c.OK() {
		return
	}
	columns, rows := int(sizes[0]), int(sizes[1])
	cells := make([]byte, columns*rows)
	seeds := len(cells)
	for rank := range seeds {
		sin, cos := math.Sincos(float64(rank) * math.Pi * (3 - math.Sqrt(5)))
		distance := math.Sqrt(float64(rank) / float64(seeds)) // of the center, below 1
		x, y := int((1+distance*cos)*float64(columns)), int((1+distance*sin)*float64(2*rows))
		bits := [4][2]byte{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}} // of U+2800
		cells[y/4*columns+x/2] |= bits[y%4][x%2]
	}
	var b strings.Builder
	for i, cell := range cells {
		b.WriteRune(0x2800 + rune(cell))
		if i%columns == columns-1 {
			b.WriteByte('\n')
		}
	}
	c.Reply.Verbatim("txt", b.String()+"\nSunflower, by rank and golden angle. Redis ver. "+process.RedisVersion+"\n")
}
