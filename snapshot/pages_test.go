package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// pagesFile returns the bytes of a bbolt file that the transactions made.
func pagesFile(t testing.TB, options bbolt.Options, txs ...func(*bbolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	options.PageSize = max(options.PageSize, pageSize)
	options.NoSync = true
	db, err := bbolt.Open(path, 0o600, &options)
	if err != nil {
		t.Fatal(err)
	}
	for _, tx := range txs {
		if err := db.Update(tx); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// pagesWalk returns what walk visits, one line an element.
func pagesWalk(file []byte) ([]string, *pageTree, error) {
	tree, err := openPages(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, nil, err
	}
	var got []string
	err = tree.walk(func(bucket [][]byte, key, value []byte) error {
		got = append(got, pagesLine(bucket, key, value))
		return nil
	})
	return got, tree, err
}

func pagesLine(bucket [][]byte, key, value []byte) string {
	sum := fnv.New64a()
	sum.Write(value)
	return fmt.Sprintf("%q %q %d %x", bucket, key, len(value), sum.Sum64())
}

// pagesCursor returns what bbolt's own cursors find.
func pagesCursor(c *bbolt.Cursor, inner func([]byte) *bbolt.Bucket, path [][]byte) []string {
	var all []string
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if v != nil {
			all = append(all, pagesLine(path, k, v))
			continue
		}
		b := inner(k)
		all = append(all, pagesCursor(b.Cursor(), b.Bucket, append(path[:len(path):len(path)], k))...)
	}
	return all
}

func TestWalkFindsWhatCursorsFind(t *testing.T) {
	skipRace(t)
	for seed := range uint64(9) {
		rng := rand.New(rand.NewPCG(seed, 1))
		options := bbolt.Options{NoFreelistSync: seed%3 > 0, FreelistType: bbolt.FreelistMapType}
		if seed%2 == 0 {
			options.FreelistType = bbolt.FreelistArrayType
		}
		var want []string
		var txs []func(*bbolt.Tx) error
		for range 12 {
			txs = append(txs, func(tx *bbolt.Tx) error { return pagesChange(rng, tx) })
		}
		txs = append(txs, func(tx *bbolt.Tx) error {
			want = pagesCursor(tx.Cursor(), tx.Bucket, nil)
			for err := range tx.Check() {
				// bbolt forgets a page now and then, until the file is opened again.
				if !strings.Contains(err.Error(), "unreachable unfreed") {
					return err
				}
			}
			return nil
		})
		file := pagesFile(t, options, txs...)
		got, tree, err := pagesWalk(file)
		if err != nil {
			t.Fatal(seed, err)
		}
		if len(want) < 1000 || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("seed %d: walk and cursors found %d and %d elements, not the same or not enough", seed, len(got), len(want))
		}

		if free := pagesFree(t, file); options.NoFreelistSync && tree.pages-tree.used != free {
			t.Errorf("seed %d: %d of %d pages are free, bbolt says %d", seed, tree.pages-tree.used, tree.pages, free)
		}

		found := map[string]bool{}
		scavenge(bytes.NewReader(file), int64(len(file)), func(_ uint64, key, value []byte) {
			found[pagesLine(nil, key, value)] = true
		})
		for _, line := range want {
			if _, rest, _ := strings.Cut(line, "] "); !found["[] "+rest] {
				t.Fatalf("seed %d: scavenge did not find %s", seed, line)
			}
		}
	}
}

// pagesFree returns how many pages bbolt finds free in a file without a freelist.
func pagesFree(t *testing.T, file []byte) uint64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	free := db.Stats().FreePageN
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return uint64(free)
}

