package migrate

import (
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest"
)

// reply returns a command whose reply is that of a script.
func reply(script string) []string { return []string{"EVAL_RO", "return " + script, "0"} }

// TestNonsense checks what becomes of a move if a server replies something else than it should, once.
func TestNonsense(t *testing.T) {
	for _, test := range []struct {
		at   string
		call string
		n    int
		as   []string
		want string // of the error; "" if the move succeeds
	}{
		{"source", "INFO REPLICATION", 1, []string{"INFO", "server"}, "INFO has no master_repl_offset"},
		{"source", "SCAN", 1, []string{"LRANGE", "none", "0", "-1"}, "SCAN: unexpected reply"},
		{"source", "SCAN", 1, reply("{'x',{}}"), "invalid syntax"},
		{"target", "SCAN", 1, reply("{'x',{}}"), "invalid syntax"},
		{"source", "SSCAN", 1, reply("{}"), "verification failed"},
		{"source", "SSCAN", 1, reply("{'0',{}}"), ""},
		{"source", "ZSCAN", 1, reply("{'0',{}}"), ""},
		{"source", "SSCAN", 1, failing("WRONGTYPE it has changed"), ""},
		{"source", "LRANGE", 1, failing("WRONGTYPE it has changed"), ""},
		{"target", "INFO", 1, reply(`'redis_version:6.2.1\r\nrole:master\r\n'`), "is redis 6.2, which has no functions: it needs 7.0"},
		{"target", "INFO", 1, reply(`'redis_version:8.0\r\nrole:slave\r\n'`), "the server is a replica: name its primary"},
		{"target", "INFO", 1, reply(`'redis_version:8.0\r\nrole:master\r\ncluster_enabled:1\r\n'`), "the server is a node of a cluster: add ?cluster"},
		{"source", "INFO", 1, reply(`'redis_version:8.0\r\nrole:master\r\ncluster_enabled:1\r\n'`), "the source is a cluster if and only if ?cluster is given"},
	} {
		source, target := primary(t), servertest.Run(t)
		gates := map[string]*gate{"source": gateTo(t, source.Addr()), "target": gateTo(t, target.Addr())}
		here := clientOf(t, source.Addr())
		must(t, here, "SET", "k", 1)
		must(t, here, append([]any{"SADD", "largeset"}, some(2100)...)...)
		must(t, here, append([]any{"ZADD", "largezset"}, some(4200)...)...)
		must(t, here, append([]any{"RPUSH", "largelist"}, some(2100)...)...)
		count := 0
		gates[test.at].set(func(args []string) []string {
			if callOf(args) == test.call {
				if count++; count == test.n {
					return test.as
				}
			}
			return args
		})
		o := moveOf(t, gates["source"].addr, gates["target"].addr)
		o.Log = nil
		err := run(t, o)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) || count < test.n {
			t.Errorf("%s of the %s replies %q: %v, want %q", test.call, test.at, test.as, err, test.want)
		}
	}
}
