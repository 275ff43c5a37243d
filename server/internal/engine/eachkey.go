package engine

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// keysPerStep is how many keys an iterator visits in one lock hold.
const keysPerStep = 100

// EachKey returns an iterator over the keys of a database that match a pattern.
func (srv *Engine) EachKey(ctx context.Context, db int, match string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		pattern := glob.Compile([]byte(match), false)
		var keys []string
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			var err error
			keys, cursor, err = srv.nextKeys(ctx, db, &pattern, cursor, keys[:0])
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range keys {
				if !yield(key, nil) {
					return
				}
			}
		}
	}
}

// nextKeys appends the keys at a cursor to keys, and returns the next cursor.
func (srv *Engine) nextKeys(ctx context.Context, db int, pattern *glob.Pattern, cursor uint64, keys []string) (_ []string, next uint64, err error) {
	defer srv.setClosedError(&err)
	if err := srv.Ready(ctx); err != nil {
		return nil, 0, err
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if db < 0 || db >= srv.Keys.Len() {
		return nil, 0, fmt.Errorf("zsetd: there is no database %d", db)
	}
	srv.InTurn(func() {
		from := srv.Keys.DB(db)
		next = from.Scan(cursor, keysPerStep, func(e *keyspace.Entry) {
			if key := e.Key(); pattern.Match(protocol.BytesOf(key)) {
				keys = append(keys, strings.Clone(key))
			}
		})
		// Expired keys are removed now: the table must not change during Scan.
		keys = slices.DeleteFunc(keys, func(key string) bool { return !from.Has(protocol.BytesOf(key)) })
	})
	return keys, next, nil
}
