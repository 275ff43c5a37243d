package keyspace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/internal/values/sequence"
	"github.com/zsetd/zsetd/zset"
)

// snapshotKey is a key in a database of a snapshot.
type snapshotKey struct {
	db  int
	key string
}

// databases returns the contents of all databases by their numbers.
func databases(ks *Keyspace) map[snapshotKey]content {
	all := map[snapshotKey]content{}
	for i := InternalDB; i < ks.Len(); i++ {
		for e := range ks.DB(i).entries.all() {
			all[snapshotKey{i, e.Key()}] = contentOf(e.Value(), e.Deadline(), &ks.Limits)
		}
	}
	return all
}

// reading is a snapshot that is being read, with the expected content.
type reading struct {
	*Snapshot
	t      *testing.T
	limits *Limits
	want   map[snapshotKey]content
	seen   map[snapshotKey]bool
	late   map[snapshotKey]chan content // values that are read later, by other goroutines
}

func read(t *testing.T, ks *Keyspace) *reading {
	limits := ks.Limits
	return &reading{
		Snapshot: ks.Snapshot(), t: t, limits: &limits, want: databases(ks),
		seen: map[snapshotKey]bool{}, late: map[snapshotKey]chan content{},
	}
}

func (r *reading) visit(k SnapshotKey) {
	r.t.Helper()
	at := snapshotKey{k.DB, k.Key}
	want, ok := r.want[at]
	switch {
	case !ok:
		r.t.Fatalf("%v did not exist: %T until %d", at, k.Value, k.Deadline)
	case r.seen[at]:
		r.t.Fatalf("%v is visited twice", at)
	}
	r.seen[at] = true
	if !k.Shared {
		r.same(at, contentOf(k.Value, k.Deadline, r.limits), want)
		return
	}
	c := make(chan content, 1)
	r.late[at] = c
	go func() { c <- contentOf(k.Value, k.Deadline, r.limits) }()
}

func (r *reading) same(at snapshotKey, got, want content) {
	r.t.Helper()
	if !reflect.DeepEqual(got, want) {
		r.t.Fatalf("%v is %s until %d, %s, %.200q, want %s until %d, %s, %.200q",
			at, got.kind, got.deadline, got.encoding, got.items, want.kind, want.deadline, want.encoding, want.items)
	}
}

// next is Snapshot.Next with all checks after the last key.
func (r *reading) next(n int, budget time.Duration) (more bool) {
	r.t.Helper()
	if r.Next(n, budget, r.visit) {
		return true
	}
	r.joined()
	for at, want := range r.want {
		if !r.seen[at] {
			r.t.Fatalf("%v is not visited: %s until %d", at, want.kind, want.deadline)
		}
	}
	r.closed()
	return false
}

// joined waits for the goroutines that read values.
func (r *reading) joined() {
	r.t.Helper()
	for at, c := range r.late {
		r.same(at, <-c, r.want[at])
	}
	clear(r.late)
}

// closed checks a snapshot that has ended.
func (r *reading) closed() {
	r.t.Helper()
	if r.Saved() != 0 || r.Next(1, time.Hour, r.visit) || r.ks.snapshot != nil {
		r.t.Fatalf("a closed snapshot has %d bytes", r.Saved())
	}
	for i := InternalDB; i < r.ks.Len(); i++ {
		if r.ks.DB(i).snapshot != nil {
			r.t.Fatalf("database %d is in a closed snapshot", i)
		}
	}
}

// all reads the rest of a snapshot.
func (r *reading) all() {
	r.t.Helper()
	for r.next(1+len(r.want)/7, time.Hour) {
	}
}

