package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// meter shows the progress of a tool: on a terminal as a bar, elsewhere as a line
// from time to time.
type meter struct {
	out      io.Writer
	terminal bool
	bar      *progressbar.ProgressBar
	step     string
	text     string // in place of step, done and total: see state
	done     int64
	total    int64
	lines    bool // lines were printed in this step
	quiet    bool // output has gone to the terminal, so no more bars are shown
	next     time.Time
}

// meterTime is the time between two lines.
const meterTime = 2 * time.Second

func newMeter(out io.Writer) *meter {
	return &meter{out: out, terminal: isTerminal(out)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// output is a writer that removes the bar before it writes, so that the two do not
// mix on the terminal.
type output struct {
	io.Writer
	meter *meter
	quiet bool // no bar follows it
}

func (o *output) Write(b []byte) (int, error) {
	if o.meter.bar != nil {
		_ = o.meter.bar.Clear()
	}
	if o.quiet {
		o.meter.bar, o.meter.quiet = nil, true
	}
	return o.Writer.Write(b)
}

// before returns a writer to w, standard output or error, that removes the bars of
// m. Standard output may be long and may stop within a line.
func (m *meter) before(w io.Writer, isOutput bool) io.Writer {
	if !m.terminal {
		return w
	}
	return &output{w, m, isOutput && isTerminal(w)}
}

// show updates the progress of a step.
func (m *meter) show(step string, done, total int64) {
	if step != m.step {
		m.end()
		m.step, m.next = step, time.Now().Add(meterTime)
		if m.terminal && !m.quiet {
			m.bar = newBar(m.out, step, total)
		}
	}
	m.done, m.total = done, total
	if m.terminal {
		if m.bar != nil {
			// An error is one of the terminal, and means that the bar is not
			// visible.
			_ = m.bar.Set64(done)
		}
		return
	}
	if now := time.Now(); now.After(m.next) {
		m.line()
		m.lines, m.next = true, now.Add(meterTime)
	}
}

// state updates the progress of a step that has a text of its own. done of total are
// keys.
func (m *meter) state(step, text string, done, total int64) {
	if step == m.step && total != m.total && m.bar != nil {
		m.bar.ChangeMax64(max(total, done))
	}
	if m.bar != nil && step == m.step {
		m.bar.Describe(text)
	}
	m.text = text
	m.show(step, done, total)
}

func newBar(out io.Writer, step string, total int64) *progressbar.ProgressBar {
	if total == 0 {
		total = -1 // unknown
	}
	options := []progressbar.Option{
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(step),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true),
	}
	if step != "write" { // the step counts keys
		options = append(options, progressbar.OptionShowBytes(true))
	}
	return progressbar.NewOptions64(total, options...)
}

func (m *meter) line() {
	if m.text != "" {
		fmt.Fprintln(m.out, m.text)
	} else if m.total > 0 {
		fmt.Fprintf(m.out, "%s: %.0f %%\n", m.step, 100*float64(m.done)/float64(m.total))
	} else {
		fmt.Fprintf(m.out, "%s: %s\n", m.step, size(m.done))
	}
}

// end ends the step: it removes the bar, or prints a last line if there were lines.
func (m *meter) end() {
	switch {
	case m.bar != nil:
		_ = m.bar.Clear()
		m.bar = nil
	case m.lines:
		m.line()
	}
	m.step, m.lines = "", false
}
