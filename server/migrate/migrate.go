package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// Options are what to move, and how.
type Options struct {
	From, To Endpoint

	// Replace empties a target that has keys, or an unfinished move.
	Replace bool

	// Library is the function library that emulates zsetd's commands; LoadLibrary loads
	// it at the target.
	Library     string
	LoadLibrary bool

	// Verify is the number of keys to compare at the end, chosen at random; VerifyAll
	// compares all. The names of all keys are always compared, and the values of keys that
	// a deadline may have changed: see the package comment.
	Verify int

	// CutOver makes the move end when it is closed, or receives a value. Until then it
	// follows the source. Nil never does.
	CutOver <-chan struct{}

	// Hook is a command of the shell that is run when the target is complete and the
	// source refuses writes; "" is none. If it fails, the source accepts writes again,
	// and the move can be continued.
	Hook string

	// Unpause makes the source accept writes again after the cut-over. They are not
	// moved.
	Unpause bool

	// Forward makes the sources, which are zsetd, answer clients that stay from the target
	// after the cut-over (parameter forward-to). They must reach it at its address.
	Forward bool

	// Status, if it is not nil, is called some times a second. Log, if it is not nil,
	// receives the steps. Several goroutines call them, one at a time each.
	Status func(Status)
	Log    func(line string)
}

func (o *Options) log(line string) {
	if o.Log != nil {
		o.Log(line)
	}
}

// ErrStopped is the error of a move whose context has ended. The same call continues it.
var ErrStopped = errors.New("stopped; the same command continues the move")

// statusInterval is the time between two calls of Options.Status.
const statusInterval = 200 * time.Millisecond

// Run moves a data set. Between servers it follows the source until Options.CutOver; if
// one side is a file it ends when the data are written. It may be interrupted at any time
// and called again, with the same endpoints; the package comment says what it continues.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	m := newMove(&o)
	defer m.from.close()
	if o.Status != nil {
		done, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			tick := time.NewTicker(statusInterval)
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-tick.C:
					o.Status(m.status.get())
				}
			}
		}()
		defer func() {
			close(done)
			<-ended
		}()
	}
	err := m.choose(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return ErrStopped
	}
	return err
}

// DisableClientLog makes the client library, go-redis, log nothing in this process: a move
// returns its errors. A program that has no other use for that log calls it once.
func DisableClientLog() { logging.Disable() }

// check refuses endpoints between which nothing can move.
func (o *Options) check() error {
	switch {
	case o.From.IsFile() && o.To.IsFile():
		return errors.New("both are files: zsetd export and zsetd import convert files")
	case o.From.IsFile() && o.From.at.DB == anyDatabase && o.To.at.DB != anyDatabase,
		o.To.at.DB != anyDatabase && o.From.at.DB == anyDatabase && !o.To.at.Cluster:
		return errors.New("a target that names a database needs a source that names one")
	case o.From.String() == o.To.String():
		return errors.New("source and target are the same")
	case o.Forward && (o.From.IsFile() || o.To.IsFile() || o.From.at.DB != anyDatabase || o.To.at.DB != anyDatabase && !o.To.at.Cluster):
		return errors.New("forwarding needs two servers, and no names of databases")
	case o.Forward && o.Unpause:
		return errors.New("a source that forwards does not accept writes of its own")
	}
	return nil
}

// choose moves by the kinds of the endpoints.
func (m *move) choose(ctx context.Context) (err error) {
	if !m.o.To.IsFile() {
		if m.t, err = openTarget(ctx, m.o.To, m.status.note); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.t.close()) }()
	}
	if m.o.From.IsFile() {
		return m.fromFile(ctx)
	}
	if m.sources, err = openSources(ctx, m.o.From); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSources(m.sources)) }()
	for _, s := range m.sources {
		if m.o.Forward && s.name != "zsetd" {
			return fmt.Errorf("%s is %s, which cannot forward", s.addr, s.product)
		}
	}
	if m.o.To.IsFile() {
		return m.toFile(ctx)
	}
	if m.o.LoadLibrary && m.t.major < 7 {
		return fmt.Errorf("%s is %s, which has no functions: it needs 7.0", m.t.Endpoint, m.t.product)
	}
	return m.run(ctx)
}
