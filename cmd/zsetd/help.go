package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/zsetd/zsetd/server"
)

// The program's texts about itself: --help, --version, and the hint that follows an
// error in the command line.

const serverUsage = `Usage: zsetd [redis.conf] [--name value ...]
       zsetd --check-config [redis.conf] [--name value ...]
       zsetd ping [redis.conf] [--name value ...]
       zsetd TOOL ...
       zsetd --help | --version

Without TOOL zsetd starts the server. --name=value is the same as --name value.
The environment variable ZSETD_OPTIONS may contain parameters; the file and the
arguments override them.

`

const pingUsage = `Usage: zsetd ping [redis.conf] [--name value ...]

Checks whether the server with these parameters is ready, over its unixsocket if
there is one, else over its port or tls-port.
Status: 0 ready, 1 loading its data or no answer within 3 seconds, 2 invalid
parameters.
`

const checkConfigUsage = `Usage: zsetd --check-config [redis.conf] [--name value ...]

Checks the configuration as at startup, including users and certificates, without
starting the server.
Status: 0 valid, 1 invalid.
`

// commandHelp returns the help text of a command that is not a tool; "" is the
// server.
func commandHelp(command string) (text string, ok bool) {
	switch strings.TrimLeft(command, "-") {
	case "":
		return serverUsage + server.Usage() + toolUsage(), true
	case "ping":
		return pingUsage, true
	case "check-config":
		return checkConfigUsage, true
	}
	return "", false
}

// runHelp answers the arguments that ask for help or the version. ok is false if
// they do not.
func runHelp(args []string, stdout, stderr io.Writer) (status int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case "-v", "--version", "version":
		fmt.Fprintln(stdout, server.Version())
		return statusOK, true
	case "help":
		text, ok := commandHelp(strings.Join(args[1:], " "))
		if !ok {
			fmt.Fprintf(stderr, "zsetd: unknown command %s\nTry 'zsetd --help'.\n", strings.Join(args[1:], " "))
			return statusUsage, true
		}
		fmt.Fprint(stdout, text)
		return statusOK, true
	}
	command := ""
	for i, arg := range args {
		switch {
		case i == 0 && arg == "ping", arg == "--check-config":
			command = arg
		case arg != "-h" && arg != "--help":
		case i > 0 && args[i-1] != "--check-config" && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "="):
			// the value of a parameter
		default:
			text, _ := commandHelp(command)
			fmt.Fprint(stdout, text)
			return statusOK, true
		}
	}
	return 0, false
}

// argumentError prints an error that server.ReadArgs has returned for the arguments
// of a command, and names the help.
func argumentError(stderr io.Writer, command string, args []string, err error) {
	if command == "" && errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(args[0], `./\-`) {
		err = fmt.Errorf("unknown command %s, and no configuration file of that name", args[0])
	}
	help := "zsetd --help"
	if command != "" {
		help = "zsetd " + command + " --help"
	}
	fmt.Fprintf(stderr, "zsetd: %v\nTry '%s'.\n", err, help)
}
