//lint:file-ignore ST1005 Errors in configuration files have the texts of Redis.

package engine

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
	"github.com/zsetd/zsetd/server/internal/acl"
)

// listen opens the configured listeners.
func (srv *Engine) listen() (ls []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range ls {
				l.Close()
			}
			ls = nil
		}
	}()
	srv.Mu.Lock()
	err = srv.fitMaxclients()
	c := srv.Config // a copy: commands may change the parameters from now on
	srv.Mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := srv.checkListening(&c); err != nil {
		return nil, err
	}
	if len(srv.ListenState.handed) > 0 {
		c.Port, c.Unixsocket = 0, ""
	}
	if len(srv.ListenState.handedTLS) > 0 {
		c.TLSPort = 0
	}
	if ls, err = srv.listenTCP(&c); err != nil {
		return ls, fmt.Errorf("zsetd: %w", err)
	}
	tcp := ls
	if c.Unixsocket != "" {
		l, err := ListenUnix(c.Unixsocket, c.unixsocketperm)
		if err != nil {
			return ls, fmt.Errorf("zsetd: %w", err)
		}
		ls = append(ls, l)
	}
	ls = append(ls, srv.ListenState.handed...)
	for _, l := range srv.ListenState.handedTLS {
		ls = append(ls, tlsListener{l, srv})
	}
	if len(ls) == 0 {
		return nil, errors.New("zsetd: nothing to listen on: no address of bind is available")
	}
	srv.ListenState.Lock()
	srv.ListenState.tcp = slices.Clone(tcp)
	srv.ListenState.Unlock()
	return ls, nil
}

// reservedDescriptors is how many descriptors are reserved for purposes other than
// clients.
const reservedDescriptors = 32

// fitMaxclients lowers maxclients to the system's limit of descriptors. Then
// further clients receive an error, where they would otherwise wait until another
// client leaves.
func (srv *Engine) fitMaxclients() error {
	limit, wanted := maxDescriptors(), srv.Config.Maxclients
	switch fit := limit - reservedDescriptors; {
	case wanted <= fit:
		return nil
	case fit <= 0:
		return fmt.Errorf("zsetd: Your current 'ulimit -n' of %d is not enough for the server to start. "+
			"Please increase your open file limit to at least %d. Exiting.", limit, wanted+reservedDescriptors)
	default:
		srv.Log.Warn(fmt.Sprintf("You requested maxclients of %d requiring at least %d max file descriptors.", wanted, wanted+reservedDescriptors))
		srv.Log.Warn(fmt.Sprintf("Current maximum open files is %d. maxclients has been reduced to %d to compensate for low ulimit. "+
			"If you need higher maxclients increase 'ulimit -n'.", limit, fit))
		srv.Config.Maxclients = fit
		srv.applyConfig()
		return nil
	}
}

// checkListening returns an error if there is nothing to listen on.
func (srv *Engine) checkListening(c *Config) error {
	switch {
	case c.Unixsocket != "" || len(srv.ListenState.handed)+len(srv.ListenState.handedTLS) > 0:
		return nil
	case c.Port == 0 && c.TLSPort == 0:
		return errors.New("zsetd: nothing to listen on: port and tls-port are 0 and unixsocket is empty")
	case strings.TrimSpace(c.Bind) == "":
		return errors.New("zsetd: nothing to listen on: bind is empty and unixsocket is empty")
	}
	return nil
}

// ListenUnix opens a unix socket. Before the socket has the permissions perm (0:
// leave the default), only its owner can connect.
func ListenUnix(path, perm string) (l net.Listener, err error) {
	// Remove a socket that a dead server has left. Never remove a file, nor a
	// socket on which another process listens.
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		if nc, err := net.DialTimeout("unix", path, time.Second); err == nil {
			nc.Close()
			return nil, fmt.Errorf("listen unix %s: another process listens on it", path)
		}
		os.Remove(path)
	}
	if perm == "0" {
		return net.Listen("unix", path)
	}
	WithPrivateUmask(func() { l, err = net.Listen("unix", path) })
	if err != nil {
		return nil, err
	}
	mode, _ := strconv.ParseUint(perm, 8, 32)
	if err := os.Chmod(path, fs.FileMode(mode)); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// listenTCP opens the listeners for bind, port and tls-port. With an error it
// returns those that it opened before.
func (srv *Engine) listenTCP(c *Config) (ls []net.Listener, err error) {
	if c.Port != 0 {
		ls, err = listenPort(c.Bind, c.Port)
	}
	if err != nil || c.TLSPort == 0 {
		return ls, err
	}
	more, err := listenPort(c.Bind, c.TLSPort)
	for _, l := range more {
		ls = append(ls, tlsListener{l, srv})
	}
	return ls, err
}

