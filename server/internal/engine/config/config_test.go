package config_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine/config"
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

// TestValues checks values that parameters accept, or refuse with a reason.
func TestValues(t *testing.T) {
	const (
		host  = "Hostnames may only contain alphanumeric characters, hyphens or dots"
		node  = "Announced human node name contained invalid character"
		mode  = "argument must be an octal number between 0 and 777"
		site  = "an origin is a scheme and a host, as in https://example.org"
		stats = "argument(s) must be one of the following: no, yes, cpu, net, mem"
	)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	table := config.Parameters()
	for _, test := range []struct{ name, value, want, problem string }{ // want "": as given
		{"cluster-announce-hostname", "AZaz09-.", "", ""},
		{"cluster-announce-hostname", strings.Repeat("a", 255), "", ""},
		{"cluster-announce-hostname", strings.Repeat("a", 256), "", "Hostnames must be less than 256 characters"},
		{"cluster-announce-hostname", "@", "", host}, {"cluster-announce-hostname", "[", "", host},
		{"cluster-announce-hostname", "`", "", host}, {"cluster-announce-hostname", "{", "", host},
		{"cluster-announce-hostname", "/", "", host}, {"cluster-announce-hostname", ":", "", host},
		{"cluster-announce-human-nodename", "AZaz09-._\x80\xff", "", ""},
		{"cluster-announce-human-nodename", "@", "", node}, {"cluster-announce-human-nodename", "[", "", node},
		{"cluster-announce-human-nodename", "`", "", node}, {"cluster-announce-human-nodename", "{", "", node},
		{"cluster-announce-human-nodename", "/", "", node}, {"cluster-announce-human-nodename", ":", "", node},
		{"cluster-announce-human-nodename", "\x7f", "", node},
		{"unixsocketperm", "777", "", ""}, {"unixsocketperm", "0640", "640", ""},
		{"unixsocketperm", "1000", "", mode}, {"unixsocketperm", "8", "", mode}, {"unixsocketperm", "", "", mode},
		{"http-origins", "https://a.org http://b.org:80", "", ""}, {"http-origins", "ftp://a.org", "", site},
		{"http-origins", "https://", "", site}, {"http-origins", "https://a.org/x", "", site}, {"http-origins", "a.org", "", site},
		{"cluster-slot-stats-enabled", "cpu", "", ""}, {"cluster-slot-stats-enabled", "disk", "", stats},
		{"activedefrag", "maybe", "", "argument must be 'yes' or 'no'"}, {"activedefrag", "yes", "", ""},
		{"syslog-enabled", "maybe", "", "argument must be 'yes' or 'no'"}, {"syslog-enabled", "no", "", ""},
		{"syslog-enabled", "yes", "", "logging to syslog is not supported"},
		{"dir", dir, "", ""}, {"dir", file, "", file + ": not a directory"},
		{"maxmemory", "1", "1", ""}, {"maxmemory", "2b", "2", ""}, {"maxmemory", "2k", "2000", ""}, {"maxmemory", "2KB", "2048", ""},
		{"maxmemory", "2m", "2000000", ""}, {"maxmemory", "2mb", "2097152", ""}, {"maxmemory", "2g", "2000000000", ""},
		{"maxmemory", "2gb", "2147483648", ""}, {"maxmemory", "9223372036854775807", "", ""},
		{"maxmemory", "9223372036854775807k", "", "argument must be a memory value"}, {"maxmemory", "2kk", "", "argument must be a memory value"},
	} {
		settings := config.Defaults()
		p := config.Find(table, test.name)
		err := p.Set(&settings, test.value)
		if test.want == "" {
			test.want = test.value
		}
		switch {
		case test.problem != "" && (err == nil || err.Error() != test.problem):
			t.Errorf("%s %q: %v, want %s", test.name, test.value, err, test.problem)
		case test.problem == "" && (err != nil || p.Get(&settings) != test.want):
			t.Errorf("%s %q: %v, %q", test.name, test.value, err, p.Get(&settings))
		}
	}
}

