package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Argument is a node in the argument tree of a command, as in the reply of COMMAND
// DOCS.
type Argument struct {
	Name          string
	Display       string // the word that stands for it in the syntax; "" means Name
	Type          string // "string", "integer", …, "pure-token", "oneof" or "block"
	Token         string // the word before the argument or, for a pure token, the word itself
	Optional      bool
	Multiple      bool // may be repeated
	MultipleToken bool // the token is repeated, too
	KeySpec       int  // index of the argument's key spec, or -1
	Since         string
	Deprecated    string // version that deprecated it
	Arguments     []Argument
}

// HasToken reports whether the argument has a token. The token of MIGRATE's empty
// key is "".
func (a *Argument) HasToken() bool { return a.Token != "" || a.Type == "pure-token" }

// Flags returns the argument's flags for COMMAND DOCS.
func (a *Argument) Flags() []string {
	var names []string
	if a.Optional {
		names = append(names, "optional")
	}
	if a.Multiple {
		names = append(names, "multiple")
	}
	if a.MultipleToken {
		names = append(names, "multiple_token")
	}
	return names
}

// ParseSyntax parses the arguments of a command in the notation of redis.io,
//
//	key [NX|XX] [CH] score member [score member ...]
//
// into the tree of COMMAND DOCS. A word in lower case is a value, whose type
// follows from its name; any other word is a token. A token belongs to the
// following value, choice, or whole content of a bracket ("COUNT count", "TYPE
// LIST|SET", "[LIMIT offset count]", where optional parts do not count). A choice
// is "A|B" between words and "a b | c d" between sequences, which need square or
// round brackets. "x [x ...]" and "(…)..." are repetitions.
//
// Annotations add facts that the notation of redis.io does not express:
//
//	score:integer           a value of another type
//	by-pattern=pattern      a value that the syntax shows by another word
//	condition:[NX|XX]       a name for a choice or sequence (default: the joined names of its parts, "nx_xx")
//	change:CH               a name for a token (default: the token in lower case)
//	members:(member)        a sequence of one
//	destination#2           the index of the key spec (default: keys take the specs in order)
//	[GT|LT]@6.2.0           the version that added it; name@2.0.0-6.2.0: and the version that deprecated it
//
// specs is the number of key specs of the command. [Usage] converts the tree back
// to text.
func ParseSyntax(text string, specs int) ([]Argument, error) {
	p := syntaxParser{text: text, specs: specs}
	nodes := p.sequence("")
	if p.err == nil && p.at < len(text) {
		p.fail("unexpected %q", text[p.at:])
	}
	if p.err != nil {
		return nil, fmt.Errorf("syntax %q: %w", text, p.err)
	}
	var args []Argument
	for _, n := range attachTokens(nodes) {
		args = append(args, n.Argument)
	}
	return args, nil
}

// node is an argument during parsing.
type node struct {
	Argument
	bare  bool   // a token that may belong to the next argument
	named bool   // it has an explicit name
	plain string // its text without annotations, to recognize repetitions
}

type syntaxParser struct {
	text  string
	at    int
	keys  int // number of keys so far
	specs int
	err   error
}

func (p *syntaxParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.at = len(p.text)
}

// sequence parses items up to one of the bytes in stop, or " | ".
func (p *syntaxParser) sequence(stop string) []node {
	var nodes []node
	for {
		for p.at < len(p.text) && p.text[p.at] == ' ' {
			p.at++
		}
		if p.at >= len(p.text) || strings.IndexByte(stop, p.text[p.at]) >= 0 || strings.HasPrefix(p.text[p.at:], "| ") {
			return nodes
		}
		if words, end := p.repetition(); words != "" {
			var ok bool
			if nodes, ok = repeat(nodes, words); !ok {
				p.fail("[%s ...] does not repeat what is before it", words)
				return nodes
			}
			p.at = end
			continue
		}
		nodes = append(nodes, p.item())
	}
}

// repetition parses "[words ...]" at the current position and returns its words and
// its end, "" if there is none.
func (p *syntaxParser) repetition() (words string, end int) {
	if p.text[p.at] != '[' {
		return "", 0
	}
	inside, _, ok := strings.Cut(p.text[p.at+1:], "]")
	if !ok || strings.ContainsAny(inside, "[(") {
		return "", 0
	}
	words, ok = strings.CutSuffix(inside, " ...")
	if !ok {
		return "", 0
	}
	return words, p.at + 1 + len(inside) + 1
}

// repeat replaces the last nodes, whose text is words, by one repeated argument.
func repeat(nodes []node, words string) ([]node, bool) {
	plain := ""
	for i := len(nodes) - 1; i >= 0; i-- {
		if plain != "" {
			plain = " " + plain
		}
		if plain = nodes[i].plain + plain; plain != words {
			continue
		}
		tail := slices.Clone(nodes[i:])
		token := ""
		if len(tail) > 1 && tail[0].bare {
			token, tail = tail[0].Token, tail[1:]
		}
		n := group(tail, "")
		n.Multiple = true
		if token != "" {
			n.Token, n.MultipleToken = token, true
		}
		return append(nodes[:i], n), true
	}
	return nodes, false
}

