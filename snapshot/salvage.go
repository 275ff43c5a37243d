package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"slices"
)

// Salvage of a damaged file.
//
// Each record is verifiable by itself: its checksum covers its name, its value and
// its generation. So the task is to find the records, and to tell the valid ones
// from those that were replaced or deleted.
//
// First the tree is walked, past all damage. Records found that way are valid.
// Records that are not found leave gaps: a range of names for a damaged page, all
// chunks of its key for a damaged record. Only names in a gap, or newer than the
// tree, are then searched in all pages of the file, in use or not. If a name is
// found there several times the newest is taken.
//
// The manifest has the number of records, and the sum of their checksums. If the
// records found agree with it nothing is missing, and no deleted record has come
// back, however the pages look. If not, both are possible within the gaps. If the
// gaps lie in journals, the oldest parts found there are dropped until there are no
// more than the manifest counts: journals are forgotten from the old end.
//
// The rejected alternative is to scavenge the whole file after any damage. One bad
// page would then bring back deleted keys in all of the file.

// Salvaged is the result of [Salvage].
type Salvaged struct {
	// Manifest describes the expected contents of the file. If Guessed is true no
	// manifest was left, and Manifest names the spaces of the records that were
	// found.
	Manifest Manifest
	Guessed  bool

	// Whole is true if the manifest confirms that all records were found.
	Whole bool

	// Scavenged is true if records were searched in pages that may have been out of
	// use. Unless Whole, keys that were deleted may have come back.
	Scavenged bool

	// Pages are the errors of damaged pages of the file.
	Pages []error

	// Lost are the keys that had a base which could not be put together. Old are
	// those that have an older base instead.
	Lost, Old []LostKey

	// Bases and Journal count the records found of each kind.
	Bases, Journal int64
}

// LostKey is a key of which something was lost. If only the hash of a long key is
// known then Key is the hash, and Hashed is true.
type LostKey struct {
	Space  uint64
	Key    string
	Hashed bool
}