// pagesChange puts and deletes in some buckets, some of which are nested.
func pagesChange(rng *rand.Rand, tx *bbolt.Tx) error {
	for range 6 {
		name := []byte{'A' + byte(rng.IntN(4))}
		b, err := tx.CreateBucketIfNotExists(name)
		if err != nil {
			return err
		}
		for rng.IntN(3) == 0 {
			if b, err = b.CreateBucketIfNotExists([]byte{'a' + byte(rng.IntN(5))}); err != nil {
				return err
			}
		}
		b.FillPercent = []float64{0.2, 0.5, 1}[rng.IntN(3)]
		switch rng.IntN(6) {
		case 0:
			err = b.Put(fmt.Appendf(nil, "large %d", rng.IntN(3)), pagesBytes(rng, rng.IntN(1<<20)))
		case 1:
			for range rng.IntN(20) {
				err = errors.Join(err, b.Put(pagesBytes(rng, 1+rng.IntN(6000)), nil))
			}
		case 2, 3:
			for range rng.IntN(1500) {
				err = errors.Join(err, b.Put(fmt.Appendf(nil, "small %d", rng.IntN(5000)), pagesBytes(rng, rng.IntN(40))))
			}
		case 4:
			c := b.Cursor()
			for k, v := c.First(); k != nil; k, v = c.Next() {
				if v != nil && rng.IntN(4) > 0 {
					err = errors.Join(err, c.Delete())
				}
			}
		default:
			err = b.Put([]byte("few"), []byte("bytes"))
			if rng.IntN(3) == 0 {
				err = tx.DeleteBucket(name)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func pagesBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// pagesSample is a small file with every kind of page: a branch, leaves, a page
// that overflows, an inline bucket and an empty one, stale pages.
func pagesSample(t testing.TB) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	fill := func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("records"))
		for i := range 100 {
			err = errors.Join(err, b.Put(fmt.Appendf(nil, "key %03d", i), pagesBytes(rng, 60)))
		}
		err = errors.Join(err, b.Put([]byte("large"), pagesBytes(rng, 9000)))
		inline, e := tx.CreateBucketIfNotExists([]byte("inline"))
		for i := range 5 {
			err = errors.Join(err, e, inline.Put(fmt.Appendf(nil, "key %d", i), []byte("value")))
		}
		_, e = tx.CreateBucketIfNotExists([]byte("empty"))
		return errors.Join(err, e)
	}
	return pagesFile(t, bbolt.Options{NoFreelistSync: true}, fill, fill)
}

// mustNotHarm reads a damaged file with every reader and returns the result of
// walk.
func mustNotHarm(t *testing.T, what string, file []byte) error {
	t.Helper()
	visits := 0
	tree, err := openPages(bytes.NewReader(file), int64(len(file)))
	if err == nil {
		size := 0
		err = tree.walk(func(_ [][]byte, key, value []byte) error {
			visits++
			size += pageElement + len(key) + len(value)
			return nil
		})
		if size > len(file) {
			t.Fatalf("%s: %d bytes in %d elements out of a file of %d", what, size, visits, len(file))
		}
	}
	if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrEmpty) {
		t.Fatalf("%s: %v", what, err)
	}
	if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
		t.Fatalf("%s: not one line: %q", what, err)
	}
	scavenge(bytes.NewReader(file), int64(len(file)), func(_ uint64, key, _ []byte) {
		if len(key) == 0 {
			t.Fatalf("%s: an empty key", what)
		}
	})
	return err
}

// pagesTables calls f with each page in use and the bytes of its header and table,
// except the sizes of the last element: only the records' own checksums can detect
// bytes that these take from or give to the unused rest of the page.
func pagesTables(t *testing.T, file []byte, f func(id uint64, table []byte)) {
	t.Helper()
	_, tree, err := pagesWalk(file)
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(2); id < tree.pages; id++ {
		p := file[id*pageSize:]
		if tree.seen[id/64]>>(id%64)&1 == 0 || binary.LittleEndian.Uint64(p) != id {
			continue
		}
		table := p[:tableEnd(p)]
		if binary.LittleEndian.Uint16(p[8:]) == leafFlag && len(table) > pageHeader {
			table = table[:len(table)-8]
		}
		f(id, table)
	}
}

