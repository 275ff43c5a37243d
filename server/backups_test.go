package server_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// persistence returns a field of INFO persistence.
func persistence(srv *servertest.Server, field string) string {
	text, _ := srv.Must("INFO", "persistence").(string)
	_, rest, _ := strings.Cut(text, "\n"+field+":")
	value, _, _ := strings.Cut(rest, "\r")
	return value
}

// awaitBackup waits until INFO says that a backup of that time is complete.
func awaitBackup(t *testing.T, srv *servertest.Server, at time.Time) {
	t.Helper()
	wait.Until(t, "the backup is complete", func() bool {
		return persistence(srv, "backup_last_time") == fmt.Sprint(at.Unix()) && persistence(srv, "backup_last_status") == "ok"
	})
}

// files returns the names in a directory, in order.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

var backupStart = time.Date(2030, 1, 31, 22, 0, 0, 0, time.UTC)

// A server makes backups by its clock, keeps the newest ones, and each has the data of its time.
func TestBackupEvery(t *testing.T) {
	t.Parallel()
	for file, stem := range map[string]string{"": "zsetd", filepath.Join(t.TempDir(), "data.db"): "data"} {
		form := stem + "-20060102T150405Z.db"
		dir := filepath.Join(t.TempDir(), "backups")
		srv := servertest.Run(t, server.Options{File: file, Now: backupStart, Config: map[string]string{"backup-every": "6h", "backup-keep": "2", "backup-dir": dir}})
		srv.StopClock()
		wait.Until(t, "the first backup is complete", func() bool { return persistence(srv, "backups_kept") == "1" })
		first, _ := time.Parse(form, persistence(srv, "backup_last_file"))
		if d := first.Sub(backupStart); d < 0 || d > time.Minute {
			t.Errorf("the first backup is of %v", first)
		}
		srv.SetTime(first)
		for i := range 3 {
			srv.Must("SET", "k", i)
			srv.Advance(6 * time.Hour)
			awaitBackup(t, srv, first.Add(time.Duration(i+1)*6*time.Hour))
		}
		got := files(t, dir)
		if len(got) != 2 || got[1] != first.Add(18*time.Hour).Format(form) || persistence(srv, "backups_kept") != "2" || persistence(srv, "backup_last_file") != got[1] {
			t.Errorf("the backups are %v, INFO says %s", got, persistence(srv, "backup_last_file"))
		}
		for i, name := range got {
			other := servertest.Run(t, server.Options{File: filepath.Join(dir, name)})
			if v := other.Must("GET", "k"); v != fmt.Sprint(i+1) {
				t.Errorf("%s has %v", name, v)
			}
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		}

		srv.Must("CONFIG", "SET", "backup-every", "0")
		srv.Advance(100 * time.Hour)
		srv.Must("CONFIG", "SET", "backup-every", "90m", "backup-keep", "1")
		awaitBackup(t, srv, srv.Now())
		if got := files(t, dir); len(got) != 1 {
			t.Errorf("with another backup-keep: %v", got)
		}
		if got := fmt.Sprint(srv.Must("CONFIG", "GET", "backup-every")); got != "[{backup-every 90m}]" {
			t.Errorf("CONFIG GET: %s", got)
		}
	}
}

// A server that starts again makes no backup before the next one is due, and removes what a crash has left.
func TestBackupRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newest, part := filepath.Join(dir, "zsetd-20300131T200000Z.db"), filepath.Join(dir, "zsetd-20300131T210000Z.db.new")
	for _, path := range []string{newest, part, filepath.Join(dir, "other.db"), filepath.Join(dir, "zsetd-20300131T200000Z.db.txt")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv := servertest.Run(t, server.Options{Now: backupStart, Config: map[string]string{"backup-every": "6h", "backup-dir": dir, "backup-keep": "1"}})
	wait.Until(t, "the directory is read", func() bool { return persistence(srv, "backup_last_file") == "zsetd-20300131T200000Z.db" })
	if got := files(t, dir); len(got) != 3 {
		t.Errorf("the files are %v", got)
	}
	srv.SetTime(backupStart.Add(4 * time.Hour))
	wait.Until(t, "the backup is complete", func() bool { return strings.HasPrefix(persistence(srv, "backup_last_file"), "zsetd-20300201T0200") })
	if got := files(t, dir); len(got) != 3 || got[0] != "other.db" || got[1] != "zsetd-20300131T200000Z.db.txt" {
		t.Errorf("then the files are %v", got)
	}
}

// A failure is in INFO, removes nothing, and is tried again after a minute.
func TestBackupFails(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "backups")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no directory
		t.Fatal(err)
	}
	srv := servertest.Run(t, server.Options{Now: backupStart, Config: map[string]string{"backup-every": "6h", "backup-dir": dir}})
	srv.StopClock()
	wait.Until(t, "the backup has failed", func() bool { return persistence(srv, "backup_last_status") == "err" })
	if got := persistence(srv, "backup_last_time") + persistence(srv, "backups_kept"); got != "00" {
		t.Errorf("INFO of a failure: %s", got)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	srv.Advance(time.Minute)
	awaitBackup(t, srv, srv.Now())
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("the files are %v", got)
	}
}

