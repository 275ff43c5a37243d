package server_test

// Transcripts: testdata/*.resp hold commands and the exact bytes that come
// back.
//
//	# a comment
//	--- a section: an empty server and fresh clients
//	> ZADD k 1 "a b"
//	:1
//	2> BZPOPMIN empty 0
//
//	> ZADD empty 5 x
//	:1
//	2<
//	*3
//	$5
//	empty
//	$1
//	x
//	$1
//	5
//
// "> " sends a line on client 1, "2> " on client 2; lines are split into words
// as redis-cli does it. The exact reply follows, one line of RESP per
// line of text, bytes that cannot be printed and backslashes escaped as \xHH and
// \\. No reply means that none comes now; several, that several come.
// "(closed)" in place of a reply: the server closes the connection. "2<" begins
// what client 2 receives later.
//
// Directives stand alone on a line before a command:
//
//	@any            whatever the reply is
//	@unordered      its elements in any order; "@unordered 2": its pairs
//	@near 5         an integer, or a list of them, or what differs by at most 5
//	@zsetd          a real redis-server is not judged: Redis 7.0 lacks it, or we differ on purpose
//	@raw            the line is sent as it is (with \r\n and the like), not as a command
//	@advance 1500ms the clock jumps (a real redis-server is waited for); no command follows
//
// and these for a whole section, anywhere in it, or for the whole file, before
// its first command and title:
//
//	@nomulti        not when each command runs inside MULTI
//	@noresp3        not when all clients speak RESP3
//	@noreload       not when the data are saved and loaded after each command
//	@noscript       not when each command is run by a script
//	@zsetd          (as a part of the title "--- title @zsetd", or for the file)
//
// Every section runs in several modes, see transcriptModes. The tests write
// the replies down with
//
//	go test ./server -run TestTranscripts/zadd -rewrite
//
// and judge a real redis-server, which they empty, by the same files with
//
//	redis-server --port 7777 --save "" --enable-debug-command yes
//	go test ./server -run TestTranscripts -against 127.0.0.1:7777
//
// Both flags together record the replies of a real redis-server; items marked
// @zsetd are kept.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
)

var (
	rewrite = flag.Bool("rewrite", false, "write the replies into the transcripts")
	against = flag.String("against", "", "`address` of a redis-server to judge by the transcripts; it is emptied")
)

// transcriptModes are the ways in which every section is run.
var transcriptModes = []string{
	"plain",     // one command at a time
	"pipelined", // consecutive commands of a client are sent in one write
	"multi",     // each command inside MULTI and EXEC
	"resp3",     // all clients speak RESP3; the replies mean the same
	"reload",    // after each command the data are saved to a file and loaded again
	"script",    // each command that may be is run by a script; replies as Lua can tell them
}

const (
	patience = time.Minute           // for a reply that must come
	silence  = 30 * time.Millisecond // after which no reply is believed to come
)

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.resp")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".resp"), func(t *testing.T) {
			f, err := parseTranscript(filepath.Base(name), string(text))
			if err != nil {
				t.Fatal(err)
			}
			if *rewrite {
				for _, s := range f.sections {
					runSection(t, f, s, "plain", true)
				}
				if t.Failed() {
					return
				}
				if err := os.WriteFile(name, []byte(f.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for _, mode := range transcriptModes {
				t.Run(mode, func(t *testing.T) {
					for _, s := range f.sections {
						if s.marks["no"+mode] || *against != "" && (s.marks["zsetd"] || mode == "reload") {
							continue
						}
						if s.title == "" {
							runSection(t, f, s, mode, false)
							continue
						}
						t.Run(s.title, func(t *testing.T) { runSection(t, f, s, mode, false) })
					}
				})
			}
		})
	}
}

// transcript is a file.
type transcript struct {
	name     string
	sections []*section
}

type section struct {
	title string
	marks map[string]bool // nomulti, noresp3, noreload, zsetd
	items []*item
}

// item is a command with its replies, what a client receives later, an
// advance of the clock, or lines that mean nothing.
type item struct {
	line    int
	text    []string // the lines as they are, the replies left out
	client  int      // 0: neither sends nor receives
	command []string // nil: receives
	raw     string   // with @raw: the bytes to send
	replies []string // encoded; closed for the end of the connection
	advance time.Duration

	any, unordered, zsetd bool
	group                 int // @unordered: how many elements belong together
	near                  int64
}

const closed = "(closed)"

