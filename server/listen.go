//lint:file-ignore ST1005 What is wrong with a user is told in Redis's own sentences.

package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// listen opens the listeners that the configuration asks for.
func (srv *Server) listen() (ls []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range ls {
				l.Close()
			}
			ls = nil
		}
	}()
	srv.mu.Lock()
	c := srv.config // which commands may change from now on
	srv.mu.Unlock()
	if ls, err = listenTCP(&c); err != nil {
		return ls, fmt.Errorf("zsetd: %w", err)
	}
	tcp := ls
	if c.unixsocket != "" {
		// A socket that a dead server left is in the way; a file is not ours.
		if info, err := os.Lstat(c.unixsocket); err == nil && info.Mode()&fs.ModeSocket != 0 {
			os.Remove(c.unixsocket)
		}
		l, err := net.Listen("unix", c.unixsocket)
		if err != nil {
			return ls, fmt.Errorf("zsetd: %w", err)
		}
		ls = append(ls, l)
		if c.unixsocketperm != "0" {
			perm, _ := strconv.ParseUint(c.unixsocketperm, 8, 32)
			if err := os.Chmod(c.unixsocket, fs.FileMode(perm)); err != nil {
				return ls, fmt.Errorf("zsetd: %w", err)
			}
		}
	}
	if len(ls) == 0 {
		return nil, errors.New("zsetd: nothing to listen on: port is 0 and there is no unixsocket")
	}
	srv.listening.Lock()
	srv.listening.tcp = slices.Clone(tcp)
	srv.listening.Unlock()
	return ls, nil
}

