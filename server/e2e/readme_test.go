package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/e2e/program"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

const (
	root     = "../.."
	patterns = "../PATTERNS.md" // the costs of the four systems
	clients  = "README.md"      // of this directory; lists the client libraries
)

// documents yields the Markdown files of the repository, without links of their
// directories.
func documents(t *testing.T, yield func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return cmp.Or(err, filepath.SkipDir)
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err == nil {
			yield(path, string(b))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sections splits a document before each line that begins with "#".
func sections(text string) (list [][]string) {
	lines := strings.SplitAfter(text, "\n")
	for len(lines) > 0 {
		n := 1 + slices.IndexFunc(lines[1:], func(l string) bool { return strings.HasPrefix(l, "#") })
		if n == 0 {
			n = len(lines)
		}
		list = append(list, lines[:n])
		lines = lines[n:]
	}
	return list
}

// TestReadmeSessions checks that the sessions of redis-cli in all documents have the
// replies that the server sends. An indented block that begins with "$ redis-cli" is
// a window; the blocks under one heading use the same server. A line "# 5s later …"
// lets time pass. Messages of a subscriber are in its block, also later ones.
//
// With -rewrite it writes the replies of the server into the documents.
func TestReadmeSessions(t *testing.T) {
	sessions := 0
	documents(t, func(path, text string) {
		var doc strings.Builder
		for _, lines := range sections(text) {
			if slices.Contains(lines, window) {
				synctest.Test(t, func(t *testing.T) { lines = runPart(t, lines, &sessions, 0) })
			}
			doc.WriteString(strings.Join(lines, ""))
		}
		if doc.String() == text {
			return
		}
		if *rewrite {
			if err := os.WriteFile(path, []byte(doc.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		got := strings.Split(doc.String(), "\n")
		for i, line := range strings.Split(text, "\n") {
			if i >= len(got) || got[i] != line {
				t.Errorf("%s:%d: the document has %q, the server %q", path, i+1, line, got[min(i, len(got)-1)])
				return
			}
		}
	})
	if sessions < 15 {
		t.Errorf("found %d sessions, want at least 15", sessions)
	}
}

// TestReadmeSessionsLater checks that the sessions do not depend on the date: a year
// later the same commands have the same replies, if times of replies in the commands
// are a year later, too.
func TestReadmeSessionsLater(t *testing.T) {
	const later = 365 * 24 * time.Hour
	instant := regexp.MustCompile(`\b\d{10}\.\d+\b`) // seconds, from a reply
	shift := func(line string, d time.Duration) string {
		return instant.ReplaceAllStringFunc(line, func(s string) string {
			n, _ := strconv.ParseInt(s[:10], 10, 64)
			return strconv.FormatInt(n+int64(d.Seconds()), 10) + s[10:]
		})
	}
	documents(t, func(path, text string) {
		begin := 0
		for _, lines := range sections(text) {
			if slices.Contains(lines, window) {
				for i := range lines {
					lines[i] = shift(lines[i], later)
				}
				var part []string
				sessions := 0
				synctest.Test(t, func(t *testing.T) { part = runPart(t, lines, &sessions, later) })
				for i, got := range part {
					if i >= len(lines) || got != lines[i] {
						t.Errorf("%s:%d: a year later the reply is %q, want %q", path, begin+i+1, shift(got, -later), shift(lines[min(i, len(lines)-1)], -later))
						break
					}
				}
				if len(part) < len(lines) {
					t.Errorf("%s:%d: %d lines a year later, want %d", path, begin+1, len(part), len(lines))
				}
			}
			begin += len(lines)
		}
	})
}

const (
	indent = "    "
	window = indent + "$ redis-cli\n"
)

// runPart runs the sessions of a section with a clock that is later by a duration, and
// returns the section with the replies of the server.
func runPart(t *testing.T, lines []string, sessions *int, later time.Duration) (part []string) {
	srv := servertest.Run(t)
	srv.SetTime(time.Date(2026, 11, 21, 12, 0, 0, 250e6, time.UTC).Add(later))
	listening := map[int]*cli{} // by the index in part for its messages
	for i := 0; i < len(lines); i++ {
		part = append(part, lines[i])
		if lines[i] != window {
			continue
		}
		*sessions++
		c := &cli{t: t, prompt: "127.0.0.1:6379> "}
		nc, err := srv.Dialer()(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		c.nc, c.r = nc, bufio.NewReader(nc)
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], indent) && lines[i+1] != window {
			i++
			line := strings.TrimPrefix(lines[i], indent)
			command, isCommand := strings.CutPrefix(line, "127.0.0.1:6379> ")
			if !isCommand {
				command, isCommand = strings.CutPrefix(line, "127.0.0.1:6379(TX)> ")
			}
			later := regexp.MustCompile(`^# (\S+) later`).FindStringSubmatch(line)
			switch {
			case isCommand:
				part = append(part, indent+c.prompt+command)
				part = append(part, indented(c.run(strings.TrimSpace(command)))...)
			case later != nil:
				d, err := time.ParseDuration(strings.TrimSuffix(later[1], ":"))
				if err != nil {
					t.Fatal(err)
				}
				wait.Elapse(d) // of the bubble
				synctest.Wait()
				part = append(part, lines[i])
			case line[0] == '#':
				part = append(part, lines[i])
			}
		}
		if c.subscribed {
			listening[len(part)] = c
		}
	}
	for _, place := range slices.Backward(slices.Sorted(func(yield func(int) bool) {
		for place := range listening {
			if !yield(place) {
				return
			}
		}
	})) {
		part = slices.Insert(part, place, indented(listening[place].messages())...)
	}
	return part
}

func indented(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, indent+line)
	}
	return lines
}

// A cli formats replies as redis-cli does on a terminal.
type cli struct {
	t          *testing.T
	nc         net.Conn
	r          *bufio.Reader
	prompt     string
	subscribed bool
}

func (c *cli) run(line string) string {
	args, err := splitArgs(line)
	if err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	request := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		request = fmt.Appendf(request, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.nc.Write(request); err != nil {
		c.t.Fatal(err)
	}
	begin := time.Now()
	reply := ""
	switch name := strings.ToUpper(args[0]); name {
	case "SUBSCRIBE", "PSUBSCRIBE":
		c.subscribed = true
		reply = "Reading messages... (press Ctrl-C to quit)\n"
		for range args[2:] {
			reply += c.reply("")
		}
	case "MULTI":
		c.prompt = "127.0.0.1:6379(TX)> "
	case "EXEC", "DISCARD":
		c.prompt = "127.0.0.1:6379> "
	}
	reply += c.reply("")
	if took := time.Since(begin); took >= 500*time.Millisecond {
		reply += fmt.Sprintf("(%.2fs)\n", took.Seconds())
	}
	return reply
}

// messages returns what the server has sent to a subscriber.
func (c *cli) messages() (text string) {
	for {
		c.nc.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := c.r.Peek(1); err != nil {
			return text
		}
		text += c.reply("")
	}
}

// reply reads a reply and returns it as redis-cli prints it, with a prefix
// before all lines but the first.
func (c *cli) reply(prefix string) string {
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '+':
		return line[1:] + "\n"
	case '-':
		return "(error) " + line[1:] + "\n"
	case ':':
		return "(integer) " + line[1:] + "\n"
	case '$':
		if n < 0 {
			return "(nil)\n"
		}
		b := make([]byte, n+2)
		for read := 0; read < len(b); {
			k, err := c.r.Read(b[read:])
			if err != nil {
				c.t.Fatal(err)
			}
			read += k
		}
		return quoted(b[:n]) + "\n"
	case '*':
		if n < 0 {
			return "(nil)\n"
		}
		if n == 0 {
			return "(empty array)\n"
		}
		text, width := "", len(strconv.Itoa(n))
		for i := range n {
			if i > 0 {
				text += prefix
			}
			text += fmt.Sprintf("%*d) ", width, i+1) + c.reply(prefix+strings.Repeat(" ", width+2))
		}
		return text
	}
	c.t.Fatalf("a reply begins with %q", line)
	return ""
}

// quoted formats a string as redis-cli does.
func quoted(b []byte) string {
	text := []byte{'"'}
	for _, x := range b {
		if i := bytes.IndexByte([]byte("\\\"\n\r\t\a\b"), x); i >= 0 {
			text = append(text, '\\', `\"nrtab`[i])
		} else if x < ' ' || x > '~' {
			text = fmt.Appendf(text, `\x%02x`, x)
		} else {
			text = append(text, x)
		}
	}
	return string(append(text, '"'))
}

// splitArgs splits a line as redis-cli does, without escapes.
func splitArgs(line string) (args []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if q := line[0]; q == '\'' || q == '"' {
			end := strings.IndexByte(line[1:], q)
			if end < 0 || strings.Contains(line[:end+1], `\`) {
				return nil, errors.New("quotes that this test cannot read")
			}
			args, line = append(args, line[1:end+1]), line[end+2:]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		args, line = append(args, word), rest
	}
	return args, nil
}

// TestSession is in README.md.
func TestSession(t *testing.T) {
	srv := servertest.Run(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	rdb.Set(t.Context(), "session", "ann", time.Hour)
	srv.Advance(2 * time.Hour) // moves the server's clock
	if n := rdb.Exists(t.Context(), "session").Val(); n != 0 {
		t.Error("the session has not expired")
	}
}

// TestReadmePrograms runs the complete programs in the documents. Their output has
// the lines that comments "prints …" give. A test in a document is one of this
// package.
func TestReadmePrograms(t *testing.T) {
	programs, tests := 0, 0
	documents(t, func(path, text string) {
		for _, block := range strings.Split(text, "\n```go\n")[1:] {
			block, _, _ = strings.Cut(block, "\n```")
			switch {
			case strings.HasPrefix(block, "func Test"):
				tests++
				if !strings.Contains(goFiles(t), block) {
					t.Errorf("%s: not in a test of this package:\n%s", path, block)
				}
			case strings.HasPrefix(block, "package main\n"):
				programs++
				file := filepath.Join(t.TempDir(), "main.go")
				if err := os.WriteFile(file, []byte(block), 0o644); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				out, err := exec.CommandContext(ctx, "go", "run", file).CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", path, err, out)
				}
				for _, m := range regexp.MustCompile(`// prints (.*)`).FindAllStringSubmatch(block, -1) {
					if !slices.Contains(strings.Split(string(out), "\n"), m[1]) {
						t.Errorf("%s: the output has no line %q:\n%s", path, m[1], out)
					}
				}
			}
		}
	})
	if programs < 2 || tests < 1 {
		t.Errorf("found %d programs and %d tests, want at least 2 and 1", programs, tests)
	}
}