// snapshotFixture returns a keyspace with a key of each kind and size in database 0,
// all with a deadline at 1000, two keys in database 1, and an internal one.
func snapshotFixture() *Keyspace {
	ks := New(3, Hooks{})
	ks.SetNow(100)
	db := ks.DB(0)
	add := func(name string, value any) {
		db.SetDeadline(db.Add([]byte(name), value), 1000)
	}
	for name, n := range map[string]int{"": 3, "medium ": 100, "large ": pinAt + 10} {
		l, s, z := new(sequence.List), new(Set), new(zset.Set)
		h, x := new(Hash), new(sequence.Stream)
		for i := range n {
			b := fmt.Append(nil, "element ", i)
			l.PushBack(b)
			s.Add(&ks.Limits, MemberOf(b))
			h.Set(b, b, &ks.Limits)
			z.Add(string(b), float64(i))
			x.Add(sequence.StreamID{Ms: uint64(i) + 1, Seq: 0}, [][]byte{b, b}, ks.Limits.Stream)
		}
		l.Fit(ks.Limits.ListMaxListpackSize)
		add(name+"string", NewString(make([]byte, n*n)))
		add(name+"list", l)
		add(name+"set", s)
		add(name+"hash", h)
		add(name+"zset", z)
		add(name+"stream", x)
		h, z = new(Hash), new(zset.Set)
		for i := range n {
			b := fmt.Append(nil, "element ", i)
			h.Set(b, b, &ks.Limits)
			z.Add(string(b), float64(i))
			h.SetDeadlineBytes(b, int64(200+i%2))
			z.SetDeadline(string(b), int64(200+i%2))
		}
		add(name+"hash of deadlines", h)
		add(name+"zset of deadlines", z)
	}
	ks.DB(1).AddString([]byte("string"), []byte("of database 1"), false)
	ks.DB(1).AddString([]byte("another"), []byte("of database 1"), false)
	ks.DB(InternalDB).AddString([]byte("string"), []byte("internal"), false)
	ks.Seal()
	return ks
}

// eachKey calls do with every key of a database, of which some may be gone.
func eachKey(db *DB, do func(key []byte)) {
	var keys []string
	for e := range db.entries.all() {
		keys = append(keys, e.Key())
	}
	slices.Sort(keys)
	for _, key := range keys {
		do([]byte(key))
	}
}

