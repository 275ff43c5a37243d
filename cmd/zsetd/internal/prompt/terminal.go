package prompt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ergochat/readline"
	"golang.org/x/term"
)

// RunTerminal runs a session at a prompt on the terminal of standard input.
func (s *Session) RunTerminal() error {
	e, err := newTerminal(s)
	if err != nil {
		return err
	}
	defer e.close()
	return s.runPrompt(e)
}

// terminal is an editor on a terminal, with a history, completion and hints.
type terminal struct {
	s       *Session
	rl      *readline.Instance
	file    string // of the history; "" for none
	hints   bool
	typed   bool // the line is not empty
	search  bool // a search of the history has begun: it paints the line
	painted bool // the next painting shows the hint: it is of a whole line
}

// historyVariable names the file of the history, as in redis-cli; /dev/null is none.
const historyVariable = "REDISCLI_HISTFILE"

// historyLimit is how many lines the history keeps.
const historyLimit = 1000

func historyFile() string {
	if file, ok := os.LookupEnv(historyVariable); ok {
		if file == os.DevNull {
			return ""
		}
		return file
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "" // no place for it
	}
	return filepath.Join(home, ".zsetdcli_history")
}

func newTerminal(s *Session) (*terminal, error) {
	e := &terminal{s: s, file: historyFile(), hints: true}
	config := &readline.Config{
		HistoryLimit: historyLimit, DisableAutoSaveHistory: true, HistorySearchFold: true,
		AutoComplete: e, Listener: e.listen, Painter: e.paint,
	}
	if os.Getenv("TERM") == "dumb" {
		config.FuncIsTerminal = func() bool { return false }
	}
	var err error
	if e.rl, err = readline.NewFromConfig(config); err != nil {
		return nil, err
	}
	for _, line := range readHistory(e.file) {
		e.rl.SaveToHistory(line) // in memory: it cannot fail
	}
	return e, nil
}

func (e *terminal) close() { e.rl.Close() }

func (e *terminal) read(prompt string) (string, error) {
	e.rl.SetPrompt(prompt)
	e.typed, e.search = false, false
	line, err := e.rl.ReadLine()
	if errors.Is(err, readline.ErrInterrupt) {
		if err = errInterrupted; !e.typed {
			err = io.EOF
		}
	}
	return line, err
}

// remember adds a line to the history and its file. A history that cannot be written
// is no reason to stop.
func (e *terminal) remember(line string) {
	_ = e.rl.SaveToHistory(line)
	_ = appendHistory(e.file, line)
}

func (e *terminal) clear() { e.rl.ClearScreen() }

func (e *terminal) setHints(on bool) { e.hints = on }

// Do completes the line up to the cursor, for readline.
func (e *terminal) Do(line []rune, at int) ([][]rune, int) {
	var rests [][]rune
	for _, rest := range e.s.known.complete(string(line[:at])) {
		rests = append(rests, []rune(rest+" "))
	}
	return rests, at - (strings.LastIndexByte(string(line[:at]), ' ') + 1)
}

// listen is called after each key. It has the line painted again, because readline
// paints a character that is appended alone.
func (e *terminal) listen(line []rune, at int, key rune) ([]rune, int, bool) {
	e.typed = len(line) > 0
	switch {
	case key == readline.CharBckSearch || key == readline.CharFwdSearch:
		e.search = true
	case key > 0 && key < ' ' && key != readline.CharCtrlH:
		e.search = false
	}
	if key == 0 || !e.hints || e.search || key == readline.CharTab {
		return nil, 0, false
	}
	e.painted = true
	return line, at, true
}

// paint adds the hint to a line.
func (e *terminal) paint(line []rune, at int) []rune {
	const clear = "\x1b[K"
	whole := e.painted
	e.painted = false
	if !whole {
		if len(line) > 0 && line[len(line)-1] == '\n' {
			return append([]rune(clear), line...)
		}
		return line
	}
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		width = 80
	}
	hint := []rune(e.s.known.hint(string(line)))
	room := width - 1 - (len([]rune(e.s.prompt()))+len(line))%width
	if len(hint) > room {
		hint = hint[:max(room, 0)]
	}
	if len(hint) == 0 {
		return line
	}
	// The cursor returns to the end of the line, where readline expects it.
	return append(append([]rune{}, line...), []rune("\x1b7\x1b[90m"+string(hint)+"\x1b[0m\x1b8")...)
}

// readHistory returns the lines of a file of the history, the last ones if they are
// many.
func readHistory(file string) []string {
	if file == "" {
		return nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil // there is none yet, or it cannot be read: the prompt works without
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(lines) > historyLimit {
		lines = lines[len(lines)-historyLimit:]
		_ = os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600) // the file stays long
	}
	return lines
}

// appendHistory appends a line to a file of the history, which only its owner may read.
func appendHistory(file, line string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, line)
	return errors.Join(w.Flush(), f.Close())
}

// ReadPassword asks for a password on the terminal of standard input, and does not show
// it.
func ReadPassword(question string, out io.Writer) (string, error) {
	fmt.Fprint(out, question)
	b, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(out)
	return string(b), err
}
