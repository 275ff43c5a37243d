package protocol

import (
	"fmt"
	"strings"
)

// JoinArgs joins words to a line that [SplitArgs] splits again. It quotes only the words
// that need it.
func JoinArgs(words []string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if word == "" || strings.ContainsAny(word, "\"'\\ \t\n\v\f\r\x00") {
			b.Write(AppendQuoted(nil, word))
			continue
		}
		b.WriteString(word)
	}
	return b.String()
}

// AppendQuoted appends s in double quotes, in the notation that [SplitArgs] reads. It
// can represent any byte.
func AppendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c == '"':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\a':
			b = append(b, `\a`...)
		case c == '\b':
			b = append(b, `\b`...)
		case c >= ' ' && c <= '~':
			b = append(b, c)
		default:
			b = fmt.Appendf(b, `\x%02x`, c)
		}
	}
	return append(b, '"')
}
