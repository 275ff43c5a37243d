// Package journal specifies how changes of values are written: as records of
// operations. [Log] collects the operations on one value, [Writer] writes a whole value,
// and [Operands] reads both. The package knows neither the values nor the file.
//
// A journal is the changes of a keyspace, as records in order. A record belongs to
// one key and describes how its value changes, independent of the command:
//
//	record   = space key length operations
//	space    = uvarint, see keyspace.DB.Space
//	key      = text
//	length   = uvarint, of the operations in bytes
//	text     = uvarint length, bytes
//
// and the operations, each a letter and its arguments, are
//
//	N kind           the value is a new, empty one of the kind s, l, t, h, z or x
//	D                the key is deleted
//	E uvarint        the key expires then (milliseconds since 1970); 0 for never
//	S text           the string is this
//	W uvarint text   the string has these bytes from this offset on; zeros before it if it was shorter
//	P text text      the hash has this field with this value
//	P text           the set has this member
//	P text 8 bytes   the sorted set has this member with this score (IEEE 754, little endian)
//	O                the set, so far empty, keeps small integers in the order they come, too
//	R text           the hash, set or sorted set has no such field or member
//	T text uvarint   the member of the sorted set, or field of the hash, expires then; 0 for never
//	C                the sorted set has no members
//	L text           the list has this element in front; A text: at the end
//	l, a             the list has lost its first, its last element
//	= uvarint text   element i of the list is this
//	I uvarint text   the list has this before element i
//	X uvarint uvarint  n elements of the list are removed, from element i on
//	M varint text    elements equal to this are removed: all if 0, the first n, or the last -n
//
// and of streams, where an id is two numbers,
//
//	P id uvarint { text text }  there is this entry of so many fields at the end; B: in a new block
//	R id                        the entry was deleted
//	X uvarint uvarint           so many blocks, and then so many entries, are removed from the beginning
//	# id uvarint id             its last id, how many entries were added, and the highest that was deleted
//	K id id uvarint uvarint uvarint text text   there is this block at the end; see sequence.Stream
//	G text           the following operations apply to this group, which may be new
//	> id varint      it has delivered everything up to this, and so many entries
//	g                it is deleted
//	U text varint varint  the following operations apply to this consumer of it, which may be new and was seen, and active, then
//	u                it is deleted with its pending entries
//	V id varint varint  the entry is pending with it since then, and was delivered so often
//	v id             the entry is not pending in the group
//	Y uvarint uvarint    identifiers of entries are kept for so many seconds, so many of each producer; none are kept so far
//	Q text text id   the producer has used this identifier for the entry
//	q uvarint        of the identifiers whose time is over then (milliseconds since 1970), those of the ten lowest ids are removed
//	Z uvarint uvarint    so many identifiers were used, and so many used again
//
// A whole value is written in the same way, as the operations that build it from
// nothing. So one interpreter reads bases and journals alike, it needs no code of
// commands, and keys do not depend on each other: they may be restored in any order
// and in parallel. For that reason renaming and copying a key write the whole
// value.
//
// Operations are changes, so each must be applied exactly once: an element that is
// pushed twice is there twice. The rejected alternative is entries that are states
// ("this field now has this value"), which may be replayed twice. Lists rule it out.
// The elements of a list have no names but their positions, which every push at the
// front shifts, so the state that a push changes is the whole list; and one push
// onto a list of a million must cost one element. (The order matters for other
// types, too: small values keep their members in it.) Replay is exact instead: every
// record is applied once, to the very value that it was recorded from. Package
// snapshot ensures that by generations. A journal has that of its checkpoint and is
// in the file as a whole or not at all; a base has the generation as of which it is
// the value; and the records of a key that are of a later generation apply, in
// order.
//
// The operations are written, into memory, by the methods that change a value (so a
// command cannot omit one), while the command runs. The rejected alternative, to
// keep the set of dirty fields and to look up their values when the journal is
// taken, would write a field that changes often only once; but the look-up must
// happen under the lock, or the values must be pinned, and a cost of 50 ns at each
// change would become a pause of 20 ms at 100 000 changes.
package journal
