package prompt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
	"github.com/zsetd/zsetd/protocol"
)

// Options are the parameters of a session.
type Options struct {
	client.Options
	Form       Form
	Delimiter  string                       // between elements in the form Raw
	End        string                       // behind a reply in the form Raw
	Repeat     int                          // how often each command runs; below 0 without end
	Interval   time.Duration                // between two runs
	ExitErrors bool                         // a command line ends at an error reply, with status 1
	Pushes     bool                         // push messages between replies are printed
	Colors     bool                         // of the help
	Table      map[string]*protocol.Command // the commands that are known without a server
	Interrupts <-chan os.Signal             // ends a command that waits or streams; nil for none
}

// Session runs commands on a connection and prints the replies. It needs exclusive
// access.
type Session struct {
	o           Options
	stdout      *bufio.Writer
	stderr      io.Writer
	interactive bool // it connects again, and reports times
	conn        *client.Conn
	transaction bool
	dbBefore    int // the database before the transaction
	known       commands
	docs        bool // known is from this server
	asked       bool // the server was asked for it, as this user
}

// New returns a session that is not connected.
func New(o Options, stdout, stderr io.Writer) *Session {
	return &Session{o: o, stdout: bufio.NewWriter(stdout), stderr: stderr, known: tableCommands(o.Table)}
}

// ErrFailed ends a command line: the message has been printed.
var ErrFailed = errors.New("the command has failed")

// errInterrupted ends a command at an interrupt.
var errInterrupted = errors.New("interrupted")

// errReply ends a command at an error reply.
var errReply = errors.New("error reply")

// prompt is the text before the line that is typed.
func (s *Session) prompt() string {
	if s.conn == nil {
		return "not connected> "
	}
	text := s.o.Address()
	if s.o.Socket != "" {
		text = "zsetd " + text
	}
	if s.o.DB != 0 {
		text += fmt.Sprintf("[%d]", s.o.DB)
	}
	if s.transaction {
		text += "(TX)"
	}
	return text + "> "
}

// connect closes the connection and makes a new one. It prints why it cannot.
func (s *Session) connect() error {
	s.disconnect()
	s.dropInterrupt()
	var conn *client.Conn
	var refused []error
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := s.interruptible(cancel, func() (err error) {
		if conn, err = client.Dial(ctx, &s.o.Options); err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		refused, err = conn.Login(&s.o.Options)
		return err
	})
	for _, why := range refused {
		fmt.Fprintln(s.stderr, why)
		if strings.HasPrefix(why.Error(), "SELECT ") {
			s.o.DB = 0
		}
	}
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		fmt.Fprintf(s.stderr, "Could not connect to %s: %v\n", s.o.Address(), reason(err))
		return err
	}
	s.conn, s.asked = conn, false
	return nil
}

// disconnect closes the connection, if there is one.
func (s *Session) disconnect() {
	if s.conn != nil {
		s.conn.Close()
	}
	s.conn, s.transaction = nil, false
}

// reason returns an error of the network without the address, which the message has.
func reason(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the server has closed the connection")
	}
	if system, ok := errors.AsType[syscall.Errno](err); ok {
		return system
	}
	return err
}

// learn asks the server for its commands, unless they are known.
func (s *Session) learn() {
	if s.docs || s.asked || s.conn == nil || s.transaction {
		return
	}
	s.asked = true
	var docs client.Reply
	if err := s.interruptible(func() { s.conn.Close() }, func() (err error) {
		docs, err = s.conn.Do("COMMAND", "DOCS")
		return err
	}); err != nil {
		s.disconnect()
		return
	}
	if known := serverCommands(&docs); known != nil {
		s.known, s.docs = known, true
	}
}