func (f *transcript) String() string {
	var b strings.Builder
	for _, s := range f.sections {
		for _, it := range s.items {
			for _, line := range it.text {
				b.WriteString(line + "\n")
			}
			for _, r := range it.replies {
				for _, line := range replyLines(r) {
					b.WriteString(line + "\n")
				}
			}
		}
	}
	return b.String()
}

func parseTranscript(name, text string) (*transcript, error) {
	f := &transcript{name: name}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	fileMarks := map[string]bool{}
	s := &section{marks: map[string]bool{}}
	f.sections = append(f.sections, s)
	began := false          // a command or a title was seen
	next := &item{group: 1} // gathers directives and comments for the next command
	flush := func() {
		if len(next.text) > 0 {
			s.items = append(s.items, next)
		}
		next = &item{group: 1}
	}
	for at := 0; at < len(lines); {
		line := lines[at]
		at++
		fail := func(format string, args ...any) (*transcript, error) {
			return nil, fmt.Errorf("%s:%d: %s", name, at, fmt.Sprintf(format, args...))
		}
		if title, ok := strings.CutPrefix(line, "---"); ok {
			flush()
			words := strings.Fields(title)
			s = &section{marks: map[string]bool{}}
			for len(words) > 0 && words[len(words)-1][0] == '@' {
				s.marks[words[len(words)-1][1:]] = true
				words = words[:len(words)-1]
			}
			s.title = strings.Join(words, " ")
			s.items = append(s.items, &item{text: []string{line}})
			f.sections = append(f.sections, s)
			began = true
			continue
		}
		next.text = append(next.text, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if directive, ok := strings.CutPrefix(line, "@"); ok {
			word, value, _ := strings.Cut(directive, " ")
			marks := s.marks
			if !began {
				marks = fileMarks
			}
			var err error
			switch word {
			case "any":
				next.any = true
			case "unordered":
				next.unordered = true
				if value != "" {
					next.group, err = strconv.Atoi(value)
				}
			case "near":
				next.near, err = strconv.ParseInt(value, 10, 64)
			case "raw":
				next.raw = "raw"
			case "zsetd":
				next.zsetd = true
				if following := slices.IndexFunc(lines[at:], func(l string) bool {
					return l != "" && l[0] != '#' && l[0] != '@'
				}); !began && (following < 0 || strings.HasPrefix(lines[at+following], "---")) {
					next.zsetd, fileMarks["zsetd"] = false, true
				}
			case "nomulti", "noresp3", "nopipelined", "noplain", "noreload", "noscript":
				marks[word] = true
			case "advance":
				next.advance, err = time.ParseDuration(value)
				next.line = at
				flush()
			default:
				return fail("unknown directive %q", line)
			}
			if err != nil {
				return fail("%s: %v", line, err)
			}
			continue
		}
		began = true
		next.line = at
		i := strings.IndexAny(line, "<>")
		if i < 0 {
			return fail("%q is no command, directive or comment, and no reply can stand here", line)
		}
		next.client = 1
		if i > 0 {
			var err error
			if next.client, err = strconv.Atoi(line[:i]); err != nil || next.client < 1 {
				return fail("%q is no command, directive or comment, and no reply can stand here", line)
			}
		}
		switch rest := line[i+1:]; {
		case line[i] == '>' && next.raw != "":
			raw, err := unescape(strings.TrimPrefix(rest, " "))
			if err != nil {
				return fail("%v", err)
			}
			next.raw, next.command = raw, []string{"@raw"}
		case line[i] == '>':
			words, err := splitWords(rest)
			if err != nil {
				return fail("%v", err)
			}
			if len(words) == 0 {
				return fail("a command is missing")
			}
			next.command = words
		case strings.TrimSpace(rest) != "":
			return fail("what is received stands on the next line")
		}
		for at < len(lines) && beginsReply(lines[at]) {
			if lines[at] == closed {
				next.replies = append(next.replies, closed)
				at++
				break
			}
			r, n, err := parseReply(lines[at:])
			if err != nil {
				if !*rewrite {
					return nil, fmt.Errorf("%s:%d: %v", name, at+1, err)
				}
				for at < len(lines) && lines[at] != "" {
					at++
				}
				break
			}
			next.replies = append(next.replies, r)
			at += n
		}
		flush()
	}
	flush()
	for _, s := range f.sections {
		for mark := range fileMarks {
			s.marks[mark] = true
		}
	}
	return f, nil
}

// beginsReply reports whether a line is the first of a reply.
func beginsReply(line string) bool {
	if line == "" || strings.HasPrefix(line, "---") {
		return false
	}
	switch line[0] {
	case '>', '#': // a push or a command; a boolean or a comment
		return len(line) > 1 && line[1] != ' ' && !(line[0] == '#' && line != "#t" && line != "#f")
	}
	return strings.IndexByte("+-:$*_,(!=%~|", line[0]) >= 0
}

// parseReply encodes the reply that begins with the first of lines, and
// returns how many lines it takes.
func parseReply(lines []string) (encoded string, n int, err error) {
	if len(lines) == 0 {
		return "", 0, errors.New("the reply ends too early")
	}
	head, err := unescape(lines[0])
	if err != nil {
		return "", 0, err
	}
	n = 1
	encoded = head + "\r\n"
	if head == "" {
		return "", 0, errors.New("an element of the reply is missing")
	}
	elements := 0
	switch head[0] {
	case '+', '-', ':', '_', ',', '(', '#':
		return encoded, n, nil
	case '$', '=', '!':
		size, err := strconv.Atoi(head[1:])
		if err != nil {
			return "", 0, fmt.Errorf("%q is no line of a reply", lines[0])
		}
		if size < 0 {
			return encoded, n, nil
		}
		if len(lines) < 2 {
			return "", 0, errors.New("the reply ends too early")
		}
		text, err := unescape(lines[1])
		if err != nil {
			return "", 0, err
		}
		if len(text) != size {
			return "", 0, fmt.Errorf("%s announces %d bytes, but %q has %d", head, size, lines[1], len(text))
		}
		return encoded + text + "\r\n", 2, nil
	case '*', '~', '>', '%', '|':
		if elements, err = strconv.Atoi(head[1:]); err != nil {
			return "", 0, fmt.Errorf("%q is no line of a reply", lines[0])
		}
		switch head[0] {
		case '%':
			elements *= 2
		case '|':
			elements = 2*elements + 1
		}
	default:
		return "", 0, fmt.Errorf("%q is no line of a reply", lines[0])
	}
	for range elements {
		e, m, err := parseReply(lines[n:])
		if err != nil {
			return "", 0, err
		}
		encoded += e
		n += m
	}
	return encoded, n, nil
}

// replyLines is the text of an encoded reply.
func replyLines(encoded string) []string {
	if encoded == closed {
		return []string{closed}
	}
	var lines []string
	for encoded != "" {
		head, rest, _ := strings.Cut(encoded, "\r\n")
		encoded = rest
		lines = append(lines, escape(head))
		if strings.IndexByte("$=!", head[0]) < 0 {
			continue
		}
		if size, _ := strconv.Atoi(head[1:]); size >= 0 {
			lines = append(lines, escape(encoded[:size]))
			encoded = encoded[size+2:]
		}
	}
	return lines
}

func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			b.WriteString(`\\`)
		case c < ' ' || c > '~' || c == ' ' && i == len(s)-1:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", fmt.Errorf("%q ends in a backslash", s)
		}
		switch s[i] {
		case '\\', '"', '\'':
			b.WriteByte(s[i])
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'x':
			if i+2 >= len(s) {
				return "", fmt.Errorf("%q ends within an escape", s)
			}
			c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return "", err
			}
			b.WriteByte(byte(c))
			i += 2
		default:
			return "", fmt.Errorf("unknown escape \\%c in %q", s[i], s)
		}
	}
	return b.String(), nil
}

