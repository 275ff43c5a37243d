package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/snapshot"
)

// The tools that read and rewrite files. Package archive does the work; this file
// has their flags and their output.

// The exit statuses of the tools.
const (
	statusOK    = 0
	statusBad   = 1 // the file is damaged, foreign or in use, or a part of the work could not be done
	statusUsage = 2 // the command line is wrong, or files cannot be read or written; of a salvage: there is no NEW
)

// tool is a sub-command.
type tool struct {
	name, args, summary string
	details             string
	files               int  // number of arguments besides flags
	several             bool // there may be more of them
	words               bool // they are the words of a command: the first one ends the flags
	session             bool // it handles signals, and writes to the terminal as it is
	flags               func(*flag.FlagSet, *toolFlags)
	run                 func(*toolRun) int
}

// toolFlags are the flags of all tools.
type toolFlags struct {
	json, keepGoing bool
	replace         bool
	output, format  string
	target          string
	databases       int
	migrateFlags
	linkFlags
	cliFlags
	watchFlags
	demoFlags
}

// toolRun is one call of a tool.
type toolRun struct {
	toolFlags
	files          []string
	stdin          io.Reader
	stdout, stderr io.Writer
	ctx            context.Context // ends with an interrupt
	progress       archive.Progress
	meter          *meter
}

