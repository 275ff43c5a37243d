// Package snapshot keeps records in one bbolt file that survives crashes, and
// detects damage.
//
// A record is bytes with a name. Package keyspace gives the bytes their meaning (see
// its journal.go); this package knows nothing of values, commands or networks. A
// [File] is changed by [Checkpoint]s. A checkpoint is one transaction: the changes
// up to one instant. It is in the file as a whole, and durable, when [File.Write]
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
// # The format
//
// Pages are of 4096 bytes. All integers below are big-endian unless stated
// otherwise; "uvarint" is that of encoding/binary. The freelist is not stored
// (NoFreelistSync): opening reads the whole file anyway. There are three buckets in
// the root:
//
//	about/manifest       the expected contents of the file, written by every checkpoint
//	cuts/<cut>/<part>    journals: cut is the generation of the checkpoint in 8 bytes, part counts from 0 in 4 bytes
//	keys/<name>          bases
//
// Every value begins with a checksum of 4 bytes, little-endian: the CRC-32C of its
// name (of a part of a journal: generation and part), and of the bytes after the
// checksum.
//
// The manifest is JSON behind its checksum (see [Manifest]): the version of the
// format, 1; the generation of the last checkpoint, which increases by 1 with each
// checkpoint; its time; the space of each database (spaces stand for databases in
// all records, so that SWAPDB and FLUSHDB touch no key; records of a space that no
// database has are void); the highest number of a space so far; the position in a stream of
// changes, if there is one; and for the bases
// and the parts of journals, the number of records, the bytes of their values, and
// the sum of their checksums modulo 2^64, in hexadecimal. So a record that vanishes,
// or reappears from an earlier state of the file, is detected.
//
// A part of a journal is whole records of package keyspace, up to about 1 MB.
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
// Another program can change or truncate a file that is in use. Each Write detects
// it (intact.go), and makes the file suspect.
//
// After an fsync has failed a file is suspect: the system may drop dirty pages that
// it could not write and report success the next time. All data must then be
// written to a new file. A write that fails for lack of space changes nothing, and
// the checkpoint can be retried.
package snapshot
