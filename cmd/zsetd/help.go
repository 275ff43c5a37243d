package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/zsetd/zsetd/server"
)

// The program's texts about itself: --help, --version, and the hint that follows an
// error in the command line.

const serverUsage = `Usage: zsetd [redis.conf] [--name value ...]
       zsetd --check-config [redis.conf] [--name value ...]
       zsetd TOOL ..., zsetd --help [all | PARAMETER | TOOL], zsetd --version

Without TOOL zsetd starts the server. --name=value is the same as --name value.
`

const environmentUsage = `The environment variable ZSETD_OPTIONS may contain parameters; the file and the
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

const userUsage = `  --user NAME RULE ...
        Declares a user: each rule is a word of its own, and the shell needs quotes around
        most of them, as in --user ann on '>password' '~news:*' '&*' +@read. on lets the
        user log in; >password, ~keys, &channels, +command and +@category are as in ACL
        SETUSER. In a file: user ann on >password ~news:* &* +@read
`

const includeUsage = `  include FILE
        In configuration files: reads the parameters of another file, or of those that match
        a pattern.
`

// commonParameters are the parameters of the first page of the help, with what they are in
// a few words.
func commonParameters() [][2]string {
	return [][2]string{
		{"port", "TCP port; 0 disables it"},
		{"bind", "addresses to listen on; * means all"},
		{"requirepass", "password that clients need"},
		{"dir", "directory of the data file"},
		{"dbfilename", `data file; "" keeps the data in memory only`},
		{"save", "when to save: seconds and changes"},
		{"appendonly", "save as appendfsync says instead"},
		{"maxmemory", "limit of the data, as in 1gb; 0 means none"},
		{"maxmemory-policy", "which keys to evict at that limit"},
		{"replicaof", "primary to follow, as in '10.0.0.1 6379'"},
		{"http-port", "port of the console, a web page; 0: none"},
		{"logfile", "log file; the default is standard output"},
	}
}

// programDefault returns the default of a parameter, as a word of a command line: the
// program has a data file, unlike an embedded server.
func programDefault(p server.Parameter) string {
	value := p.Default
	switch p.Name {
	case "dbfilename":
		value = defaultFile
	case "save":
		value = "1 1"
	}
	if value == "" || strings.Contains(value, " ") {
		value = strconv.Quote(value)
	}
	return value
}

// findParameter returns the parameter of that name.
func findParameter(name string) (server.Parameter, bool) {
	for _, p := range server.Parameters() {
		if strings.EqualFold(p.Name, name) || p.Alias != "" && strings.EqualFold(p.Alias, name) {
			return p, true
		}
	}
	return server.Parameter{}, false
}

// parameterNames returns the names that may begin a line of a configuration file.
func parameterNames() []string {
	var names []string
	for _, p := range server.Parameters() {
		names = append(names, p.Name)
		if p.Alias != "" {
			names = append(names, p.Alias)
		}
	}
	return append(names, "user", "include")
}

// commandNames returns the names that may follow zsetd.
func commandNames() []string {
	var names []string
	for _, t := range tools() {
		names = append(names, t.name)
	}
	return append(names, "ping", "help", "version")
}

// shortHelp is the first page of the help.
func shortHelp() string {
	var b strings.Builder
	b.WriteString(serverUsage + "\nTools:\n")
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, t := range tools() {
		fmt.Fprintf(w, "  %s\t%s\n", t.name, t.summary)
	}
	fmt.Fprintln(w, "  ping\tsay whether a server is ready")
	w.Flush()
	more := 0
	for _, p := range server.Parameters() {
		if !p.NoEffect {
			more++
		}
	}
	b.WriteString("\nParameters, with their defaults:\n")
	for _, common := range commonParameters() {
		if p, ok := findParameter(common[0]); ok {
			fmt.Fprintf(w, "  --%s %s\t%s\n", p.Name, programDefault(p), common[1])
			more--
		}
	}
	w.Flush()
	fmt.Fprintf(&b, "zsetd --help all lists %d more, zsetd --help maxmemory describes one.\n", more)
	return b.String()
}

// allHelp lists all parameters that have an effect.
func allHelp() string {
	var b strings.Builder
	b.WriteString(serverUsage + environmentUsage + "\nParameters, with their defaults:\n\n")
	for _, p := range server.Parameters() {
		if !p.NoEffect {
			fmt.Fprintf(&b, "  --%s %s\n        %s\n", p.Name, programDefault(p), p.Doc)
		}
	}
	b.WriteString(userUsage)
	b.WriteString("\nThe other parameters of Redis are accepted as well; server/PARAMETERS.md lists those without effect.\n")
	b.WriteString(toolUsage())
	return b.String()
}

// parameterHelp describes one parameter.
func parameterHelp(p server.Parameter) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  --%s %s\n", p.Name, programDefault(p))
	sentence := p.Doc
	if p.NoEffect {
		sentence = "Accepted as in Redis; " + strings.TrimSuffix(p.Doc, ".") + "."
	}
	b.WriteString(wrapped(sentence))
	if accepted := accepts(p); accepted != "" {
		b.WriteString(wrapped("Accepts " + accepted + "."))
	}
	if p.Alias != "" {
		b.WriteString(wrapped("Another name is " + p.Alias + "."))
	}
	switch {
	case p.NoEffect:
	case p.Fixed:
		b.WriteString(wrapped("It is set at the start."))
	default:
		b.WriteString(wrapped("CONFIG SET " + p.Name + " changes it while the server runs."))
	}
	return b.String()
}

// accepts says which values a parameter accepts; "" if its description does.
func accepts(p server.Parameter) string {
	if n := len(p.Values); n > 1 {
		return strings.Join(p.Values[:n-1], ", ") + " or " + p.Values[n-1]
	}
	return p.Accepts
}

// wrapped breaks a text into indented lines for a terminal of 80 columns.
func wrapped(text string) string {
	const indent, width = "        ", 80
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0 || column+1+len(word) > width:
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String() + "\n"
}

// helpOn returns the text about a topic: "" is the first page, else a parameter or a
// command that is not a tool.
func helpOn(topic string) (text string, ok bool) {
	switch name := strings.ToLower(strings.TrimLeft(topic, "-")); name {
	case "":
		return shortHelp(), true
	case "all":
		return allHelp(), true
	case "ping":
		return pingUsage, true
	case "check-config":
		return checkConfigUsage, true
	case "user":
		return userUsage, true
	case "include":
		return includeUsage, true
	default:
		p, ok := findParameter(name)
		if !ok {
			return "", false
		}
		return parameterHelp(p), true
	}
}

// printHelp prints the text about a topic, which is not a tool, and returns the status.
func printHelp(topic string, stdout, stderr io.Writer) int {
	text, ok := helpOn(topic)
	if !ok {
		names := append(commandNames(), parameterNames()...)
		fmt.Fprintf(stderr, "zsetd: unknown command or parameter %s\n%sTry 'zsetd --help'.\n", topic, didYouMean(strings.TrimLeft(topic, "-"), "", names))
		return statusUsage
	}
	fmt.Fprint(stdout, text)
	return statusOK
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
		return printHelp(strings.Join(args[1:], " "), stdout, stderr), true
	}
	topic := ""
	for i, arg := range args {
		switch {
		case i == 0 && arg == "ping", arg == "--check-config":
			topic = arg
		case arg != "-h" && arg != "--help":
		case i > 0 && args[i-1] != "--check-config" && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "="):
			// the value of a parameter
		default:
			if topic == "" {
				topic = strings.Join(args[i+1:], " ")
			}
			return printHelp(topic, stdout, stderr), true
		}
	}
	return 0, false
}

// argumentError prints an error that server.ReadArgs has returned for the arguments
// of a command, what helps, and names the help.
func argumentError(stderr io.Writer, command string, args []string, err error) {
	hint := ""
	wrong, isParameter := errors.AsType[*server.ParameterError](err)
	switch {
	case isParameter:
		hint = parameterHint(wrong, args)
	case command == "" && errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(args[0], `./\-`):
		err = fmt.Errorf("unknown command %s, and no configuration file of that name", args[0])
		hint = commandHint(args[0])
	}
	help := "zsetd --help"
	if command != "" {
		help = "zsetd " + command + " --help"
	}
	fmt.Fprintf(stderr, "zsetd: %v\n%sTry '%s'.\n", err, hint, help)
}

// parameterHint returns what helps after an error in a parameter, in lines.
func parameterHint(wrong *server.ParameterError, args []string) string {
	p, ok := findParameter(wrong.Name)
	if !ok {
		prefix := ""
		for _, arg := range args {
			if strings.HasPrefix(arg, "--"+wrong.Name) {
				prefix = "--" // it is not in a file
			}
		}
		return didYouMean(wrong.Name, prefix, parameterNames())
	}
	if len(p.Values) > 0 && len(wrong.Words) == 1 {
		return didYouMean(wrong.Words[0], "", p.Values)
	}
	if accepted := accepts(p); accepted != "" {
		return p.Name + " accepts " + accepted + ".\n"
	}
	return ""
}
