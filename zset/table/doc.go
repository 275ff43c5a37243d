// Package table provides a hash table from strings to values with three properties
// that a Go map lacks: a clone in constant time, a scan with a stateless cursor
// that tolerates concurrent changes of the table, and uniformly distributed random
// entries. A map is copied in O(n), its iteration order cannot be resumed, and
// range favours some entries.
//
// Any number of goroutines may read a table that no goroutine modifies. Clone
// counts as a modification of the original; afterwards different goroutines may
// read and modify the two tables without synchronization. Copy a Table only with
// Clone.
//
// Two other tables have the same structure and algorithms with different slots: the
// index of package zset and the key table of a keyspace. An entry of the index has no
// key but a reference into an arena, and takes 17 bytes instead of 32 and the key; its
// references and tags lie in one cache line, and arrays as in this package would make a
// lookup in a million members a quarter slower. The key table has slots of 10 bytes,
// which refer to entries with their keys, and neither clones nor tiny pages. Code with
// the slot as a type parameter executes 1 to 2 % more instructions for a lookup in this
// table or in the key table, so those two could share it; the index could not.
package table
