package transcript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// File is a parsed transcript.
type File struct {
	Name     string
	Sections []*Section
}

// Section is a part of a transcript that begins with an empty server.
type Section struct {
	Title string
	Marks map[string]bool // directives for the whole section: zsetd, nomulti, noresp3 and so on
	Items []*Item
}

// Item is a command with its replies, a reply that a client receives later, an advance of the
// clock, or lines without effect.
type Item struct {
	Line    int
	Text    []string // the lines, without the replies
	Client  int      // 0: no client sends or receives
	Command []string // nil: the client receives
	Raw     string   // with @raw: the bytes to send
	Replies []string // encoded, or Closed
	Advance time.Duration

	Any, Unordered, Zsetd bool
	Group                 int // with Unordered: how many elements belong together
	Near                  int64
}

// String returns the text of the file.
func (f *File) String() string {
	var b strings.Builder
	for _, s := range f.Sections {
		for _, it := range s.Items {
			b.WriteString(strings.Join(it.Text, "\n"))
			separator := "\n"
			if it.Client != 0 && it.Command == nil {
				separator = " "
			}
			for _, r := range it.Replies {
				b.WriteString(separator + strings.Join(Lines(r), "\n"))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// fileParser is the state of Parse.
type fileParser struct {
	file  *File
	lines []string
	at    int             // how many lines were read
	marks map[string]bool // of the file
	began bool            // a command or a title was seen
	next  *Item           // gathers directives and comments for the next command
}

// Parse parses the text of a transcript. The name is for messages.
func Parse(name, text string) (*File, error) {
	p := fileParser{
		file:  &File{Name: name},
		lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n"),
		marks: map[string]bool{},
		next:  &Item{Group: 1},
	}
	p.section("")
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		p.at++
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.at, err)
		}
	}
	p.flush()
	for _, s := range p.file.Sections {
		for mark := range p.marks {
			s.Marks[mark] = true
		}
	}
	return p.file, nil
}

// section begins a section.
func (p *fileParser) section(title string) *Section {
	s := &Section{Title: title, Marks: map[string]bool{}}
	p.file.Sections = append(p.file.Sections, s)
	return s
}

// flush ends an item.
func (p *fileParser) flush() {
	if len(p.next.Text) > 0 {
		s := p.file.Sections[len(p.file.Sections)-1]
		s.Items = append(s.Items, p.next)
	}
	p.next = &Item{Group: 1}
}

// line parses a line, and the replies behind it if it is a command.
func (p *fileParser) line(line string) error {
	if title, ok := strings.CutPrefix(line, "---"); ok {
		p.flush()
		words := strings.Fields(title)
		n := len(words)
		for n > 0 && words[n-1][0] == '@' {
			n--
		}
		s := p.section(strings.Join(words[:n], " "))
		for _, mark := range words[n:] {
			s.Marks[mark[1:]] = true
		}
		s.Items = append(s.Items, &Item{Text: []string{line}})
		p.began = true
		return nil
	}
	switch {
	case line == "" || line[0] == '#':
		p.next.Text = append(p.next.Text, line)
		return nil
	case line[0] == '@':
		p.next.Text = append(p.next.Text, line)
		if err := p.directive(line); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		return nil
	}
	p.began = true
	p.next.Line = p.at
	i := strings.IndexAny(line, "<>")
	n := 1
	if i > 0 {
		n, _ = strconv.Atoi(line[:i])
	}
	if i < 0 || n < 1 {
		return fmt.Errorf("%q is no command, directive or comment, and no reply can stand here", line)
	}
	p.next.Client = n
	rest := strings.TrimPrefix(line[i+1:], " ")
	if line[i] == '<' {
		p.next.Text = append(p.next.Text, line[:i+1])
		p.at--
		p.lines[p.at] = rest
		if err := p.reply(); err != nil {
			return err
		}
		p.flush()
		return nil
	}
	p.next.Text = append(p.next.Text, line)
	if err := p.command(rest); err != nil {
		return err
	}
	for p.at < len(p.lines) && beginsReply(p.lines[p.at]) {
		if err := p.reply(); err != nil {
			return err
		}
	}
	p.flush()
	return nil
}

// reply parses the reply that begins with the next line.
func (p *fileParser) reply() error {
	if p.lines[p.at] == Closed {
		p.next.Replies = append(p.next.Replies, Closed)
		p.at++
		return nil
	}
	encoded, n, err := ParseReply(p.lines[p.at:])
	if err != nil {
		p.at++ // the line in the message
		return err
	}
	p.next.Replies = append(p.next.Replies, encoded)
	p.at += n
	return nil
}

// command parses what is sent.
func (p *fileParser) command(text string) (err error) {
	if p.next.Raw != "" {
		p.next.Command = []string{"@raw"}
		p.next.Raw, err = unescape(text)
		return err
	}
	p.next.Command, err = SplitWords(text)
	if err == nil && len(p.next.Command) == 0 {
		err = fmt.Errorf("a command is missing")
	}
	return err
}

// directive parses a line that begins with "@".
func (p *fileParser) directive(line string) (err error) {
	word, value, _ := strings.Cut(line[1:], " ")
	marks := p.file.Sections[len(p.file.Sections)-1].Marks
	if !p.began {
		marks = p.marks
	}
	switch word {
	case "any":
		p.next.Any = true
	case "unordered":
		p.next.Unordered = true
		if value != "" {
			p.next.Group, err = strconv.Atoi(value)
		}
	case "near":
		p.next.Near, err = strconv.ParseInt(value, 10, 64)
	case "raw":
		p.next.Raw = word
	case "zsetd":
		// Before the first command or title, it is for the file if a title follows.
		following := slices.IndexFunc(p.lines[p.at:], func(l string) bool {
			return l != "" && l[0] != '#' && l[0] != '@'
		})
		if !p.began && (following < 0 || strings.HasPrefix(p.lines[p.at+following], "---")) {
			p.marks[word] = true
		} else {
			p.next.Zsetd = true
		}
	case "nomulti", "noresp3", "nopipelined", "noplain", "noreload", "noscript":
		marks[word] = true
	case "advance":
		p.next.Advance, err = time.ParseDuration(value)
		p.next.Line = p.at
		p.flush()
	default:
		err = fmt.Errorf("unknown directive")
	}
	return err
}

// AppendRequest appends what the client sends, encoded.
func (it *Item) AppendRequest(b []byte) []byte {
	if it.Raw != "" {
		return append(b, it.Raw...)
	}
	return AppendCommand(b, it.Command)
}

// Words returns the command as a message shows it.
func (it *Item) Words() string {
	switch {
	case it.Raw != "":
		return fmt.Sprintf("%q", it.Raw)
	case it.Command == nil:
		return strconv.Itoa(it.Client) + "<"
	}
	return strings.Join(strings.Fields(it.Text[len(it.Text)-1])[1:], " ")
}
