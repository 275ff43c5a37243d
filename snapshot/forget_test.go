package snapshot

import (
	"iter"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func one(b []byte) iter.Seq[[]byte] { return slices.Values([][]byte{b}) }

// If replies wait for their checkpoint there are thousands of small checkpoints;
// they are not all dropped in one transaction, and the file is sound at any time.
func TestForgetInParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "many.db")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const cuts = 2*forgetAtOnce + 100
	now := time.Now()
	for range cuts {
		if _, err := f.Write(&Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Journal: one([]byte("a record")), Time: now}); err != nil {
			t.Fatal(err)
		}
	}
	c := Checkpoint{Spaces: []uint64{1}, LastSpace: 1, Time: now, Forget: cuts, Bases: []Base{
		{Space: 1, Key: "there", Chunks: one([]byte("operations"))}, {Space: 1, Key: "gone"},
	}}
	for rest := int64(cuts); ; {
		if _, err := f.Write(&c); err != nil {
			t.Fatal(err)
		}
		c.Bases = nil
		journals, bases := int64(0), 0
		m, err := Read(path, Visitor{
			Journal: func(uint64, []byte) error { journals++; return nil },
			Base:    func(uint64, []byte, uint64, int, int, []byte) error { bases++; return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		rest = max(0, rest-forgetAtOnce)
		if journals != rest || m.Journal.Records != rest {
			t.Fatalf("%d journals are left, the manifest says %d, want %d", journals, m.Journal.Records, rest)
		}
		if f.Forgetting() != (rest > 0) {
			t.Fatalf("with %d journals left: forgetting is %v", rest, f.Forgetting())
		}
		if rest == 0 {
			if bases != 2 || len(f.tombstones) != 1 { // a tombstone is needed by no journal, except that of the checkpoint that wrote it
				t.Fatalf("%d bases, %d of them gone ones", bases, len(f.tombstones))
			}
			return
		}
	}
}
