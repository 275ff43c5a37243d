package migrate

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/peers/psync"
)

// move is one run of a move between servers.
type move struct {
	o       *Options
	t       *target
	sources []*source
	dbs     databases
	status  status
	saved   sync.Mutex // held while the progress is stored
	ended   bool       // the streams are not applied any more; guarded by saved
	from    clients    // of the source
	changes changes
	doubts  doubts

	repaired atomic.Int64 // values that were written again

	// The verification: the number of keys of the sources, how many values have been
	// compared, and whether large ones are compared element by element.
	keys, compared int64
	whole          bool
	seed           maphash.Seed // chooses keys
}

func newMove(o *Options) *move {
	return &move{o: o, dbs: databases{from: o.From.at.DB, to: o.To.at.DB}, seed: maphash.MakeSeed()}
}

// source returns a client of the source that has selected the database whose keys are in
// one of the target.
func (m *move) source(db int) redis.UniversalClient {
	if m.o.From.at.Cluster {
		return m.from.of(0, func() redis.UniversalClient { return m.o.From.clusterClient() })
	}
	db = m.dbs.back(db)
	return m.from.of(db, func() redis.UniversalClient { return m.o.From.client(m.o.From.at.Addrs[0], db) })
}

// The fields of the progress.
const (
	fieldFrom   = "from"    // the source
	fieldSource = "source:" // with an address: the position at it, when the copy is complete
	fieldDone   = "done"    // the data have moved; only keys of the move are left to delete

	// The target may have deadlines of members in companions.
	fieldCompanions = "companions"
)

// begin decides whether to continue a move or to start again, and prepares the target.
func (m *move) begin(ctx context.Context) error {
	stored, err := m.t.rdb.HGetAll(ctx, progressKey).Result()
	if err != nil {
		return err
	}
	if len(stored) == 0 {
		n, err := m.t.keys(ctx)
		if err != nil {
			return err
		}
		if n > 0 && !m.o.Replace {
			return fmt.Errorf("%s has %d keys: a move needs an empty target (--replace deletes them)", m.t.Endpoint, n)
		}
		return m.restart(ctx)
	}
	if stored[fieldFrom] != m.o.From.String() && !m.o.Replace {
		return fmt.Errorf("%s has the unfinished move from %s: --replace deletes it", m.t.Endpoint, stored[fieldFrom])
	}
	if stored[fieldDone] != "" && !m.o.Replace {
		m.t.companions.Store(stored[fieldCompanions] != "")
		m.o.log("the data have moved already")
		if err := m.handOver(ctx); err != nil {
			return err
		}
		return errors.Join(m.clean(ctx), errFinished)
	}
	if !m.o.Replace && m.restore(stored) {
		m.o.log("continuing the move where it was")
		m.o.log("what the stream has found at the target before is not known: the values of all keys will be compared")
		m.doubts.all()
		return nil
	}
	m.o.log("the first copy was not complete: it starts again")
	return m.restart(ctx)
}

// restore sets the positions of all sources, if the progress has them.
func (m *move) restore(stored map[string]string) bool {
	m.t.companions.Store(stored[fieldCompanions] != "")
	positions := make([]position, len(m.sources))
	have := 0
	for name, text := range stored {
		if !strings.HasPrefix(name, fieldSource) {
			continue
		}
		have++
		for i, s := range m.sources {
			if name != fieldSource+s.addr && len(m.sources) > 1 {
				continue
			}
			words := strings.Fields(text)
			if len(words) != 3 {
				return false
			}
			positions[i].id = words[0]
			positions[i].offset, _ = strconv.ParseInt(words[1], 10, 64)
			positions[i].db, _ = strconv.Atoi(words[2])
		}
	}
	if have != len(m.sources) {
		return false
	}
	for i, s := range m.sources {
		if positions[i].id == "" {
			return false
		}
		s.reach(positions[i])
		s.copied.Store(true)
	}
	return true
}

// restart empties the target and records that a move has begun.
func (m *move) restart(ctx context.Context) error {
	for _, s := range m.sources {
		s.reach(position{})
		s.copied.Store(false)
	}
	m.t.companions.Store(false)
	m.doubts.reset()
	if err := m.t.empty(ctx); err != nil {
		return err
	}
	if err := m.t.rdb.HSet(ctx, progressKey, fieldFrom, m.o.From.String()).Err(); err != nil {
		return err
	}
	if m.o.LoadLibrary {
		return m.t.loadLibrary(ctx, m.o.Library)
	}
	return nil
}

// journey returns the arguments of the HSET that stores the progress.
func (m *move) journey() []any {
	args := []any{"HSET", progressKey, fieldFrom, m.o.From.String()}
	for _, s := range m.sources {
		if at := s.position(); at.id != "" {
			args = append(args, fieldSource+s.addr, fmt.Sprintf("%s %d %d", at.id, at.offset, at.db))
		}
	}
	if m.t.companions.Load() {
		args = append(args, fieldCompanions, "1")
	}
	return args
}

// save stores the progress.
func (m *move) save(ctx context.Context) error {
	m.saved.Lock()
	defer m.saved.Unlock()
	if m.ended {
		return nil
	}
	return m.t.retry(ctx, func() error { return m.t.rdb.Do(ctx, m.journey()...).Err() })
}

// end ends the application of the streams.
func (m *move) end() {
	m.saved.Lock()
	defer m.saved.Unlock()
	m.ended = true
}

func (m *move) hasEnded() bool {
	m.saved.Lock()
	defer m.saved.Unlock()
	return m.ended
}

