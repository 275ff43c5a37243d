package acl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine/acl"
)

// user returns a user with rules, separated by spaces.
func user(t testing.TB, list *acl.List, rules string) *acl.User {
	t.Helper()
	u := list.NewUser("u")
	words, open := acl.MergeSelectors(strings.Fields(rules))
	if open != "" {
		t.Fatalf("%q: %q is not closed", rules, open)
	}
	for _, rule := range words {
		if err := list.Apply(u, rule); err != nil {
			t.Fatalf("%q: %q: %v", rules, rule, err)
		}
	}
	u.DeriveFields()
	return u
}

func TestPermits(t *testing.T) {
	list := acl.New(commands())
	for _, test := range []struct {
		rules, line string
		want        acl.Denial
		at          int
	}{
		{"~* &* +@all", "SET a x", acl.Permitted, 0},
		{"~a +set", "SET a x", acl.Permitted, 0},
		{"%R~a +set", "SET a x", acl.DeniedKey, 1},
		{"%W~a +set", "SET a x", acl.Permitted, 0},
		{"~* +select|0", "SELECT 0", acl.Permitted, 0},
		{"~* +select|0", "SELECT 1", acl.DeniedCommand, 0},
		{"+get (~a +set)", "SET a x", acl.Permitted, 0},
		{"+get ~b (~a +set)", "GET a", acl.DeniedKey, 1},
		{"+@pubsub &a*", "PSUBSCRIBE a* ab", acl.DeniedChannel, 2},
		{"+@pubsub &a*", "PUBLISH ab x", acl.Permitted, 0},
		{"+@pubsub &a*", "PUBLISH b x", acl.DeniedChannel, 1},
		{"~* +@all db=1,2", "GET a", acl.Permitted, 0},
		{"~* +@all db=2", "GET a", acl.DeniedDatabase, 0},
		{"~* +@all db=2 alldbs", "GET a", acl.Permitted, 0},
		{"~* +@all db=1,2 resetdbs", "GET a", acl.DeniedDatabase, 0},
		{"~a +@all db=2", "GET b", acl.DeniedDatabase, 0},
		{"&* +@all resetdbs", "PUBLISH a x", acl.Permitted, 0},
		{"+@all db=2", "SELECT 2", acl.Permitted, 0},
		{"+@all db=2", "SELECT 3", acl.DeniedDatabase, 1},
		{"+@all db=2", "SELECT 16", acl.Permitted, 0}, // it fails
		{"+get (db=2 ~* +@all)", "SET a x", acl.DeniedCommand, 0},
	} {
		argv := argv(test.line)
		d, at := user(t, list, test.rules).Permits(list.Commands.Named(string(argv[0])), argv, acl.Selected{ID: 1, Count: 16})
		if d != test.want || at != test.at {
			t.Errorf("%s: %s: %v of argument %d, want %v of %d", test.rules, test.line, d, at, test.want, test.at)
		}
	}
}

func TestLosesChannels(t *testing.T) {
	list := acl.New(commands())
	for _, test := range []struct {
		before, after string
		loses         bool
	}{
		{"&a &b", "&a &b &c", false},
		{"&a &b", "&a", true},
		{"&*", "&a", true},
		{"&a", "&*", false},
		{"&a", "(&a)", false},
	} {
		remaining, loses := user(t, list, test.before).LosesChannels(user(t, list, test.after))
		if loses != test.loses {
			t.Errorf("%s to %s: %v", test.before, test.after, loses)
		}
		if loses && !remaining.Match([]byte("a"), false) {
			t.Errorf("%s to %s: a does not remain", test.before, test.after)
		}
	}
}

// TestFile checks that ReadFile reads what WriteFile writes, and that Replace returns the
// users that are gone.
func TestFile(t *testing.T) {
	list := acl.New(commands())
	list.Users["u"] = user(t, list, "on >p ~a* +get (&c +publish)")
	want := list.Lines(true)
	path := filepath.Join(t.TempDir(), "users.acl")
	if err := list.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	users, problems := list.ReadFile(path, "users.acl")
	if problems != "" {
		t.Fatal(problems)
	}
	standard, old := list.Standard, list.Users["u"]
	if gone := list.Replace(users); !slices.Equal(gone, []*acl.User{old}) {
		t.Errorf("gone: %v", gone)
	}
	if got := list.Lines(true); !slices.Equal(got, want) || list.Users[acl.DefaultUser] != standard {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := os.WriteFile(path, []byte("user a +nosuch"), 0o600); err != nil {
		t.Fatal(err)
	}
	if users, problems := list.ReadFile(path, "users.acl"); users != nil || !strings.HasPrefix(problems, "users.acl:1: Error in") {
		t.Errorf("%v, %q", users, problems)
	}
}

// TestFileFails checks that WriteFile leaves nothing behind when it fails, and that it keeps
// the mode of a file that it replaces.
func TestFileFails(t *testing.T) {
	list := acl.New(commands())
	dir := t.TempDir()
	folder, old := filepath.Join(dir, "folder"), filepath.Join(dir, "old")
	if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(old, nil, 0o640), os.Chmod(old, 0o640)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, filepath.Join(dir, "none", "file")} {
		if err := list.WriteFile(path); err == nil {
			t.Errorf("%s is written", path)
		}
	}
	if err := list.WriteFile(old); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(old); err != nil || info.Mode().Perm() != 0o640 || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left in the folder: %v, %v", entries, err)
	}
}

