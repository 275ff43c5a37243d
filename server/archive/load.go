package archive

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/snapshot"
)

// Loader reads what a snapshot file holds into a keyspace.
type Loader struct {
	// Keys is where to; it must be empty, and not record.
	Keys *keyspace.Keyspace

	// Hold, if it is not nil, runs a function while nobody else uses Keys. The
	// functions are short.
	Hold func(func())

	// Progress, if it is not nil, is told now and then how many bytes of
	// records have been read, and of how many. It is called by one goroutine.
	// An error ends the loading.
	Progress func(done, total int64) error

	// Loaded and Expired count the keys, those that were past their deadlines
	// apart. They are not restored.
	Loaded, Expired int64

	past []Key
}

// Key names a key of a database.
type Key struct {
	DB  *keyspace.DB
	Key string
}

// Past returns the keys that were not restored, being past their deadlines.
func (l *Loader) Past() []Key { return l.past }

// Open reads the file at path, verifies it as [snapshot.Open] does, and keeps it
// open for writing. After an error Keys may hold a part of the data and must not
// be used.
//
// Values are put together in as many goroutines as there are processors.
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

// id names a key of a space.
type id struct {
	space uint64
	key   string
}

// delta is what a journal says of a key.
type delta struct {
	generation uint64
	operations []byte
	next       *delta
}

// deltas is a list of them, the oldest first.
type deltas struct{ first, last *delta }

// job is the value of a key before it is put together.
type job struct {
	db         *keyspace.DB
	key        string
	generation uint64   // of the base
	base       [][]byte // chunks
	journal    *delta
}

// restored is the value afterwards.
type restored struct {
	db       *keyspace.DB
	key      string
	value    any
	deadline int64
}

// jobsAtOnce is how many keys are handed from one goroutine to another
// together.
const jobsAtOnce = 64

// loading is the state of loading a file.
type loading struct {
	*Loader
	dbs     map[uint64]*keyspace.DB
	journal map[id]*deltas
	slab    []delta
	base    job // whose chunks are coming
	batch   []job
	jobs    chan []job
	failed  chan struct{} // closed when a worker has failed
	total   int64
	done    int64
}

func (l *Loader) load(path string, read func(snapshot.Visitor) error) error {
	g := &loading{
		Loader: l, dbs: map[uint64]*keyspace.DB{}, journal: map[id]*deltas{},
		jobs: make(chan []job, 8), failed: make(chan struct{}),
	}
	if g.Hold == nil {
		g.Hold = func(f func()) { f() }
	}
	done := make(chan []restored, 8)
	var workers, inserter sync.WaitGroup
	var failure error
	var once sync.Once
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			if err := g.work(done); err != nil {
				once.Do(func() {
					failure = err
					close(g.failed)
				})
			}
		})
	}
	inserter.Go(func() {
		for batch := range done {
			g.Hold(func() { l.insert(batch) })
		}
	})
	err := read(snapshot.Visitor{Begin: g.begin, Journal: g.records, Base: g.chunk})
	if err == nil {
		err = g.rest()
	}
	close(g.jobs)
	workers.Wait()
	close(done)
	inserter.Wait()
	if failure != nil {
		return fmt.Errorf("%s: %w", path, failure)
	}
	return err
}

// errStopped ends the reading when a worker has failed.
var errStopped = errors.New("stopped")

func (g *loading) begin(m snapshot.Manifest) error {
	for i, space := range m.Spaces {
		if i < g.Keys.Len() {
			g.dbs[space] = g.Keys.DB(i)
		}
	}
	g.Hold(func() { g.Keys.SetSpaces(m.Spaces, m.LastSpace) })
	g.total = m.Bases.Bytes + m.Journal.Bytes
	if len(m.Spaces) > g.Keys.Len() {
		for _, space := range m.Spaces[g.Keys.Len():] {
			g.dbs[space] = nil // refused if it has a key
		}
	}
	return nil
}

// read counts bytes that have been read.
func (g *loading) read(n int) error {
	g.done += int64(n)
	if g.Progress == nil {
		return nil
	}
	return g.Progress(g.done, g.total)
}

