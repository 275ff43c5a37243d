//lint:file-ignore ST1005 Errors in configuration files have the texts of Redis.

package config

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// settings collects parameters from files and a command line, for [Options.Config].
type reader struct {
	values map[string]string
	table  []Parameter
	begun  map[string]bool // cumulative parameters with a line so far
}

// ReadArgs parses a command line as redis-server does: optionally a configuration
// file first ("-" is standard input, there or at the end), then parameters as
// "--name value …", as if they were at the end of that file. It also accepts
// "--name=value". The result is for [Options.Config].
func ReadArgs(args []string) (map[string]string, error) {
	s := reader{map[string]string{}, Parameters(), map[string]bool{}}
	switch {
	case len(args) == 0 || args[0] == "-" || strings.HasPrefix(args[0], "--"):
	case strings.HasPrefix(args[0], "-"):
		return nil, fmt.Errorf("command line: unknown option %s: parameters begin with two dashes, as in --port 7000", args[0])
	default:
		if err := s.file(args[0], 0); err != nil {
			if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == args[0] {
				err = fmt.Errorf("cannot open the configuration file %s: %w", e.Path, e.Err)
			}
			return nil, err
		}
		args = args[1:]
	}
	stdin := false
	if len(args) > 0 && args[0] == "-" {
		stdin, args = true, args[1:]
	} else if n := len(args); n > 0 && args[n-1] == "-" {
		stdin, args = true, args[:n-1]
	}
	if stdin {
		if err := s.file("-", 0); err != nil {
			return nil, err
		}
	}
	for line := range strings.Lines(argumentLines(args)) {
		if err := s.line(line, "-", maxInclude); err != nil {
			return nil, fmt.Errorf("command line: %w", err)
		}
	}
	return s.values, nil
}

// argumentLines converts arguments to lines of a configuration file, as Redis does:
// "--name" begins a line, unless the preceding parameter still requires a value, in
// which case it is that value; --save without a value is empty. Beyond Redis,
// "--name=value" is a name and its value.
func argumentLines(args []string) string {
	var b []byte
	valueDue := false
	for i, arg := range args {
		name, isName := strings.CutPrefix(arg, "--")
		if !isName || valueDue {
			b = append(protocol.AppendQuoted(b, arg), ' ')
			valueDue = false
			continue
		}
		if i > 0 {
			b = append(b, '\n')
		}
		if name, value, ok := strings.Cut(name, "="); ok && name != "" && !strings.ContainsAny(name, " \t\r\n\"'") {
			b = append(append(b, name...), ' ')
			b = append(protocol.AppendQuoted(b, value), ' ')
			continue
		}
		b = append(append(b, name...), ' ')
		words, ok := protocol.SplitArgs(nil, []byte(arg))
		valueDue = ok && len(words) == 1
		if valueDue && strings.EqualFold(name, "save") && (i == len(args)-1 || strings.HasPrefix(args[i+1], "--")) {
			b = append(b, `""`...)
			valueDue = false
		}
	}
	return string(b)
}

// ParameterError is the error for a parameter of a configuration file or of the command
// line: its name is unknown, or its value is not accepted.
type ParameterError struct {
	Name  string
	Words []string // the value
	line  string
	err   error
}

// Error returns the line and the reason, as Redis writes them.
func (e *ParameterError) Error() string { return fmt.Sprintf(">>> '%s': %v", e.line, e.err) }

// Unwrap returns the reason.
func (e *ParameterError) Unwrap() error { return e.err }

// maxInclude is the maximum depth of include directives.
const maxInclude = 16

func (s *reader) file(path string, depth int) error {
	if depth > maxInclude {
		return fmt.Errorf("%s: include directives are nested too deeply", path)
	}
	var r io.Reader = os.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		r = f
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24) // users may have long lines
	for n := 1; lines.Scan(); n++ {
		if err := s.line(lines.Text(), path, depth); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return lines.Err()
}

// line parses a line of a file.
func (s *reader) line(line, path string, depth int) error {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return nil
	}
	split, ok := protocol.SplitArgs(nil, []byte(line))
	if !ok {
		return fmt.Errorf(">>> '%s': Unbalanced quotes in configuration line", line)
	}
	words := make([]string, len(split))
	for i, word := range split {
		words[i] = string(word)
	}
	name, words := words[0], words[1:]
	if strings.EqualFold(name, "include") && len(words) == 1 {
		return s.include(words[0], path, depth)
	}
	if err := s.set(name, words); err != nil {
		return &ParameterError{Name: name, Words: words, line: line, err: err}
	}
	return nil
}

// include reads the files that an include directive names: a name, or a pattern,
// which need not match any file. As in Redis the name is relative to the working
// directory; a file that is not there is looked up next to the including file.
func (s *reader) include(name, by string, depth int) error {
	paths := []string{name}
	if strings.ContainsAny(name, "*?[") {
		var err error
		if paths, err = filepath.Glob(name); err != nil {
			return err
		}
	} else if _, err := os.Stat(name); err != nil && !filepath.IsAbs(name) && by != "-" {
		paths[0] = filepath.Join(filepath.Dir(by), name)
	}
	for _, path := range paths {
		if err := s.file(path, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// set records a parameter after it has validated the value.
func (s *reader) set(name string, words []string) error {
	if strings.EqualFold(name, "user") {
		return addUser(s.values, words)
	}
	p := Find(s.table, name)
	switch {
	case p == nil:
		return errors.New("Bad directive or wrong number of arguments")
	case p.Name == "rename-command":
		if len(words) != 2 {
			return errors.New("Bad directive or wrong number of arguments")
		}
		words = []string{protocol.JoinArgs(words)} // one of them may be empty
	case !p.several && len(words) != 1:
		return errors.New("wrong number of arguments")
	case p.several && len(words) == 1 && words[0] != "":
		split, ok := protocol.SplitArgs(nil, []byte(words[0]))
		if !ok {
			return errors.New("Unbalanced quotes in configuration line")
		}
		words = nil
		for _, word := range split {
			words = append(words, string(word))
		}
	}
	value := strings.Join(words, " ")
	if err := p.Set(new(Settings), value); err != nil {
		return err
	}
	if p.lines && s.values[p.Name] != "" && s.begun[p.Name] && value != "" {
		value = s.values[p.Name] + " " + value
	}
	s.begun[p.Name] = true
	s.values[p.Name] = value
	return nil
}

// addUser records the declaration of a user, as a line of the parameter user.
func addUser(values map[string]string, words []string) error {
	if len(words) == 0 {
		return errors.New("a user needs a name")
	}
	first := words[0]
	line := protocol.JoinArgs(words)
	name, _, _ := strings.Cut(line, " ")
	for other := range strings.Lines(values["user"]) {
		if other, _, _ = strings.Cut(strings.TrimSuffix(other, "\n"), " "); other == name {
			return fmt.Errorf("Error in user declaration '%s': Duplicate user found. A user can only be defined once in config files", first)
		}
	}
	values["user"] += line + "\n"
	return nil
}
