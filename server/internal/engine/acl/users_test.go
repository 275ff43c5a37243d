package acl_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/commands/admin"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/wiring"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestRulesRoundTrip checks that the rules that describe a user, applied to a new user,
// make an equal one.
func TestRulesRoundTrip(t *testing.T) {
	a := acl.New(engine.NewTable(wiring.Families()).Access)
	var names []string
	for _, c := range a.Commands.All() {
		names = append(names, c.Name)
	}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(of []string) string { return of[r.IntN(len(of))] }
	rule := func() string {
		sign := pick([]string{"+", "-"})
		switch r.IntN(8) {
		case 0:
			return sign + "@all"
		case 1, 2:
			return sign + "@" + pick(protocol.CategoryNames())
		case 3:
			return "+" + pick([]string{"select", "get", "debug", "client"}) + "|" + pick([]string{"0", "id", "Kill", "OBJECT"})
		case 4:
			return sign + pick([]string{"client", "client|id", "client|kill", "select", "get", "debug", "config", "CONFIG|GET"})
		case 5:
			return pick([]string{"~a*", "%R~b", "%W~b", "~*", "resetkeys", "&c", "&d*", "&*", "resetchannels"})
		default:
			return sign + pick(names)
		}
	}
	for range 3000 {
		u := a.NewUser("u")
		var rules []string
		for range 1 + r.IntN(12) {
			rule := rule()
			if a.Apply(u, rule) == nil {
				rules = append(rules, rule)
			}
		}
		u.DeriveFields()
		v := a.NewUser("u")
		for word := range strings.FieldsSeq(u.Describe(true)) {
			if err := a.Apply(v, word); err != nil {
				t.Fatalf("%v: %q: %v", rules, u.Describe(true), err)
			}
		}
		v.DeriveFields()
		s, again := &u.Selectors[0], &v.Selectors[0]
		if u.Describe(true) != v.Describe(true) || !slices.Equal(s.Commands, again.Commands) || s.AllCommands() != again.AllCommands() {
			t.Fatalf("%v\nis shown as %q\nwhich makes %q", rules, u.Describe(true), v.Describe(true))
		}
		for _, c := range a.Commands.All() {
			if s.AllCommands() && !s.Commands.Has(c) {
				t.Fatalf("%v: %q without %s", rules, u.Describe(true), c.Name)
			}
			for _, arg := range []string{"0", "id", "kill", "object"} {
				argv := [][]byte{[]byte(c.Name), []byte(arg)}
				was, _ := s.Permits(c, argv, nil, acl.Selected{})
				is, _ := again.Permits(c, argv, nil, acl.Selected{})
				if was != is {
					t.Fatalf("%v\nis shown as %q; %s %s: %v and %v", rules, u.Describe(true), c.Name, arg, was, is)
				}
			}
		}
	}
}

