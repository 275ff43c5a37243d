package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
	"github.com/zsetd/zsetd/cmd/zsetd/internal/watch"
)

// The tools that watch a running server. Package watch does the work.

// watchFlags are the flags of these tools.
type watchFlags struct {
	server  client.Options
	seconds float64
	count   int
	once    bool
	keys    bool
}

func statTool() tool {
	return tool{
		name: "stat", args: "[-h HOST] [-p PORT] ... [-i SECONDS] [--count N]", session: true, run: runStat,
		summary: "print a line about a running server each second",
		details: "Prints keys, memory, clients and blocked clients of a server, and in a second: commands,\n" +
			"expired keys, bytes received and sent. Ctrl-C ends it. Status: 0 done, 1 the server does not\n" +
			"answer, 2 the command line is wrong.",
		flags: func(f *flag.FlagSet, t *toolFlags) {
			t.server.Flags(f)
			f.Float64Var(&t.seconds, "i", 1, "the `seconds` between two lines")
			f.IntVar(&t.count, "count", 0, "end after `N` lines; 0 is without end")
		},
	}
}

func runStat(r *toolRun) int {
	return r.watch("stat", func(ctx context.Context, c *client.Conn, ticks <-chan time.Time) error {
		return watch.Stat(ctx, c, r.stdout, ticks, r.count)
	})
}

func topTool() tool {
	return tool{
		name: "top", args: "[-h HOST] [-p PORT] ... [-i SECONDS] [--once] [--keys]", session: true, run: runTop,
		summary: "show the busiest commands, clients and keys of a server",
		details: "Shows what a server has done in the last second: the commands by processor time, the\n" +
			"clients by memory and, with --keys, the keys by processor time and by bytes, as far as\n" +
			"HOTKEYS has measured since the start of the tool. Ctrl-C ends it. Status: 0 done, 1 the\n" +
			"server does not answer, 2 the command line is wrong.",
		flags: func(f *flag.FlagSet, t *toolFlags) {
			t.server.Flags(f)
			f.Float64Var(&t.seconds, "i", 1, "the `seconds` between two reports")
			f.BoolVar(&t.once, "once", false, "print one report, about the first interval")
			f.BoolVar(&t.keys, "keys", false, "measure keys with HOTKEYS")
		},
	}
}

// topRows is the number of rows of each table where there is no screen to fit.
const topRows = 10

func runTop(r *toolRun) int {
	return r.watch("top", func(ctx context.Context, c *client.Conn, ticks <-chan time.Time) error {
		o := watch.TopOptions{Address: r.server.Address(), Rows: topRows, Keys: r.keys}
		if r.once {
			o.Reports = 1
		} else if f, ok := r.stdout.(*os.File); ok && isTerminal(f) {
			o.Redraw = func() (columns, rows int) {
				columns, rows, err := term.GetSize(int(f.Fd()))
				if err != nil {
					return 80, 24
				}
				return columns, rows
			}
			fmt.Fprint(f, "\x1b[2J")
		}
		return watch.Top(ctx, c, r.stdout, ticks, o)
	})
}

// watch connects to the server and calls f, until that ends or the user interrupts it.
func (r *toolRun) watch(name string, f func(context.Context, *client.Conn, <-chan time.Time) error) int {
	interval := time.Duration(r.seconds * float64(time.Second))
	if interval <= 0 || r.count < 0 {
		fmt.Fprintf(r.stderr, "zsetd %s: -i must be a time above 0, and --count a number from 0\n", name)
		return statusUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := client.Dial(ctx, &r.server)
	if err != nil {
		fmt.Fprintf(r.stderr, "zsetd %s: no connection to %s: %v\n", name, r.server.Address(), err)
		return statusBad
	}
	defer c.Close()
	refused, err := c.Login(&r.server)
	if len(refused) > 0 {
		err = refused[0]
	}
	if err == nil {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		err = f(ctx, c, ticker.C)
	}
	if err != nil {
		fmt.Fprintf(r.stderr, "zsetd %s: %s: %v\n", name, r.server.Address(), err)
		return statusBad
	}
	return statusOK
}
