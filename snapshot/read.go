package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// Visitor receives the contents of a file: first the journals, the oldest checkpoint
// first and each in order, with those in the log last, then the bases in the order of their names. A function
// that is nil is not called; an error of a function ends the reading. The slices are valid until the function returns.
type Visitor struct {
	// Begin receives the manifest before all else.
	Begin func(m Manifest) error

	// Journal receives a part of the journal of a checkpoint, which is whole records. Part, if
	// it is not nil, is called in its place.
	Journal func(generation uint64, records []byte) error
	Part    func(p Part) error

	// Base receives chunk i, of chunks in all, of the value that a key had at a
	// checkpoint. Records about the key in journals up to that generation are void. chunks
	// is 0 if the key did not exist then.
	Base func(space uint64, key []byte, generation uint64, i, chunks int, ops []byte) error

	// End is called when everything is read and verified. Until it returns, parts can be read
	// again, and in [Open] no other process can change the file.
	End func() error
}

// part passes a part of a journal on.
func (v *Visitor) part(p Part) error {
	switch {
	case v.Part != nil:
		return v.Part(p)
	case v.Journal != nil:
		return v.Journal(p.Generation, p.Records)
	}
	return nil
}

// end ends the reading.
func (v *Visitor) end() error {
	if v.End == nil {
		return nil
	}
	return v.End()
}

// Part is a part of a journal.
type Part struct {
	Generation uint64
	Records    []byte // valid until Visitor.Part returns

	file         io.ReaderAt
	at           int64 // of its value in the file; 0 if that cannot be read again
	size         int
	bucket, name string
}

// Rereadable reports whether Again can read the part. It cannot if the part is small or in the
// log.
func (p *Part) Rereadable() bool { return p.at != 0 }

// Size returns the number of bytes of the records and their checksum.
func (p *Part) Size() int { return p.size }

// Again reads the records once more, into buf if that is large enough. It is safe for
// concurrent use.
func (p *Part) Again(buf []byte) (records []byte, err error) {
	if cap(buf) < p.size {
		buf = make([]byte, p.size, p.size+p.size/8) // the next part may be a bit longer
	}
	buf = buf[:p.size]
	if _, err := p.file.ReadAt(buf, p.at); err != nil {
		return nil, fmt.Errorf("the journal of checkpoint %d cannot be read: %w", p.Generation, err)
	}
	records, _, ok := unseal(buf, []byte(p.bucket), []byte(p.name))
	if !ok {
		return nil, damaged("journal of checkpoint %d, part %x, when it was read again", p.Generation, p.name)
	}
	return append(buf[:0], records...), nil // keeps the capacity of buf
}

// Read reads a file and verifies everything in it: the pages and their order, the
// checksum of every record, and by the manifest that no record is missing. If that
// fails the error is ErrDamaged or ErrForeign, and the visitor must discard all it
// has received, which may be a part of the file. The file is not changed. Read does
// not keep other processes from changing it, see [Lock].
func Read(path string, v Visitor) (Manifest, error) {
	info, err := Inspect(path, v)
	return info.Manifest, err
}

// Info is the result of Inspect.
type Info struct {
	Manifest Manifest
	Size     int64 // of the file, in bytes
	Free     int64 // bytes of the file that hold nothing
	Groups   int64 // in the log
	Logged   int64 // bytes of their records
}

// Inspect is [Read] that also returns how much of the file is in use.
func Inspect(path string, v Visitor) (Info, error) {
	file, err := os.Open(path)
	if err != nil {
		return Info{}, fmt.Errorf("%s: %w", path, trimPath(err))
	}
	defer file.Close()
	r, err := read(file, v)
	if err != nil {
		return Info{}, fmt.Errorf("%s: %w", path, err)
	}
	info := Info{Manifest: r.current(), Size: r.size, Free: r.free, Groups: int64(len(r.log.groups))}
	for _, g := range r.log.groups {
		info.Logged += int64(len(g.records))
	}
	return info, nil
}

