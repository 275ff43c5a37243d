package keyspace

import "github.com/zsetd/zsetd/server/internal/values/packed"

// Encodings of values that are not built command by command: loaded, restored, or stored
// as a whole. A value that commands change goes to a larger encoding and never back, as
// in Redis. A value that is made as a whole gets the smallest encoding that the limits
// allow, as in Redis after RESTORE or a restart.

// fitMost is the largest number of elements for which Fit tries a smaller encoding:
// adding to one takes time in proportion to its elements.
const fitMost = 1024

// Fit converts a hash table to an intset or a listpack if the limits allow one.
func (s *Set) Fit(l *Limits) {
	if s.view().encoding != hashtable || s.Len() > min(fitMost, max(l.SetMaxIntsetEntries, l.SetMaxListpackEntries)) {
		return
	}
	var fit setObject
	for m := range s.Members {
		if fit.add(l, m); fit.encoding == hashtable {
			return
		}
	}
	fit.log = s.o.log
	*s.o = fit
}

// Fit converts a hash table to a listpack if the limits allow one.
func (h *Hash) Fit(l *Limits) {
	if h.Table() == nil || h.Len() > min(fitMost, l.HashMaxListpackEntries) {
		return
	}
	for field, value := range h.All() {
		if len(field) > l.HashMaxListpackValue || len(value) > l.HashMaxListpackValue {
			return
		}
	}
	fit := new(Hash)
	for field, value := range h.All() {
		fit.Set(packed.Bytes(field), packed.Bytes(value), l)
	}
	for field, at := range h.Timed {
		fit.SetDeadlineBytes(packed.Bytes(field), int64(at))
	}
	fit.o.timed, fit.o.log = h.o.timed, h.o.log
	*h.o = *fit.o
}
