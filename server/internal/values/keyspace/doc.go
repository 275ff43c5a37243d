// Package keyspace holds the data of the server: databases of keys with typed
// values and optional deadlines.
//
// [DB.Get] opens a key for reading, [DB.Edit] for writing. Both compare the
// deadline of the key with the clock first, so an expired key does not exist for
// any caller from its deadline on, even before [Keyspace.Sweep] removes it. All
// work that belongs to every access (expiry, access times) happens in these
// accessors.
//
// A key and its value share one allocation if possible, because with many short
// strings most memory is overhead of the keys; see entry.go. Functions that change
// a string, or a hash or set that may be packed, are therefore methods of DB, such
// as [DB.SetString], [DB.SetField] and [DB.AddMember], and return the current
// entry, which can be a new one.
//
// The values are [String], [Set], [Hash], sequence.List, sequence.Stream and zset.Set. They do
// not depend on keys, deadlines or commands. There are no empty collections: the
// command layer removes a key whose value becomes empty. A stream may be empty,
// because it still has its last ID and its groups. The functions of a kind of value are
// a row in kind.go: a new kind is a file of its own, its row, and a case in the few
// switches that every command goes through (layout.go, entry.go, weight.go, journal.go).
// Package rdb, which is above, has the functions for its format beside its own types.
//
// An index of deadlines, itself a sorted set, makes the next deadline available
// exactly and in O(log n) ([Keyspace.Next]).
//
// After [Keyspace.Record] the values that are opened for writing record their
// changes in a journal. [Keyspace.TakeJournal] returns it in constant time. A data
// file contains journals and whole values ([DB.Pin]); a [Builder] reconstructs
// values from both. Package journal specifies the format. [Keyspace.Follow] begins a list of
// the same changes for another reader, such as replicas; see follow.go.
//
// [Keyspace.Snapshot] reads all keys as of one instant, in pieces, while the keyspace
// goes on changing: it copies a value before the first change. snapshot.go has the
// algorithm.
//
// [Keyspace.Compact] moves keys and small values in the heap, so that pages with few of them
// become free; compact.go has the algorithm.
//
// The package does not depend on networks, protocols or files. It has no locks: a
// Keyspace needs exclusive access, which the server's lock provides.
package keyspace