// splitWords splits a command line as redis-cli does.
func splitWords(s string) ([]string, error) {
	var words []string
	for {
		s = strings.TrimLeft(s, " \t")
		if s == "" {
			return words, nil
		}
		var w []byte
		i := 0
		for i < len(s) && s[i] != ' ' && s[i] != '\t' {
			quote := s[i]
			i++
			if quote != '"' && quote != '\'' {
				w = append(w, quote)
				continue
			}
			for i < len(s) && s[i] != quote {
				c := s[i]
				i++
				if c != '\\' || i == len(s) {
					w = append(w, c)
					continue
				}
				if quote == '\'' {
					if s[i] == '\'' {
						c = '\''
						i++
					}
					w = append(w, c)
					continue
				}
				if s[i] == 'x' && i+2 < len(s) {
					if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
						w = append(w, byte(n))
						i += 3
						continue
					}
				}
				c = s[i]
				if at := strings.IndexByte("nrtba", c); at >= 0 {
					c = "\n\r\t\b\a"[at]
				}
				w = append(w, c)
				i++
			}
			if i == len(s) {
				return nil, fmt.Errorf("a quote is not closed in %q", s)
			}
			i++
			if i < len(s) && s[i] != ' ' && s[i] != '\t' {
				return nil, fmt.Errorf("something follows a quote in %q", s)
			}
		}
		words = append(words, string(w))
		s = s[i:]
	}
}

