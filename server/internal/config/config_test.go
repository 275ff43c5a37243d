package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/config"
)

// TestParameters checks that every default is valid, and that the value which CONFIG GET
// shows is accepted and means the same.
func TestParameters(t *testing.T) {
	settings := config.Defaults()
	names := map[string]bool{}
	for _, p := range config.Parameters() {
		for _, name := range []string{p.Name, p.Alias} {
			if name != "" && names[name] {
				t.Errorf("%s is twice in the table", name)
			}
			names[name] = true
		}
		shown := p.Get(&settings)
		if err := p.Set(&settings, shown); err != nil || p.Get(&settings) != shown {
			t.Errorf("%s %q: %v, %q", p.Name, shown, err, p.Get(&settings))
		}
		if p.Doc == "" {
			t.Errorf("%s has no description", p.Name)
		}
	}
}

// TestSettingsAreValues checks that a copy of settings does not change with the original.
func TestSettingsAreValues(t *testing.T) {
	table := config.Parameters()
	before := config.Defaults()
	after := before
	for name, value := range map[string]string{
		"replica-priority": "7", "save": "1 2", "client-output-buffer-limit": "normal 1 2 3",
		"latency-tracking-info-percentiles": "1 2", "notify-keyspace-events": "KEA",
	} {
		p := config.Find(table, name)
		shown := p.Get(&before)
		if err := p.Set(&after, value); err != nil {
			t.Fatal(name, err)
		}
		if p.Get(&before) != shown || p.Get(&after) == shown {
			t.Errorf("%s: %q became %q, and in the copy %q", name, shown, p.Get(&before), p.Get(&after))
		}
	}
}

func TestReadArgs(t *testing.T) {
	for _, test := range []struct{ args, name, want, problem string }{
		{"--port 7000", "port", "7000", ""},
		{"--port=7000", "port", "7000", ""},
		{"--rename-command get fetch --rename-command set x", "rename-command", "get fetch set x", ""},
		{"--user a on --user b on", "user", "a on\nb on\n", ""},
		{"--user a on --user a on", "", "", "Duplicate user found"},
		{"--port", "", "", "wrong number of arguments"},
		{"--nosuch 1", "", "", "Bad directive"},
		{"--port x", "", "", "argument couldn't be parsed into an integer"},
		{"-p 1", "", "", "unknown option -p"},
	} {
		values, err := config.ReadArgs(strings.Fields(test.args))
		switch {
		case test.problem == "" && (err != nil || values[test.name] != test.want):
			t.Errorf("%s: %q, %v", test.args, values[test.name], err)
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: %v", test.args, err)
		}
	}
}

