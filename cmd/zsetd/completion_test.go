package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bash completes command lines with the script.
func TestBashCompletion(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	status, script, _ := call("", "completion", "bash")
	if status != 0 {
		t.Fatal(status)
	}
	for line, want := range map[string]string{
		"com":                      "compact completion",
		"ch":                       "check",
		"pin":                      "ping",
		"--maxmemory-p":            "--maxmemory-policy",
		"--appendfsync ":           "everysec always no",
		"a.conf --appendfsync al":  "always",
		"check --":                 "--json --help",
		"check da":                 "data.db",
		"export data.db --format ": "commands json rdb",
		"export --for val":         "valkey9",
		"completion ":              "bash zsh fish",
		"--help maxmemory-p":       "maxmemory-policy",
		"--help che":               "check",
		"help expo":                "export",
		"nosuch":                   "",
		"cli --no":                 "--no-raw",
		"cli -":                    "",
		"--dbfilename da":          "data.db",
	} {
		words := append([]string{"zsetd"}, strings.Split(line, " ")...)
		quoted := make([]string, len(words))
		for i, word := range words {
			quoted[i] = "'" + word + "'"
		}
		cmd := exec.Command("bash", "--norc", "-c", `source <(cat); COMP_WORDS=(`+strings.Join(quoted, " ")+`); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _zsetd; printf '%s\n' "${COMPREPLY[@]}"`)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(script)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		got := strings.Fields(string(out))
		if line == "cli -" { // all options
			if !slices.Contains(got, "-p") || !slices.Contains(got, "--json") || !slices.Contains(got, "-x") {
				t.Errorf("zsetd %s is completed by %q", line, got)
			}
			continue
		}
		if strings.Join(got, " ") != want {
			t.Errorf("zsetd %s is completed by %q, want %s", line, got, want)
		}
	}
}

// All scripts name all tools, their options and the parameters.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		status, script, errs := call("", "completion", shell)
		if status != 0 || errs != "" {
			t.Errorf("%s: %d, %s", shell, status, errs)
		}
		for _, word := range slices.Concat(commandNames(), []string{"keep-going", "maxmemory-policy", "allkeys-lru", "valkey9"}) {
			if !strings.Contains(script, word) {
				t.Errorf("the script for %s lacks %s", shell, word)
			}
		}
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.Command(path, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s -n: %v: %s", shell, err, out)
			}
		}
	}
	if status, out, errs := call("", "completion", "csh"); status != 2 || out != "" || errs != "zsetd completion: there is no script for csh: want bash, zsh or fish\n" {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
}
