package table

import (
	"fmt"
	"hash/maphash"
)

// Check returns an error if the table is not what its code relies on. For tests. O(n).
func (t *Table[V]) Check() error {
	if t.sole != nil && t.dir != nil {
		return fmt.Errorf("both a page and a directory")
	}
	n, room, pages := 0, 0, 0
	for p := range t.each {
		if err := p.check(t); err != nil {
			return fmt.Errorf("page %d: %w", pages, err)
		}
		n += p.len()
		room += cap(p.slots)
		pages++
	}
	switch {
	case n != t.n:
		return fmt.Errorf("%d entries, counted %d", n, t.n)
	case room != t.room:
		return fmt.Errorf("%d slots, counted %d", room, t.room)
	case n == 0 && pages != 0:
		return fmt.Errorf("%d pages in an empty table", pages)
	case t.dir == nil:
		return nil
	}
	d := t.dir
	if pages < 2 || len(d.of) != 1<<d.depth {
		return fmt.Errorf("directory of %d pages, %d entries, depth %d", pages, len(d.of), d.depth)
	}
	deepest, covered := 0, 0
	for k, p := range d.pages {
		if p.depth == d.depth {
			deepest++
		}
		span := 1 << (d.depth - p.depth)
		covered += span
		for i := range span {
			if at := int(p.prefix)*span + i; d.of[at] != int32(k) {
				return fmt.Errorf("page %d: directory entry %d names page %d", k, at, d.of[at])
			}
		}
	}
	if deepest == 0 || deepest != d.deepest || covered != len(d.of) {
		return fmt.Errorf("%d pages are deepest, counted %d; %d entries of %d covered", deepest, d.deepest, covered, len(d.of))
	}
	return nil
}

func (p *page[V]) check(t *Table[V]) error {
	if p.meta == nil && (len(p.slots) > tinySlots || p.used != 0) || p.meta != nil && len(p.meta) != len(p.slots) {
		return fmt.Errorf("%d slots, %d with hashes, %d used", len(p.slots), len(p.meta), p.used)
	}
	n := 0
	for i, s := range p.slots {
		if !p.occupied(i) {
			continue
		}
		n++
		h := maphash.String(t.seed, s.key)
		switch {
		case p.meta != nil && p.meta[i] != uint16(h)|1:
			return fmt.Errorf("slot %d: hash %x of %q, noted %x", i, h, s.key, p.meta[i])
		case h>>(64-p.depth) != uint64(p.prefix):
			return fmt.Errorf("slot %d: %q is in the page of another prefix", i, s.key)
		case p.find(s.key, h) != i:
			return fmt.Errorf("slot %d: %q is found at %d", i, s.key, p.find(s.key, h))
		}
	}
	if n != p.len() || p.meta != nil && n > len(p.meta)-len(p.meta)/8 {
		return fmt.Errorf("%d entries in %d slots, counted %d", n, len(p.slots), p.len())
	}
	return nil
}
