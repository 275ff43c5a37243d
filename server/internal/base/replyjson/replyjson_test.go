package replyjson

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

// TestTranscode checks replies as JSON with and without types, and that a part of one is an error.
func TestTranscode(t *testing.T) {
	transcode := func(reply string, types bool) (string, error) {
		var b bytes.Buffer
		out := bufio.NewWriter(&b)
		tr := &Transcoder{R: bufio.NewReaderSize(strings.NewReader(reply), 16), W: out, Types: types}
		err := tr.Response()
		out.Flush()
		return b.String(), err
	}
	long := strings.Repeat("x", 100)
	for _, one := range []struct{ reply, plain, typed string }{
		{"+OK\r\n", `{"result":"OK"}`, `{"result":{"type":"simple","value":"OK"}}`},
		{"+" + long + "\r\n", `{"result":"` + long + `"}`, `{"result":{"type":"simple","value":"` + long + `"}}`},
		{"-ERR x\r\n", `{"error":"ERR x"}`, `{"error":"ERR x"}`},
		{"!5\r\nERR x\r\n", `{"error":"ERR x"}`, `{"error":"ERR x"}`},
		{"*2\r\n!5\r\nERR x\r\n-ERR y\r\n", `{"result":[{"error":"ERR x"},{"error":"ERR y"}]}`,
			`{"result":{"type":"array","value":[{"type":"error","value":"ERR x"},{"type":"error","value":"ERR y"}]}}`},
		{":12345678901234567\r\n", `{"result":12345678901234567}`, `{"result":{"type":"integer","value":12345678901234567}}`},
		{",1.5\r\n", `{"result":1.5}`, `{"result":{"type":"double","value":1.5}}`},
		{",inf\r\n", `{"result":"inf"}`, `{"result":{"type":"double","value":"inf"}}`},
		{",nan\r\n", `{"result":"nan"}`, `{"result":{"type":"double","value":"nan"}}`},
		{"(123456789012345678901\r\n", `{"result":"123456789012345678901"}`, `{"result":{"type":"bignumber","value":"123456789012345678901"}}`},
		{"#t\r\n", `{"result":true}`, `{"result":{"type":"boolean","value":true}}`},
		{"#f\r\n", `{"result":false}`, `{"result":{"type":"boolean","value":false}}`},
		{"_\r\n", `{"result":null}`, `{"result":{"type":"null","value":null}}`},
		{"$-1\r\n", `{"result":null}`, `{"result":{"type":"null","value":null}}`},
		{"*-1\r\n", `{"result":null}`, `{"result":{"type":"null","value":null}}`},
		{"$1\r\n\xff\r\n", `{"result":{"base64":"/w=="}}`, `{"result":{"type":"bulk","base64":true,"value":"/w=="}}`},
		{"=5\r\ntxt:a\r\n", `{"result":"a"}`, `{"result":{"type":"verbatim","value":"a"}}`},
		{"=3\r\ntxt\r\n", `{"result":"txt"}`, `{"result":{"type":"bulk","value":"txt"}}`},
		{"~1\r\n:1\r\n", `{"result":[1]}`, `{"result":{"type":"set","value":[{"type":"integer","value":1}]}}`},
		{"*1\r\n>1\r\n:1\r\n", `{"result":[[1]]}`, `{"result":{"type":"array","value":[{"type":"push","value":[{"type":"integer","value":1}]}]}}`},
		{"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", `{"result":[["a",1],["b",2]]}`,
			`{"result":{"type":"map","value":[[{"type":"simple","value":"a"},{"type":"integer","value":1}],[{"type":"simple","value":"b"},{"type":"integer","value":2}]]}}`},
		{"|1\r\n+a\r\n+b\r\n:1\r\n", `{"result":1}`, `{"result":{"type":"integer","value":1}}`},
		{">1\r\n+a\r\n:1\r\n", `{"result":1}`, `{"result":{"type":"integer","value":1}}`},
	} {
		for types, want := range map[bool]string{false: one.plain, true: one.typed} {
			if got, err := transcode(one.reply, types); got != want || err != nil {
				t.Errorf("%q, types %v: %s %v, want %s", one.reply, types, got, err, want)
			}
			for n := range len(one.reply) {
				if got, err := transcode(one.reply[:n], types); err == nil {
					t.Errorf("%q has no error: %s", one.reply[:n], got)
				}
			}
		}
	}
	for _, reply := range []string{"?\r\n", "$x\r\n", "*x\r\n", "|x\r\n+a\r\n", "%x\r\n", strings.Repeat("*1\r\n", maxDepth+2) + ":1\r\n", "+" + strings.Repeat("x", maxReplyKey+100) + "\r\n"} {
		if got, err := transcode(reply, false); err == nil {
			t.Errorf("%.20q has no error: %.100s", reply, got)
		}
	}
	if _, err := transcode(strings.Repeat("*1\r\n", maxDepth)+":1\r\n", false); err != nil {
		t.Errorf("a nested reply: %v", err)
	}
}