// TestShippedFiles reads the parameters of the redis.conf that releases of Redis since 2.6 have
// shipped, and of valkey.conf: all that Redis 8.6 accepts, even if it ignores them.
func TestShippedFiles(t *testing.T) {
	// Each release has the lines of the earlier ones, except those that it replaces.
	releases := []struct{ name, lines string }{
		{"2.6", `
daemonize no
pidfile /var/run/redis.pid
port 6379
timeout 0
tcp-keepalive 0
loglevel notice
logfile stdout
databases 16
save 900 1
save 300 10
save 60 10000
stop-writes-on-bgsave-error yes
rdbcompression yes
rdbchecksum yes
dbfilename dump.rdb
dir ./
slave-serve-stale-data yes
slave-read-only yes
repl-disable-tcp-nodelay no
slave-priority 100
appendonly no
appendfsync everysec
no-appendfsync-on-rewrite no
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 64mb
lua-time-limit 5000
slowlog-log-slower-than 10000
slowlog-max-len 128
hash-max-ziplist-entries 512
hash-max-ziplist-value 64
list-max-ziplist-entries 512
list-max-ziplist-value 64
set-max-intset-entries 512
zset-max-ziplist-entries 128
zset-max-ziplist-value 64
activerehashing yes
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit slave 256mb 64mb 60
client-output-buffer-limit pubsub 32mb 8mb 60
hz 10
aof-rewrite-incremental-fsync yes
`}, {"2.8", `
logfile ""
tcp-backlog 511
repl-diskless-sync no
repl-diskless-sync-delay 5
latency-monitor-threshold 0
notify-keyspace-events ""
hll-sparse-max-bytes 3000
`}, {"3.0", `
aof-load-truncated yes
`}, {"3.2", `
bind 127.0.0.1
protected-mode yes
tcp-keepalive 300
supervised no
pidfile /var/run/redis_6379.pid
list-max-ziplist-size -2
list-compress-depth 0
lua-replicate-commands yes
`}, {"4.0", `
always-show-logo yes
lazyfree-lazy-eviction no
lazyfree-lazy-expire no
lazyfree-lazy-server-del no
slave-lazy-flush no
aof-use-rdb-preamble no
`}, {"5.0", `
replica-serve-stale-data yes
replica-read-only yes
replica-priority 100
replica-lazy-flush no
stream-node-max-bytes 4096
stream-node-max-entries 100
client-output-buffer-limit replica 256mb 64mb 60
dynamic-hz yes
rdb-save-incremental-fsync yes
aof-use-rdb-preamble yes
`}, {"6.0", `
rdb-del-sync-files no
repl-diskless-load disabled
acllog-max-len 128
lazyfree-lazy-user-del no
io-threads 4
io-threads-do-reads no
jemalloc-bg-thread yes
`}, {"6.2", `
bind 127.0.0.1 -::1
always-show-logo no
set-proc-title yes
proc-title-template "{title} {listen-addr} {server-mode}"
lazyfree-lazy-user-flush no
oom-score-adj no
oom-score-adj-values 0 200 800
disable-thp yes
`}, {"7.0", `
repl-diskless-sync yes
repl-diskless-sync-max-replicas 0
appendfilename "appendonly.aof"
appenddirname "appendonlydir"
aof-timestamp-enabled no
hash-max-listpack-entries 512
hash-max-listpack-value 64
list-max-listpack-size -2
zset-max-listpack-entries 128
zset-max-listpack-value 64
`}, {"7.2", `
set-max-listpack-entries 128
set-max-listpack-value 64
locale-collate ""
`}, {"valkey", `
commandlog-execution-slower-than 10000
commandlog-slow-execution-max-len 128
commandlog-request-larger-than 1048576
commandlog-large-request-max-len 128
commandlog-reply-larger-than 1048576
commandlog-large-reply-max-len 128
lazyfree-lazy-eviction yes
lazyfree-lazy-expire yes
lazyfree-lazy-server-del yes
lazyfree-lazy-user-del yes
lazyfree-lazy-user-flush yes
replica-lazy-flush yes
`},
	}
	path := filepath.Join(t.TempDir(), "redis.conf")
	lines := ""
	for _, release := range releases {
		lines += release.lines
		if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		values, err := config.ReadArgs([]string{path})
		if err != nil {
			t.Errorf("%s: %v", release.name, err)
			continue
		}
		if values["list-max-ziplist-entries"] != "512" || values["slowlog-max-len"] != "128" || values["save"] != "900 1 300 10 60 10000" {
			t.Errorf("%s: %q", release.name, values)
		}
	}
	for line, problem := range map[string]string{
		"list-max-ziplist-entries any": "", "LUA-REPLICATE-COMMANDS any": "", "io-threads-do-reads any": "",
		"list-max-ziplist-value": "wrong number of arguments", "list-max-ziplist-value 1 2": "wrong number of arguments",
		"vm-enabled no": "Bad directive", "glueoutputbuf yes": "Bad directive", "gopher-enabled no": "Bad directive", "hash-max-zipmap-entries 1": "Bad directive",
	} {
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.ReadArgs([]string{path}); problem == "" && err != nil || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
