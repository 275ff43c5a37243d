package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// A reader of bbolt files. A bbolt file is pages of 4096 bytes: two metas, of which
// the one with the higher transaction number is valid, and a tree of branches and
// leaves. A bucket is a leaf element whose value names the root page of another
// tree or, while it is small, contains that page ("inline").
//
// The file is written with bbolt but not read with bbolt. bbolt checksums nothing
// but the metas and trusts the contents of the mapped pages: of 240 single flipped
// bits 68 return silently wrong values, and the others panic, fault or loop.
// Catching that (debug.SetPanicOnFault and recover) helps against the faults, not
// against the loops and the wrong values, and a lost meta makes bbolt silently fall
// back one commit.
//
// This reader trusts no byte. It demands every property of the pages that bbolt
// writes, more than bbolt needs to read them: that no page has two parents, that
// keys lie within the limits of the branches, and that the elements of a page are
// contiguous and fill the pages that they take. The last detects a flipped bit
// nearly everywhere except in the keys and values themselves, and it bounds the
// work: no byte is visited twice. Keys and values have no check here; records have
// checksums of their own. The reader cannot tell a stale page from a current one,
// if a branch is made to name it.
//
// A page is one read, a page that overflows two: 1.6 GB/s for small records, 3.8
// GB/s for large ones, on one core. So there is no read-ahead. A walk holds one page for
// each page on the path to a record.

const (
	pageHeader  = 16 // id uint64, flags uint16, count uint16, overflow uint32
	pageElement = 16 // of a leaf or a branch
	bucketEntry = 16 // root uint64, sequence uint64; an inline page follows if root is 0

	branchFlag   = 0x01
	leafFlag     = 0x02
	metaFlag     = 0x04
	freelistFlag = 0x10

	bucketFlag = 0x01 // of a leaf element

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	noFreelist  = ^uint64(0)

	// pageDepth bounds the path from the root to a leaf, through all buckets. A
	// tree of 2^30 pages with two children each is 30 deep.
	pageDepth = 100
)

// damagedPage returns an error that wraps ErrDamaged and names the page and the
// damage.
func damagedPage(page uint64, format string, args ...any) error {
	return damaged("page %d: %s", page, fmt.Sprintf(format, args...))
}

// pageTree is a bbolt file, read without trusting it.
type pageTree struct {
	r        io.ReaderAt
	metas    []byte // the two pages from which the next four were taken
	pages    uint64 // pages from this number on were never used
	root     uint64
	freelist uint64
	txid     uint64

	at   int64    // where the value that the walk visits begins in the file; 0 in an inline bucket
	seen []uint64 // a bit for each page that the walk has visited
	used uint64   // the number of bits

	// buffers has the memory for the page at each depth of the path, which the next page
	// there reuses; nil if each page gets fresh memory.
	buffers [][]byte
}

// openPages reads the metas. Both must be valid: bbolt would use the older one if
// the newer is damaged, and so lose a commit.
func openPages(r io.ReaderAt, size int64) (*pageTree, error) {
	if size <= 0 {
		return nil, ErrEmpty
	}
	buf := make([]byte, 2*pageSize)
	if err := readPages(r, buf[:min(size, int64(len(buf)))], 0); err != nil {
		return nil, err
	}
	metas := [2][]byte{buf[:pageSize], buf[pageSize:]}
	if !hasMagic(metas[0]) && !hasMagic(metas[1]) {
		return nil, ErrForeign
	}
	if size < int64(len(buf)) {
		return nil, fmt.Errorf("%w: truncated to %d bytes", ErrDamaged, size)
	}

	t := &pageTree{r: r, metas: buf}
	for i, p := range metas {
		if err := checkMeta(uint64(i), p); err != nil {
			return nil, err
		}
		m := p[pageHeader:]
		if txid := binary.LittleEndian.Uint64(m[48:]); i == 0 || txid > t.txid {
			t.root = binary.LittleEndian.Uint64(m[16:])
			t.freelist = binary.LittleEndian.Uint64(m[32:])
			t.pages = binary.LittleEndian.Uint64(m[40:])
			t.txid = txid
		}
	}
	if have := uint64(size) / pageSize; have < t.pages {
		return nil, fmt.Errorf("%w: truncated to %d of %d pages", ErrDamaged, have, t.pages)
	}
	return t, nil
}

