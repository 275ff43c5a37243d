package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/prompt"
	"github.com/zsetd/zsetd/server"
)

// The tool cli. Package prompt does the work.

// cliFlags are the flags of the tool cli.
type cliFlags struct {
	raw, typed, csv        bool
	lastArgument           bool
	argumentTag            string
	repeat                 int
	pause                  float64
	exitErrors, askPass    bool
	delimiter, end, pushes string
}

func cliTool() tool {
	return tool{
		name: "cli", args: "[-h HOST] [-p PORT] [-s SOCKET] [-a PASSWORD] ... [COMMAND ...]", words: true, session: true, run: runCLI,
		summary: "run commands on a server, at a prompt or from a script",
		details: "Runs COMMAND on a server, or else the lines of standard input, or commands typed at a\n" +
			"prompt. Options and output are those of redis-cli: replies with their types on a terminal,\n" +
			"their bytes alone elsewhere. The prompt has a history, the tabulator completes names, and\n" +
			"the arguments of a command are shown while it is typed; help describes it. Ctrl-C ends\n" +
			"messages, MONITOR and commands that wait. Status: 0 done, also with error replies, 1 there\n" +
			"is no connection, or with -e a command has failed, 2 the command line is wrong.",
		flags: func(f *flag.FlagSet, t *toolFlags) {
			t.server.Flags(f)
			f.BoolVar(&t.askPass, "askpass", false, "ask for the password")
			f.BoolVar(&t.server.RESP3, "3", false, "use version 3 of the protocol")
			f.BoolVar(&t.server.RESP2, "2", false, "use version 2")
			f.IntVar(&t.repeat, "r", 1, "run the command `N` times; -1 is without end")
			f.Float64Var(&t.pause, "i", 0, "wait `seconds` between the runs of -r")
			f.BoolVar(&t.lastArgument, "x", false, "standard input is the last argument")
			f.StringVar(&t.argumentTag, "X", "", "standard input replaces the argument `word`")
			f.BoolVar(&t.raw, "raw", false, "print the bytes of replies")
			f.BoolVar(&t.typed, "no-raw", false, "print replies with types, also if the output is no terminal")
			f.BoolVar(&t.json, "json", false, "print replies as JSON; implies -3")
			f.BoolVar(&t.csv, "csv", false, "print replies as values separated by commas")
			f.StringVar(&t.delimiter, "d", "\n", "the `text` between elements with --raw")
			f.StringVar(&t.end, "D", "\n", "the `text` behind a reply with --raw")
			f.BoolVar(&t.exitErrors, "e", false, "status 1 if a command has an error reply")
			f.StringVar(&t.pushes, "show-pushes", "", "print push messages: `yes|no`; the default is yes on a terminal")
		},
	}
}

// fakeTerminalVariable makes the output that of a terminal if it is set, as for redis-cli.
const fakeTerminalVariable = "FAKETTY"

func runCLI(r *toolRun) int {
	terminal := isTerminal(r.stdout) || os.Getenv(fakeTerminalVariable) != ""
	o := prompt.Options{
		Delimiter: r.delimiter, End: r.end, Repeat: r.repeat, Interval: time.Duration(r.pause * float64(time.Second)),
		ExitErrors: r.exitErrors, Pushes: terminal, Colors: terminal, Table: server.Commands(),
	}
	switch {
	case r.json:
		o.Form = prompt.JSON
		r.server.RESP3 = r.server.RESP3 || !r.server.RESP2
	case r.csv:
		o.Form = prompt.CSV
	case r.raw || !r.typed && !terminal:
		o.Form = prompt.Raw
	}
	switch r.pushes {
	case "":
	case "yes", "no":
		o.Pushes = r.pushes == "yes"
	default:
		fmt.Fprintf(r.stderr, "zsetd cli: --show-pushes must be yes or no, not %q\n", r.pushes)
		return statusUsage
	}
	if r.askPass {
		var err error
		if r.server.Password, err = prompt.ReadPassword("Password: ", r.stderr); err != nil {
			fmt.Fprintln(r.stderr, "zsetd cli: the password cannot be read:", err)
			return statusUsage
		}
	}
	o.Options = r.server
	words := r.files
	if (r.lastArgument || r.argumentTag != "") && len(words) > 0 {
		b, err := io.ReadAll(r.stdin)
		if err != nil {
			fmt.Fprintln(r.stderr, "zsetd cli: standard input cannot be read:", err)
			return statusUsage
		}
		if words, err = withArgument(words, r.argumentTag, string(b)); err != nil {
			fmt.Fprintln(r.stderr, "zsetd cli:", err)
			return statusUsage
		}
	}
	var err error
	f, isFile := r.stdin.(*os.File)
	switch {
	case len(words) > 0:
		err = prompt.New(o, r.stdout, r.stderr).RunCommand(words)
	case isFile && isTerminal(f):
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		defer signal.Stop(interrupts)
		defer restoreOnTerm(f)()
		o.Interrupts = interrupts
		err = prompt.New(o, r.stdout, r.stderr).RunTerminal()
	default:
		err = prompt.New(o, r.stdout, r.stderr).RunLines(r.stdin)
	}
	if err != nil && !errors.Is(err, prompt.ErrFailed) {
		fmt.Fprintln(r.stderr, "zsetd cli:", err)
	}
	if err != nil {
		return statusBad
	}
	return statusOK
}

// restoreOnTerm lets SIGTERM end the process with the terminal as it is now. end ends
// that.
func restoreOnTerm(terminal *os.File) (end func()) {
	fd := int(terminal.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		if _, ok := <-signals; ok {
			_ = term.Restore(fd, state)
			os.Exit(128 + int(syscall.SIGTERM))
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// withArgument adds an argument to words, or puts it in the place of tag.
func withArgument(words []string, tag, argument string) ([]string, error) {
	if tag == "" {
		return append(slices.Clone(words), argument), nil
	}
	at := slices.Index(words, tag)
	if at < 0 {
		return nil, fmt.Errorf("-X %s: the command has no argument %s: %s", tag, tag, strings.Join(words, " "))
	}
	words = slices.Clone(words)
	words[at] = argument
	return words, nil
}
