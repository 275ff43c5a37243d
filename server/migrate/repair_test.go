package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestRepairOf checks what is read in the replies of a transaction of a source, and that nonsense in
// them is an error.
func TestRepairOf(t *testing.T) {
	limits := keyspace.DefaultLimits()
	codec := rdb.NewCodec(&limits)
	payload := string(codec.AppendPayload(nil, keyspace.NewString([]byte("v"))))
	const info = "master_replid:id\r\nmaster_repl_offset:12345678901\r\n"
	now := []any{"1700000000", "654321"}
	for _, test := range []struct {
		major int
		reply []any
		want  string
	}{
		{7, []any{info, now, payload, int64(1 << 44)}, fmt.Sprint("id 12345678901 true ", 1<<44)},
		{7, []any{info, now, payload, int64(-1)}, "id 12345678901 true 0"},
		{7, []any{info, nil, nil, int64(-2)}, "id 12345678901 false 0"},
		{6, []any{info, now, payload, int64(100)}, "id 12345678901 true 1700000000754"},
		{6, []any{info, now, payload, int64(1)}, "id 12345678901 true 1700000000655"},
		{6, []any{info, now, payload, int64(-1)}, "id 12345678901 true 0"},
		{7, []any{"master_replid:id\r\n", now, payload, int64(1)}, "INFO has no master_repl_offset"},
		{6, []any{info, nil, payload, int64(1)}, "unexpected reply of TIME"},
		{6, []any{info, []any{"1"}, payload, int64(1)}, "unexpected reply of TIME"},
		{6, []any{info, []any{"x", "1"}, payload, int64(1)}, "invalid syntax"},
		{6, []any{info, []any{"1", "x"}, payload, int64(1)}, "invalid syntax"},
		{7, []any{info, now, errors.New("ERR dump"), int64(1)}, `key "k": ERR dump`},
		{7, []any{info, now, payload, errors.New("ERR time")}, `key "k": ERR time`},
		{7, []any{info, now, "nonsense", int64(1)}, `key "k": `},
	} {
		s := &source{product: product{"redis", test.major, 0}}
		r, err := s.repairOf(codec, 3, []string{"k"}, test.reply)
		if err != nil {
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q: %v, want %s", test.reply, err, test.want)
			}
			continue
		}
		v := r.values[0]
		if got := fmt.Sprint(r.at.id, " ", r.at.offset, " ", v.Value != nil, " ", v.Deadline); got != test.want || v.Key != "k" || v.DB != 3 {
			t.Errorf("%q: %s, want %s", test.reply, got, test.want)
		}
	}
}

// repairing returns a move whose source and target are servers behind gates.
func repairing(t *testing.T) (m *move, s *source, from, to *gate) {
	t.Helper()
	from, to = gateTo(t, primary(t).Addr()), gateTo(t, servertest.Run(t).Addr())
	m, a := applierTo(t, clientOf(t, to.addr), zsetd86(), nil)
	m.o.From = endpoint(t, "redis://"+from.addr)
	s = &source{Endpoint: m.o.From, product: zsetd86(), addr: from.addr, admin: clientOf(t, from.addr), applier: a}
	m.sources = []*source{s}
	t.Cleanup(func() { m.from.close() })
	fields, err := infoOf(t.Context(), s.admin, "replication")
	if err != nil {
		t.Fatal(err)
	}
	a.begin(position{id: fields["master_replid"]})
	fmt.Sscan(fields["master_repl_offset"], &a.at.offset)
	return m, s, from, to
}

// TestReadOfOlder checks that a source before 7.0, which has no PEXPIRETIME, gives values with their
// deadlines.
func TestReadOfOlder(t *testing.T) {
	_, s, from, _ := repairing(t)
	must(t, s.admin, "SET", "k", "v", "PXAT", 1<<44)
	var calls []string
	for _, major := range []int{6, 7} {
		s.product = product{"redis", major, 2}
		from.set(func(args []string) []string {
			if args[0] == strings.ToUpper(args[0]) { // others are of a new connection
				calls = append(calls, args[0])
			}
			return args
		})
		list, err := s.read(t.Context(), s.admin, 0, []string{"k"})
		if err != nil {
			t.Fatal(err)
		}
		if d := list[0].values[0].Deadline - 1<<44; d < -2 || d > 2 {
			t.Errorf("Redis %d: the deadline is %d ms late", major, d)
		}
	}
	if got := strings.Join(calls, " "); got != "MULTI INFO TIME DUMP PTTL EXEC MULTI INFO TIME DUMP PEXPIRETIME EXEC" {
		t.Errorf("the calls are %s", got)
	}
	from.set(func(args []string) []string {
		switch args[0] {
		case "MULTI":
			return []string{"PING"}
		case "EXEC":
			return []string{"LRANGE", "none", "0", "-1"}
		}
		return args
	})
	if _, err := s.read(t.Context(), s.admin, 0, []string{"k"}); err == nil || !strings.Contains(err.Error(), "unexpected reply of EXEC") {
		t.Errorf("after an empty reply: %v", err)
	}
}

