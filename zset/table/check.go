package table

import (
	"fmt"
	"hash/maphash"
)

// Check verifies the invariants of the table and returns an error if one is
// violated. For tests. O(n).
func (t *Table[V]) Check() error {
	if t.sole != nil && t.dir != nil {
		return fmt.Errorf("the table has both a sole page and a directory")
	}
	n, capacity, pages := 0, 0, 0
	for p := range t.each {
		if err := p.check(t); err != nil {
			return fmt.Errorf("page %d: %w", pages, err)
		}
		n += p.len()
		capacity += cap(p.slots)
		pages++
	}
	switch {
	case n != t.n:
		return fmt.Errorf("%d entries, counted %d", n, t.n)
	case capacity != t.capacity:
		return fmt.Errorf("%d slots, counted %d", capacity, t.capacity)
	case n == 0 && pages != 0:
		return fmt.Errorf("%d pages in an empty table", pages)
	case t.dir == nil:
		return nil
	}
	d := t.dir
	if pages < 2 || len(d.pageOf) != 1<<d.depth {
		return fmt.Errorf("directory of %d pages, %d entries, depth %d", pages, len(d.pageOf), d.depth)
	}
	deepest, covered := 0, 0
	for k, p := range d.pages {
		if p.depth == d.depth {
			deepest++
		}
		span := 1 << (d.depth - p.depth)
		covered += span
		for i := range span {
			if at := int(p.prefix)*span + i; d.pageOf[at] != int32(k) {
				return fmt.Errorf("page %d: directory entry %d refers to page %d", k, at, d.pageOf[at])
			}
		}
	}
	if deepest == 0 || deepest != d.deepest || covered != len(d.pageOf) {
		return fmt.Errorf("%d pages are deepest, counted %d; %d entries of %d covered", deepest, d.deepest, covered, len(d.pageOf))
	}
	return nil
}

func (p *page[V]) check(t *Table[V]) error {
	if p.tags == nil && (len(p.slots) > tinySlots || p.used != 0) || p.tags != nil && len(p.tags) != len(p.slots) {
		return fmt.Errorf("%d slots, %d tags, %d used", len(p.slots), len(p.tags), p.used)
	}
	n := 0
	for i, s := range p.slots {
		if !p.occupied(i) {
			continue
		}
		n++
		h := maphash.String(t.seed, s.key)
		switch {
		case p.tags != nil && p.tags[i] != uint16(h)|1:
			return fmt.Errorf("slot %d: hash %x of %q, tag %x", i, h, s.key, p.tags[i])
		case h>>(64-p.depth) != uint64(p.prefix):
			return fmt.Errorf("slot %d: %q is in the page of another prefix", i, s.key)
		case p.find(s.key, h) != i:
			return fmt.Errorf("slot %d: %q is found at %d", i, s.key, p.find(s.key, h))
		}
	}
	if n != p.len() || p.tags != nil && n > len(p.tags)-len(p.tags)/8 {
		return fmt.Errorf("%d entries in %d slots, counted %d", n, len(p.slots), p.len())
	}
	return nil
}