func TestFlippedBits(t *testing.T) {
	file := pagesSample(t)
	rng := rand.New(rand.NewPCG(1, 3))
	flips := 0
	pagesTables(t, file, func(id uint64, table []byte) {
		isBranch := table[8] == branchFlag
		for i := range table {
			if isBranch && i >= len(table)-12 && i < len(table)-8 {
				continue // the size of the last key of a branch, likewise
			}
			bit := byte(1) << rng.IntN(8)
			table[i] ^= bit
			what := fmt.Sprintf("bit %#x of byte %d of page %d", bit, i, id)
			if mustNotHarm(t, what, file) == nil {
				t.Errorf("%s: not noticed", what)
			}
			table[i] ^= bit
			flips++
		}
	})
	if flips < 1000 {
		t.Errorf("only %d bits", flips)
	}
	for range 1000 {
		i, bit := rng.IntN(len(file)), byte(1)<<rng.IntN(8)
		file[i] ^= bit
		err := mustNotHarm(t, fmt.Sprintf("bit %#x of byte %d", bit, i), file)
		if err == nil && i%pageSize < 80 && i < 2*pageSize && i%pageSize >= 16 {
			t.Errorf("bit %#x of byte %d of a meta: not noticed", bit, i)
		}
		file[i] ^= bit
	}
}

// One flipped bit makes the count of a page with one element 0.
func TestLostCount(t *testing.T) {
	file := pagesFile(t, bbolt.Options{NoFreelistSync: true}, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("bucket"))
		return errors.Join(err, b.Put([]byte("key"), make([]byte, 2000)))
	})
	pagesTables(t, file, func(id uint64, table []byte) {
		if table[10] != 1 {
			t.Errorf("page %d has %d elements", id, table[10])
		}
		table[10] = 0
		if err := mustNotHarm(t, "count", file); err == nil {
			t.Errorf("page %d without its element was not noticed", id)
		}
		table[10] = 1
	})
}

func TestTornFiles(t *testing.T) {
	sample := pagesSample(t)
	rng := rand.New(rand.NewPCG(1, 4))
	_, tree, err := pagesWalk(sample)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(sample); at += 512 {
		file := bytes.Clone(sample)
		clear(file[at : at+512])
		mustNotHarm(t, fmt.Sprintf("sector %d zeroed", at/512), file)
	}
	for range 300 {
		file := bytes.Clone(sample)
		a, b := file[rng.IntN(int(tree.pages))*pageSize:][:pageSize], file[rng.IntN(int(tree.pages))*pageSize:][:pageSize]
		for i := range a {
			a[i], b[i] = b[i], a[i]
		}
		mustNotHarm(t, "pages swapped", file)

		file = bytes.Clone(sample)
		for range 1 + rng.IntN(40) {
			file[2*pageSize+rng.IntN(len(file)-2*pageSize)] = byte(rng.Uint32())
		}
		mustNotHarm(t, "many bytes changed", file)

		size := rng.IntN(int(tree.pages) * pageSize)
		if mustNotHarm(t, "truncated", sample[:size]) == nil {
			t.Errorf("truncated to %d bytes: not noticed", size)
		}
	}
}

func TestCycles(t *testing.T) {
	file := pagesSample(t)
	branches := 0
	_, tree, err := pagesWalk(file)
	if err != nil {
		t.Fatal(err)
	}
	pagesTables(t, file, func(id uint64, table []byte) {
		if table[8] != branchFlag {
			return
		}
		branches++
		for e := pageHeader; e < len(table); e += pageElement {
			child := binary.LittleEndian.Uint64(table[e+8:])
			for other := range tree.pages + 2 {
				// A stale page may be a valid page of the previous commit.
				if other == child || other < tree.pages && tree.seen[other/64]>>(other%64)&1 == 0 {
					continue
				}
				binary.LittleEndian.PutUint64(table[e+8:], other)
				if mustNotHarm(t, "cycle", file) == nil {
					t.Errorf("page %d with page %d for %d: not noticed", id, other, child)
				}
			}
			binary.LittleEndian.PutUint64(table[e+8:], child)
		}
	})
	if branches == 0 {
		t.Error("no branch")
	}
}

