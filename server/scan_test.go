package server

import (
	"errors"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/zset"
)

// scanned returns Scan for a type, with its result as any.
func scanned[T any](reply any) func() (any, error) {
	return func() (any, error) { return Scan[T](reply, nil) }
}

type scanUser struct {
	Name   string
	Age    int      `redis:"years,omitempty"`
	Left   *float64 `redis:"left"`
	Absent string
	Not    string `redis:"-"`
}

type scanEntry struct {
	ID     string
	Fields map[string]string
}

func TestScan(t *testing.T) {
	wrong := protocol.ReplyError("WRONGTYPE for the test")
	half := 0.5
	for i, c := range []struct {
		scan func() (any, error)
		want any // or the beginning of an error
	}{
		{scanned[string]("a"), "a"},
		{scanned[string](protocol.Status("OK")), "OK"},
		{scanned[string](protocol.BigNumber("123456789012345678901")), "123456789012345678901"},
		{scanned[string](int64(-5)), "-5"},
		{scanned[string](2.5), "2.5"},
		{scanned[ownString]("a"), ownString("a")},
		{scanned[[]byte]("a"), []byte("a")},
		{scanned[int](int64(5)), 5},
		{scanned[int8]("-128"), int8(-128)},
		{scanned[uint16](int64(65535)), uint16(65535)},
		{scanned[float64](2.5), 2.5},
		{scanned[float64](int64(2)), 2.0},
		{scanned[float32]("0.5"), float32(0.5)},
		{scanned[float64]("-inf"), math.Inf(-1)},
		{scanned[bool](true), true},
		{scanned[bool](int64(1)), true},
		{scanned[bool]("0"), false},
		{scanned[any](int64(5)), int64(5)},
		{scanned[netip.Addr](string([]byte{127, 0, 0, 1})), netip.MustParseAddr("127.0.0.1")},
		{scanned[*int](int64(5)), new(5)},
		{scanned[*int](nil), (*int)(nil)},
		{scanned[any](nil), nil},
		{scanned[[]string](nil), []string(nil)},
		{scanned[map[string]int](nil), map[string]int(nil)},
		{scanned[[]string]([]any{"a", int64(1)}), []string{"a", "1"}},
		{scanned[[]string](protocol.Set{"a"}), []string{"a"}},
		{scanned[[]string](protocol.Push{"a"}), []string{"a"}},
		{scanned[[]string]([]any{}), []string{}},
		{scanned[[]*string]([]any{"a", nil}), []*string{new("a"), nil}},
		{scanned[[2]int]([]any{int64(1), "2"}), [2]int{1, 2}},
		{scanned[[]zset.Element]([]any{[]any{"a", 1.5}, []any{"b", 2.0}}), []zset.Element{{Member: "a", Score: 1.5}, {Member: "b", Score: 2}}},
		{scanned[[]scanEntry]([]any{[]any{"1-1", []any{"f", "v", "g", "w"}}}), []scanEntry{{"1-1", map[string]string{"f": "v", "g": "w"}}}},
		{scanned[map[string]int](protocol.Map{{Key: "a", Value: "1"}, {Key: "b", Value: int64(2)}}), map[string]int{"a": 1, "b": 2}},
		{scanned[scanUser](protocol.Map{{Key: "NAME", Value: "ann"}, {Key: "years", Value: "41"}, {Key: "left", Value: "0.5"}, {Key: "other", Value: "x"},
			{Key: "not", Value: "x"}}), scanUser{Name: "ann", Age: 41, Left: &half}},

		{scanned[string](nil), ErrNull},
		{scanned[scanEntry](nil), ErrNull},
		{scanned[string](wrong), wrong},
		{scanned[[]string]([]any{"a", wrong}), "element 1: WRONGTYPE"},
		{scanned[[]int]([]any{"1", nil}), "element 1: zsetd: the reply is null"},
		{scanned[int]("five"), `zsetd: cannot convert "five" to int: invalid syntax`},
		{scanned[int8](int64(128)), `zsetd: cannot convert "128" to int8: value out of range`},
		{scanned[uint](int64(-1)), `zsetd: cannot convert "-1" to uint: invalid syntax`},
		{scanned[int](2.5), "zsetd: cannot convert a reply of type float64 to int"},
		{scanned[bool]("yes"), "zsetd: cannot convert a reply of type string to bool"},
		{scanned[int](true), "zsetd: cannot convert a reply of type bool to int"},
		{scanned[string]([]any{"a"}), "zsetd: cannot convert a reply of type []interface {} to string: it has 1 elements"},
		{scanned[[3]int]([]any{"1"}), "zsetd: cannot convert a reply of type []interface {} to [3]int: it has 1 elements"},
		{scanned[map[string]string]([]any{"a"}), "zsetd: cannot convert a reply of type []interface {} to map[string]string: it has 1 elements"},
		{scanned[zset.Element]([]any{"a"}), "zsetd: cannot convert a reply of type []interface {} to zset.Element: it has 1 elements"},
		{scanned[[]string](protocol.Map{}), "zsetd: cannot convert a reply of type protocol.Map to []string"},
		{scanned[map[int]string](protocol.Map{{Key: "a", Value: "b"}}), `a key of the map: zsetd: cannot convert "a" to int`},
		{scanned[map[any]int](protocol.Map{{Key: []any{"a"}, Value: "1"}}), "zsetd: cannot convert a reply of type []interface {} to a key of map[interface {}]int"},
		{scanned[map[string]int](protocol.Map{{Key: "a", Value: "b"}}), `the value of a: zsetd: cannot convert "b" to int`},
		{scanned[scanUser](protocol.Map{{Key: "years", Value: "b"}}), `field years: zsetd: cannot convert "b" to int`},
		{scanned[error]("a"), "zsetd: cannot convert a reply of type string to error"},
		{scanned[chan int]("a"), "zsetd: cannot convert a reply of type string to chan int"},
		{scanned[netip.Addr]("12345"), "unexpected slice size"},
	} {
		got, err := c.scan()
		switch want := c.want.(type) {
		case error:
			if !errors.Is(err, want) {
				t.Errorf("%d: %v, %v, want the error %v", i, got, err, want)
			}
			continue
		case string:
			if err != nil {
				if !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%d: %v, want the error %s", i, err, want)
				}
				continue
			}
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d: %#v, %v, want %#v", i, got, err, c.want)
		}
	}
	if n, err := Scan[int](int64(1), ErrServerClosed); n != 0 || err != ErrServerClosed {
		t.Errorf("with the error of a call: %v, %v", n, err)
	}
}

