package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// The long form of TestObservationsModel:
//
//	go test ./server/internal/tests/differential -run ObservationsModel -observations.n 100000 -observations.seed 0
var (
	observationsN    = flag.Int("observations.n", 600, "`number` of random commands that observations follow")
	observationsSeed = flag.Uint64("observations.seed", 1, "`seed` of the random commands; 0: another each time")
)

// observed is an observation, and the latest reply that it has received.
type observed struct {
	args      []any
	line      string
	unordered bool // the elements of the reply have no order

	mu     sync.Mutex
	latest any
	n      int
}

func (o *observed) state() (any, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest, o.n
}

// TestObservationsModel compares 200 observations of random commands with the replies of the same
// commands, after each of many random commands, transactions, steps of the clock, and restarts.
func TestObservationsModel(t *testing.T) {
	seed := *observationsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -observations.seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	o := server.Options{File: filepath.Join(t.TempDir(), "k.db"), Config: map[string]string{
		"proto-max-bulk-len": "1mb", "query-cpu": "100", "save": "1000000 1",
	}}
	open := func() *server.Server {
		srv, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		return srv
	}
	srv := open()
	defer func() { srv.Close() }()
	commands := slices.DeleteFunc(allCommands(), func(c *protocol.Command) bool {
		return !aboutData(c) && c.Name != "multi" || strings.HasPrefix(c.Name, "function") || strings.HasPrefix(c.Name, "eval") ||
			strings.HasPrefix(c.Name, "fcall") || c.Flags().Has(protocol.Blocking) || c.Name == "migrate"
	})
	reads := slices.DeleteFunc(slices.Clone(commands), func(c *protocol.Command) bool { return !c.Flags().Has(protocol.ReadOnly) })
	writes := slices.DeleteFunc(slices.Clone(commands), func(c *protocol.Command) bool { return !c.Flags().Has(protocol.Write) })
	g, w := newGenerator(r, reads), newGenerator(r, writes)
	var all []*observed
	ctx, cancel := context.WithCancel(t.Context())
	observe := func() {
		ctx, cancel = context.WithCancel(t.Context())
		all = slices.DeleteFunc(all, func(o *observed) bool { return !o.begin(ctx, t, srv) })
	}
	for len(all) < 200 {
		c, argv := g.next()
		if o := newObserved(c, argv); o.begin(ctx, t, srv) {
			all = append(all, o)
		}
	}
	defer func() { cancel() }()
	for i := range *observationsN {
		what := ""
		switch r.IntN(40) {
		case 0:
			d := time.Duration(r.IntN(5000)) * time.Millisecond
			what = fmt.Sprint("advance ", d)
			srv.Advance(d)
		case 1:
			if r.IntN(8) == 0 {
				what = "restart"
				cancel()
				if err := srv.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				srv = open()
				observe()
			}
		default:
			_, argv := w.next()
			what = strings.Join(argv, " ")
			srv.Do(t.Context(), anyOf(argv)...)
		}
		for _, o := range all {
			if err := o.check(t.Context(), srv); err != nil {
				t.Fatalf("after command %d, %.300q: %v", i, what, err)
			}
		}
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}

func newObserved(c *protocol.Command, argv []string) *observed {
	return &observed{args: anyOf(argv), line: strings.Join(argv, " "), unordered: slices.Contains(c.Tips(), "nondeterministic_output_order")}
}

func anyOf(argv []string) (args []any) {
	for _, a := range argv {
		args = append(args, a)
	}
	return args
}

// begin begins an observation, unless the command cannot be one.
func (o *observed) begin(ctx context.Context, t *testing.T, srv *server.Server) bool {
	observation, err := srv.Observe(ctx, o.args...)
	if err != nil {
		if _, refused := errors.AsType[protocol.ReplyError](err); !refused {
			t.Fatal(err)
		}
		return false
	}
	o.latest, o.n = nil, 0
	go func() {
		for reply, err := range observation.Replies() {
			if e, failed := errors.AsType[protocol.ReplyError](err); failed {
				reply = e
			} else if err != nil {
				return
			}
			o.mu.Lock()
			o.latest = reply
			o.n++
			o.mu.Unlock()
		}
	}()
	return true
}

// shown returns a reply for a comparison.
func (o *observed) shown(reply any) string {
	list, ok := reply.([]any)
	switch reply := reply.(type) {
	case protocol.Set:
		list, ok = reply, true
	case protocol.Map:
		ok = true
		for _, pair := range reply {
			list = append(list, pair)
		}
	}
	if !ok || !o.unordered {
		return fmt.Sprintf("%T %v", reply, reply)
	}
	var words []string
	for _, v := range list {
		words = append(words, fmt.Sprintf("%T %v", v, v))
	}
	slices.Sort(words)
	return strings.Join(words, "\n")
}

// check compares the latest reply with that of the command.
func (o *observed) check(ctx context.Context, srv *server.Server) error {
	var want any
	same := wait.Holds(func() bool {
		reply, err := srv.Do(ctx, o.args...)
		if e, failed := errors.AsType[protocol.ReplyError](err); failed {
			reply = e
		}
		want = reply
		got, n := o.state()
		return n > 0 && o.shown(got) == o.shown(want)
	})
	if !same {
		got, n := o.state()
		return fmt.Errorf("%.200q: reply %d is %.300s, want %.300s", o.line, n, o.shown(got), o.shown(want))
	}
	return nil
}