// IsFile reports whether a file that begins with head may be a snapshot; 32 bytes
// are enough.
func IsFile(head []byte) bool { return len(head) >= pageHeader+4 && hasMagic(head) }

func hasMagic(p []byte) bool {
	return binary.LittleEndian.Uint32(p[pageHeader:]) == metaMagic
}

func checkMeta(id uint64, p []byte) error {
	m := p[pageHeader:]
	sum := fnv.New64a()
	sum.Write(m[:56])
	switch {
	case !hasMagic(p):
		return damagedPage(id, "not a meta page")
	case binary.LittleEndian.Uint32(m[4:]) != metaVersion:
		return damagedPage(id, "meta of version %d, not %d", binary.LittleEndian.Uint32(m[4:]), metaVersion)
	case binary.LittleEndian.Uint64(m[56:]) != sum.Sum64():
		return damagedPage(id, "the checksum of the meta does not match")
	case binary.LittleEndian.Uint32(m[8:]) != pageSize:
		return damagedPage(id, "pages of %d bytes, not %d", binary.LittleEndian.Uint32(m[8:]), pageSize)
	case binary.LittleEndian.Uint64(p) != id || binary.LittleEndian.Uint16(p[8:]) != metaFlag:
		return damagedPage(id, "the meta belongs to another page")
	}
	return nil
}

// walk visits every key and value of every bucket in the order of the keys. bucket
// is the path of names to it. The slices are valid until visit returns. An error of visit
// ends the walk.
func (t *pageTree) walk(visit func(bucket [][]byte, key, value []byte) error) error {
	t.buffers = make([][]byte, pageDepth+1)
	t.seen = make([]uint64, t.pages/64+1)
	t.seen[0] = 0b11 // the metas
	t.used = 2
	w := bucketWalk{pageTree: t, visit: visit}
	if err := w.page(t.root, nil, nil, 0); err != nil {
		return err
	}
	if t.freelist == noFreelist {
		return nil
	}
	return t.checkFreelist()
}

// walkDamaged is walk through a file that may be damaged. Instead of ending at damage,
// it passes to lost the bucket and the range of its keys that it could not visit
// completely (from the first on, below the second, nil being no limit), and continues
// behind them. Both functions may keep the slices. The freelist is not checked.
func (t *pageTree) walkDamaged(visit func(bucket [][]byte, key, value []byte) error, lost func(bucket [][]byte, from, to []byte, err error)) {
	t.buffers = nil
	t.seen = make([]uint64, t.pages/64+1)
	t.seen[0] = 0b11
	t.used = 2
	w := bucketWalk{pageTree: t, visit: visit, lost: lost}
	w.page(t.root, nil, nil, 0) // its errors go to lost
}

// checkFreelist verifies that bbolt would not overwrite a page in use.
func (t *pageTree) checkFreelist() error {
	p, err := t.read(t.freelist, 0)
	if err != nil {
		return err
	}
	if flags := binary.LittleEndian.Uint16(p[8:]); flags != freelistFlag {
		return damagedPage(t.freelist, "type %#x instead of a freelist", flags)
	}
	n := uint64(binary.LittleEndian.Uint16(p[10:]))
	ids := p[pageHeader:]
	if n == 0xFFFF {
		n = binary.LittleEndian.Uint64(ids)
		ids = ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return damagedPage(t.freelist, "a freelist of %d pages does not fit", n)
	}
	last := uint64(1)
	for ids = ids[:n*8]; len(ids) > 0; ids = ids[8:] {
		id := binary.LittleEndian.Uint64(ids)
		if id <= last || id >= t.pages {
			return damagedPage(t.freelist, "the freelist names page %d after page %d", id, last)
		}
		if t.seen[id/64]>>(id%64)&1 != 0 {
			return damagedPage(t.freelist, "the freelist names page %d, which is in use", id)
		}
		last = id
	}
	return nil
}