// attempts is how often a copy begins in one run.
const attempts = 5

// run copies and follows until the context ends or the cut-over is done.
func (m *move) run(ctx context.Context) error {
	if err := m.begin(ctx); errors.Is(err, errFinished) {
		return nil
	} else if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := m.attempt(ctx)
		if !errors.Is(err, errRestart) || attempt == attempts {
			return err
		}
		m.o.log(err.Error())
		if err := m.restart(ctx); err != nil {
			return err
		}
	}
}

// errFinished ends the goroutines that follow the sources, after the cut-over.
var errFinished = errors.New("the cut-over is done")

// attempt copies what is not copied and follows the sources.
func (m *move) attempt(ctx context.Context) error {
	all := int64(0)
	for _, s := range m.sources {
		for _, d := range databasesOf(s.info) {
			if _, moves := m.dbs.of(d.db); moves {
				all += d.keys
			}
		}
	}
	m.status.begin("copy", all)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var following sync.WaitGroup
	var caught sync.WaitGroup // sources that are copied
	for _, s := range m.sources {
		caught.Add(1)
		following.Go(func() {
			once := sync.OnceFunc(caught.Done)
			defer once()
			if err := m.follow(ctx, s, once); err != nil {
				cancel(err)
			}
		})
	}
	following.Go(func() {
		caught.Wait()
		if context.Cause(ctx) != nil {
			return
		}
		if err := m.finish(ctx); err != nil {
			cancel(err)
		}
	})
	following.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errFinished) {
		return err
	}
	return nil
}

// follow copies the data of a source if necessary, calls copied, and applies its stream
// until the context ends.
func (m *move) follow(ctx context.Context, s *source, copied func()) error {
	a := &applier{
		t: m.t, source: s.index, alone: len(m.sources) == 1, fromZsetd: s.name == "zsetd", dbs: m.dbs,
		facts: server.Commands(), rows: streamRows(), journey: m.journey, changes: &m.changes, doubts: &m.doubts, repaired: &m.repaired, units: map[int]*unit{},
	}
	s.applier = a
	lost := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := m.followLink(ctx, s, a, copied, func() { lost, pause = time.Now(), firstPause })
		var cut linkError
		var refused *psync.RefusedError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case m.hasEnded():
			return nil
		case !errors.As(err, &cut), errors.As(err, &refused) && !refused.Later:
			return fmt.Errorf("%s: %w", s.addr, err)
		case time.Since(lost) > patience:
			return fmt.Errorf("%s: no connection for %v: %w", s.addr, patience, err)
		}
		m.status.note(fmt.Sprintf("connecting to %s again: %v", s.addr, err))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// linkError is an error of the connection with a source, after which another one may
// continue.
type linkError struct{ error }

// Unwrap returns the error.
func (e linkError) Unwrap() error { return e.error }

// followLink is follow for one connection. alive is called when it brings something.
func (m *move) followLink(ctx context.Context, s *source, a *applier, copied, alive func()) error {
	link, stop, err := s.link(ctx)
	if err != nil {
		return linkError{err}
	}
	defer stop()
	if link.Full {
		if s.copied.Load() {
			return fmt.Errorf("%w: %s does not have the rest of its stream (see repl-backlog-size)", errRestart, s.addr)
		}
		m.o.log(fmt.Sprintf("copying from %s", s.addr))
		data, _, err := link.Payload()
		if err != nil {
			return linkError{err}
		}
		if err := m.copy(ctx, &counted{Reader: data, status: &m.status}); err != nil {
			return err
		}
		s.reach(position{id: link.ID, offset: link.Offset})
		s.copied.Store(true)
		if err := m.save(ctx); err != nil {
			return err
		}
		if err := link.Acknowledge(link.Offset, -1); err != nil {
			return linkError{err}
		}
	}
	a.begin(position{link.ID, s.position().offset, s.position().db})
	m.status.note("")
	copied()
	stored := time.Now()
	for {
		batch, err := link.Next()
		if err != nil {
			return linkError{err}
		}
		if m.hasEnded() {
			return nil
		}
		if err := a.apply(ctx, batch, link.Offset); err != nil {
			return err
		}
		alive()
		m.status.read(len(batch.Raw))
		s.reach(a.at)
		for _, c := range batch.Commands {
			if psync.AsksToAcknowledge(c) {
				select {
				case s.ack <- struct{}{}:
				default:
				}
			}
		}
		if time.Since(stored) > time.Second {
			stored = time.Now()
			if err := m.save(ctx); err != nil {
				return err
			}
		}
	}
}

// copy writes the values of an RDB file to the target.
func (m *move) copy(ctx context.Context, r *counted) error {
	c := newCopier(ctx, m.t, &m.status)
	c.start()
	err := readData(r, func(v archive.Value) error {
		db, moves := m.dbs.of(v.DB)
		if !moves || isState(v.Key) {
			return nil
		}
		if db != 0 && m.t.tags != nil {
			return noDatabase(v.DB)
		}
		v.DB = db
		return c.add(v)
	}, func(code string) error { return m.t.loadLibrary(c.ctx, code) })
	if r.err != nil {
		err = fmt.Errorf("%w: %w", errRestart, r.err)
	}
	return c.finish(err)
}

// clean deletes the keys of the move, which has ended.
func (m *move) clean(ctx context.Context) error {
	if m.folds() {
		if err := m.dropCompanions(ctx); err != nil {
			return err
		}
	}
	_, err := m.t.ownKeys(ctx, func(p redis.Pipeliner, key string) { p.Del(ctx, key) })
	return err
}