// goFiles returns the text of all Go files of this package.
func goFiles(t *testing.T) string {
	t.Helper()
	var source strings.Builder
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".go") {
			b, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			source.Write(b)
		}
	}
	return source.String()
}

// TestReadmeFiles checks that the code in documents below a line such as
//
//	<!-- ../python/folder.py -->
//	<!-- ../e2e/folder_recipe_test.go: fold claim next -->
//
// is that of the file, or of its declarations with these names. With -rewrite it writes it there.
func TestReadmeFiles(t *testing.T) {
	blocks := 0
	code := regexp.MustCompile("(?m)^<!-- (\\S+\\.\\w+)(?:: (.*?))? -->\n```(\\w+)\n((?s).*?)```\n")
	documents(t, func(path, text string) {
		doc := code.ReplaceAllStringFunc(text, func(block string) string {
			blocks++
			m := code.FindStringSubmatch(block)
			file := filepath.Join(filepath.Dir(path), m[1])
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if m[2] != "" {
				want = declarations(t, file, want, strings.Fields(m[2]))
			}
			return strings.Replace(block, "```"+m[3]+"\n"+m[4], "```"+m[3]+"\n"+string(want), 1)
		})
		switch {
		case doc == text:
		case *rewrite:
			if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is not the code of its files: go test -run TestReadmeFiles -rewrite", path)
		}
	})
	if blocks < 15 {
		t.Errorf("found %d blocks of code, want at least 15", blocks)
	}
}

