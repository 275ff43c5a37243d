package archive

import (
	"cmp"
	"slices"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Report is the result of [Check] for a sound file.
type Report struct {
	Generation uint64    `json:"generation"` // of the last checkpoint
	Time       time.Time `json:"time"`       // of the last checkpoint
	Size       int64     `json:"size"`       // of the file, in bytes
	Free       int64     `json:"free"`       // bytes of the file in pages that hold nothing
	Bases      Records   `json:"bases"`
	Journal    Records   `json:"journal"`
	Log        Records   `json:"log"` // the groups in the log

	// Void is the number of bytes in records of databases that were cleared.
	Void int64 `json:"void"`

	// Databases are those that have keys.
	Databases []DatabaseReport `json:"databases"`

	// Libraries is the number of function libraries.
	Libraries int64 `json:"libraries"`

	// MostElements and MostBytes are the biggest keys, ten at most.
	MostElements []KeyReport `json:"most_elements"`
	MostBytes    []KeyReport `json:"most_bytes"`
}

// Records counts records in the file.
type Records struct {
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
}

// DatabaseReport describes the keys of a database.
type DatabaseReport struct {
	DB       int          `json:"db"`
	Keys     int64        `json:"keys"`
	Volatile int64        `json:"volatile"` // keys with a deadline
	Expired  int64        `json:"expired"`  // keys past their deadlines, which the server will not load
	Types    []TypeReport `json:"types"`
}

// TypeReport describes the keys of a type in a database.
type TypeReport struct {
	Type     string `json:"type"`
	Keys     int64  `json:"keys"`
	Elements int64  `json:"elements"`
	Bytes    int64  `json:"bytes"` // of the elements, and the keys
}

// KeyReport describes a key. In JSON a key that is not UTF-8 is an object with its
// base64.
type KeyReport struct {
	DB       int    `json:"db"`
	Key      text   `json:"key"`
	Type     string `json:"type"`
	Elements int    `json:"elements"`
	Bytes    int64  `json:"bytes"` // of the elements
}

// biggest is the number of keys that are reported as the biggest.
const biggest = 10

// Check reads a file, verifies everything in it as [snapshot.Read] does, builds
// every value, and returns statistics. The file must not change meanwhile, see
// [OpenSource].
func Check(path string, now time.Time, progress Progress) (*Report, error) {
	r := &Report{Databases: []DatabaseReport{}, MostElements: []KeyReport{}, MostBytes: []KeyReport{}}
	dbs := map[int]*DatabaseReport{}
	info, void, err := each(path, progress.of("check"), func(v Value) error {
		if v.DB == keyspace.InternalDB {
			r.Libraries++
			return nil
		}
		db := dbs[v.DB]
		if db == nil {
			db = &DatabaseReport{DB: v.DB}
			dbs[v.DB] = db
		}
		r.add(db, v, now.UnixMilli())
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, db := range dbs {
		slices.SortFunc(db.Types, func(a, b TypeReport) int { return cmp.Compare(a.Type, b.Type) })
		r.Databases = append(r.Databases, *db)
	}
	slices.SortFunc(r.Databases, func(a, b DatabaseReport) int { return cmp.Compare(a.DB, b.DB) })
	m := info.Manifest
	r.Generation, r.Time, r.Size, r.Free, r.Void = m.Generation, m.Time, info.Size, info.Free, void
	r.Bases = Records{m.Bases.Records, m.Bases.Bytes}
	r.Journal = Records{m.Journal.Records, m.Journal.Bytes}
	r.Log = Records{info.Groups, info.Logged}
	return r, nil
}

func (r *Report) add(db *DatabaseReport, v Value, now int64) {
	elements, bytes := v.Size()
	db.Keys++
	if v.Deadline != 0 {
		db.Volatile++
		if v.Deadline < now {
			db.Expired++
		}
	}
	i := slices.IndexFunc(db.Types, func(t TypeReport) bool { return t.Type == v.Type() })
	if i < 0 {
		i = len(db.Types)
		db.Types = append(db.Types, TypeReport{Type: v.Type()})
	}
	t := &db.Types[i]
	t.Keys++
	t.Elements += int64(elements)
	t.Bytes += bytes + int64(len(v.Key))
	k := KeyReport{v.DB, text(v.Key), v.Type(), elements, bytes}
	r.MostElements = insertBiggest(r.MostElements, k, func(a, b KeyReport) int { return cmp.Compare(b.Elements, a.Elements) })
	r.MostBytes = insertBiggest(r.MostBytes, k, func(a, b KeyReport) int { return cmp.Compare(b.Bytes, a.Bytes) })
}

// insertBiggest inserts a key into the sorted list of the biggest, if it is one of
// them. Among equals the first stays.
func insertBiggest(top []KeyReport, k KeyReport, order func(a, b KeyReport) int) []KeyReport {
	i := len(top)
	for i > 0 && order(k, top[i-1]) < 0 {
		i--
	}
	if i == biggest {
		return top
	}
	top = slices.Insert(top, i, k)
	return top[:min(len(top), biggest)]
}
