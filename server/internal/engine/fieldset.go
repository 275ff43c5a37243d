package engine

import "github.com/zsetd/zsetd/protocol"

// A fieldset is a list of names of fields that HIMPORT PREPARE declares for a session. Fieldsets
// count as memory of the client. The methods are called with the lock held.

// SetFieldset declares or replaces a fieldset. The session keeps name and fields.
func (c *Call) SetFieldset(name string, fields [][]byte) {
	c.DropFieldset(protocol.BytesOf(name))
	s := c.Session
	if s.fieldsets == nil {
		s.fieldsets = map[string][][]byte{}
	}
	s.fieldsets[name] = fields
	s.Weight.nameBytes += fieldsetSize(name, fields)
}

// Fieldset returns the fields of a fieldset, or nil.
func (c *Call) Fieldset(name []byte) [][]byte { return c.Session.fieldsets[protocol.View(name)] }

// DropFieldset removes a fieldset, and reports whether there was one.
func (c *Call) DropFieldset(name []byte) bool { return c.Session.dropFieldset(name) }

// DropFieldsets removes all fieldsets, and returns how many there were.
func (c *Call) DropFieldsets() int { return c.Session.dropFieldsets() }

func (s *Session) dropFieldset(name []byte) bool {
	fields, ok := s.fieldsets[protocol.View(name)]
	if ok {
		s.Weight.nameBytes -= fieldsetSize(protocol.View(name), fields)
		delete(s.fieldsets, protocol.View(name))
	}
	return ok
}

func (s *Session) dropFieldsets() int {
	n := len(s.fieldsets)
	for name := range s.fieldsets {
		s.dropFieldset(protocol.BytesOf(name))
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