// declarations returns the declarations in a Go file that have these names, in this order, with
// their comments.
func declarations(t *testing.T, file string, source []byte, names []string) (text []byte) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, d := range parsed.Decls {
		name, from := "", d.Pos()
		switch d := d.(type) {
		case *ast.FuncDecl:
			name = d.Name.Name
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		case *ast.GenDecl:
			if spec, is := d.Specs[0].(*ast.TypeSpec); is {
				name = spec.Name.Name
			}
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		}
		found[name] = source[set.Position(from).Offset:set.Position(d.End()).Offset]
	}
	for i, name := range names {
		if found[name] == nil {
			t.Errorf("%s declares no %s", file, name)
		}
		if i > 0 {
			text = append(text, '\n')
		}
		text = append(append(text, found[name]...), '\n')
	}
	return text
}

// TestReadmePython runs the functions in Python where redis-py is installed, see
// client_node_test.go, each file followed by a few calls.
func TestReadmePython(t *testing.T) {
	runFiles(t, "../examples/python/*.py", python(t), func(_, code, addr string) string {
		_, port, _ := net.SplitHostPort(addr)
		return strings.ReplaceAll(code, "redis.Redis(", "redis.Redis(port="+port+", ")
	}, map[string]string{
		"liveevents": `
import threading, time
shown, ready = [], threading.Event()
def changed(page, what, events):
    if what != "zexpire":
        shown.append((page, what, events))
threading.Thread(target=watch_pages, args=(ready.set, changed), daemon=True).start()
ready.wait()
show("live:123:news", {"url": "/é,3:x"}, 1)
print(r.zrange("live:123:news", 0, -1))
time.sleep(1.2)
print(shown)
page = follow_page('live:"456" news')
print(next(page))
show('live:"456" news', {"url": "/n/1"}, 1)
print(next(page), next(page))
`,
		"timeboxes": `
print(hit("hits"), hit("hits"), hits("hits", 2), hit("hits", time.time() - 300))
counts = follow_hits("live hits")
print(next(counts))
r.zadd("live hits", {"12:00": 2, "12:01": 1})
print(next(counts))
`,
		"folder": `
import threading, time
got = []
print(fold("account_1", "likes"), fold("account_1", "shares"))
due = follow_due()
print(next(due))
r.zadd("due", {"account_1": 1}, xx=True)
print(next(due))
threading.Thread(target=work, args=(lambda *a: got.append(a),), daemon=True).start()
time.sleep(0.3)
print(next(due), got, r.dbsize())
`,
		"waitinglist": `
import threading, time
calls = []
line = Line("club")
line.follow("ann")
line.follow("ben")
threading.Thread(target=line.run, args=(lambda *a: calls.append(a),), daemon=True).start()
time.sleep(0.2)
print(check_in("club", "ann"), check_in("club", "ben"), check_in("club", "ann"))
time.sleep(0.2)
r.zrem("club", "ann")
time.sleep(0.2)
print(*calls, sep="\n")
`,
	}, map[string]string{
		"liveevents": `['{"url": "/\\u00e9,3:x"}']
[('live:123:news', 'zadd', ['{"url": "/\\u00e9,3:x"}']), ('live:123:news', 'zexpired', ['{"url": "/\\u00e9,3:x"}'])]
[]
['{"url": "/n/1"}'] []
`,
		"timeboxes": `1 2 [2.0, None] None
{}
{'12:01': 1, '12:00': 2}
`,
		"folder": `1 0
0
1
0 [('account_1', ['likes', 'shares'])] 0
`,
		"waitinglist": `0 1 0
('ann', None)
('ben', None)
('ann', 0)
('ben', 1)
('ben', 0)
('ann', None)
`,
	})
}