// pagesMake returns a file of two valid metas and the pages.
func pagesMake(root, freelist uint64, pages []byte) []byte {
	file := append(make([]byte, 2*pageSize), pages...)
	file = append(file, make([]byte, -len(file)&(pageSize-1))...)
	for id := range uint64(2) {
		p := file[id*pageSize:]
		binary.LittleEndian.PutUint64(p, id)
		p[8] = metaFlag
		m := p[pageHeader:]
		binary.LittleEndian.PutUint32(m, metaMagic)
		binary.LittleEndian.PutUint32(m[4:], metaVersion)
		binary.LittleEndian.PutUint32(m[8:], pageSize)
		binary.LittleEndian.PutUint64(m[16:], root)
		binary.LittleEndian.PutUint64(m[32:], freelist)
		binary.LittleEndian.PutUint64(m[40:], uint64(len(file)/pageSize))
		binary.LittleEndian.PutUint64(m[48:], id)
		pagesSum(p)
	}
	return file
}

// pagesSum corrects the checksum of a changed meta.
func pagesSum(p []byte) {
	sum := fnv.New64a()
	sum.Write(p[pageHeader:][:56])
	binary.LittleEndian.PutUint64(p[pageHeader+56:], sum.Sum64())
}

// pageParts is an element of a page made by hand.
type pageParts struct {
	flags      byte
	child      uint64
	key, value string
}

// pagesPage makes a page without the unused rest.
func pagesPage(id uint64, flag byte, elements ...pageParts) string {
	p := make([]byte, pageHeader+pageElement*len(elements))
	binary.LittleEndian.PutUint64(p, id)
	p[8] = flag
	binary.LittleEndian.PutUint16(p[10:], uint16(len(elements)))
	for i, parts := range elements {
		e := pageHeader + pageElement*i
		at := uint32(len(p) - e)
		p = append(append(p, parts.key...), parts.value...)
		if flag == branchFlag {
			binary.LittleEndian.PutUint32(p[e:], at)
			binary.LittleEndian.PutUint32(p[e+4:], uint32(len(parts.key)))
			binary.LittleEndian.PutUint64(p[e+8:], parts.child)
			continue
		}
		p[e] = parts.flags
		binary.LittleEndian.PutUint32(p[e+4:], at)
		binary.LittleEndian.PutUint32(p[e+8:], uint32(len(parts.key)))
		binary.LittleEndian.PutUint32(p[e+12:], uint32(len(parts.value)))
	}
	return string(p)
}

// pagesPad puts pages one behind the other.
func pagesPad(pages ...string) []byte {
	all := make([]byte, len(pages)*pageSize)
	for i, p := range pages {
		copy(all[i*pageSize:], p)
	}
	return all
}

// pagesInline and pagesNamed are values of buckets.
func pagesInline(page string) string { return strings.Repeat("\x00", bucketEntry) + page }

func pagesNamed(root uint64) string {
	return string(binary.LittleEndian.AppendUint64(nil, root)) + "\x00\x00\x00\x00\x00\x00\x00\x00"
}