// TestDerivedTimes checks the times that parameters mean.
func TestDerivedTimes(t *testing.T) {
	for tenacity, want := range map[int64]time.Duration{0: 0, 9: 450e3, 10: 500e3, 11: 575e3, 12: 661249, 100: math.MaxInt64} {
		c := config.Settings{EvictionTenacity: tenacity}
		if got := c.EvictionTime(); got != want {
			t.Errorf("maxmemory-eviction-tenacity %d: %v, want %v", tenacity, got, want)
		}
	}
	for _, test := range []struct {
		keys      int
		parameter int64
		want      time.Duration
	}{{5, 3, 15e3}, {5, 0, 0}, {1000, -1, 1e6}, {1000, -10, 100e3}} {
		if got := config.KeyPause(test.keys, test.parameter); got != test.want {
			t.Errorf("%d keys, %d: %v, want %v", test.keys, test.parameter, got, test.want)
		}
	}
}

// TestFiles checks what ReadArgs reads from files, and from standard input.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	usual := os.Stdin
	t.Cleanup(func() { os.Stdin = usual })
	read := func(stdin string, args ...string) (map[string]string, string) {
		t.Helper()
		f, err := os.Open(write("stdin", stdin))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		os.Stdin = f
		values, err := config.ReadArgs(args)
		if err != nil {
			return nil, err.Error()
		}
		return values, ""
	}
	port, bad := write("port.conf", "port 1\n"), write("bad.conf", "port 1\nport x\n")
	for i := range 18 { // 0.conf includes 1.conf, and so on
		next := "timeout 5\n"
		if i < 17 {
			next = fmt.Sprintf("include %d.conf\n", i+1)
		}
		write(fmt.Sprintf("%d.conf", i), next)
	}
	own := write("own.conf", "include own.conf\n")
	for _, test := range []struct{ stdin, args, name, want, problem string }{
		{"port 2\n", "-", "port", "2", ""},
		{"port 2\n", "- --port 3", "port", "3", ""},
		{"port 2\n", "--port 3 -", "port", "3", ""},
		{"timeout 2\n", "--port 3 -", "timeout", "2", ""},
		{"port 2\n", port + " -", "port", "2", ""},
		{"port 2\n", port, "port", "1", ""},
		{"\nport x\n", "-", "", "", "-:2: >>> 'port x': "},
		{"\nport x\n", "--timeout 3 -", "", "", "-:2: >>> 'port x': "},
		{"port \"2\n", "-", "", "", "-:1: >>> 'port \"2': Unbalanced quotes in configuration line"},
		{"rename-command GET\n", "-", "", "", ">>> 'rename-command GET': Bad directive or wrong number of arguments"},
		{"rename-command GET a b\n", "-", "", "", "Bad directive or wrong number of arguments"},
		{"save '900 \"1'\n", "-", "", "", "Unbalanced quotes in configuration line"},
		{"save '900 1'\n", "-", "save", "900 1", ""},
		{"include [\n", "-", "", "", "syntax error in pattern"},
		{"include " + bad + "\n", "-", "", "", bad + ":2: >>> 'port x': "},
		{"include " + filepath.Join(dir, "p*.conf") + "\n", "-", "port", "1", ""},
		{"include " + filepath.Join(dir, "none*.conf") + "\n", "-", "port", "", ""},
		{"include " + filepath.Join(dir, "none.conf") + "\n", "-", "", "", "no such file"},
		{"", filepath.Join(dir, "1.conf"), "timeout", "5", ""},
		{"", filepath.Join(dir, "0.conf"), "", "", "include directives are nested too deeply"},
		{"", own, "", "", "include directives are nested too deeply"},
		{"", filepath.Join(dir, "none.conf"), "", "", "cannot open the configuration file " + filepath.Join(dir, "none.conf")},
	} {
		values, problem := read(test.stdin, strings.Fields(test.args)...)
		switch {
		case test.problem == "" && (problem != "" || values[test.name] != test.want):
			t.Errorf("%s, standard input %q: %q, %s", test.args, test.stdin, values[test.name], problem)
		case test.problem != "" && !strings.Contains(problem, test.problem):
			t.Errorf("%s, standard input %q: %s, want %s", test.args, test.stdin, problem, test.problem)
		}
	}
}

// TestRewriteFile checks that a configuration file is replaced, and what happens if it cannot be.
func TestRewriteFile(t *testing.T) {
	dir := t.TempDir()
	settings := config.Defaults()
	settings.Port = 7001
	path := filepath.Join(dir, "zsetd.conf")
	for range 2 {
		if err := settings.RewriteFile(path, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "port 7001\n") != 1 {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none", "zsetd.conf")} {
		if err := settings.RewriteFile(bad, nil, false); err == nil {
			t.Errorf("%s is written", bad)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left in the folder: %v, %v", entries, err)
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
