package archive

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/zsetd/zsetd/server/internal/values/journal"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/packed"
	"github.com/zsetd/zsetd/snapshot"
)

// reading builds the values in a file: each is a base, or none, and the later
// changes in journals. The journals are read first and indexed, see journals; the bases
// are streamed.
//
// One goroutine reads, as many as there are processors build values, and one passes
// them to the sink, in the order of the file:
//
//	                 jobs ──→ build ──┐
//	read ──→ batch ─┤                 ├─→ sink ──→ spare
//	                 order ───────────┘
//
// They pass keys on in batches, which have copies of what the file has about the keys, and
// whose memory is used again. A value of several chunks is built while its chunks are read:
// they come through job.chunks.
type reading struct {
	limits    *keyspace.Limits
	databases int                // number of databases with room; 0 for as many as the file has
	keys      *keyspace.Keyspace // for whose databases entries are built; nil: values
	begin     func(snapshot.Manifest)
	progress  func(done, total int64) error // may be nil
	sink      func(batch []job) error

	// onInvalid receives the errors of values that cannot be built, which are then
	// left out; if it is nil the first error ends the reading. Several goroutines
	// call it.
	onInvalid func(j *job, err error)

	dbs  map[uint64]int // by space; noDatabaseForSpace if there is no room for it
	last struct {       // space, and its database
		space uint64
		db    int
		ok    bool
	}
	journals
	unbased []unbased     // keys that the journals name, in the order of the file; those passed are cut off
	chunks  chan<- []byte // of the value whose chunks are being read, which is being built; or nil
	batch   *batch
	jobs    chan *batch
	order   chan *batch   // the same batches, in the order of the file
	spare   chan *batch   // that may be used again
	pieces  chan []byte   // memory of chunks that may be used again
	failed  chan struct{} // closed when a goroutine has failed
	failure error
	once    sync.Once
	total   int64
	done    int64
	shown   int64 // done at the last call of progress
	void    int64 // bytes of records of databases that were cleared
}

// noDatabaseForSpace is the database of spaces beyond the number of databases.
const noDatabaseForSpace = -2

// unbased is a key that journals name, and its first delta.
type unbased struct {
	id
	first uint32
}

// job is the value of a key, before and after it is built.
type job struct {
	db         int
	key        string        // valid until the sink returns
	generation uint64        // of the base
	based      bool          // there is a value in the base
	base       []byte        // the only chunk
	chunks     <-chan []byte // all chunks, if there are several
	journal    uint32        // the first delta, or none

	value    any // nil if the key does not exist
	deadline int64
	entry    *keyspace.Entry // in place of both; see reading.keys
	hash     uint64          // of the key, for the entry
}

// batch is a number of keys that goroutines pass on together.
type batch struct {
	jobs  []job
	text  []byte        // keys and operations
	built chan struct{} // receives a value when the values are built
	from  uint32        // the first delta that is needed after this batch
}

const (
	jobsAtOnce = 256
	jobBytes   = 32 << 10
	inFlight   = 32 // batches between two goroutines: with 4 they wait for each other
	chunksRead = 4  // chunks of a value, of which the rest is read when these are applied
)

// keep copies b to the memory of the batch.
func (b *batch) keep(data []byte) []byte {
	n := len(b.text)
	b.text = append(b.text, data...)
	return b.text[n:len(b.text):len(b.text)]
}

// errStopped ends the reading when another goroutine has failed.
var errStopped = errors.New("stopped")

func (g *reading) fail(err error) {
	g.once.Do(func() {
		g.failure = err
		close(g.failed)
	})
}

// run reads with a function of package snapshot.
func (g *reading) run(path string, read func(snapshot.Visitor) error) error {
	g.dbs = map[uint64]int{}
	g.failed = make(chan struct{})
	g.jobs, g.order = make(chan *batch, inFlight), make(chan *batch, inFlight)
	g.spare, g.pieces = make(chan *batch, 2*inFlight), make(chan []byte, 2*chunksRead)
	g.newBatch()
	var workers, sink sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			b := keyspace.Builder{Limits: g.limits}
			for batch := range g.jobs {
				if err := g.build(&b, batch); err != nil {
					g.fail(fmt.Errorf("%s: %w", path, err))
				}
				batch.built <- struct{}{}
			}
		})
	}
	sink.Go(func() { g.pass() })
	finish := sync.OnceFunc(func() {
		g.endChunks()
		close(g.jobs)
		close(g.order)
		workers.Wait()
		sink.Wait()
	})
	g.onFail = func(err error) { g.fail(fmt.Errorf("%s: %w", path, err)) }
	err := read(snapshot.Visitor{Begin: g.manifest, Part: g.records, Base: g.chunk, End: func() error {
		err := g.rest()
		if err == nil {
			finish() // the builders read parts again
		}
		return err
	}})
	if err != nil {
		g.fail(err) // before the end of the chunks of a value, which is not complete
	}
	finish()
	return g.failure
}