// item parses one bracket, or choice of words, with its annotations.
func (p *syntaxParser) item() node {
	start, label := p.at, p.label()
	var n node
	switch {
	case p.at < len(p.text) && p.text[p.at] == '[':
		n = p.bracket(']', label)
		n.Optional = true
	case p.at < len(p.text) && p.text[p.at] == '(':
		n = p.bracket(')', label)
	default:
		n = p.word(label)
		if p.at < len(p.text) && p.text[p.at] == '|' {
			choice := []node{n}
			for p.at < len(p.text) && p.text[p.at] == '|' {
				p.at++
				choice = append(choice, p.word(""))
			}
			if label != "" { // the label names the choice, not its first word
				choice[0].Name = strings.ToLower(choice[0].Token)
			}
			n = oneOf(choice, label)
		}
	}
	if n.plain == "" {
		n.plain = p.text[start:p.at]
	}
	p.suffixes(&n)
	return n
}

// label parses "name:" unless it is part of a value's name or states its type.
func (p *syntaxParser) label() string {
	rest := p.text[p.at:]
	i := strings.IndexAny(rest, ":|[]() #@")
	if i < 1 || rest[i] != ':' || i+1 == len(rest) || isValue(rest[i+1:]) {
		return ""
	}
	p.at += i + 1
	return rest[:i]
}

// isValue reports whether a word of the notation is a value, not a token.
func isValue(word string) bool { return word != "" && word[0] >= 'a' && word[0] <= 'z' }

func (p *syntaxParser) word(label string) node {
	rest := p.text[p.at:]
	i := strings.IndexAny(rest, " |[]()#@")
	if i < 0 {
		i = len(rest)
	}
	word := strings.TrimSuffix(rest[:i], "...")
	if word == "" {
		p.fail("a word is missing at %q", rest)
		return node{}
	}
	p.at += len(word)
	n := node{plain: word, named: label != ""}
	n.KeySpec = -1
	if !isValue(word) {
		n.bare = label == ""
		n.Type, n.Name, n.Token = "pure-token", label, word
		if word == `""` {
			n.Token = ""
		}
		if label == "" {
			n.Name = strings.ToLower(n.Token)
		}
	} else {
		n.Name, n.Type = word, typeOfName(word)
		if name, kind, ok := cutLast(word, ":"); ok && isType(kind) {
			n.Name, n.Type, n.plain = name, kind, name
		}
		n.Name, n.Display, _ = strings.Cut(n.Name, "=")
		n.plain = cmp.Or(n.Display, n.Name)
		if n.Type == "key" {
			n.KeySpec = min(p.keys, p.specs-1)
			p.keys++
		}
	}
	p.suffixes(&n)
	return n
}

// suffixes parses "...", "#1" and "@6.2.0-7.0.0" in any order.
func (p *syntaxParser) suffixes(n *node) {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		switch {
		case strings.HasPrefix(rest, "..."):
			n.Multiple = true
			p.at += 3
		case rest[0] == '#' || rest[0] == '@':
			i := 1
			for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[0] == '@' && (rest[i] == '.' || rest[i] == '-')) {
				i++
			}
			value := strings.TrimSuffix(rest[1:i], "...")
			p.at += 1 + len(value)
			if rest[0] == '@' {
				n.Since, n.Deprecated, _ = strings.Cut(value, "-")
				continue
			}
			spec, err := strconv.Atoi(value)
			if err != nil || spec >= p.specs {
				p.fail("no key spec %q", value)
				return
			}
			n.KeySpec = spec
		default:
			return
		}
	}
}

// bracket parses the alternatives in brackets.
func (p *syntaxParser) bracket(end byte, label string) node {
	open := p.at
	p.at++
	var choice [][]node
	for {
		choice = append(choice, p.sequence(string(end)))
		if p.at >= len(p.text) {
			p.fail("%q has no end", p.text[open:])
			return node{}
		}
		p.at++ // the closing bracket, or '|'
		if p.text[p.at-1] == end {
			break
		}
	}
	if slices.ContainsFunc(choice, func(s []node) bool { return len(s) == 0 }) {
		p.fail("nothing stands in brackets or beside '|'")
		return node{}
	}
	if len(choice) == 1 {
		if len(choice[0]) == 1 && end == ')' && label != "" && choice[0][0].Type != "oneof" {
			return block(choice[0], label)
		}
		return group(choice[0], label)
	}
	var list []node
	for _, s := range choice {
		list = append(list, group(s, ""))
	}
	return oneOf(list, label)
}

