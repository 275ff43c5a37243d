// Package snapshot keeps records in one bbolt file that survives crashes, and
// notices damage.
//
// A record is bytes with a name; what the bytes mean is the business of package
// keyspace (see its journal.go), and this package knows nothing of values,
// commands or networks. A [File] is changed by [Cut]s. A Cut is what has changed
// up to one instant, and one transaction: it is in the file as a whole, on the
// disk, when [File.Write] returns, or not at all. [Open] and [Read] read a file
// and verify every byte that counts.
//
// [Copy] and [Backup] copy a file while it is being written to, and [Salvage] reads what is
// left of a damaged one.
//
// # Bases and journals
//
// A file has two parts. Bases are values as a whole, chunk by chunk, by key.
// Journals are what has changed, Cut by Cut. Reading is bases first, and then
// what the journals of later Cuts say, in order.
//
// Why a journal inside bbolt: what people keep in sorted sets changes all the
// time and everywhere, and bbolt writes whole pages on the way to each key that
// changes. Random single-key commits were measured to write 20 to 180 times
// their payload. A journal is one run of pages. When the journals in a file have
// outgrown its bases, whoever writes the file gives the keys that they name new
// bases, in several Cuts, and drops the journals with the last ([Cut.Forget]).
//
// Each journal is in a bucket of its own because bbolt writes a page anew with
// every record that joins it: in a common bucket, journals of 800 KB were
// written two and a half times.
//
// # The format
//
// Pages are of 4096 bytes, all integers below are big-endian unless said
// otherwise, "uvarint" is that of encoding/binary. The freelist is not stored
// (NoFreelistSync): opening reads everything anyway. There are three buckets in
// the root:
//
//	about/manifest       what the file must hold, written by every Cut
//	cuts/<cut>/<part>    journals: cut is its generation in 8 bytes, part counts from 0 in 4 bytes
//	keys/<name>          bases
//
// Every value begins with a checksum of 4 bytes, little-endian: the CRC-32C of
// its name (of a part of a journal, cut and part), and of what follows the
// checksum.
//
// The manifest is JSON behind its checksum (see [Manifest]): the version of the
// format, 1; the generation of the last Cut, which counts from 1 with each; its
// time; the space of each database (spaces stand for databases in all records,
// so that SWAPDB and FLUSHDB touch no key; records of a space that no database
// has are void); the highest number of a space so far; and for the bases and the
// parts of journals, how many records there are, how many bytes their values
// have, and the sum of their checksums modulo 2^64, in hexadecimal. So a record
// that vanishes, or comes back from an earlier state of the file, is noticed.
//
// A part of a journal is records of package keyspace, whole ones, up to about 1
// MB.
//
// The name of a base is the space (8 bytes), the length of the key (2 bytes), the
// key, and the number of the chunk (4 bytes). Keys of 1024 bytes and more have
// 65535 for their length and their SHA-256 for the key. Behind the checksum
// stands the generation of the Cut that wrote the base (8 bytes); in chunk 0 the
// number of chunks (4 bytes), and if the key is long its length (uvarint) and the
// key; then operations of package keyspace. All chunks of a key have the same
// generation. What journals up to that generation say of the key is void. A
// base of 0 chunks says that there was no such key then; it goes when these
// journals have gone.
//
// # What bbolt does and does not do
//
// bbolt 1.5 survives kill -9 and full disks, and commits by writing pages that
// were free, fdatasync, one meta page, fdatasync. But it checksums nothing
// except the two metas, falls back silently one commit if a meta is damaged, and
// panics, faults or hangs on damaged pages. So files are written with bbolt and
// not read with it: pages.go has a reader that trusts no byte. Only when that
// has verified the whole file does bbolt open it. A file one of whose metas is
// damaged is refused.
//
// New files are not synced until they are complete ([File.Publish]), and get
// their names then, so that a crash while a file is made leaves the old one.
//
// Nothing keeps another program from changing or truncating a file that is in use.
// Each Write notices it (intact.go), and makes the file suspect.
//
// After an fsync has failed a file is suspect: the system may drop pages that it
// could not write and say nothing the next time. All data are then to be written
// to a new file. Where there was no room for a write nothing has changed, and
// the Cut can be tried again.
package snapshot
