package keyspace_test

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/keyspace"
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