// group converts the content of brackets to one argument.
func group(nodes []node, label string) node {
	token := ""
	if len(nodes) > 2 && nodes[0].bare && !nodes[1].Optional {
		required := 0
		for _, n := range nodes[1:] {
			if !n.Optional {
				required++
			}
		}
		if required > 1 && !nodes[1].bare {
			token, nodes = nodes[0].Token, nodes[1:]
		}
	}
	nodes = attachTokens(nodes)
	if len(nodes) == 1 && token == "" {
		n := nodes[0]
		n.bare = false
		n.plain = ""
		if label != "" {
			n.Name, n.named = label, true
		}
		return n
	}
	n := block(nodes, label)
	n.Token = token
	return n
}

func block(nodes []node, label string) node {
	n := compound("block", attachTokens(nodes), label)
	return n
}

func oneOf(nodes []node, label string) node { return compound("oneof", nodes, label) }

func compound(kind string, parts []node, label string) node {
	n := node{named: label != ""}
	n.Type, n.Name, n.KeySpec = kind, label, -1
	var names []string
	for _, part := range parts {
		names = append(names, part.Name)
		n.Arguments = append(n.Arguments, part.Argument)
	}
	if label == "" {
		n.Name = strings.Join(names, "_")
	}
	return n
}

// attachTokens merges tokens into the values and choices that follow them.
func attachTokens(nodes []node) []node {
	var out []node
	for i := 0; i < len(nodes); i++ {
		n := nodes[i]
		if n.bare && i+1 < len(nodes) && !nodes[i+1].Optional && !nodes[i+1].HasToken() {
			token := n.Token
			n = nodes[i+1]
			n.Token = token
			i++
		}
		out = append(out, n)
	}
	return out
}

// cutLast is strings.Cut at the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// isType reports whether word is the type of a value.
func isType(word string) bool {
	switch word {
	case "key", "string", "integer", "double", "pattern", "unix-time":
		return true
	}
	return false
}

// typeOfName returns the default type of a value with this name.
func typeOfName(name string) string {
	switch name {
	case "key", "key1", "key2", "newkey", "source", "destination", "sourcekey", "destkey", "src", "dst":
		return "key"
	case "pattern":
		return "pattern"
	case "bit", "bits", "client-id", "cluster_bus_port", "config-epoch", "count", "cursor", "db", "decrement",
		"destination-db", "end", "end-slot", "entries_added", "entries_read", "frequency", "increment", "index",
		"index1", "index2", "len", "limit", "milliseconds", "ms", "num-matches", "numkeys", "numlocal", "numm",
		"numreplicas", "offset", "port", "protover", "rank", "seconds", "slot", "start", "start-slot", "stop",
		"ttl", "version", "weight":
		return "integer"
	case "height", "latitude", "longitude", "max", "min", "newscore", "radius", "score", "timeout", "width":
		return "double"
	case "unix-time", "unix-time-milliseconds", "unix-time-seconds":
		return "unix-time"
	}
	return "string"
}

// Usage returns arguments as plain text, in the format of redis-cli.
func Usage(args []Argument) string {
	var b []byte
	for i := range args {
		b = args[i].appendUsage(b, " ")
	}
	return strings.TrimPrefix(string(b), " ")
}

func (a *Argument) appendUsage(b []byte, before string) []byte {
	b = append(b, before...)
	if a.Optional {
		b = append(b, '[')
	}
	once := a.appendOnce(nil)
	token := a.Token
	if a.Type != "pure-token" && token != "" {
		b = append(append(b, token...), ' ')
	}
	b = append(b, once...)
	if a.Multiple {
		b = append(b, " ["...)
		if a.MultipleToken {
			b = append(append(b, token...), ' ')
		}
		b = append(append(b, once...), " ...]"...)
	}
	if a.Optional {
		b = append(b, ']')
	}
	return b
}

func (a *Argument) appendOnce(b []byte) []byte {
	switch a.Type {
	case "pure-token":
		if a.Token == "" {
			return append(b, `""`...)
		}
		return append(b, a.Token...)
	case "oneof":
		before := ""
		for i := range a.Arguments {
			b = a.Arguments[i].appendUsage(b, before)
			before = "|"
		}
		return b
	case "block":
		before := ""
		for i := range a.Arguments {
			b = a.Arguments[i].appendUsage(b, before)
			before = " "
		}
		return b
	}
	return append(b, cmp.Or(a.Display, a.Name)...)
}

// PlainSyntax returns the syntax of a command without the names and types of its
// arguments, which COMMAND DOCS needs and readers do not.
func PlainSyntax(syntax string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(syntax) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		for {
			bare := strings.TrimLeft(word, "[(")
			b.WriteString(strings.ReplaceAll(word[:len(word)-len(bare)], "(", ""))
			name, rest, named := strings.Cut(bare, ":")
			if !named || rest[0] != '[' && rest[0] != '(' && rest != strings.ToUpper(rest) { // no prefix of the form name:type
				if _, display, ok := strings.Cut(name, "="); ok && named {
					name = display
				}
				b.WriteString(strings.ReplaceAll(name, ")", ""))
				break
			}
			word = rest // the rest of name:[A|B], name:(...) or name:WORD
		}
	}
	return b.String()
}
