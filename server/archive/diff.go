package archive

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/snapshot"
)

// Difference is a key that two files do not have alike.
type Difference struct {
	A, B     *Value // nil in the file that lacks the key; valid until the visit returns
	Value    bool   // the types or the elements differ, see Same
	Deadline bool   // the deadlines differ
}

// DifferenceReport describes a difference, for JSON.
type DifferenceReport struct {
	DB         int         `json:"db"` // -1 for a library of functions
	Key        text        `json:"key"`
	Difference string      `json:"difference"` // "only in A", "only in B", "value", "deadline" or "value, deadline"
	A          *SideReport `json:"a,omitempty"`
	B          *SideReport `json:"b,omitempty"`
}

// SideReport describes the value of a key in one of two files.
type SideReport struct {
	Type     string `json:"type"`
	Elements int    `json:"elements"`
	Bytes    int64  `json:"bytes"`              // of the elements
	Deadline int64  `json:"deadline,omitempty"` // milliseconds since 1970
}

// Report returns a description that remains valid.
func (d Difference) Report() DifferenceReport {
	side := func(v *Value) *SideReport {
		if v == nil {
			return nil
		}
		elements, bytes := v.Size()
		return &SideReport{v.Type(), elements, bytes, v.Deadline}
	}
	v, what := d.A, ""
	switch {
	case d.B == nil:
		what = "only in A"
	case d.A == nil:
		v, what = d.B, "only in B"
	case d.Value && d.Deadline:
		what = "value, deadline"
	case d.Value:
		what = "value"
	default:
		what = "deadline"
	}
	return DifferenceReport{v.DB, text(v.Key), what, side(d.A), side(d.B)}
}

// Compared counts the keys of two files.
type Compared struct {
	Same      int64 `json:"same"`
	OnlyA     int64 `json:"only_a"`
	OnlyB     int64 `json:"only_b"`
	Different int64 `json:"different"`
}

// Equal reports whether there is no difference.
func (c Compared) Equal() bool { return c.OnlyA+c.OnlyB+c.Different == 0 }

// Diff compares the files at two paths, and visits the keys that differ. Keys past
// their deadlines are compared as the others. The files are read side by side: of each
// only the journals are in memory as a whole. Databases that have other positions in
// one file than in the other, because they were cleared or exchanged, need further
// readings.
func Diff(a, b string, progress Progress, visit func(Difference) error) (out Compared, err error) {
	var spaces [2][]uint64
	for i, path := range []string{a, b} {
		if spaces[i], err = spacesOf(path); err != nil {
			return out, Recognize(path, err)
		}
	}
	passes := passesOf(spaces[0], spaces[1])
	for _, dbs := range passes {
		d := differ{visit: visit, out: &out, position: map[int]int{}, stop: make(chan struct{})}
		for i, db := range dbs {
			d.position[db] = i
		}
		if err := d.run(a, b, progress.of("compare")); err != nil {
			return out, err
		}
	}
	return out, nil
}

// spacesOf returns the space of each database of a file.
func spacesOf(path string) (spaces []uint64, err error) {
	_, err = snapshot.Inspect(path, snapshot.Visitor{Begin: func(m snapshot.Manifest) error {
		spaces = slices.Clone(m.Spaces)
		return errStopped
	}})
	if errors.Is(err, errStopped) {
		err = nil
	}
	return spaces, err
}

// passesOf divides the databases of two files into groups, in each of which they have the
// same order in both files.
func passesOf(a, b []uint64) (passes [][]int) {
	n := max(len(a), len(b))
	left := make([]int, n)
	for db := range left {
		left[db] = db
	}
	// A database that a file does not have may be anywhere in it.
	space := func(spaces []uint64, db int) uint64 {
		if db < len(spaces) {
			return spaces[db]
		}
		return 1<<63 + uint64(db)
	}
	slices.SortFunc(left, func(x, y int) int { return cmp.Compare(space(a, x), space(a, y)) })
	for len(left) > 0 {
		pass := longestIncreasing(left, func(db int) uint64 { return space(b, db) })
		left = slices.DeleteFunc(left, func(db int) bool { return slices.Contains(pass, db) })
		passes = append(passes, pass)
	}
	if len(passes) == 0 {
		passes = append(passes, nil)
	}
	passes[0] = slices.Insert(passes[0], 0, keyspace.InternalDB) // its space is below all
	return passes
}

