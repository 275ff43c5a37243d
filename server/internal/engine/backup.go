package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zsetd/zsetd/snapshot"
)

// Backups of a server that runs.
//
// A server that keeps its data in a file saves what has changed and copies the file:
// the copy needs no memory, and the values are not encoded again. The saving of
// others waits only if it is so frequent that no copy succeeds between two commits.
//
// A server without a file writes one as the keeper writes a fresh file: key by key in
// pieces, each with a journal of what has changed since the one before.

// BackupFile writes what the server holds, as of some instant during the call, to a new
// file at path, in the format of the files that [Options].File names: a server that
// is given a copy of it has the same data. Clients go on meanwhile. There must be no
// file at path. If BackupFile returns an error there is none afterwards, otherwise it is
// complete, verified and on the disk.
//
// A server that keeps its data in a file saves them there first, as BGSAVE does.
func (srv *Engine) BackupFile(ctx context.Context, path string) (err error) {
	defer srv.setClosedError(&err)
	if err := srv.Ready(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return &os.PathError{Op: "backup", Path: path, Err: os.ErrExist}
	}
	k := srv.Keeper
	file, closed := "", false
	srv.maintain(func() { file, closed = k.Path, srv.closed })
	if closed {
		return ErrServerClosed
	}
	if file == "" {
		return k.writeOut(ctx, path)
	}
	if err := k.saveSoon(ctx); err != nil {
		return err
	}
	stopped := func(_, _ int64) error {
		select {
		case <-k.quit:
			return ErrServerClosed
		default:
			return ctx.Err()
		}
	}
	_, err = snapshot.Backup(file, path, snapshot.CopyOptions{Progress: stopped, Verify: stopped, Hold: func() func() {
		k.IO.Lock()
		return k.IO.Unlock
	}})
	return err
}

// Backup writes to w what [Server.BackupFile] writes to a file, and returns how many
// bytes that were. It makes a temporary file, beside the file of the data if there is
// one. If it returns an error w may have been given a part.
func (srv *Engine) Backup(ctx context.Context, w io.Writer) (n int64, err error) {
	dir := ""
	if srv.Config.Dbfilename != "" {
		dir = srv.Config.Dir
	}
	dir, err = os.MkdirTemp(dir, "backup-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "copy.db")
	if err := srv.BackupFile(ctx, path); err != nil {
		return 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(w, contextReader{ctx, f})
}

// Save writes all changes to the data file and waits until they are on the disk.
func (srv *Engine) Save(ctx context.Context) (err error) {
	defer srv.setClosedError(&err)
	if err := srv.Ready(ctx); err != nil {
		return err
	}
	file := ""
	srv.maintain(func() { file = srv.Keeper.Path })
	if file == "" {
		return errors.New("zsetd: there is no data file to save to")
	}
	return srv.Keeper.saveSoon(ctx)
}

// contextReader is a reader that ends with a context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// saveWaiter waits until a checkpoint is on the disk.
type saveWaiter struct {
	epoch uint64
	done  chan error // capacity 1
}

// saveSoon has the keeper save, and waits until everything is on the disk that was
// changed before the call.
func (k *Keeper) saveSoon(ctx context.Context) error {
	w := saveWaiter{done: make(chan error, 1)}
	closed := false
	k.srv.maintain(func() {
		if closed = k.Path == ""; closed {
			return
		}
		w.epoch = k.epoch
		k.SaveRequested = true
		k.savers = append(k.savers, w)
		k.Wake()
	})
	if closed {
		return ErrServerClosed
	}
	select {
	case err := <-w.done:
		return err
	case <-k.quit:
		return ErrServerClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tellSavers ends the wait of those whose checkpoint is on the disk, or with an
// error of all.
func (k *Keeper) tellSavers(err error) {
	k.savers = slices.DeleteFunc(k.savers, func(w saveWaiter) bool {
		if err == nil && w.epoch > k.durable {
			return false
		}
		w.done <- err
		return true
	})
}

// writeOut writes all keys to a new file at path. There is no other use of the
// keyspace's journal: the data are kept in no file.
func (k *Keeper) writeOut(ctx context.Context, path string) (err error) {
	k.writingOut.Lock() // one at a time
	defer k.writingOut.Unlock()
	srv := k.srv
	file, err := snapshot.Beside(path)
	if err != nil {
		return err
	}
	defer func() {
		srv.maintain(func() { srv.Keys.Record(false) })
		if file.Path() == path {
			err = errors.Join(err, file.Close())
		} else {
			err = errors.Join(err, file.Discard())
		}
	}()
	srv.maintain(func() { srv.Keys.Record(true) })
	r := Rewrite{Fresh: true, Keys: k.AllKeys(srv.Locked), Began: time.Now()}
	slices.SortFunc(r.Keys, compareID)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := new(Checkpoint)
		srv.maintain(func() {
			if !srv.Keys.Recording() {
				err = errors.New("all data were replaced during the backup")
				return
			}
			r.piece(srv.Keys, c)
			c.Time = srv.At
			if j := srv.Keys.TakeJournal(); j != nil {
				c.Journal = j.Chunks
			}
			c.Spaces, c.LastSpace = srv.Keys.Spaces(), srv.Keys.LastSpace()
		})
		if err != nil {
			return err
		}
		if _, err := file.Write(&c.Checkpoint); err != nil {
			return err
		}
		if c.ends {
			break
		}
	}
	if _, err := snapshot.Read(file.Path(), snapshot.Visitor{}); err != nil {
		return err
	}
	return file.Publish(path)
}
