package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// metered is a server that counts what its commands cost.
type metered struct {
	*judge.Peer
	t *testing.T
}

func newMetered(t *testing.T, config map[string]string) *metered {
	t.Helper()
	config["enable-debug-command"] = "yes"
	return &metered{judge.Own(t, server.Options{Config: config}), t}
}

// run runs command lines; none may fail.
func (m *metered) run(lines ...string) {
	m.t.Helper()
	for _, line := range lines {
		if r := m.Do(strings.Fields(line)...); strings.HasPrefix(r, "-") {
			m.t.Fatalf("%s: %s", line, r)
		}
	}
}

// TestHotKeys: HOTKEYS measures the keys of single commands, of transactions and of scripts,
// in a pipeline, too, and reports the bytes that Redis reports.
func TestHotKeys(t *testing.T) {
	n := newMetered(t, map[string]string{})
	n.run("HOTKEYS START METRICS 2 CPU NET")
	n.run("SET a b", "GET a")
	n.Do("MGET", "a", "b", "c")
	n.run("MULTI", "SET t{x} 1", "EXEC")
	n.Do("EVAL", "redis.call('set', KEYS[1], 1)", "1", "s")
	if _, err := n.Cmd.Pipeline([][]string{{"INCR", "p"}, {"INCR", "p"}, {"INCR", "p"}}); err != nil {
		t.Fatal(err)
	}
	got := n.Do("HOTKEYS", "GET")
	if info := n.Do("INFO", "hotkeys"); !strings.Contains(info, "# Hotkeys\r\nhotkeys-tracking-active:1\r\nhotkeys-cmd-cpu-time:") {
		t.Errorf("INFO: %q", info)
	}
	n.run("HOTKEYS STOP")
	if info := n.Do("INFO", "hotkeys"); !strings.Contains(info, "hotkeys-tracking-active:0\r\n") {
		t.Errorf("INFO after STOP: %q", info)
	}
	// 27+5 for SET, 20+7 for GET, (35+21)/3 for MGET in RESP2.
	for _, want := range []string{"$1\r\na\r\n:77\r\n", "$1\r\nb\r\n:18\r\n", "$4\r\nt{x}\r\n:35\r\n", "$1\r\np\r\n:75\r\n", "$1\r\ns\r\n:"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	n.run("HOTKEYS RESET", "HOTKEYS START METRICS 2 CPU NET")
	if err := n.Events.Send([]byte("BLPOP q 0\r\n")); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "BLPOP waits", func() bool { return strings.Contains(n.Do("CLIENT", "LIST"), " cmd=blpop ") })
	n.run("RPUSH q v")
	if _, err := n.Events.Receive(judge.Patience); err != nil {
		t.Fatal(err)
	}
	// 29+4 for RPUSH, 29+18 for BLPOP.
	if got := n.Do("HOTKEYS", "GET"); !strings.Contains(got, "$1\r\nq\r\n:80\r\n") {
		t.Errorf("a command that has waited: %q", got)
	}
	n.run("HOTKEYS STOP")
	before := n.Do("HOTKEYS", "GET")
	n.run("SET a c")
	if after := n.Do("HOTKEYS", "GET"); after != before {
		t.Errorf("it measures after STOP: %q, %q", before, after)
	}
}

