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
		"query-max":                         {"20", "100", "200000"},
		"query-cpu":                         {"1", "25", "100"},
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

// A deed is something that the operator does: commands, or a function.
type deed struct {
	weight int
	name   string
	forms  []string // see drawn
	also   func(p *player, do func(args ...any) any)
}

func (w *chaos) table() []deed {
	return []deed{
		{60, "CONFIG SET", nil, w.set},
		{36, "CLIENT KILL", nil, w.kill},
		{6, "CLIENT PAUSE", []string{"CLIENT PAUSE 10..159 WRITE|ALL"}, nil},
		{6, "CLIENT UNPAUSE", []string{"CLIENT PAUSE 10..159 WRITE|ALL", "CLIENT UNPAUSE"}, nil},
		{12, "BGSAVE", []string{"BGSAVE SCHEDULE"}, nil},
		{12, "SAVE", []string{"SAVE"}, nil},
		{3, "BGREWRITEAOF", []string{"BGREWRITEAOF"}, nil},
		{4, "DEBUG RELOAD", []string{"DEBUG RELOAD"}, nil},
		{12, "looks", []string{"INFO everything", "CLIENT LIST", "SLOWLOG GET 20", "LATENCY LATEST", "MEMORY STATS", "MEMORY DOCTOR",
			"CONFIG GET *", "COMMAND DOCS", "PUBSUB CHANNELS", "ACL LOG"}, nil},
		{12, "KEYS", []string{"KEYS *", "RANDOMKEY", "DBSIZE", "DEBUG DIGEST"}, nil},
		{12, "SCRIPT FLUSH", []string{"SCRIPT FLUSH SYNC|ASYNC"}, nil},
		{12, "FUNCTION", nil, func(p *player, do func(args ...any) any) {
			do("FUNCTION", "RESTORE", text(do("FUNCTION", "DUMP")), "REPLACE")
			do("FUNCTION", "LOAD", "REPLACE", fmt.Sprintf("#!lua name=other\nredis.register_function('other', function() return %d end)", p.int(1000)))
			do("FUNCTION", "LIST", "WITHCODE")
		}},
		{12, "another database", []string{"SELECT 5", "DEBUG POPULATE 200..2199 filler", "SWAPDB 5 6", "SELECT 6", "FLUSHDB SYNC|ASYNC", "SELECT 0"}, nil},
		{12, "maxmemory", nil, w.limit},
		{12, "maxclients", nil, func(p *player, do func(args ...any) any) {
			do("CONFIG", "SET", "maxclients", field(do("INFO", "clients"), "connected_clients")+1)
			p.rest(150)
			do("CONFIG", "SET", "maxclients", 2000)
		}},
		{12, "a slow script", nil, func(p *player, do func(args ...any) any) {
			if !w.st.crashes {
				do("CONFIG", "SET", "busy-reply-threshold", drawn(p.rng, "5000|10"))
			}
			n := 200_000 + p.int(1_500_000)
			if w.st.o.race {
				n /= 20
			}
			do("EVAL", "local t = 0 for i = 1, ARGV[1] do t = t + i % 7 end return t", 0, n)
		}},
		{12, "DEBUG SLEEP", []string{"DEBUG SLEEP 0.01|0.02|0.03|0.04|0.05|0.06|0.07|0.08"}, nil},
		{12, "ACL", nil, func(p *player, do func(args ...any) any) {
			name := fmt.Sprint("user", p.int(5))
			do("ACL", "SETUSER", name, "on", ">secret", "~visit:*", "+@read")
			do("ACL", "DRYRUN", name, "GET", "visit:1")
			if p.one(2) {
				do("ACL", "DELUSER", name)
			}
		}},
		{12, "CONFIG RESETSTAT", []string{"CONFIG RESETSTAT", "LATENCY RESET", "SLOWLOG RESET"}, nil},
	}
}