func TestBadPages(t *testing.T) {
	leaf := func(id uint64, keys ...string) string {
		var elements []pageParts
		for _, key := range keys {
			elements = append(elements, pageParts{key: key})
		}
		return pagesPage(id, leafFlag, elements...)
	}
	branch := func(id uint64, keys ...string) string {
		var elements []pageParts
		for i, key := range keys {
			elements = append(elements, pageParts{key: key, child: id + 1 + uint64(i)})
		}
		return pagesPage(id, branchFlag, elements...)
	}
	bucket := func(value string) string {
		return pagesPage(2, leafFlag, pageParts{key: "b", flags: bucketFlag, value: value})
	}
	with := func(p string, at int, b byte) string { return p[:at] + string([]byte{b}) + p[at+1:] }
	for _, test := range []struct {
		says  string // empty if the pages are valid
		pages []string
	}{
		{"", []string{leaf(2)}},
		{"", []string{leaf(2, "a", "b")}},
		{"", []string{branch(2, "a", "c"), leaf(3, "a", "b"), leaf(4, "d")}},
		{"", []string{branch(2, "a"), branch(3, "b"), leaf(4, "b")}},
		{"", []string{bucket(pagesNamed(3)), leaf(3, "a")}},
		{"", []string{bucket(pagesInline(leaf(0, "a", "b")))}},
		{"", []string{bucket(pagesInline(leaf(0)))}},

		{"page 2: type 0x0 instead", []string{with(leaf(2, "a"), 8, 0)}},
		{"page 2: type 0x3 instead", []string{with(leaf(2, "a"), 8, 3)}},
		{"page 2: type 0x10 instead", []string{with(leaf(2, "a"), 8, freelistFlag)}},
		{"page 2: the page header names page 3", []string{leaf(3, "a")}},
		{"page 2: the page extends 6 pages beyond the end of the file", []string{with(leaf(2, "a"), 12, 6)}},
		{"page 2: the content takes 33 bytes of 8192", []string{with(leaf(2, "a"), 12, 1), ""}},
		{"page 2: the content takes 33 bytes of 8192", []string{with(branch(2, "a"), 12, 1), "", leaf(3, "a")}},
		{"page 2: a table of 65280 bytes in a leaf of 4096", []string{with(with(leaf(2, "a"), 10, 0xEF), 11, 0x0F)}},
		{"page 2: a table of 65280 bytes in a branch of 4096", []string{with(with(branch(2, "a"), 10, 0xEF), 11, 0x0F)}},
		{"page 2: a table of 16 bytes in a branch of 4096", []string{branch(2)}},
		{"page 2: a leaf without elements", []string{with(leaf(2, "a"), 10, 0)}},
		{"page 3: a leaf without elements", []string{branch(2, "a"), leaf(3)}},
		{"page 2: element 1 is of type 0x2", []string{with(leaf(2, "a", "b"), 32, 2)}},
		{"page 2: element 0 is at a wrong offset", []string{leaf(2, "", "b")}},
		{"page 2: element 1 is at a wrong offset", []string{with(leaf(2, "a", "b"), 36, 16)}},
		{"page 2: element 1 is at a wrong offset", []string{branch(2, "a", ""), leaf(3, "a")}},
		{"page 2: key 1 is out of order", []string{leaf(2, "b", "a")}},
		{"page 2: key 1 is out of order", []string{leaf(2, "a", "a")}},
		{"page 2: key 1 is out of order", []string{branch(2, "b", "a"), leaf(3, "b")}},
		{"page 2: key 1 is out of order", []string{branch(2, "a", "a"), leaf(3, "a")}},
		{"page 3: key 0 is out of order", []string{branch(2, "b"), leaf(3, "a", "b")}},
		{"page 3: key 0 is out of order", []string{branch(2, "b"), branch(3, "a"), leaf(4, "b")}},
		{"page 3: the last key", []string{branch(2, "a", "c"), leaf(3, "a", "c"), leaf(4, "c")}},
		{"page 3: the last key", []string{branch(2, "a", "b"), branch(3, "a", "b"), leaf(4, "a")}},
		{"page 2: unexpected bucket of 5 bytes", []string{bucket("short")}},
		{"page 2: bucket with a root page and 4 bytes of inline content", []string{bucket(pagesNamed(3) + "more"), leaf(3, "a")}},
		{"page 2: bucket without a root page", []string{bucket(pagesNamed(0))}},
		{"page 2: bucket without a root page", []string{bucket(pagesInline(leaf(1, "a")))}},
		{"page 2: bucket without a root page", []string{bucket(pagesInline(branch(0, "a")))}},
		{"page 2: bucket without a root page", []string{bucket(pagesInline(with(leaf(0, "a"), 12, 1)))}},
		{"page 2: inline bucket: the content takes 33 bytes of 34", []string{bucket(pagesInline(leaf(0, "a") + "b"))}},
		{"page 2: key 1 is out of order", []string{bucket(pagesInline(leaf(0, "b", "a")))}},
		{"page 2: unexpected bucket of 33 bytes", []string{
			bucket(pagesInline(pagesPage(0, leafFlag, pageParts{flags: bucketFlag, key: "c", value: pagesInline(leaf(0))[1:] + "x\x00"}))),
		}},
		{"page 3: the page is referenced twice", []string{
			pagesPage(2, leafFlag,
				pageParts{flags: bucketFlag, key: "a", value: pagesNamed(3)},
				pageParts{flags: bucketFlag, key: "b", value: pagesNamed(3)}),
			leaf(3, "a"),
		}},
		{"page 1: the page does not exist", []string{bucket(pagesNamed(1))}},
	} {
		err := mustNotHarm(t, test.says, pagesMake(2, noFreelist, pagesPad(test.pages...)))
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v", test.says, err)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, deep := range []uint64{pageDepth, pageDepth + 1, 10000} {
		var pages []string
		for id := uint64(2); id < deep+2; id++ {
			pages = append(pages, pagesPage(id, branchFlag, pageParts{key: "k", child: id + 1}))
		}
		pages = append(pages, pagesPage(deep+2, leafFlag, pageParts{key: "k"}))
		err := mustNotHarm(t, "deep", pagesMake(2, noFreelist, pagesPad(pages...)))
		if (err == nil) != (deep <= pageDepth) {
			t.Errorf("%d branches: %v", deep, err)
		}
	}
}

