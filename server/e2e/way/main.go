package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"runtime/coverage"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zsetd/zsetd/server"
)

const module = "github.com/zsetd/zsetd/"

func main() {
	names := flag.Bool("functions", false, "print the names of the functions")
	flag.Parse()
	if err := run(os.Stdout, *names); err != nil {
		fmt.Fprintln(os.Stderr, "way:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, names bool) error {
	dir, err := os.MkdirTemp("", "way-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := record(dir); err != nil {
		return err
	}
	functions, err := goTool("tool", "covdata", "func", "-i", dir)
	if err != nil {
		return err
	}
	order, err := goTool("list", "-deps", module+"server")
	if err != nil {
		return err
	}
	entered, err := parse(functions)
	if err != nil {
		return err
	}
	return report(w, entered, strings.Fields(string(order)), names)
}

// record serves one client, and writes the coverage of one ZADD to dir.
func record(dir string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv, err := server.New(server.Options{Listeners: []net.Listener{l}})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.ListenAndServe() }()
	defer func() {
		srv.Close()
		<-served
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := srv.Ready(ctx); err != nil {
		return err
	}
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	replies := bufio.NewReader(conn)
	zadd := func(member string) error {
		if _, err := fmt.Fprintf(conn, "*4\r\n$4\r\nZADD\r\n$3\r\nset\r\n$1\r\n1\r\n$1\r\n%s\r\n", member); err != nil {
			return err
		}
		reply, err := replies.ReadString('\n')
		if err == nil && reply != ":1\r\n" {
			err = fmt.Errorf("unexpected reply %q", reply)
		}
		return err
	}
	if err := zadd("a"); err != nil {
		return err
	}
	if err := coverage.ClearCounters(); err != nil {
		return fmt.Errorf("%w: build with -cover -covermode atomic", err)
	}
	if err := zadd("b"); err != nil {
		return err
	}
	return errors.Join(coverage.WriteCountersDir(dir), coverage.WriteMetaDir(dir))
}

// goTool runs a command of the go tool, and returns its output.
func goTool(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// function is a function that the command has entered.
type function struct{ pkg, file, name string }

// parse reads the output of "go tool covdata func": lines of a position, a function
// and the percentage of its statements that have run. It returns those above 0, of
// this module without its tests and tools.
func parse(out []byte) (entered []function, err error) {
	for line := range bytes.Lines(out) {
		words := strings.Fields(string(line))
		if len(words) != 3 || words[0] == "total" {
			continue
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(words[2], "%"), 64)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		position, _, _ := strings.Cut(words[0], ":")
		pkg := path.Dir(position)
		if percent == 0 || !strings.HasPrefix(pkg, module) || strings.HasPrefix(pkg, module+"server/e2e") {
			continue
		}
		entered = append(entered, function{pkg, path.Base(position), words[1]})
	}
	return entered, nil
}

// report prints the functions by package and file. order has all packages, imported
// ones before those that import them.
func report(w io.Writer, entered []function, order []string, names bool) error {
	depth := map[string]int{}
	for i, pkg := range order {
		depth[pkg] = -i
	}
	slices.SortFunc(entered, func(a, b function) int {
		return cmp.Or(cmp.Compare(depth[a.pkg], depth[b.pkg]), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.file, b.file), cmp.Compare(a.name, b.name))
	})
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	files, packages := 0, 0
	for rest := entered; len(rest) > 0; {
		pkg := rest[0].pkg
		n := count(rest, func(f function) bool { return f.pkg == pkg })
		fmt.Fprintf(t, "%s\t\t%d\n", strings.TrimPrefix(pkg, module), n)
		packages++
		for inPackage := rest[:n]; len(inPackage) > 0; {
			file := inPackage[0].file
			m := count(inPackage, func(f function) bool { return f.file == file })
			fmt.Fprintf(t, "\t%s\t%d", file, m)
			if names {
				for _, f := range inPackage[:m] {
					fmt.Fprintf(t, "\t%s", f.name)
				}
			}
			fmt.Fprintln(t)
			files++
			inPackage = inPackage[m:]
		}
		rest = rest[n:]
	}
	fmt.Fprintf(t, "%d packages\t%d files\t%d functions\n", packages, files, len(entered))
	return t.Flush()
}

// count returns how many of the first functions fulfil a condition.
func count(list []function, is func(function) bool) int {
	for i, f := range list {
		if !is(f) {
			return i
		}
	}
	return len(list)
}