// buffer returns memory of n bytes for the page at a depth of the path. keep is its content
// so far.
func (t *pageTree) buffer(depth int, keep []byte, n int) []byte {
	if t.buffers == nil || cap(t.buffers[depth]) < n {
		b := make([]byte, n)
		copy(b, keep)
		if t.buffers != nil {
			t.buffers[depth] = b
		}
		return b
	}
	return t.buffers[depth][:n]
}

// read returns a page and its overflow pages. depth is the number of pages above it.
func (t *pageTree) read(id uint64, depth int) ([]byte, error) {
	if id < 2 || id >= t.pages {
		return nil, damagedPage(id, "the page does not exist")
	}
	p := t.buffer(depth, nil, pageSize)
	if err := readPages(t.r, p, id); err != nil {
		return nil, err
	}
	if self := binary.LittleEndian.Uint64(p); self != id {
		return nil, damagedPage(id, "the page header names page %d", self)
	}
	more := uint64(binary.LittleEndian.Uint32(p[12:]))
	if more >= t.pages-id {
		return nil, damagedPage(id, "the page extends %d pages beyond the end of the file", more-(t.pages-id)+1)
	}
	for i := id; i <= id+more; i++ {
		if t.seen[i/64]>>(i%64)&1 != 0 {
			return nil, damagedPage(i, "the page is referenced twice")
		}
		t.seen[i/64] |= 1 << (i % 64)
	}
	t.used += 1 + more
	if more == 0 {
		return p, nil
	}
	run := t.buffer(depth, p, int(1+more)*pageSize)
	return run, readPages(t.r, run[pageSize:], id+1)
}

// readPages fills p from page id on.
func readPages(r io.ReaderAt, p []byte, id uint64) error {
	n, err := r.ReadAt(p, int64(id*pageSize))
	switch {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF):
		return damagedPage(id, "the file ends there")
	}
	return fmt.Errorf("page %d cannot be read: %w", id, err)
}

// bucketWalk is the walk through one bucket.
type bucketWalk struct {
	*pageTree
	visit func(bucket [][]byte, key, value []byte) error
	lost  func(bucket [][]byte, from, to []byte, err error) // see walkDamaged; may be nil
	path  [][]byte
	// inline is true in an inline bucket, which contains no buckets.
	inline bool
}

// page walks through the subtree of a page, where all keys must be at least from
// and less than to; nil, for from and to of the bucket's root, is no limit.
func (w *bucketWalk) page(id uint64, from, to []byte, depth int) error {
	err := w.below(id, from, to, depth)
	if err != nil && w.lost != nil {
		w.lost(w.path, from, to, err)
		return nil
	}
	return err
}

func (w *bucketWalk) below(id uint64, from, to []byte, depth int) error {
	if depth > pageDepth {
		return damagedPage(id, "more than %d pages above it", pageDepth)
	}
	p, err := w.read(id, depth)
	if err != nil {
		return err
	}
	switch flags := binary.LittleEndian.Uint16(p[8:]); flags {
	case branchFlag:
		return w.branch(id, p, from, to, depth)
	case leafFlag:
		end, err := w.leaf(id, p, from, to, depth)
		if err == nil && end+pageSize <= uint64(len(p)) {
			return damagedPage(id, "the content takes %d bytes of %d", end, len(p))
		}
		return err
	default:
		return damagedPage(id, "type %#x instead of a branch or a leaf", flags)
	}
}

