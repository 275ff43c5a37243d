//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// skipReply reads and discards one RESP2 reply. An error reply, or a malformed one,
// is returned as an error.
func skipReply(r *bufio.Reader) error {
	for left := 1; left > 0; left-- {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		kind, rest := line[0], bytes.TrimSuffix(line[1:], []byte("\r\n"))
		switch kind {
		case '+', ':':
		case '-':
			return errors.New("the server says: " + string(rest))
		case '$', '*':
			n, err := parseCount(rest)
			if err != nil {
				return fmt.Errorf("not a reply: %q", line)
			}
			if kind == '*' {
				left += max(n, 0)
			} else if n >= 0 {
				if _, err := r.Discard(n + 2); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("not a reply: %q", line)
		}
	}
	return nil
}

func parseCount(b []byte) (n int, err error) {
	if len(b) > 0 && len(b) < 10 && b[0] != '-' {
		for _, c := range b {
			if c < '0' || c > '9' {
				return 0, strconv.ErrSyntax
			}
			n = n*10 + int(c-'0')
		}
		return n, nil
	}
	return strconv.Atoi(string(b))
}