// TestReadmeJavaScript runs those in JavaScript where node-redis is installed.
func TestReadmeJavaScript(t *testing.T) {
	modules := program.NodeModules(t)
	runFiles(t, "../examples/javascript/*.mjs", "node", func(folder, code, addr string) string {
		if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		return strings.ReplaceAll(code, "createClient()", "createClient({ url: 'redis://"+addr+"' })") +
			"\nconst wait = ms => new Promise(f => setTimeout(f, ms));\n"
	}, map[string]string{
		"liveevents": `
const shown = [];
await new Promise(ready => watchPages(ready, (page, what, events) => what !== 'zexpire' && shown.push([page, what, events])));
await wait(200);
await show('live:123:news', { url: '/é,3:x' }, 1);
console.log(JSON.stringify(await client.zRange('live:123:news', 0, -1)));
await wait(1200);
console.log(JSON.stringify(shown));
const pages = [];
await followPage('live:"456" news', events => pages.push(events));
await show('live:"456" news', { url: '/n/1' }, 1);
await wait(1200);
console.log(JSON.stringify(pages));
process.exit();
`,
		"timeboxes": `
console.log(await hit('hits'), await hit('hits'), await hits('hits', 2), await hit('hits', Date.now() - 300_000));
const counts = [];
await followHits('live hits', c => counts.push(c));
await client.zAdd('live hits', [{ value: '12:00', score: 2 }, { value: '12:01', score: 1 }]);
await wait(1200);
console.log(JSON.stringify(counts));
process.exit();
`,
		"folder": `
const got = [];
console.log(await fold('account_1', 'likes'), await fold('account_1', 'shares'));
const due = [];
await followDue(n => due.push(n));
await client.zAdd('due', { value: 'account_1', score: 1 }, { XX: true });
await wait(200);
work((...a) => got.push(a));
await wait(300);
console.log(due, JSON.stringify(got), await client.dbSize());
process.exit();
`,
		"waitinglist": `
const calls = [];
for (const user of ['ann', 'ben']) await followRank('club', user, rank => calls.push([user, rank]));
console.log(await checkIn('club', 'ann'), await checkIn('club', 'ben'), await checkIn('club', 'ann'));
await wait(200);
await client.zRem('club', 'ann');
await wait(200);
console.log(JSON.stringify(calls));
process.exit();
`,
	}, map[string]string{
		"liveevents": `["{\"url\":\"/é,3:x\"}"]
[["live:123:news","zadd",["{\"url\":\"/é,3:x\"}"]],["live:123:news","zexpired",["{\"url\":\"/é,3:x\"}"]]]
[[],["{\"url\":\"/n/1\"}"],[]]
`,
		"timeboxes": `1 2 [ 2, null ] null
[{},{"12:01":1,"12:00":2}]
`,
		"folder": `1 0
[ 0, 1, 0 ] [["account_1",["likes","shares"]]] 0
`,
		"waitinglist": `0 1 0
[["ann",null],["ben",null],["ann",0],["ben",1],["ben",0],["ann",null]]
`,
	})
}

