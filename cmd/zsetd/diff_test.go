package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
)

func TestDiff(t *testing.T) {
	t.Chdir(t.TempDir())
	make := func(file, commands string) {
		t.Helper()
		if status, _, errs := call(commands, "import", "-", file); status != 0 {
			t.Fatal(errs)
		}
	}
	make("a.db", "SET same 1\nSET \"only a\" 1\nSET v 1\nSET d 1 PXAT 33000000000000\nSET both 1\nSELECT 2\nZADD z 1 m\n")
	make("b.db", "SET same 1\nRPUSH b 1 2\nRPUSH v 1 2\nSET d 1\nSET both 2 PXAT 33000000000000\nSELECT 2\nZADD z 1 m\n")
	lines := "~ db 0 \"d\"  deadline: 3015-09-24T10:40:00.000Z | none\n" +
		"~ db 0 \"v\"  value: string of 1 element, 1 B | list of 2 elements, 2 B\n" +
		"~ db 0 \"both\"  value: string of 1 element, 1 B | string of 1 element, 1 B  deadline: none | 3015-09-24T10:40:00.000Z\n"
	json := `{"db":0,"key":"b","difference":"only in B","b":{"type":"list","elements":2,"bytes":2}}
{"db":0,"key":"d","difference":"deadline","a":{"type":"string","elements":1,"bytes":1,"deadline":33000000000000},"b":{"type":"string","elements":1,"bytes":1}}
{"db":0,"key":"v","difference":"value","a":{"type":"string","elements":1,"bytes":1},"b":{"type":"list","elements":2,"bytes":2}}
{"db":0,"key":"both","difference":"value, deadline","a":{"type":"string","elements":1,"bytes":1},"b":{"type":"string","elements":1,"bytes":1,"deadline":33000000000000}}
{"db":0,"key":"only a","difference":"only in A","a":{"type":"string","elements":1,"bytes":1}}
{"same":2,"only_a":1,"only_b":1,"different":3}
`
	b, err := os.ReadFile("a.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("damaged.db", []byte(strings.ReplaceAll(string(b), "only a", "only b")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args         string
		status       int
		stdout, errs string
	}{
		{"a.db b.db", 1, "+ db 0 \"b\"  list of 2 elements, 2 B\n" + lines + "- db 0 \"only a\"  string of 1 element, 1 B\n", "1 keys only in A, 1 only in B, 3 differ, 2 are the same\n"},
		{"a.db b.db --json", 1, json, ""},
		{"a.db a.db", 0, "", "0 keys only in A, 0 only in B, 0 differ, 6 are the same\n"},
		{"a.db a.db --json", 0, `{"same":6,"only_a":0,"only_b":0,"different":0}` + "\n", ""},
		{"a.db none.db", 2, "", "zsetd: none.db: no such file or directory\n"},
		{"a.db", 2, "", "zsetd diff: wrong number of files: 1 given, 2 expected\n"},
	} {
		status, stdout, errs := call("", append([]string{"diff"}, strings.Fields(test.args)...)...)
		if status != test.status || stdout != test.stdout || !strings.HasPrefix(errs, test.errs) || test.errs == "" && errs != "" {
			t.Errorf("zsetd diff %s: %d, %q, want\n%q; %q", test.args, status, stdout, test.stdout, errs)
		}
	}
	if status, _, errs := call("", "diff", "a.db", "damaged.db"); status != 2 || !strings.Contains(errs, "damaged") {
		t.Errorf("%d, %s", status, errs)
	}
	used, _ := filepath.Abs("used.db")
	srv, err := server.New(server.Options{File: used})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if status, out, errs := call("", "diff", "used.db", "a.db"); status != 1 || strings.Count(out, "+ ") != 6 || !strings.Contains(errs, "is in use: reading a copy") {
		t.Errorf("%d, %s, %s", status, out, errs)
	}
}