// player runs a section.
type player struct {
	t       *testing.T
	file    *transcript
	mode    string
	srv     *server.Server  // nil: a real redis-server
	connect func() net.Conn // to that; nil: at the address that the flag says
	clients map[int]*client
}

type client struct {
	nc        net.Conn
	r         *bufio.Reader
	open      bool // a transaction
	watching  bool
	listening bool // has subscribed, monitors or the like: no MULTI around commands
	owes      int  // commands sent whose reply is still to come
	closed    bool
}

func runSection(t *testing.T, f *transcript, s *section, mode string, record bool) {
	p := &player{t: t, file: f, mode: mode, clients: map[int]*client{}}
	if *against == "" {
		o := server.Options{Config: map[string]string{"enable-debug-command": "yes"}}
		if mode == "reload" {
			o.File = filepath.Join(memoryDir(t), "reload.db")
			o.Config["save"] = "1000000 1" // the journal is what is to be tested
		}
		srv, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		p.srv = srv
	} else {
		p.client(0).roundtrip(t, "FLUSHALL")
		defer func() {
			p.client(0).roundtrip(t, "FLUSHALL")
			p.client(0).nc.Close()
		}()
	}
	if mode == "resp3" || mode == "script" {
		for _, it := range s.items {
			if it.command != nil && strings.EqualFold(it.command[0], "HELLO") {
				return // it chooses for itself
			}
		}
	}
	if mode == "resp3" {
		p.client(1).roundtrip(t, "HELLO", "3")
	}
	if record {
		p.record(s)
	} else {
		p.play(s)
	}
	for n, c := range p.clients {
		if n != 0 && !t.Failed() {
			p.silent(n, c)
		}
		if n != 0 {
			c.nc.Close()
		}
	}
	if p.srv != nil {
		if err := p.srv.Check(); err != nil {
			t.Errorf("%s: after section %q: %v", f.name, s.title, err)
		}
	}
}

// memoryDir returns a directory that is in memory, if the system has such a
// place: waiting for the disk is not what the tests are about.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "zsetd")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// reload has the server save its data and load them again.
func (p *player) reload(it *item) {
	if got, err := p.srv.Do(p.t.Context(), "DEBUG", "RELOAD"); err != nil || fmt.Sprint(got) != "OK" {
		p.t.Errorf("%s:%d: after %s: DEBUG RELOAD: %v %v", p.file.name, it.line, it.words(), got, err)
	}
}

// client returns client n, which is connected when it is first needed.
func (p *player) client(n int) *client {
	c := p.clients[n]
	if c == nil {
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) { return net.Dial(network, addr) }
		switch {
		case p.srv != nil:
			dial = p.srv.Dialer()
		case p.connect != nil:
			dial = func(context.Context, string, string) (net.Conn, error) { return p.connect(), nil }
		}
		nc, err := dial(p.t.Context(), "tcp", *against)
		if err != nil {
			p.t.Fatal(err)
		}
		c = &client{nc: nc, r: bufio.NewReader(nc)}
		p.clients[n] = c
		if p.mode == "resp3" && n > 1 {
			c.roundtrip(p.t, "HELLO", "3")
		}
	}
	return c
}

func (c *client) send(b []byte) error {
	c.nc.SetWriteDeadline(time.Now().Add(patience))
	_, err := c.nc.Write(b)
	return err
}

// receive returns the next reply, encoded, or closed.
func (c *client) receive(wait time.Duration) (string, error) {
	c.nc.SetReadDeadline(time.Now().Add(wait))
	// Nothing is consumed when nothing comes in time.
	if _, err := c.r.Peek(1); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "", err
		}
		c.closed = true
		return closed, nil
	}
	c.nc.SetReadDeadline(time.Now().Add(patience))
	b, err := readReply(c.r, nil)
	return string(b), err
}

