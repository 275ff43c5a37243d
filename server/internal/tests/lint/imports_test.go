package lint

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/rerun"
)

var rewrite = flag.Bool("rewrite", false, "write the map of the packages into the documentation")

const module = "github.com/zsetd/zsetd"

// pkg is a row of the map of the packages.
type pkg struct {
	path, what string
	// imports are those that it may have besides the standard library: packages of this
	// module, all packages of a room (values/...), and modules. "-" forbids a part of the standard library.
	imports string
	why     string // the reason for the rule
}

// packages is the map of the packages, from the top to the bottom: each imports only packages
// below it.
func packages() []pkg {
	return []pkg{
		{
			"cmd/zsetd", "flags and redis.conf to server.Options; tools for files",
			"cmd/zsetd/internal/... protocol server server/archive server/console server/migrate server/rdb snapshot github.com/schollz/progressbar/v3 golang.org/x/term",
			"the command holds no logic: what it could do, an embedding program must be able to do",
		},
		{
			"cmd/zsetd/internal/prompt", "the prompt of the tool cli",
			"cmd/zsetd/internal/client protocol github.com/ergochat/readline golang.org/x/term -log/slog",
			"a prompt is a client: it knows the server by its replies",
		},
		{
			"cmd/zsetd/internal/demo", "data that move, for the tool demo",
			"server zset -os -log/slog",
			"it is a program that embeds a server",
		},
		{
			"cmd/zsetd/internal/watch", "what the tools show of a running server",
			"cmd/zsetd/internal/client -os -log/slog",
			"it computes and writes: terminals and signals are above it",
		},
		{
			"cmd/zsetd/internal/client", "connections of the tools to a server",
			"protocol -log/slog",
			"a client knows the protocol; commands and terminals are above it",
		},
		{
			"server", "the embedding API",
			"protocol server/archive server/internal/commands/admin server/internal/engine server/internal/engine/config server/internal/engine/subscription server/internal/peers/transport server/internal/values/keyspace server/internal/wiring server/rdb github.com/tidwall/redcon",
			"the server is what an embedding program imports",
		},
		{
			"server/servertest", "a server for tests of programs",
			"server",
			"tests drive the server as any program does, through what it exports",
		},
		{
			"server/internal/engine/enginetest", "engines with a transport, for tests",
			"protocol server/internal/commands/admin server/internal/engine server/internal/engine/persist server/internal/peers/transport server/internal/values/keyspace server/internal/wiring server/servertest/rerun server/servertest/wait",
			"no package imports it",
		},
		{
			"server/servertest/iofault", "system calls that fail, for tests",
			"golang.org/x/sys -net -log/slog",
			"no package imports it",
		},
		{
			"server/servertest/judge", "real servers for tests, and what they and zsetd answer",
			"protocol server server/internal/tests/transcript server/servertest/port server/servertest/wait",
			"no package imports it",
		},
		{
			"server/servertest/port", "ports for the servers of tests",
			"-os -log/slog",
			"no package imports it",
		},
		{
			"server/servertest/rerun", "which tests another run leaves out",
			"-net -log/slog",
			"no package imports it",
		},
		{
			"server/servertest/wait", "waits for conditions, for tests",
			"-net -log/slog",
			"no package imports it",
		},
		{
			"server/examples/folder", "a program that embeds a server: likes, folded",
			"server server/console zset",
			"an example imports what programs outside this module can",
		},
		{
			"server/examples/liveevents", "a program that embeds a server: events that expire",
			"server server/console",
			"an example imports what programs outside this module can",
		},
		{
			"server/examples/timeboxes", "a program that embeds a server: hits by time",
			"server server/console",
			"an example imports what programs outside this module can",
		},
		{
			"server/examples/waitinglist", "a program that embeds a server: a room and its line",
			"server server/console",
			"an example imports what programs outside this module can",
		},
		{
			"server/console", "the page, the metrics and the event streams over HTTP",
			"protocol server server/internal/base/replyjson github.com/VictoriaMetrics/metrics github.com/a-h/templ",
			"the console is a client of the server, as a program that embeds both",
		},
		{
			"server/migrate", "the move of a running data set between servers",
			"protocol server server/archive server/internal/base/keyslot server/internal/engine server/internal/peers/psync server/internal/peers/remote server/internal/values/keyspace server/rdb zset github.com/redis/go-redis/v9",
			"a move is a client of two servers: it uses the parts of a server that need none, and no other package imports go-redis",
		},
		{
			"server/internal/wiring", "an engine with its commands, replication and transport",
			"server/internal/commands/... server/internal/engine server/internal/peers/...",
			"the parts of an engine meet here only",
		},
		{
			"server/internal/commands/scripting", "EVAL, FCALL, function libraries",
			"protocol server/internal/base/... server/internal/engine server/internal/lua/... server/internal/values/keyspace server/rdb",
			"scripts call commands through the engine, as clients do",
		},
		{
			"server/internal/commands/admin", "handlers of the commands on the server and its connections",
			"protocol server/internal/base/... server/internal/commands/data server/internal/engine/... server/internal/values/... zset",
			"these handlers show the state of the engine: transports, files and scripts are the engine's",
		},
		{
			"server/internal/commands/data", "handlers of the commands on data, one file per family",
			"protocol server/internal/base/... server/internal/engine server/internal/engine/config server/internal/values/... server/rdb zset github.com/zeebo/xxh3",
			"a handler sees only its Call: not files, networks, scripts or the handlers about the server",
		},
		{
			"server/internal/commands/stream", "handlers of the commands on streams",
			"protocol server/internal/engine server/internal/values/... -net -os -io -log/slog",
			"a handler sees only its Call, as in package data",
		},
		{
			"server/internal/commands/pubsub", "handlers of the publish/subscribe commands",
			"protocol server/internal/base/glob server/internal/engine server/internal/engine/subscription -net -os -io -log/slog",
			"these handlers change subscriptions: the engine delivers messages",
		},
		{
			"server/internal/peers/transport", "listeners, TLS, the two transports",
			"protocol server/internal/engine server/internal/engine/config golang.org/x/sys",
			"transports move bytes between sockets and sessions: they know no commands, keys or values",
		},
		{
			"server/internal/peers/replication", "primaries and replicas: transfers, and the stream of effects",
			"protocol server/internal/engine server/internal/engine/config server/internal/peers/psync server/internal/values/... server/rdb",
			"replication feeds replicas through sessions and the lock of the engine; no part of the engine knows its protocol",
		},
		{
			"server/internal/peers/forward", "commands that another server answers after a move",
			"protocol server/internal/base/keyslot server/internal/engine server/internal/engine/config server/internal/engine/subscription server/internal/peers/remote",
			"forward moves requests and replies: the engine, which knows no other server, decides which ones",
		},
		{
			"server/internal/engine", "the lock, turns, commit, dispatch, sessions",
			"protocol server/archive server/internal/base/... server/internal/engine/... server/internal/lua server/internal/lua/script server/internal/peers/remote server/internal/values/... server/rdb zset github.com/zeebo/xxh3 golang.org/x/sys",
			"the engine executes commands and has none: the packages with handlers are above it",
		},
		{
			"server/internal/engine/persist", "the keeper of the data file: checkpoints, rewrites, backups",
			"protocol server/archive server/internal/engine/config server/internal/values/... snapshot golang.org/x/sys -net",
			"the lock, sessions and commands are above it",
		},
		{
			"server/archive", "keyspaces to and from files of data",
			"protocol server/internal/values/... server/rdb snapshot zset -net -log/slog",
			"the server and the tools are above it",
		},
		{
			"server/rdb", "the format of Redis's RDB files and of DUMP",
			"protocol server/internal/values/... zset -net -os -log/slog",
			"a format of values: files and commands are above it",
		},
		{
			"server/internal/engine/subscription", "channels and patterns with their subscribers",
			"protocol server/internal/base/glob -net -os -io -log/slog",
			"a table of names: messages and sessions are above it",
		},
		{
			"server/internal/engine/tracking", "keys in the caches of clients",
			"protocol -net -os -io -log/slog",
			"a table of keys: messages and sessions are above it",
		},
		{
			"server/internal/engine/acl", "users, rules, and the check of a command",
			"protocol server/internal/base/glob -net -log/slog",
			"sessions, the lock and the handlers of ACL are above it",
		},
		{
			"server/internal/engine/config", "the parameters and redis.conf",
			"protocol server/internal/engine/metrics -net -log/slog",
			"the values of the parameters: what they do is in the packages that read them",
		},
		{
			"server/internal/engine/metrics", "counters of what the server does, and the text of INFO",
			"-net -os -io -log/slog",
			"commands and clients are above it",
		},
		{
			"server/internal/peers/psync", "the replica's side of the replication protocol",
			"protocol -os -log/slog",
			"the replica's side of a protocol: servers and tools that follow a primary are above it",
		},
		{
			"server/internal/peers/remote", "addresses of other servers, and requests to them",
			"protocol server/internal/base/keyslot -os -io -log/slog",
			"a syntax and the form of a request: connections are above it",
		},
		{
			"server/internal/lua/script", "the Lua machine within limits, with Redis's libraries",
			"server/internal/lua server/internal/lua/compiler server/internal/lua/conv -net -os -io -log/slog",
			"a language: it knows nothing of commands, keys or files, and gives scripts no way to them",
		},
		{
			"server/internal/lua/compiler", "Lua sources to code of that machine",
			"server/internal/lua server/internal/lua/conv -net -os -io -log/slog",
			"sources to code: what runs the code, with its libraries, is above it",
		},
		{
			"server/internal/lua", "values and the machine of Lua 5.1",
			"server/internal/lua/conv -net -os -io -log/slog",
			"a machine: sources, libraries and limits are above it",
		},
		{
			"server/internal/lua/conv", "numbers and strings as Lua converts them",
			"-net -os -io -log/slog",
			"an algorithm on numbers and strings",
		},
		{
			"server/internal/values/keyspace", "typed values behind two accessors",
			"server/internal/values/... zset zset/table -net -os -io/fs -log/slog",
			"the keyspace holds values: clients, files and networks are above it",
		},
		{
			"server/internal/values/operation", "the operations of which a change consists",
			"server/internal/values/journal server/internal/values/sequence -net -os -io -log/slog",
			"a form of changes: the keyspace writes them, and its followers read them",
		},
		{
			"server/internal/values/sequence", "the values that are lists and streams",
			"server/internal/values/journal server/internal/values/packed github.com/tidwall/btree -net -os -io -log/slog",
			"two kinds of values: keys, deadlines and commands are above it",
		},
		{
			"server/internal/values/journal", "the format of the changes of values",
			"zset -net -os -io -log/slog",
			"the values that change and the file are above it",
		},
		{
			"server/internal/values/packed", "byte strings in one slice",
			"-net -os -io -log/slog",
			"an algorithm on bytes",
		},
		{
			"server/internal/values/score", "scores, and times in their place",
			"protocol zset -net -os -io -log/slog",
			"a syntax: commands are above it",
		},
		{
			"server/internal/values/longdouble", "the numbers of INCRBYFLOAT",
			"protocol -net -os -io -log/slog",
			"an algorithm on numbers",
		},
		{
			"server/internal/values/geo", "points on the earth as scores",
			"-net -os -io -log/slog",
			"an algorithm on numbers: commands and sorted sets are above it",
		},
		{
			"server/internal/values/hyperloglog", "counts of distinct elements",
			"-net -os -io -log/slog",
			"an algorithm on bytes: commands and keys are above it",
		},
		{
			"server/internal/values/bitmap", "bits in byte slices",
			"-net -os -io -log/slog",
			"an algorithm on bytes: commands and keys are above it",
		},
		{
			"server/internal/values/lcs", "the longest common subsequence",
			"-net -os -io -log/slog",
			"an algorithm on bytes: commands and keys are above it",
		},
		{
			"server/internal/base/clock", "the clock of the server",
			"golang.org/x/sys -net -os -io -log/slog",
			"times only: what waits for them is above it",
		},
		{
			"server/internal/base/process", "the version, processor time and open files of this process",
			"golang.org/x/sys -net -os -io -log/slog",
			"readings only: what they decide is above it",
		},
		{
			"server/internal/base/replyjson", "replies of RESP3 as JSON",
			"protocol -net -os -log/slog",
			"the console and the engine write the same JSON",
		},
		{
			"server/internal/base/glob", "patterns of names",
			"-net -os -io -log/slog",
			"an algorithm on bytes",
		},
		{
			"server/internal/base/keyslot", "the cluster slot of a key",
			"-net -os -io -log/slog",
			"a hash of texts: keys and nodes are above it",
		},
		{
			"server/internal/tests/lint", "the checks of this repository",
			"",
			"it has only tests",
		},
		{
			"server/internal/tests/differential", "random commands, and real servers to compare with, for tests",
			"",
			"it has only tests",
		},
		{
			"server/internal/lua/differential", "random programs of Lua, and real servers to compare with, for tests",
			"",
			"it has only tests",
		},
		{
			"server/internal/tests/simulation", "servers in a simulated network and time, for tests",
			"",
			"it has only tests",
		},
		{
			"server/internal/tests/transcript", "files of commands and their replies, for tests",
			"protocol -net -os -log/slog",
			"no package imports it",
		},
		{
			"snapshot", "records in a bbolt file",
			"go.etcd.io/bbolt -net",
			"a snapshot keeps records in a file; it knows nothing of values, commands or networks",
		},
		{
			"protocol", "requests, replies, facts of commands",
			"github.com/tidwall/redcon -net -os",
			"protocol turns bytes into arguments and replies into bytes; it knows neither values nor sockets",
		},
		{
			"zset", "the sorted set",
			"zset/table github.com/tidwall/btree -net -os -io/fs",
			"programs embed zset alone: it depends on one module, which depends on none, and on nothing of Redis, files or networks",
		},
		{
			"zset/table", "a hash table with clones and scans",
			"",
			"the hash table is under everything else, and people embed it with zset",
		},
	}
}