// Replies of a server have the types that Scan's documentation names.
func TestScanOfServer(t *testing.T) {
	srv := openForTest(t, Options{})
	ctx := t.Context()
	mustDo(t, srv, "ZADD", "z", 1, "a", 2, "b")
	mustDo(t, srv, "HSET", "user", "name", "ann", "years", 41)
	mustDo(t, srv, "XADD", "s", "1-1", "f", "v")
	if got, err := Scan[[]zset.Element](srv.Do(ctx, "ZRANGE", "z", 0, -1, "WITHSCORES")); err != nil || len(got) != 2 || got[1].Score != 2 {
		t.Errorf("ZRANGE: %v, %v", got, err)
	}
	if got, err := Scan[zset.Element](srv.Do(ctx, "ZPOPMIN", "z")); err != nil || got.Member != "a" {
		t.Errorf("ZPOPMIN: %v, %v", got, err)
	}
	if got, err := Scan[scanUser](srv.Do(ctx, "HGETALL", "user")); err != nil || got.Age != 41 {
		t.Errorf("HGETALL: %v, %v", got, err)
	}
	if got, err := Scan[[]scanEntry](srv.Do(ctx, "XRANGE", "s", "-", "+")); err != nil || got[0].Fields["f"] != "v" {
		t.Errorf("XRANGE: %v, %v", got, err)
	}
	if _, err := Scan[string](srv.Do(ctx, "GET", "none")); err != ErrNull {
		t.Errorf("GET: %v", err)
	}
	if got, err := Scan[map[string]int](srv.Do(ctx, "CONFIG", "GET", "databases")); err != nil || got["databases"] != 16 {
		t.Errorf("CONFIG GET: %v, %v", got, err)
	}
}