func (c *client) roundtrip(t *testing.T, words ...string) string {
	t.Helper()
	if err := c.send(encodeCommand(nil, words)); err != nil {
		t.Fatal(err)
	}
	r, err := c.receive(patience)
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	return r
}

func encodeCommand(b []byte, words []string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n", len(w))
		b = append(append(b, w...), "\r\n"...)
	}
	return b
}

// readReply appends the next reply, as it is encoded, to b.
func readReply(r *bufio.Reader, b []byte) ([]byte, error) {
	head, err := r.ReadBytes('\n')
	if err != nil {
		return b, err
	}
	b = append(b, head...)
	if len(head) < 3 || head[len(head)-2] != '\r' {
		return b, fmt.Errorf("%q is no line of a reply", head)
	}
	text := string(head[1 : len(head)-2])
	elements := 0
	switch head[0] {
	case '+', '-', ':', '_', ',', '(', '#':
		return b, nil
	case '$', '=', '!', '*', '~', '>', '%', '|':
		if elements, err = strconv.Atoi(text); err != nil {
			return b, fmt.Errorf("%q is no line of a reply", head)
		}
	default:
		return b, fmt.Errorf("%q is no line of a reply", head)
	}
	switch head[0] {
	case '$', '=', '!':
		if elements < 0 {
			return b, nil
		}
		at := len(b)
		b = append(b, make([]byte, elements+2)...)
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return b[:at], err
		}
		if !bytes.HasSuffix(b, []byte("\r\n")) {
			return b, fmt.Errorf("%q is not followed by so many bytes and CR LF", head)
		}
		return b, nil
	case '%':
		elements *= 2
	case '|':
		elements = 2*elements + 1
	}
	for range elements {
		if b, err = readReply(r, b); err != nil {
			return b, err
		}
	}
	return b, nil
}

// play runs the items of a section and compares.
func (p *player) play(s *section) {
	for i := 0; i < len(s.items); {
		it := s.items[i]
		if it.advance != 0 {
			p.advance(it)
		}
		if it.command == nil {
			if it.client != 0 && !p.expect(it) {
				return
			}
			i++
			continue
		}
		batch := []*item{it}
		i++
		if p.mode == "pipelined" {
			for i < len(s.items) && s.items[i].advance == 0 {
				if s.items[i].command == nil && s.items[i].client == 0 {
					i++
					continue
				}
				if s.items[i].command == nil || s.items[i].client != it.client {
					break
				}
				batch = append(batch, s.items[i])
				i++
			}
		}
		if !p.exchange(batch) {
			return
		}
	}
}

// exchange sends commands of one client and compares their replies. It
// reports whether the section can go on.
func (p *player) exchange(batch []*item) bool {
	c := p.client(batch[0].client)
	if c.closed {
		p.t.Errorf("%s:%d: the connection is closed", p.file.name, batch[0].line)
		return false
	}
	if p.mode == "multi" && batch[0].raw == "" && p.wrappable(c, batch[0]) {
		return p.wrapped(c, batch[0])
	}
	if p.mode == "script" && batch[0].raw == "" && p.scriptable(c, batch[0]) {
		if done := p.scripted(c, batch[0]); done {
			return true
		}
	}
	var b []byte
	for _, it := range batch {
		b = it.encode(b)
	}
	before, owing := p.taken(), c.owes > 0
	sent := make(chan error, 1)
	go func() { sent <- c.send(b) }()
	for _, it := range batch {
		c.follow(it)
		if !p.expect(it) {
			return false
		}
	}
	if err := <-sent; err != nil && !c.closed {
		p.t.Errorf("%s:%d: %v", p.file.name, batch[0].line, err)
		return false
	}
	if len(batch[len(batch)-1].replies) == 0 {
		if owing { // it may wait already: then nothing is taken
			time.Sleep(silence)
		} else {
			p.settle(batch, before)
		}
	}
	if p.mode == "reload" {
		p.reload(batch[0])
	}
	return true
}

// scriptable reports whether a command may mean the same when a script runs it.
func (p *player) scriptable(c *client, it *item) bool {
	if c.open || c.watching || c.listening || c.owes > 0 || len(it.replies) != 1 || it.replies[0] == closed || len(it.command) > 7000 {
		return false
	}
	switch strings.ToLower(it.command[0]) {
	case "select", // is undone when the script has ended
		"info", "slowlog", "latency", "config", "command": // which tell of what was run
		return false
	}
	return true
}

