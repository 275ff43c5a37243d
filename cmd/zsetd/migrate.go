package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/zsetd/zsetd/server/migrate"
)

// The tool migrate. Package migrate does the work.

// migrateFlags are the flags of the tool migrate.
type migrateFlags struct {
	dryRun, force, functions, cutOver, unpause, forward bool
	observe                                             time.Duration
	verify, hook                                        string
}

func migrateTool() tool {
	return tool{
		name: "migrate", args: "FROM TO [--dry-run] [--cut-over] [--verify all|N] [--hook CMD] ...", files: 2, run: runMigrate,
		summary: "move a running data set between servers, clusters and files",
		details: "FROM and TO are redis://[[user]:password@]host[:port][/database], rediss://... (TLS),\n" +
			"redis://host:port,host:port?cluster, unix:/path, or a file: a data file of zsetd, or an RDB\n" +
			"file, which TO is if its name ends in .rdb.\n\n" +
			"Between servers it first reports what would not fit, copies all data, and then applies the\n" +
			"changes as they happen, until it is told to cut over: by --cut-over, the signal USR1, or the\n" +
			"return key on a terminal. The data are verified, FROM stops writes, the rest is applied and\n" +
			"verified, and the hook runs. Clients that write hang meanwhile, some milliseconds and as\n" +
			"long as the hook takes; if the tool dies then, 3 seconds at most. Afterwards FROM refuses\n" +
			"writes for a day, unless --unpause is given, or passes the commands of its clients to TO\n" +
			"(--forward, from a zsetd); if a step fails, it accepts writes again. If the tool is\n" +
			"stopped or killed, the same command continues.\n" +
			"TO must be empty and have no other writers meanwhile.\n\n" +
			"Status: 0 done, 1 something does not fit, is not equal or has failed, 2 the command line is\n" +
			"wrong, or files cannot be read or written, 3 stopped by a signal, to be continued.",
		flags: func(f *flag.FlagSet, t *toolFlags) {
			f.BoolVar(&t.dryRun, "dry-run", false, "only report what would move and what would not fit")
			f.BoolVar(&t.force, "force", false, "move although something does not fit")
			f.DurationVar(&t.observe, "observe", 10*time.Second, "how `long` MONITOR watches FROM for commands that a cluster refuses")
			f.BoolVar(&t.replace, "replace", false, "delete all data of TO first")
			f.BoolVar(&t.functions, "functions", false, "load the library of zsetd functions at TO")
			f.StringVar(&t.verify, "verify", "0", "compare `all|N` keys, N chosen at random, at the end")
			f.BoolVar(&t.cutOver, "cut-over", false, "cut over as soon as the copy is complete")
			f.StringVar(&t.hook, "hook", "", "shell `command` to run at the cut-over, such as a change of the DNS")
			f.BoolVar(&t.forward, "forward", false, "let FROM, a zsetd, answer its remaining clients from TO after the cut-over")
			f.BoolVar(&t.unpause, "unpause", false, "let FROM accept writes again after the cut-over")
		},
	}
}

// statusStopped is the status of a move that a signal has stopped.
const statusStopped = 3

func runMigrate(r *toolRun) int {
	migrate.DisableClientLog()
	o := migrate.Options{
		Replace: r.replace, Library: functions, LoadLibrary: r.functions, Hook: r.hook, Unpause: r.unpause, Forward: r.forward,
		Status: func(s migrate.Status) { r.meter.state(s.Phase, s.String(), s.Keys, s.AllKeys) },
		Log: func(line string) {
			r.meter.end()
			fmt.Fprintln(r.stderr, line)
		},
	}
	var err error
	usage := func(err error) int {
		fmt.Fprintf(r.stderr, "zsetd migrate: %v\n", err)
		return statusUsage
	}
	if o.From, err = migrate.ParseEndpoint(r.files[0]); err != nil {
		return usage(fmt.Errorf("FROM: %w", err))
	}
	if o.To, err = migrate.ParseEndpoint(r.files[1]); err != nil {
		return usage(fmt.Errorf("TO: %w", err))
	}
	if o.Verify, err = parseVerify(r.verify); err != nil {
		return usage(err)
	}
	report, err := migrate.Survey(r.ctx, o, r.observe)
	if err != nil {
		return r.fail(err)
	}
	printSurvey(r.stdout, report)
	if len(report.Obstacles) > 0 && !r.force {
		if !r.dryRun {
			fmt.Fprintln(r.stderr, "Nothing was moved. --force moves what fits.")
		}
		return statusBad
	}
	if r.dryRun {
		return statusOK
	}
	o.CutOver = r.cutOvers()
	switch err := migrate.Run(r.ctx, o); {
	case errors.Is(err, migrate.ErrStopped):
		r.meter.end()
		fmt.Fprintln(r.stderr, "zsetd:", err)
		return statusStopped
	case err != nil:
		return r.fail(err)
	}
	r.meter.end()
	fmt.Fprintln(r.stderr, "moved", o.From, "to", o.To)
	return statusOK
}

func parseVerify(text string) (int, error) {
	if text == "all" {
		return migrate.VerifyAll, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("--verify must be all or a number of keys, not %q", text)
	}
	return n, nil
}

func printSurvey(out io.Writer, report *migrate.Report) {
	fmt.Fprintf(out, "from %s\nto   %s\n", report.From, report.To)
	if report.Keys > 0 {
		fmt.Fprintf(out, "%d keys\n", report.Keys)
	}
	if report.Stop > 0 {
		fmt.Fprintf(out, "writes at FROM will wait for about %v at the cut-over, and as long as the hook runs\n", report.Stop)
	}
	if report.Observed > 0 {
		fmt.Fprintf(out, "%d commands observed\n", report.Observed)
	}
	for _, w := range report.Warnings {
		fmt.Fprintln(out, "note:", w)
	}
	for _, o := range report.Obstacles {
		fmt.Fprintln(out, "does not fit:", o)
	}
}

// cutOvers returns the channel that orders the cut-over.
func (r *toolRun) cutOvers() <-chan struct{} {
	order := make(chan struct{}, 1)
	if r.cutOver {
		order <- struct{}{}
		return order
	}
	send := func() {
		select {
		case order <- struct{}{}:
		default:
		}
	}
	signals := make(chan os.Signal, 1)
	if len(cutOverSignals()) > 0 {
		signal.Notify(signals, cutOverSignals()...)
		go func() {
			for range signals {
				send()
			}
		}()
	}
	if f, ok := r.stdin.(*os.File); ok && isTerminal(f) {
		fmt.Fprintln(r.stderr, "Press return to cut over when the copy is complete.")
		go func() {
			if _, err := bufio.NewReader(f).ReadString('\n'); err == nil {
				send()
			}
		}()
	}
	return order
}
