package watch

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
)

// headerLines is the number of lines between two headers of Stat.
const headerLines = 20

// header has the columns of statLine.
const header = "    keys    memory  clients  blocked  commands/s  expired/s      in/s     out/s\n"

// statLine returns a line about a reading. before is nil for the first one, which has no
// rates yet.
func statLine(before *reading, now reading) string {
	rates := [4]string{"-", "-", "-", "-"}
	if before != nil {
		rates = [4]string{
			count(now.rate(*before, "total_commands_processed")), count(now.rate(*before, "expired_keys")),
			size(now.rate(*before, "total_net_input_bytes")), size(now.rate(*before, "total_net_output_bytes")),
		}
	}
	return fmt.Sprintf("%8s %9s %8s %8s %11s %10s %9s %9s\n", count(now.keys()), size(now.number("used_memory")),
		count(now.number("connected_clients")), count(now.number("blocked_clients")), rates[0], rates[1], rates[2], rates[3])
}

// Stat prints a line about the server at each tick, and one at the start. It ends after
// lines lines (0 is without end), or when ctx ends.
func Stat(ctx context.Context, c *client.Conn, out io.Writer, ticks <-chan time.Time, lines int) error {
	var before *reading
	for n := 0; ; n++ {
		info, err := text(c, "INFO")
		if err != nil {
			return err
		}
		now := parse(info, time.Now())
		if n%headerLines == 0 {
			if _, err := io.WriteString(out, header); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(out, statLine(before, now)); err != nil {
			return err
		}
		before = &now
		if n+1 == lines {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
	}
}
