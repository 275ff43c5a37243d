package persist_test

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// BenchmarkTake measures the lock hold for a checkpoint of 100 000 changed keys.
func BenchmarkTake(b *testing.B) {
	srv, err := enginetest.New(engine.Options{File: filepath.Join(b.TempDir(), "take.db"), Config: map[string]string{"save": "3600 100000000"}})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	if err := srv.Ready(context.Background()); err != nil {
		b.Fatal(err)
	}
	var longest, sum time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		srv.InTurn(func() {
			db := srv.Keys.DB(0)
			for i := range 100_000 {
				key := "key:" + strconv.Itoa(i)
				e := db.Edit(protocol.BytesOf(key))
				if e == nil {
					e = db.AddString(protocol.BytesOf(key), nil, false)
				}
				db.SetString(e, protocol.BytesOf(strconv.Itoa(n)))
			}
			srv.Keys.Seal()
		})
		b.StartTimer()
		var took time.Duration
		srv.InTurn(func() {
			start := time.Now()
			srv.Keeper.Take()
			took = time.Since(start)
		})
		b.StopTimer()
		srv.Keeper.Flush()
		srv.InTurn(func() { srv.Keeper.Account() })
		b.StartTimer()
		longest, sum, n = max(longest, took), sum+took, n+1
	}
	b.ReportMetric(float64(sum.Nanoseconds())/float64(n), "ns/take")
	b.ReportMetric(float64(longest.Nanoseconds()), "ns/longest")
}
