package zset

import "unsafe"

// A Set is one pointer, so that it can be a field of a small structure that a process
// has a million times. The pointer refers to one of two forms, which differ in their
// first word:
//
//   - a packed buffer, whose size is not 0;
//   - an extended form, whose size is 0, for all that a packed buffer alone cannot
//     express: an indexed set, deadlines of members, an observer.

// form is the beginning of a packed buffer or of an extended form.
type form struct {
	size uint16 // packed.size, or 0
}

// extended is a set that has more than a packed buffer.
type extended struct {
	form
	packed   *packed  // nil if the set is empty or indexed
	indexed  *indexed // if packed is set too, holds only the deadlines
	observer *Observer
}

// packed returns the buffer of a packed set, nil if the set is empty, and whether the
// set is packed or empty.
func (s *Set) packed() (f *packed, ok bool) {
	if s.form == nil || s.form.size != 0 {
		return (*packed)(unsafe.Pointer(s.form)), true
	}
	x := (*extended)(unsafe.Pointer(s.form))
	return x.packed, x.packed != nil || x.indexed == nil
}

// isPacked reports whether the set is packed or empty.
func (s *Set) isPacked() bool {
	_, ok := s.packed()
	return ok
}

// extended returns the extended form, or nil.
func (s *Set) extended() *extended {
	if s.form == nil || s.form.size != 0 {
		return nil
	}
	return (*extended)(unsafe.Pointer(s.form))
}

// indexed returns the structures of an indexed set, or the deadlines of a packed one, or
// nil.
func (s *Set) indexed() *indexed {
	if x := s.extended(); x != nil {
		return x.indexed
	}
	return nil
}

// observer returns the observer, or nil.
func (s *Set) observer() *Observer {
	if x := s.extended(); x != nil {
		return x.observer
	}
	return nil
}

// setPacked replaces the buffer of a packed or empty set; nil makes it empty.
func (s *Set) setPacked(f *packed) {
	if x := s.extended(); x != nil {
		x.packed = f
		return
	}
	s.form = (*form)(unsafe.Pointer(f))
}

// extend returns the extended form, which reduce may remove again.
func (s *Set) extend() *extended {
	x := s.extended()
	if x == nil {
		x = &extended{packed: (*packed)(unsafe.Pointer(s.form))}
		s.form = &x.form
	}
	return x
}

// reduce removes the extended form if a packed buffer is sufficient.
func (s *Set) reduce() {
	if x := s.extended(); x != nil && x.indexed == nil && x.observer == nil {
		s.form = (*form)(unsafe.Pointer(x.packed))
	}
}
