package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
)

// TestDialectsAsRedis sends what the transcripts hold to zsetd and to
// redis-server at the same time, in RESP2 and in RESP3, and compares the replies
// byte by byte.
func TestDialectsAsRedis(t *testing.T) {
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
			f, err := parseTranscript(filepath.Base(name), string(text))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(f.sections, func(s *section) bool { return s.comparable("plain") }) {
				return
			}
			for _, mode := range []string{"plain", "resp3"} {
				t.Run(mode, func(t *testing.T) {
					redis := startRedis(t, "--enable-debug-command", "yes")
					for _, s := range f.sections {
						if !s.comparable(mode) {
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
func (s *section) comparable(mode string) bool {
	return !s.marks["zsetd"] && !s.marks["no"+mode] && slices.ContainsFunc(s.items, func(it *item) bool { return it.command != nil }) &&
		!slices.ContainsFunc(s.items, func(it *item) bool {
			return it.advance != 0 || mode == "resp3" && it.command != nil && strings.EqualFold(it.command[0], "hello")
		})
}

// playBoth plays a section on zsetd and on redis-server side by side.
func playBoth(both [2]*player, s *section) {
	t := both[0].t
	ours := map[int]bool{} // clients that wait for what Redis does not know
	for _, it := range s.items {
		if it.client == 0 {
			continue
		}
		before := both[0].taken()
		if it.command != nil {
			ours[it.client] = it.zsetd
			for _, p := range both {
				if err := p.client(it.client).send(it.encode(nil)); err != nil {
					t.Errorf("%s:%d: %v", p.file.name, it.line, err)
					return
				}
			}
		}
		for range it.replies {
			var got [2]string
			for i, p := range both {
				var err error
				if got[i], err = p.client(it.client).receive(patience); err != nil {
					t.Errorf("%s:%d: %s: no reply of %s: %v", p.file.name, it.line, it.words(), []string{"zsetd", "Redis"}[i], err)
					return
				}
			}
			if !ours[it.client] && !it.alike(got[0], got[1]) {
				t.Errorf("%s:%d: %s\nRedis:\n%s\nzsetd:\n%s", both[0].file.name, it.line, it.words(), indent(got[1]), indent(got[0]))
			}
			if got[0] == closed || got[1] == closed {
				return
			}
		}
		if it.command != nil && len(it.replies) == 0 {
			both[0].settle([]*item{it}, before)
			wait := patience
			if s.pauses() {
				wait = 10 * silence
			}
			both[1].caughtUp(wait)
		}
	}
}

// pauses reports whether a command of the section pauses clients.
func (s *section) pauses() bool {
	return slices.ContainsFunc(s.items, func(it *item) bool {
		return len(it.command) > 1 && strings.EqualFold(it.command[0], "client") && strings.EqualFold(it.command[1], "pause")
	})
}

// caughtUp waits until redis-server, which goes through its clients in turn, has
// received what was sent to it before. During CLIENT PAUSE this cannot be observed, so
// it ends after the given time.
func (p *player) caughtUp(wait time.Duration) {
	for range 2 {
		c := p.client(0)
		if err := c.send(encodeCommand(nil, []string{"PING"})); err != nil {
			p.t.Fatal(err)
		}
		if _, err := c.receive(wait); err != nil {
			c.nc.Close()
			delete(p.clients, 0)
			return
		}
	}
}

// alike compares replies, byte by byte unless the directives of the item say that
// there is more than one right reply.
func (it *item) alike(got, want string) bool {
	switch {
	case it.zsetd || got == want:
		return true
	case got == closed || want == closed || got[0] != want[0]:
		return false
	case it.any:
		return true
	case !it.unordered && it.near == 0:
		return false
	}
	g, _, err1 := protocol.Decode([]byte(got))
	w, _, err2 := protocol.Decode([]byte(want))
	if err1 != nil || err2 != nil {
		return false
	}
	if it.near != 0 {
		return near(g, w, it.near)
	}
	return slices.Equal(elements(g, it.group), elements(w, it.group))
}

// TestTranscriptsRunEverything: each command and subcommand is in a transcript,
// unless it is said what else tests it.
func TestTranscriptsRunEverything(t *testing.T) {
	elsewhere := map[string]string{"pfselftest": "takes seconds; TestHyperLogLogAsRedis tests the same"}
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
		f, err := parseTranscript(filepath.Base(name), string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.sections {
			for _, it := range s.items {
				if it.command == nil {
					continue
				}
				run[strings.ToLower(it.command[0])] = true
				if len(it.command) > 1 {
					run[strings.ToLower(it.command[0]+"|"+it.command[1])] = true
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
