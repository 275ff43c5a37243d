package snapshot

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
)

// The format is described in doc.go.

// The formats: that of a file without a log, and that of a file with one.
const (
	plainFormat  = 1
	logFormat    = 2
	newestFormat = logFormat
)

// The names of the buckets, in their order, and of the one record in the first.
const (
	aboutBucket       = "about"
	checkpointsBucket = "cuts"
	keysBucket        = "keys"
	manifestName      = "manifest"
)

const (
	// longKey is the length from which a key is named by its hash: bbolt has a
	// limit of 32 KB, and pages of short keys are faster.
	longKey  = 1024
	longMark = 0xffff

	sumSize = 4
)

// ErrDamaged means that a file does not hold the data that were written to it,
// ErrEmpty that it has no bytes at all, ErrForeign that it was not written by this
// package, ErrNewer that a later version of it has written the file. ErrInUse means that another process has the file open, or this one has
// it open already, ErrReplaced that another file has its name.
var (
	ErrDamaged  = errors.New("damaged")
	ErrEmpty    = errors.New("the file is empty (0 bytes)")
	ErrForeign  = errors.New("not a zsetd snapshot")
	ErrNewer    = errors.New("the file has a newer format")
	ErrInUse    = errors.New("in use")
	ErrReplaced = errors.New("replaced by another file")
)

// damaged returns an error that wraps ErrDamaged and names the location.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// seal fills in the checksum at the beginning of a value. It covers the names that
// lead to the value, too. The value must have sumSize bytes of space for it.
func seal(value []byte, names ...[]byte) uint32 {
	sum := checksum(value[sumSize:], names...)
	binary.LittleEndian.PutUint32(value, sum)
	return sum
}

func checksum(body []byte, names ...[]byte) uint32 {
	castagnoli := crc32.MakeTable(crc32.Castagnoli) // computed once
	sum := uint32(0)
	for _, name := range names {
		sum = crc32.Update(sum, castagnoli, name)
	}
	return crc32.Update(sum, castagnoli, body)
}

// unseal verifies a value and returns the bytes after the checksum.
func unseal(value []byte, names ...[]byte) (body []byte, sum uint32, ok bool) {
	if len(value) < sumSize {
		return nil, 0, false
	}
	sum = binary.LittleEndian.Uint32(value)
	body = value[sumSize:]
	return body, sum, checksum(body, names...) == sum
}

// baseName returns the name of a chunk of a key's base.
func baseName(space uint64, key string, chunk int) []byte {
	b := make([]byte, 0, 8+2+min(len(key), longKey)+4)
	b = binary.BigEndian.AppendUint64(b, space)
	if len(key) >= longKey {
		sum := sha256.Sum256([]byte(key))
		b = append(binary.BigEndian.AppendUint16(b, longMark), sum[:]...)
	} else {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(key))), key...)
	}
	return binary.BigEndian.AppendUint32(b, uint32(chunk))
}

// Compare compares two keys of spaces in the order in which files hold them: by
// space, then the shorter first. Long keys come last, in the order of their hashes.
func Compare(space uint64, key string, otherSpace uint64, other string) int {
	if len(key) >= longKey && len(other) >= longKey {
		return bytes.Compare(baseName(space, key, 0), baseName(otherSpace, other, 0))
	}
	return cmp.Or(cmp.Compare(space, otherSpace), cmp.Compare(len(key), len(other)), cmp.Compare(key, other))
}

// parseBaseName is the inverse of baseName. long reports that key is the hash of
// the key.
func parseBaseName(b []byte) (space uint64, key []byte, long bool, chunk int, ok bool) {
	if len(b) < 8+2+4 {
		return 0, nil, false, 0, false
	}
	space = binary.BigEndian.Uint64(b)
	n := int(binary.BigEndian.Uint16(b[8:]))
	key = b[10 : len(b)-4]
	if n == longMark {
		long, n = true, sha256.Size
	}
	return space, key, long, int(binary.BigEndian.Uint32(b[len(b)-4:])), n == len(key)
}

