//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// chaos is the operator: settings that change, clients that are killed, pauses,
// saves, and all that looks at the whole of the server.
type chaos struct {
	*crew
	p     *player
	deeds map[string]int

	evicted int64 // keys
}

func newChaos(st *stage) *chaos {
	w := &chaos{crew: &crew{st: st}, deeds: map[string]int{}}
	w.p = w.act("operator", 1, func(p *player) error {
		time.Sleep(time.Duration(20+p.int(150)) * time.Millisecond)
		return w.step(p)
	})[0]
	w.p.setup = func() error {
		_, err := w.p.all(words("CLIENT", "SETNAME", "operator"), words("CONFIG", "SET", "notify-keyspace-events", "Ex"),
			words("CONFIG", "SET", "maxmemory", 0, "maxmemory-policy", "noeviction")) // as it was, if the connection broke in between
		if err == nil {
			w.st.evicting.Store(false)
		}
		return err
	}
	return w
}

// settings returns parameters that are set, and to what.
func settings() map[string][]string {
	return map[string][]string{
		"zset-max-listpack-entries":         {"0", "8", "128", "1000"},
		"zset-max-listpack-value":           {"1", "64", "5000"},
		"hash-max-listpack-entries":         {"0", "8", "512"},
		"hash-max-listpack-value":           {"0", "64", "5000"},
		"set-max-intset-entries":            {"0", "10", "512"},
		"set-max-listpack-entries":          {"0", "10", "128"},
		"list-max-listpack-size":            {"-2", "-5", "3", "64"},
		"stream-node-max-entries":           {"1", "10", "100"},
		"stream-node-max-bytes":             {"100", "4096"},
		"hll-sparse-max-bytes":              {"0", "3000"},
		"notify-keyspace-events":            {"Ex", "KEA", "AExSTIV", "Exg"},
		"slowlog-log-slower-than":           {"0", "-1", "10000"},
		"slowlog-max-len":                   {"0", "10", "128"},
		"latency-monitor-threshold":         {"0", "1", "100"},
		"latency-tracking":                  {"yes", "no"},
		"tracking-table-max-keys":           {"3", "100", "1000000"},
		"tcp-keepalive":                     {"0", "300", "10"},
		"timeout":                           {"0", "0", "0", "1", "30"},
		"maxclients":                        {"2000", "10000"},
		"client-output-buffer-limit":        {"normal 0 0 0", "normal 33554432 8388608 60", "normal 300000 100000 1", "pubsub 33554432 8388608 60", "pubsub 200000 50000 1"},
		"client-query-buffer-limit":         {"1073741824", "1048576"},
		"proto-max-bulk-len":                {"536870912", "1048576"},
		"busy-reply-threshold":              {"5000", "10"},
		"loglevel":                          {"notice", "warning", "verbose"},
		"save":                              {"1 1", "60 1000 300 1", "", "1 1"},
		"acllog-max-len":                    {"0", "128"},
		"maxmemory-eviction-tenacity":       {"0", "10", "100"},
		"maxmemory-samples":                 {"1", "5", "10"},
		"lfu-log-factor":                    {"0", "10"},
		"lazyfree-lazy-user-del":            {"yes", "no"},
		"stop-writes-on-bgsave-error":       {"yes", "no"},
		"protected-mode":                    {"yes", "no"},
		"cluster-allow-reads-when-down":     {"yes", "no"},
		"latency-tracking-info-percentiles": {"50 99 99.9", "1 2 3"},
	}
}