// snapshotChanges are the ways in which keys change.
var snapshotChanges = map[string]func(ks *Keyspace){
	"Edit": func(ks *Keyspace) {
		c := &client{r: rand.New(rand.NewPCG(1, 1)), ks: ks}
		eachKey(ks.DB(0), func(key []byte) {
			e := ks.DB(0).Edit(key)
			if e.kind() == isString {
				e = ks.DB(0).SetString(e, []byte("changed"))
				ks.DB(0).AppendString(e, []byte("changed"))
				return
			}
			e = ks.DB(0).Unpacked(e)
			if c.many(e.Value()); sizeOf(e.Value()) == 0 && e.kind() != isStream {
				ks.DB(0).Delete(key)
			}
		})
	},
	"Edit of the internal database": func(ks *Keyspace) {
		db := ks.DB(InternalDB)
		db.WriteString(db.Edit([]byte("string")), 1, []byte("changed"))
		db.AddString([]byte("new"), nil, false)
	},
	"members": func(ks *Keyspace) {
		db := ks.DB(0)
		eachKey(db, func(key []byte) {
			e, b := db.Edit(key), []byte("element 1")
			switch e.kind() {
			case isHash:
				e, _ = db.SetField(e, b, key)
				db.DeleteField(e, []byte("element 2"))
			case isSet:
				e, _ = db.AddMember(e, MemberOf(key))
				db.RemoveMember(e, MemberOf(b))
			}
		})
	},
	"Put":        func(ks *Keyspace) { eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Put(key, NewString(key), false) }) },
	"Put string": func(ks *Keyspace) { ks.DB(0).Put([]byte("new"), NewString(nil), true) },
	"Delete":     func(ks *Keyspace) { eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Delete(key) }) },
	"Evict":      func(ks *Keyspace) { eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Evict(ks.DB(0).Stored(key)) }) },
	"Delete and Add": func(ks *Keyspace) {
		eachKey(ks.DB(0), func(key []byte) {
			ks.DB(0).Delete(key)
			ks.DB(0).AddString(key, nil, true)
		})
	},
	"Delete, Add and Delete": func(ks *Keyspace) {
		for range 2 {
			eachKey(ks.DB(0), func(key []byte) {
				ks.DB(0).Delete(key)
				ks.DB(0).AddSet(key, 0)
				ks.DB(0).Delete(key)
				ks.DB(0).AddHash(key, 10)
			})
		}
		eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Delete(key) })
	},
	"SetDeadline": func(ks *Keyspace) {
		at := int64(0)
		eachKey(ks.DB(0), func(key []byte) {
			ks.DB(0).SetDeadline(ks.DB(0).Peek(key), at%3*500)
			at++
		})
	},
	"Move": func(ks *Keyspace) {
		eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Move(ks.DB(0).Peek(key), ks.DB(1), key) })
	},
	"Move back and forth": func(ks *Keyspace) {
		eachKey(ks.DB(0), func(key []byte) {
			e := ks.DB(0).Move(ks.DB(0).Peek(key), ks.DB(2), key)
			if e = ks.DB(2).Move(e, ks.DB(0), key); e.kind() == isList {
				e.Value().(*sequence.List).PopFront()
			}
		})
	},
	"rename": func(ks *Keyspace) {
		eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Move(ks.DB(0).Edit(key), ks.DB(0), []byte("name")) })
	},
	"expiry by a reader": func(ks *Keyspace) {
		ks.SetNow(1001)
		eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Get(key) })
	},
	"expiry of members by a reader": func(ks *Keyspace) {
		ks.SetNow(201)
		eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Peek(key) })
	},
	"Purge": func(ks *Keyspace) {
		ks.SetNow(201)
		eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Purge(key, 1) })
		ks.SetNow(202)
		eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Purge(key, math.MaxInt) })
	},
	"Sweep": func(ks *Keyspace) {
		for ks.SetNow(201); ks.Sweep(1) > 0; {
		}
		for ks.SetNow(1001); ks.Sweep(1) > 0; {
		}
	},
	"Clear": func(ks *Keyspace) {
		for _, db := range ks.dbs {
			db.Clear()
			db.AddString([]byte("string"), nil, false)
			db.Clear()
			db.AddString([]byte("string"), nil, false)
		}
	},
	"change and Clear": func(ks *Keyspace) {
		db := ks.DB(0)
		e := db.Edit([]byte("large zset"))
		db.Delete([]byte("list"))
		db.AddString([]byte("new"), nil, false)
		db.Clear()
		e.Value().(*zset.Set).Clear()
	},
	"Swap": func(ks *Keyspace) {
		ks.Swap(0, 2)
		ks.Swap(2, 1)
		ks.DB(1).Delete([]byte("string"))
		ks.DB(0).AddString([]byte("string"), nil, false)
		ks.DB(2).Clear()
		ks.Swap(1, 1)
	},
	"Adopt": func(ks *Keyspace) {
		from := snapshotFixture()
		from.DB(0).Delete([]byte("list"))
		from.DB(InternalDB).Put([]byte("string"), NewString([]byte("adopted")), false)
		from.Seal()
		ks.Adopt(from)
		ks.DB(0).Delete([]byte("string"))
		ks.DB(InternalDB).Delete([]byte("string"))
	},
	"Restore": func(ks *Keyspace) {
		for i := range 1000 {
			ks.DB(i%3).Restore(fmt.Sprint("new ", i), NewString(nil), 500)
		}
	},
}

