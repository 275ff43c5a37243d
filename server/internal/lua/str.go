package lua

import "unsafe"

// String is a string, with its hash once a table has asked for it.
type String struct {
	header
	hashed bool
	hash   uint32
	s      string
}

// sum returns the hash, which decides the order of a table: that of Lua 5.1, but of all bytes, as
// in Redis.
func (s *String) sum() uint32 {
	if s.hashed {
		return s.hash
	}
	h := uint32(len(s.s))
	for i := len(s.s) - 1; i >= 0; i-- {
		h ^= h<<5 + h>>2 + uint32(s.s[i])
	}
	s.hash, s.hashed = h, true
	return h
}

// nearString is a string with its bytes beside it: one allocation.
type nearString struct {
	String
	bytes [nearBytes]byte
}

const nearBytes = 24

// copied returns a string that is a copy of b.
func copied(b []byte) *String {
	if len(b) > nearBytes {
		return &String{header: header{KindString}, s: string(b)}
	}
	s := &nearString{String: String{header: header{KindString}}}
	s.s = unsafe.String(&s.bytes[0], copy(s.bytes[:], b))
	return &s.String
}
