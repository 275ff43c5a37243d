package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	program "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Backups that the server makes by itself (parameter backup-every). The timer of the server begins
// each one, by its clock; a goroutine writes it, without the lock. The names have the time, so that
// they are in its order, and a server that starts again continues where it was.

// backups is the state of these backups.
type backups struct {
	every   int64 // seconds, the parameter that is in effect; 0: none
	next    int64 // when the next one is due, in milliseconds since 1970; 0: none, or one is being made
	running bool
	Last    LastBackup
}

// LastBackup is what the latest backup has come to.
type LastBackup struct {
	At     time.Time // of the latest that is complete; zero if there is none
	File   string    // its name
	Took   time.Duration
	Kept   int  // backups in the directory
	Failed bool // the latest attempt
}

const (
	backupRetry    = time.Minute      // after a failure
	backupHookTime = 10 * time.Minute // of the program backup-hook, at least
	backupHookText = 4 << 10          // bytes of its output that the log has
	backupTime     = "20060102T150405Z"
)

// The suffixes of a backup that is being written, and of the mark of one that the hook has not had.
const (
	backupPart   = ".new"
	backupUnsent = ".unsent"
)

// applyBackups begins or ends the backups, if the parameter has changed.
func (srv *Engine) applyBackups() {
	b := &srv.Backups
	if b.every == srv.Config.BackupEvery {
		return
	}
	b.every = srv.Config.BackupEvery
	switch {
	case b.every == 0:
		b.next = 0
	case !b.running:
		b.next = 1 // at once
	}
}

// beginBackup makes a backup, in a goroutine. The lock is held.
func (srv *Engine) beginBackup() {
	b := &srv.Backups
	b.next = 0
	if !srv.Ending.enterCall() {
		return
	}
	b.running = true
	dir := srv.Config.BackupDir
	if dir == "" {
		dir = filepath.Join(srv.Config.Dir, "backups")
	}
	stem := strings.TrimSuffix(cmp.Or(srv.Config.Dbfilename, "zsetd"), ".db") + "-"
	job := backupJob{
		srv: srv, dir: dir, stem: stem, is: regexp.MustCompile("^" + regexp.QuoteMeta(stem) + `(\d{8}T\d{6}Z)\.db$`),
		keep: int(srv.Config.BackupKeep), hook: srv.Config.BackupHook, every: time.Duration(b.every) * time.Second, last: b.Last,
	}
	go func() {
		defer srv.Ending.running.Done()
		srv.Attempt(func() {
			next := job.run()
			srv.InTurn(func() {
				b.running, b.Last = false, job.last
				if b.next = 0; b.every == int64(job.every/time.Second) {
					b.next = next.UnixMilli()
				} else if b.every != 0 {
					b.next = 1
				}
			})
		})
	}()
}

// backupJob is the making of one backup.
type backupJob struct {
	srv   *Engine
	dir   string
	stem  string         // how the names of this server's backups begin
	is    *regexp.Regexp // matches these names
	keep  int
	hook  string
	every time.Duration
	last  LastBackup
}

// run makes a backup if one is due, and returns when the next one is.
func (j *backupJob) run() (next time.Time) {
	srv := j.srv
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-srv.Ending.Stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	began := srv.Clock().Truncate(time.Second) // as the name says
	names, err := j.list()
	due := began
	for _, name := range names {
		if at, _ := time.Parse(backupTime, j.is.FindStringSubmatch(name)[1]); !at.After(began) { // else the clock was set back
			j.last.At, j.last.File, due = at, name, at.Add(j.every)
		}
	}
	switch {
	case err != nil:
	case !due.After(began):
		due = began.Add(j.every)
		err = j.make(ctx, began)
	default:
		err = errors.Join(j.prune(), j.send(ctx))
	}
	if ctx.Err() != nil {
		return began // the server stops
	}
	if j.last.Failed = err != nil; err != nil {
		again := min(backupRetry, j.every)
		srv.Log.Error("the backup has failed", "error", err, "directory", j.dir, "retry", again)
		return srv.Clock().Add(again)
	}
	return due
}

// list returns the names of the backups, the oldest first, and removes what an interrupted one has left.
func (j *backupJob) list() (names []string, err error) {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, err
	}
	var marked []string
	for _, e := range entries {
		name := e.Name()
		if j.is.MatchString(name) {
			names = append(names, name)
		} else if whole, mark := strings.CutSuffix(name, backupUnsent); mark && j.is.MatchString(whole) {
			marked = append(marked, whole)
		} else if whole, part := strings.CutSuffix(name, backupPart); part && j.is.MatchString(whole) {
			if err := os.Remove(filepath.Join(j.dir, name)); err != nil {
				return nil, err
			}
		}
	}
	for _, whole := range marked {
		if !slices.Contains(names, whole) {
			if err := os.Remove(filepath.Join(j.dir, whole+backupUnsent)); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(names)
	j.last.Kept = len(names)
	return names, nil
}

// make writes and verifies a backup, removes the oldest ones, and runs the hook.
func (j *backupJob) make(ctx context.Context, at time.Time) error {
	start, name := time.Now(), j.stem+at.UTC().Format(backupTime)+".db"
	path := filepath.Join(j.dir, name)
	if j.hook != "" { // the mark is on the disk with the backup
		if err := os.WriteFile(path+backupUnsent, nil, 0o600); err != nil {
			return err
		}
	}
	if err := j.srv.BackupFile(ctx, path); err != nil {
		return err // list removes the mark
	}
	j.last.At, j.last.File, j.last.Took = at, name, time.Since(start)
	err := j.prune()
	j.last.Failed = err != nil
	j.srv.Log.Info("backup written and verified", "file", path, "kept", j.last.Kept, "seconds", j.last.Took.Seconds())
	j.srv.InTurn(func() { j.srv.Backups.Last = j.last }) // the hook may take long
	return errors.Join(err, j.send(ctx))
}

// prune removes the oldest backups, but not the latest.
func (j *backupJob) prune() error {
	names, err := j.list()
	if err != nil {
		return err
	}
	for _, old := range names {
		if j.keep == 0 || j.last.Kept <= j.keep {
			break
		}
		if old == j.last.File {
			continue // the clock was set back
		}
		if err := os.Remove(filepath.Join(j.dir, old)); err != nil {
			return err
		}
		j.last.Kept--
	}
	return nil
}

// send runs the hook with the latest backup, if that has its mark.
func (j *backupJob) send(ctx context.Context) error {
	path := filepath.Join(j.dir, j.last.File)
	mark := path + backupUnsent
	if _, err := os.Lstat(mark); j.last.File == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if j.hook == "" {
		return os.Remove(mark)
	}
	limit, cancel := context.WithTimeout(ctx, max(backupHookTime, j.every))
	defer cancel()
	var out clipped
	cmd := program.CommandContext(limit, j.hook, path)
	killsGroup(cmd)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // for programs that it has left behind
	if err := cmd.Run(); err != nil && !errors.Is(err, program.ErrWaitDelay) {
		return fmt.Errorf("backup-hook: %w: %s", errors.Join(limit.Err(), err), strings.TrimSpace(string(out)))
	}
	return os.Remove(mark)
}

// clipped is the beginning of what is written to it.
type clipped []byte

// Write implements io.Writer.
func (c *clipped) Write(b []byte) (int, error) {
	*c = append(*c, b[:min(len(b), backupHookText-len(*c))]...)
	return len(b), nil
}
