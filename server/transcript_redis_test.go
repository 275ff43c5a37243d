package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/tests/transcript"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestDialectsAsRedis sends what the transcripts hold to zsetd and to
// Redis 8.6 at the same time, in RESP2 and in RESP3, and compares the replies
// byte by byte, but for what apart lists.
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
					redis := judge.StartNewer(t, "--enable-debug-command", "yes")
					for _, s := range f.Sections {
						if !comparable(s, mode) || otherSections()[f.Name+": "+s.Title] != "" {
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
							both[1].client(0).RoundTrip(t, strings.Fields(line)...)
						}
						if mode == "resp3" {
							both[0].client(1).RoundTrip(t, "HELLO", "3")
							both[1].client(1).RoundTrip(t, "HELLO", "3")
						}
						playBoth(both, s)
						for _, p := range both {
							for _, c := range p.clients {
								c.NC.Close()
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

// apart returns the reason why a reply differs from that of Redis 8.6 on purpose, or
// depends on how the servers are built; "" if there is none.
func apart(file string, it *transcript.Item) string {
	words := it.Words()
	if strings.HasPrefix(words, "DUMP ") || words == "FUNCTION DUMP" {
		return "payloads have the version of Redis 7.0, so that all versions since then take them"
	}
	return map[string]string{
		"acl.resp: ACL LIST":                            "rules of users are shown as they were given",
		"acl.resp: HELLO 2 AUTH h two SETNAME \"a b\"":  "the password is checked before the name",
		"bitmap.resp: BITCOUNT none 1":                  "as in Valkey 9 the end may be left out",
		"bitmap.resp: BITCOUNT l x":                     "likewise",
		"command.resp: MODULE LIST":                     "there are no modules",
		"debug.resp: DEBUG HTSTATS 5":                   "a database without keys has a hash table",
		"debug.resp: DEBUG PROTOCOL push":               "in RESP3, a message stands before the reply",
		"eviction.resp: OBJECT FREQ m":                  "the counter grows by chance",
		"eviction.resp: CONFIG SET maxmemory-samples 0": "more samples than 64 are possible",
		"keys.resp: EXPIRETIME k":                       "the last deadline is positive; Redis 8.6 overflows",
		"keys.resp: SCAN \" 0\"":                        "the order of keys is unspecified",
		"server.resp: MEMORY MALLOC-STATS":              "the allocators differ",
		"server.resp: SLOWLOG LEN":                      "a slow machine logs more commands",
		"string.resp: OBJECT ENCODING k":                "see differences",
	}[file+": "+words]
}

// otherSections are those in which Redis 8.6 differs on purpose, in more than one reply,
// each with the reason.
func otherSections() map[string]string {
	return map[string]string{
		"acl.resp: selectors":                                 "a selector may follow an open one, as in Redis 7.0",
		"acl.resp: transactions":                              "EXEC checks permissions for keys again, as in Redis 7.0",
		"function.resp: DUMP and RESTORE":                     "payloads have the version of Redis 7.0; those of its release candidates can be restored",
		"maxmemory.resp: refused, not queued, and EXEC fails": "commands of transactions are refused when they are queued, as in Redis 7.0",
		"tracking.resp: broadcasts":                           "FLUSHALL sends its message after the reply, as in Redis 7.0",
		"tracking.resp: scripts: once one has read something, all keys that it was given, and no others": "the keys that a script was given are tracked, as in Redis 7.0; since 7.2 those that it reads",
		"tracking.resp: scripts within a transaction":                                                    "likewise",
	}
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
				if err := p.client(it.Client).Send(it.AppendRequest(nil)); err != nil {
					t.Errorf("%s:%d: %v", p.file.Name, it.Line, err)
					return
				}
			}
		}
		for range it.Replies {
			var got [2]string
			for i, p := range both {
				var err error
				if got[i], err = p.client(it.Client).Receive(judge.Patience); err != nil {
					t.Errorf("%s:%d: %s: no reply of %s: %v", p.file.Name, it.Line, it.Words(), []string{"zsetd", "Redis"}[i], err)
					return
				}
			}
			if !ours[it.Client] && !it.MatchesServer(got[0], got[1]) && apart(both[0].file.Name, it) == "" {
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
	for _, c := range allCommands() {
		switch reason := elsewhere[c.Name]; {
		case !run[c.Name] && reason == "":
			t.Errorf("%s is in no transcript", c.Name)
		case run[c.Name] && reason != "":
			t.Errorf("%s is in a transcript, although listed as not (%s)", c.Name, reason)
		}
	}
}