// current returns the manifest with what the last group in the log changes of it.
func (r *reading) current() Manifest {
	n := len(r.log.groups)
	if n == 0 {
		return r.manifest
	}
	return r.manifest.current(n, &r.log.groups[n-1])
}

// reading is the state of reading a file.
type reading struct {
	v          Visitor
	tree       *pageTree
	manifest   Manifest
	bases      tally
	journal    tally
	log        logContent
	logSize    int64
	tombstones []tombstone
	size       int64 // of the file
	free       int64

	// The base whose chunks are being read.
	space        uint64
	key          []byte
	name         []byte // without the number of the chunk
	generation   uint64
	next, chunks int
}

func read(file *os.File, v Visitor) (*reading, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	tree, err := openPages(file, info.Size())
	if err != nil {
		return nil, err
	}
	r := &reading{v: v, tree: tree, size: info.Size()}
	if err := tree.walk(r.record); err != nil {
		return nil, err
	}
	if r.manifest.Format == 0 {
		return nil, r.noManifest()
	}
	if r.next < r.chunks {
		return nil, r.missing()
	}
	if r.bases != r.manifest.Bases || r.journal != r.manifest.Journal {
		return nil, damaged("records are missing: found %d of %d bases and %d of %d journal parts",
			r.bases.Records, r.manifest.Bases.Records, r.journal.Records, r.manifest.Journal.Records)
	}
	if r.logSize != r.manifest.Log {
		return nil, damaged("a log of %d bytes, not %d", r.logSize, r.manifest.Log)
	}
	r.free = info.Size() - int64(tree.used)*pageSize
	return r, v.end()
}

func (r *reading) record(bucket [][]byte, name, value []byte) (err error) {
	if r.manifest.Format == 0 { // the manifest is in the first bucket
		if len(bucket) != 1 || string(bucket[0]) != aboutBucket || string(name) != manifestName {
			return fmt.Errorf("%w: the first record is %.50q in bucket %.50q", ErrForeign, name, bucket)
		}
		if r.manifest, err = decodeManifest(value); err == nil && r.v.Begin != nil {
			err = r.v.Begin(r.manifest)
		}
		return err
	}
	switch {
	case len(bucket) == 2 && string(bucket[0]) == checkpointsBucket:
		return r.part(bucket[1], name, value)
	case len(bucket) == 1 && string(bucket[0]) == groupsBucket && string(name) == logName:
		return r.groups(value)
	case len(bucket) == 1 && string(bucket[0]) == keysBucket:
		return r.base(name, value)
	}
	return damaged("unexpected record %.50q in bucket %.50q", name, bucket)
}

func (r *reading) part(bucket, name, value []byte) error {
	if len(bucket) != 8 || len(name) != 4 {
		return damaged("journal %.50x, part %.50x: invalid names", bucket, name)
	}
	generation := binary.BigEndian.Uint64(bucket)
	records, sum, ok := unseal(value, bucket, name)
	if !ok || generation > r.manifest.Generation {
		return damaged("journal of checkpoint %d, part %d", generation, binary.BigEndian.Uint32(name))
	}
	r.journal.add(sum, len(value))
	return r.v.part(Part{generation, records, r.tree.r, r.tree.at, len(value), string(bucket), string(name)})
}

