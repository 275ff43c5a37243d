package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
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

	// Gaps join if one begins where another ends, whatever limits they have.
	a, b, c, d := []byte("a"), []byte("b"), []byte("c"), []byte("d")
	for _, test := range []struct{ from, want gaps }{
		{gaps{{c, d}, {a, b}}, gaps{{a, b}, {c, d}}},
		{gaps{{a, b}, {b, d}}, gaps{{a, d}}},
		{gaps{{a, c}, {b, d}}, gaps{{a, d}}},
		{gaps{{a, d}, {b, c}}, gaps{{a, d}}},
		{gaps{{a, c}, {b, c}}, gaps{{a, c}}},
		{gaps{{a, c}, {b, nil}}, gaps{{a, nil}}},
		{gaps{{a, nil}, {b, c}, {d, nil}}, gaps{{a, nil}}},
		{gaps{{a, b}, {c, nil}, {d, d}}, gaps{{a, b}, {c, nil}}},
		{gaps{{nil, nil}, {a, b}}, gaps{{nil, nil}}},
	} {
		if got := slices.Clone(test.from).close(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.want) {
			t.Errorf("%q: %q, want %q", test.from, got, test.want)
		}
	}
}

// TestComplete checks which versions of a base have all their chunks.
func TestComplete(t *testing.T) {
	first := func(chunks int) []byte {
		value := append(make([]byte, sumSize), appendBaseHead(nil, 1, "key", 0)...)
		putChunks(value, chunks)
		return value
	}
	x := []byte("chunk")
	for _, test := range []struct {
		chunks map[uint32][]byte
		count  int
		want   bool
	}{
		{nil, 0, false},
		{map[uint32][]byte{1: x}, 0, false},
		{map[uint32][]byte{0: first(1)[:chunksAt+3]}, 0, false},
		{map[uint32][]byte{0: first(0)}, 1, true}, // a tombstone
		{map[uint32][]byte{0: first(1)}, 1, true},
		{map[uint32][]byte{0: first(2)}, 2, false},
		{map[uint32][]byte{0: first(2), 1: x}, 2, true},
		{map[uint32][]byte{0: first(2), 2: x}, 2, false},
		{map[uint32][]byte{0: first(2), 1: x, 2: x}, 2, true},
	} {
		v := &version{1, test.chunks}
		if v.count() != test.count || v.complete() != test.want {
			t.Errorf("%v: %d chunks, complete %v", test.chunks, v.count(), v.complete())
		}
	}
}

// TestLostKey checks that a long key of which only the first chunk is left has its name, and
// its hash if that is not readable.
func TestLostKey(t *testing.T) {
	long := strings.Repeat("k", longKey)
	name := baseName(3, long, 0)
	stem := string(name[:len(name)-4])
	head := append(make([]byte, sumSize), appendBaseHead(nil, 1, long, 0)...)
	hash := LostKey{3, string(name[10 : len(name)-4]), true}
	for what, test := range map[string]struct {
		first []byte
		want  LostKey
	}{
		"whole":           {head, LostKey{3, long, false}},
		"with operations": {append(head[:len(head):len(head)], "more"...), LostKey{3, long, false}},
		"without its end": {head[:len(head)-1], hash},
		"no length":       {head[:chunksAt+4], hash},
		"no header":       {head[:chunksAt+3], hash},
		"no chunk":        {nil, hash},
	} {
		got := lostKey(stem, []*version{{math.MaxUint64, nil}, {1, map[uint32][]byte{0: test.first}}})
		if got != test.want {
			t.Errorf("%s: %.40q, hashed %v", what, got.Key, got.Hashed)
		}
	}
	if got := lostKey(string(baseName(3, "short", 0)[:15]), nil); got != (LostKey{3, "short", false}) {
		t.Errorf("a short key: %+v", got)
	}
}

// TestDropForgotten checks that the oldest of the journals that were not in the tree are
// dropped, until there are as many as the manifest counts.
func TestDropForgotten(t *testing.T) {
	for records, want := range map[int64]string{
		0: "[{4 0}]", 1: "[{4 0}]", 2: "[{3 0} {4 0}]", 3: "[{2 1} {3 0} {4 0}]", 4: "[{2 0} {2 1} {3 0} {4 0}]", 9: "[{2 0} {2 1} {3 0} {4 0}]",
	} {
		s := &salvaging{parts: map[part][]byte{{4, 0}: nil, {2, 1}: nil, {3, 0}: nil, {2, 0}: nil}}
		s.found = map[part]bool{{3, 0}: true, {2, 0}: true, {2, 1}: true}
		s.Manifest.Journal.Records = records
		s.dropForgotten()
		left := slices.SortedFunc(maps.Keys(s.parts), func(a, b part) int { return int(a.generation)*2 + int(a.number) - int(b.generation)*2 - int(b.number) })
		if got := fmt.Sprint(left); got != want {
			t.Errorf("of %d: %s, want %s", records, got, want)
		}
	}
}

// TestCheckpointNames checks which generations are searched in a file with very many
// checkpoints: those in a gap, of the last ones.
func TestCheckpointNames(t *testing.T) {
	s := &salvaging{limit: maxCheckpoints + 5, newest: true}
	s.checkpointGaps = gaps{{checkpointName(2), checkpointName(8)}, {checkpointName(maxCheckpoints + 5), nil}}
	got := slices.Sorted(maps.Values(s.checkpointNames()))
	if want := []uint64{6, 7, 8, maxCheckpoints + 5}; !slices.Equal(got, want) {
		t.Errorf("generations %d, want %d", got, want)
	}
}

// TestSalvageShortBase has a base with a right checksum and no room for its generation. It is
// damaged, and no other record is lost.
func TestSalvageShortBase(t *testing.T) {
	file := faultFile(t, true, 2)
	want := readSample(t, file)
	s, got, err := salvageBytes(t, edited(t, file, put(keysBucket, string(baseName(1, "b", 0)), "short")))
	if err != nil || len(s.Pages) == 0 || !strings.Contains(s.Pages[0].Error(), `the value of key "b" in space 1, chunk 0`) {
		t.Errorf("%v, %+v", err, s)
	}
	for name, ops := range want.bases {
		if !strings.Contains(name, "1 b ") && got.bases[name] != ops {
			t.Errorf("%.20s is lost", name)
		}
	}
	if !maps.Equal(got.journals, want.journals) {
		t.Errorf("%d of %d journals", len(got.journals), len(want.journals))
	}
}

// TestSalvageNothing checks the error for a file without a byte.
func TestSalvageNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Salvage(path, Visitor{}); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
}