// scripted has a script run a command. It returns false if the command is not
// one for scripts, and nothing has happened.
func (p *player) scripted(c *client, it *item) (done bool) {
	got := c.roundtrip(p.t, append([]string{"EVAL", "return redis.pcall(unpack(ARGV))", "0"}, it.command...)...)
	want := it.replies[0]
	if strings.HasSuffix(got, " command is not allowed with BLOCK option from scripts\r\n") {
		return false
	}
	switch got {
	case "-ERR This Redis command is not allowed from script\r\n":
		return false
	case "-ERR Unknown Redis command called from script\r\n":
		if !strings.HasPrefix(want, "-ERR unknown command ") && !strings.HasPrefix(want, "-ERR unknown subcommand ") {
			p.compare(it, got, want)
		}
		return true
	case "-ERR Wrong number of args calling Redis command from script\r\n":
		if !strings.Contains(want, "wrong number of arguments for ") {
			p.compare(it, got, want)
		}
		return true
	}
	b, _ := throughLua(nil, want)
	if !it.matches(got, string(b), true) { // only the meaning: Lua has one null
		p.compare(it, got, want)
	}
	return true
}

// throughLua appends a reply as a script that passes it on makes it: integers are
// Lua's numbers, which are float64.
func throughLua(b []byte, reply string) (out []byte, rest string) {
	head, rest, _ := strings.Cut(reply, "\r\n")
	n, err := strconv.ParseInt(head[1:], 10, 64)
	if head[0] == ':' && err == nil {
		if f := float64(n); f < 1<<63 {
			n = int64(f)
		} else {
			n = math.MinInt64
		}
		head = ":" + strconv.FormatInt(n, 10)
	}
	b = append(append(b, head...), "\r\n"...)
	switch head[0] {
	case '$':
		if n >= 0 {
			b, rest = append(b, rest[:n+2]...), rest[n+2:]
		}
	case '*':
		for range n {
			b, rest = throughLua(b, rest)
		}
	}
	return b, rest
}

// wrapped runs a command between MULTI and EXEC.
func (p *player) wrapped(c *client, it *item) bool {
	b := encodeCommand(nil, []string{"MULTI"})
	b = it.encode(b)
	b = encodeCommand(b, []string{"EXEC"})
	sent := make(chan error, 1)
	go func() { sent <- c.send(b) }()
	defer func() { <-sent }()
	var got [3]string
	for i := range got {
		var err error
		if got[i], err = c.receive(patience); err != nil {
			p.t.Errorf("%s:%d: %s: reply %d of MULTI, command, EXEC: %v", p.file.name, it.line, it.words(), i, err)
			return false
		}
	}
	switch inner, ok := strings.CutPrefix(got[2], "*1\r\n"); {
	case got[0] != "+OK\r\n":
		p.t.Errorf("%s:%d: %s: MULTI replied %q", p.file.name, it.line, it.words(), got[0])
	case got[1] != "+QUEUED\r\n":
		p.compare(it, got[1], it.replies[0])
		if !strings.HasPrefix(got[2], "-EXECABORT ") {
			p.t.Errorf("%s:%d: %s: refused while queueing, but EXEC replied %q", p.file.name, it.line, it.words(), got[2])
		}
	case !ok:
		p.t.Errorf("%s:%d: %s: EXEC replied %q", p.file.name, it.line, it.words(), got[2])
	default:
		p.compare(it, inner, it.replies[0])
	}
	return true
}

// wrappable reports whether a command means the same between MULTI and EXEC.
func (p *player) wrappable(c *client, it *item) bool {
	if c.open || c.watching || c.listening || c.owes > 0 || len(it.replies) != 1 || it.replies[0] == closed {
		c.follow(it)
		return false
	}
	switch strings.ToLower(it.command[0]) {
	case "multi", "exec", "discard", "watch", "unwatch", "quit", "reset", "hello", "auth", "monitor", "client",
		"shutdown", "sync", "psync", "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe",
		"sunsubscribe", "info":
		c.follow(it)
		return false
	}
	return true
}

// follow keeps track of the state that a command leaves its client in.
func (c *client) follow(it *item) {
	if len(it.replies) == 0 {
		c.owes++
	}
	switch strings.ToLower(it.command[0]) {
	case "multi":
		c.open = true
	case "exec", "discard":
		c.open, c.watching = false, false
	case "reset":
		c.open, c.watching, c.listening = false, false, false
	case "watch":
		c.watching = true
	case "unwatch":
		c.watching = false
	case "subscribe", "psubscribe", "ssubscribe", "monitor":
		c.listening = true
	}
}

