package rdb

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
)

// manifestPart is a line of the manifest of an append-only file, which consists of pairs of
// words in any order, upper or lower case: file NAME seq NUMBER type TYPE, and perhaps more. A
// name may be quoted.
type manifestPart struct {
	name string
	seq  int64
	kind byte // the first byte of the type: b is the base, i an increment, h obsolete
}

// parseManifestLine parses a line that is no comment. ok is false if it is invalid.
func parseManifestLine(line []byte) (p manifestPart, ok bool) {
	words, ok := protocol.SplitArgs(nil, bytes.Clone(bytes.TrimSpace(line))) // which it changes
	if !ok || len(words)%2 == 1 {
		return p, false
	}
	for ; len(words) > 0; words = words[2:] {
		switch value := words[1]; {
		case protocol.EqualFold(words[0], "FILE"):
			p.name = string(value)
		case protocol.EqualFold(words[0], "SEQ"):
			p.seq, _ = strconv.ParseInt(string(value), 10, 64)
		case protocol.EqualFold(words[0], "TYPE") && len(value) > 0:
			p.kind = value[0]
		}
	}
	return p, p.name != "" && p.seq > 0 && p.kind != 0
}

// manifestLine reports whether a line of a manifest is neither blank nor a comment.
func manifestLine(line []byte) bool {
	return line[0] != '#' && len(bytes.TrimSpace(line)) > 0
}

// IsManifest reports whether a file that begins with head is the manifest of an
// append-only file of several parts.
func IsManifest(head []byte) bool {
	for line := range bytes.Lines(head) {
		if manifestLine(line) {
			p, ok := parseManifestLine(line)
			return ok && bytes.IndexByte([]byte("bhi"), p.kind) >= 0
		}
	}
	return false
}

// ManifestFiles returns the names of the files that a manifest lists, in the order in which they
// are read. They are in the manifest's folder. A manifest without any is an error.
func ManifestFiles(text []byte) ([]string, error) {
	var base, increments []manifestPart
	n := 0
	for line := range bytes.Lines(text) {
		if n++; !manifestLine(line) {
			continue
		}
		p, ok := parseManifestLine(line)
		if !ok || filepath.Base(p.name) != p.name {
			return nil, fmt.Errorf("line %d: invalid line of a manifest", n)
		}
		switch p.kind {
		case 'b':
			base = append(base, p)
		case 'i':
			increments = append(increments, p)
		case 'h':
		default:
			return nil, fmt.Errorf("line %d: unknown file type %q", n, p.kind)
		}
	}
	if len(base) > 1 {
		return nil, errors.New("more than one base file")
	}
	slices.SortStableFunc(increments, func(a, b manifestPart) int { return cmp.Compare(a.seq, b.seq) })
	var names []string
	for i, p := range append(base, increments...) {
		if k := i - len(base); k > 0 && increments[k-1].seq == p.seq {
			return nil, fmt.Errorf("two increments have the sequence number %d", p.seq)
		}
		names = append(names, p.name)
	}
	if len(names) == 0 {
		return nil, errors.New("the manifest lists no files to read")
	}
	return names, nil
}