// TestSnapshotChanges changes the keys of a snapshot in every way, at its beginning, in
// the middle, and at its end.
func TestSnapshotChanges(t *testing.T) {
	for name, change := range snapshotChanges {
		for _, visited := range []int{0, 1, 5, 12, 20, 26, 27} {
			t.Run(fmt.Sprint(name, " ", visited), func(t *testing.T) {
				ks := snapshotFixture()
				ks.Record(visited%2 == 0)
				r := read(t, ks)
				for range visited {
					if !r.next(1, time.Hour) {
						t.Fatal("no key is left")
					}
				}
				before := databases(ks)
				change(ks)
				ks.Seal()
				if reflect.DeepEqual(databases(ks), before) {
					t.Fatal("nothing has changed")
				}
				if err := ks.Check(); err != nil {
					t.Fatal(err)
				}
				r.all()
				if err := ks.Check(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestSnapshotShared checks which values of an unchanged keyspace are clones.
func TestSnapshotShared(t *testing.T) {
	ks := snapshotFixture()
	s := ks.Snapshot()
	for s.Next(5, time.Hour, func(k SnapshotKey) {
		if large := strings.HasPrefix(k.Key, "large "); k.Shared != large {
			t.Errorf("%q: shared %v", k.Key, k.Shared)
		}
		if e := ks.DB(k.DB).Stored([]byte(k.Key)); (e.Value() == k.Value) == k.Shared {
			t.Errorf("%q: shared %v, and the value is the current one", k.Key, k.Shared)
		}
	}) {
	}
}

// TestSnapshotReads checks that readers save nothing, nor changes of visited keys.
func TestSnapshotReads(t *testing.T) {
	ks := snapshotFixture()
	r := read(t, ks)
	eachKey(ks.DB(0), func(key []byte) {
		ks.DB(0).Get(key)
		ks.DB(0).Look(key)
		ks.DB(0).Peek(key)
		ks.DB(0).Has(key)
		ks.DB(0).Pin(ks.DB(0).Stored(key))
	})
	ks.Freeze()
	ks.SetNow(201)
	eachKey(ks.DB(0), func(key []byte) { ks.DB(0).Get(key) })
	ks.Thaw()
	ks.SetNow(100)
	if r.Saved() != 0 {
		t.Errorf("reads save %d bytes", r.Saved())
	}
	for r.tables[0].id != 1 {
		r.next(1, time.Hour)
	}
	for _, i := range []int{0, InternalDB} {
		eachKey(ks.DB(i), func(key []byte) { ks.DB(i).Edit(key) })
		eachKey(ks.DB(i), func(key []byte) { ks.DB(i).Delete(key) })
	}
	ks.DB(0).Clear()
	if r.Saved() != 0 {
		t.Errorf("changes of visited keys save %d bytes", r.Saved())
	}
	eachKey(ks.DB(1), func(key []byte) { ks.DB(1).Edit(key) }) // at most one of them is visited
	if r.Saved() == 0 {
		t.Error("an opened value takes no memory")
	}
	r.all()
}

// TestSnapshotClose ends snapshots early.
func TestSnapshotClose(t *testing.T) {
	ks := snapshotFixture()
	for n := range 30 {
		r := read(t, ks)
		for range n {
			r.next(1, time.Hour)
		}
		func() {
			defer func() {
				if recover() == nil && n < 27 {
					t.Error("there are two snapshots")
				}
			}()
			if n < 27 {
				ks.Snapshot()
			}
		}()
		ks.DB(1).Delete([]byte("string"))
		ks.DB(1).AddString([]byte("string"), nil, false)
		ks.DB(1).AddString(fmt.Append(nil, n), nil, false)
		ks.Swap(1, 2)
		r.Close()
		r.closed()
		r.Close()
		another := read(t, ks)
		r.Close() // must not end the other one
		another.all()
		another.Close()
	}
	ks.DB(0).Clear()
	read(t, ks).all()
}

// TestSnapshotProgress checks that a snapshot ends even if no call has time.
func TestSnapshotProgress(t *testing.T) {
	for name, change := range map[string]func(db *DB, key []byte){
		"nothing": func(*DB, []byte) {},
		"all":     func(db *DB, key []byte) { db.SetString(db.Edit(key), nil) },
		"deleted": func(db *DB, key []byte) { db.Delete(key) },
	} {
		const keys = 5000
		ks := New(1, Hooks{})
		for i := range keys {
			ks.DB(0).AddString(fmt.Append(nil, i), nil, false)
		}
		r := read(t, ks)
		for i := range keys {
			change(ks.DB(0), fmt.Append(nil, i))
			if r.Saved() > 0 && i%10 == 0 {
				r.next(0, -time.Hour)
			}
		}
		calls := 0
		for r.next(0, 0) {
			if calls++; calls > 2*keys {
				t.Fatalf("%s: a call makes no progress", name)
			}
		}
	}
}

// FuzzSnapshot reads snapshots during random commands, the growth and shrinking of
// tables, and everything else that happens to a keyspace.
func FuzzSnapshot(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 9))
		ks := New(4, Hooks{})
		ks.Limits = Limits{
			HashMaxListpackEntries: 10, HashMaxListpackValue: 50,
			SetMaxIntsetEntries: 12, SetMaxListpackEntries: 10, SetMaxListpackValue: 20,
			ListMaxListpackSize: 12, Stream: sequence.StreamLimits{MaxBytes: 300, MaxEntries: 7},
		}
		c := &client{r: r, ks: ks, now: 1_700_000_000_000, keys: []int{5, 100, 1000}[r.IntN(3)]}
		size := []int{10, 300, 3000, 30_000}[r.IntN(4)] // of what grows and shrinks
		for range c.keys {
			c.command()
		}
		grow(c, size)
		for range 2 {
			ks.Record(r.IntN(2) == 0)
			s := read(t, ks)
			piece := 1 + len(s.want)/(10+r.IntN(40))
			for {
				for range r.IntN(2 + c.keys/20) {
					c.command()
				}
				c.event(size)
				if r.IntN(300) == 0 {
					s.Close()
					s.joined()
					s.closed()
					break
				}
				if n, budget := 1+r.IntN(2*piece), time.Duration(r.IntN(3)-1)*time.Hour; !s.next(n, budget) {
					break
				}
				if r.IntN(20) == 0 {
					if err := ks.Check(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := ks.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// grow adds n keys to a database.
func grow(c *client, n int) {
	db, of := c.db(), c.r.IntN(10)
	for i := range n {
		if key := fmt.Append(nil, "grown:", of, ":", i); db.Peek(key) == nil {
			e := db.AddString(key, key[:c.r.IntN(len(key))], c.r.IntN(2) == 0)
			if c.r.IntN(10) == 0 {
				db.SetDeadline(e, c.instant())
			}
		}
	}
	c.ks.Seal()
}

// event changes many keys, or what commands do not change.
func (c *client) event(size int) {
	db := c.db()
	switch c.r.IntN(16) {
	case 0:
		grow(c, c.r.IntN(size))
	case 1: // shrink
		eachKey(db, func(key []byte) {
			if c.r.IntN(8) > 0 {
				db.Delete(key)
			}
		})
	case 2:
		eachKey(db, func(key []byte) {
			if e := db.Stored(key); e != nil && c.r.IntN(8) == 0 {
				db.Evict(e)
			}
		})
	case 3:
		c.now += c.r.Int64N(300)
		c.ks.SetNow(c.now)
		c.ks.Sweep(c.r.IntN(size))
	case 4:
		db := c.ks.DB(InternalDB)
		if e := db.Edit(c.key()); e != nil && e.kind() == isString {
			db.AppendString(e, c.text(false))
		}
		db.Put(c.key(), NewString(c.text(false)), false)
		db.Delete(c.key())
	case 5:
		c.ks.Swap(c.r.IntN(c.ks.Len()), c.r.IntN(c.ks.Len()))
	case 6:
		if c.r.IntN(4) == 0 {
			db.Clear()
		}
	case 7:
		if key := c.key(); db.Stored(key) == nil {
			db.Restore(string(key), NewString(c.text(false)), c.instant())
		}
	case 8:
		db.Random(c.r)
		c.ks.Freeze()
		c.ks.SetNow(c.now + 20)
		eachKey(db, func(key []byte) { db.Get(key) })
		c.ks.Thaw()
		c.ks.SetNow(c.now)
	case 9:
		if c.r.IntN(8) == 0 {
			from := New(c.ks.Len(), Hooks{})
			from.SetNow(c.now)
			other := &client{r: c.r, ks: from, now: c.now, keys: c.keys}
			grow(other, c.r.IntN(size))
			for range c.r.IntN(30) {
				other.command()
			}
			c.ks.Adopt(from)
		}
	case 10:
		c.ks.TakeJournal()
		eachKey(db, func(key []byte) {
			if e := db.Stored(key); c.r.IntN(100) == 0 {
				db.Pin(e)
			}
		})
	}
	c.ks.Seal()
}

// BenchmarkSnapshot reads a snapshot of small strings in pieces of 100 keys, and changes
// each key for the first time; both per key.
func BenchmarkSnapshot(b *testing.B) {
	const keys = 200_000
	ks := New(1, Hooks{})
	db := ks.DB(0)
	key := func(i int) []byte { return fmt.Appendf(nil, "key:%012d", i) }
	for i := range keys {
		db.AddString(key(i), key(i), false)
	}
	bytes := 0
	visit := func(k SnapshotKey) { bytes += len(k.Key) }
	b.Run("read", func(b *testing.B) {
		for n := 0; n < b.N; n += keys {
			for s := ks.Snapshot(); s.Next(100, time.Hour, visit); {
			}
		}
	})
	b.Run("change", func(b *testing.B) {
		for n := 0; n < b.N; n += keys {
			s := ks.Snapshot()
			for i := range min(keys, b.N-n) {
				db.Edit(key(i))
				if i%100 == 0 {
					s.Next(0, -1, visit)
				}
			}
			s.Close()
		}
	})
}
