package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zsetd/zsetd/server"
)

// printed runs the program and returns what it prints.
func printed(args ...string) (status int, text string) {
	var out bytes.Buffer
	status = run(args, &out, &out)
	return status, out.String()
}

// The first page of the help fits on a screen, and names all tools.
func TestHelpPage(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}} {
		status, text := printed(args...)
		if n := strings.Count(text, "\n"); status != 0 || n > 40 {
			t.Errorf("zsetd %s: status %d, %d lines", args, status, n)
		}
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(line) > 81 {
				t.Errorf("zsetd %s: the line is longer than 80 columns: %s", args, line)
			}
		}
		for _, tool := range tools() {
			if !strings.Contains(text, "\n  "+tool.name+" ") {
				t.Errorf("zsetd %s does not name the tool %s", args, tool.name)
			}
		}
		for _, common := range commonParameters() {
			if !strings.Contains(text, "\n  --"+common[0]+" ") {
				t.Errorf("zsetd %s does not name the parameter %s", args, common[0])
			}
		}
		for _, want := range []string{"--help all", "--dbfilename zsetd.db ", `--save "1 1" `} {
			if !strings.Contains(text, want) {
				t.Errorf("zsetd %s lacks %s", args, want)
			}
		}
	}
}

// The other pages describe all parameters, or one parameter, or one tool.
func TestHelpTopics(t *testing.T) {
	status, all := printed("--help", "all")
	if status != 0 || strings.Contains(all, "](") {
		t.Errorf("zsetd --help all: status %d", status)
	}
	for _, p := range server.Parameters() {
		if there := strings.Contains(all, "\n  --"+p.Name+" "); there == p.NoEffect || p.Doc == "" {
			t.Errorf("zsetd --help all and the parameter %s: %v, %q", p.Name, there, p.Doc)
		}
		if status, one := printed("--help", p.Name); status != 0 || !strings.HasPrefix(one, "  --"+p.Name+" ") {
			t.Errorf("zsetd --help %s: status %d, %s", p.Name, status, one)
		}
	}
	for _, tool := range tools() {
		if status, text := printed("--help", tool.name); status != 0 || !strings.HasPrefix(text, "Usage: zsetd "+tool.name) {
			t.Errorf("zsetd --help %s: status %d, %s", tool.name, status, text)
		}
		if !strings.Contains(all, "\n  zsetd "+tool.name+" ") {
			t.Errorf("zsetd --help all does not name the tool %s", tool.name)
		}
	}
	for _, test := range []struct {
		args   string
		status int
		says   string
	}{
		{"--help maxmemory", 0, "Accepts a number of bytes, or one with a unit: 1kb, 1mb or 1gb"},
		{"--help --maxmemory", 0, "CONFIG SET maxmemory changes it"},
		{"help MAXMEMORY", 0, "  --maxmemory 0\n"},
		{"-h tls-port", 0, "Accepts a number from 0 to 65535."},
		{"--help appendfsync", 0, "Accepts everysec, always or no."},
		{"--help databases", 0, "It is set at the start."},
		{"--help slaveof", 0, "Another name is slaveof."},
		{"--help rdbchecksum", 0, "Accepted as in Redis; no effect"},
		{"--help ping", 0, "Usage: zsetd ping "},
		{"--help check-config", 0, "Usage: zsetd --check-config "},
		{"--help user", 0, "--user ann on '>password'"},
		{"--help include", 0, "include FILE"},
		{"--help maxmemoy", 2, "unknown command or parameter maxmemoy\nDid you mean maxmemory?\n"},
		{"--help chekc", 2, "Did you mean check?\n"},
	} {
		if status, text := printed(strings.Fields(test.args)...); status != test.status || !strings.Contains(text, test.says) {
			t.Errorf("zsetd %s: status %d, want %d; it says %q, not %q", test.args, status, test.status, text, test.says)
		}
	}
}
