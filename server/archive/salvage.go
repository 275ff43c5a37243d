package archive

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
)

// Salvaged is the result of [Salvage].
type Salvaged struct {
	snapshot.Salvaged

	// Keys is the number of keys in the new file.
	Keys int64

	// Lost are the keys that could not be built, Old those with an older value; as
	// far as their names are known.
	Lost, Old []LostKey
}

// LostKey is a key of which something was lost.
type LostKey struct {
	DB     int
	Key    string // or the SHA-256 of a key of 1 KB or more
	Hashed bool
	Why    string
}

// Intact reports whether everything was certainly saved.
func (s *Salvaged) Intact() bool { return s.Whole && len(s.Lost) == 0 && len(s.Old) == 0 }

// Salvage writes the readable contents of a damaged file to a new one at path to,
// which must not exist; see [snapshot.Salvage] for their definition. The damaged
// file is not changed, and no other process may have it open. It takes as much
// memory as the damaged file has bytes.
func Salvage(path, to string, progress Progress) (*Salvaged, error) {
	// A badly damaged file cannot be locked, and need not be: a server does not
	// start on a damaged file.
	switch lock, err := snapshot.Lock(path); {
	case err == nil:
		defer lock.Close()
	case errors.Is(err, snapshot.ErrInUse), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return nil, err
	}
	w, err := newWriter(to, false)
	if err != nil {
		return nil, err
	}
	s := &Salvaged{}
	limits := keyspace.DefaultLimits()
	var guard sync.Mutex
	g := reading{
		limits:   &limits,
		progress: progress.of("salvage"),
		begin:    func(m snapshot.Manifest) { w.begin(m.Spaces, m.LastSpace, m.Time) },
		sink:     sinkOf(w.add),
		onInvalid: func(j *job, err error) {
			guard.Lock()
			defer guard.Unlock()
			s.Lost = append(s.Lost, LostKey{DB: j.db, Key: strings.Clone(j.key), Why: fmt.Sprintf("its records do not fit together (%v)", err)})
		},
	}
	err = g.run(path, func(v snapshot.Visitor) (err error) {
		s.Salvaged, err = snapshot.Salvage(path, v)
		return err
	})
	if err == nil {
		err = w.finish(progress)
	}
	if err != nil {
		return nil, w.discard(Recognize(path, err))
	}
	s.Keys = w.sum.keys
	s.name(&s.Lost, s.Salvaged.Lost, g.dbs, "its value is damaged or missing")
	s.name(&s.Old, s.Salvaged.Old, g.dbs, "its value is damaged or missing; an older one was found")
	return s, nil
}

// name translates keys of spaces to keys of databases, and appends them.
func (s *Salvaged) name(to *[]LostKey, keys []snapshot.LostKey, dbs map[uint64]int, why string) {
	for _, k := range keys {
		if db, ok := dbs[k.Space]; ok { // otherwise its database was cleared
			*to = append(*to, LostKey{db, k.Key, k.Hashed, why})
		}
	}
	slices.SortFunc(*to, func(a, b LostKey) int { return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key)) })
}