// asLines runs a command in a session of user and returns the reply as lines.
func asLines(t *testing.T, srv *enginetest.Server, user string, args ...string) string {
	t.Helper()
	s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer s.Close()
	if user != "" {
		admin.Login(s, srv.ACL.Users[user])
	}
	argv := make([][]byte, len(args))
	for i, a := range args {
		argv[i] = []byte(a)
	}
	_, out, _ := s.Turn([][][]byte{argv}, nil)
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

func TestUsersFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "users.acl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("user alice on nopass ~* +@all\r\n\n  user bob on (+get ~a*) ( +set ~b* )\t\nuser default on >p ~* &* +@all")
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"dir": dir, "aclfile": "users.acl"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	list := asLines(t, srv, "alice", "ACL", "LIST")
	want := "*3\n$59\nuser alice on nopass sanitize-payload ~* resetchannels +@all\n" +
		"$104\nuser bob on sanitize-payload resetchannels -@all (~a* resetchannels -@all +get) (~b* resetchannels -@all +set)\n" +
		"$117\nuser default on sanitize-payload #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~* &* +@all\n"
	if strip(list) != strip(want) {
		t.Errorf("got %s\nwant %s", list, want)
	}
	if got := asLines(t, srv, "", "PING"); !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("a new session: %s", got)
	}
	for _, test := range []struct{ text, says string }{
		{"user a on\nfoo\nuser\nuser b\tc on", "users.acl:2 should start with user keyword followed by the username. " +
			"users.acl:3 should start with user keyword followed by the username. " +
			"'users.acl:4: username 'b\tc' contains invalid characters. "},
		{"user a on\nuser a off", "WARNING: Duplicate user 'a' found on line 2. "},
		{"user a on (+get", "users.acl:1: Unmatched parenthesis in selector definition."},
		{"user a on +nosuch -nosuch >x bad worse +@nosuch", "users.acl:1: Error in applying operation '+nosuch': Unknown command or " +
			"category name in ACL. users.acl:1: Error in applying operation '-nosuch': Unknown command or category name in ACL. " +
			"users.acl:1: Syntax error. users.acl:1: Error in applying operation '+@nosuch': Unknown command or category name in ACL. "},
	} {
		write(test.text)
		want := "-ERR " + test.says + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed\n"
		if got := asLines(t, srv, "alice", "ACL", "LOAD"); got != want {
			t.Errorf("%q\n got %s\nwant %s", test.text, got, want)
		}
	}
	if got := asLines(t, srv, "alice", "ACL", "LIST"); got != list {
		t.Errorf("after errors: %s", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := asLines(t, srv, "alice", "ACL", "LOAD"); got != "-ERR Error loading ACLs, opening file 'users.acl': No such file or directory\n" {
		t.Errorf("without a file: %s", got)
	}
	if got := asLines(t, srv, "alice", "ACL", "SAVE"); got != "+OK\n" {
		t.Errorf("SAVE: %s", got)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if got := asLines(t, srv, "alice", "ACL", "SAVE"); got != "+OK\n" {
		t.Errorf("SAVE again: %s", got)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("SAVE: %v, mode %v", err, info.Mode())
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 1 {
		t.Errorf("files: %v", names)
	}

	// Loading ends the sessions of users that are not in the file, and the others have the new rules.
	if got := asLines(t, srv, "alice", "ACL", "SETUSER", "late", "on", "nopass"); got != "+OK\n" {
		t.Errorf("SETUSER: %s", got)
	}
	late := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer late.Close()
	admin.Login(late, srv.ACL.Users["late"])
	other := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer other.Close()
	admin.Login(other, srv.ACL.Users["bob"])
	standard := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer standard.Close()
	s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer s.Close()
	admin.Login(s, srv.ACL.Users["alice"])
	_, out, ending := s.Turn([][][]byte{{[]byte("ACL"), []byte("LOAD")}}, nil)
	if string(out) != "+OK\r\n" || ending || !late.Ending() || other.Ending() || standard.Ending() {
		t.Errorf("LOAD: %q, %v, %v, %v, %v", out, ending, late.Ending(), other.Ending(), standard.Ending())
	}
	if other.Login.User != srv.ACL.Users["bob"] || s.Login.User != srv.ACL.Users["alice"] {
		t.Error("LOAD: a session has the rules of before")
	}
	if got := asLines(t, srv, "alice", "ACL", "LIST"); got != list {
		t.Errorf("after SAVE and LOAD:\n%s\n%s", got, list)
	}
	srv.Config.ACLFile = "nosuch/users.acl"
	if got := asLines(t, srv, "alice", "ACL", "SAVE"); !strings.HasPrefix(got, "-ERR There was an error trying to save the ACLs.") {
		t.Errorf("SAVE where it cannot be done: %s", got)
	}
}

// strip removes the lengths of bulk strings.
func strip(reply string) string {
	var lines []string
	for line := range strings.Lines(reply) {
		if !strings.HasPrefix(line, "$") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestConfiguredUsers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "redis.conf")
	const text = "user alice on '>a b' ~x (+get ~y)\nUSER bob\nuser default on nopass +ping \"~a\"\nrequirepass p\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	values, err := config.ReadArgs([]string{path, "--user", "carl", "on", "nopass", "(+get", "~a)"})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := enginetest.New(engine.Options{Config: values})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	want := []string{
		"user alice on sanitize-payload #c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65 ~x resetchannels -@all (~y resetchannels -@all +get)",
		"user bob off sanitize-payload resetchannels -@all",
		"user carl on nopass sanitize-payload resetchannels -@all (~a resetchannels -@all +get)",
		"user default on nopass sanitize-payload ~a resetchannels -@all +ping",
	}
	if got := srv.ACL.Lines(true); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	rewritten := srv.Config.Rewrite("# users\nuser gone on\n\nuser alice off\nport 1\n", srv.UserLines(), false)
	if want := "# users\n" + want[0] + "\n\n" + want[1] + "\n"; !strings.HasPrefix(rewritten, want) {
		t.Errorf("CONFIG REWRITE:\n%s\nwant\n%s", rewritten, want)
	}
	odd := srv.ACL.NewUser(`o"dd`)
	if err := srv.ACL.Apply(odd, `~a"b\c'`); err != nil {
		t.Fatal(err)
	}
	srv.ACL.Users[odd.Name] = odd
	rewritten = srv.Config.Rewrite(rewritten, srv.UserLines(), false)
	if err := os.WriteFile(path, []byte(rewritten), 0o600); err != nil {
		t.Fatal(err)
	}
	if values, err = config.ReadArgs([]string{path}); err != nil {
		t.Fatal(err)
	}
	other, err := enginetest.New(engine.Options{Config: values})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got := other.ACL.Lines(true); !slices.Equal(got, srv.ACL.Lines(true)) {
		t.Errorf("read again:\n%s", strings.Join(got, "\n"))
	}
	for _, test := range []struct{ args, says string }{
		{"--user foo --user foo", "Error in user declaration 'foo': Duplicate user found. A user can only be defined once in config files"},
		{"--user default --user default", "Duplicate user"},
		{"--user", "a user needs a name"},
	} {
		if _, err := config.ReadArgs(strings.Fields(test.args)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.args, err)
		}
	}
	for _, test := range []struct{ user, file, says string }{
		{"a +nosuch", "", "Error in user declaration 'a': '+nosuch': Unknown command or category name in ACL"},
		{"a bad", "", "'bad': Syntax error"},
		{"a (+get", "", "Unmatched parenthesis in acl selector starting at '(+get'."},
		{"a\na", "", "Duplicate user"},
		{"\"a b\"", "", "spaces are not allowed"},
		{"a \"", "", "unbalanced quotes"},
		{"a on", "users.acl", "declare them in one or the other"},
		{"", filepath.Join(dir, "none.acl"), "No such file or directory"},
	} {
		_, err := enginetest.New(engine.Options{Config: map[string]string{"user": test.user, "aclfile": test.file}})
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q %q: %v", test.user, test.file, err)
		}
	}
}

