package server

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// BenchmarkTake measures the lock hold for a checkpoint of 100 000 changed keys.
func BenchmarkTake(b *testing.B) {
	srv, err := New(Options{File: filepath.Join(b.TempDir(), "take.db"), Config: map[string]string{"save": "3600 100000000"}})
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
		srv.do(func() {
			db := srv.keys.DB(0)
			for i := range 100_000 {
				key := "key:" + strconv.Itoa(i)
				e := db.Edit(bytesOf(key))
				if e == nil {
					e = db.AddString(bytesOf(key), nil, false)
				}
				db.SetString(e, bytesOf(strconv.Itoa(n)))
			}
			srv.keys.Seal()
		})
		b.StartTimer()
		var took time.Duration
		srv.do(func() {
			start := time.Now()
			srv.keeper.take()
			took = time.Since(start)
		})
		b.StopTimer()
		srv.keeper.flush()
		srv.do(func() { srv.keeper.account() })
		b.StartTimer()
		longest, sum, n = max(longest, took), sum+took, n+1
	}
	b.ReportMetric(float64(sum.Nanoseconds())/float64(n), "ns/take")
	b.ReportMetric(float64(longest.Nanoseconds()), "ns/longest")
}
