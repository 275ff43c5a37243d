package persist_test

// Tests of files of Redis where the data file is expected.

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/snapshot"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

func TestRedisFiles(t *testing.T) {
	const rdbFile = "REDIS0011\xfa\x09redis-ver\x057.2.0\xff\x00\x00\x00\x00\x00\x00\x00\x00"
	for _, test := range []struct {
		name       string
		dbfilename string
		config     map[string]string
		files      map[string]string
		fails      string // in the error of New; "" for none
		logs       string // in the log; "" for no warning
	}{
		{"an RDB file", "dump.rdb", nil, map[string]string{"dump.rdb": rdbFile}, "not a zsetd snapshot, but an RDB file of Redis, version 11: `zsetd import ", ""},
		{"an RDB file of another name", "data", nil, map[string]string{"data": "VALKEY080" + rdbFile[9:]}, "but an RDB file of Valkey, version 80: `zsetd import ", ""},
		{"a large RDB file", "data", nil, map[string]string{"data": rdbFile + strings.Repeat("x", 20_000)}, "but an RDB file of Redis, version 11: `zsetd import ", ""},
		{"an append-only file", "appendonly.aof", nil, map[string]string{"appendonly.aof": "*1\r\n$4\r\nPING\r\n"}, "but a file of commands, such as an append-only file of Redis: `zsetd import ", ""},
		{"something else", "data", nil, map[string]string{"data": "# a configuration\n"}, "not a zsetd snapshot; the file is unchanged", ""},
		{"the name of an RDB file", "dump.rdb", nil, nil, "", "dbfilename has the name of an RDB file"},
		{"an RDB file beside", "zsetd.db", nil, map[string]string{"dump.rdb": rdbFile}, "", "redis=DIR/dump.rdb"},
		{"an append-only file beside", "zsetd.db", nil, map[string]string{"appendonlydir/appendonly.aof.manifest": "x"}, "", "redis=DIR/appendonlydir/appendonly.aof.manifest"},
		{"an append-only file of another name", "zsetd.db", map[string]string{"appenddirname": "aof", "appendfilename": "a.aof"},
			map[string]string{"aof/a.aof.manifest": "x"}, "", "redis=DIR/aof/a.aof.manifest"},
		{"nothing", "zsetd.db", nil, map[string]string{"other": "x"}, "", ""},
	} {
		dir := t.TempDir()
		for name, content := range test.files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		config := map[string]string{"dir": dir, "dbfilename": test.dbfilename}
		for name, value := range test.config {
			config[name] = value
		}
		start := func() (string, error) {
			var log bytes.Buffer
			srv, err := enginetest.New(engine.Options{Config: config, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
			if err == nil {
				err = srv.Close()
			}
			return strings.ReplaceAll(log.String(), dir, "DIR"), err
		}
		checked := enginetest.CheckConfig(engine.Options{Config: config})
		log, err := start()
		if fmt.Sprint(checked) != fmt.Sprint(err) {
			t.Errorf("%s: CheckConfig returns %v, New %v", test.name, checked, err)
		}
		if test.fails != "" {
			if !errors.Is(err, snapshot.ErrForeign) || !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: %v, want %s", test.name, err, test.fails)
			}
			for name, content := range test.files {
				if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != content {
					t.Errorf("%s: the file has changed: %v", test.name, err)
				}
			}
			continue
		}
		if err != nil || test.logs == "" && log != "" || !strings.Contains(log, test.logs) {
			t.Errorf("%s: %v, the log has %s, want %q", test.name, err, log, test.logs)
		}
		// The name is a reason to warn at each start, data beside the file at the first.
		log, err = start()
		if named := strings.Contains(test.logs, "name"); err != nil || (log != "") != named {
			t.Errorf("%s, again: %v, the log has %s", test.name, err, log)
		}
	}
}
