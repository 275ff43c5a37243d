package acl_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/acl"
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