// The hook has the path of the backup. While it fails it is run again with the same backup.
func TestBackupHook(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	hook, sent, broken := filepath.Join(dir, "hook"), filepath.Join(dir, "sent"), filepath.Join(dir, "broken")
	script := "#!/bin/sh\necho \"$1\" >> " + sent + "\nif test -e " + broken + "; then echo no network; exit 3; fi\n"
	if err := os.WriteFile(hook, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	backups := filepath.Join(dir, "backups")
	srv := servertest.Run(t, server.Options{Now: backupStart, Config: map[string]string{"backup-every": "6h", "backup-dir": backups, "backup-hook": hook}})
	srv.StopClock()
	wait.Until(t, "the hook has failed", func() bool { return persistence(srv, "backup_last_status") == "err" })
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	srv.Advance(time.Minute)
	wait.Until(t, "the hook has run again", func() bool { return persistence(srv, "backup_last_status") == "ok" })
	got := files(t, backups)
	text, err := os.ReadFile(sent)
	if err != nil {
		t.Fatal(err)
	}
	if path := filepath.Join(backups, got[0]) + "\n"; len(got) != 1 || string(text) != path+path {
		t.Errorf("the backups are %v, the hook has run with %q", got, text)
	}
	for _, name := range []string{"backup-hook", "backup-dir"} {
		if _, err := srv.Do(t.Context(), "CONFIG", "SET", name, "/tmp"); err == nil || !strings.Contains(err.Error(), "can't set") {
			t.Errorf("CONFIG SET %s: %v", name, err)
		}
	}
}

// A hook that failed, or was interrupted by a stop, runs after a restart with the latest backup. A hook that leaves
// a program behind, which keeps its output open, has succeeded.
func TestBackupHookRestart(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	hook, sent := filepath.Join(dir, "hook"), filepath.Join(dir, "sent")
	write := func(script string) {
		t.Helper()
		if err := os.WriteFile(hook, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("exit 3\n")
	backups := filepath.Join(dir, "backups")
	o := server.Options{Now: backupStart, Config: map[string]string{"backup-every": "6h", "backup-dir": backups, "backup-hook": hook}}
	srv := servertest.Run(t, o)
	wait.Until(t, "the hook has failed", func() bool { return persistence(srv, "backup_last_status") == "err" })
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	got := files(t, backups)
	if len(got) != 2 || got[1] != got[0]+".unsent" {
		t.Fatalf("the files are %v", got)
	}
	write("echo \"$1\" > " + sent + "\nsleep 30 &\n")
	o.Now = backupStart.Add(time.Hour)
	srv = servertest.Run(t, o)
	wait.Until(t, "the hook has run", func() bool { return len(files(t, backups)) == 1 && persistence(srv, "backup_last_file") == got[0] })
	text, err := os.ReadFile(sent)
	if err != nil || string(text) != filepath.Join(backups, got[0])+"\n" || persistence(srv, "backup_last_status") != "ok" {
		t.Errorf("the hook has run with %q, INFO says %s: %v", text, persistence(srv, "backup_last_status"), err)
	}
}

// Servers that share a directory see, count and remove only backups of their own.
func TestBackupsApart(t *testing.T) {
	t.Parallel()
	dir, backups := t.TempDir(), t.TempDir()
	run := func(name string) *servertest.Server {
		srv := servertest.Run(t, server.Options{Now: backupStart, File: filepath.Join(dir, name),
			Config: map[string]string{"backup-every": "6h", "backup-dir": backups, "backup-keep": "1"}})
		srv.StopClock()
		wait.Until(t, "a backup of "+name, func() bool { return persistence(srv, "backups_kept") == "1" })
		return srv
	}
	a, b := run("a.db"), run("b.db")
	a.Advance(6 * time.Hour)
	awaitBackup(t, a, a.Now().Truncate(time.Second))
	if got := files(t, backups); len(got) != 2 || got[0] != persistence(a, "backup_last_file") || got[1] != persistence(b, "backup_last_file") {
		t.Errorf("the backups are %v", got)
	}
}

// A server that stops ends its backup, and a hook that hangs with a program of its own: both hold the end of a pipe.
func TestBackupStops(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	hook, begun, pipe := filepath.Join(dir, "hook"), filepath.Join(dir, "begun"), filepath.Join(dir, "pipe")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(pipe)
		ended <- err
	}()
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nexec 3>"+pipe+"\ntouch "+begun+"\nsleep 3600\necho late\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	backups := filepath.Join(dir, "backups")
	srv := servertest.Run(t, server.Options{Config: map[string]string{"backup-every": "6h", "backup-dir": backups, "backup-hook": hook}})
	wait.Until(t, "the hook runs", func() bool { _, err := os.Stat(begun); return err == nil })
	closed := make(chan error, 1)
	go func() { closed <- srv.Close() }()
	for what, end := range map[string]chan error{"Close": closed, "the hook, or what it has started,": ended} {
		select {
		case err := <-end:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s does not end", what)
		}
	}
	if got := files(t, backups); len(got) != 2 || !strings.HasSuffix(got[0], "Z.db") || got[1] != got[0]+".unsent" {
		t.Errorf("the backups are %v", got)
	}
}