func TestImports(t *testing.T) {
	rerun.Skip(t)
	cmd := exec.Command("go", "list", "-pgo=off", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = "../../../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	rank := map[string]int{}
	for i, p := range packages() {
		rank[p.path] = i
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		path := strings.TrimPrefix(words[0], module+"/")
		at, ok := rank[path]
		if !ok {
			t.Errorf("%s is a new package: say in packages (imports_test.go) what it is, what it may import, and why", path)
			continue
		}
		rule := packages()[at]
		for _, imp := range words[1:] {
			below, ours := rank[strings.TrimPrefix(imp, module+"/")]
			if !allowed(imp, strings.Fields(rule.imports)) || ours && below < at {
				t.Errorf("%s must not import %s: %s", path, imp, rule.why)
			}
		}
		delete(rank, path)
	}
	for path := range rank {
		t.Errorf("there is no package %s", path)
	}
}

func allowed(imp string, rules []string) bool {
	first, _, _ := strings.Cut(imp, "/")
	standard := !strings.Contains(first, ".")
	for _, r := range rules {
		if part, no := strings.CutPrefix(r, "-"); no {
			if imp == part || strings.HasPrefix(imp, part+"/") {
				return false
			}
			continue
		}
		room, isRoom := strings.CutSuffix(r, "...")
		if imp == module+"/"+r || isRoom && strings.HasPrefix(imp+"/", module+"/"+room) ||
			imp == r || !standard && strings.HasPrefix(imp, r+"/") {
			return true
		}
	}
	return standard
}

func TestImportRules(t *testing.T) {
	rules := []string{"zset", "server/values/...", "github.com/tidwall/btree", "-net"}
	for imp, want := range map[string]bool{
		"strings": true, "math/rand/v2": true, "net": false, "net/http": false, "network": true,
		module + "/zset": true, module + "/zset/table": false, module + "/server": false, module + "/server/values/set": true, module + "/server/valuesets": false,
		"github.com/tidwall/btree": true, "github.com/tidwall/btreeplus": false, "github.com/tidwall/redcon": false,
	} {
		if got := allowed(imp, rules); got != want {
			t.Errorf("%s: %v", imp, got)
		}
	}
}

// TestPackagesDocument checks that the documentation of package wiring has the map, or writes it
// there with the flag -rewrite.
func TestPackagesDocument(t *testing.T) {
	const file, begin, end = "../../wiring/doc.go", "// other programs cannot import", "// Start reading with "
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), begin)
	line, rest, _ := strings.Cut(rest, "\n")
	_, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatal("the documentation of package wiring has no map of the packages")
	}
	text := "//\n"
	for _, p := range packages() {
		if strings.HasPrefix(p.path, "server/") && !slices.Contains([]string{"", "it has only tests", "no package imports it"}, p.why) {
			text += fmt.Sprintf("//\t%-30s%s\n", strings.TrimPrefix(p.path, "server/"), p.what)
		}
	}
	want := before + begin + line + "\n" + text + "//\n" + end + after
	if want == string(b) {
		return
	}
	if !*rewrite {
		t.Fatal("the map of the packages in server/internal/wiring/doc.go is another one: go test ./server/internal/tests/lint -run Document -rewrite")
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