func (w *bucketWalk) branch(id uint64, p, from, to []byte, depth int) error {
	table := tableEnd(p)
	if table == pageHeader || table > uint64(len(p)) {
		return damagedPage(id, "a table of %d bytes in a branch of %d", table, len(p))
	}
	// The limits of a child are its key and the next, so each child is walked after
	// the next key is read.
	var child uint64
	var last []byte
	at := table
	for e := uint64(pageHeader); e < table; e += pageElement {
		pos := uint64(binary.LittleEndian.Uint32(p[e:]))
		size := uint64(binary.LittleEndian.Uint32(p[e+4:]))
		end := at + size
		if e+pos != at || size == 0 || end > uint64(len(p)) {
			return damagedPage(id, "element %d is at a wrong offset", e/pageElement-1)
		}
		key := p[at:end:end]
		switch {
		case last != nil:
			if bytes.Compare(last, key) >= 0 {
				return damagedPage(id, "key %d is out of order", e/pageElement-1)
			}
			if err := w.page(child, last, key, depth+1); err != nil {
				return err
			}
		case bytes.Compare(key, from) < 0:
			return damagedPage(id, "key 0 is out of order")
		}
		child, last, at = binary.LittleEndian.Uint64(p[e+8:]), key, end
	}
	if to != nil && bytes.Compare(last, to) >= 0 {
		return damagedPage(id, "the last key is not less than the next branch's")
	}
	if at+pageSize <= uint64(len(p)) {
		return damagedPage(id, "the content takes %d bytes of %d", at, len(p))
	}
	return w.page(child, last, to, depth+1)
}

// leaf visits the elements of p, a leaf page or an inline one within it, and
// returns where they end.
func (w *bucketWalk) leaf(id uint64, p, from, to []byte, depth int) (uint64, error) {
	table := tableEnd(p)
	if table > uint64(len(p)) {
		return 0, damagedPage(id, "a table of %d bytes in a leaf of %d", table, len(p))
	}
	if table == pageHeader {
		// Only a bucket can be empty. bbolt zeroes the unused rest of a page; if it
		// is not zero then the count is damaged.
		if from != nil || len(bytes.TrimLeft(p[pageHeader:], "\x00")) > 0 {
			return 0, damagedPage(id, "a leaf without elements")
		}
		return pageHeader, nil
	}
	at := table
	last := from
	for e := uint64(pageHeader); e < table; e += pageElement {
		begin, mid, end := leafElement(p, e)
		if begin != at || mid == at || end > uint64(len(p)) {
			return 0, damagedPage(id, "element %d is at a wrong offset", e/pageElement-1)
		}
		key, value := p[at:mid:mid], p[mid:end:end]
		if c := bytes.Compare(last, key); c > 0 || c == 0 && e > pageHeader {
			return 0, damagedPage(id, "key %d is out of order", e/pageElement-1)
		}
		if w.at = int64(id*pageSize + mid); w.inline {
			w.at = 0
		}
		var err error
		switch flags := binary.LittleEndian.Uint32(p[e:]); flags {
		case 0:
			err = w.visit(w.path, key, value)
		case bucketFlag:
			err = w.bucket(id, key, value, depth)
		default:
			err = damagedPage(id, "element %d is of type %#x", e/pageElement-1, flags)
		}
		if err != nil {
			return 0, err
		}
		last, at = key, end
	}
	if to != nil && bytes.Compare(last, to) >= 0 {
		return 0, damagedPage(id, "the last key is not less than the next branch's")
	}
	return at, nil
}

// bucket walks through a bucket that an element of page id names or contains.
func (w *bucketWalk) bucket(id uint64, name, value []byte, depth int) error {
	if len(value) < bucketEntry || w.inline {
		return damagedPage(id, "unexpected bucket of %d bytes", len(value))
	}
	inner := bucketWalk{
		pageTree: w.pageTree,
		visit:    w.visit,
		lost:     w.lost,
		path:     append(w.path[:len(w.path):len(w.path)], name),
	}
	p := value[bucketEntry:]
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		if len(p) > 0 {
			return damagedPage(id, "bucket with a root page and %d bytes of inline content", len(p))
		}
		return inner.page(root, nil, nil, depth+1)
	}
	if !isLeaf(p, 0) || binary.LittleEndian.Uint32(p[12:]) != 0 {
		return damagedPage(id, "bucket without a root page")
	}
	inner.inline = true
	end, err := inner.leaf(id, p, nil, nil, depth)
	if err == nil && end != uint64(len(p)) {
		return damagedPage(id, "inline bucket: the content takes %d bytes of %d", end, len(p))
	}
	return err
}