// RunCommand runs the command of a command line.
func (s *Session) RunCommand(words []string) error {
	defer s.disconnect()
	if isWord(words, helpWord, "?") {
		return s.help(words[1:])
	}
	if err := s.connect(); err != nil {
		return ErrFailed
	}
	switch err := s.repeat(words, s.o.Repeat); {
	case errors.Is(err, errReply):
		return ErrFailed
	case err != nil:
		fmt.Fprintln(s.stderr, "Error:", reason(err))
		return ErrFailed
	}
	return nil
}

// RunLines runs the commands in the lines of in.
func (s *Session) RunLines(in io.Reader) error {
	defer s.disconnect()
	s.interactive = true
	if s.connect() != nil {
		return ErrFailed
	}
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if line != "" && s.runLine(line) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// editor reads lines from a terminal.
type editor interface {
	// read returns the line that is typed at a prompt; io.EOF ends the session, and
	// errInterrupted gives the line up.
	read(prompt string) (string, error)
	remember(line string) // adds a line to the history
	clear()               // clears the screen
	setHints(on bool)
}

// runPrompt reads commands from an editor and runs them, until the user leaves.
func (s *Session) runPrompt(e editor) error {
	defer s.disconnect()
	s.interactive = true
	s.connect() // a failure is printed, and each command tries again
	for {
		s.learn()
		line, err := e.read(s.prompt())
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errInterrupted):
			continue
		case err != nil:
			return err
		}
		words, ok := split(line)
		if strings.TrimSpace(line) != "" && !(ok && isSecret(words)) {
			e.remember(strings.TrimSpace(line))
		}
		switch {
		case isWord(words, "clear") && len(words) == 1:
			e.clear()
		case isWord(words, ":set") && len(words) == 2 && isWord(words[1:], "hints", "nohints"):
			e.setHints(strings.EqualFold(words[1], "hints"))
		case s.runLine(line):
			return nil
		}
	}
}

// isWord reports whether words begin with one of some words, in any case.
func isWord(words []string, names ...string) bool {
	return len(words) > 0 && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, words[0]) })
}

// split splits a line into words. ok is false if its quotes are not balanced.
func split(line string) (words []string, ok bool) {
	args, ok := protocol.SplitArgs(nil, []byte(strings.TrimRight(line, "\r\n")))
	for _, arg := range args {
		words = append(words, string(arg))
	}
	return words, ok
}

// runLine runs the command in a line, and prints what is wrong with it. leave reports
// that the line ends the session.
func (s *Session) runLine(line string) (leave bool) {
	defer s.stdout.Flush()
	words, ok := split(line)
	times := s.o.Repeat
	switch {
	case !ok:
		fmt.Fprintln(s.stdout, "Invalid argument(s)")
		return false
	case len(words) == 0:
		return false
	case isWord(words, "quit", "exit"):
		return true
	case isWord(words, "connect") && len(words) == 3:
		s.o.Host, s.o.Port, s.o.Socket, s.docs = words[1], words[2], "", false
		s.connect() // it prints the error
		return false
	case isWord(words, helpWord, "?"):
		s.help(words[1:]) // it prints the error
		return false
	case len(words) > 1:
		if n, err := strconv.Atoi(words[0]); err == nil {
			if n <= 0 {
				fmt.Fprintln(s.stdout, "Invalid number of repetitions: want 1 or more.")
				return false
			}
			times, words = n, words[1:]
		}
	}
	s.dropInterrupt()
	start := time.Now()
	err := s.repeat(words, times)
	switch {
	case errors.Is(err, errReply):
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(s.stdout)
		s.connect() // it prints the error
	case err != nil && s.conn != nil:
		s.disconnect()
		fmt.Fprintln(s.stderr, "Error:", reason(err))
	}
	if took := time.Since(start); took >= 500*time.Millisecond && s.o.Form == Typed && err == nil {
		fmt.Fprintf(s.stdout, "(%.2fs)\n", took.Seconds())
	}
	return false
}

