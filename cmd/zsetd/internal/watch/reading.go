package watch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
)

// reading is INFO at one instant.
type reading struct {
	fields map[string]string
	at     time.Time // of this machine
}

// parse reads the lines of INFO.
func parse(text string, at time.Time) reading {
	r := reading{map[string]string{}, at}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && !strings.HasPrefix(name, "#") {
			r.fields[name] = value
		}
	}
	return r
}

// number returns a field, 0 if the server does not have it.
func (r reading) number(name string) float64 {
	n, _ := strconv.ParseFloat(r.fields[name], 64)
	return n
}

// part returns a number of a field that has several: calls of calls=1,usec=2.
func part(field, name string) float64 {
	for p := range strings.SplitSeq(field, ",") {
		if value, ok := strings.CutPrefix(p, name+"="); ok {
			n, _ := strconv.ParseFloat(value, 64)
			return n
		}
	}
	return 0
}

// keys returns the number of keys in all databases.
func (r reading) keys() (n float64) {
	for name, value := range r.fields {
		if strings.HasPrefix(name, "db") {
			n += part(value, "keys")
		}
	}
	return n
}

// rate returns how much a counter has grown in a second since a reading before. A server
// that was restarted counts from 0.
func (r reading) rate(before reading, name string) float64 {
	return perSecond(before.number(name), r.number(name), r.at.Sub(before.at))
}

func perSecond(before, now float64, took time.Duration) float64 {
	if now < before {
		before = 0
	}
	if took <= 0 {
		return 0
	}
	return (now - before) / took.Seconds()
}

// text returns the reply to a command, which is a text.
func text(c *client.Conn, words ...string) (string, error) {
	r, err := c.Do(words...)
	switch {
	case err != nil:
		return "", err
	case r.IsError():
		return "", errors.New(r.Text)
	case r.Kind != client.String && r.Kind != client.Verbatim:
		return "", fmt.Errorf("%s: the reply is no text", strings.Join(words, " "))
	}
	return r.Text, nil
}

// count formats a number for people, in at most 6 columns.
func count(n float64) string {
	switch {
	case n < 99_999.5:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n < 9_999_500:
		return fmt.Sprintf("%.0fk", n/1e3)
	case n < 9_999_500_000:
		return fmt.Sprintf("%.0fM", n/1e6)
	}
	return fmt.Sprintf("%.0fG", n/1e9)
}

// size formats a number of bytes for people.
func size(n float64) string {
	unit := 0
	for n >= 999.95 && unit < 4 {
		n, unit = n/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %cB", n, "KMGT"[unit-1])
}
