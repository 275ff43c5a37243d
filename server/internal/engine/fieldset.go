package engine

import "github.com/zsetd/zsetd/protocol"

// A fieldset is a list of names of fields that HIMPORT PREPARE declares for a session. Fieldsets
// count as memory of the client. All methods are called with the lock held.

// SetFieldset declares or replaces a fieldset. The session keeps name and fields.
func (s *Session) SetFieldset(name string, fields [][]byte) {
	s.DropFieldset(protocol.BytesOf(name))
	if s.fieldsets == nil {
		s.fieldsets = map[string][][]byte{}
	}
	s.fieldsets[name] = fields
	s.nameBytes += fieldsetSize(name, fields)
}

// Fieldset returns the fields of a fieldset, or nil.
func (s *Session) Fieldset(name []byte) [][]byte { return s.fieldsets[protocol.View(name)] }

// DropFieldset removes a fieldset, and reports whether there was one.
func (s *Session) DropFieldset(name []byte) bool {
	fields, ok := s.fieldsets[protocol.View(name)]
	if ok {
		s.nameBytes -= fieldsetSize(protocol.View(name), fields)
		delete(s.fieldsets, protocol.View(name))
	}
	return ok
}

// DropFieldsets removes all fieldsets, and returns how many there were.
func (s *Session) DropFieldsets() int {
	n := len(s.fieldsets)
	for name := range s.fieldsets {
		s.DropFieldset(protocol.BytesOf(name))
	}
	s.fieldsets = nil
	return n
}

func fieldsetSize(name string, fields [][]byte) int64 {
	n := perName + int64(len(name))
	for _, field := range fields {
		n += perName + int64(len(field))
	}
	return n
}