// TestManyOfEach checks that rules which are given again are noted once, in lists of any
// length, and still permit.
func TestManyOfEach(t *testing.T) {
	list := acl.New(commands())
	for _, n := range []int{15, 16, 17, 18, 40} {
		var words []string
		for i := range n {
			words = append(words, fmt.Sprintf("~k%d &c%d >p%d +select|%d", i, i, i, i))
		}
		rules := "on +set +publish " + strings.Join(words, " ")
		u := user(t, list, rules+" "+rules)
		list.Users["u"] = u
		lines := list.Lines(false)
		line := lines[len(lines)-1]
		if !strings.HasPrefix(line, "user u on ") {
			line = lines[0]
		}
		for _, what := range []string{" ~k", " &c", " #", " +select|"} {
			if got := strings.Count(line, what); got != n {
				t.Errorf("%d of %q, want %d: %s", got, what, n, line)
			}
		}
		for i := range n + 1 {
			want := []acl.Denial{acl.Permitted, acl.Permitted, acl.Permitted}
			if i == n {
				want = []acl.Denial{acl.DeniedKey, acl.DeniedChannel, acl.DeniedCommand}
			}
			for j, line := range []string{"SET k%d x", "PUBLISH c%d x", "SELECT %d"} {
				argv := argv(fmt.Sprintf(line, i))
				if d, _ := u.Permits(list.Commands.Named(string(argv[0])), argv, acl.Selected{Count: 16}); d != want[j] {
					t.Errorf("%s, %d of each: %v, want %v", argv, n, d, want[j])
				}
			}
		}
	}
}

// TestTidyRules checks that rules which later ones replace are forgotten.
func TestTidyRules(t *testing.T) {
	list := acl.New(commands())
	list.Users["u"] = user(t, list, "on +set"+strings.Repeat(" +get -get", 100))
	for _, line := range list.Lines(false) {
		if n := strings.Count(line, "get"); strings.HasPrefix(line, "user u ") && (n == 0 || n > 40 || !strings.HasSuffix(line, " -get") || !strings.Contains(line, " +set ")) {
			t.Errorf("%d rules of GET: %s", n, line)
		}
	}
}

// TestDatabases checks how the databases of a selector are shown.
func TestDatabases(t *testing.T) {
	list := acl.New(commands())
	for rules, want := range map[string]struct{ line, shown string }{
		"+get":                {" ", "alldbs"},
		"+get db=3,0,11":      {" db=0,3,11 ", "db=0,3,11"},
		"+get db=2":           {" db=2 ", "db=2"},
		"+get resetdbs":       {" resetdbs ", ""},
		"+get db=2 alldbs":    {" ", "alldbs"},
		"+get db=1 (db=2 ~a)": {" db=1 ", "db=1"},
	} {
		u := user(t, list, "on resetchannels "+rules)
		list.Users["u"] = u
		for _, line := range list.Lines(false) {
			if strings.HasPrefix(line, "user u ") && !strings.Contains(line, " resetchannels"+want.line+"-@all +get") {
				t.Errorf("%s: %s", rules, line)
			}
		}
		if got := u.Selectors[0].DescribeDatabases(); got != want.shown {
			t.Errorf("%s: %q, want %q", rules, got, want.shown)
		}
	}
}

// TestPermitsOnAnyKey checks which users may read every key.
func TestPermitsOnAnyKey(t *testing.T) {
	list := acl.New(commands())
	for rules, want := range map[string]bool{
		"+@all ~* &*": true, "+get ~*": true, "+get %R~*": true, "+get %RW~*": true, "+get %W~* ~a": false, "+get ~a": false, "+get ~**": false,
		"+set ~*": false, "+get ~a (+get %R~*)": true, "+set ~* (+get ~a)": false,
	} {
		if got := user(t, list, rules).PermitsOnAnyKey(list.Commands.Named("get"), argv("GET a"), acl.ReadKeys, acl.Selected{Count: 16}); got != want {
			t.Errorf("%s: %v", rules, got)
		}
	}
	if list.Commands.Named("GeT") == nil || list.Commands.Named(strings.Repeat("a", 64)) != nil || list.Commands.Named(strings.Repeat("a", 65)) != nil {
		t.Error("commands by name")
	}
}

// TestLog checks the count, the order and the limit of entries.
func TestLog(t *testing.T) {
	list := acl.New(commands())
	for i, object := range []string{"a", "b", "a", "c"} {
		list.Record(acl.LogEntry{Reason: acl.DeniedKey, Context: acl.Toplevel, Object: object}, int64(1000*i), 2)
	}
	if len(list.Log) != 2 || list.Log[0].Object != "c" || list.Log[1].Object != "a" || list.Log[1].Count != 2 || list.Log[1].Updated != 2000 {
		t.Errorf("%+v, %+v", list.Log[0], list.Log[1])
	}
	if list.Denials[acl.DeniedKey] != 4 {
		t.Errorf("%v", list.Denials)
	}
}

// BenchmarkManyRules measures a user with 40 000 rules of each kind.
func BenchmarkManyRules(b *testing.B) {
	for _, prefix := range []string{"~key:", "&channel:", "+select|", ">password:"} {
		b.Run(prefix, func(b *testing.B) {
			list := acl.New(commands())
			rules := make([]string, 40000)
			for i := range rules {
				rules[i] = prefix + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune(0x100+i))
			}
			for b.Loop() {
				u := list.NewUser("u")
				for _, rule := range rules {
					if err := list.Apply(u, rule); err != nil {
						b.Fatal(err)
					}
				}
				u.DeriveFields()
			}
		})
	}
}
