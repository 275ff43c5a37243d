//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
)

// A template is a request of some commands, in which there are gaps for numbers
// of 12 digits:
//
//	{r}    a random number below the number of members
//	{r/N}  a random number below N
//	{x}    like {r}, but the same in all of the request
//	{key}  a random number below the number of sets, the same in all of the request
//	{now}  how many requests were made of the template, all clients together
//	{old}  the same, less what is alive at a time
//
// Commands are divided by newlines, their words by spaces; {16} is 16 bytes.
type template struct {
	text     string // as RESP
	commands int
	gaps     []gap
	limits   limits
	clock    *atomic.Int64
}

// limits say how large the data are.
type limits struct {
	members int64 // of the large set
	sets    int64
	alive   int64 // events in all sets
}

// gap is a place that is filled in anew in every request.
type gap struct {
	at   int
	what string
	n    int64 // a random number is below it
}

const digits = 12

func parseTemplate(text string, l limits) (*template, error) {
	t := &template{limits: l, clock: new(atomic.Int64)}
	t.clock.Store(l.alive + 1)
	var b strings.Builder
	for command := range strings.Lines(text) {
		words := strings.Fields(command)
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, w := range words {
			w = strings.ReplaceAll(w, "{16}", "0123456789abcdef")
			var arg strings.Builder
			var gaps []gap
			for {
				before, rest, found := strings.Cut(w, "{")
				arg.WriteString(before)
				if !found {
					break
				}
				name, after, closed := strings.Cut(rest, "}")
				if !closed {
					return nil, fmt.Errorf("%q: a gap that does not end", w)
				}
				g := gap{at: arg.Len(), what: name}
				if err := g.resolve(l); err != nil {
					return nil, fmt.Errorf("%q: %w", w, err)
				}
				gaps = append(gaps, g)
				arg.WriteString(strings.Repeat("0", digits))
				w = after
			}
			fmt.Fprintf(&b, "$%d\r\n", arg.Len())
			for _, g := range gaps {
				g.at += b.Len()
				t.gaps = append(t.gaps, g)
			}
			b.WriteString(arg.String() + "\r\n")
		}
		t.commands++
	}
	t.text = b.String()
	return t, nil
}

// resolve finds out what the name of a gap means.
func (g *gap) resolve(l limits) (err error) {
	what, n, bounded := strings.Cut(g.what, "/")
	switch {
	case what == "r" && bounded:
		g.what = "r"
		g.n, err = strconv.ParseInt(n, 10, 64)
		if err == nil && g.n < 1 {
			err = fmt.Errorf("nothing is below %d", g.n)
		}
	case bounded:
		err = fmt.Errorf("{%s} is not a gap", g.what)
	case what == "r" || what == "x":
		g.n = l.members
	case what == "key":
		g.n = l.sets
	case what != "now" && what != "old":
		err = fmt.Errorf("{%s} is not a gap", what)
	}
	return err
}

// repeated returns the template p times, as one request. Each of them is a
// request to {now} and {key}.
func (t *template) repeated(p int) []byte { return []byte(strings.Repeat(t.text, p)) }

// fill writes numbers into a request that repeated made.
func (t *template) fill(request []byte, rnd *rand.Rand) {
	if len(t.gaps) == 0 {
		return
	}
	for start := 0; start < len(request); start += len(t.text) {
		key, x, now := int64(-1), int64(-1), int64(-1)
		for _, g := range t.gaps {
			var v int64
			switch g.what {
			case "r":
				v = rnd.Int64N(g.n)
			case "key":
				if key < 0 {
					key = rnd.Int64N(g.n)
				}
				v = key
			case "x":
				if x < 0 {
					x = rnd.Int64N(g.n)
				}
				v = x
			default:
				if now < 0 {
					now = t.clock.Add(1)
				}
				if v = now; g.what == "old" {
					v -= t.limits.alive
				}
			}
			putDigits(request[start+g.at:][:digits], v)
		}
	}
}

// putDigits writes a number with as many digits as there is room for.
func putDigits(b []byte, v int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
}