func listenPort(bind string, port int64) (ls []net.Listener, err error) {
	for _, addr := range strings.Fields(bind) {
		addr, optional := strings.CutPrefix(addr, "-")
		network := "tcp4"
		if strings.Contains(addr, ":") {
			network = "tcp6"
		}
		if addr == "*" || addr == "::*" {
			addr = ""
		}
		l, err := net.Listen(network, net.JoinHostPort(addr, strconv.FormatInt(port, 10)))
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

// relisten replaces the listeners of ListenAndServe after a change of port or
// addresses. On failure the old ones stay.
func (srv *Engine) relisten(next *Config) error {
	srv.ListenState.Lock()
	defer srv.ListenState.Unlock()
	if srv.ListenState.Serve == nil {
		return errors.New("the server was not started with ListenAndServe")
	}
	if len(srv.ListenState.handed)+len(srv.ListenState.handedTLS) > 0 {
		return errors.New("the server did not open its sockets itself")
	}
	now := &srv.Config
	var stay []net.Listener
	for _, l := range srv.ListenState.tcp {
		_, secure := l.(tlsListener)
		if next.Bind == now.Bind && (secure && next.TLSPort == now.TLSPort || !secure && next.Port == now.Port) {
			stay = append(stay, l)
			continue
		}
		l.Close() // the new listeners may need the same addresses
	}
	wanted := *next
	back := *now // the configuration of the closed listeners, to restore them on failure
	if next.Bind == now.Bind {
		if next.Port == now.Port {
			wanted.Port, back.Port = 0, 0
		}
		if next.TLSPort == now.TLSPort {
			wanted.TLSPort, back.TLSPort = 0, 0
		}
	}
	ls, err := srv.listenTCP(&wanted)
	if err == nil && len(ls) == 0 && wanted.Port+wanted.TLSPort != 0 && next.Bind != "" {
		err = errors.New("no address of bind is available")
	}
	if err != nil {
		for _, l := range ls {
			l.Close()
		}
		var e error
		if ls, e = srv.listenTCP(&back); e != nil {
			err = errors.Join(err, e)
		}
	}
	srv.ListenState.tcp = append(stay, ls...)
	for _, l := range ls {
		srv.logListening(l)
		srv.ListenState.Serve(l)
	}
	return err
}

// logListening logs that clients are served at l.
func (srv *Engine) logListening(l net.Listener) {
	kind := l.Addr().Network()
	if _, secure := l.(tlsListener); secure {
		kind = "tls"
	}
	srv.Log.Info("Ready to accept connections "+kind, "addr", l.Addr())
}

// keepAlive enables TCP keepalive, which detects peers that are gone.
func (srv *Engine) keepAlive(nc *net.TCPConn) {
	seconds := srv.limits.Load().keepalive
	if seconds == 0 {
		nc.SetKeepAlive(false)
		return
	}
	period := time.Duration(seconds) * time.Second
	nc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: period, Interval: max(period/3, time.Second), Count: 3})
}

// settings collects parameters from files and a command line, for [Options.Config].
type settings struct {
	values map[string]string
	table  []parameter
	begun  map[string]bool // cumulative parameters with a line so far
}

// ReadArgs parses a command line as redis-server does: optionally a configuration
// file first ("-" is standard input, there or at the end), then parameters as
// "--name value …", as if they were at the end of that file. It also accepts
// "--name=value". The result is for [Options.Config].
func ReadArgs(args []string) (map[string]string, error) {
	s := settings{map[string]string{}, Parameters(), map[string]bool{}}
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

// maxInclude is the maximum depth of include directives.
const maxInclude = 16

func (s *settings) file(path string, depth int) error {
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
func (s *settings) line(line, path string, depth int) error {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return nil
	}
	split, ok := protocol.SplitArgs(nil, []byte(line))
	if !ok {
		return fmt.Errorf(">>> '%s': Unbalanced quotes in configuration line", line)
	}
	if len(split) == 0 {
		return nil
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
		return fmt.Errorf(">>> '%s': %w", line, err)
	}
	return nil
}

// include reads the files that an include directive names: a name, or a pattern,
// which need not match any file. As in Redis the name is relative to the working
// directory; a file that is not there is looked up next to the including file.
func (s *settings) include(name, by string, depth int) error {
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
func (s *settings) set(name string, words []string) error {
	if strings.EqualFold(name, "user") {
		return addUser(s.values, words)
	}
	p := FindParameter(s.table, name)
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
	if err := p.set(new(Config), value); err != nil {
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
			return fmt.Errorf("Error in user declaration '%s': %w", first, acl.ErrTwice)
		}
	}
	values["user"] += line + "\n"
	return nil
}

// Usage returns the parameters with their defaults, for zsetd --help.
func Usage() string {
	var b strings.Builder
	b.WriteString("Parameters, with their defaults:\n\n")
	for _, p := range Parameters() {
		if p.Kept {
			continue
		}
		initial := p.Initial
		if initial == "" || strings.Contains(initial, " ") {
			initial = strconv.Quote(initial)
		}
		doc := strings.NewReplacer("`", "", "[What differs](#what-differs-from-redis)", "What differs from Redis in server/README.md").Replace(p.Doc)
		fmt.Fprintf(&b, "  --%s %s\n        %s\n", p.Name, initial, doc)
	}
	b.WriteString("\nThe other parameters of Redis are accepted as well; server/README.md lists those without effect.\n")
	return b.String()
}
