package archive

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/zsetd/zsetd/server/internal/keyspace"
	"github.com/zsetd/zsetd/snapshot"
)

// reading builds the values in a file: each is a base, or none, and the later
// changes in journals. The journals are read first and kept in memory; the bases
// are streamed.
//
// One goroutine reads, as many as there are processors build values, and one passes
// them to the sink, in the order of the file. They pass keys on in batches.
type reading struct {
	limits    *keyspace.Limits
	databases int // number of databases with room; 0 for as many as the file has
	begin     func(snapshot.Manifest)
	progress  func(done, total int64) error // may be nil
	sink      func(batch []job) error

	// onInvalid receives the errors of values that cannot be built, which are then
	// left out; if it is nil the first error ends the reading. Several goroutines
	// call it.
	onInvalid func(j *job, err error)

	dbs     map[uint64]int // by space; noDatabaseForSpace if there is no room for it
	journal map[id]*deltas
	slab    []delta
	keys    []id // keys that the journals name, in the order of the file; those passed are cut off
	base    job  // the key whose chunks are being read
	batch   *batch
	jobs    chan *batch
	failed  chan struct{} // closed when a goroutine has failed
	failure error
	once    sync.Once
	total   int64
	done    int64
	void    int64 // bytes of records of databases that were cleared
}

// noDatabaseForSpace is the database of spaces beyond the number of databases.
const noDatabaseForSpace = -2

// id names a key of a space.
type id struct {
	space uint64
	key   string
}

func (a id) compare(b id) int { return snapshot.Compare(a.space, a.key, b.space, b.key) }

// delta is one record about a key in a journal.
type delta struct {
	generation uint64
	operations []byte
	next       *delta
}

// deltas is a linked list of them, the oldest first.
type deltas struct{ first, last *delta }

// job is the value of a key, before and after it is built.
type job struct {
	db         int
	key        string
	generation uint64   // of the base
	base       [][]byte // chunks
	journal    *delta

	value    any // nil if the key does not exist
	deadline int64
}

// batch is a number of keys that goroutines pass on together.
type batch struct {
	jobs  []job
	built chan struct{} // closed when their values are built
}

const jobsAtOnce = 64

func newBatch() *batch {
	return &batch{make([]job, 0, jobsAtOnce), make(chan struct{})}
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
	g.dbs, g.journal, g.batch = map[uint64]int{}, map[id]*deltas{}, newBatch()
	g.failed = make(chan struct{})
	g.jobs = make(chan *batch, 8)
	order := make(chan *batch, 8) // the same batches, in the order of the file
	var workers, sink sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			b := keyspace.Builder{Limits: g.limits}
			for batch := range g.jobs {
				if err := g.build(&b, batch); err != nil {
					g.fail(fmt.Errorf("%s: %w", path, err))
				}
				close(batch.built)
			}
		})
	}
	sink.Go(func() {
		stopped := false
		for batch := range order {
			<-batch.built
			select {
			case <-g.failed:
				stopped = true
			default:
			}
			if stopped {
				continue
			}
			if err := g.sink(batch.jobs); err != nil {
				g.fail(err)
			}
		}
	})
	err := read(snapshot.Visitor{Begin: g.manifest, Journal: g.records, Base: func(space uint64, key string, generation uint64, i, chunks int, ops []byte) error {
		return g.chunk(order, space, key, generation, i, chunks, ops)
	}})
	if err == nil {
		err = g.rest(order)
	}
	close(g.jobs)
	close(order)
	workers.Wait()
	sink.Wait()
	if g.failure != nil {
		return g.failure
	}
	return err
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
	return nil
}

// read counts bytes that have been read.
func (g *reading) read(n int) error {
	g.done += int64(n)
	if g.progress == nil {
		return nil
	}
	return g.progress(min(g.done, g.total), g.total) // total lacks the log
}

// database returns the database of a space; ok is false if the space is no longer
// in use.
func (g *reading) database(space uint64) (db int, ok bool, err error) {
	db, ok = g.dbs[space]
	if ok && db == noDatabaseForSpace {
		return 0, false, fmt.Errorf("the file has keys in more than %d databases: set the parameter databases", g.databases)
	}
	return db, ok, nil
}