// pass passes batches to the sink.
func (g *reading) pass() {
	for batch := range g.order {
		<-batch.built
		select {
		case <-g.failed:
			continue
		default:
		}
		if err := g.sink(batch.jobs); err != nil {
			g.fail(err)
		}
		g.drop(batch.from)
		clear(batch.jobs)
		if batch.jobs, batch.text = batch.jobs[:0], batch.text[:0]; cap(batch.text) > 4*jobBytes {
			continue
		}
		select {
		case g.spare <- batch:
		default:
		}
	}
}

// newBatch begins a batch.
func (g *reading) newBatch() {
	select {
	case g.batch = <-g.spare:
	default:
		g.batch = &batch{jobs: make([]job, 0, jobsAtOnce), text: make([]byte, 0, jobBytes), built: make(chan struct{}, 1)}
	}
}

func (g *reading) manifest(m snapshot.Manifest) error {
	room := g.databases
	if room == 0 {
		room = len(m.Spaces)
	}
	g.dbs[keyspace.InternalSpace] = keyspace.InternalDB
	for i, space := range m.Spaces {
		if g.dbs[space] = i; i >= room {
			g.dbs[space] = noDatabaseForSpace // refused if it has a key
		}
	}
	if g.begin != nil {
		g.begin(m)
	}
	g.total = m.Bases.Bytes + m.Journal.Bytes
	if most := m.Journal.Bytes / leastRecord; most > 0 {
		n := int64(0)
		for _, keys := range m.Keys {
			n += min(keys, most)
		}
		g.reserve(int(min(n, most)))
	}
	return nil
}

// read counts bytes that have been read.
func (g *reading) read(n int) error {
	g.done += int64(n)
	if g.progress == nil || g.done-g.shown < 64<<10 && g.shown > 0 {
		return nil
	}
	g.shown = g.done
	return g.progress(min(g.done, g.total), g.total) // total lacks the log
}

// database returns the database of a space; ok is false if the space is no longer
// in use.
func (g *reading) database(space uint64) (db int, ok bool, err error) {
	if g.last.ok && space == g.last.space {
		return g.last.db, true, nil
	}
	db, ok = g.dbs[space]
	if ok && db == noDatabaseForSpace {
		return 0, false, fmt.Errorf("the file has keys in more than %d databases: set the parameter databases", g.databases)
	}
	g.last.space, g.last.db, g.last.ok = space, db, ok
	return db, ok, nil
}

// records adds a part of a journal to the deltas.
func (g *reading) records(p snapshot.Part) error {
	if err := g.read(len(p.Records)); err != nil {
		return err
	}
	if err := g.journals.begin(p, g.keys != nil); err != nil {
		return err
	}
	defer g.journals.end()
	chunk := g.text(g.parts[len(g.parts)-1])
	for rest := chunk; len(rest) > 0; {
		r, after, err := journal.NextRecord(rest)
		if err != nil {
			return fmt.Errorf("%w: journal of checkpoint %d: %w", snapshot.ErrDamaged, p.Generation, err)
		}
		at, size := len(chunk)-len(rest), len(rest)-len(after)
		rest = after
		if _, ok, err := g.database(r.Space); err != nil {
			return err
		} else if !ok {
			g.void += int64(size)
			g.journals.skip()
			continue
		}
		if err := g.journals.add(r, at); err != nil {
			return err
		}
	}
	return nil
}

// chunk adds a chunk of a base.
func (g *reading) chunk(space uint64, key []byte, generation uint64, i, chunks int, ops []byte) error {
	if err := g.read(len(ops)); err != nil {
		return err
	}
	db, ok, err := g.database(space)
	if !ok {
		g.void += int64(len(ops))
		return err
	}
	if i == 0 {
		if err := g.begun(db, space, key, generation, chunks, ops); err != nil || chunks < 2 {
			return err
		}
	}
	var piece []byte
	select {
	case piece = <-g.pieces:
	default:
	}
	select {
	case g.chunks <- append(piece, ops...):
	case <-g.failed:
		return errStopped
	}
	if i == chunks-1 {
		g.endChunks()
	}
	return nil
}

// begun makes the job of a base. ops is the first chunk.
func (g *reading) begun(db int, space uint64, key []byte, generation uint64, chunks int, ops []byte) error {
	if err := g.before(id{space, packed.View(key)}); err != nil {
		return err
	}
	if len(g.batch.text)+len(key)+len(ops) > cap(g.batch.text) {
		if err := g.flush(); err != nil {
			return err
		}
	}
	j := job{db: db, generation: generation, based: chunks > 0, journal: g.take(space, key)}
	j.key = packed.View(g.batch.keep(key))
	if chunks < 2 {
		j.base = g.batch.keep(ops)
		return g.add(j)
	}
	all := make(chan []byte, chunksRead)
	j.chunks, g.chunks = all, all
	g.batch.jobs = append(g.batch.jobs, j)
	return g.flush()
}

