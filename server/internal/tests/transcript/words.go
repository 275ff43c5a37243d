package transcript

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// inWord reports whether a character needs no quotes where white space and brackets end a text.
func inWord(r rune) bool { return r > ' ' && r <= '~' && !strings.ContainsRune(`"\[]{}`, r) }

// word returns a text, in quotes where it needs them.
func word(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !inWord(r) }) {
		return s
	}
	return quoted(s)
}

func quoted(s string) string { return string(protocol.AppendQuoted(nil, s)) }

// Quote returns an argument of a command as SplitWords reads it.
func Quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'\`, r) }) {
		return s
	}
	return quoted(s)
}

// escape returns a text of printable ASCII characters that does not end in a space.
func escape(s string) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			b = append(b, `\\`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ' || c > '~' || c == ' ' && i == len(s)-1:
			b = fmt.Appendf(b, `\x%02x`, c)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// unescape returns what the escapes in a text denote.
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
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'x':
			if i+2 >= len(s) {
				return "", fmt.Errorf("%q ends within an escape", s)
			}
			c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return "", fmt.Errorf("%q is no escape", s[i-1:i+3])
			}
			b.WriteByte(byte(c))
			i += 2
		default:
			return "", fmt.Errorf("unknown escape \\%c in %q", s[i], s)
		}
	}
	return b.String(), nil
}

// SplitWords splits the line of a command into its arguments as redis-cli does.
func SplitWords(s string) ([]string, error) {
	args, ok := protocol.SplitArgs(nil, []byte(s))
	if !ok {
		return nil, fmt.Errorf("the quotes in %q are not balanced", s)
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	return words, nil
}