func (it *item) encode(b []byte) []byte {
	if it.raw != "" {
		return append(b, it.raw...)
	}
	return encodeCommand(b, it.command)
}

func (it *item) words() string {
	if it.raw != "" {
		return fmt.Sprintf("%q", it.raw)
	}
	if it.command == nil {
		return strconv.Itoa(it.client) + "<"
	}
	return strings.Join(strings.Fields(it.text[len(it.text)-1])[1:], " ")
}

// expect receives the replies of an item and compares them.
func (p *player) expect(it *item) bool {
	c := p.client(it.client)
	for i, want := range it.replies {
		got, err := c.receive(patience)
		if err != nil {
			p.t.Errorf("%s:%d: %s: reply %d does not come: %v (received %q)\nwant:\n%s",
				p.file.name, it.line, it.words(), i+1, err, got, indent(want))
			return false
		}
		if it.command == nil && c.owes > 0 {
			c.owes--
		}
		p.compare(it, got, want)
		if (got == closed) != (want == closed) {
			return false
		}
	}
	return true
}

// compare reports a reply that is not as it should be.
func (p *player) compare(it *item, got, want string) {
	p.t.Helper()
	if it.zsetd && p.srv == nil || it.matches(got, want, p.mode == "resp3") {
		return
	}
	p.t.Errorf("%s:%d: %s\nwant:\n%s\ngot:\n%s", p.file.name, it.line, it.words(), indent(want), indent(got))
}

func indent(reply string) string { return "\t" + strings.Join(replyLines(reply), "\n\t") }

func (it *item) matches(got, want string, resp3 bool) bool {
	switch {
	case got == want || it.any:
		return true
	case got == closed || want == closed:
		return false
	}
	g, _, err := protocol.Decode([]byte(got))
	if err != nil {
		return false
	}
	w, _, err := protocol.Decode([]byte(want))
	if err != nil {
		return false
	}
	if it.near != 0 {
		return near(g, w, it.near)
	}
	if !resp3 {
		if !it.unordered || got[0] != want[0] {
			return false
		}
		return slices.Equal(elements(g, it.group), elements(w, it.group))
	}
	// RESP3 nests some replies that RESP2 leaves flat: the leaves, in order,
	// must mean the same.
	gl, wl := leaves(nil, g), leaves(nil, w)
	if it.unordered {
		slices.Sort(gl)
		slices.Sort(wl)
	}
	return slices.Equal(gl, wl)
}

// near reports whether two integers, or lists of them, differ by no more than
// by.
func near(got, want any, by int64) bool {
	switch g := got.(type) {
	case int64:
		w, ok := want.(int64)
		return ok && max(g-w, w-g) <= by
	case []any:
		w, ok := want.([]any)
		return ok && slices.EqualFunc(g, w, func(g, w any) bool { return near(g, w, by) })
	}
	return false
}

// elements returns the elements of a reply in a canonical order, as text.
func elements(v any, group int) []string {
	var out []string
	add := func(list []any) {
		for ; len(list) > 0; list = list[min(group, len(list)):] {
			out = append(out, fmt.Sprintf("%#v", list[:min(group, len(list))]))
		}
	}
	switch v := v.(type) {
	case []any:
		add(v)
	case protocol.Set:
		add(v)
	case protocol.Push:
		add(v)
	case protocol.Map:
		for _, p := range v {
			out = append(out, fmt.Sprintf("%#v", p))
		}
	default:
		out = append(out, fmt.Sprintf("%#v", v))
	}
	slices.Sort(out)
	return out
}

// leaves appends what a reply holds, without its structure, in words that do
// not depend on the dialect.
func leaves(out []string, v any) []string {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = leaves(out, e)
		}
	case protocol.Set:
		return leaves(out, []any(v))
	case protocol.Push:
		return leaves(out, []any(v))
	case protocol.Map:
		for _, p := range v {
			out = leaves(leaves(out, p.Key), p.Value)
		}
	case nil:
		return append(out, "null")
	case bool:
		if v {
			return append(out, "1")
		}
		return append(out, "0")
	case int64:
		return append(out, strconv.FormatInt(v, 10))
	case float64:
		return append(out, string(protocol.AppendFloat(nil, v)))
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil && strings.Trim(v, "+-0123456789.einfaINFA") == "" {
			return append(out, string(protocol.AppendFloat(nil, f)))
		}
		return append(out, "$"+v)
	case protocol.ReplyError:
		return append(out, "-"+string(v))
	case protocol.Status:
		return append(out, "+"+string(v))
	default:
		return append(out, fmt.Sprint(v))
	}
	return out
}

