package config_test

import (
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
