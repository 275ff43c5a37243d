package main

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// The tool init, which writes a configuration file.

// example is the commented configuration that the packages have, too.
//
//go:embed zsetd.conf
var example string

// passwordExample is the line of example in the place of which there is a password.
const passwordExample = "# requirepass a-long-password\n"

func initTool() tool {
	return tool{
		name: "init", args: "[-o FILE]", run: runInit,
		summary: "write a configuration file with a password",
		details: "Writes zsetd.conf, which must not exist, with the common parameters, their comments and a\n" +
			"password made at random, and prints how to start the server and how to connect. Status: 0\n" +
			"done, 2 the file exists or cannot be written.",
		flags: func(f *flag.FlagSet, t *toolFlags) {
			f.StringVar(&t.output, "o", "zsetd.conf", "the `file` to write")
		},
	}
}

func runInit(r *toolRun) int {
	password := rand.Text()
	if err := writeNew(r.output, strings.Replace(example, passwordExample, "requirepass "+password+"\n", 1)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s exists: remove it, or name another one: zsetd init -o FILE", r.output)
		}
		fmt.Fprintln(r.stderr, "zsetd init:", err)
		return statusUsage
	}
	fmt.Fprintf(r.stdout, "%s is written, readable for its owner only. It has the password.\n\n"+
		"start the server:  zsetd %s\n"+
		"connect:           zsetd cli -a %s\n"+
		"in a program:      redis://:%s@127.0.0.1:6379\n"+
		"all parameters:    zsetd --help all\n", r.output, r.output, password, password)
	return statusOK
}

// writeNew writes a file that must not exist, for its owner only. It removes what it
// could not write completely.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
