package keyspace

import (
	"fmt"
	"testing"
)

// set sets strings to their names, and ends the command.
func set(ks *Keyspace, keys ...string) {
	for _, key := range keys {
		ks.DB(0).Put([]byte(key), NewString([]byte(key)), false)
	}
	ks.Seal()
}

// A rollback leaves nothing in the journal and in the list of effects, also of values that are pinned there.
func TestRollbackOfRecords(t *testing.T) {
	for _, before := range []bool{false, true} {
		for _, large := range []bool{false, true} {
			t.Run(fmt.Sprint(before, large), func(t *testing.T) {
				ks := New(1, Hooks{})
				ks.Record(true)
				ks.Follow(true)
				effects, n := "", 0
				if before {
					set(ks, "a")
					effects, n = "0 a N Sa;", 1
				}
				ks.Savepoint()
				set(ks, "a", "b")
				if large {
					ks.DB(0).Put([]byte("l"), NewString(make([]byte, 2*pinBytes)), false)
				}
				set(ks, "c")
				ks.Rollback()
				set(ks, "d")
				if got := described(ks.TakeEffects()); got != effects+"0 d N Sd;" {
					t.Errorf("effects %s", got)
				}
				if got := records(t, ks.TakeJournal()); got != n+1 {
					t.Errorf("%d records", got)
				}
			})
		}
	}
}

// A key gets back what is not its value: when it was used, its deadline, and on a standby that the
// deadline is the standby's own.
func TestRollbackOfAccess(t *testing.T) {
	ks := New(1, Hooks{})
	ks.SetNow(1000)
	ks.Standby(true)
	db := ks.DB(0)
	db.SetDeadline(db.AddString([]byte("a"), []byte("a"), false), 5000)
	ks.Seal()
	ks.SetNow(3000)
	ks.Savepoint()
	set(ks, "a")
	ks.Rollback()
	if e := db.Peek([]byte("a")); e.access != 1 || e.Deadline() != 5000 {
		t.Errorf("used at %d s, expires at %d", e.access, e.Deadline())
	}
	ks.SetNow(6000)
	if ks.Sweep(1); db.Len() != 0 {
		t.Error("the standby keeps a key that has a deadline of its own")
	}
}

// A keyspace has one savepoint at a time.
func TestSavepointTwice(t *testing.T) {
	ks := New(1, Hooks{})
	ks.Savepoint()
	ks.Release()
	ks.Savepoint()
	defer func() {
		if recover() == nil {
			t.Error("a second savepoint")
		}
	}()
	ks.Savepoint()
}