// database returns the database of a space, nil if the space is no more in use.
func (g *loading) database(space uint64) (*keyspace.DB, error) {
	db, ok := g.dbs[space]
	if ok && db == nil {
		return nil, fmt.Errorf("the file has keys in more than %d databases: set the parameter databases", g.Keys.Len())
	}
	return db, nil
}

// records takes down a part of a journal.
func (g *loading) records(generation uint64, chunk []byte) error {
	if err := g.read(len(chunk)); err != nil {
		return err
	}
	for len(chunk) > 0 {
		r, rest, err := keyspace.NextRecord(chunk)
		if err != nil {
			return fmt.Errorf("%w: journal of cut %d: %w", snapshot.ErrDamaged, generation, err)
		}
		chunk = rest
		if db, err := g.database(r.Space); err != nil {
			return err
		} else if db == nil {
			continue
		}
		d := g.newDelta()
		d.generation, d.operations = generation, r.Operations
		// Said like this the look-up copies no key.
		if list := g.journal[id{r.Space, string(r.Key)}]; list != nil {
			list.last.next = d
			list.last = d
		} else {
			g.journal[id{r.Space, string(r.Key)}] = &deltas{d, d}
		}
	}
	return nil
}

// newDelta returns one of those that are allocated together.
func (g *loading) newDelta() *delta {
	if len(g.slab) == 0 {
		g.slab = make([]delta, 1024)
	}
	d := &g.slab[0]
	g.slab = g.slab[1:]
	return d
}

// chunk takes down a chunk of a base.
func (g *loading) chunk(space uint64, key string, generation uint64, i, chunks int, ops []byte) error {
	if err := g.read(len(ops)); err != nil {
		return err
	}
	db, err := g.database(space)
	if db == nil {
		return err
	}
	if i == 0 {
		g.base = job{db: db, key: key, generation: generation}
		k := id{space, key}
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
	return g.add(g.base)
}

// rest makes jobs of the keys that have no base.
func (g *loading) rest() error {
	for k, list := range g.journal {
		if err := g.add(job{db: g.dbs[k.space], key: k.key, journal: list.first}); err != nil {
			return err
		}
	}
	return g.flush()
}

func (g *loading) add(j job) error {
	if g.batch = append(g.batch, j); len(g.batch) < jobsAtOnce {
		return nil
	}
	return g.flush()
}

func (g *loading) flush() error {
	select {
	case g.jobs <- g.batch:
		g.batch = make([]job, 0, jobsAtOnce)
		return nil
	case <-g.failed:
		return errStopped
	}
}

// work puts values together.
func (g *loading) work(done chan<- []restored) error {
	b := keyspace.Builder{Limits: &g.Keys.Limits}
	for batch := range g.jobs {
		out := make([]restored, 0, len(batch))
		for i := range batch {
			j := &batch[i]
			value, deadline, err := j.build(&b)
			if err != nil {
				return fmt.Errorf("%w: database %d, key %q: %w", snapshot.ErrDamaged, j.db.ID(), j.key, err)
			}
			if value != nil {
				out = append(out, restored{j.db, j.key, value, deadline})
			}
			*j = job{}
		}
		done <- out
	}
	return nil
}

func (j *job) build(b *keyspace.Builder) (value any, deadline int64, err error) {
	for _, ops := range j.base {
		if err := b.Apply(ops); err != nil {
			return nil, 0, err
		}
	}
	d := j.journal
	if len(j.base) == 0 {
		// A file that was written anew has no base of a key that was gone when
		// its turn came, but perhaps what had happened to it until then.
		for first := d; first != nil; first = first.next {
			if first.generation > j.generation && keyspace.Anew(first.operations) {
				d = first
				break
			}
		}
	}
	for ; d != nil; d = d.next {
		if d.generation > j.generation {
			if err := b.Apply(d.operations); err != nil {
				return nil, 0, fmt.Errorf("cut %d: %w", d.generation, err)
			}
		}
	}
	return b.Value()
}

// insert puts values where they belong.
func (l *Loader) insert(batch []restored) {
	now := l.Keys.Now()
	for _, r := range batch {
		if r.deadline != 0 && r.deadline < now {
			l.past = append(l.past, Key{r.db, r.key})
			l.Expired++
			continue
		}
		r.db.Restore(r.key, r.value, r.deadline)
		l.Loaded++
	}
}
