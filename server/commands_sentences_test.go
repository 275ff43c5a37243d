package server_test

// The sentences of the server are its own: the judges' facts about commands are
// compared in commands_test.go, and here that no text about them is a judge's.

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// sharedSentences returns the texts that are the same as a judge's because they are facts.
func sharedSentences() map[string]string {
	return map[string]string{
		"o(1)":                      "a bound without variables",
		"[optin] [optout] [noloop]": "the syntax of CLIENT TRACKING",

		"prints this help": "tools recognize the end of a help text by it",
		"`getrange`":       "the name of a command",
		"`replicaof`":      "the name of a command",
		"`cluster shards`": "the name of a command",

		"`cluster replicas`": "the name of a command",
	}
}

// normalized returns a sentence without what does not distinguish two of them: case, white
// space, and the full stop at the end.
func normalized(sentence string) string {
	return strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(sentence), " ")), ".")
}

// sentencesOf returns all that a server says about commands, and for each sentence one
// place where it says so.
func sentencesOf(t *testing.T, ask func(args ...string) any) map[string]string {
	places := map[string]string{}
	for _, name := range judge.Sorted(ask("COMMAND", "LIST")) {
		for _, about := range []string{"INFO", "DOCS"} {
			eachText(ask("COMMAND", about, name), func(field, sentence string) string {
				places[normalized(sentence)] = name + " " + field
				return sentence
			})
		}
		container, ok := strings.CutSuffix(name, "|help")
		if !ok && name != "debug" {
			continue
		}
		lines, ok := ask(container, "HELP").([]any)
		if !ok {
			t.Errorf("no HELP of %s", container)
		}
		for _, line := range lines {
			if text, ok := strings.CutPrefix(fmt.Sprint(line), "    "); ok {
				places[normalized(text)] = container + " HELP"
			}
		}
	}
	if len(places) < 500 {
		t.Fatalf("only %d sentences", len(places))
	}
	return places
}

// talkative returns an asker of a new zsetd that answers HELP of every command: in cluster
// mode, with DEBUG.
func talkative(t *testing.T) func(args ...string) any {
	srv, err := server.New(server.Options{Config: map[string]string{"cluster-enabled": "yes", "enable-debug-command": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return judge.Asker(t, nc)
}

// talkativeArgs returns the arguments that make a judge as talkative.
func talkativeArgs(t *testing.T) []string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, bus, _ := net.SplitHostPort(l.Addr().String())
	return []string{"--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", bus, "--enable-debug-command", "yes"}
}

// TestSentences checks that no sentence of COMMAND DOCS, COMMAND INFO or HELP is one of a
// server that is installed here.
func TestSentences(t *testing.T) {
	own := sentencesOf(t, talkative(t))
	judges := map[string]func(t *testing.T) func(args ...string) any{
		"redis": func(t *testing.T) func(args ...string) any {
			return judge.Asker(t, judge.Start(t, talkativeArgs(t)...)())
		},
	}
	for _, n := range judge.NewerServers() {
		judges[n.Name] = func(t *testing.T) func(args ...string) any {
			path := n.Path(t)
			if path == "" {
				t.Skipf("%s is not installed: set %s to the program", n.Name, n.Variable)
			}
			return judge.Asker(t, judge.StartProgram(t, path, talkativeArgs(t)...)())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(judges)) {
		t.Run(name, func(t *testing.T) {
			theirs := sentencesOf(t, judges[name](t))
			for _, sentence := range slices.Sorted(maps.Keys(own)) {
				if where, same := theirs[sentence]; same && sharedSentences()[sentence] == "" {
					t.Errorf("%s: %s has the same: %q", own[sentence], where, sentence)
				}
			}
			if name != "redis" {
				return
			}
			for sentence := range sharedSentences() {
				if own[sentence] == "" || theirs[sentence] == "" {
					t.Errorf("%q is listed as shared, and is not", sentence)
				}
			}
		})
	}
}

// TestHistoryNotes checks that a history note begins with its version.
func TestHistoryNotes(t *testing.T) {
	for _, c := range allCommands() {
		for _, h := range c.History {
			version, note, _ := strings.Cut(h, " ")
			if strings.Count(version, ".") != 2 || note == "" {
				t.Errorf("%s: %q", c.Name, h)
			}
		}
	}
}