func tools() []tool {
	return []tool{
		{
			name: "check", args: "FILE [--json]", files: 1, run: runCheck,
			summary: "verify a file and report its contents",
			details: "Verifies the structure, every checksum and the manifest, decodes every value, and reports\n" +
				"the number of keys of each type and the largest keys. If a server has the file open, it\n" +
				"reads a copy. Status: 0 sound, 1 damaged or not a file of zsetd, 2 the file cannot be\n" +
				"read.",
			flags: func(f *flag.FlagSet, t *toolFlags) { f.BoolVar(&t.json, "json", false, "print one JSON object") },
		},
		{
			name: "backup", args: "FILE -o COPY [--replace]", files: 1, run: runBackup,
			summary: "copy a file, also while a server writes to it",
			details: "Copies a consistent state of FILE, whether or not a server has it open, verifies the copy,\n" +
				"syncs it and renames it to COPY. Unsaved changes of the server are not included: send SAVE\n" +
				"first if they are needed. COPY must not exist, unless --replace is given. Status: 0 done,\n" +
				"1 FILE is damaged or not a file of zsetd, 2 files cannot be read or written. After a\n" +
				"failure COPY is unchanged.",
			flags: func(f *flag.FlagSet, t *toolFlags) {
				f.StringVar(&t.output, "o", "", "the `file` to write")
				f.BoolVar(&t.replace, "replace", false, "replace COPY if it exists")
			},
		},
		{
			name: "compact", args: "FILE", files: 1, run: runCompact,
			summary: "rewrite a file without unused space",
			details: "Writes a new file without journals and free pages, reads it back, compares it and replaces\n" +
				"FILE with it. No server may have FILE open. Status: 0 done, 1 FILE is damaged, not a file\n" +
				"of zsetd, or in use, 2 files cannot be read or written.",
		},
		{
			name: "salvage", args: "FILE -o NEW", files: 1, run: runSalvage,
			summary: "recover the readable keys of a damaged file",
			details: "Writes every value with intact records to NEW, which must not exist, and reports the lost\n" +
				"keys. FILE is not changed. Status: 0 all data were recovered, 1 some were lost, 2 nothing\n" +
				"was written.",
			flags: func(f *flag.FlagSet, t *toolFlags) { f.StringVar(&t.output, "o", "", "the `file` to write") },
		},
		{
			name: "export", args: "FILE [--format commands|json|rdb] [--for TARGET] [-o OUT]", files: 1, run: runExport,
			summary: "convert a file to Redis commands, JSON or RDB",
			details: "Writes commands that restore the data on an empty server (for redis-cli --pipe), a line of\n" +
				"JSON for each key, or an RDB file, as the name of OUT ends: .rdb, .json, .jsonl, .ndjson,\n" +
				".resp or .aof; --format says it for other names. Expired keys, members and fields are omitted. If a server\n" +
				"has the file open, it reads a copy.\n\n" +
				"--for is the server that will load the output: redis5 (5.0 and later), redis7 (7.0 and\n" +
				"later), redis8 (7.4 and later) or valkey9. By default commands are for zsetd, and an RDB\n" +
				"file is for the oldest Redis that supports its contents. For Redis, deadlines of members of\n" +
				"sorted sets are written to separate sorted sets, which the library of zsetd functions\n" +
				"reads. Status: 0 done, 1 FILE is damaged or not a file of zsetd, or data that the target\n" +
				"does not support were omitted, 2 files cannot be read or written.",
			flags: func(f *flag.FlagSet, t *toolFlags) {
				f.StringVar(&t.format, "format", "", "output `format`: commands, json or rdb (default that of the name after -o, else commands)")
				f.BoolVar(&t.json, "json", false, "the same as --format json")
				f.StringVar(&t.target, "for", "", "the `target`: redis5, redis7, redis8 or valkey9")
				f.StringVar(&t.output, "o", "", "the `file` to write instead of standard output")
			},
		},
		{
			name: "import", args: "SOURCE FILE [--json] [--keep-going] [--databases N]", files: 2, run: runImport,
			summary: "create a file from Redis commands, JSON or RDB",
			details: "Creates FILE, which must not exist, from the output of export, from commands in the format\n" +
				"of redis-cli --pipe, from an RDB file of Redis or Valkey (dump.rdb), or from their\n" +
				"append-only files (the directory appendonlydir or its manifest). SOURCE - is standard\n" +
				"input. Sorted sets zsetd:deadlines:{key} become the deadlines of the members of key.\n" +
				"Status: 0 done, 1 SOURCE has errors: then FILE is not written, or with --keep-going written\n" +
				"without the failed parts; 2 files cannot be read or written.",
			flags: func(f *flag.FlagSet, t *toolFlags) {
				f.BoolVar(&t.json, "json", false, "SOURCE is lines of JSON, also if it does not begin with {")
				f.BoolVar(&t.keepGoing, "keep-going", false, "skip keys and commands that fail")
				f.IntVar(&t.databases, "databases", 0, "the `number` of databases (default 16)")
			},
		},
		{
			name: "functions", run: runFunctions,
			summary: "print zsetd's own commands as functions for Redis 7 and Valkey",
			details: "Prints Lua source: zsetd functions | redis-cli -x FUNCTION LOAD REPLACE. FCALL zaddex 1 key ...\n" +
				"then is ZADDEX key ..., in Redis as in zsetd.",
		},
		restoreTool(),
		diffTool(),
		linkTool(),
		migrateTool(),
		cliTool(),
		statTool(),
		topTool(),
		demoTool(),
		initTool(),
		completionTool(),
	}
}

// toolUsage is the part of zsetd --help about the tools.
func toolUsage() string {
	var b strings.Builder
	b.WriteString("\nTools (see zsetd TOOL --help):\n\n")
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, t := range tools() {
		fmt.Fprintf(w, "  zsetd %s %s\t%s\n", t.name, t.args, t.summary)
	}
	w.Flush()
	return b.String()
}

// runTool runs the tool that the arguments name. ok is false if they name none.
func runTool(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	if len(args) == 2 && slices.Contains([]string{"help", "--help", "-h"}, args[0]) {
		args = []string{args[1], "--help"}
	}
	for _, t := range tools() {
		if t.name == args[0] {
			return t.main(args[1:], stdin, stdout, stderr), true
		}
	}
	return 0, false
}

