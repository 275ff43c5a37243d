package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
)

func TestRestore(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, commands := range map[string]string{"backup.db": "SET a old\nSET b old\n", "data.db": "SET a new\n"} {
		if status, _, errs := call(commands, "import", "-", file); status != 0 {
			t.Fatal(errs)
		}
	}
	srv, err := server.New(server.Options{File: "data.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if err := srv.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := call("", "restore", "backup.db", "data.db"); status != 1 || out != "" ||
		!strings.Contains(errs, "data.db: in use by") || !strings.HasSuffix(errs, "Stop the server first: zsetd cli SHUTDOWN\n") {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	status, out, errs := call("", "restore", "backup.db", "data.db")
	m := regexp.MustCompile(`^data\.db: [0-9.]+ KB with 2 keys restored and verified\nThe old file is (data\.db\.before-restore-\S+)\n$`).FindStringSubmatch(out)
	if status != 0 || errs != "" || m == nil {
		t.Fatalf("%d, %q, %q", status, out, errs)
	}
	for file, want := range map[string]string{"data.db": "old", m[1]: "new"} {
		if _, out, _ := call("", "export", file, "--json"); !strings.Contains(out, `"value":"`+want+`"`) {
			t.Errorf("%s: %s", file, out)
		}
	}
	if status, out, errs := call("", "restore", "backup.db", "fresh.db"); status != 0 || strings.Contains(out, "old file") || errs != "" {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	b, err := os.ReadFile("backup.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("damaged.db", []byte(strings.Replace(string(b), "old", "odd", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := call("", "restore", "damaged.db", "data.db"); status != 1 || !strings.Contains(errs, "damaged") {
		t.Errorf("%d, %q", status, errs)
	}
	if status, _, errs := call("", "restore", "none.db", "data.db"); status != 2 || !strings.Contains(errs, "none.db: no such file") {
		t.Errorf("%d, %q", status, errs)
	}
}
