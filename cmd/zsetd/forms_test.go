package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// An export has the form that the name after -o stands for, and an import that of its
// source.
func TestForms(t *testing.T) {
	t.Chdir(t.TempDir())
	if status, _, errs := call("SET k v\n", "import", "-", "a.db"); status != 0 {
		t.Fatal(errs)
	}
	hint := " will have commands: --format json or rdb writes another form\n"
	for _, test := range []struct{ args, file, head, errs string }{
		{"-o out.rdb", "out.rdb", "REDIS", ""},
		{"-o out.RDB", "out.RDB", "REDIS", ""},
		{"-o out.json", "out.json", "{", ""},
		{"-o out.jsonl", "out.jsonl", "{", ""},
		{"-o out.resp", "out.resp", "*", ""},
		{"-o out.bin", "out.bin", "*", "out.bin" + hint},
		{"-o forced.rdb --format commands", "forced.rdb", "*", ""},
		{"-o forced.bin --format json", "forced.bin", "{", ""},
		{"-o dump --format rdb", "dump", "REDIS", ""},
		{"-o forced2.rdb --json", "forced2.rdb", "{", ""},
	} {
		status, _, errs := call("", append([]string{"export", "a.db"}, strings.Fields(test.args)...)...)
		b, err := os.ReadFile(test.file)
		if status != 0 || err != nil || !bytes.HasPrefix(b, []byte(test.head)) || !strings.HasPrefix(errs, test.errs+"1 keys exported") {
			t.Errorf("export %s: %d, %v, %.20q, %s", test.args, status, err, b, errs)
		}
	}
	if err := os.WriteFile("text.json", []byte("SET k v\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("some text.rdb", []byte("SET k v\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, says := range map[string]string{
		"out.rdb": "", "out.json": "", "out.resp": "", "out.bin": "", "forced.bin": "", "forced2.rdb": "", "dump": "",
		"forced.rdb":    "zsetd: forced.rdb is no RDB file; if it has commands, write zsetd import - new.db < forced.rdb\n",
		"some text.rdb": "zsetd: some text.rdb is no RDB file; if it has commands, write zsetd import - new.db < 'some text.rdb'\n",
		"text.json":     "zsetd: text.json has no lines of JSON, which begin with {; if it has commands, write zsetd import - new.db < text.json\n",
	} {
		status, _, errs := call("", "import", source, "new.db")
		if says == "" && (status != 0 || !strings.Contains(errs, "1 keys imported")) || says != "" && (status != 1 || errs != says) {
			t.Errorf("import %s: %d, %s", source, status, errs)
		}
		os.Remove("new.db")
	}
	json, err := os.ReadFile("out.json")
	if err != nil {
		t.Fatal(err)
	}
	if status, _, errs := call("\n"+string(json), "import", "-", "new.db"); status != 0 || !strings.Contains(errs, "1 keys imported") {
		t.Errorf("JSON from standard input: %d, %s", status, errs)
	}
}

// The message about a damaged file has a command that a shell can run.
func TestDamagedMessage(t *testing.T) {
	t.Chdir(t.TempDir())
	if status, _, errs := call("SET k \"some text\"\n", "import", "-", "a.db"); status != 0 {
		t.Fatal(errs)
	}
	b, err := os.ReadFile("a.db")
	if err != nil {
		t.Fatal(err)
	}
	file := "it's damaged.db"
	if err := os.WriteFile(file, bytes.ReplaceAll(b, []byte("some text"), []byte("same text")), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "`zsetd salvage 'it'\\''s damaged.db' -o 'it'\\''s damaged.db.salvaged'` recovers"
	for _, args := range [][]string{{"check", file}, {"diff", "a.db", file}, {"restore", file, "a.db"}, {"export", file}} {
		if status, _, errs := call("", args...); status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%q: %d, %s", args, status, errs)
		}
	}
	if shellWord("/a/b-c_1.db") != "/a/b-c_1.db" || shellWord("") != "''" || shellWord("a$b") != "'a$b'" {
		t.Error(shellWord("/a/b-c_1.db"), shellWord(""), shellWord("a$b"))
	}
	if _, err := exec.LookPath("sh"); err == nil {
		if out, err := exec.Command("sh", "-c", "printf %s "+shellWord(file)).Output(); err != nil || string(out) != file {
			t.Errorf("%q, %v", out, err)
		}
	}
}
