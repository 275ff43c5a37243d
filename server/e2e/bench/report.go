//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// own is the index of zsetd among the targets. The first is the reference.
const own = 1

// report has the results of a run.
type report struct {
	targets               []target
	rows                  []row
	memory                []memoryRow
	idle                  idleRow
	floor                 []floorRow
	replication           []replicationRow
	durable               []row
	starts                []startRow
	live                  []liveRow
	machine               string
	loadBefore, loadAfter string
	begun                 time.Time
	members               int64
	options               options
}

// row has the results of a workload: for each target, the rounds.
type row struct {
	work    work
	samples [][]*sample
}

func median(samples []*sample, of func(*sample) float64) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// cpu returns the microseconds per operation of a target.
func (w row) cpu(target int) float64 { return median(w.samples[target], (*sample).perOp) }

// rate returns the operations per second of a target.
func (w row) rate(target int) float64 { return median(w.samples[target], (*sample).perSec) }

// ratio returns the CPU per operation of one target relative to that of another one.
func (w row) ratio(target, other int) float64 { return w.cpu(target) / w.cpu(other) }

// quantiles returns p50, p99 and p99.9 of all rounds, in microseconds.
func (w row) quantiles(target int) [3]float64 {
	var all histogram
	for _, s := range w.samples[target] {
		all.merge(&s.latency)
	}
	var out [3]float64
	for i, q := range []float64{0.5, 0.99, 0.999} {
		out[i] = float64(all.quantile(q).Nanoseconds()) / 1e3
	}
	return out
}

// halfLoad returns half of the first target's rate for a workload, 0 if it did not
// run.
func (r *report) halfLoad(title string) float64 {
	for _, w := range r.rows {
		if w.work.title() == title {
			return w.rate(0) / 2
		}
	}
	return 0
}

// cells returns the texts of a row, one for each of columns.
func (r *report) cells(w row) []string {
	var cpu, rates []string
	var latencies [3][]string
	for i := range r.targets {
		cpu = append(cpu, micros(w.cpu(i)))
		rates = append(rates, fmt.Sprintf("%.0f", w.rate(i)/1000))
		for k, q := range w.quantiles(i) {
			latencies[k] = append(latencies[k], micros(q))
		}
	}
	out := append([]string{w.work.title()}, cpu...)
	out = append(append(out, r.ratios(w.cpu)...), strings.Join(rates, " · "))
	for _, l := range latencies {
		out = append(out, strings.Join(l, " · "))
	}
	return out
}

func (r *report) columns() []string {
	out := []string{"work"}
	for _, t := range r.targets {
		out = append(out, t.name+" µs")
	}
	return append(append(out, r.ratioColumns()...), "1000/s", "p50 µs", "p99 µs", "p99.9 µs")
}

// others returns the indexes of the targets with which zsetd is compared: of none if it is alone.
func (r *report) others() (list []int) {
	for i := range r.targets {
		if i != own && len(r.targets) > own {
			list = append(list, i)
		}
	}
	return list
}

// ratioColumns returns the headers of ratios.
func (r *report) ratioColumns() (list []string) {
	for _, i := range r.others() {
		list = append(list, r.targets[own].name+" : "+r.targets[i].name)
	}
	return list
}

// ratios returns a quantity of zsetd relative to that of each other target.
func (r *report) ratios(of func(target int) float64) (list []string) {
	for _, i := range r.others() {
		list = append(list, fmt.Sprintf("%.2f", of(own)/of(i)))
	}
	return list
}