// runFiles runs the file of each system with an interpreter, followed by a few calls, and compares
// its output. adapt returns the code of a file for a copy in a folder and a server's address.
func runFiles(t *testing.T, pattern, interpreter string, adapt func(folder, code, addr string) string, todo, want map[string]string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != len(want)+1 {
		t.Fatalf("%s: %q, want %d files: %v", pattern, files, len(want)+1, err)
	}
	for system, calls := range todo {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			srv := servertest.Run(t)
			srv.Must("CONFIG", "SET", "notify-keyspace-events", "SVz")
			folder, main := t.TempDir(), ""
			for _, file := range files {
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				name, code := filepath.Base(file), adapt(folder, string(b), srv.Addr())
				if strings.TrimSuffix(name, filepath.Ext(name)) == system {
					main, code = filepath.Join(folder, name), code+calls
				}
				if err := os.WriteFile(filepath.Join(folder, name), []byte(code), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, interpreter, main)
			cmd.Env = append(os.Environ(), "PYTHONIOENCODING=utf-8", "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != want[system] {
				t.Errorf("printed %s\nwant %s\n(%v)", out, want[system], err)
			}
		})
	}
}

// TestReadmeClients checks that the versions of the client libraries are those that the
// tests use.
func TestReadmeClients(t *testing.T) {
	b, err := os.ReadFile(clients)
	if err != nil {
		t.Fatal(err)
	}
	used := ""
	for _, file := range []string{"go.mod", "testdata/node/package.json"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		used += string(b)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)`[^|]*\\| (v?\\d\\S+) \\|").FindAllStringSubmatch(string(b), -1)
	if len(rows) < 8 {
		t.Errorf("found %d client libraries, want at least 8", len(rows))
	}
	for _, row := range rows {
		name, version := row[1], row[2]
		if !strings.Contains(used, name+" "+version) && !strings.Contains(used, strconv.Quote(name)+": "+strconv.Quote(version)) {
			t.Errorf("%s: the tests do not use %s %s", clients, name, version)
		}
	}
}
