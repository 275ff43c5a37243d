package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"time"
)

// The log of a file: its format, which doc.go specifies, and its readers. append.go writes
// it.

const (
	groupsBucket = "groups" // between the buckets of journals and of bases: it is read between them
	logName      = "log"

	// blockSize is that of a sector, the unit that a disk writes as a whole or not at all.
	blockSize = 512
	blockHead = sumSize + 8 + 4 + 4 + 2
	blockRoom = blockSize - blockHead

	// Bits of the length of a block.
	firstBlock = 0x4000
	lastBlock  = 0x8000

	// The value of the log begins at logStart of its page, so that its first block, behind
	// its head, begins with a sector.
	logStart  = pageHeader + pageElement + 3 // bytes of the name
	logHead   = blockSize - logStart
	logPages  = 256
	logSize   = logPages*pageSize - logStart
	logBlocks = (logSize - logHead) / blockSize
)

// group is a checkpoint in the log.
type group struct {
	time    time.Time
	stream  *Stream
	records []byte // of its journal
}

// appendHead appends what precedes the records of a group.
func (g *group) appendHead(b []byte) ([]byte, error) {
	at, err := g.time.MarshalBinary()
	if err != nil {
		return nil, err
	}
	b = append(append(b, byte(len(at))), at...)
	if g.stream == nil {
		return append(b, 0), nil
	}
	b = binary.AppendUvarint(append(b, 1), uint64(len(g.stream.ID)))
	b = binary.AppendVarint(append(b, g.stream.ID...), g.stream.Offset)
	return binary.AppendVarint(b, int64(g.stream.Database)), nil
}

// parseGroup is the inverse of appendHead, with the records that follow.
func parseGroup(b []byte) (g group, ok bool) {
	if len(b) < 1 || len(b) < 1+int(b[0])+1 {
		return g, false
	}
	at, b := b[1:1+b[0]], b[1+b[0]:]
	if g.time.UnmarshalBinary(at) != nil {
		return g, false
	}
	has := b[0]
	b = b[1:]
	if has == 1 {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w) {
			return g, false
		}
		g.stream = &Stream{ID: string(b[w : w+int(n)])}
		b = b[w+int(n):]
		offset, w := binary.Varint(b)
		if w <= 0 {
			return g, false
		}
		database, w2 := binary.Varint(b[w:])
		if w2 <= 0 {
			return g, false
		}
		g.stream.Offset, g.stream.Database = offset, int(database)
		b = b[w+w2:]
	}
	g.records = b
	return g, has <= 1
}

// block is a block of a log.
type block struct {
	generation uint64 // of the checkpoint that the log follows; 0 if the block was never written
	index      uint32 // of the block in the log
	group      uint32 // counts from 1
	first      bool   // of its group
	last       bool
	payload    []byte
}

// appendBlock appends a block with its checksum.
func appendBlock(to []byte, b block) []byte {
	at := len(to)
	to = append(to, make([]byte, blockSize)...)
	p := to[at:]
	binary.BigEndian.PutUint64(p[4:], b.generation)
	binary.BigEndian.PutUint32(p[12:], b.index)
	binary.BigEndian.PutUint32(p[16:], b.group)
	length := uint16(len(b.payload))
	if b.first {
		length |= firstBlock
	}
	if b.last {
		length |= lastBlock
	}
	binary.BigEndian.PutUint16(p[20:], length)
	copy(p[blockHead:], b.payload)
	seal(p)
	return to
}

// appendBlocks appends the blocks of a group.
func appendBlocks(to []byte, b block, payload []byte) []byte {
	for b.first = true; !b.last; b.first = false {
		n := min(len(payload), blockRoom)
		b.payload, payload = payload[:n], payload[n:]
		b.last = len(payload) == 0
		to = appendBlock(to, b)
		b.index++
	}
	return to
}

// parseBlock is the inverse of appendBlock. ok is false if the block is damaged.
func parseBlock(p []byte) (b block, ok bool) {
	if p[0]|p[4]|p[20] == 0 && len(bytes.TrimLeft(p[:blockSize], "\x00")) == 0 {
		return b, true
	}
	if _, _, ok := unseal(p[:blockSize]); !ok {
		return b, false
	}
	length := binary.BigEndian.Uint16(p[20:])
	b = block{
		generation: binary.BigEndian.Uint64(p[4:]),
		index:      binary.BigEndian.Uint32(p[12:]), group: binary.BigEndian.Uint32(p[16:]),
		first: length&firstBlock != 0, last: length&lastBlock != 0,
	}
	if length &^= firstBlock | lastBlock; length > blockRoom {
		return b, false
	}
	b.payload = p[blockHead : blockHead+length]
	return b, b.generation > 0
}

// newLog returns the value of a log without groups.
func newLog() []byte {
	value := make([]byte, logSize)
	seal(value[:logHead], []byte(logName))
	return value
}

// logContent is what a log holds.
type logContent struct {
	groups  []group
	remains bool // blocks follow, of a group that is not whole
}

