package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
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
	if out := runMake(t, "-n", "run", "ARGS=--port 7000"); !strings.Contains(out, "bin/zsetd --port 7000\n") {
		t.Errorf("make run ARGS=...: %s", out)
	}
}
