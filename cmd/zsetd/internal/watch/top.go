package watch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
)

// TopOptions are the parameters of Top.
type TopOptions struct {
	Address string
	Rows    int                        // of each table
	Keys    bool                       // HOTKEYS measures keys while Top runs
	Reports int                        // Top ends after so many; 0 is without end
	Redraw  func() (columns, rows int) // the size of the screen, which is cleared before a report; nil for none
}

// commandUse is the use of a command since the reading before.
type commandUse struct {
	name                      string
	calls, failed, cpu, micro float64 // per second, share of a processor, per call
}

// commandUses returns the commands that were called between two readings, those with
// most processor time first.
func commandUses(before, now reading) (all []commandUse) {
	for field, value := range now.fields {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok {
			continue
		}
		old, took := before.fields[field], now.at.Sub(before.at)
		rate := func(counter string) float64 { return perSecond(part(old, counter), part(value, counter), took) }
		u := commandUse{name: strings.ReplaceAll(name, "|", " "), calls: rate("calls"), failed: rate("failed_calls") + rate("rejected_calls"), cpu: rate("usec") / 1e6}
		if u.calls == 0 && u.failed == 0 {
			continue
		}
		if u.calls > 0 {
			u.micro = u.cpu * 1e6 / u.calls
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b commandUse) int {
		return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.calls, a.calls), strings.Compare(a.name, b.name))
	})
	return all
}

// clientUse is a line of CLIENT LIST.
type clientUse struct {
	id, addr, name, user, command string
	memory, output, age, idle     float64
}

// clientUses returns the clients of CLIENT LIST, those with most memory first.
func clientUses(list string) (all []clientUse) {
	for line := range strings.Lines(list) {
		fields := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			if name, value, ok := strings.Cut(word, "="); ok {
				fields[name] = value
			}
		}
		number := func(name string) float64 { n, _ := strconv.ParseFloat(fields[name], 64); return n }
		if fields["id"] == "" {
			continue
		}
		all = append(all, clientUse{
			id: fields["id"], addr: fields["addr"], name: fields["name"], user: fields["user"], command: strings.ReplaceAll(fields["cmd"], "|", " "),
			memory: number("tot-mem"), output: number("omem"), age: number("age"), idle: number("idle"),
		})
	}
	slices.SortStableFunc(all, func(a, b clientUse) int { return cmp.Compare(b.memory, a.memory) })
	return all
}

// keyUse is a key of HOTKEYS GET.
type keyUse struct {
	key   string
	value float64
}

// keyUses returns a list of keys of the reply to HOTKEYS GET.
func keyUses(r *client.Reply, field string) (all []keyUse) {
	if r.Kind == client.Array && len(r.Elements) == 1 { // one node
		r = &r.Elements[0]
	}
	list, _ := r.Get(field)
	for i := 0; i+1 < len(list.Elements); i += 2 {
		n, _ := strconv.ParseFloat(list.Elements[i+1].Text, 64)
		all = append(all, keyUse{list.Elements[i].Text, n})
	}
	return all
}

// Top prints reports of what has been done between two ticks. It ends when ctx ends.
func Top(ctx context.Context, c *client.Conn, out io.Writer, ticks <-chan time.Time, o TopOptions) error {
	before, err := readAll(c)
	if err != nil {
		return err
	}
	note := ""
	if o.Keys {
		r, err := c.Do("HOTKEYS", "START", "METRICS", "2", "CPU", "NET", "COUNT", strconv.Itoa(max(o.Rows, 1)))
		switch {
		case err != nil:
			return err
		case r.IsError():
			o.Keys, note = false, "keys are not measured: "+r.Text
		default:
			// The measurement is this tool's: it ends and is forgotten with it. If the
			// connection has failed, so has its end.
			defer func() {
				_, _ = c.Do("HOTKEYS", "STOP")
				_, _ = c.Do("HOTKEYS", "RESET")
			}()
		}
	}
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			if o.Redraw == nil {
				return nil
			}
			_, err := io.WriteString(out, "\n") // the cursor is behind the report
			return err
		case <-ticks:
		}
		now, err := readAll(c)
		if err != nil {
			return err
		}
		clients, err := text(c, "CLIENT", "LIST")
		if err != nil {
			return err
		}
		var keys client.Reply
		if o.Keys {
			if keys, err = c.Do("HOTKEYS", "GET"); err != nil {
				return err
			}
		}
		var b bytes.Buffer
		report(&b, o, before, now, clientUses(clients), &keys, note)
		if err := draw(out, b.Bytes(), o.Redraw); err != nil {
			return err
		}
		if n == o.Reports {
			return nil
		}
		before = now
	}
}