// TestRepairWaits checks that a repair waits for the end of a transaction in the stream, and does not
// hold up the move if another connection begins meanwhile.
func TestRepairWaits(t *testing.T) {
	m, s, _, to := repairing(t)
	must(t, s.admin, "SET", "k", "v")
	m.doubts.all()
	a := s.applier
	a.multi = true
	ended := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	begin := func() {
		go func() { ended <- m.repairFrom(ctx, s, s.admin, 0, []string{"k"}, doubtful) }()
		wait.Until(t, "the repair waits", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return len(a.repairs) == 1
		})
	}
	begin()
	a.begin(a.at)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	a.multi = true
	begin()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	if n := must(t, clientOf(t, to.addr), "EXISTS", "k"); n != int64(0) {
		t.Error("the key was written in the middle of a transaction")
	}
	a.begin(a.at)
	if err := m.repairFrom(t.Context(), s, s.admin, 0, []string{"k"}, doubtful); err != nil {
		t.Error(err)
	}
	if n := must(t, clientOf(t, to.addr), "EXISTS", "k"); n != int64(1) {
		t.Error("the key was not written")
	}
}

// TestRepairErrors checks that a repair ends with the error of each call that a server refuses.
func TestRepairErrors(t *testing.T) {
	m, s, from, to := repairing(t)
	must(t, s.admin, "SET", "k", "v")
	must(t, s.admin, append([]any{"RPUSH", "large"}, some(largeElements+1)...)...)
	for _, test := range []struct {
		at   *gate
		call string
		keys []string
	}{
		{from, "TYPE", []string{"k"}}, {from, "LLEN", []string{"large"}}, {from, "DUMP", []string{"large"}}, {from, "DUMP", []string{"k"}}, {from, "PEXPIRETIME", []string{"k"}},
		{to, "RESTORE", []string{"k"}}, {to, "RESTORE", []string{"large"}}, {to, "DEL", []string{"none"}},
	} {
		m.doubts.all()
		s.applier.begin(s.applier.at)
		fields, err := infoOf(t.Context(), s.admin, "replication")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscan(fields["master_repl_offset"], &s.applier.at.offset)
		test.at.set(func(args []string) []string {
			if strings.EqualFold(args[0], test.call) {
				return failing(refusal)
			}
			return args
		})
		if err := m.repair(t.Context(), 0, test.keys, different); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s of %q is refused: %v", test.call, test.keys, err)
		}
		test.at.set(nil)
	}
	// What is collected is applied first, also in the middle of a batch.
	to.set(func(args []string) []string {
		if strings.EqualFold(args[0], "EVALSHA") {
			return failing(refusal)
		}
		return args
	})
	a := s.applier
	a.begin(position{"s", 100, 0})
	a.repairs = []*repair{{at: position{"s", 110, 0}, values: []archive.Value{{Key: "k"}}, done: make(chan struct{})}}
	if err := a.apply(t.Context(), batchOf("INCR n", "INCR n"), 100); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a batch with a repair: %v", err)
	}
}

// TestRepairDoubts checks that doubtful keys are written again while the sources are followed if they
// are many, until they are few.
func TestRepairDoubts(t *testing.T) {
	m, _, from, to := repairing(t)
	var keys []keyAt
	for i := range manyDoubts + scanCount + 1 {
		keys = append(keys, keyAt{0, fmt.Sprint("k", i)})
	}
	m.doubts.add(keys)
	from.set(func(args []string) []string {
		if strings.EqualFold(args[0], "TYPE") {
			return failing(refusal)
		}
		return args
	})
	if err := m.repairDoubts(t.Context()); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("the types are refused: %v", err)
	}
	from.set(nil)
	must(t, clientOf(t, to.addr), "SET", "k0", 1)
	if err := m.repairDoubts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(m.doubts.keys); n > manyDoubts || n < manyDoubts-scanCount {
		t.Errorf("%d keys are doubtful", n)
	}
}
