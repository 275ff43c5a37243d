package replication

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/peers/psync"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// load receives all data. They come into a keyspace of their own, without the lock, and
// replace the data of the server when they are whole. Until then the server keeps its own and
// serves them, but that it replies -LOADING with repl-diskless-load swapdb if the new ones have
// another history, or with on-empty-db if it has none. With flushdb it has no data meanwhile.
func (l *link) load(in *psync.Link) (err error) {
	e := l.p.engine
	if err := l.locked(func() {
		l.state, l.total = transferring, -1
		l.received.Store(0)
	}); err != nil {
		return err
	}
	payload, length, err := in.Payload()
	if err != nil {
		return err
	}
	var data *keyspace.Keyspace
	var limits engine.LibraryLimits
	progress := &engine.LoadState{Start: time.Now(), Total: max(length, 0)}
	if err := l.locked(func() {
		l.total, l.skip = max(length, 0), e.Config.ReplSkipDamaged
		limits = e.LibraryLimits(engine.LibraryTime)
		limits.Ended = func() bool { return l.ctx.Err() != nil }
		l.p.log.Info("MASTER <-> REPLICA sync: Loading DB in memory", "primary", l.name(), "id", in.ID, "offset", in.Offset, "bytes", length)
		data = e.Keys.Empty()
		data.Frequency.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		switch mode := e.Config.ReplDisklessLoad; {
		case mode == "flushdb":
			l.known, e.Replica.Whole = false, false
			l.p.disconnect()
			e.BeginReplacement(progress, false)
		case mode == "swapdb" && in.ID == e.Identity.ReplID:
			e.Replica.Replacing = true
		case mode == "swapdb", mode == "on-empty-db" && !e.Keys.HasKeys():
			e.BeginReplacement(progress, true)
		}
	}); err != nil {
		return err
	}
	stop := l.every(time.Second, func() error {
		e.OutOfTurn(func() { progress.Done = l.received.Load() })
		return in.KeepAlive()
	})
	keys, db, err := l.read(payload, data)
	var functions engine.Functions
	if err == nil {
		functions = e.CompileLibraries(data, limits)
	}
	stop()
	e.Replica.Incoming.Store(0)
	if err != nil {
		return err
	}
	return l.locked(func() {
		l.adopt(in, data, functions, db)
		l.p.log.Info("MASTER <-> REPLICA sync: Finished with success", "keys", keys, "bytes", l.received.Load(), "seconds", time.Since(progress.Start).Seconds())
	})
}

// adopt makes the data those of the server, as of the beginning of the stream.
func (l *link) adopt(in *psync.Link, data *keyspace.Keyspace, functions engine.Functions, db int) {
	p, e := l.p, l.p.engine
	p.disconnect()
	e.Replace(data, functions)
	e.Replica.Replacing = false
	if in.ID != "" {
		e.Identity.NewReplID(false, 0)
		e.Identity.ReplID = in.ID
	}
	p.offset, p.backlog = max(in.Offset, 0), nil
	l.known, l.db, l.pending = in.ID != "", db, nil
	e.Replica.Whole, l.failures, l.failure = true, 0, nil
}

// countingReader counts what it reads.
type countingReader struct {
	io.Reader
	l *link
}

// Read implements io.Reader.
func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.l.received.Add(int64(n))
	return n, err
}

// mostReserved is the maximum number of keys that a table is made for before they are there:
// some 13 MB. The number that a file announces may be wrong.
const mostReserved = 1 << 20

// read reads an RDB file into a keyspace. It returns the number of keys, and the database
// that the stream has selected.
func (l *link) read(payload io.Reader, data *keyspace.Keyspace) (keys, db int, err error) {
	source := bufio.NewReaderSize(countingReader{payload, l}, rdb.ReadSize)
	codec := rdb.NewCodec(&data.Limits)
	codec.Announced = func(db, n uint64) {
		if db < uint64(data.Len()) && data.DB(int(db)).Len() == 0 {
			data.DB(int(db)).Reserve(int(min(n, mostReserved)))
		}
	}
	owed, due, delays := 0, 1, false // keys since the last delay, and those at which the next one is due
	info, err := codec.ReadFile(source, func(x rdb.Entry) (err error) {
		keys++
		if owed++; owed == due {
			if !delays {
				owed = 1 // not those before the parameter was set
			}
			if due, delays, err = l.delay(owed); err != nil {
				return err
			}
			owed = 0
		}
		if keys%256 == 0 {
			l.p.engine.Replica.Incoming.Store(data.UsedBytes())
		}
		return l.add(x, data)
	})
	if err != nil {
		return keys, 0, err
	}
	if info.StreamDB < 0 || info.StreamDB >= data.Len() {
		return keys, 0, fmt.Errorf("the stream is in database %d: the server has %d databases", info.StreamDB, data.Len())
	}
	switch n, err := io.Copy(io.Discard, source); {
	case err != nil:
		return keys, 0, err
	case n > 0:
		return keys, 0, fmt.Errorf("%d bytes after the end of the data", n)
	}
	return keys, info.StreamDB, nil
}

const (
	// delayPoll is the number of keys, from the first one on, after which the parameter
	// key-load-delay is looked up again.
	delayPoll = 256
	// leastDelay is in microseconds. Shorter delays are waited for together, because a sleep
	// takes a millisecond and more.
	leastDelay = 2000
)

// delay waits as key-load-delay wants it after a number of keys. It returns the number of keys
// until the next call, and whether a delay is wanted; an error if the link was left.
func (l *link) delay(keys int) (next int, delays bool, err error) {
	config.KeyDelay(keys, func() (each int64, wanted bool) {
		err = l.locked(func() { each = l.p.engine.Config.LoadKeyDelay })
		next, delays = delayPoll, each != 0
		if each > 0 {
			next = int(max(1, min(delayPoll, leastDelay/each)))
		}
		return each, err == nil
	})
	return next, delays, err
}

// add adds an entry of the file. Expired keys are added, too: the primary removes them.
func (l *link) add(x rdb.Entry, data *keyspace.Keyspace) error {
	switch {
	case x.Library != "":
		name := rdb.LibraryName(x.Library)
		if name == "" {
			return fmt.Errorf("function library without a name: %.100q", x.Library)
		}
		data.DB(keyspace.InternalDB).Restore(name, keyspace.NewString([]byte(x.Library)), 0)
		return nil
	case x.Module != "":
		l.p.log.Warn("data of a module beside the keys are not replicated", "module", x.Module)
		return nil
	case errors.Is(x.Err, rdb.ErrEmpty):
		return nil // as in Redis
	case x.Err != nil && l.skip:
		l.p.log.Warn("a value of the primary is left out", "key", engine.Clip([]byte(x.Key), 100), "database", x.DB, "error", x.Err)
		return nil
	case x.Err != nil:
		return fmt.Errorf("key %.100q of database %d: %w", x.Key, x.DB, x.Err)
	case x.DB >= uint64(data.Len()):
		return fmt.Errorf("key %.100q of database %d: the server has %d databases", x.Key, x.DB, data.Len())
	}
	db := data.DB(int(x.DB))
	if db.Stored([]byte(x.Key)) != nil {
		return fmt.Errorf("duplicate key %.100q of database %d", x.Key, x.DB)
	}
	db.Restore(x.Key, x.Value, x.Deadline)
	return nil
}
