package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/rerun"
	"github.com/zsetd/zsetd/server/internal/transcript"
)

// TestDialectsAsRedis sends what the transcripts hold to zsetd and to
// redis-server at the same time, in RESP2 and in RESP3, and compares the replies
// byte by byte.
func TestDialectsAsRedis(t *testing.T) {
	rerun.Skip(t)
	files, err := filepath.Glob("testdata/*.resp")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("only %d transcripts", len(files))
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".resp"), func(t *testing.T) {
			t.Parallel()
			f, err := transcript.Parse(filepath.Base(name), string(text))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(f.Sections, func(s *transcript.Section) bool { return comparable(s, "plain") }) {
				return
			}
			for _, mode := range []string{"plain", "resp3"} {
				t.Run(mode, func(t *testing.T) {
					redis := startRedis(t, "--enable-debug-command", "yes")
					for _, s := range f.Sections {
						if !comparable(s, mode) {
							continue
						}
						srv, err := server.New(server.Options{Config: map[string]string{"enable-debug-command": "yes"}})
						if err != nil {
							t.Fatal(err)
						}
						both := [2]*player{
							{t: t, file: f, mode: mode, clients: map[int]*client{}, srv: srv},
							{t: t, file: f, mode: mode, clients: map[int]*client{}, connect: redis},
						}
						for _, line := range []string{"CLIENT UNPAUSE", "FLUSHALL", "FUNCTION FLUSH"} {
							both[1].client(0).roundtrip(t, strings.Fields(line)...)
						}
						if mode == "resp3" {
							both[0].client(1).roundtrip(t, "HELLO", "3")
							both[1].client(1).roundtrip(t, "HELLO", "3")
						}
						playBoth(both, s)
						for _, p := range both {
							for _, c := range p.clients {
								c.nc.Close()
							}
						}
						srv.Close()
					}
				})
			}
		})
	}
}

// comparable reports whether a section is one for redis-server, and for this
// dialect. Redis's clock cannot be moved.
func comparable(s *transcript.Section, mode string) bool {
	return !s.Marks["zsetd"] && !s.Marks["no"+mode] && slices.ContainsFunc(s.Items, func(it *transcript.Item) bool { return it.Command != nil }) &&
		!slices.ContainsFunc(s.Items, func(it *transcript.Item) bool {
			return it.Advance != 0 || mode == "resp3" && it.Command != nil && strings.EqualFold(it.Command[0], "hello")
		})
}

// playBoth plays a section on zsetd and on redis-server side by side.
func playBoth(both [2]*player, s *transcript.Section) {
	t := both[0].t
	owed := map[int]bool{} // clients that may be blocked
	ours := map[int]bool{} // clients that wait for what Redis does not know
	for _, it := range s.Items {
		if it.Client == 0 {
			continue
		}
		before := both[0].progress()
		if it.Command != nil {
			ours[it.Client] = it.Zsetd
			for _, p := range both {
				if err := p.client(it.Client).send(it.AppendRequest(nil)); err != nil {
					t.Errorf("%s:%d: %v", p.file.Name, it.Line, err)
					return
				}
			}
		}
		for range it.Replies {
			var got [2]string
			for i, p := range both {
				var err error
				if got[i], err = p.client(it.Client).receive(patience); err != nil {
					t.Errorf("%s:%d: %s: no reply of %s: %v", p.file.Name, it.Line, it.Words(), []string{"zsetd", "Redis"}[i], err)
					return
				}
			}
			if !ours[it.Client] && !it.MatchesServer(got[0], got[1]) {
				t.Errorf("%s:%d: %s\nRedis:\n%s\nzsetd:\n%s", both[0].file.Name, it.Line, it.Words(), transcript.Indented(got[1]), transcript.Indented(got[0]))
			}
			if got[0] == transcript.Closed || got[1] == transcript.Closed {
				return
			}
		}
		if it.Command != nil && len(it.Replies) == 0 {
			both[0].settle([]*transcript.Item{it}, before, owed[it.Client])
			both[1].probe()
			owed[it.Client] = true
		}
	}
}

// TestTranscriptsRunEverything: each command and subcommand is in a transcript,
// unless it is said what else tests it.
func TestTranscriptsRunEverything(t *testing.T) {
	elsewhere := map[string]string{
		"pfselftest": "takes seconds; TestHyperLogLogAsRedis tests the same",
		"psync":      "the connection carries a stream from then on; TestReplicaOfRedis",
		"sync":       "likewise; TestSyncOfTools",
	}
	files, err := filepath.Glob("testdata/*.resp")
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := transcript.Parse(filepath.Base(name), string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.Sections {
			for _, it := range s.Items {
				if it.Command == nil {
					continue
				}
				run[strings.ToLower(it.Command[0])] = true
				if len(it.Command) > 1 {
					run[strings.ToLower(it.Command[0]+"|"+it.Command[1])] = true
				}
			}
		}
	}
	for _, c := range server.AllCommands() {
		switch reason := elsewhere[c.Name]; {
		case !run[c.Name] && reason == "":
			t.Errorf("%s is in no transcript", c.Name)
		case run[c.Name] && reason != "":
			t.Errorf("%s is in a transcript, although listed as not (%s)", c.Name, reason)
		}
	}
}