func (w *chaos) step(p *player) error {
	what := ""
	var err error
	do := func(args ...any) (r any) {
		if err == nil {
			r, err = p.do(args...)
		}
		return r
	}
	deed := p.int(24)
	if d := w.st.o.deeds; len(d) > 0 {
		deed = d[p.int(len(d))]
	}
	if w.st.evicts() && p.one(3) {
		deed = 18
	}
	switch deed {
	case 0, 1, 2, 3, 4:
		what = "CONFIG SET"
		harmless := settings()
		names := slices.Sorted(maps.Keys(harmless))
		name := names[p.int(len(names))]
		value := harmless[name][p.int(len(harmless[name]))]
		if w.st.crashes && (name == "save" || name == "busy-reply-threshold") {
			break // the model must know the writes that a crash may lose
		}
		do("CONFIG", "SET", name, value)
	case 5, 6, 7:
		what = "CLIENT KILL"
		r := do("CLIENT", "LIST", "TYPE", []string{"normal", "normal", "pubsub"}[p.int(3)])
		lines := strings.Split(strings.TrimSpace(text(r)), "\n")
		line := lines[p.int(len(lines))]
		if id, _, ok := strings.Cut(strings.TrimPrefix(line, "id="), " "); ok && id != p.id {
			do("CLIENT", "KILL", "ID", id, "SKIPME", "yes")
		}
	case 8:
		what = "CLIENT PAUSE"
		do("CLIENT", "PAUSE", 10+p.int(150), []string{"WRITE", "ALL"}[p.int(2)])
		if p.one(2) {
			time.Sleep(time.Duration(p.int(100)) * time.Millisecond)
			do("CLIENT", "UNPAUSE")
		}
	case 9:
		what = "BGSAVE"
		do("BGSAVE", "SCHEDULE")
	case 10:
		what = "SAVE"
		do("SAVE")
	case 11:
		if p.one(4) {
			what = "BGREWRITEAOF"
			do("BGREWRITEAOF")
		}
	case 12:
		if p.one(3) {
			what = "DEBUG RELOAD"
			do("DEBUG", "RELOAD")
		}
	case 13:
		what = "looks"
		do("INFO", "everything")
		do("CLIENT", "LIST")
		do("SLOWLOG", "GET", 20)
		do("LATENCY", "LATEST")
		do("MEMORY", "STATS")
		do("MEMORY", "DOCTOR")
		do("CONFIG", "GET", "*")
		do("COMMAND", "DOCS")
		do("PUBSUB", "CHANNELS")
		do("ACL", "LOG")
	case 14:
		what = "KEYS"
		do("KEYS", "*")
		do("RANDOMKEY")
		do("DBSIZE")
		do("DEBUG", "DIGEST")
	case 15:
		what = "SCRIPT FLUSH"
		do("SCRIPT", "FLUSH", []string{"SYNC", "ASYNC"}[p.int(2)])
	case 16:
		what = "FUNCTION"
		payload := do("FUNCTION", "DUMP")
		do("FUNCTION", "RESTORE", text(payload), "REPLACE")
		do("FUNCTION", "LOAD", "REPLACE", fmt.Sprintf("#!lua name=other\nredis.register_function('other', function() return %d end)", p.int(1000)))
		do("FUNCTION", "LIST", "WITHCODE")
	case 17:
		what = "another database"
		do("SELECT", 5)
		do("DEBUG", "POPULATE", 200+p.int(2000), "filler")
		do("SWAPDB", 5, 6)
		do("SELECT", 6)
		do([]string{"FLUSHDB", "FLUSHDB"}[p.int(2)], []string{"SYNC", "ASYNC"}[p.int(2)])
		do("SELECT", 0)
	case 18:
		if w.st.crashes { // a refused write and a write lost in a crash would look the same
			break
		}
		what = "maxmemory"
		before := do("INFO", "everything")
		limit, policy := field(before, "used_memory")*int64(80+p.int(19))/100, "noeviction"
		if w.st.evicts() {
			w.st.evicting.Store(true)
			policy = []string{"volatile-lru", "volatile-lfu", "volatile-ttl", "volatile-random"}[p.int(4)]
			what = policy
		}
		do("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", max(1, limit))
		time.Sleep(time.Duration(p.int(200)) * time.Millisecond)
		if do("CONFIG", "SET", "maxmemory", 0, "maxmemory-policy", "noeviction"); err == nil {
			w.st.evicting.Store(false)
		}
		w.evicted += max(0, field(do("INFO", "stats"), "evicted_keys")-field(before, "evicted_keys"))
	case 19:
		what = "maxclients"
		n := field(do("INFO", "clients"), "connected_clients")
		do("CONFIG", "SET", "maxclients", n+1)
		time.Sleep(time.Duration(p.int(150)) * time.Millisecond)
		do("CONFIG", "SET", "maxclients", 2000)
	case 20:
		what = "a slow script"
		if !w.st.crashes {
			do("CONFIG", "SET", "busy-reply-threshold", []string{"5000", "10"}[p.int(2)])
		}
		n := 200_000 + p.int(1_500_000)
		if w.st.o.race {
			n /= 20
		}
		do("EVAL", "local t = 0 for i = 1, ARGV[1] do t = t + i % 7 end return t", 0, n)
	case 21:
		what = "DEBUG SLEEP"
		do("DEBUG", "SLEEP", "0.0"+strconv.Itoa(1+p.int(8)))
	case 22:
		what = "ACL"
		name := fmt.Sprint("user", p.int(5))
		do("ACL", "SETUSER", name, "on", ">secret", "~visit:*", "+@read")
		do("ACL", "DRYRUN", name, "GET", "visit:1")
		if p.one(2) {
			do("ACL", "DELUSER", name)
		}
	case 23:
		what = "CONFIG RESETSTAT"
		do("CONFIG", "RESETSTAT")
		do("LATENCY", "RESET")
		do("SLOWLOG", "RESET")
	}
	if what != "" {
		w.deeds[what]++
	}
	if r := (*refusal)(nil); errors.As(err, &r) {
		for _, fine := range []string{"already in progress", "Script killed by user"} { // the latter by a stop
			if strings.Contains(string(r.reply), fine) {
				return nil
			}
		}
	}
	return err
}

// field returns a number of INFO.
func field(info any, name string) int64 {
	for line := range strings.Lines(text(info)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

// calm takes back what limits.
func (w *chaos) calm(c *client) error {
	for _, args := range [][]string{
		{"CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction"}, {"CONFIG", "SET", "maxclients", "2000"}, {"CONFIG", "SET", "timeout", "0"},
		{"CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0 pubsub 33554432 8388608 60"},
		{"CONFIG", "SET", "proto-max-bulk-len", "536870912"}, {"CONFIG", "SET", "client-query-buffer-limit", "1073741824"},
		{"CONFIG", "SET", "save", "1 1"}, {"CLIENT", "UNPAUSE"}, {"SELECT", "0"},
	} {
		if r, err := c.do(args...); err != nil {
			return err
		} else if e, bad := r.(errorReply); bad {
			return &refusal{args, e}
		}
	}
	return nil
}

func (w *chaos) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(w.deeds)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, w.deeds[name]))
	}
	return fmt.Sprintf("operator: %s; %d keys were evicted", strings.Join(parts, ", "), w.evicted)
}
