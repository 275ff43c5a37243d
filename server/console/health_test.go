package console

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestUnready checks the text of /readyz for each state of a server.
func TestUnready(t *testing.T) {
	const (
		good    = "loading:0 rdb_last_bgsave_status:ok aof_last_write_status:ok role:master used_memory:10 maxmemory:0 maxmemory_policy:noeviction"
		unsaved = "writes are rejected: the data could not be saved"
	)
	for _, one := range []struct {
		changes    string // of good, the later ones count
		parameters string // those that may be asked for
		want       string
	}{
		{"", "", ""},
		{"loading:1", "", "loading data"},
		{"loading:1 role:slave master_link_status:down", "", "loading data"},
		{"role:slave master_link_status:up master_sync_in_progress:0", "", ""},
		{"role:slave master_link_status:down master_sync_in_progress:0", "", "the replica has no link to its primary"},
		{"role:slave", "", "the replica has no link to its primary"},
		{"role:slave master_link_status:up master_sync_in_progress:1", "", "the replica receives the data of its primary"},
		{"role:slave master_link_status:up rdb_last_bgsave_status:err maxmemory:5", "", ""}, // of no concern to readers
		{"role:master master_link_status:down master_sync_in_progress:1", "", ""},
		{"rdb_last_bgsave_status:err", "stop-writes-on-bgsave-error=yes save=1", unsaved},
		{"aof_last_write_status:err", "stop-writes-on-bgsave-error=yes save=1", unsaved},
		{"rdb_last_bgsave_status:err", "stop-writes-on-bgsave-error=yes save=", ""},
		{"rdb_last_bgsave_status:err aof_enabled:1", "stop-writes-on-bgsave-error=yes save= appendfsync=everysec", ""},
		{"rdb_last_bgsave_status:err aof_enabled:1", "stop-writes-on-bgsave-error=yes save= appendfsync=always", unsaved},
		{"rdb_last_bgsave_status:err", "stop-writes-on-bgsave-error=yes", unsaved + "\nno parameter save"},
		{"rdb_last_bgsave_status:err", "stop-writes-on-bgsave-error=no", ""},
		{"rdb_last_bgsave_status:err", "", unsaved + "\nno parameter stop-writes-on-bgsave-error"},
		{"rdb_last_bgsave_status:err maxmemory:5", "stop-writes-on-bgsave-error=no", "writes are rejected: used memory exceeds maxmemory"},
		{"min_slaves_good_slaves:1", "min-replicas-to-write=2", "writes are rejected: 1 of 2 replicas are connected"},
		{"min_slaves_good_slaves:2", "min-replicas-to-write=2", ""},
		{"min_slaves_good_slaves:3", "min-replicas-to-write=2", ""},
		{"min_slaves_good_slaves:1", "", "no parameter min-replicas-to-write"},
		{"maxmemory:9", "", "writes are rejected: used memory exceeds maxmemory"},
		{"maxmemory:10", "", ""},
		{"maxmemory:9 maxmemory_policy:allkeys-lru", "", ""},
	} {
		in := parseInfo("# x\n" + strings.ReplaceAll(good+" "+one.changes, " ", "\r\n"))
		err := whyUnready(in, func(name string) (string, error) {
			for _, p := range strings.Fields(one.parameters) {
				if asked, value, _ := strings.Cut(p, "="); asked == name {
					return value, nil
				}
			}
			return "", errors.New("no parameter " + name)
		})
		if got := fmt.Sprint(err); got != one.want && (err != nil || one.want != "") {
			t.Errorf("%s: %q, want %q", one.changes, got, one.want)
		}
	}
}
