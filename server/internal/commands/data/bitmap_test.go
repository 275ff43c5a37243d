package data_test

import (
	"testing"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// TestSetbitIsSmall checks that SETBIT in a long string neither copies the string nor
// journals all of it.
func TestSetbitIsSmall(t *testing.T) {
	ks := keyspace.New(1, keyspace.Hooks{})
	ks.Record(true)
	db := ks.DB(0)
	e := db.Add([]byte("k"), keyspace.RawString(make([]byte, 8<<20)))
	ks.TakeJournal()
	e, _ = db.WriteString(e, 0, []byte{1}) // the journal still has the string as it was: this copies it
	content := &e.Value().(*keyspace.String).Content()[0]
	for i := range 100 {
		e, _ = db.WriteString(e, i*1000, []byte{1})
	}
	if n := ks.Recorded(); n > 4000 {
		t.Errorf("100 bytes changed, %d in the journal", n)
	}
	if &e.Value().(*keyspace.String).Content()[0] != content {
		t.Error("the string was copied")
	}
}
