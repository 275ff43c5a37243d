package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestHotKeys: HOTKEYS measures the keys of single commands, of transactions and of scripts,
// in a pipeline, too, and reports the bytes that Redis reports.
func TestHotKeys(t *testing.T) {
	n := zsetdNode(t, nil)
	n.run("HOTKEYS START METRICS 2 CPU NET")
	n.run("SET a b", "GET a")
	n.do("MGET", "a", "b", "c")
	n.run("MULTI", "SET t{x} 1", "EXEC")
	n.do("EVAL", "redis.call('set', KEYS[1], 1)", "1", "s")
	if _, err := n.cmd.pipeline([][]string{{"INCR", "p"}, {"INCR", "p"}, {"INCR", "p"}}); err != nil {
		t.Fatal(err)
	}
	got := n.do("HOTKEYS", "GET")
	n.run("HOTKEYS STOP")
	// 27+5 for SET, 20+7 for GET, (35+21)/3 for MGET in RESP2.
	for _, want := range []string{"$1\r\na\r\n:77\r\n", "$1\r\nb\r\n:18\r\n", "$4\r\nt{x}\r\n:35\r\n", "$1\r\np\r\n:75\r\n", "$1\r\ns\r\n:"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	before := n.do("HOTKEYS", "GET")
	n.run("SET a c")
	if after := n.do("HOTKEYS", "GET"); after != before {
		t.Errorf("it measures after STOP: %q, %q", before, after)
	}
}

// TestSlotStats: CLUSTER SLOT-STATS counts commands by the slot of their keys: bytes as they
// were sent and replied, keys, and time; those of transactions with EXEC.
func TestSlotStats(t *testing.T) {
	n := zsetdNode(t, map[string]string{"cluster-enabled": "yes", "cluster-slot-stats-enabled": "yes"})
	const slot = "12539" // of "key"
	stats := func() (in, out int64, rest string) {
		t.Helper()
		got := n.do("CLUSTER", "SLOT-STATS", "SLOTSRANGE", slot, slot)
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
	} {
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
		if got := n.do(strings.Fields(argv)...); got != want {
			t.Errorf("%s: %q, want %q", argv, got, want)
		}
	}
	if got := n.do("CONFIG", "SET", "cluster-slot-stats-enabled", "yes"); !strings.HasSuffix(got, "memory tracking cannot be enabled at runtime\r\n") {
		t.Errorf("mem at run time: %q", got)
	}
	n.run("SET {b}1 x", "SET {b}2 x", "SET {a}1 x")
	top := n.do("CLUSTER", "SLOT-STATS", "ORDERBY", "key-count", "LIMIT", "2", "DESC")
	if want := "*2\r\n*2\r\n:3300\r\n*4\r\n$9\r\nkey-count\r\n:2\r\n"; !strings.HasPrefix(top, want) {
		t.Errorf("ORDERBY: %q", top)
	}
}
