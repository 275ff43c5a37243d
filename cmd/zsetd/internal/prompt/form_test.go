package prompt

import (
	"bufio"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
)

func TestForms(t *testing.T) {
	for _, test := range []struct{ wire, typed, raw, json, csv string }{
		{"+OK\r\n", "OK\n", "OK\n", `"OK"`, `"OK"`},
		{"-ERR no\r\n", "(error) ERR no\n", "ERR no\n\n", `error:"ERR no"`, `ERROR,"ERR no"`},
		{"!6\r\nERR no\r\n", "(error) ERR no\n", "ERR no\n\n", `error:"ERR no"`, `ERROR,"ERR no"`},
		{":-7\r\n", "(integer) -7\n", "-7\n", "-7", "-7"},
		{"$-1\r\n", "(nil)\n", "\n", "null", "NULL"},
		{"*-1\r\n", "(nil)\n", "\n", "null", "NULL"},
		{"_\r\n", "(nil)\n", "\n", "null", "NULL"},
		{"$5\r\na\"\n\xff\x01\r\n", `"a\"\n\xff\x01"` + "\n", "a\"\n\xff\x01\n", `"a\"\n` + "\xff" + `\u0001"`, `"a\"\n\xff\x01"`},
		{"=6\r\ntxt:hi\r\n", "hi\n", "hi\n", `"hi"`, `"hi"`},
		{",2.50\r\n", "(double) 2.50\n", "2.50\n", "2.50", "2.50"},
		{",inf\r\n", "(double) inf\n", "inf\n", `"inf"`, "inf"},
		{"#t\r\n", "(true)\n", "(true)\n", "true", "true"},
		{"#f\r\n", "(false)\n", "(false)\n", "false", "false"},
		{"(123\r\n", "(big number) 123\n", "123\n", `"123"`, `"123"`},
		{"*0\r\n", "(empty array)\n", "\n", "[]", ""},
		{"%0\r\n", "(empty hash)\n", "\n", "{}", ""},
		{"~0\r\n", "(empty set)\n", "\n", "[]", ""},
		{">0\r\n", "(empty push)\n", "\n", "[]", ""},
		{"~2\r\n+a\r\n:1\r\n", "1~ a\n2~ (integer) 1\n", "a\n1\n", `["a",1]`, `"a",1`},
		{">1\r\n+a\r\n", "1) a\n", "a\n", `["a"]`, `"a"`},
		{"*2\r\n*2\r\n:1\r\n*1\r\n:2\r\n$1\r\nz\r\n", "1) 1) (integer) 1\n   2) 1) (integer) 2\n2) \"z\"\n", "1\n2\nz\n", `[[1,[2]],"z"]`, `1,2,"z"`},
		{
			"%2\r\n$1\r\na\r\n:1\r\n:2\r\n%1\r\n+c\r\n*2\r\n*0\r\n#t\r\n",
			"1# \"a\" => (integer) 1\n2# (integer) 2 => \n   1# c => \n      1) (empty array)\n      2) (true)\n",
			"a 1\n2 c \n(true)\n", `{"a":1,"2":{"c":[[],true]}}`, `"a",1,2,"c",,true`,
		},
		{"%1\r\n+a\r\n%1\r\n+b\r\n*1\r\n:1\r\n", "1# a => 1# b => 1) (integer) 1\n", "a b 1\n", `{"a":{"b":[1]}}`, `"a","b",1`},
		{"*10\r\n" + strings.Repeat(":1\r\n", 10), " 1) (integer) 1\n 2) (integer) 1\n 3) (integer) 1\n 4) (integer) 1\n 5) (integer) 1\n" +
			" 6) (integer) 1\n 7) (integer) 1\n 8) (integer) 1\n 9) (integer) 1\n10) (integer) 1\n",
			strings.Repeat("1\n", 10), "[1,1,1,1,1,1,1,1,1,1]", "1,1,1,1,1,1,1,1,1,1"},
		{"|1\r\n+ttl\r\n:3\r\n+OK\r\n", "OK\n", "OK\n", `"OK"`, `"OK"`},
	} {
		r, err := client.ReadReply(bufio.NewReader(strings.NewReader(test.wire)))
		if err != nil {
			t.Errorf("%q: %v", test.wire, err)
			continue
		}
		for form, want := range map[Form]string{Typed: test.typed, Raw: test.raw, JSON: test.json + "\n", CSV: test.csv + "\n"} {
			if got := string(appendReply(nil, &r, form, "\n", "\n")); got != want {
				t.Errorf("%q in form %d:\n%q, want\n%q", test.wire, form, got, want)
			}
		}
	}
}
