package rdb

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// largeValues returns values of all kinds that have parts, each of more than 200 KB in a file.
func largeValues(c *Codec) map[string]any {
	list, set, hash, sorted, stream := new(sequence.List), new(keyspace.Set), new(keyspace.Hash), new(zset.Set), new(sequence.Stream)
	group := stream.AddGroup([]byte("g"), sequence.StreamID{}, 0)
	consumer := group.AddConsumer([]byte("c"), 7)
	for i := range 20_000 {
		b := fmt.Appendf(nil, "element:%d", i)
		list.PushBack(b)
		set.Add(c.Limits, keyspace.MemberOf(b))
		hash.Set(b, b, c.Limits)
		sorted.Add(string(b), float64(i))
		if i%2 == 0 {
			sorted.SetDeadline(string(b), int64(1+i))
		}
		id := sequence.StreamID{Ms: uint64(1 + i)}
		stream.Add(id, [][]byte{b, b}, c.Limits.Stream)
		group.Deliver(consumer, id, 5, 1)
	}
	return map[string]any{"list": list, "set": set, "hash": hash, "sorted": sorted, "stream": stream}
}

// TestWriteKey checks that the parts of a large value are those of AppendDeadlines and
// AppendKey, that each is small, and that the checksum includes them.
func TestWriteKey(t *testing.T) {
	c := newTestCodec()
	for key, v := range largeValues(c) {
		whole, parts := NewWriter(c, Replica), NewWriter(c, Replica)
		want := whole.AppendEnd(whole.AppendKey(whole.AppendDeadlines(whole.AppendHead(nil), v), 1, key, v, 5))
		var got []byte
		n := 0
		rest, err := parts.WriteKey(parts.AppendHead(nil), func(b []byte) error {
			if n++; len(b) > 3*spillBytes {
				t.Errorf("%s: a part of %d bytes", key, len(b))
			}
			got = append(got, b...)
			return nil
		}, 1, key, v, 5)
		if got = parts.AppendEnd(append(got, rest...)); err != nil || n < 3 || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes in %d parts, want %d bytes; %v", key, len(got), n, len(want), err)
		}
		for fail := range n {
			failed, calls := errors.New("no space"), 0
			_, err := NewWriter(c, Replica).WriteKey(nil, func([]byte) error {
				if calls++; calls > fail {
					return failed
				}
				return nil
			}, 1, key, v, 5)
			if err != failed || calls != fail+1 {
				t.Errorf("%s: %v after %d calls, want the error of call %d", key, err, calls, fail+1)
			}
		}
	}
}

// A file announces the number of keys of each database, and of those with deadlines, which
// the reader of the file may use.
func TestAnnounced(t *testing.T) {
	limits := keyspace.DefaultLimits()
	c := NewCodec(&limits)
	w := NewWriter(c, Replica)
	file := w.AppendSize(w.AppendHead(nil), 3, 70_000, 2)
	file = w.AppendKey(file, 3, "key", keyspace.NewString([]byte("value")), 0)
	file = w.AppendEnd(w.AppendSize(file, 1, 0, 0))
	var got []uint64
	keys := 0
	c.Announced = func(db, n uint64) { got = append(got, db, n) }
	if _, err := c.ReadFile(bytes.NewReader(file), func(e Entry) error {
		if keys++; e.DB != 3 || e.Key != "key" {
			t.Errorf("key %q of database %d", e.Key, e.DB)
		}
		return nil
	}); err != nil || keys != 1 {
		t.Fatalf("%d keys, %v", keys, err)
	}
	if want := []uint64{3, 70_000, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("announced %d, want %d", got, want)
	}
}