// endChunks notes that there are no more chunks of the value that is being read.
func (g *reading) endChunks() {
	if g.chunks != nil {
		close(g.chunks)
		g.chunks = nil
	}
}

// before makes jobs of the keys that come before k in the order of the file and
// have no base: only journals name them.
func (g *reading) before(k id) error {
	if g.keys != nil {
		return nil // entries are built in any order; see rest
	}
	if g.unbased == nil {
		g.unbased = g.sorted()
	}
	for len(g.unbased) > 0 && g.unbased[0].compare(k) < 0 {
		if err := g.addUnbased(g.unbased[0]); err != nil {
			return err
		}
		g.unbased = g.unbased[1:]
	}
	return nil
}

// sorted returns the keys that journals name, in the order of the file.
func (g *reading) sorted() []unbased {
	list := []unbased{}
	for i, d := range g.leaders {
		r, _ := g.journals.first(d)
		list = append(list, unbased{id{r.Space, packed.View(r.Key)}, i})
	}
	slices.SortFunc(list, func(a, b unbased) int { return a.compare(b.id) })
	return list
}

func (g *reading) addUnbased(k unbased) error {
	d := g.delta(k.first)
	if d.at&leads == 0 {
		return nil // it had a base
	}
	d.at &^= leads
	return g.add(job{db: g.dbs[k.space], key: k.key, journal: k.first})
}

// rest makes jobs of the keys without a base that come after all bases; of all keys
// without a base, in the order of the journals, if entries are built.
func (g *reading) rest() error {
	if g.keys == nil {
		if g.unbased == nil {
			g.unbased = g.sorted()
		}
		for _, k := range g.unbased {
			if err := g.addUnbased(k); err != nil {
				return err
			}
		}
		return g.flush()
	}
	g.table = nil
	for i, d := range g.leaders {
		r, _ := g.journals.first(d)
		g.batch.from = i
		if err := g.add(job{db: g.dbs[r.Space], key: packed.View(r.Key), journal: i}); err != nil {
			return err
		}
	}
	return g.flush()
}

func (g *reading) add(j job) error {
	if g.batch.jobs = append(g.batch.jobs, j); len(g.batch.jobs) < jobsAtOnce {
		return nil
	}
	return g.flush()
}

func (g *reading) flush() error {
	if len(g.batch.jobs) == 0 {
		return nil
	}
	select {
	case g.jobs <- g.batch:
		g.order <- g.batch
		g.newBatch()
		return nil
	case <-g.failed:
		return errStopped
	}
}

// build builds the values of a batch.
func (g *reading) build(b *keyspace.Builder, batch *batch) error {
	for i := range batch.jobs {
		j := &batch.jobs[i]
		err := g.apply(b, j)
		switch {
		case err != nil:
		case g.keys != nil:
			if j.entry, err = b.Entry(j.key); j.entry != nil {
				j.hash = g.keys.DB(j.db).Hash(j.key)
			}
		default:
			j.value, j.deadline, err = b.Value()
		}
		if err != nil && g.onInvalid == nil {
			return fmt.Errorf("%w: database %d, key %.100q: %w", snapshot.ErrDamaged, j.db, j.key, err)
		}
		if err != nil {
			g.onInvalid(j, err)
			*b = keyspace.Builder{Limits: g.limits}
		}
		j.base, j.journal = nil, none
	}
	return nil
}

// apply executes the operations of a job.
func (g *reading) apply(b *keyspace.Builder, j *job) error {
	if err := b.Apply(j.base); err != nil {
		return err
	}
	if j.chunks != nil {
		if err := g.applyChunks(b, j.chunks); err != nil {
			return err
		}
	}
	// A new file is written in pieces, with journals of the changes made meanwhile. A key
	// that was deleted before its turn has no base in it, but the earlier journals may have
	// changes of its old value. These cannot be applied: the valid records begin with one that
	// creates or deletes the key. Without one the first of all fails.
	for begun := j.based; ; begun = true {
		valid := begun
		for generation, ops := range g.changes(j.journal) {
			if generation <= j.generation {
				continue
			}
			if valid = valid || journal.ReplacesValue(ops); !valid {
				continue
			}
			if err := b.Apply(ops); err != nil {
				return fmt.Errorf("checkpoint %d: %w", generation, err)
			}
		}
		if valid || j.journal == none {
			return nil
		}
	}
}

// applyChunks executes the operations of the chunks of a value while they are read. After an
// error it receives the others, too, unless the reading ends.
func (g *reading) applyChunks(b *keyspace.Builder, chunks <-chan []byte) (err error) {
	for ops := range chunks {
		if err == nil {
			if err = b.Apply(ops); err != nil && g.onInvalid == nil {
				return err
			}
		}
		select {
		case g.pieces <- ops[:0]:
		default:
		}
	}
	return err
}