// longestIncreasing returns the longest subsequence whose values increase.
func longestIncreasing(list []int, value func(int) uint64) []int {
	length, before := make([]int, len(list)), make([]int, len(list))
	last := -1
	for i := range list {
		length[i], before[i] = 1, -1
		for j := range i {
			if value(list[j]) < value(list[i]) && length[j] >= length[i] {
				length[i], before[i] = length[j]+1, j
			}
		}
		if last < 0 || length[i] > length[last] {
			last = i
		}
	}
	var found []int
	for ; last >= 0; last = before[last] {
		found = append(found, list[last])
	}
	slices.Reverse(found)
	return found
}

// differ compares some databases of two files.
type differ struct {
	position map[int]int // of the databases in both files
	visit    func(Difference) error
	out      *Compared
	stop     chan struct{} // closed at the end

	mu          sync.Mutex
	done, total [2]int64
}

// side is one file, whose values a goroutine reads.
type side struct {
	values chan Value    // closed at the end, when err is set
	next   chan struct{} // receives a value when the last one is no longer needed
	err    error

	value Value // the current one, if there is one
	has   bool
	begun bool
}

// advance takes the next value.
func (s *side) advance() error {
	if s.begun {
		s.next <- struct{}{}
	}
	s.begun = true
	if s.value, s.has = <-s.values; !s.has {
		s.begun = false
		return s.err
	}
	return nil
}

func (d *differ) run(a, b string, progress func(done, total int64) error) error {
	var reading sync.WaitGroup
	sides := [2]*side{}
	for i, path := range []string{a, b} {
		s := &side{values: make(chan Value), next: make(chan struct{})}
		sides[i] = s
		reading.Go(func() {
			defer close(s.values)
			_, s.err = Each(path, d.progress(i, progress), func(v Value) error { return d.pass(s, v) })
		})
	}
	err := d.merge(sides[0], sides[1])
	close(d.stop)
	reading.Wait()
	return err
}

// pass hands a value to the merge, and waits until that no longer needs it.
func (d *differ) pass(s *side, v Value) error {
	if _, ok := d.position[v.DB]; !ok {
		return nil // of another pass
	}
	select {
	case s.values <- v:
	case <-d.stop:
		return errStopped
	}
	select {
	case <-s.next:
	case <-d.stop:
		return errStopped
	}
	return nil
}

// progress returns the progress function of a side: both are shown as one.
func (d *differ) progress(i int, progress func(done, total int64) error) func(done, total int64) error {
	if progress == nil {
		return nil
	}
	return func(done, total int64) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.done[i], d.total[i] = done, total
		return progress(d.done[0]+d.done[1], d.total[0]+d.total[1])
	}
}

// merge compares the values of two sides, which have the same order.
func (d *differ) merge(a, b *side) error {
	if err := errors.Join(a.advance(), b.advance()); err != nil {
		return err
	}
	for a.has || b.has {
		order := 0
		switch {
		case !b.has:
			order = -1
		case !a.has:
			order = 1
		default:
			x, y := &a.value, &b.value
			order = cmp.Or(cmp.Compare(d.position[x.DB], d.position[y.DB]), snapshot.Compare(0, x.Key, 0, y.Key))
		}
		var err error
		switch {
		case order < 0:
			d.out.OnlyA++
			err = cmp.Or(d.visit(Difference{A: &a.value}), a.advance())
		case order > 0:
			d.out.OnlyB++
			err = cmp.Or(d.visit(Difference{B: &b.value}), b.advance())
		default:
			err = cmp.Or(d.both(&a.value, &b.value), a.advance(), b.advance())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// both compares the values of a key that both files have.
func (d *differ) both(a, b *Value) error {
	found := Difference{A: a, B: b, Value: !Same(*a, *b), Deadline: a.Deadline != b.Deadline}
	if !found.Value && !found.Deadline {
		d.out.Same++
		return nil
	}
	d.out.Different++
	return d.visit(found)
}