// isLeaf reports whether p begins as leaf page id does; inline pages are 0.
func isLeaf(p []byte, id uint64) bool {
	return len(p) >= pageHeader && binary.LittleEndian.Uint64(p) == id && binary.LittleEndian.Uint16(p[8:]) == leafFlag
}

// tableEnd returns the end of the table of elements that follows the header of a
// page, by the page's count of elements.
func tableEnd(p []byte) uint64 {
	return pageHeader + pageElement*uint64(binary.LittleEndian.Uint16(p[10:]))
}

// leafElement returns the beginning of the key of the element at e, and the
// beginning and the end of its value, all possibly far beyond p.
func leafElement(p []byte, e uint64) (at, mid, end uint64) {
	at = e + uint64(binary.LittleEndian.Uint32(p[e+4:]))
	mid = at + uint64(binary.LittleEndian.Uint32(p[e+8:]))
	end = mid + uint64(binary.LittleEndian.Uint32(p[e+12:]))
	return at, mid, end
}

// scavenge visits all bytes that look like an element of a leaf, without using the
// metas and branches: the remains of a file that walk refuses. Many elements were
// deleted or replaced long ago, some may be no element at all, and they have no
// order: the visitor must recognize its records by their own checksums. An element
// that may be a bucket is visited like any other, and then its contents if it is
// inline. The slices may be kept.
//
// Leaves and elements can claim the same bytes when one is damaged or stale, but
// only a crafted file claims all its bytes many times. The scavenge of such a file
// ends after sixteen times its size.
func scavenge(r io.ReaderAt, size int64, visit func(page uint64, key, value []byte)) {
	s := scavenger{visit: visit, left: 16 * size}
	head := make([]byte, pageSize)
	for id := uint64(2); int64(id*pageSize)+pageHeader <= size && s.left > 0; id++ {
		readScraps(r, head, id)
		if !isLeaf(head, id) {
			continue
		}
		// The overflow count may be damaged, so read only as many bytes as the
		// elements need. Their table, which is read first, gives that number.
		run := min((1+uint64(binary.LittleEndian.Uint32(head[12:])))*pageSize, uint64(size)-id*pageSize)
		p := head[:min(run, pageSize)]
		table := min(tableEnd(p), run)
		if table > pageSize {
			p = make([]byte, table)
			readScraps(r, p, id)
		}
		need := table
		for e := uint64(pageHeader); e+pageElement <= table; e += pageElement {
			if _, _, end := leafElement(p, e); end <= run {
				need = max(need, end)
			}
		}
		p = make([]byte, need)
		readScraps(r, p, id)
		s.left -= int64(need)
		s.leaf(id, p, false)
	}
}

// scavenger is the state of scavenge.
type scavenger struct {
	visit func(page uint64, key, value []byte)
	left  int64 // bytes to visit before it stops
}

func (s *scavenger) leaf(id uint64, p []byte, inline bool) {
	size := uint64(len(p))
	for e, table := uint64(pageHeader), min(tableEnd(p), size); e+pageElement <= table && s.left > 0; e += pageElement {
		at, mid, end := leafElement(p, e)
		if at == mid || end > size {
			continue
		}
		s.left -= int64(end - at)
		value := p[mid:end:end]
		s.visit(id, p[at:mid:mid], value)
		if !inline && len(value) > bucketEntry && isLeaf(value[bucketEntry:], 0) {
			s.leaf(id, value[bucketEntry:], true)
		}
	}
}

// readScraps fills p from page id on; where the file cannot be read, with zeros.
func readScraps(r io.ReaderAt, p []byte, id uint64) {
	clear(p)
	for at := 0; at < len(p); at += pageSize {
		// An error leaves zeros, and records made of them fail their checksums.
		_, _ = r.ReadAt(p[at:min(at+pageSize, len(p))], int64(id*pageSize)+int64(at))
	}
}
