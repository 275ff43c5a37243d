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
package table
