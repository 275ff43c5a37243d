package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	status, out, errs := call("", "init")
	m := regexp.MustCompile("zsetd cli -a ([A-Z2-7]{26})\n").FindStringSubmatch(out)
	if status != 0 || errs != "" || m == nil || !strings.Contains(out, "start the server:  zsetd zsetd.conf\n") ||
		!strings.Contains(out, "redis://:"+m[1]+"@127.0.0.1:6379\n") {
		t.Fatalf("%d, %q, %q", status, out, errs)
	}
	b, err := os.ReadFile("zsetd.conf")
	if err != nil || !bytes.Contains(b, []byte("\nrequirepass "+m[1]+"\n")) || bytes.Count(b, []byte("requirepass")) != 1 {
		t.Errorf("%v: %s", err, b)
	}
	if info, err := os.Stat("zsetd.conf"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if status, text := printed("--check-config", "zsetd.conf"); status != 0 {
		t.Errorf("%d, %s", status, text)
	}
	// It overwrites nothing, and every call has a password of its own.
	if status, out, errs := call("", "init"); status != 2 || out != "" || errs != "zsetd init: zsetd.conf exists: remove it, or name another one: zsetd init -o FILE\n" {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	if again, _ := os.ReadFile("zsetd.conf"); !bytes.Equal(again, b) {
		t.Error("zsetd.conf has changed")
	}
	if status, out, _ := call("", "init", "-o", "other.conf"); status != 0 || !strings.Contains(out, "zsetd other.conf\n") || strings.Contains(out, m[1]) {
		t.Errorf("%d, %q", status, out)
	}
	if status, _, errs := call("", "init", "-o", filepath.Join("none", "x")); status != 2 || !strings.Contains(errs, "no such file") {
		t.Errorf("%d, %q", status, errs)
	}
}
