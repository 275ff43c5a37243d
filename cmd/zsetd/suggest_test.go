package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"port", "port", 0}, {"", "abc", 3}, {"abc", "", 3}, {"prot", "port", 1}, {"chekc", "check", 1},
		{"pot", "port", 1}, {"poort", "port", 1}, {"part", "port", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestSimilar(t *testing.T) {
	names := []string{"port", "tls-port", "http-port", "http-bind", "http-tls", "http-hosts", "save", "dir"}
	for word, want := range map[string][]string{
		"prot": {"port"}, "PROT": {"port"}, "tlsport": {"tls-port"}, "http": {"http-port", "http-bind", "http-tls"},
		"nosuch": nil, "x": nil, "": nil, "d": nil,
	} {
		if got := similar(word, names); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// An error in a name or a value is followed by the name that is probably meant, or by the
// values that are accepted.
func TestHints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zsetd.conf")
	if err := os.WriteFile(file, []byte("prot 7000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--prot", "7000"}, 2, "'prot \"7000\"': Bad directive or wrong number of arguments\nDid you mean --port?\nTry 'zsetd --help'.\n"},
		{[]string{"--prot=7000"}, 2, "\nDid you mean --port?\n"},
		{[]string{"ping", "--prot", "7000"}, 2, "\nDid you mean --port?\nTry 'zsetd ping --help'.\n"},
		{[]string{"--check-config", "--prot", "7000"}, 1, "\nDid you mean --port?\n"},
		{[]string{"--usr", "a", "on"}, 2, "\nDid you mean --user?\n"},
		{[]string{file}, 2, file + ":1: >>> 'prot 7000': Bad directive or wrong number of arguments\nDid you mean port?\n"},
		{[]string{"--nosuchthing", "1"}, 2, "arguments\nTry 'zsetd --help'.\n"},
		{[]string{"chekc", "x.db"}, 2, "unknown command chekc, and no configuration file of that name\nDid you mean check?\n"},
		{[]string{"pong"}, 2, "\nDid you mean ping?\n"},
		{[]string{"serve"}, 2, "\nzsetd without a command starts the server: zsetd [redis.conf] [--name value ...]\n"},
		{[]string{"start"}, 2, "\nzsetd without a command starts the server"},
		{[]string{"--maxmemory", "1gib"}, 2, "argument must be a memory value\nmaxmemory accepts a number of bytes, or one with a unit: 1kb, 1mb or 1gb for powers of 1024; 1k, 1m or 1g for powers of 1000.\n"},
		{[]string{"--maxmemory-clients", "5x"}, 2, "\nmaxmemory-clients accepts a number of bytes, one with a unit such as 64mb, or a percentage such as 5%.\n"},
		{[]string{"--port", "x"}, 2, "\nport accepts a number from 0 to 65535.\n"},
		{[]string{"--port"}, 2, "\nport accepts a number from 0 to 65535.\n"},
		{[]string{"--maxmemory-policy", "alkeys-lru"}, 2, "\nDid you mean allkeys-lru?\n"},
		{[]string{"--appendonly", "yse"}, 2, "\nDid you mean yes?\n"},
		{[]string{"check", "--jsno", "x.db"}, 2, "there is no option --jsno\nDid you mean --json?\n"},
		{[]string{"export", "x.db", "--format", "josn"}, 2, "\nDid you mean json?\n"},
		{[]string{"export", "x.db", "--for", "redis9"}, 2, "\nDid you mean redis5, redis7 or redis8?\n"},
	} {
		if status, text := printed(test.args...); status != test.status || !strings.Contains(text, test.says) {
			t.Errorf("zsetd %q: status %d, want %d; it says %q, not %q", test.args, status, test.status, text, test.says)
		}
	}
}