func readAll(c *client.Conn) (reading, error) {
	info, err := text(c, "INFO", "all")
	return parse(info, time.Now()), err
}

// draw writes a report, on a screen in place of the one before it.
func draw(out io.Writer, b []byte, screen func() (columns, rows int)) error {
	if screen != nil {
		columns, rows := screen()
		lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
		lines = lines[:min(len(lines), max(rows, 1))]
		for i, line := range lines {
			if r := []rune(line); len(r) > columns {
				lines[i] = string(r[:columns])
			}
		}
		// The cursor goes home; each line is cleared behind its text, and the screen
		// below the last one, so that nothing flickers.
		b = []byte("\x1b[H" + strings.Join(lines, "\x1b[K\n") + "\x1b[K\x1b[J")
	}
	_, err := out.Write(b)
	return err
}

// report writes the tables.
func report(b *bytes.Buffer, o TopOptions, before, now reading, clients []clientUse, keys *client.Reply, note string) {
	cpu := now.rate(before, "used_cpu_sys") + now.rate(before, "used_cpu_user")
	fmt.Fprintf(b, "%s  up %s  %s keys  %s  %.0f %% cpu\n", o.Address, time.Duration(now.number("uptime_in_seconds"))*time.Second,
		count(now.keys()), size(now.number("used_memory")), 100*cpu)
	fmt.Fprintf(b, "%s commands/s  %s expired/s  %s evicted/s\nin %s/s  out %s/s  %s clients, %s blocked\n",
		count(now.rate(before, "total_commands_processed")), count(now.rate(before, "expired_keys")), count(now.rate(before, "evicted_keys")),
		size(now.rate(before, "total_net_input_bytes")), size(now.rate(before, "total_net_output_bytes")),
		count(now.number("connected_clients")), count(now.number("blocked_clients")))
	if note != "" {
		fmt.Fprintln(b, note)
	}
	fmt.Fprintf(b, "\n%-24s %9s %7s %10s %9s\n", "COMMAND", "CALLS/S", "CPU %", "USEC/CALL", "FAILED/S")
	for _, u := range first(commandUses(before, now), o.Rows) {
		fmt.Fprintf(b, "%-24.24s %9s %7.1f %10.1f %9s\n", u.name, count(u.calls), 100*u.cpu, u.micro, count(u.failed))
	}
	fmt.Fprintf(b, "\n%-24s %9s %9s %7s %7s  %s\n", "CLIENT", "MEMORY", "OUTPUT", "AGE", "IDLE", "COMMAND")
	for _, u := range first(clients, o.Rows) {
		name := u.addr
		if u.name != "" {
			name = u.name + " " + u.addr
		}
		fmt.Fprintf(b, "%-24.24s %9s %9s %7s %7s  %s\n", name, size(u.memory), size(u.output), seconds(u.age), seconds(u.idle), u.command)
	}
	if !o.Keys {
		return
	}
	fmt.Fprintf(b, "\n%-50s %12s\n", "KEY BY CPU", "MILLISECONDS")
	for _, u := range first(keyUses(keys, "by-cpu-time-us"), o.Rows) {
		fmt.Fprintf(b, "%-50s %12.1f\n", quoted(u.key), u.value/1e3)
	}
	fmt.Fprintf(b, "\n%-50s %12s\n", "KEY BY NETWORK", "BYTES")
	for _, u := range first(keyUses(keys, "by-net-bytes"), o.Rows) {
		fmt.Fprintf(b, "%-50s %12s\n", quoted(u.key), size(u.value))
	}
}

// first returns the first n of a list.
func first[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// quoted returns a key for a column.
func quoted(key string) string {
	q := strconv.QuoteToASCII(key)
	if len(q) > 50 {
		q = q[:46] + `..."`
	}
	return q
}

func seconds(n float64) string { return (time.Duration(n) * time.Second).String() }