func (t *tool) main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	r := &toolRun{stdin: stdin, stdout: stdout, stderr: stderr}
	f := flag.NewFlagSet("zsetd "+t.name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed below, with the usage
	f.Usage = func() {}
	usage := func(out io.Writer) {
		f.SetOutput(out)
		fmt.Fprintf(out, "Usage: %s\n\n%s\n", strings.TrimSpace("zsetd "+t.name+" "+t.args), t.details)
		if t.flags != nil {
			fmt.Fprintln(out)
			f.PrintDefaults()
		}
	}
	if t.flags != nil {
		t.flags(f, &r.toolFlags)
	}
	for {
		// Flags may follow files; after -- there are none.
		before := len(args)
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			usage(stdout)
			return statusOK
		}
		if err != nil {
			why := err.Error()
			if option, ok := strings.CutPrefix(why, "flag provided but not defined: -"); ok {
				var names []string
				f.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
				why = strings.TrimSpace("there is no option --" + option + "\n" + didYouMean(option, "--", names))
			}
			fmt.Fprintf(stderr, "zsetd %s: %s\n\n", t.name, why)
			usage(stderr)
			return statusUsage
		}
		rest := f.Args()
		if n := before - len(rest); n > 0 && args[n-1] == "--" {
			r.files = append(r.files, rest...)
			break
		}
		if len(rest) == 0 {
			break
		}
		if t.words {
			r.files = rest
			break
		}
		r.files = append(r.files, rest[0])
		args = rest[1:]
	}
	if t.several && len(r.files) == 0 {
		fmt.Fprintf(stderr, "zsetd %s: no argument is given\n\n", t.name)
		usage(stderr)
		return statusUsage
	}
	if len(r.files) != t.files && !t.several && !t.words {
		fmt.Fprintf(stderr, "zsetd %s: wrong number of files: %d given, %d expected\n\n", t.name, len(r.files), t.files)
		usage(stderr)
		return statusUsage
	}
	if t.session {
		return t.run(r)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r.ctx = ctx
	r.meter = newMeter(stderr)
	r.stdout, r.stderr = r.meter.before(stdout, true), r.meter.before(stderr, false)
	r.progress = func(step string, done, total int64) error {
		if ctx.Err() != nil {
			return errInterrupted
		}
		r.meter.show(step, done, total)
		return nil
	}
	status := t.run(r)
	r.meter.end()
	return status
}

var errInterrupted = errors.New("interrupted; nothing was changed")

// fail prints an error, and a hint, and returns the status.
func (r *toolRun) fail(err error) int {
	r.meter.end()
	fmt.Fprintln(r.stderr, "zsetd:", err)
	switch {
	case errors.Is(err, snapshot.ErrDamaged):
		path := r.damaged(err)
		fmt.Fprintf(r.stderr, "The file is unchanged. `zsetd salvage %s -o %s` recovers what is readable.\n", shellWord(path), shellWord(path+".salvaged"))
	case errors.Is(err, snapshot.ErrForeign), errors.Is(err, snapshot.ErrNewer):
		fmt.Fprintln(r.stderr, "The file is unchanged.")
	}
	if _, system := errors.AsType[syscall.Errno](err); system {
		return statusUsage
	}
	return statusBad
}

// damaged returns the file that an error is about, whose text begins with the path of
// the file or of a copy of it.
func (r *toolRun) damaged(err error) string {
	about, _, _ := strings.Cut(err.Error(), ": ")
	for _, path := range r.files {
		if filepath.Base(path) == filepath.Base(about) {
			return path
		}
	}
	return r.files[0]
}