// micros formats a number with three significant digits, or all digits before the
// point.
func micros(v float64) string {
	switch {
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// grouped formats a number with its digits in groups of three.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// aligned returns a line of the printed table.
func aligned(cells []string) string {
	var b strings.Builder
	for i, c := range cells {
		width := 21
		if i == 0 {
			width = -33
		} else if len(cells) > 8 && i > len(cells)-4 {
			width = 24
		}
		fmt.Fprintf(&b, "%*s", width, c)
	}
	return b.String()
}

func (r *report) memoryColumns() []string {
	out := []string{"memory (RSS)"}
	for _, t := range r.targets {
		out = append(out, t.name+" MB")
	}
	out = append(append(out, r.ratioColumns()...), "after churn MB")
	return append(append(out, r.ratioColumns()...), "peak MB", "replaced, times")
}

func (r *report) memoryCells(m memoryRow) []string {
	var live, churned, peak, times []string
	mega := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }
	for _, c := range m.cells {
		live = append(live, mega(c.live))
		churned = append(churned, mega(c.churned))
		peak = append(peak, mega(c.peak))
		times = append(times, strings.TrimSuffix(fmt.Sprintf("%.1f", c.times), ".0"))
	}
	out := append([]string{m.name}, live...)
	out = append(append(out, r.ratios(m.liveOf)...), strings.Join(churned, " · "))
	return append(append(out, r.ratios(m.churnedOf)...), strings.Join(peak, " · "), strings.Join(times, " · "))
}

func (m memoryRow) liveOf(target int) float64    { return float64(m.cells[target].live) }
func (m memoryRow) churnedOf(target int) float64 { return float64(m.cells[target].churned) }

// geometricMean returns the geometric mean of zsetd's ratios to another target over the
// chosen workloads, and their number.
func (r *report) geometricMean(other int, chosen func(work) bool) (mean float64, n int) {
	sum := 0.0
	for _, w := range r.rows {
		if w.work.halfLoadOf == "" && chosen(w.work) && w.cpu(other) > 0 && w.cpu(own) > 0 { // at least one tick
			sum += math.Log(w.ratio(own, other))
			n++
		}
	}
	return math.Exp(sum / float64(n)), n
}

func (r *report) idleText() string {
	var b strings.Builder
	for i, t := range r.targets {
		fmt.Fprintf(&b, "%s answers %.0f ms after its start; idle it takes %.1f MB and %.3f %% of a core\n",
			t.name, r.idle.answer[i].Seconds()*1e3, float64(r.idle.rss[i])/1e6, r.idle.cpu[i]*100)
	}
	return b.String()
}

// markdown returns the section for RESULTS.md.
func (r *report) markdown(plot string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s (%s), with %d clients on the same machine, %d rounds of %v; load average before %s, after %s.\n",
		r.begun.UTC().Format(time.DateOnly), r.machine, r.options.clients, r.options.rounds, r.options.length, r.loadBefore, r.loadAfter)
	fmt.Fprintf(&b, "µs are of the server's CPU per operation; where a column has several numbers, they are those of %s.\n", strings.Join(r.names(), " · "))
	if plot != "" {
		fmt.Fprintf(&b, "\n![CPU per operation](%s)\n", plot)
	}
	markdownTable(&b, r.columns(), r.rows, r.cells)
	markdownTable(&b, r.memoryColumns(), r.memory, r.memoryCells)
	if len(r.floor) > 0 {
		markdownTable(&b, r.floorColumns(), r.floor, r.floorCells)
	}
	if len(r.durable) > 0 {
		markdownTable(&b, r.durableColumns(), r.durable, r.durableCells)
	}
	b.WriteByte('\n')
	for line := range strings.Lines(r.meansText() + r.idleText()) {
		b.WriteString("- " + line)
	}
	b.WriteString("\nTargets, and whether this run reaches them:\n\n")
	for _, v := range r.verdicts() {
		b.WriteString("- " + v.String() + "\n")
	}
	return b.String()
}

// names returns the names of the targets.
func (r *report) names() (list []string) {
	for _, t := range r.targets {
		list = append(list, t.name)
	}
	return list
}

// markdownTable writes a table with the cells of each row.
func markdownTable[T any](b *strings.Builder, header []string, rows []T, cells func(T) []string) {
	fmt.Fprintf(b, "\n| %s |\n|---|%s\n", strings.Join(header, " | "), strings.Repeat("--:|", len(header)-1))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells(row), " | "))
	}
}

// summaryWorks returns the workloads in the README.
func summaryWorks() []string {
	return []string{"ZADD, P1", "ZADD, P16", "ZRANK, P16", "ZRANGEBYSCORE LIMIT 0 10, P16", "PUBLISH to 100", "live events, P16"}
}

// summary returns the section of the README for a section that markdown returned: the
// date, the rows of summaryWorks without latencies, and the plot.
func summary(section string) string {
	var head, rows, plot string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		switch {
		case strings.HasPrefix(line, "!["):
			plot = "\n" + line
		case rows == "" && !strings.HasPrefix(line, "|"):
			head += line
		case strings.HasPrefix(line, "| memory"):
			return strings.TrimRight(head, "\n") + "\n\n" + rows + plot
		case strings.HasPrefix(line, "|--"):
			rows += strings.TrimSuffix(line, "--:|--:|--:|\n") + "\n"
		case rows == "" || slices.Contains(summaryWorks(), strings.TrimPrefix(cells[0], "| ")):
			rows += strings.Join(cells[:len(cells)-3], " | ") + " |\n"
		}
	}
	return ""
}

// writeSection replaces the text between the markers of a section of a file.
func (r *report) writeSection(file, name string, section func(plot string) string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	plot, err := relativeTo(file, r.options.plot)
	if err != nil {
		return err
	}
	replaced, err := replaceSection(string(text), name, section(plot))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(replaced), 0o644)
}

// relativeTo returns the link from a file to another one, "" for no file.
func relativeTo(file, other string) (string, error) {
	if other == "" {
		return "", nil
	}
	from, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(other)
	if err != nil {
		return "", err
	}
	link, err := filepath.Rel(from, to)
	return filepath.ToSlash(link), err
}

func replaceSection(text, name, section string) (string, error) {
	from, to := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	head, rest, ok := strings.Cut(text, from)
	_, tail, closed := strings.Cut(rest, to)
	if !ok || !closed {
		return "", errors.New("has no place for the table")
	}
	return head + from + section + to + tail, nil
}
