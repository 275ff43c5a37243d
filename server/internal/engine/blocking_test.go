package engine_test

import (
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

func TestDeadline(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	now := srv.Keys.Now()
	srv.SetClock(time.UnixMilli(now)) // deadlines are rounded up to milliseconds
	for _, test := range []struct {
		timeout string
		after   int64 // milliseconds; 0 = never
		err     string
	}{
		{timeout: "0"},
		{timeout: "-0.0001"}, // rounds up to zero
		{timeout: "-0.001"},  // slightly below zero
		{timeout: "-0.0011", err: "ERR timeout is negative"},
		{timeout: "-1", err: "ERR timeout is negative"},
		{timeout: "-inf", err: "ERR timeout is negative"},
		{timeout: "1", after: 1000},
		{timeout: "0.0000001", after: 1},
		{timeout: "0.035", after: 35},
		{timeout: "0.0350001", after: 36},
		{timeout: "4.1", after: 4100},
		{timeout: "0x1p-3", after: 125},
		{timeout: "0X.1", after: 63},
		{timeout: "+.5e0", after: 500},
		{timeout: "9223370000000", after: 9223370000000000},
		{timeout: "9223372036854775", err: "ERR timeout is out of range"},
		{timeout: "9223372036854775807", err: "ERR timeout is out of range"},
		{timeout: "9223372036854779", err: "ERR timeout is out of range"},
		{timeout: "inf", err: "ERR timeout is out of range"},
		{timeout: "1e400", err: "ERR timeout is out of range"},
		{timeout: "-1e4932", err: "ERR timeout is negative"},
		{timeout: "1e4933", err: "ERR timeout is not a float or out of range"},
		{timeout: "1e-400", after: 1},
		{timeout: "-1e-400"},
		{timeout: "1e-5000", err: "ERR timeout is not a float or out of range"},
		{timeout: "0.000e-9999"},
		{timeout: "1_0e-400", err: "ERR timeout is not a float or out of range"},
		{timeout: "", err: "ERR timeout is not a float or out of range"},
		{timeout: " 1", err: "ERR timeout is not a float or out of range"},
		{timeout: "nan", err: "ERR timeout is not a float or out of range"},
		{timeout: "1s", err: "ERR timeout is not a float or out of range"},
	} {
		c := &engine.Call{Engine: srv.Engine, Args: protocol.NewArgs([][]byte{[]byte(test.timeout)})}
		got := c.Deadline()
		want := test.after
		if want != 0 {
			want += now
		}
		if got != want || c.Err() != test.err {
			t.Errorf("deadline %q: %d %q, want %d %q", test.timeout, got, c.Err(), want, test.err)
		}
	}
}