// Elements and leaves that all claim the same bytes must not turn a file of a
// megabyte into gigabytes of work.
func TestManyClaims(t *testing.T) {
	const n = 256
	pages := make([]byte, n*pageSize)
	for i := range uint64(n) {
		p := pages[i*pageSize:]
		copy(p, pagesPage(i+2, leafFlag))
		binary.LittleEndian.PutUint32(p[12:], uint32(n-1-i))
		binary.LittleEndian.PutUint16(p[10:], 0xFFFF)
		for e := pageHeader; e < pageSize; e += pageElement {
			binary.LittleEndian.PutUint32(p[e:], 0)
			binary.LittleEndian.PutUint32(p[e+4:], pageSize)
			binary.LittleEndian.PutUint32(p[e+8:], 1)
			binary.LittleEndian.PutUint32(p[e+12:], uint32(uint64(len(p))/2))
		}
	}
	file := pagesMake(2, noFreelist, pages)
	if mustNotHarm(t, "many claims", file) == nil {
		t.Error("not noticed")
	}
	var size int
	scavenge(bytes.NewReader(file), int64(len(file)), func(_ uint64, key, value []byte) { size += len(key) + len(value) })
	if size == 0 || size > 17*len(file) {
		t.Errorf("scavenge visited %d bytes of %d", size, len(file))
	}
}

