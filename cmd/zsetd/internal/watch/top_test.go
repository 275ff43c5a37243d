package watch

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/client"
	"github.com/zsetd/zsetd/server/servertest"
)

func TestCommandUses(t *testing.T) {
	at := time.Unix(100, 0)
	before := parse("cmdstat_get:calls=100,usec=1000,usec_per_call=10.00,rejected_calls=0,failed_calls=0\r\ncmdstat_old:calls=5,usec=5\r\n", at)
	now := parse("cmdstat_get:calls=300,usec=5000,usec_per_call=10.00,rejected_calls=0,failed_calls=4\r\ncmdstat_old:calls=5,usec=5\r\n"+
		"cmdstat_config|set:calls=2,usec=200000,usec_per_call=1.00,rejected_calls=2,failed_calls=0\r\n"+
		"cmdstat_set:calls=0,usec=0,rejected_calls=2,failed_calls=0\r\n", at.Add(2*time.Second))
	all := commandUses(before, now)
	want := []commandUse{
		{name: "config set", calls: 1, failed: 1, cpu: 0.1, micro: 100_000},
		{name: "get", calls: 100, failed: 2, cpu: 0.002, micro: 20},
		{name: "set", failed: 1},
	}
	if len(all) != len(want) {
		t.Fatalf("%+v", all)
	}
	for i := range want {
		if all[i] != want[i] {
			t.Errorf("%+v, want %+v", all[i], want[i])
		}
	}
}

func TestClientUses(t *testing.T) {
	all := clientUses("id=1 addr=a:1 name= age=5 idle=4 cmd=get user=default omem=0 tot-mem=100\nid=2 addr=b:2 name=worker age=90 idle=0 cmd=client|list omem=7 tot-mem=900\n\n")
	if len(all) != 2 || all[0].name != "worker" || all[0].memory != 900 || all[0].output != 7 || all[0].command != "client list" || all[1].idle != 4 {
		t.Errorf("%+v", all)
	}
}

// reports is an output that passes each report to the test.
type reports chan string

func (r reports) Write(b []byte) (int, error) {
	r <- string(b)
	return len(b), nil
}

// A report has the commands, clients and keys since the report before.
func TestTop(t *testing.T) {
	srv := servertest.Run(t)
	c := dial(t, srv)
	ticks := make(chan time.Time)
	ended := make(chan error)
	reports := make(reports)
	go func() {
		ended <- Top(t.Context(), c, reports, ticks, TopOptions{Address: "somewhere:1", Rows: 10, Keys: true, Reports: 3})
	}()
	other := dial(t, srv)
	use := func(words ...string) {
		if r, err := other.Do(words...); err != nil || r.IsError() {
			t.Errorf("%q: %+v, %v", words, r, err)
		}
	}
	use("CLIENT", "SETNAME", "worker")
	ticks <- time.Time{}
	if first := <-reports; strings.Contains(first, "\nzadd ") || !strings.HasPrefix(first, "somewhere:1  up ") {
		t.Errorf("the first report is\n%s", first)
	}
	for range 7 {
		use("ZADD", "due", "1", "a")
		use("INCR", "count")
	}
	ticks <- time.Time{}
	report := <-reports
	ticks <- time.Time{}
	if last := <-reports; strings.Contains(last, "\nzadd ") || !strings.Contains(last, "\"due\"") {
		t.Errorf("the last report is\n%s", last)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 keys", "\nCOMMAND ", "\nzadd ", "\nincr ", "\nCLIENT ", "\nworker 127.0.0.1:", "\nKEY BY CPU ", "\nKEY BY NETWORK ", "\n\"due\" "} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	for line := range strings.Lines(report) {
		if len(line) > 81 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
	if r, err := other.Do("HOTKEYS", "GET"); err != nil || r.Kind != client.Null {
		t.Errorf("the measurement of keys was not forgotten: %+v, %v", r, err)
	}
}

// A measurement of keys that is another's is left alone.
func TestTopKeysInUse(t *testing.T) {
	srv := servertest.Run(t)
	srv.Must("HOTKEYS", "START", "METRICS", 1, "CPU")
	ticks := make(chan time.Time, 1)
	ticks <- time.Time{}
	var out bytes.Buffer
	if err := Top(t.Context(), dial(t, srv), &out, ticks, TopOptions{Rows: 3, Keys: true, Reports: 1}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "\nkeys are not measured: ") || strings.Contains(got, "KEY BY") {
		t.Error(got)
	}
	if srv.Must("HOTKEYS", "GET") == nil {
		t.Error("the measurement has ended")
	}
}

func TestTopEnds(t *testing.T) {
	c := dial(t, servertest.Run(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Top(ctx, c, nil, nil, TopOptions{}); err != nil {
		t.Error(err)
	}
	c.Close()
	if err := Top(ctx, c, nil, nil, TopOptions{}); err == nil {
		t.Error("no error of a closed connection")
	}
}

// A screen is filled, not more.
func TestDraw(t *testing.T) {
	var out bytes.Buffer
	if err := draw(&out, []byte("abcdef\nb\nc\n"), func() (int, int) { return 4, 2 }); err != nil || out.String() != "\x1b[Habcd\x1b[K\nb\x1b[K\x1b[J" {
		t.Errorf("%v, %q", err, out.String())
	}
	if got := quoted(strings.Repeat("k", 100)); len(got) != 50 || !strings.HasSuffix(got, `k..."`) {
		t.Error(got)
	}
}
