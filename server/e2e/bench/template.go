//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
)

// A template is a request of one or more commands with placeholders for numbers of
// 12 digits:
//
//	{r}    a random number below the number of members
//	{r/N}  a random number below N
//	{x}    like {r}, but the same in the whole request
//	{key}  a random number below the number of sets, the same in the whole request
//	{now}  the number of requests made from the template, by all clients
//	{old}  {now} minus the number of live events
//
// Commands are separated by newlines, words by spaces; {16} is 16 bytes, {_} a space in a word.
type template struct {
	text     string // in RESP
	commands int
	gaps     []placeholder
	limits   limits
	clock    *atomic.Int64
}

// limits are the sizes of the data.
type limits struct {
	members int64 // members of the large set
	sets    int64
	alive   int64 // events in all sets
}

// placeholder is a placeholder that is filled in each request.
type placeholder struct {
	at   int
	what string
	n    int64 // exclusive bound of a random number
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
			w = strings.NewReplacer("{16}", "0123456789abcdef", "{_}", " ").Replace(w)
			var arg strings.Builder
			var gaps []placeholder
			for {
				before, rest, found := strings.Cut(w, "{")
				arg.WriteString(before)
				if !found {
					break
				}
				name, after, closed := strings.Cut(rest, "}")
				if !closed {
					return nil, fmt.Errorf("%q: unterminated placeholder", w)
				}
				g := placeholder{at: arg.Len(), what: name}
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

// resolve determines the meaning of a placeholder.
func (g *placeholder) resolve(l limits) (err error) {
	what, n, bounded := strings.Cut(g.what, "/")
	switch {
	case what == "r" && bounded:
		g.what = "r"
		g.n, err = strconv.ParseInt(n, 10, 64)
		if err == nil && g.n < 1 {
			err = fmt.Errorf("no number is below %d", g.n)
		}
	case bounded:
		err = fmt.Errorf("{%s} is not a placeholder", g.what)
	case what == "r" || what == "x":
		g.n = l.members
	case what == "key":
		g.n = l.sets
	case what != "now" && what != "old":
		err = fmt.Errorf("{%s} is not a placeholder", what)
	}
	return err
}

// repeated returns p copies of the template as one request. For {now} and {key}
// each copy is a request.
func (t *template) repeated(p int) []byte { return []byte(strings.Repeat(t.text, p)) }

// fill fills in the numbers of a request from repeated.
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

// putDigits writes a number with len(b) digits.
func putDigits(b []byte, v int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
}