// TestDenialLog checks that equal denials within a minute share an entry of the log,
// unless too many other entries lie between.
func TestDenialLog(t *testing.T) {
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"user": "u on nopass ~a +get +publish +multi +exec", "acllog-max-len": "20"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	entries := func() string {
		var b strings.Builder
		for _, e := range srv.ACL.Log {
			fmt.Fprintf(&b, "%d:%v %s %s %s %d ", e.ID, e.Reason, e.Context, e.Object, e.Username, e.Count)
		}
		return b.String()
	}
	expect := func(want string) {
		t.Helper()
		if got := entries(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	asLines(t, srv, "u", "SET", "a", "1")
	asLines(t, srv, "u", "get", "b")
	asLines(t, srv, "u", "PUBLISH", "c", "m")
	asLines(t, srv, "", "auth", "nobody", "x")
	asLines(t, srv, "u", "SET", "x", "1")
	expect("0:command toplevel set u 2 3:auth toplevel auth nobody 1 2:channel toplevel c u 1 1:key toplevel b u 1 ")
	e := srv.ACL.Log[0]
	if !strings.HasPrefix(e.Client, "id=") || !strings.HasSuffix(e.Client, " capa=") || !strings.Contains(e.Client, " cmd=set user=u ") {
		t.Errorf("client: %q", e.Client)
	}
	srv.Advance(59 * time.Second)
	asLines(t, srv, "u", "SET", "x", "1")
	srv.Advance(61 * time.Second)
	asLines(t, srv, "u", "SET", "x", "1")
	expect("4:command toplevel set u 1 0:command toplevel set u 3 3:auth toplevel auth nobody 1 2:channel toplevel c u 1 1:key toplevel b u 1 ")
	reply := asLines(t, srv, "", "ACL", "LOG", "1")
	e = srv.ACL.Log[0]
	before, after, _ := strings.Cut(reply, "$11\nage-seconds\n")
	_, after, _ = strings.Cut(after, "$11\n") // the age itself depends on how slow the test is
	want := [2]string{"*1\n*20\n$5\ncount\n:1\n$6\nreason\n$7\ncommand\n$7\ncontext\n$8\ntoplevel\n$6\nobject\n$3\nset\n" +
		"$8\nusername\n$1\nu\n", fmt.Sprintf("client-info\n$%d\n%s\n$8\nentry-id\n:4\n$17\ntimestamp-created\n:%d\n"+
		"$22\ntimestamp-last-updated\n:%d\n", len(e.Client), e.Client, e.Created, e.Updated)}
	if before != want[0] || after != want[1] {
		t.Errorf("got %s\nwant %s", reply, want)
	}
	for i := range 30 {
		asLines(t, srv, "u", "GET", fmt.Sprint("k", i))
	}
	asLines(t, srv, "u", "GET", "k19") // the eleventh: too far back
	if n := len(srv.ACL.Log); n != 20 || srv.ACL.Log[0].Count != 1 {
		t.Errorf("%d entries, the first %+v", n, srv.ACL.Log[0])
	}
	if got := asLines(t, srv, "", "ACL", "LOG"); !strings.HasPrefix(got, "*10\n") {
		t.Errorf("LOG: %.20s", got)
	}
	asLines(t, srv, "", "ACL", "LOG", "RESET")
	expect("")
	info := asLines(t, srv, "", "INFO", "stats")
	for _, field := range []string{"auth:1", "cmd:4", "key:32", "channel:1"} {
		if !strings.Contains(info, "\nacl_access_denied_"+field+"\n") {
			t.Errorf("INFO without acl_access_denied_%s", field)
		}
	}
}

// TestRefusals checks the errors for denied commands.
func TestRefusals(t *testing.T) {
	for d, want := range map[acl.Denial]string{
		acl.DeniedCommand: "User u has no permissions to run the 'get' command",
		acl.DeniedKey:     "No permissions to access a key",
		acl.DeniedChannel: "No permissions to access a channel",
	} {
		if got := d.Refusal("u", "get"); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}

// BenchmarkPermit measures the ACL check of one command.
func BenchmarkPermit(b *testing.B) {
	for name, rules := range map[string]string{
		"everything": "on nopass ~* &* +@all",
		"commands":   "on nopass ~* &* +@all -@dangerous",
		"keys":       "on nopass ~app:*:cache ~user:* &* +@all -@dangerous",
		"selectors":  "on nopass (+@read ~x) (+@write ~y) (%R~user:* +@all)",
	} {
		b.Run(name, func(b *testing.B) {
			srv, err := enginetest.New(engine.Options{Config: map[string]string{"user": "u " + rules}})
			if err != nil {
				b.Fatal(err)
			}
			defer srv.Close()
			s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
			defer s.Close()
			admin.Login(s, srv.ACL.Users["u"])
			argv := [][]byte{[]byte("GET"), []byte("user:1000")}
			cmd, _ := srv.Table.Find(argv)
			b.ReportAllocs()
			for b.Loop() {
				if s.Permit(cmd, argv, acl.Toplevel) != acl.Permitted {
					b.Fatal("denied")
				}
			}
		})
	}
}
