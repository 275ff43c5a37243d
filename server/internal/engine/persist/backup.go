package persist

import (
	"context"
	"errors"
	"os"
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

// Backup writes the data, as of some instant during the call, to a new file at path.
// Clients go on meanwhile. There must be no file at path: the error is then an
// os.ErrExist. If Backup returns an error there is none afterwards, otherwise it is
// complete, verified and on the disk. Data that are kept in a file are saved there
// first. It is called without the lock, once the data are loaded.
func (k *Keeper) Backup(ctx context.Context, path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return &os.PathError{Op: "backup", Path: path, Err: os.ErrExist}
	}
	file, closed := "", false
	k.host.Maintain(func() { file, closed = k.Path, k.closed })
	if closed {
		return ErrServerClosed
	}
	if file == "" {
		return k.writeOut(ctx, path)
	}
	if err := k.Save(ctx); err != nil {
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
	_, err = snapshot.Backup(file, path, snapshot.CopyOptions{Progress: stopped, Verify: stopped, Hold: k.HoldFiles})
	return err
}

// saveWaiter waits until a checkpoint is on the disk.
type saveWaiter struct {
	epoch uint64
	done  chan error // capacity 1
}

// Save has the keeper save, and waits until everything is on the disk that was changed
// before the call. It is called without the lock. After Close the error is
// ErrServerClosed; without a file it says so.
func (k *Keeper) Save(ctx context.Context) error {
	w := saveWaiter{done: make(chan error, 1)}
	var refusal error
	k.host.Maintain(func() {
		switch {
		case k.closed:
			refusal = ErrServerClosed
		case k.Path == "":
			refusal = errNoFile
		case k.suspended:
			refusal = errSuspended
		default:
			w.epoch = k.epoch
			k.SaveRequested = true
			k.savers = append(k.savers, w)
			k.Wake()
		}
	})
	if refusal != nil {
		return refusal
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
	file, err := snapshot.Beside(path)
	if err != nil {
		return err
	}
	defer func() {
		k.host.Maintain(func() { k.o.Keys.Record(false) })
		if file.Path() == path {
			err = errors.Join(err, file.Close())
		} else {
			err = errors.Join(err, file.Discard())
		}
	}()
	k.host.Maintain(func() { k.o.Keys.Record(true) })
	r := Rewrite{Fresh: true, Keys: k.AllKeys(k.host.Maintain), Began: time.Now()}
	slices.SortFunc(r.Keys, compareID)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := new(Checkpoint)
		k.host.Maintain(func() {
			if !k.o.Keys.Recording() {
				err = errors.New("all data were replaced during the backup")
				return
			}
			r.piece(k.o.Keys, c)
			c.Time = k.host.At()
			if j := k.o.Keys.TakeJournal(); j != nil {
				c.Journal = j.Chunks
			}
			c.Spaces, c.LastSpace, c.Keys = k.o.Keys.Spaces(), k.o.Keys.LastSpace(), k.counts()
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
	if _, err := snapshot.Read(file.Path(), snapshot.Visitor{
		Journal: func(uint64, []byte) error { return ctx.Err() },
		Base:    func(uint64, []byte, uint64, int, int, []byte) error { return ctx.Err() },
	}); err != nil {
		return err
	}
	return file.Publish(path)
}
