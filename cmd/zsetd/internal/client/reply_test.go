package client

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReadReplyErrors(t *testing.T) {
	for wire, want := range map[string]string{
		"": "EOF", "+OK": "unexpected EOF", "*2\r\n:1\r\n": "unexpected EOF", "$5\r\nab": "unexpected EOF", "$99999999999\r\nab": "unexpected EOF",
		"?x\r\n": "malformed reply", "\r\n": "malformed reply", "+OK\n": "malformed reply", "$-2\r\n": "malformed length", "*x\r\n": "malformed length",
		strings.Repeat("*1\r\n", maxDepth+2) + ":1\r\n": "too deeply",
	} {
		_, err := ReadReply(bufio.NewReader(strings.NewReader(wire)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", wire, err, want)
		}
		if (wire == "") != errors.Is(err, io.EOF) {
			t.Errorf("%.20q: %v", wire, err)
		}
	}
}

func TestLongString(t *testing.T) {
	text := strings.Repeat("x", 300_000)
	r, err := ReadReply(bufio.NewReader(strings.NewReader("$300000\r\n" + text + "\r\n")))
	if err != nil || r.Text != text {
		t.Errorf("%d bytes, %v", len(r.Text), err)
	}
}