// TestSlotStats: CLUSTER SLOT-STATS counts commands by the slot of their keys: bytes as they
// were sent and replied, keys, and time; those of transactions with EXEC.
func TestSlotStats(t *testing.T) {
	n := newMetered(t, map[string]string{"cluster-enabled": "yes", "cluster-slot-stats-enabled": "yes"})
	const slot = "12539" // of "key"
	stats := func() (in, out int64, rest string) {
		t.Helper()
		got := n.Do("CLUSTER", "SLOT-STATS", "SLOTSRANGE", slot, slot)
		const before, between = "$16\r\nnetwork-bytes-in\r\n:", "\r\n$17\r\nnetwork-bytes-out\r\n:"
		rest, bytes, ok := strings.Cut(got, before)
		if _, err := fmt.Sscanf(strings.Replace(bytes, between, " ", 1), "%d %d", &in, &out); !ok || err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		return in, out, rest
	}
	for _, step := range []struct {
		lines   string
		in, out int64
	}{
		{"SET key value", 33, 5},
		{"GET key", 22, 11},
		{"MULTI; SET key value; EXEC", 15 + 33 + 14, 9},
		{"PING", 0, 0},
		{"DEL other", 0, 0},
		{"EVAL return(redis.call('get',KEYS[1])) 1 key", 70, 11},
		{"EVAL return(redis.call('get','key')) 0", 0, 0},
		{"SPUBLISH key hello", 38, 4 + 38}, // the reply, and the message
	} {
		n.Events.RoundTrip(t, "SSUBSCRIBE", "key")
		n.run("CONFIG RESETSTAT")
		n.run(strings.Split(step.lines, "; ")...)
		in, out, rest := stats()
		if in != step.in || out != step.out || !strings.HasPrefix(rest, "*1\r\n*2\r\n:"+slot+"\r\n*10\r\n$9\r\nkey-count\r\n:1\r\n$12\r\nmemory-bytes\r\n:") {
			t.Errorf("%s: %d and %d bytes, want %d and %d (%q)", step.lines, in, out, step.in, step.out, rest)
		}
	}
	n.run("DEL key")
	if _, _, rest := stats(); !strings.Contains(rest, "key-count\r\n:0\r\n$12\r\nmemory-bytes\r\n:0") {
		t.Errorf("without the key: %q", rest)
	}
	for argv, want := range map[string]string{
		"CLUSTER SLOT-STATS SLOTSRANGE 5 1":             "-ERR Start slot number 5 is greater than end slot number 1\r\n",
		"CLUSTER SLOT-STATS SLOTSRANGE 0 16384":         "-ERR Invalid or out of range slot\r\n",
		"CLUSTER SLOT-STATS SLOTSRANGE 0 1 2":           "-ERR unknown subcommand or wrong number of arguments for 'SLOT-STATS'. Try CLUSTER HELP.\r\n",
		"CLUSTER SLOT-STATS ORDERBY size":               "-ERR Unrecognized sort metric for ORDERBY.\r\n",
		"CLUSTER SLOT-STATS ORDERBY key-count LIMIT 0":  "-ERR Limit has to lie in between 1 and 16384 (maximum number of slots).\r\n",
		"CLUSTER SLOT-STATS ORDERBY key-count ASC DESC": "-ERR Multiple filters of the same type are disallowed.\r\n",
		"CLUSTER SLOT-STATS ORDERBY key-count LIMIT":    "-ERR syntax error\r\n",
		"CONFIG SET cluster-slot-stats-enabled cpu":     "+OK\r\n",
	} {
		if got := n.Do(strings.Fields(argv)...); got != want {
			t.Errorf("%s: %q, want %q", argv, got, want)
		}
	}
	if got := n.Do("CONFIG", "SET", "cluster-slot-stats-enabled", "yes"); !strings.HasSuffix(got, "memory tracking cannot be enabled at runtime\r\n") {
		t.Errorf("mem at run time: %q", got)
	}
	n.run("SET {b}1 x", "SET {b}2 x", "SET {a}1 x")
	top := n.Do("CLUSTER", "SLOT-STATS", "ORDERBY", "key-count", "LIMIT", "2", "DESC")
	if want := "*2\r\n*2\r\n:3300\r\n*4\r\n$9\r\nkey-count\r\n:2\r\n"; !strings.HasPrefix(top, want) {
		t.Errorf("ORDERBY: %q", top)
	}
}

