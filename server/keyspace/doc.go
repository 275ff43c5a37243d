// Package keyspace is the data of the server: 16 databases of keys that hold
// typed values, with a deadline where one was set.
//
// There are two doors to a key. [DB.Get] opens it for reading, [DB.Edit] for
// changing. Both look at the clock first, so a key whose deadline has passed is
// gone for everybody from that instant on, whether or not the sweep has been
// there. Everything that must happen to every access (expiry, access times)
// happens in the doors and nowhere else.
//
// A key and its value share one allocation where that is possible, for what a key
// costs besides its bytes is most of the memory of many short strings; entry.go
// tells how. Therefore what changes a string, or a hash or set that may be small,
// does so through [DB.SetString], [DB.SetField], [DB.AddMember] and their like,
// which return the entry as it is from then on.
//
// The values are [String], [List], [Set], [Hash], [Stream] and zset.Set. They
// know nothing of keys, deadlines or commands. An empty collection does not exist:
// the command layer drops a key whose value has become empty. A stream may be
// empty, for it remembers what was in it.
//
// Deadlines are kept in an index ordered by time, itself a sorted set, so the
// next one is known exactly and at once ([Keyspace.Next]).
//
// With [Keyspace.Record] on, values that are opened for changing write what
// happens to them into a journal; [Keyspace.TakeJournal] takes it, in constant
// time. Journals, and values as a whole ([DB.Pin]), are what files hold; a
// [Builder] makes values of them. The format is in journal.go.
//
// The package knows no network, no protocol and no files. It has no locks: a
// Keyspace belongs to whoever holds the server's lock.
package keyspace