// appendBaseHead appends the header before the operations of a chunk: the
// generation, and in the first chunk space for the number of chunks (see putChunks)
// and the key if it is long.
func appendBaseHead(b []byte, generation uint64, key string, chunk int) []byte {
	b = binary.BigEndian.AppendUint64(b, generation)
	if chunk > 0 {
		return b
	}
	b = append(b, 0, 0, 0, 0)
	if len(key) >= longKey {
		b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	}
	return b
}

// chunksAt is the offset of the number of chunks in the first chunk of a base.
const chunksAt = sumSize + 8

// putChunks sets the number of chunks in the first chunk of a base.
func putChunks(first []byte, chunks int) {
	binary.BigEndian.PutUint32(first[chunksAt:], uint32(chunks))
}

// checkpointName is the name of a checkpoint's bucket, partName that of a part of
// its journal.
func checkpointName(generation uint64) []byte { return binary.BigEndian.AppendUint64(nil, generation) }
func partName(part int) []byte                { return binary.BigEndian.AppendUint32(nil, uint32(part)) }

// Manifest describes the expected contents of a file. Every transaction rewrites
// it.
type Manifest struct {
	Format     int       `json:"format"`
	Generation uint64    `json:"generation"`       // of the last checkpoint
	Time       time.Time `json:"time"`             // of the last checkpoint
	Spaces     []uint64  `json:"spaces"`           // the space of each database
	LastSpace  uint64    `json:"last_space"`       // the highest number of a space so far
	Keys       []int64   `json:"keys,omitempty"`   // about how many keys each database has, if that is known
	Stream     *Stream   `json:"stream,omitempty"` // that has led to the contents, if that is known
	Bases      tally     `json:"bases"`
	Journal    tally     `json:"journal"`
	Log        int64     `json:"log,omitempty"` // the size of the log; 0 if there is none
}

// Stream is a position in a stream of changes: exactly the changes up to it have led to
// the contents of a file.
type Stream struct {
	ID       string `json:"id"`       // of the stream, chosen by its owner
	Offset   int64  `json:"offset"`   // bytes of the stream
	Database int    `json:"database"` // that the stream has selected
}

// tally counts and sums up records, so that none can vanish unnoticed.
type tally struct {
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
	Digest  digest `json:"digest"` // the sum of their checksums modulo 2^64
}

type digest uint64

// MarshalText writes the digest in hexadecimal: numbers in JSON have 53 bits.
func (d digest) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(d), 16), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *digest) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 16, 64)
	*d = digest(n)
	return err
}

func (t *tally) add(sum uint32, bytes int) {
	t.Records++
	t.Bytes += int64(bytes)
	t.Digest += digest(sum)
}

func (t *tally) remove(value []byte) {
	t.Records--
	t.Bytes -= int64(len(value))
	t.Digest -= digest(binary.LittleEndian.Uint32(value))
}

func (m *Manifest) encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, sumSize), text...)
	seal(b, []byte(manifestName))
	return b, nil
}

func decodeManifest(value []byte) (m Manifest, err error) {
	text, _, ok := unseal(value, []byte(manifestName))
	if !ok {
		return m, damaged("invalid manifest")
	}
	// A newer format may have other members, but its number is there: see doc.go.
	var version struct{ Format int }
	if err := json.Unmarshal(text, &version); err != nil || version.Format < 1 {
		return m, damaged("invalid manifest: format %d, %v", version.Format, err)
	}
	if version.Format > newestFormat {
		return m, fmt.Errorf("%w: %d, and this version of zsetd reads up to %d", ErrNewer, version.Format, newestFormat)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, damaged("invalid manifest: %v", err)
	}
	if (m.Format == logFormat) != (m.Log > 0) {
		return m, damaged("invalid manifest: format %d, and a log of %d bytes", m.Format, m.Log)
	}
	return m, nil
}
