package replication_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// smallDisk mounts a file system of so many megabytes. resize gives it another size.
func smallDisk(t *testing.T, megabytes int) (dir string, resize func(megabytes int)) {
	t.Helper()
	dir = t.TempDir()
	mount := func(flags uintptr, megabytes int) error {
		return syscall.Mount("none", dir, "tmpfs", flags, fmt.Sprintf("size=%dm", megabytes))
	}
	if err := mount(0, megabytes); err != nil {
		t.Skip("only root may mount file systems: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, func(megabytes int) {
		t.Helper()
		if err := mount(syscall.MS_REMOUNT, megabytes); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDiskOfPrimary checks a primary that sends its data through a file for which its
// disk has no room: its clients notice nothing, no part of a file remains, and the replica
// has the data once there is room.
func TestFullDiskOfPrimary(t *testing.T) {
	t.Parallel()
	dir, resize := smallDisk(t, 1)
	var log recordedLog
	primary := servertest.Run(t, server.Options{
		Config: map[string]string{"repl-diskless-sync": "no", "dir": dir, "dbfilename": "k.db", "save": "", "enable-debug-command": "yes"},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err := primary.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, line := range incompressible(300) {
		words := strings.Fields(line)
		primary.Must(words[0], words[1], words[2])
	}
	replica := zsetdNode(t, nil)
	replica.run("SET old 1", "REPLICAOF "+strings.ReplaceAll(primary.Addr(), ":", " "))
	wait.Until(t, "the transfer fails", func() bool {
		primary.Must("INCR", "served")
		return strings.Contains(log.String(), "synchronization of replicas failed") && strings.Contains(log.String(), "no space left on device")
	})
	wait.Until(t, "the parts of the data are gone", func() bool {
		left, err := filepath.Glob(filepath.Join(dir, "replica-*"))
		return err == nil && len(left) == 0
	})
	resize(64)
	replica.linked()
	wait.Until(t, "the replica has the data", func() bool {
		return replica.Do("DEBUG", "DIGEST") == fmt.Sprintf("+%s\r\n", primary.Must("DEBUG", "DIGEST"))
	})
}

// TestTransferFileHasNoName checks that a primary which is killed while it sends its data
// through a file leaves nothing of it: the file has no name.
func TestTransferFileHasNoName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	primary, replica := zsetdNode(t, map[string]string{"repl-diskless-sync": "no", "dir": dir, "dbfilename": "k.db", "save": ""}), zsetdNode(t, nil)
	primary.run(incompressible(800)...) // more than the buffers of sockets
	w := wireTo(t, primary.addr)
	w.fallSilentAfter(100_000)
	replica.run("REPLICAOF " + w.host + " " + w.port)
	wait.Until(t, "the transfer falls silent", func() bool { n, _ := w.fallen(); return n > 0 })
	if left, err := filepath.Glob(filepath.Join(dir, "replica-*")); err != nil || len(left) != 0 {
		t.Errorf("there are %q, %v", left, err)
	}
}

// TestFullDiskOfReplica checks a replica whose disk has no room for the data that it
// receives: it has them and follows, its file has those of before as a whole, and those of
// the primary once there is room.
func TestFullDiskOfReplica(t *testing.T) {
	t.Parallel()
	dir, resize := smallDisk(t, 2)
	primary := zsetdNode(t, nil)
	primary.run(values()...)
	primary.run(incompressible(300)...)
	path := filepath.Join(dir, "k.db")
	options := server.Options{File: path, Config: map[string]string{"save": "1 1", "enable-debug-command": "yes"}}
	replica := servertest.Run(t, options)
	replica.Must("SET", "old", "1")
	replica.Must("SAVE")
	host, port, _ := strings.Cut(primary.addr, ":")
	replica.Must("REPLICAOF", host, port)
	info := func(field string) bool {
		return strings.Contains(fmt.Sprint(replica.Must("INFO", "everything")), field)
	}
	wait.Until(t, "the file cannot be saved", func() bool { return info("rdb_last_bgsave_status:err") && info("master_link_status:up") })
	primary.run("SET later 1")
	digest := primary.Do("DEBUG", "DIGEST")
	equal := func() bool { return fmt.Sprintf("+%s\r\n", replica.Must("DEBUG", "DIGEST")) == digest }
	wait.Until(t, "the replica has the data of the primary", equal)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	crashed := servertest.Run(t, server.Options{File: copied})
	if err := crashed.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keys, old := crashed.Must("DBSIZE"), crashed.Must("GET", "old"); keys != int64(1) || old != "1" {
		t.Errorf("the file has %v keys, and %v for that of before", keys, old)
	}
	resize(64)
	wait.Until(t, "the file is saved", func() bool { return info("rdb_last_bgsave_status:ok") })
	if !equal() {
		t.Error("the replica has other data")
	}
	if err := replica.Close(); err != nil {
		t.Fatal(err)
	}
	replica = servertest.Run(t, options)
	if err := replica.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !equal() {
		t.Error("the replica has other data after a restart")
	}
	if err := replica.Close(); err != nil { // before its disk is gone
		t.Fatal(err)
	}
}
