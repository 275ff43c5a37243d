package differential

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/rerun"
)

// fuzzOptions configures servers for hostile input. The limit of strings is small, so
// that a command that uses much more memory is noticed.
func fuzzOptions() map[string]string {
	return map[string]string{
		"proto-max-bulk-len": "1mb", "databases": "3", "busy-reply-threshold": "20",
	}
}

// FuzzCommands runs commands, one per line, split as redis-cli does. It checks that no
// command panics, takes long or uses much memory, that the data are consistent after
// each, and that a command that returns an error has changed nothing.
func FuzzCommands(f *testing.F) {
	rerun.Skip(f)
	for _, lines := range transcriptLines(f) {
		f.Add([]byte(lines))
	}
	var srv *subject // reused: a start takes longer than most inputs
	f.Fuzz(func(t *testing.T, input []byte) {
		const most = 50
		if srv == nil {
			var err error
			if srv, err = newSubject(fuzzOptions()); err != nil {
				t.Fatal(err)
			}
			srv.LimitScripts(64 << 20)
		}
		d := srv.Direct()
		for _, line := range []string{"FLUSHALL", "SCRIPT FLUSH"} {
			argv, _ := protocol.SplitArgs(nil, []byte(line))
			d.Do(argv)
		}
		n, spoilt := 0, false
		for line := range bytes.Lines(input) {
			argv, ok := protocol.SplitArgs(nil, bytes.TrimRight(line, "\r\n"))
			if !ok || len(argv) == 0 || !mayBeFuzzed(argv) {
				continue
			}
			if n++; n > most {
				break
			}
			spoilt = spoilt || outlasts(argv)
			before, soon := srv.Digest()
			if soon {
				before = ""
			}
			direct(t, srv, d, argv, before)
			if t.Failed() {
				return
			}
		}
		d.Close()
		if err := srv.Check(); err != nil {
			t.Fatalf("at the end: %v", err)
		}
		if spoilt {
			srv.Close()
			srv = nil
		}
	})
}

// direct runs a command and checks its effects. before is the digest of the data, or ""
// if it is unknown or changes with time.
func direct(t testing.TB, srv *subject, d *Direct, argv [][]byte, before string) {
	t.Helper()
	line := fmt.Sprintf("%.300q", argv)
	reply, took, memory := measured(d, argv, line)
	script := isScript(argv)
	if most := 3 * time.Second; took > most && fuzzing() {
		t.Errorf("%s took %v", line, took)
	}
	if most := uint64(64 << 20); memory > most && !script {
		t.Errorf("%s allocated %d MB, its reply has %d bytes", line, memory>>20, len(reply))
	}
	if err := srv.Check(); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if len(reply) > 0 && reply[0] == '-' && !script && before != "" {
		if after, soon := srv.Digest(); before != after && !soon {
			t.Errorf("%s has changed something, and replied %.100q", line, reply)
		}
	}
}

// fuzzing reports whether the test searches for inputs, rather than run the stored corpus.
func fuzzing() bool { return flag.Lookup("test.fuzz").Value.String() != "" }

// measured runs a command. One that does not end within two minutes ends the test.
func measured(d *Direct, argv [][]byte, line string) (reply []byte, took time.Duration, memory uint64) {
	hung := time.AfterFunc(2*time.Minute, func() { panic("hangs: " + line) })
	defer hung.Stop()
	// A handler borrows its arguments: they may be overwritten when it has returned.
	borrowed := make([][]byte, len(argv))
	for i, a := range argv {
		borrowed[i] = bytes.Clone(a)
	}
	start, allocated := time.Now(), allocatedBytes()
	reply = d.Do(borrowed)
	took, memory = time.Since(start), allocatedBytes()-allocated
	for _, b := range borrowed {
		for i := range b {
			b[i] = '!'
		}
	}
	return reply, took, memory
}

func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// isScript reports whether a command may have partial effects when it returns an error,
// and may use as much memory as scripts.
func isScript(argv [][]byte) bool {
	switch strings.ToLower(string(argv[0])) {
	case "eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "exec", "script", "function":
		return true
	}
	return false
}

// outlasts reports whether a command may change the configuration of the server.
func outlasts(argv [][]byte) bool {
	switch strings.ToLower(string(argv[0])) {
	case "acl", "config", "function", "cluster", "eval", "evalsha", "fcall", "exec", "readonly", "asking":
		return true
	}
	return false
}

// mayBeFuzzed reports whether a command stays within the process, and keeps the limits
// that the test relies on.
func mayBeFuzzed(argv [][]byte) bool {
	switch name := strings.ToLower(string(argv[0])); name {
	case "shutdown", "migrate", "save", "bgsave", "bgrewriteaof", "pfselftest", "debug", "replicaof", "slaveof", "module", "psync", "sync":
		return false
	case "eval", "eval_ro", "script", "function", "fcall", "fcall_ro":
		return true // FuzzScripts runs them
	case "config", "acl", "cluster":
		if len(argv) < 2 {
			return true
		}
		switch sub := strings.ToLower(string(argv[1])); sub {
		case "rewrite", "save", "load":
			return false
		case "set":
			for i := 2; i < len(argv); i += 2 {
				name := strings.ToLower(string(argv[i]))
				if !strings.Contains(name, "-entries") && !strings.Contains(name, "listpack") && !strings.Contains(name, "ziplist") &&
					!strings.HasPrefix(name, "notify-") && !strings.HasPrefix(name, "latency-") && !strings.HasPrefix(name, "slowlog-") &&
					!strings.HasPrefix(name, "tracking-") && !strings.HasPrefix(name, "client-output") && name != "requirepass" {
					return false
				}
			}
		}
	}
	return true
}

// transcriptLines returns the commands of the transcripts, section by section.
func transcriptLines(t testing.TB) (all []string) {
	files, err := filepath.Glob("../../../testdata/*.resp")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts: ", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		end := func() {
			if b.Len() > 0 {
				all = append(all, b.String())
				b.Reset()
			}
		}
		for line := range strings.Lines(string(text)) {
			if command, ok := strings.CutPrefix(line, "> "); ok && len(command) < 1000 {
				b.WriteString(command)
			}
			if strings.HasPrefix(line, "---") || b.Len() > 1500 {
				end()
			}
		}
		end()
	}
	return all
}