// help prints the help about a topic.
func (s *Session) help(topic []string) error {
	if !s.docs && len(topic) > 0 {
		if s.conn == nil {
			if conn, err := client.Dial(context.Background(), &s.o.Options); err == nil {
				if _, err := conn.Login(&s.o.Options); err == nil {
					s.conn = conn
				}
			}
		}
		s.learn()
	}
	fmt.Fprint(s.stdout, s.known.help(topic, s.o.Colors))
	return s.stdout.Flush()
}

// repeat runs a command some times, without end if times is below 0.
func (s *Session) repeat(words []string, times int) error {
	for i := 0; times < 0 || i < times; i++ {
		if i > 0 && s.o.Interval > 0 {
			if err := s.pause(); err != nil {
				return err
			}
		}
		if s.conn == nil && s.connect() != nil {
			return errReply
		}
		if err := s.run(words); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) pause() error {
	select {
	case <-s.o.Interrupts:
		return errInterrupted
	case <-time.After(s.o.Interval):
		return nil
	}
}

// run sends a command and prints its reply, or its replies if it streams.
func (s *Session) run(words []string) error {
	reply, err := s.request(words)
	if err != nil && isWord(words, "shutdown") && isClosed(err) {
		s.disconnect()
		return nil
	}
	if err != nil && !errors.Is(err, errInterrupted) && s.interactive && isClosed(err) {
		// The server may have closed an idle connection, or been restarted.
		if s.connect() != nil {
			return errReply
		}
		reply, err = s.request(words)
	}
	if err != nil {
		return err
	}
	if reply.IsError() && s.o.ExitErrors {
		fmt.Fprintln(s.stderr, reply.Text)
		return errReply
	}
	s.print(&reply, isText(words))
	s.follow(words, &reply)
	if isStream(words) && !reply.IsError() {
		return s.stream(words)
	}
	return s.stdout.Flush()
}

// isClosed reports whether an error is that of a connection which has ended.
func isClosed(err error) bool {
	var system interface{ Timeout() bool }
	return errors.Is(err, io.EOF) || errors.As(err, &system) && !system.Timeout()
}

// request sends a command and returns its reply. It prints the push messages that come
// first, unless they are the reply.
func (s *Session) request(words []string) (client.Reply, error) {
	if isWord(words, "subscribe", "psubscribe", "ssubscribe") && s.o.Form == Typed {
		fmt.Fprintln(s.stdout, "Reading messages... (press Ctrl-C to quit)")
		if err := s.stdout.Flush(); err != nil {
			return client.Reply{}, err
		}
	}
	if err := s.conn.Send(words...); err != nil {
		return client.Reply{}, err
	}
	for {
		reply, err := s.receive()
		if err != nil || reply.Kind != client.Push || isStream(words) || isWord(words, "unsubscribe", "punsubscribe", "sunsubscribe") {
			return reply, err
		}
		s.printPush(&reply)
	}
}

// receive returns the next reply. An interrupt closes the connection.
func (s *Session) receive() (reply client.Reply, err error) {
	err = s.interruptible(func() { s.conn.Close() }, func() (err error) {
		reply, err = s.conn.Receive()
		return err
	})
	return reply, err
}

// dropInterrupt drops an interrupt that came before what follows.
func (s *Session) dropInterrupt() {
	select {
	case <-s.o.Interrupts:
	default:
	}
}

// interruptible calls f, which stop ends. An interrupt calls stop, and is the error then.
func (s *Session) interruptible(stop func(), f func() error) error {
	if s.o.Interrupts == nil {
		return f()
	}
	var interrupted atomic.Bool
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.o.Interrupts:
			interrupted.Store(true)
			stop()
		case <-done:
		}
	}()
	err := f()
	close(done)
	<-ended
	if err != nil && interrupted.Load() {
		err = errInterrupted
	}
	return err
}

// stream prints what follows the first reply to a command that streams.
func (s *Session) stream(words []string) error {
	for {
		if err := s.stdout.Flush(); err != nil {
			return err
		}
		reply, err := s.receive()
		if err != nil {
			return err
		}
		s.print(&reply, isWord(words, "monitor"))
	}
}