// listenTCP opens the listeners for bind and port. Those that it has opened
// before an error come with it.
func listenTCP(c *config) (ls []net.Listener, err error) {
	if c.port == 0 {
		return nil, nil
	}
	for _, addr := range strings.Fields(c.bind) {
		addr, optional := strings.CutPrefix(addr, "-")
		network := "tcp4"
		if strings.Contains(addr, ":") {
			network = "tcp6"
		}
		if addr == "*" || addr == "::*" {
			addr = ""
		}
		l, err := net.Listen(network, net.JoinHostPort(addr, strconv.FormatInt(c.port, 10)))
		if err != nil {
			if optional && !strings.Contains(err.Error(), "in use") {
				continue
			}
			return ls, err
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// relisten puts listeners for another port, or other addresses, in the place of
// those of ListenAndServe. If that cannot be, they stay.
func (srv *Server) relisten(next *config) error {
	srv.listening.Lock()
	defer srv.listening.Unlock()
	if srv.listening.serve == nil {
		return errors.New("the server was not started with ListenAndServe")
	}
	for _, l := range srv.listening.tcp {
		l.Close() // the same addresses may be wanted again
	}
	ls, err := listenTCP(next)
	if err == nil && len(ls) == 0 && next.port != 0 {
		err = errors.New("none of the addresses is there")
	}
	if err != nil {
		for _, l := range ls {
			l.Close()
		}
		var e error
		if ls, e = listenTCP(&srv.config); e != nil {
			err = errors.Join(err, e)
		}
	}
	srv.listening.tcp = ls
	for _, l := range ls {
		srv.log.Info("ready to accept connections", "addr", l.Addr())
		srv.listening.serve(l)
	}
	return err
}

// keepAlive makes the system notice peers that are gone.
func (srv *Server) keepAlive(nc *net.TCPConn) {
	seconds := srv.limits.Load().keepalive
	if seconds == 0 {
		nc.SetKeepAlive(false)
		return
	}
	period := time.Duration(seconds) * time.Second
	nc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: period, Interval: max(period/3, time.Second), Count: 3})
}

// ReadArgs reads a command line as redis-server does: perhaps a configuration
// file first ("-" is standard input), then parameters as "--name value …",
// which win. The result is for [Options.Config].
func ReadArgs(args []string) (map[string]string, error) {
	values := map[string]string{}
	if len(args) > 0 && !strings.HasPrefix(args[0], "--") {
		if err := readConfigFile(values, args[0], 0); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	table := parameters()
	fresh := map[string]bool{}
	for len(args) > 0 {
		name, ok := strings.CutPrefix(args[0], "--")
		if !ok {
			return nil, fmt.Errorf("unexpected argument %q: parameters are given as --name value", args[0])
		}
		args = args[1:]
		n := 0
		for n < len(args) && !strings.HasPrefix(args[n], "--") {
			n++
		}
		words := args[:n]
		args = args[n:]
		if err := addSetting(values, table, name, words, fresh); err != nil {
			return nil, fmt.Errorf("--%s: %w", name, err)
		}
	}
	return values, nil
}

// maxInclude is how deep include directives may nest.
const maxInclude = 16

func readConfigFile(values map[string]string, path string, depth int) error {
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
	table := parameters()
	fresh := map[string]bool{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		words, ok := protocol.SplitArgs(nil, []byte(line))
		if !ok || len(words) == 0 {
			return fmt.Errorf("%s:%d: unbalanced quotes in configuration line", path, n)
		}
		name, rest := string(words[0]), make([]string, 0, len(words))
		for _, w := range words[1:] {
			rest = append(rest, string(w))
		}
		var err error
		if strings.EqualFold(name, "include") && len(rest) == 1 {
			err = include(values, rest[0], path, depth)
		} else {
			if strings.EqualFold(name, "rename-command") {
				for i, word := range rest { // of which one may be empty
					rest[i] = string(appendQuoted(nil, word))
				}
			}
			err = addSetting(values, table, name, rest, fresh)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %s: %w", path, n, name, err)
		}
	}
	return lines.Err()
}

// include reads the files that a line of another one includes: a name, or a
// pattern, beside which nothing need be. As in Redis it counts from the working
// directory; what is not there is looked for beside the file.
func include(values map[string]string, name, by string, depth int) error {
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
		if err := readConfigFile(values, path, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// addSetting notes a parameter, after trying its value. Where several lines
// add up, fresh tells the first of them here.
func addSetting(values map[string]string, table []parameter, name string, words []string, fresh map[string]bool) error {
	if strings.EqualFold(name, "user") {
		return addUser(values, words)
	}
	value := strings.Join(words, " ")
	p := findParameter(table, name)
	if p == nil {
		return errors.New("unknown parameter")
	}
	if err := p.set(new(config), value); err != nil {
		return err
	}
	if p.lines && fresh[p.name] {
		value = values[p.name] + " " + value
	}
	fresh[p.name] = true
	values[p.name] = value
	return nil
}

// addUser notes the declaration of a user, as a line of the parameter user.
func addUser(values map[string]string, words []string) error {
	if len(words) == 0 {
		return errors.New("a user needs a name")
	}
	first := words[0]
	line := quoteWords(words)
	name, _, _ := strings.Cut(line, " ")
	for other := range strings.Lines(values["user"]) {
		if other, _, _ = strings.Cut(strings.TrimSuffix(other, "\n"), " "); other == name {
			return fmt.Errorf("Error in user declaration '%s': %w", first, errRuleTwice)
		}
	}
	values["user"] += line + "\n"
	return nil
}

// Usage returns the text of zsetd --help: the parameters with their defaults.
func Usage() string {
	var b strings.Builder
	b.WriteString("Usage: zsetd [redis.conf] [--name value ...]\n\nParameters, with their defaults:\n\n")
	for _, p := range parameters() {
		if p.kept {
			continue
		}
		initial := p.initial
		if initial == "" || strings.Contains(initial, " ") {
			initial = strconv.Quote(initial)
		}
		fmt.Fprintf(&b, "  --%s %s\n        %s\n", p.name, initial, strings.ReplaceAll(p.doc, "`", ""))
	}
	b.WriteString("\nThe other parameters of Redis are accepted, too; the README tells which are without effect.\n")
	return b.String()
}