// shellWord returns a word as a shell reads it.
func shellWord(word string) string {
	plain := func(c rune) bool {
		return c == '/' || c == '.' || c == '_' || c == '-' || c == ':' || c == '\\' && os.PathSeparator == '\\' ||
			'0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// source opens a file for reading.
func (r *toolRun) source(path string) (*archive.Source, error) {
	s, err := archive.OpenSource(path)
	if err == nil && s.Copied {
		fmt.Fprintf(r.stderr, "%s is in use: reading a copy of it\n", path)
	}
	return s, err
}

func runCheck(r *toolRun) int {
	path := r.files[0]
	report, err := checkFile(r, path)
	r.meter.end()
	if r.json {
		type verdict struct {
			File  string `json:"file"`
			Sound bool   `json:"sound"`
			Error string `json:"error,omitempty"`
			*archive.Report
		}
		v := verdict{File: path, Sound: err == nil, Report: report}
		if err != nil {
			v.Error = err.Error()
		}
		b, marshalErr := json.Marshal(v)
		if marshalErr != nil {
			return r.fail(marshalErr)
		}
		fmt.Fprintf(r.stdout, "%s\n", b)
	}
	if err != nil {
		return r.fail(err)
	}
	if !r.json {
		if err := printReport(r.stdout, path, report); err != nil {
			return r.fail(err)
		}
	}
	return statusOK
}

func checkFile(r *toolRun, path string) (report *archive.Report, err error) {
	s, err := r.source(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return archive.Check(s.Path, time.Now(), r.progress)
}

func printReport(out io.Writer, path string, report *archive.Report) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "%s is sound.\n\n", path)
	fmt.Fprintf(w, "last checkpoint\t%d, %s\n", report.Generation, report.Time.Local().Format(time.RFC3339))
	fmt.Fprintf(w, "file\t%s, %s free (%.0f %%)\n", size(report.Size), size(report.Free), 100*float64(report.Free)/float64(max(1, report.Size)))
	fmt.Fprintf(w, "bases\t%s in %d records\n", size(report.Bases.Bytes), report.Bases.Records)
	fmt.Fprintf(w, "journal\t%s in %d records\n", size(report.Journal.Bytes), report.Journal.Records)
	if report.Log.Records > 0 {
		fmt.Fprintf(w, "log\t%s in %d groups\n", size(report.Log.Bytes), report.Log.Records)
	}
	if report.Void > 0 {
		fmt.Fprintf(w, "cleared\t%s of flushed databases\n", size(report.Void))
	}
	if len(report.Databases) == 0 {
		fmt.Fprintln(w, "\nNo keys.")
		return w.Flush()
	}
	w.Flush()
	w = tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\ndatabase\ttype\tkeys\telements\tbytes\t")
	for _, db := range report.Databases {
		for _, t := range db.Types {
			fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%s\t\n", db.DB, t.Type, t.Keys, t.Elements, size(t.Bytes))
		}
	}
	w.Flush()
	fmt.Fprintln(out)
	for _, db := range report.Databases {
		fmt.Fprintf(out, "database %d: %d keys, %d with a deadline, %d of them expired\n", db.DB, db.Keys, db.Volatile, db.Expired)
	}
	for _, list := range []struct {
		what string
		keys []archive.KeyReport
	}{{"elements", report.MostElements}, {"bytes", report.MostBytes}} {
		fmt.Fprintf(out, "\nmost %s\n", list.what)
		w = tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "elements\tbytes\tdatabase\ttype\t  key")
		for _, k := range list.keys {
			fmt.Fprintf(w, "%d\t%s\t%d\t%s\t  %.60q\n", k.Elements, size(k.Bytes), k.DB, k.Type, string(k.Key))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// size formats a number of bytes for people.
func size(n int64) string {
	if n < 10<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1024, 0
	for f >= 1000 && unit < 3 {
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.1f %cB", f, "KMGT"[unit])
}

func runBackup(r *toolRun) int {
	if r.output == "" {
		fmt.Fprintln(r.stderr, "zsetd backup: -o COPY is missing")
		return statusUsage
	}
	n, err := archive.Backup(r.files[0], r.output, r.replace, r.progress)
	if err != nil {
		status := r.fail(err)
		if errors.Is(err, os.ErrExist) {
			status = statusUsage
		}
		return status
	}
	r.meter.end()
	fmt.Fprintf(r.stderr, "%s: %s copied and verified\n", r.output, size(n))
	return statusOK
}

func runCompact(r *toolRun) int {
	before, after, err := archive.Compact(r.files[0], r.progress)
	if err != nil {
		return r.fail(err)
	}
	r.meter.end()
	fmt.Fprintf(r.stdout, "%s: %s before, %s now\n", r.files[0], size(before), size(after))
	return statusOK
}

// manyLines limits the lines that are printed for each kind of damage.
const manyLines = 50

func runSalvage(r *toolRun) int {
	if r.output == "" {
		fmt.Fprintln(r.stderr, "zsetd salvage: -o NEW is missing")
		return statusUsage
	}
	s, err := archive.Salvage(r.files[0], r.output, r.progress)
	if err != nil {
		r.meter.end()
		fmt.Fprintln(r.stderr, "zsetd:", err)
		return statusUsage
	}
	r.meter.end()
	return printSalvage(r.stdout, r.output, s)
}

// printSalvage prints what is recovered to path and what is lost, and returns the status.
func printSalvage(out io.Writer, path string, s *archive.Salvaged) int {
	fmt.Fprintf(out, "%s: %d keys recovered from %d of %d bases and %d of %d journal parts\n", path, s.Keys,
		s.Bases, max(s.Bases, s.Manifest.Bases.Records), s.Journal, max(s.Journal, s.Manifest.Journal.Records))
	if !s.Guessed {
		fmt.Fprintf(out, "The last checkpoint is %d, %s.\n", s.Manifest.Generation, s.Manifest.Time.Local().Format(time.RFC3339))
	}
	printSome(out, "damage", len(s.Pages), func(i int) string { return s.Pages[i].Error() })
	line := func(keys []archive.LostKey) func(int) string {
		return func(i int) string {
			k := keys[i]
			if k.Hashed {
				return fmt.Sprintf("database %d, a key of 1 KB or more whose SHA-256 is %x: %s", k.DB, k.Key, k.Why)
			}
			return fmt.Sprintf("database %d, key %.200q: %s", k.DB, k.Key, k.Why)
		}
	}
	printSome(out, "keys lost", len(s.Lost), line(s.Lost))
	printSome(out, "keys with an older value", len(s.Old), line(s.Old))
	if s.Intact() {
		fmt.Fprintln(out, "Nothing is missing.")
		return statusOK
	}
	if s.Guessed {
		fmt.Fprintln(out, "The manifest is lost: the databases of the keys are guessed, and their number is unknown.")
	}
	if n := s.Manifest.Bases.Records - s.Bases; n > 0 {
		fmt.Fprintf(out, "%d bases are missing, possibly of keys that no other record names.\n", n)
	}
	if n := s.Manifest.Journal.Records - s.Journal; n > 0 {
		fmt.Fprintf(out, "%d journal parts are missing: changes of any key may be lost.\n", n)
	}
	if s.Scavenged {
		fmt.Fprintln(out, "Unused pages were searched: the output may have deleted keys and old values.")
	}
	return statusBad
}

func printSome(out io.Writer, what string, n int, line func(int) string) {
	if n == 0 {
		return
	}
	fmt.Fprintf(out, "%s:\n", what)
	for i := range min(n, manyLines) {
		fmt.Fprintf(out, "  %s\n", line(i))
	}
	if n > manyLines {
		fmt.Fprintf(out, "  and %d more\n", n-manyLines)
	}
}

// functions is the library for Redis.
//
//go:embed zsetd.lua
var functions string

func runFunctions(r *toolRun) (status int) {
	if _, err := io.WriteString(r.stdout, functions); err != nil {
		return r.fail(err)
	}
	return statusOK
}

// formOf returns the form that the ending of a name stands for, "" if none.
func formOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".rdb":
		return "rdb"
	case ".json", ".jsonl", ".ndjson":
		return "json"
	case ".resp", ".aof":
		return "commands"
	}
	return ""
}

func runExport(r *toolRun) (status int) {
	switch {
	case r.format != "":
	case r.json:
		r.format = "json"
	default:
		if r.format = formOf(r.output); r.format == "" {
			r.format = "commands"
			if r.output != "" && r.output != "-" && !isDevice(r.output) {
				fmt.Fprintf(r.stderr, "%s will have commands: --format json or rdb writes another form\n", r.output)
			}
		}
	}
	if r.format != "commands" && r.format != "json" && r.format != "rdb" || r.json && r.format != "json" {
		fmt.Fprintf(r.stderr, "zsetd export: --format must be commands, json or rdb, not %q\n", r.format)
		fmt.Fprint(r.stderr, didYouMean(r.format, "", []string{"commands", "json", "rdb"}))
		return statusUsage
	}
	to, ok := targets()[r.target]
	if !ok || r.target != "" && r.format == "json" {
		fmt.Fprintf(r.stderr, "zsetd export: --for must be redis5, redis7, redis8 or valkey9, with the format commands or rdb; not %q with %s\n", r.target, r.format)
		fmt.Fprint(r.stderr, didYouMean(r.target, "", []string{"redis5", "redis7", "redis8", "valkey9"}))
		return statusUsage
	}
	s, err := r.source(r.files[0])
	if err != nil {
		return r.fail(err)
	}
	out, err := r.export(s, to)
	if err = errors.Join(err, s.Close()); err != nil {
		return r.fail(err)
	}
	r.meter.end()
	fmt.Fprintf(r.stderr, "%d keys exported, %s; %d expired keys omitted\n", out.Keys, size(out.Bytes), out.Expired)
	if r.format != "json" {
		r.explainDeadlines(&out)
	}
	if out.LostDeadlines > 0 {
		fmt.Fprintf(r.stderr, "%d fields of hashes were written without their deadlines, which %s does not support: the first ones are of %s\n",
			out.LostDeadlines, r.target, out.LostOf)
	}
	if out.LostLibraries > 0 {
		fmt.Fprintf(r.stderr, "%d function libraries were omitted, which %s does not support\n", out.LostLibraries, r.target)
	}
	if out.LostStreams > 0 {
		fmt.Fprintf(r.stderr, "%d streams were written without counters of entries, which %s does not support\n", out.LostStreams, r.target)
	}
	if out.LostDeadlines+out.LostLibraries+out.LostStreams > 0 {
		return statusBad
	}
	return statusOK
}

// targets are the values of --for.
func targets() map[string]rdb.Target {
	return map[string]rdb.Target{"": rdb.Any, "redis5": rdb.Redis5, "redis7": rdb.Redis7, "redis8": rdb.Redis8, "valkey9": rdb.Valkey9}
}

// explainDeadlines reports in which form the deadlines of members and fields were
// written.
func (r *toolRun) explainDeadlines(out *archive.Exported) {
	native := r.format == "commands" && r.target == ""
	switch {
	case out.MemberDeadlines == 0:
	case native:
		fmt.Fprintf(r.stderr, "%d members of sorted sets have deadlines: they are written as ZPEXPIREAT, which only zsetd supports; use --for for Redis\n", out.MemberDeadlines)
	default:
		fmt.Fprintf(r.stderr, "%d members of sorted sets have deadlines: they are written to sorted sets zsetd:deadlines:{key}, for the library "+
			"of `zsetd functions`; Redis itself does not expire the members\n", out.MemberDeadlines)
	}
	switch {
	case out.FieldDeadlines == 0 || r.target != "":
	case native:
		fmt.Fprintf(r.stderr, "%d fields of hashes have deadlines: they are written as HPEXPIREAT, which needs Redis 7.4 or Valkey 9\n", out.FieldDeadlines)
	default:
		fmt.Fprintf(r.stderr, "%d fields of hashes have deadlines: the file needs Redis 7.4 or later; use --for valkey9 for Valkey\n", out.FieldDeadlines)
	}
}

func (r *toolRun) export(s *archive.Source, to rdb.Target) (done archive.Exported, err error) {
	out := r.stdout
	if r.output != "" && r.output != "-" {
		f, made, err := createOutput(r.output)
		if err != nil {
			return done, err
		}
		defer func() {
			if err = errors.Join(err, f.Close()); err != nil && made {
				err = errors.Join(err, os.Remove(r.output))
			}
		}()
		out = f
	}
	switch r.format {
	case "json":
		return archive.ExportJSON(out, s.Path, time.Now(), r.progress)
	case "rdb":
		return archive.ExportRDB(out, s.Path, to, time.Now(), r.progress)
	}
	return archive.ExportCommands(out, s.Path, to, time.Now(), r.progress)
}

// isDevice reports whether a path is a pipe or a device.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// createOutput makes a file, which must not exist, or opens a pipe or a device.
func createOutput(path string) (f *os.File, made bool, err error) {
	if isDevice(path) {
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
		return f, false, err
	}
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return f, true, err
}

func runImport(r *toolRun) int {
	path, err := manifestIn(r.files[0])
	if err != nil {
		return r.fail(err)
	}
	in, o := r.stdin, &archive.Import{Progress: r.progress}
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return r.fail(err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			o.Size = info.Size()
		}
		in = f
	}
	if r.keepGoing {
		o.Failed = func(err error) {
			r.meter.end()
			fmt.Fprintln(r.stderr, "zsetd:", err)
		}
	}
	var out archive.Imported
	source := bufio.NewReader(in)
	head, _ := source.Peek(512)
	switch {
	case snapshot.IsFile(head):
		err = fmt.Errorf("%s: already a zsetd snapshot: copy it, or convert it with zsetd export first", path)
	case r.json, bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")): // no command begins so
		out, err = o.JSON(source, r.files[1])
	case rdb.IsManifest(head) && path == "-":
		err = errors.New("standard input is the manifest of an append-only file: give its path, because it names other files")
	case rdb.IsManifest(head), strings.HasSuffix(path, manifestSuffix):
		out, err = server.ImportManifest(path, r.files[1], r.databases, o)
	case rdb.IsFile(head) && !rdb.IsBase(head):
		out, err = o.RDB(source, r.files[1])
	case formOf(path) == "rdb" && !rdb.IsBase(head) && len(head) > 0:
		err = fmt.Errorf("%s is no RDB file; if it has commands, write zsetd import - %s < %s", path, shellWord(r.files[1]), shellWord(path))
	case formOf(path) == "json" && len(head) > 0:
		err = fmt.Errorf("%s has no lines of JSON, which begin with {; if it has commands, write zsetd import - %s < %s", path, shellWord(r.files[1]), shellWord(path))
	default:
		if manifest := manifestOf(path); manifest != "" {
			fmt.Fprintf(r.stderr, "%s is one part of an append-only file: zsetd import %s reads all parts\n", path, manifest)
		}
		out, err = server.ImportCommands(source, r.files[1], r.databases, o)
	}
	if err != nil {
		return r.fail(err)
	}
	r.meter.end()
	fmt.Fprintf(r.stderr, "%s: %d keys imported; %d commands or lines done, %d failed\n", r.files[1], out.Keys, out.Done, out.Failed)
	if out.Functions > 0 {
		fmt.Fprintf(r.stderr, "%d function libraries imported\n", out.Functions)
	}
	if out.Trailing > 0 {
		fmt.Fprintf(r.stderr, "%d bytes behind the end of the RDB file are ignored\n", out.Trailing)
	}
	if out.Failed > 0 {
		return statusBad
	}
	return statusOK
}

// manifestSuffix ends the names of manifests of append-only files. While Redis writes one, its
// name begins with temporaryPrefix.
const (
	manifestSuffix  = ".manifest"
	temporaryPrefix = "temp-"
)

// manifestsIn returns the manifests of append-only files in a folder.
func manifestsIn(dir string) (found []string, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if name := f.Name(); strings.HasSuffix(name, manifestSuffix) && !strings.HasPrefix(name, temporaryPrefix) {
			found = append(found, filepath.Join(dir, name))
		}
	}
	return found, err
}

// manifestIn returns the manifest of an append-only file in a folder; path itself if
// it is no folder.
func manifestIn(path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return path, nil // if there is none, opening it fails
	}
	found, err := manifestsIn(path)
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s: the directory has %d manifests of append-only files, want one", path, len(found))
	}
	return found[0], nil
}

// manifestOf returns the manifest that names a file as a part of an append-only file,
// "" if there is none.
func manifestOf(path string) string {
	found, _ := manifestsIn(filepath.Dir(path)) // a folder that cannot be read has none
	for _, manifest := range found {
		b, err := os.ReadFile(manifest)
		if err != nil {
			continue
		}
		if names, _ := rdb.ManifestFiles(b); slices.Contains(names, filepath.Base(path)) {
			return manifest
		}
	}
	return ""
}
