package archive

import (
	"errors"
	"strings"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
)

// Loader reads what a snapshot file holds into a keyspace.
type Loader struct {
	// Keys is the target; it must be empty, and not record.
	Keys *keyspace.Keyspace

	// Hold, if it is not nil, runs a function with exclusive access to Keys. The
	// functions are short.
	Hold func(func())

	// Progress, if it is not nil, is called from time to time with the bytes of
	// records that have been read, and the total. Only one goroutine calls it. An
	// error ends the loading.
	Progress func(done, total int64) error

	// Inserted, if it is not nil, is called after a number of keys, without exclusive access.
	// An error ends the loading.
	Inserted func(keys int) error

	// Loaded counts the keys in Keys. Expired counts those past their deadlines,
	// which are not restored.
	Loaded, Expired int64

	past []Key
}

// Key names a key of a database.
type Key struct {
	DB  *keyspace.DB
	Key string
}

// Past returns the keys that were not restored because they are past their
// deadlines.
func (l *Loader) Past() []Key { return l.past }

// Open reads the file at path, verifies it as [snapshot.Open] does, and keeps it
// open for writing. After an error Keys may hold a part of the data and must not be
// used.
//
// As many goroutines as there are processors build values.
func (l *Loader) Open(path string) (*snapshot.File, error) {
	var file *snapshot.File
	err := l.load(path, func(v snapshot.Visitor) (err error) {
		file, err = snapshot.Open(path, v)
		return err
	})
	if err != nil && file != nil {
		err = errors.Join(err, file.Close())
	}
	return file, err
}

// Read is Open that does not keep the file open.
func (l *Loader) Read(path string) error {
	return l.load(path, func(v snapshot.Visitor) error {
		_, err := snapshot.Read(path, v)
		return err
	})
}

func (l *Loader) load(path string, read func(snapshot.Visitor) error) error {
	hold := l.Hold
	if hold == nil {
		hold = func(f func()) { f() }
	}
	g := reading{
		limits:    &l.Keys.Limits,
		databases: l.Keys.Len(),
		keys:      l.Keys,
		begin:     func(m snapshot.Manifest) { hold(func() { l.begin(m) }) },
		progress:  l.Progress,
		sink: func(batch []job) error {
			hold(func() { l.insert(batch) })
			if l.Inserted == nil {
				return nil
			}
			return l.Inserted(len(batch))
		},
	}
	return Recognize(path, g.run(path, read))
}

// begin prepares Keys.
func (l *Loader) begin(m snapshot.Manifest) {
	l.Keys.SetSpaces(m.Spaces, m.LastSpace)
	for i, n := range m.Keys[:min(len(m.Keys), l.Keys.Len())] {
		l.Keys.DB(i).Reserve(int(min(n, m.Bases.Records+m.Journal.Bytes/leastRecord)))
	}
}

// insert puts values into Keys.
func (l *Loader) insert(batch []job) {
	now := l.Keys.Now()
	for i := range batch {
		j := &batch[i]
		db := l.Keys.DB(j.db)
		switch {
		case j.entry == nil:
		case j.entry.Deadline() != 0 && j.entry.Deadline() < now && !l.Keys.OnStandby(): // else the primary removes it
			l.past = append(l.past, Key{db, strings.Clone(j.key)})
			l.Expired++
		default:
			db.RestoreEntry(j.entry, j.hash)
			l.Loaded++
		}
	}
}
