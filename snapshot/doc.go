// Package snapshot keeps records in one bbolt file that survives crashes, and
// detects damage.
//
// A record is bytes with a name. Package keyspace gives the bytes their meaning (see
// its journal.go); this package knows nothing of values, commands or networks. A
// [File] is changed by [Checkpoint]s. A checkpoint is one transaction, or one group in the
// log: the changes up to one instant. It is in the file as a whole, and durable, when [File.Write]
// returns, or not at all. [Open] and [Read] read a file and verify every byte in
// use.
//
// [Copy] and [Backup] copy a file while another process writes to it, and [Salvage]
// reads the undamaged records of a damaged file.
//
// # Bases and journals
//
// A file has two parts. Bases are whole values, by key, divided into chunks.
// Journals are changes, one journal for each checkpoint. Reading takes the bases first,
// and then applies the journals of later checkpoints in order.
//
// Why a journal inside bbolt: sorted sets are typically changed all the time and
// everywhere, and bbolt writes whole pages on the path to each key that changes.
// Random single-key commits write 20 to 180 times their payload (measured). A
// journal is one run of pages. When the journals in a file have outgrown its bases,
// the process that writes the file gives the keys that they name new bases, in
// several checkpoints, and drops the journals with the last ([Checkpoint.Forget]).
//
// Each journal is in a bucket of its own because bbolt rewrites a page with every
// record that is added to it: in a common bucket, journals of 800 KB are written
// two and a half times.
//
// # The log
//
// A transaction of bbolt is two fdatasync and at least six pages, which is much where each
// small change has to be on the disk at once. So a checkpoint of which the caller says so
// ([Checkpoint].Log), and that is a journal only, is appended to a log: one write in place,
// to pages that the file has already, and one fdatasync. The log is the value of a record of
// the same file, so there is no second file that could be lost, left behind or mixed up, and
// every copy of the file has it.
//
// The log follows a transaction: its blocks name the generation of that. The next transaction
// writes the records of all groups into its journal, which makes the log empty, because the
// blocks in it then name a generation that is not the last. No other step is needed, and no
// state lies between the two. That happens when the log is full, when a checkpoint has bases,
// drops journals or changes the databases, and after the file was opened with groups in the
// log. A transaction without Log removes the record, as the last one before a server stops
// does.
//
// After a power failure some sectors of the last group may be as they were before. That group
// was not confirmed, and reading ignores it. In any other group this is damage, because a
// group is written only after the one before it is on the disk. A sector that is neither what
// was written to it last nor what was there before does not match its checksum, and is damage
// anywhere, in parts of the log that are not in use, too. The one kind of damage that reading
// cannot tell from a power failure are sectors at the end of the log that are all as they were
// before; the same is true of the metas of bbolt.
//
// # The format
//
// Pages are of 4096 bytes. All integers below are big-endian unless stated
// otherwise; "uvarint" is that of encoding/binary. The freelist of bbolt is stored by a
// transaction that begins with at most 8192 free pages. There are four buckets in the root, one
// of which need not exist:
//
//	about/manifest       the expected contents of the file, written by every transaction
//	cuts/<cut>/<part>    journals: cut is the generation of the checkpoint in 8 bytes, part counts from 0 in 4 bytes
//	groups/log           the log
//	keys/<name>          bases
//
// Every value begins with a checksum of 4 bytes, little-endian: the CRC-32C of its
// name (of a part of a journal: generation and part), and of the bytes after the
// checksum.
//
// The manifest is JSON behind its checksum (see [Manifest]): the version of the
// format, 2 with a log and 1 without; the generation of the last transaction, which increases
// by 1 with each; the time of its checkpoint; the space of each database (spaces stand for databases in
// all records, so that SWAPDB and FLUSHDB touch no key; records of a space that no
// database has are void); the highest number of a space so far; about how many keys each
// database has, if that is known; the position in a stream of changes, if there is one; and for the bases
// and the parts of journals, the number of records, the bytes of their values, and
// the sum of their checksums modulo 2^64, in hexadecimal; and the size of the log, if there is
// one. So a record that vanishes, or reappears from an earlier state of the file, is detected.
//
// A part of a journal is whole records of package keyspace, up to about 1 MB.
//
// The value of the log is zeros behind its checksum, which covers these alone, up to the next
// sector of 512 bytes, and then blocks of that size. A block that was never written is zeros.
// Any other has
//
//	checksum     4 bytes, little-endian: the CRC-32C of the rest of the block
//	generation   8 bytes: of the transaction that the log follows
//	index        4 bytes: of the block in the log, from 0
//	group        4 bytes: the number of the group in the log, from 1
//	length       2 bytes: of the content; the bits 0x4000 and 0x8000 mark the first and the last block of a group
//	content      490 bytes, of which length count
//
// The contents of the blocks of a group, which follow one another, are the length of its time
// in one byte, the time (encoding.BinaryMarshaler of [time.Time]), a byte that is 1 if there
// is a position in a stream and 0 if not, the position (the length of the ID, a uvarint, the
// ID, the offset and the database, both varints), and whole records, as in a part of a journal.
// They count as a journal of the generation after that of the blocks.
//
// A later format keeps the place, the checksum and the member "format" of the manifest, so
// that [Open] and the others can tell it from damage: they return [ErrNewer] and do not
// change the file. Files of each format are read by all later versions.
//
// The name of a base is the space (8 bytes), the length of the key (2 bytes), the
// key, and the number of the chunk (4 bytes). Keys of 1024 bytes and more have 65535
// for their length and their SHA-256 for the key. The checksum is followed by the
// generation of the checkpoint that wrote the base (8 bytes); in chunk 0 by the
// number of chunks (4 bytes), and if the key is long by its length (uvarint) and the
// key; then by operations of package keyspace. All chunks of a key have the same
// generation. Records about the key in journals up to that generation are void. A
// base of 0 chunks is a tombstone: the key did not exist then. It is removed with
// these journals.
//
// # Guarantees and limits of bbolt
//
// bbolt 1.5 survives kill -9 and full disks. It commits by writing free pages,
// fdatasync, one meta page, fdatasync. But it checksums nothing except the two
// metas, silently falls back one commit if a meta is damaged, and panics, faults or
// loops on damaged pages. So files are written with bbolt and not read with it:
// pages.go has a reader that trusts no byte. bbolt opens a file only after that
// reader has verified all of it. A file with a damaged meta is refused.
//
// A new file is not synced until it is complete ([File.Publish]), and gets its
// final name then, so that a crash while a file is made leaves the old one.
//
// Another program can change or truncate a file that is in use. Write detects it (intact.go), and
// makes the file suspect; writes to the log within 2 ms of a check rely on that.
//
// After an fsync has failed a file is suspect: the system may drop dirty pages that
// it could not write and report success the next time. All data must then be
// written to a new file. A write that fails for lack of space changes nothing, and
// the checkpoint can be retried. If that was a write to the log, nothing more is appended
// before a transaction: part of a group may be there.
package snapshot