// parseLog verifies the value of a log that follows the checkpoint of a generation. A group
// is not whole if the power has failed while it was written: it was never confirmed, and is
// left out. That is possible only for the last group, and all that it lacks is whole blocks.
func parseLog(value []byte, generation uint64) (c logContent, err error) {
	if len(value) < logHead+blockSize || (len(value)-logHead)%blockSize != 0 {
		return c, damaged("a log of %d bytes", len(value))
	}
	if _, _, ok := unseal(value[:logHead], []byte(logName)); !ok {
		return c, damaged("the head of the log")
	}
	var payload []byte
	ended := false
	for i := 0; i < (len(value)-logHead)/blockSize; i++ {
		b, ok := parseBlock(value[logHead+i*blockSize:])
		number := uint32(len(c.groups) + 1)
		switch {
		case !ok:
			return c, damaged("block %d of the log", i)
		case b.generation < generation:
			ended = true
		case b.generation > generation || b.index != uint32(i):
			return c, damaged("block %d of the log is block %d of the log of checkpoint %d, not %d", i, b.index, b.generation, generation)
		case b.group != number || !ended && b.first != (len(payload) == 0):
			return c, damaged("group %d of the log is not whole, and block %d is of group %d", number, i, b.group)
		case ended:
			c.remains = true
		default:
			c.remains = true
			if payload = append(payload, b.payload...); !b.last {
				continue
			}
			g, ok := parseGroup(payload)
			if !ok {
				return c, damaged("group %d of the log", number)
			}
			c.groups, c.remains, payload = append(c.groups, g), false, nil
		}
	}
	return c, nil
}

// logAt returns where the value of the log lies in the file, and its size; zeros if the file
// has none. It reads the two pages that lead to it.
func (t *pageTree) logAt() (at, size int64, err error) {
	root, err := t.leafOf(t.root)
	if err != nil {
		return 0, 0, err
	}
	for e, table := uint64(pageHeader), min(tableEnd(root), uint64(len(root))); e+pageElement <= table; e += pageElement {
		begin, mid, end := leafElement(root, e)
		if end > uint64(len(root)) || string(root[begin:mid]) != groupsBucket || end-mid < bucketEntry {
			continue
		}
		id := binary.LittleEndian.Uint64(root[mid:])
		p := make([]byte, pageSize)
		if id < 2 || id >= t.pages {
			return 0, 0, damagedPage(id, "the page does not exist")
		}
		if err := readPages(t.r, p, id); err != nil {
			return 0, 0, err
		}
		begin, mid, end = leafElement(p, pageHeader)
		if !isLeaf(p, id) || mid > pageSize || string(p[begin:mid]) != logName || end > (t.pages-id)*pageSize {
			return 0, 0, damagedPage(id, "not the page of a log")
		}
		return int64(id*pageSize + mid), int64(end - mid), nil
	}
	return 0, 0, nil
}

// leafOf returns a leaf with its overflow pages.
func (t *pageTree) leafOf(id uint64) ([]byte, error) {
	t.seen = make([]uint64, t.pages/64+1)
	p, err := t.read(id, 0)
	if err == nil && !isLeaf(p, id) {
		err = damagedPage(id, "not a leaf")
	}
	return p, err
}

// blockTries is the number of times that copyLog reads a block that seems to be damaged:
// another process may be writing it.
const blockTries = 5

// copyLog copies the log of a file, to which a process may be appending, into a copy of the
// file. It reads the blocks from the last to the first, so each block was written after those
// that it reads later: the groups that it finds are those up to some instant.
func (t *pageTree) copyLog(to io.WriterAt) error {
	at, size, err := t.logAt()
	if errors.Is(err, ErrDamaged) || err == nil && size < logHead+blockSize {
		return nil // a damaged file is copied as it is
	}
	if err != nil {
		return err
	}
	value := make([]byte, size)
	if _, err := t.r.ReadAt(value[:logHead], at); err != nil {
		return err
	}
	for i := (size - logHead) / blockSize; i > 0; i-- {
		offset := logHead + (i-1)*blockSize
		for try := 1; ; try++ {
			if _, err := t.r.ReadAt(value[offset:offset+blockSize], at+offset); err != nil {
				return err
			}
			if _, ok := parseBlock(value[offset:]); ok || try == blockTries {
				break
			}
		}
	}
	_, err = to.WriteAt(value, at)
	return err
}

// salvageLog returns the groups that can be put together from the blocks of a generation that
// are found anywhere in a file, and the highest number of a group of which a block was found.
// The blocks of generation 0 are those of the highest generation found.
func salvageLog(r io.ReaderAt, size int64, generation uint64) (from uint64, groups []group, last uint32) {
	blocks := map[uint32]block{} // by their index
	p := make([]byte, pageSize)
	for id := uint64(2); int64(id*pageSize) < size; id++ {
		readScraps(r, p, id)
		for at := 0; at < pageSize; at += blockSize {
			b, ok := parseBlock(p[at:])
			if !ok || b.generation == 0 || generation != 0 && b.generation != generation || b.generation < from {
				continue
			}
			if b.generation > from {
				from = b.generation
				clear(blocks)
			}
			b.payload = slices.Clone(b.payload)
			blocks[b.index] = b
		}
	}
	var payload []byte
	next := block{}
	for _, index := range slices.Sorted(maps.Keys(blocks)) {
		b := blocks[index]
		last = max(last, b.group)
		if b.first {
			payload = nil
		} else if index != next.index || b.group != next.group {
			continue
		}
		payload = append(payload, b.payload...)
		next = block{index: index + 1, group: b.group}
		if !b.last {
			continue
		}
		if g, ok := parseGroup(payload); ok {
			groups = append(groups, g)
		}
		next = block{}
	}
	return from, groups, last
}