// records adds a part of a journal to the deltas.
func (g *reading) records(generation uint64, chunk []byte) error {
	if err := g.read(len(chunk)); err != nil {
		return err
	}
	for len(chunk) > 0 {
		r, rest, err := keyspace.NextRecord(chunk)
		if err != nil {
			return fmt.Errorf("%w: journal of checkpoint %d: %w", snapshot.ErrDamaged, generation, err)
		}
		size := len(chunk) - len(rest)
		chunk = rest
		if _, ok, err := g.database(r.Space); err != nil {
			return err
		} else if !ok {
			g.void += int64(size)
			continue
		}
		d := g.newDelta()
		d.generation, d.operations = generation, r.Operations
		// In this form the look-up does not copy the key.
		if list := g.journal[id{r.Space, string(r.Key)}]; list != nil {
			list.last.next = d
			list.last = d
		} else {
			g.journal[id{r.Space, string(r.Key)}] = &deltas{d, d}
		}
	}
	return nil
}

// newDelta returns a delta from a block of them that is allocated at once.
func (g *reading) newDelta() *delta {
	if len(g.slab) == 0 {
		g.slab = make([]delta, 1024)
	}
	d := &g.slab[0]
	g.slab = g.slab[1:]
	return d
}

// chunk adds a chunk of a base to its job.
func (g *reading) chunk(order chan<- *batch, space uint64, key string, generation uint64, i, chunks int, ops []byte) error {
	if err := g.read(len(ops)); err != nil {
		return err
	}
	db, ok, err := g.database(space)
	if !ok {
		g.void += int64(len(ops))
		return err
	}
	if i == 0 {
		k := id{space, key}
		if err := g.unbased(order, k); err != nil {
			return err
		}
		g.base = job{db: db, key: key, generation: generation}
		if list := g.journal[k]; list != nil {
			g.base.journal = list.first
			delete(g.journal, k)
		}
	}
	if chunks > 0 {
		g.base.base = append(g.base.base, ops)
	}
	if i < chunks-1 {
		return nil
	}
	return g.add(order, g.base)
}

// unbased makes jobs of the keys that come before k in the order of the file and
// have no base: only journals name them.
func (g *reading) unbased(order chan<- *batch, k id) error {
	if g.keys == nil && len(g.journal) > 0 {
		g.keys = slices.SortedFunc(maps.Keys(g.journal), id.compare)
	}
	for len(g.keys) > 0 && g.keys[0].compare(k) < 0 {
		if err := g.addUnbased(order, g.keys[0]); err != nil {
			return err
		}
		g.keys = g.keys[1:]
	}
	return nil
}

func (g *reading) addUnbased(order chan<- *batch, k id) error {
	list := g.journal[k]
	if list == nil {
		return nil // it had a base
	}
	delete(g.journal, k)
	return g.add(order, job{db: g.dbs[k.space], key: k.key, journal: list.first})
}

// rest makes jobs of the keys without a base that come after all bases.
func (g *reading) rest(order chan<- *batch) error {
	for _, k := range slices.SortedFunc(maps.Keys(g.journal), id.compare) {
		if err := g.addUnbased(order, k); err != nil {
			return err
		}
	}
	return g.flush(order)
}

func (g *reading) add(order chan<- *batch, j job) error {
	if g.batch.jobs = append(g.batch.jobs, j); len(g.batch.jobs) < jobsAtOnce {
		return nil
	}
	return g.flush(order)
}

func (g *reading) flush(order chan<- *batch) error {
	select {
	case g.jobs <- g.batch:
		order <- g.batch
		g.batch = newBatch()
		return nil
	case <-g.failed:
		return errStopped
	}
}

// build builds the values of a batch.
func (g *reading) build(b *keyspace.Builder, batch *batch) error {
	for i := range batch.jobs {
		j := &batch.jobs[i]
		err := j.build(b)
		if err != nil && g.onInvalid == nil {
			return fmt.Errorf("%w: database %d, key %.100q: %w", snapshot.ErrDamaged, j.db, j.key, err)
		}
		if err != nil {
			g.onInvalid(j, err)
			*b = keyspace.Builder{Limits: g.limits}
		}
		j.base, j.journal = nil, nil
	}
	return nil
}

func (j *job) build(b *keyspace.Builder) (err error) {
	for _, ops := range j.base {
		if err := b.Apply(ops); err != nil {
			return err
		}
	}
	d := j.journal
	if len(j.base) == 0 {
		// A new file is written in pieces, with journals of the changes made
		// meanwhile. A key that was deleted before its turn has no base in it, but
		// the earlier journals may have changes of its old value. These cannot be
		// applied: the valid records begin with one that creates or deletes the
		// key.
		for first := d; first != nil; first = first.next {
			if first.generation > j.generation && keyspace.ReplacesValue(first.operations) {
				d = first
				break
			}
		}
	}
	for ; d != nil; d = d.next {
		if d.generation > j.generation {
			if err := b.Apply(d.operations); err != nil {
				return fmt.Errorf("checkpoint %d: %w", d.generation, err)
			}
		}
	}
	j.value, j.deadline, err = b.Value()
	return err
}
