package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Tests of the output of the Makefile, and of the arguments that it passes to the
// program.

func runMake(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	out, err := exec.Command("make", append([]string{"--no-print-directory", "-C", "../.."}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// make help lists every target with its whole description.
func TestMakeHelp(t *testing.T) {
	b, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	help := runMake(t, "help")
	var phony []string
	described := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if names, ok := strings.CutPrefix(line, ".PHONY: "); ok {
			phony = append(phony, strings.Fields(names)...)
		}
		rule, description, ok := strings.Cut(line, " ## ")
		name, _, isRule := strings.Cut(rule, ":")
		if !ok || !isRule || strings.ContainsAny(name, " #.") {
			continue
		}
		described[name] = true
		if !strings.Contains(help, " "+name+" ") || !strings.Contains(help, " "+description+"\n") {
			t.Errorf("make help lacks %q: %q", name, description)
		}
	}
	for _, name := range phony {
		if !described[name] {
			t.Errorf("target %s has no description", name)
		}
	}
	if got := strings.Count(help, "\n"); got != len(described) {
		t.Errorf("make help has %d lines for %d targets:\n%s", got, len(described), help)
	}
}

// ARGS gives parameters to the server that make run starts.
func TestMakeRunArgs(t *testing.T) {
	if out := runMake(t, "-n", "run", "ARGS=--port 7000"); !strings.Contains(out, "bin/run/zsetd --port 7000\n") {
		t.Errorf("make run ARGS=...: %s", out)
	}
}

// make check installs nothing; make test, which does, says so in its description, and lists
// why tests were skipped.
func TestMakeCheck(t *testing.T) {
	if out := runMake(t, "-n", "check"); strings.Contains(out, ".ci/") || !strings.Contains(out, " ./cmd/... ") {
		t.Errorf("make check: %s", out)
	}
	out := runMake(t, "-n", "test")
	_, after, _ := strings.Cut(out, "go test -json")
	if !strings.Contains(out, ".ci/redis") || !strings.Contains(after, "./skips") {
		t.Errorf("make test: %s", out)
	}
	for line := range strings.Lines(runMake(t, "help")) {
		if strings.HasPrefix(line, "  make test ") && !strings.Contains(line, "install") {
			t.Errorf("make help does not say that make test installs programs: %s", line)
		}
	}
}

// make run says that it compiles, and how long that takes, but not when the program is
// there. It does not optimize the program, which make build does.
func TestMakeRunCompiles(t *testing.T) {
	for _, name := range []string{"make", "sh", "find"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The compiler of this test makes a program that says with which flags it was made.
	compiler := filepath.Join(dir, "compiler")
	for path, text := range map[string]string{
		filepath.Join(dir, "Makefile"): string(makefile), filepath.Join(dir, "main.go"): "package main\n",
		compiler: "#!/bin/sh\nmkdir -p bin/run\n" + `for program in bin/zsetd bin/run/zsetd; do printf '#!/bin/sh\necho flags %s\n' "$GOFLAGS $*" >$program; chmod +x $program; done` + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	make := func(target string) string {
		cmd := exec.Command("make", "--no-print-directory", "-C", dir, target, "GO="+compiler)
		cmd.Env = append(os.Environ(), "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("make %s: %v: %s", target, err, out)
		}
		return string(out)
	}
	const says = "compiling zsetd: one or two minutes"
	if out := make("run"); strings.Count(out, says) != 1 || !strings.Contains(out, "flags -pgo=off build -o bin/run/zsetd") {
		t.Errorf("the first start: %s", out)
	}
	if out := make("run"); strings.Contains(out, says) {
		t.Errorf("the next start: %s", out)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "main.go"), later, later); err != nil {
		t.Fatal(err)
	}
	if out := make("run"); !strings.Contains(out, says) {
		t.Errorf("a start after a change: %s", out)
	}
	if out := make("build"); !strings.Contains(out, "build -pgo=auto -o bin/zsetd") {
		t.Errorf("make build: %s", out)
	}
}