// TestHotKeysOfSlots checks what HOTKEYS refuses in a cluster, and that it measures the slots that
// it is given, apart from all others.
func TestHotKeysOfSlots(t *testing.T) {
	n := newMetered(t, map[string]string{"cluster-enabled": "yes", "cluster-require-full-coverage": "no"})
	n.run("CLUSTER DELSLOTS 10000")
	for line, want := range map[string]string{
		"HOTKEYS START METRICS 2 NET NET":                       "METRICS NET defined more than once!",
		"HOTKEYS START METRICS 2 CPU CPU":                       "METRICS CPU defined more than once!",
		"HOTKEYS START METRICS 1 CPU SLOTS 0":                   "SLOTS count must be between 1 and 16384",
		"HOTKEYS START METRICS 1 CPU SLOTS 3 1 2":               "not enough slot numbers provided",
		"HOTKEYS START METRICS 1 CPU SLOTS 2 1 1":               "duplicate slot number",
		"HOTKEYS START METRICS 1 CPU SLOTS 1 10000":             "slot 10000 not handled by this node",
		"HOTKEYS START METRICS 1 CPU SLOTS 1 16384":             "Invalid or out of range slot",
		"HOTKEYS START METRICS 1 CPU SLOTS 1 x":                 "Invalid or out of range slot",
		"HOTKEYS START METRICS 1 CPU SLOTS 1 5 SLOTS 1 6":       "SLOTS parameter already specified",
		"CLUSTER SETSLOT 10000 MIGRATING abc":                   "I'm not the owner of hash slot 10000",
		"CLUSTER SETSLOT 5 MIGRATING abc":                       "I don't know about node abc",
		"CLUSTER SETSLOT 5 IMPORTING abc":                       "I'm already the owner of hash slot 5",
		"CLUSTER SETSLOT 10000 IMPORTING abc":                   "I don't know about node abc",
		"CLUSTER SETSLOT 5 NODE abc":                            "Unknown node abc",
		"CLUSTER SLOT-STATS ORDERBY key-count LIMIT 2 LIMIT 3":  "Multiple filters of the same type are disallowed.",
		"CLUSTER SLOT-STATS ORDERBY key-count LIMIT 2 ASC DESC": "Multiple filters of the same type are disallowed.",
	} {
		if got := n.Do(strings.Fields(line)...); got != "-ERR "+want+"\r\n" {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	const ranges = "$14\r\nselected-slots\r\n"
	n.run("HOTKEYS START METRICS 2 CPU NET", "SET a b")
	if got, want := n.Do("HOTKEYS", "GET"), ranges+"*2\r\n*2\r\n:0\r\n:9999\r\n*2\r\n:10001\r\n:16383\r\n"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	n.run("HOTKEYS STOP", "HOTKEYS RESET", "HOTKEYS START METRICS 1 NET SLOTS 3 5 12182 6", "SET foo b", "PING", "SET a b")
	got := n.Do("HOTKEYS", "GET")
	for _, want := range []string{
		ranges + "*2\r\n*2\r\n:5\r\n:6\r\n*1\r\n:12182\r\n",
		"$37\r\nnet-bytes-all-commands-selected-slots\r\n:34\r\n", "$32\r\nnet-bytes-all-commands-all-slots\r\n:66\r\n",
		"$3\r\nfoo\r\n:34\r\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if strings.Contains(got, "$1\r\na\r\n") || strings.Contains(got, "sampled") {
		t.Errorf("a key of another slot, or fields of samples: %q", got)
	}
	n.run("HOTKEYS STOP", "HOTKEYS RESET", "HOTKEYS START METRICS 2 CPU NET SAMPLE 2 SLOTS 1 12182")
	got = n.Do("HOTKEYS", "GET")
	for _, want := range []string{"sampled-commands-selected-slots-us", "all-commands-selected-slots-us", "net-bytes-sampled-commands-selected-slots", "net-bytes-all-commands-selected-slots"} {
		if !strings.Contains(got, "\r\n"+want+"\r\n:0\r\n") {
			t.Errorf("no %s: 0 in %q", want, got)
		}
	}
}