// groups reads the log. Its records are those of the journal that the next transaction
// writes.
func (r *reading) groups(value []byte) (err error) {
	r.logSize = int64(len(value))
	if r.log, err = parseLog(value, r.manifest.Generation); err != nil {
		return err
	}
	for _, g := range r.log.groups {
		if err := r.v.part(Part{Generation: r.manifest.Generation + 1, Records: g.records}); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) base(name, value []byte) error {
	space, key, long, i, ok := parseBaseName(name)
	if !ok {
		return damaged("base %.50q: invalid name", name)
	}
	body, sum, ok := unseal(value, name)
	if !ok || len(body) < 8 {
		if long {
			return damaged("the value of a key of 1 KB or more in space %d, whose SHA-256 is %x, chunk %d", space, key, i)
		}
		return damaged("the value of key %.100q in space %d, chunk %d", key, space, i)
	}
	r.bases.add(sum, len(value))
	generation := binary.BigEndian.Uint64(body)
	body = body[8:]
	if r.next < r.chunks { // more chunks of the same key
		if i != r.next || string(name[:len(name)-4]) != string(r.name) || generation != r.generation {
			return r.missing()
		}
		r.next++
		return r.visit(i, body)
	}
	if i != 0 || generation > r.manifest.Generation {
		return damaged("the value of key %.100q in space %d begins with chunk %d, of checkpoint %d", key, space, i, generation)
	}
	if len(body) < 4 {
		return damaged("the value of key %.100q in space %d: invalid header", key, space)
	}
	chunks := binary.BigEndian.Uint32(body)
	body = body[4:]
	if long {
		n, w := binary.Uvarint(body)
		if w <= 0 || n > uint64(len(body)-w) {
			return damaged("the value of key %.100q in space %d: invalid header", key, space)
		}
		key, body = body[w:w+int(n)], body[w+int(n):]
	}
	r.space, r.generation, r.next, r.chunks = space, generation, 1, int(chunks)
	r.key, r.name = append(r.key[:0], key...), append(r.name[:0], name[:len(name)-4]...)
	if chunks == 0 {
		r.tombstones = append(r.tombstones, tombstone{string(name), generation})
	}
	return r.visit(0, body)
}

// missing returns the error that a chunk is not where it should be.
func (r *reading) missing() error {
	return damaged("the value of key %.100q in space %d: chunk %d of %d is missing", r.key, r.space, r.next, r.chunks)
}

func (r *reading) visit(i int, ops []byte) error {
	if r.v.Base == nil {
		return nil
	}
	return r.v.Base(r.space, r.key, r.generation, i, r.chunks, ops)
}

// Locked is a file that no other process can change.
type Locked struct{ db *bbolt.DB }

// Lock keeps other processes from changing a file until Close. It fails within a
// second if one has it open for writing. The file must exist, and look like a
// snapshot.
func Lock(path string) (*Locked, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, trimPath(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := openPages(file, info.Size()); err != nil { // bbolt would crash on it
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	o := boltOptions()
	o.ReadOnly = true
	db, _, err := openBolt(path, o)
	if err != nil {
		return nil, err
	}
	return &Locked{db}, nil
}

// Close lets other processes change the file.
func (l *Locked) Close() error {
	_, err := guard(l.db.Close)
	return err
}

// Open reads a file, as [Read] does, and opens it for writing.
func Open(path string, v Visitor) (*File, error) {
	lock, err := Lock(path)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f := &File{path: path}
	r, err := read(file, v)
	if err := errors.Join(file.Close(), lock.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, trimPath(err))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.manifest, f.tombstones = r.manifest, r.tombstones
	if f.db, f.file, err = openBolt(path, boltOptions()); err != nil {
		return nil, err
	}
	f.identity, _ = f.file.Stat()
	// Between the two locks another process may have changed the file.
	var now Manifest
	err = f.guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) (err error) {
			f.txid = uint64(tx.ID())
			now, err = decodeManifest(tx.Bucket([]byte(aboutBucket)).Get([]byte(manifestName)))
			return err
		})
	})
	if err == nil && (now.Generation != f.manifest.Generation || !now.Time.Equal(f.manifest.Time)) {
		err = fmt.Errorf("%w by another process", ErrInUse)
	}
	if err == nil {
		err = f.takeLog(r.log)
	}
	if err == nil {
		err = f.recordMark(&f.manifest, f.log.groups)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return f, nil
}