func TestMemory(t *testing.T) {
	file := pagesSample(t)
	file = append(file, make([]byte, 8<<20)...)
	tree, err := openPages(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = tree.walk(func([][]byte, []byte, []byte) error { return nil })
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > tree.pages*pageSize*3/2 {
		t.Errorf("%d bytes allocated for %d pages", got, tree.pages)
	}
}

func TestOpenPages(t *testing.T) {
	sample := pagesSample(t)
	edit := func(f func(file []byte)) []byte {
		file := bytes.Clone(sample)
		f(file)
		return file
	}
	both := func(file []byte, f func(p []byte)) {
		for id := range 2 {
			f(file[id*pageSize:])
			pagesSum(file[id*pageSize:])
		}
	}
	for _, test := range []struct {
		name string
		file []byte
		want error
		says string
	}{
		{"empty", nil, ErrEmpty, "the file is empty"},
		{"zeros", make([]byte, 5*pageSize), ErrForeign, "not a zsetd snapshot"},
		{"text", []byte(strings.Repeat("save 3600 1\n", 3000)), ErrForeign, ""},
		{"short text", []byte("hello"), ErrForeign, ""},
		{"rdb", []byte("REDIS0011\xfa\x09redis-ver\x057.2.4\xff\x00\x00\x00\x00\x00\x00\x00\x00"), ErrForeign, ""},
		{"one meta", sample[:pageSize], ErrDamaged, "truncated to 4096 bytes"},
		{"no pages", sample[:2*pageSize], ErrDamaged, "truncated to 2 of"},
		{"last byte of the last page", sample[:binary.LittleEndian.Uint64(sample[56:])*pageSize-1], ErrDamaged, "truncated"},
		{"magic 0", edit(func(f []byte) { f[16]++ }), ErrDamaged, "page 0: not a meta"},
		{"magic 1", edit(func(f []byte) { clear(f[pageSize : 2*pageSize]) }), ErrDamaged, "page 1: not a meta"},
		{"version", edit(func(f []byte) { both(f, func(p []byte) { p[20] = 3 }) }), ErrDamaged, "page 0: meta of version 3"},
		{"checksum 0", edit(func(f []byte) { f[40]++ }), ErrDamaged, "page 0: the checksum"},
		{"checksum 1", edit(func(f []byte) { f[pageSize+79]++ }), ErrDamaged, "page 1: the checksum"},
		{"page size", edit(func(f []byte) { both(f, func(p []byte) { p[25] = 32 }) }), ErrDamaged, "pages of 8192 bytes"},
		{"real page size", pagesFile(t, bbolt.Options{PageSize: 8192}), ErrDamaged, "pages of 8192 bytes"},
		{"copied meta", edit(func(f []byte) { copy(f[:pageSize], f[pageSize:]) }), ErrDamaged, "page 0: the meta belongs"},
		{"no high-water mark", edit(func(f []byte) { both(f, func(p []byte) { clear(p[56:64]) }) }), ErrDamaged, "the page does not exist"},
		{"high high-water mark", edit(func(f []byte) { both(f, func(p []byte) { p[63] = 0xFF }) }), ErrDamaged, "truncated"},
		{"root is a meta", edit(func(f []byte) { both(f, func(p []byte) { p[32] = 1 }) }), ErrDamaged, "page 1: the page does not exist"},
		{"root is beyond", edit(func(f []byte) { both(f, func(p []byte) { p[39] = 0xFF }) }), ErrDamaged, "the page does not exist"},
		{"freelist is the root", edit(func(f []byte) { both(f, func(p []byte) { copy(p[48:56], p[32:40]) }) }), ErrDamaged, "referenced twice"},
		{"freelist is beyond", edit(func(f []byte) { both(f, func(p []byte) { p[55] = 0x7F }) }), ErrDamaged, "the page does not exist"},
	} {
		err := mustNotHarm(t, test.name, test.file)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
	}

	// The meta of the later transaction is used, whichever page it is in.
	for _, later := range []int{0, 1} {
		file := pagesMake(2, noFreelist, make([]byte, 10*pageSize))
		p := file[later*pageSize:]
		binary.LittleEndian.PutUint64(p[pageHeader+48:], 7)
		binary.LittleEndian.PutUint64(p[pageHeader+16:], 5)
		pagesSum(p)
		tree, err := openPages(bytes.NewReader(file), int64(len(file)))
		if err != nil || tree.txid != 7 || tree.root != 5 {
			t.Errorf("meta %d: %+v %v", later, tree, err)
		}
	}
}

func TestFreelist(t *testing.T) {
	// A freelist in page 3, of the pages from 4 to 9; an empty root in page 2.
	list := func(ids ...uint64) []byte {
		pages := make([]byte, 8*pageSize)
		binary.LittleEndian.PutUint64(pages, 2)
		pages[8] = leafFlag
		p := pages[pageSize:]
		binary.LittleEndian.PutUint64(p, 3)
		p[8] = freelistFlag
		binary.LittleEndian.PutUint16(p[10:], uint16(len(ids)))
		for i, id := range ids {
			binary.LittleEndian.PutUint64(p[pageHeader+8*i:], id)
		}
		return pagesMake(2, 3, pages)
	}
	counted := func(ids ...uint64) []byte {
		file := list(ids...)
		binary.LittleEndian.PutUint16(file[3*pageSize+10:], 0xFFFF)
		return file
	}
	if got, tree, err := pagesWalk(counted(2, 4, 5)); err != nil || len(got) > 0 || tree.pages-tree.used != 6 {
		t.Error(got, err)
	}
	for what, file := range map[string][]byte{
		"ok":               list(4, 5, 9),
		"type 0x2":         pagesMake(2, 3, pagesPad(pagesPage(2, leafFlag), pagesPage(3, leafFlag))),
		"names page 2":     list(2),
		"names page 3":     list(3),
		"after page 5":     list(5, 5),
		"names page 1":     list(1, 4),
		"names page 10":    list(4, 10),
		"of 511 pages":     list(make([]uint64, 511)...),
		"of 1099511627776": counted(1 << 40),
	} {
		if err := mustNotHarm(t, what, file); err == nil && what != "ok" || err != nil && !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// brokenReader fails on one page, as a disk does.
type brokenReader struct {
	io.ReaderAt
	page int64
}

func (r brokenReader) ReadAt(p []byte, at int64) (int, error) {
	if at <= r.page*pageSize && r.page*pageSize < at+int64(len(p)) {
		return 0, os.ErrInvalid
	}
	return r.ReaderAt.ReadAt(p, at)
}

func TestUnreadablePages(t *testing.T) {
	file := pagesSample(t)
	if _, err := openPages(bytes.NewReader(file[:pageSize]), int64(len(file))); !errors.Is(err, ErrDamaged) {
		t.Errorf("a file that has become shorter: %v", err)
	}
	whole := 0
	scavenge(bytes.NewReader(file), int64(len(file)), func(uint64, []byte, []byte) { whole++ })
	for page := range int64(len(file) / pageSize) {
		r := brokenReader{bytes.NewReader(file), page}
		tree, err := openPages(r, int64(len(file)))
		if err == nil {
			err = tree.walk(func([][]byte, []byte, []byte) error { return nil })
		}
		if err != nil && !errors.Is(err, os.ErrInvalid) {
			t.Errorf("page %d: %v", page, err)
		}
		rest := 0
		scavenge(r, int64(len(file)), func(uint64, []byte, []byte) { rest++ })
		if rest < whole/2 {
			t.Errorf("page %d: only %d of %d elements are left", page, rest, whole)
		}
	}
}

func FuzzPages(f *testing.F) {
	skipRace(f)
	// Only the beginnings of pages, so that most changes hit used bytes.
	const used = 160
	var seed []byte
	for _, p := range []string{
		pagesPage(2, leafFlag,
			pageParts{flags: bucketFlag, key: "inline", value: pagesInline(pagesPage(0, leafFlag, pageParts{key: "a", value: "b"}))},
			pageParts{flags: bucketFlag, key: "named", value: pagesNamed(3)}),
		pagesPage(3, branchFlag, pageParts{key: "a", child: 4}, pageParts{key: "c", child: 5}),
		pagesPage(4, leafFlag, pageParts{key: "a", value: "first"}, pageParts{key: "b", value: "second"}),
		pagesPage(5, leafFlag, pageParts{key: "c", value: "third"}),
		pagesPage(6, freelistFlag),
	} {
		seed = append(append(seed, p...), make([]byte, used-len(p))...)
	}
	file := func(root, freelist byte, pages []byte) []byte {
		list := noFreelist
		if freelist > 0 {
			list = uint64(freelist)
		}
		var all []string
		for len(pages) > 0 {
			n := min(len(pages), used)
			all = append(all, string(pages[:n]))
			pages = pages[n:]
		}
		return pagesMake(uint64(root), list, pagesPad(all...))
	}
	if got, _, err := pagesWalk(file(2, 6, seed)); err != nil || len(got) != 4 {
		f.Fatal(got, err)
	}
	f.Add(byte(2), byte(6), seed)
	f.Add(byte(2), byte(0), []byte{})
	f.Fuzz(func(t *testing.T, root, freelist byte, pages []byte) {
		mustNotHarm(t, "fuzz", file(root, freelist, pages))
	})
}

func BenchmarkWalk(b *testing.B) {
	for _, size := range []int{50, 1 << 20} {
		path := filepath.Join(b.TempDir(), "db")
		file := pagesFile(b, bbolt.Options{NoFreelistSync: true}, func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucket([]byte("records"))
			for i := range 64 << 20 / (size + 50) {
				err = errors.Join(err, bucket.Put(fmt.Appendf(nil, "key %010d", i), make([]byte, size)))
			}
			return err
		})
		if err := os.WriteFile(path, file, 0o600); err != nil {
			b.Fatal(err)
		}
		r, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				tree, err := openPages(r, int64(len(file)))
				if err == nil {
					err = tree.walk(func([][]byte, []byte, []byte) error { return nil })
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
