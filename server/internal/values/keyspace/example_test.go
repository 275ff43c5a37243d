package keyspace_test

import (
	"fmt"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/zset"
)

func Example() {
	ks := keyspace.New(1, keyspace.Hooks{
		Expired: func(_ *keyspace.DB, key string) { fmt.Println(key, "has expired") },
	})
	ks.SetNow(1000)
	db := ks.DB(0)
	scores := new(zset.Set)
	scores.Add("ann", 1050)
	db.SetDeadline(db.Add([]byte("scores"), scores), 2000)

	fmt.Println(db.Get([]byte("scores")) != nil)
	ks.SetNow(2001)
	fmt.Println(db.Get([]byte("scores")) != nil)
	// Output:
	// true
	// scores has expired
	// false
}

// A snapshot has the keys as they were, although they change while it is read.
func ExampleKeyspace_Snapshot() {
	ks := keyspace.New(1, keyspace.Hooks{})
	db := ks.DB(0)
	db.AddString([]byte("city"), []byte("Oslo"), false)
	snapshot := ks.Snapshot()
	defer snapshot.Close()

	db.SetString(db.Edit([]byte("city")), []byte("Rome"))
	db.AddString([]byte("another"), []byte("Bern"), false)
	ks.Seal()
	for snapshot.Next(100, time.Millisecond, func(k keyspace.SnapshotKey) {
		fmt.Println(k.DB, k.Key, string(k.Value.(*keyspace.String).Content()))
	}) {
		// Commands run here.
	}
	// Output:
	// 0 city Oslo
}