// Salvage reads the undamaged records of a damaged file, which it does not change,
// and passes them to the visitor as [Read] does, but only after it has found all of
// them. It takes as much memory as the file has bytes. An error is one of reading
// or the visitor's own, or ErrForeign or ErrDamaged if no record can be salvaged.
// The file must not change meanwhile.
func Salvage(path string, v Visitor) (Salvaged, error) {
	file, err := os.Open(path)
	if err != nil {
		return Salvaged{}, fmt.Errorf("%s: %w", path, trimPath(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Salvaged{}, err
	}
	if info.Size() == 0 {
		return Salvaged{}, fmt.Errorf("%s: %w: nothing to salvage", path, ErrEmpty)
	}
	s, err := salvage(file, info.Size(), v)
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// gap is a range in which names may be missing, both ends included; nil is no
// limit.
type gap struct{ from, to []byte }

// gaps are unsorted until close is called.
type gaps []gap

// close sorts gaps and joins those that overlap.
func (g gaps) close() gaps {
	slices.SortFunc(g, func(a, b gap) int { return bytes.Compare(a.from, b.from) })
	out := g[:0]
	for _, x := range g {
		if n := len(out); n > 0 && (out[n-1].to == nil || bytes.Compare(x.from, out[n-1].to) <= 0) {
			if out[n-1].to != nil && (x.to == nil || bytes.Compare(x.to, out[n-1].to) > 0) {
				out[n-1].to = x.to
			}
			continue
		}
		out = append(out, x)
	}
	return out
}

// has reports whether a name lies in one of the gaps, which are closed.
func (g gaps) has(name []byte) bool {
	i, found := slices.BinarySearchFunc(g, name, func(x gap, name []byte) int { return bytes.Compare(x.from, name) })
	if found {
		return true
	}
	return i > 0 && (g[i-1].to == nil || bytes.Compare(name, g[i-1].to) <= 0)
}

// version is a base of one generation, perhaps with chunks missing.
type version struct {
	generation uint64
	chunks     map[uint32][]byte // whole values
}

// count returns the number of chunks that a complete version has, 0 if unknown.
func (v *version) count() int {
	first, ok := v.chunks[0]
	if !ok || len(first) < chunksAt+4 {
		return 0
	}
	return max(1, int(binary.BigEndian.Uint32(first[chunksAt:])))
}

func (v *version) complete() bool {
	n := v.count()
	if n == 0 || len(v.chunks) < n {
		return false
	}
	for i := range n {
		if v.chunks[uint32(i)] == nil {
			return false
		}
	}
	return true
}

// part names a part of a journal.
type part struct {
	generation uint64
	number     uint32
}

// salvaging is the state of a salvage.
type salvaging struct {
	Salvaged
	manifest bool   // a manifest was found
	newest   bool   // the tree that was walked certainly is that of the last commit
	walked   uint64 // the highest generation in it
	limit    uint64 // the generation of the last commit, as far as is known
	foreign  int    // number of records that files of this package do not have
	newer    error  // of a manifest with a newer format, or nil

	log    []byte  // the value of the log that the walk has found; may be nil
	groups []group // of the log

	bases map[string][]*version // by name without the chunk, few each
	parts map[part][]byte       // whole values
	found map[part]bool         // the parts that scavenge found and the walk did not

	keyGaps, checkpointGaps gaps
	last                    []byte // the last name of a valid base in the walk
	inGap                   bool   // since then came a record whose name is not that of a base
}

func salvage(r io.ReaderAt, size int64, v Visitor) (Salvaged, error) {
	s := &salvaging{bases: map[string][]*version{}, parts: map[part][]byte{}, found: map[part]bool{}}
	s.walk(r, size)
	if !s.agrees() {
		if len(s.keyGaps) == 0 && len(s.checkpointGaps) == 0 && s.newest && s.manifest {
			// No page looks damaged, and yet the records differ: stale pages in the
			// place of current ones. So a record may be anywhere.
			s.Pages = append(s.Pages, damaged("the tree lacks records that the manifest counts"))
			s.keyGaps, s.checkpointGaps = gaps{{}}, gaps{{}}
		}
		s.scavenge(r, size)
	}
	if s.newer != nil {
		return s.Salvaged, s.newer
	}
	generation := s.Manifest.Generation
	s.choose()
	s.chooseGroups(r, size, generation)
	if len(s.bases)+len(s.parts)+len(s.groups) == 0 && !s.manifest {
		if s.foreign > 0 || errors.Is(errors.Join(s.Pages...), ErrForeign) {
			return s.Salvaged, ErrForeign
		}
		return s.Salvaged, damaged("no record is readable")
	}
	return s.Salvaged, s.deliver(v)
}

// walk visits the newest tree that a meta names.
func (s *salvaging) walk(r io.ReaderAt, size int64) {
	tree, newest, err := salvageMetas(r, size)
	if err != nil {
		s.Pages = append(s.Pages, err)
	}
	s.newest = newest
	if tree == nil {
		s.keyGaps, s.checkpointGaps = gaps{{}}, gaps{{}}
		return
	}
	tree.walkDamaged(s.record, s.gap)
	s.endGap(nil)
	s.walked = max(s.walked, s.Manifest.Generation)
	if s.newest {
		s.limit = s.walked
	}
	s.keyGaps, s.checkpointGaps = s.keyGaps.close(), s.checkpointGaps.close()
}

// salvageMetas returns the tree of the newest valid meta, nil if there is none, and
// whether it is known to be the newest of all. The error describes the damage of
// the metas or the size.
func salvageMetas(r io.ReaderAt, size int64) (tree *pageTree, newest bool, err error) {
	if tree, err = openPages(r, size); err == nil {
		return tree, true, nil
	}
	foreign := errors.Is(err, ErrForeign)
	for id := range uint64(2) {
		p := make([]byte, pageSize)
		if readPages(r, p, id) != nil || checkMeta(id, p) != nil {
			continue
		}
		m := p[pageHeader:]
		txid := binary.LittleEndian.Uint64(m[48:])
		if tree != nil {
			newest = true // both metas are valid: the file is truncated
			if txid < tree.txid {
				continue
			}
		}
		tree = &pageTree{
			r: r, root: binary.LittleEndian.Uint64(m[16:]), freelist: noFreelist, txid: txid,
			pages: min(binary.LittleEndian.Uint64(m[40:]), uint64(size+pageSize-1)/pageSize),
		}
	}
	if foreign && tree == nil {
		return nil, false, ErrForeign
	}
	return tree, newest, err
}

// gap records a range that the walk could not visit.
func (s *salvaging) gap(bucket [][]byte, from, to []byte, err error) {
	s.Pages = append(s.Pages, err)
	switch {
	case len(bucket) == 0:
		s.keyGaps, s.checkpointGaps = append(s.keyGaps, gap{}), append(s.checkpointGaps, gap{})
	case string(bucket[0]) == keysBucket:
		s.keyGaps = append(s.keyGaps, gap{from, to})
	case string(bucket[0]) == checkpointsBucket && len(bucket) == 1:
		s.checkpointGaps = append(s.checkpointGaps, gap{from, to})
	case string(bucket[0]) == checkpointsBucket:
		s.checkpointGaps = append(s.checkpointGaps, gap{bucket[1], bucket[1]})
	}
}

// endGap ends a gap that began with a record without a proper name, at a valid record
// of this name; nil is the end of the walk.
func (s *salvaging) endGap(name []byte) {
	if s.inGap {
		s.keyGaps = append(s.keyGaps, gap{s.last, name})
		s.inGap = false
	}
}

// record receives the records of the walk.
func (s *salvaging) record(bucket [][]byte, name, value []byte) error {
	switch {
	case len(bucket) == 1 && string(bucket[0]) == aboutBucket && string(name) == manifestName:
		m, err := decodeManifest(value)
		s.noteNewer(err)
		if err != nil {
			s.Pages = append(s.Pages, err)
			break
		}
		s.Manifest, s.manifest = m, true
	case len(bucket) == 1 && string(bucket[0]) == groupsBucket && string(name) == logName:
		s.log = value
	case len(bucket) == 2 && string(bucket[0]) == checkpointsBucket && len(bucket[1]) == 8:
		if _, _, ok := unseal(value, bucket[1], name); !ok || len(name) != 4 {
			s.Pages = append(s.Pages, damaged("journal of checkpoint %d, part %x", binary.BigEndian.Uint64(bucket[1]), name))
			s.checkpointGaps = append(s.checkpointGaps, gap{bucket[1], bucket[1]})
			break
		}
		generation := binary.BigEndian.Uint64(bucket[1])
		s.parts[part{generation, binary.BigEndian.Uint32(name)}] = value
		s.walked = max(s.walked, generation)
	case len(bucket) == 1 && string(bucket[0]) == keysBucket:
		if !s.base(name, value) {
			s.noteDamaged(name)
			break
		}
		s.endGap(name)
		s.last = name
		s.walked = max(s.walked, binary.BigEndian.Uint64(value[sumSize:]))
	default:
		if s.foreign++; s.foreign == 1 {
			s.Pages = append(s.Pages, damaged("unexpected record %.100q in bucket %.100q", name, bucket))
		}
	}
	return nil
}

// noteDamaged records a base whose checksum does not match, and the gap in which to search
// another version of it. Mostly the value is damaged and the name is right; then
// the gap is the key alone, so that no deleted neighbour can come back. (If the
// name is damaged, and is still a valid name, the original key is lost.) A record
// without a valid name may stand for any key up to the next valid name: see endGap.
func (s *salvaging) noteDamaged(name []byte) {
	space, key, long, i, ok := parseBaseName(name)
	switch {
	case !ok:
		s.Pages = append(s.Pages, damaged("base %q: invalid name", name))
		s.inGap = true
		return
	case long:
		s.Pages = append(s.Pages, damaged("the value of a key of 1 KB or more in space %d, whose SHA-256 is %x, chunk %d", space, key, i))
	default:
		s.Pages = append(s.Pages, damaged("the value of key %.100q in space %d, chunk %d", key, space, i))
	}
	stem := name[: len(name)-4 : len(name)-4]
	s.keyGaps = append(s.keyGaps, gap{append(stem, 0, 0, 0, 0), append(stem, 0xff, 0xff, 0xff, 0xff)})
	// A version that is never complete: the key is lost unless there is another
	// version, which is an old one.
	s.bases[string(stem)] = append(s.bases[string(stem)], &version{math.MaxUint64, map[uint32][]byte{}})
}

// base keeps a chunk of a base, and reports whether it is valid.
func (s *salvaging) base(name, value []byte) bool {
	_, _, _, i, ok := parseBaseName(name)
	if !ok {
		return false
	}
	body, _, ok := unseal(value, name)
	if !ok || len(body) < 8 {
		return false
	}
	generation := binary.BigEndian.Uint64(body)
	stem := string(name[:len(name)-4])
	for _, v := range s.bases[stem] {
		if v.generation == generation {
			v.chunks[uint32(i)] = value
			return true
		}
	}
	s.bases[stem] = append(s.bases[stem], &version{generation, map[uint32][]byte{uint32(i): value}})
	return true
}

// agrees reports whether the records found are those that the manifest counts.
func (s *salvaging) agrees() bool {
	if !s.manifest || !s.newest {
		return false
	}
	var bases, journal tally
	for _, versions := range s.bases {
		v := slices.MaxFunc(versions, func(a, b *version) int { return cmp.Compare(a.generation, b.generation) })
		for _, value := range v.chunks {
			bases.add(binary.LittleEndian.Uint32(value), len(value))
		}
	}
	for _, value := range s.parts {
		journal.add(binary.LittleEndian.Uint32(value), len(value))
	}
	return bases == s.Manifest.Bases && journal == s.Manifest.Journal
}

// noteNewer keeps the error of a manifest with a newer format: the records of the file may
// mean something else, so none is salvaged.
func (s *salvaging) noteNewer(err error) {
	if errors.Is(err, ErrNewer) {
		s.newer = err
	}
}

// scavenge searches all pages for records in the gaps.
func (s *salvaging) scavenge(r io.ReaderAt, size int64) {
	s.Scavenged = true
	type scrap struct{ name, value []byte }
	var bases, parts []scrap
	sums := map[string]bool{}
	latest, have := s.Manifest, s.manifest && s.newest
	scavenge(r, size, func(_ uint64, name, value []byte) {
		switch {
		case string(name) == manifestName:
			m, err := decodeManifest(value)
			s.noteNewer(err)
			if err == nil && !have && (!s.manifest || m.Generation > latest.Generation) {
				latest, s.manifest = m, true
			}
		case len(name) == 4 && len(value) > sumSize:
			if k := string(name) + string(value[:sumSize]); !sums[k] {
				sums[k] = true
				parts = append(parts, scrap{name, value})
			}
		default:
			if _, _, _, _, ok := parseBaseName(name); !ok {
				return
			}
			if body, _, ok := unseal(value, name); ok && len(body) >= 8 {
				if s.keyGaps.has(name) || !s.newest && binary.BigEndian.Uint64(body) > s.walked {
					bases = append(bases, scrap{name, value})
				}
			}
		}
	})
	s.Manifest = latest
	if s.manifest { // newer records were never committed
		s.limit = max(s.limit, s.Manifest.Generation)
		bases = slices.DeleteFunc(bases, func(x scrap) bool { return binary.BigEndian.Uint64(x.value[sumSize:]) > s.limit })
	}
	for _, x := range bases {
		s.base(x.name, x.value)
	}
	if s.manifest {
		rewind := newRewinder()
		names := s.checkpointNames()
		for _, x := range parts {
			p := part{names[rewind.sum(binary.LittleEndian.Uint32(x.value), x.value[sumSize:], x.name)], binary.BigEndian.Uint32(x.name)}
			if _, have := s.parts[p]; p.generation == 0 || have {
				continue
			}
			s.parts[p], s.found[p] = x.value, true
		}
		s.dropForgotten()
	}
}

// maxCheckpoints is the number of checkpoints that are considered when journals are
// searched. The server rewrites a file long before it has so many journals.
const maxCheckpoints = 4 << 20

// checkpointNames returns the generations of which journals are missing, by the
// checksums of the names of their buckets.
func (s *salvaging) checkpointNames() map[uint32]uint64 {
	names := map[uint32]uint64{}
	last := s.limit
	first := uint64(1)
	if last > maxCheckpoints {
		first = last - maxCheckpoints + 1
	}
	for g := first; g <= last; g++ {
		name := checkpointName(g)
		if s.checkpointGaps.has(name) || !s.newest && g > s.walked {
			names[checksum(name)] = g
		}
	}
	return names
}

// dropForgotten drops journals that were forgotten already: the oldest of those
// that the walk did not find, while there are more than the manifest counts.
func (s *salvaging) dropForgotten() {
	old := slices.SortedFunc(maps.Keys(s.found), func(a, b part) int {
		return cmp.Or(cmp.Compare(a.generation, b.generation), cmp.Compare(a.number, b.number))
	})
	for _, p := range old {
		if int64(len(s.parts)) <= s.Manifest.Journal.Records {
			return
		}
		delete(s.parts, p)
	}
}

// rewinder computes a CRC backwards: the checksum before some bytes from the one
// after them. A part of a journal does not contain the generation of its checkpoint,
// but its checksum began with that.
type rewinder struct {
	table *crc32.Table
	index [256]byte // of the entry with this highest byte
}

func newRewinder() *rewinder {
	r := &rewinder{table: crc32.MakeTable(crc32.Castagnoli)}
	for i, x := range r.table {
		r.index[x>>24] = byte(i)
	}
	return r
}

// sum returns the checksum of the bytes before name and body, given the checksum
// sum of all three.
func (r *rewinder) sum(sum uint32, body, name []byte) uint32 {
	sum = ^sum
	for _, b := range [2][]byte{body, name} {
		for i := len(b) - 1; i >= 0; i-- {
			k := r.index[sum>>24]
			sum = (sum^r.table[k])<<8 | uint32(k^b[i])
		}
	}
	return ^sum
}

// choose keeps one version of each base, the newest that is complete.
func (s *salvaging) choose() {
	if !s.manifest {
		s.Guessed = true
		spaces := map[uint64]bool{}
		for stem := range s.bases {
			spaces[binary.BigEndian.Uint64([]byte(stem))] = true
		}
		s.Manifest = Manifest{Format: plainFormat, Spaces: slices.Sorted(maps.Keys(spaces))}
	}
	for stem := range s.bases {
		s.Manifest.LastSpace = max(s.Manifest.LastSpace, binary.BigEndian.Uint64([]byte(stem)))
	}
	var bases, journal tally
	for stem, versions := range s.bases {
		slices.SortFunc(versions, func(a, b *version) int { return cmp.Compare(b.generation, a.generation) })
		i := slices.IndexFunc(versions, (*version).complete)
		if i != 0 {
			lost := lostKey(stem, versions)
			if i < 0 {
				s.Lost = append(s.Lost, lost)
				delete(s.bases, stem)
				continue
			}
			s.Old = append(s.Old, lost)
		}
		v := versions[i]
		s.bases[stem] = []*version{v}
		for i := range v.count() {
			value := v.chunks[uint32(i)]
			bases.add(binary.LittleEndian.Uint32(value), len(value))
		}
		s.Manifest.Generation = max(s.Manifest.Generation, v.generation)
	}
	for p, value := range s.parts {
		s.Manifest.Generation = max(s.Manifest.Generation, p.generation)
		journal.add(binary.LittleEndian.Uint32(value), len(value))
	}
	s.Bases, s.Journal = bases.Records, journal.Records
	s.Whole = !s.Guessed && bases == s.Manifest.Bases && journal == s.Manifest.Journal
	if s.Whole {
		s.Lost, s.Old = nil, nil // all records that the manifest counts are there, whatever looked lost
	}
	order := func(a, b LostKey) int { return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Key, b.Key)) }
	slices.SortFunc(s.Lost, order)
	slices.SortFunc(s.Old, order)
}

// chooseGroups finds the groups of the log, which follows the checkpoint of a generation. If the
// log is damaged these are the groups that can be put together, and records between them may
// be missing.
func (s *salvaging) chooseGroups(r io.ReaderAt, size int64, generation uint64) {
	if !s.Guessed && s.Manifest.Log == 0 {
		return
	}
	content, err := parseLog(s.log, generation)
	if !s.Guessed && err == nil {
		s.groups = content.groups
	} else {
		if s.Guessed {
			generation = 0
		}
		from, groups, last := salvageLog(r, size, generation)
		if s.Guessed && (last == 0 || from < s.Manifest.Generation) {
			return // there is no log, or it is older than the records
		}
		s.Whole, s.Scavenged = false, true
		s.Pages = append(s.Pages, fmt.Errorf("%w; found %d of at least %d groups", cmp.Or(err, damaged("the log")), len(groups), last))
		s.groups, s.Manifest.Generation = groups, max(s.Manifest.Generation, from)
	}
	if n := len(s.groups); n > 0 {
		s.Manifest = s.Manifest.current(n, &s.groups[n-1])
	}
}

// lostKey names a key by its base's name, or better by a first chunk.
func lostKey(stem string, versions []*version) LostKey {
	space, key, long, _, _ := parseBaseName([]byte(stem + "\x00\x00\x00\x00"))
	lost := LostKey{space, string(key), long}
	if !long {
		return lost
	}
	for _, v := range versions {
		first := v.chunks[0]
		if len(first) < chunksAt+4 {
			continue
		}
		body := first[chunksAt+4:]
		if n, w := binary.Uvarint(body); w > 0 && n <= uint64(len(body)-w) {
			return LostKey{space, string(body[w : w+int(n)]), false}
		}
	}
	return lost
}

// deliver passes the records to the visitor, as reading does.
func (s *salvaging) deliver(v Visitor) error {
	if v.Begin != nil {
		if err := v.Begin(s.Manifest); err != nil {
			return err
		}
	}
	parts := slices.SortedFunc(maps.Keys(s.parts), func(a, b part) int {
		return cmp.Or(cmp.Compare(a.generation, b.generation), cmp.Compare(a.number, b.number))
	})
	for _, p := range parts {
		if err := v.part(Part{Generation: p.generation, Records: s.parts[p][sumSize:]}); err != nil {
			return err
		}
	}
	for _, g := range s.groups {
		if err := v.part(Part{Generation: s.Manifest.Generation + 1, Records: g.records}); err != nil {
			return err
		}
	}
	r := &reading{v: v, manifest: s.Manifest}
	for _, stem := range slices.Sorted(maps.Keys(s.bases)) {
		base := s.bases[stem][0]
		for i := range base.count() {
			name := binary.BigEndian.AppendUint32([]byte(stem), uint32(i))
			if err := r.base(name, base.chunks[uint32(i)]); err != nil {
				return err
			}
		}
	}
	return v.end()
}
