package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func chunksOf(chunks ...string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, c := range chunks {
			if !yield([]byte(c)) {
				return
			}
		}
	}
}

// salvageSample returns a file with a history: values that were replaced and
// deleted, journals that were dropped, bases of several chunks, long keys.
func salvageSample(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(c *Checkpoint) {
		t.Helper()
		c.Spaces, c.LastSpace, c.Time = []uint64{1, 2}, 2, time.Unix(1e9, 0)
		if _, err := f.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	base := func(space uint64, key string, chunks ...string) Base {
		return Base{Space: space, Key: key, Chunks: chunksOf(chunks...)}
	}
	long := strings.Repeat("long", 10_000)
	for round := range 5 {
		c := &Checkpoint{Journal: chunksOf(fmt.Sprintf("journal %d", round))}
		for i := range 200 {
			c.Bases = append(c.Bases, base(1, fmt.Sprintf("key:%03d", i), fmt.Sprintf("value %d of round %d", i, round)))
		}
		c.Bases = append(c.Bases, base(2, "large", strings.Repeat("a", 5000), strings.Repeat("b", 5000), fmt.Sprint(round)),
			base(2, long, "of a long key", fmt.Sprint(round)))
		write(c)
	}
	gone := &Checkpoint{Journal: chunksOf("dropped")}
	for i := 150; i < 200; i++ {
		gone.Bases = append(gone.Bases, Base{Space: 1, Key: fmt.Sprintf("key:%03d", i)})
	}
	write(gone)
	write(&Checkpoint{Forget: 6})
	for i := range 20 {
		write(&Checkpoint{Journal: chunksOf(fmt.Sprintf("kept %d", i), strings.Repeat("x", 100*i))})
	}
	write(&Checkpoint{Journal: chunksOf(strings.Repeat("y", 3*partSize/4), strings.Repeat("z", 3*partSize/4))})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// visited is everything that a visitor received.
type visited struct{ bases, journals map[string]string }

func (x *visited) visitor() Visitor {
	x.bases, x.journals = map[string]string{}, map[string]string{}
	return Visitor{
		Journal: func(generation uint64, records []byte) error {
			x.journals[fmt.Sprint(generation)] += string(records)
			return nil
		},
		Base: func(space uint64, key []byte, generation uint64, i, chunks int, ops []byte) error {
			x.bases[fmt.Sprintf("%d %s %d/%d", space, key, i, chunks)] = string(ops)
			return nil
		},
	}
}

func salvageBytes(t testing.TB, b []byte) (Salvaged, visited, error) {
	var got visited
	s, err := salvage(bytes.NewReader(b), int64(len(b)), got.visitor())
	return s, got, err
}

func readSample(t testing.TB, b []byte) visited {
	t.Helper()
	path := filepath.Join(t.TempDir(), "read")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var want visited
	if _, err := Read(path, want.visitor()); err != nil {
		t.Fatal(err)
	}
	return want
}

func TestSalvageSoundFile(t *testing.T) {
	skipRace(t)
	file := salvageSample(t)
	want := readSample(t, file)
	s, got, err := salvageBytes(t, file)
	if err != nil || !s.Whole || s.Scavenged || s.Guessed || len(s.Pages)+len(s.Lost)+len(s.Old) > 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	if !maps.Equal(got.bases, want.bases) || !maps.Equal(got.journals, want.journals) {
		t.Errorf("%d bases and %d journals, not %d and %d", len(got.bases), len(got.journals), len(want.bases), len(want.journals))
	}
}

// A damaged record costs that record alone, and no deleted record comes back.
func TestSalvageDamagedRecords(t *testing.T) {
	skipRace(t)
	file := salvageSample(t)
	want := readSample(t, file)
	for _, record := range []string{"value 7 of round 4", "value 149 of round 4", "of a long key", "bbbbb", "journal 4", "kept 3", "zzzzz"} {
		damagedFile := slices.Clone(file)
		// All copies of the record, the stale ones as well.
		n := bytes.Count(file, []byte(record))
		damagedFile = bytes.ReplaceAll(damagedFile, []byte(record), []byte("#"+record[1:]))
		s, got, err := salvageBytes(t, damagedFile)
		if err != nil {
			t.Errorf("%q: %v", record, err)
			continue
		}
		_, used := want.journals["5"]
		if record == "journal 4" && !used { // the journal was dropped: no reader needs it
			if !s.Whole || !maps.Equal(got.bases, want.bases) || !maps.Equal(got.journals, want.journals) {
				t.Errorf("%q: %+v", record, s)
			}
			continue
		}
		if s.Whole || len(s.Pages) == 0 {
			t.Errorf("%q: %d times damaged, and not noticed", record, n)
		}
		missing := 0
		for name, value := range want.bases {
			if v, ok := got.bases[name]; !ok || v != value {
				missing++
			}
		}
		for name, value := range want.journals {
			if got.journals[name] != value {
				missing++
			}
		}
		for name := range got.journals {
			if _, ok := want.journals[name]; !ok {
				t.Errorf("%q: the journal of cut %s is there again", record, name)
			}
		}
		if limit := map[string]int{"bbbbb": 3, "of a long key": 2}[record]; missing > max(1, limit) {
			t.Errorf("%q: %d records are missing", record, missing)
		}
		if strings.HasPrefix(record, "value") && len(s.Lost)+len(s.Old) != 1 {
			t.Errorf("%q: lost %v, old %v", record, s.Lost, s.Old)
		}
		for name := range got.bases {
			if _, ok := want.bases[name]; !ok {
				t.Errorf("%q: %s is there again", record, name)
			}
		}
	}
}

// After any flipped bit: if the salvage reports that nothing is missing then
// nothing is, and no deleted record is back.
func TestSalvageFlippedBits(t *testing.T) {
	skipRace(t)
	file := salvageSample(t)
	want := readSample(t, file)
	r := rand.New(rand.NewPCG(3, 4))
	whole := 0
	for range 150 {
		bit := r.IntN(len(file) * 8)
		b := slices.Clone(file)
		b[bit/8] ^= 1 << (bit % 8)
		s, got, err := salvageBytes(t, b)
		if err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		same := maps.Equal(got.bases, want.bases) && maps.Equal(got.journals, want.journals)
		if s.Whole != same {
			t.Errorf("bit %d of page %d: whole %v, same %v; %v", bit, bit/8/pageSize, s.Whole, same, s.Pages)
		}
		if s.Whole {
			whole++
		}
	}
	t.Logf("of 150 flipped bits %d cost nothing", whole)
}

func TestSalvageWithoutMetas(t *testing.T) {
	skipRace(t)
	file := salvageSample(t)
	want := readSample(t, file)
	newer := 0
	if binary.LittleEndian.Uint64(file[pageHeader+48:]) < binary.LittleEndian.Uint64(file[pageSize+pageHeader+48:]) {
		newer = pageSize
	}
	for _, test := range []struct {
		name   string
		damage func([]byte)
		whole  bool
	}{
		{"newer meta", func(b []byte) { clear(b[newer : newer+pageSize]) }, true},
		{"older meta", func(b []byte) { clear(b[pageSize-newer : 2*pageSize-newer]) }, true},
		{"both metas", func(b []byte) { clear(b[:2*pageSize]) }, false},
		{"every branch", func(b []byte) {
			for at := 0; at < len(b); at += pageSize {
				if binary.LittleEndian.Uint16(b[at+8:]) == branchFlag {
					clear(b[at : at+pageHeader])
				}
			}
		}, false},
	} {
		b := slices.Clone(file)
		test.damage(b)
		s, got, err := salvageBytes(t, b)
		if err != nil || test.whole && !s.Whole || !s.Scavenged || s.Guessed {
			t.Errorf("%s: %+v, %v", test.name, s, err)
		}
		for name, value := range want.bases {
			if got.bases[name] != value {
				t.Errorf("%s: %.40s is %.40q, not %.40q", test.name, name, got.bases[name], value)
			}
		}
		if !maps.Equal(got.journals, want.journals) {
			t.Errorf("%s: journals %v, not %v", test.name, slices.Sorted(maps.Keys(got.journals)), slices.Sorted(maps.Keys(want.journals)))
		}
		if test.whole && len(got.bases) != len(want.bases) {
			t.Errorf("%s: %d bases, not %d", test.name, len(got.bases), len(want.bases))
		}
	}
}

func TestSalvageTruncated(t *testing.T) {
	skipRace(t)
	file := salvageSample(t)
	for size := pageSize; size < len(file); size += len(file)/37 + 11 {
		s, _, err := salvageBytes(t, file[:size])
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if s.Whole && size < len(file)/2 {
			t.Errorf("%d bytes of %d are whole", size, len(file))
		}
	}
	if _, _, err := salvageBytes(t, []byte("REDIS0011 is something else")); !errors.Is(err, ErrForeign) {
		t.Errorf("foreign: %v", err)
	}
	if _, _, err := salvageBytes(t, pagesSample(t)); !errors.Is(err, ErrForeign) {
		t.Errorf("another program's bbolt file: %v", err)
	}
	if _, _, err := salvageBytes(t, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("empty: %v", err)
	}
}

func TestRewind(t *testing.T) {
	r := newRewinder()
	for g := range uint64(100) {
		value := append(make([]byte, sumSize), strings.Repeat("body", int(g))...)
		sum := seal(value, checkpointName(g), partName(3))
		if got := r.sum(sum, value[sumSize:], partName(3)); got != checksum(checkpointName(g)) {
			t.Fatalf("%d: %x, not %x", g, got, checksum(checkpointName(g)))
		}
	}
}

func TestGaps(t *testing.T) {
	g := gaps{{[]byte("m"), []byte("p")}, {nil, []byte("b")}, {[]byte("o"), []byte("q")}, {[]byte("x"), nil}, {[]byte("z"), []byte("zz")}}.close()
	for name, want := range map[string]bool{"": true, "b": true, "c": false, "m": true, "p": true, "q": true, "r": false, "x": true, "zzz": true} {
		if g.has([]byte(name)) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	if len(g) != 3 {
		t.Errorf("%q", g)
	}
}