// print prints a reply, the text of the server as it is.
func (s *Session) print(r *client.Reply, isText bool) {
	b := s.stdout.AvailableBuffer()
	if isText && !r.IsAggregate() && r.Kind != client.Null {
		b = append(b, r.Text...)
		if r.Text != "" && !strings.HasSuffix(r.Text, "\n") {
			b = append(b, '\n')
		}
	} else {
		b = appendReply(b, r, s.o.Form, s.o.Delimiter, s.o.End)
	}
	s.stdout.Write(b)
}

// printPush prints a push message that is no reply.
func (s *Session) printPush(r *client.Reply) {
	if !s.o.Pushes {
		return
	}
	if len(r.Elements) == 2 && r.Elements[0].Text == "invalidate" && r.Elements[1].Kind == client.Array && s.o.Form == Typed {
		var keys []string
		for _, key := range r.Elements[1].Elements {
			keys = append(keys, "'"+key.Text+"'")
		}
		fmt.Fprintf(s.stdout, "-> invalidate: %s\n", strings.Join(keys, ", "))
		return
	}
	s.print(r, false)
}

// follow keeps the state of the connection that the prompt shows.
func (s *Session) follow(words []string, r *client.Reply) {
	failed := r.IsError()
	switch {
	case isWord(words, "select") && len(words) == 2 && !failed:
		if n, err := strconv.Atoi(words[1]); err == nil {
			s.o.DB = n
		}
	case isWord(words, "multi") && !failed:
		s.transaction, s.dbBefore = true, s.o.DB
	case isWord(words, "exec", "discard") && s.transaction:
		s.transaction = false
		if failed || r.Kind == client.Null || isWord(words, "discard") {
			s.o.DB = s.dbBefore
		}
	case isWord(words, "reset") && !failed:
		s.transaction, s.o.DB = false, 0
	case isWord(words, "auth", "hello") && !failed:
		s.asked = false
	}
}

// isStream reports whether the server sends more than one reply to a command.
func isStream(words []string) bool {
	return isWord(words, "subscribe", "psubscribe", "ssubscribe", "monitor")
}

// isText reports whether the reply to a command is a text for people, which is printed
// as it is.
func isText(words []string) bool {
	if len(words) == 0 {
		return false
	}
	if isWord(words, "info", "lolwut") {
		return true
	}
	if len(words) < 2 {
		return isWord(words, "monitor")
	}
	switch sub := strings.ToLower(words[1]); strings.ToLower(words[0]) {
	case "client":
		return sub == "list" || sub == "info"
	case "cluster":
		return sub == "nodes" || sub == "info"
	case "memory":
		return sub == "malloc-stats" || sub == "doctor"
	case "latency":
		return sub == "graph" || sub == "doctor"
	case "debug":
		return sub == "htstats" || sub == "htstats-key"
	}
	return false
}

// isSecret reports whether a command has passwords, so that the history must not have
// it.
func isSecret(words []string) bool {
	if len(words) > 0 {
		if n, err := strconv.Atoi(words[0]); err == nil && n > 0 {
			words = words[1:]
		}
	}
	after := func(from int, names ...string) bool {
		for i := from; i < len(words); i++ {
			if isWord(words[i:], names...) {
				return true
			}
		}
		return false
	}
	switch {
	case isWord(words, "auth"):
		return true
	case isWord(words, "acl"):
		return after(1, "setuser", "deluser")
	case isWord(words, "config") && len(words) > 1 && isWord(words[1:], "set"):
		return after(2, "requirepass", "masterauth", "masteruser", "primaryauth", "primaryuser", "tls-key-file-pass", "tls-client-key-file-pass",
			"http-link-secret", "forward-to")
	case isWord(words, "hello"):
		return after(2, "auth")
	case isWord(words, "migrate"):
		return after(1, "auth", "auth2")
	case isWord(words, "sentinel"):
		return after(1, "auth-pass", "auth-user", "sentinel-pass", "sentinel-user")
	}
	return false
}