func (p *player) advance(it *item) {
	if p.srv != nil {
		p.srv.Advance(it.advance)
		return
	}
	time.Sleep(it.advance)
}

// taken returns what Taken of our server does.
func (p *player) taken() int64 {
	if p.srv == nil {
		return 0
	}
	return p.srv.Taken()
}

// settle waits until our server has processed commands of which the last has no reply:
// each has run, or its client is blocked. For a part of a command, and for a redis-server,
// it waits a fixed time.
func (p *player) settle(batch []*item, before int64) {
	if p.srv == nil || batch[len(batch)-1].raw != "" {
		time.Sleep(silence)
		return
	}
	for _, it := range batch {
		if len(it.replies) == 0 || it.replies[0][0] != '-' && it.replies[0] != "+QUEUED\r\n" { // the others need not count
			before++
		}
	}
	// A few are not taken: those of clients that wait already, although nothing shows it.
	for end := time.Now().Add(500 * time.Millisecond); p.srv.Taken() < before && time.Now().Before(end); {
		time.Sleep(20 * time.Microsecond)
	}
}

// silent verifies that a client receives nothing that the section does not
// hold.
func (p *player) silent(n int, c *client) {
	if c.closed {
		return
	}
	if c.owes > 0 {
		if r, err := c.receive(time.Millisecond); err == nil {
			p.t.Errorf("%s: at the end of the section client %d still receives\n%s", p.file.name, n, indent(r))
		}
		return
	}
	r := c.roundtrip(p.t, "RESET")
	if r != "+RESET\r\n" && !strings.HasPrefix(r, "-NOAUTH") {
		p.t.Errorf("%s: at the end of the section client %d still receives\n%s", p.file.name, n, indent(r))
	}
}

// record runs the items of a section and keeps the replies.
func (p *player) record(s *section) {
	var out []*item
	early := map[int]int{} // by client: the replies that it received before its "<" line
	for _, it := range s.items {
		if it.advance != 0 {
			p.advance(it)
		}
		if it.client == 0 {
			out = append(out, it)
			continue
		}
		keep := *against != "" && (it.zsetd || s.marks["zsetd"])
		c := p.client(it.client)
		if it.command == nil {
			if early[it.client] > 0 {
				early[it.client]--
				continue
			}
			if r, err := c.receive(patience); err == nil {
				it.replies = []string{r}
			}
			out = append(out, it)
			continue
		}
		clear(early)
		if c.closed {
			p.t.Errorf("%s:%d: the connection is closed", p.file.name, it.line)
			return
		}
		before := p.taken()
		if err := c.send(it.encode(nil)); err != nil {
			p.t.Errorf("%s:%d: %v", p.file.name, it.line, err)
			return
		}
		out = append(out, it)
		old := it.replies
		it.replies = nil
		wait := patience
		if len(old) == 0 || keep {
			wait = 3 * silence
		}
		for {
			r, err := c.receive(wait)
			if err != nil {
				if wait == patience {
					p.t.Errorf("%s:%d: %s: there was a reply, now none comes; delete it if that is right", p.file.name, it.line, it.words())
				}
				break
			}
			it.replies = append(it.replies, r)
			if r == closed {
				break
			}
			wait = time.Millisecond
			if p.srv == nil {
				wait = 5 * time.Millisecond
			}
		}
		if it.any && len(old) > 0 || keep {
			it.replies = old
		}
		if len(it.replies) == 0 {
			p.settle([]*item{it}, before)
		}
		for n := range 10 {
			other := p.clients[n]
			if n == 0 || other == nil || n == it.client || other.closed {
				continue
			}
			for {
				r, err := other.receive(5 * time.Millisecond)
				if err != nil {
					break
				}
				early[n]++
				out = append(out, &item{client: n, text: []string{strconv.Itoa(n) + "<"}, replies: []string{r}})
				if r == closed {
					break
				}
			}
		}
	}
	s.items = out
	for n, c := range p.clients {
		if n != 0 {
			c.nc.Close()
			delete(p.clients, n)
		}
	}
}