// choose draws a deed.
func (w *chaos) choose(p *player) deed {
	table, total := w.table(), 0
	evict := w.st.evicts() && p.one(3)
	for i, d := range table {
		names := w.st.o.deeds
		if evict {
			names = []string{"maxmemory"}
		}
		if len(names) > 0 && !slices.Contains(names, d.name) {
			table[i].weight = 0
		}
		total += table[i].weight
	}
	n := p.int(max(1, total))
	for _, d := range table {
		if n -= d.weight; n < 0 {
			return d
		}
	}
	return deed{name: "nothing"}
}

func (w *chaos) step(p *player) (err error) {
	do := func(args ...any) (r any) {
		if err == nil {
			r, err = p.do(args...)
		}
		return r
	}
	d := w.choose(p)
	w.deeds[d.name]++
	for _, form := range d.forms {
		var command []string
		for word := range strings.FieldsSeq(form) {
			command = append(command, drawn(p.rng, word)...)
		}
		if command[0] == "CLIENT" && command[1] == "UNPAUSE" {
			p.rest(100)
		}
		do(command)
	}
	if d.also != nil {
		d.also(p, do)
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

// set sets one of the settings.
func (w *chaos) set(p *player, do func(args ...any) any) {
	all := settings()
	names := slices.Sorted(maps.Keys(all))
	name := names[p.int(len(names))]
	if w.st.crashes && (name == "save" || name == "busy-reply-threshold") {
		return // the model must know the writes that a crash may lose
	}
	do("CONFIG", "SET", name, all[name][p.int(len(all[name]))])
}

// kill ends the connection of some client.
func (w *chaos) kill(p *player, do func(args ...any) any) {
	r := do("CLIENT", "LIST", "TYPE", drawn(p.rng, "normal|normal|pubsub"))
	lines := strings.Split(strings.TrimSpace(text(r)), "\n")
	line := lines[p.int(len(lines))]
	if id, _, ok := strings.Cut(strings.TrimPrefix(line, "id="), " "); ok && id != p.id {
		do("CLIENT", "KILL", "ID", id, "SKIPME", "yes")
	}
}

// limit limits the memory for a moment.
func (w *chaos) limit(p *player, do func(args ...any) any) {
	if w.st.crashes { // a refused write and a write lost in a crash would look the same
		return
	}
	before, policy := do("INFO", "everything"), []string{"noeviction"}
	if w.st.evicts() {
		w.st.evicting.Store(true)
		policy = drawn(p.rng, "volatile-lru|volatile-lfu|volatile-ttl|volatile-random")
		w.deeds[policy[0]]++
	}
	do("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", max(1, field(before, "used_memory")*int64(80+p.int(19))/100))
	p.rest(200)
	if r := do("CONFIG", "SET", "maxmemory", 0, "maxmemory-policy", "noeviction"); r != nil {
		w.st.evicting.Store(false)
	}
	w.evicted += max(0, field(do("INFO", "stats"), "evicted_keys")-field(before, "evicted_keys"))
}

// field returns a number of INFO.
func field(info any, name string) int64 {
	for line := range strings.Lines(text(info)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int64(n)
		}
	}
	return 0
}

// calm takes back what limits.
func (w *chaos) calm(c *client) error {
	_, err := c.ask(words("CONFIG", "SET", "maxmemory", 0, "maxmemory-policy", "noeviction", "maxclients", 2000, "timeout", 0,
		"client-output-buffer-limit", "normal 0 0 0 pubsub 33554432 8388608 60", "proto-max-bulk-len", 536870912,
		"client-query-buffer-limit", 1073741824, "save", "1 1"), words("CLIENT", "UNPAUSE"), words("SELECT", 0))
	return err
}

func (w *chaos) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(w.deeds)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, w.deeds[name]))
	}
	return fmt.Sprintf("operator: %s; %d keys were evicted", strings.Join(parts, ", "), w.evicted)
}
