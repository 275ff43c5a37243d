// Package archive moves keyspaces into and out of snapshot files.
//
// A file (package snapshot) holds records, a keyspace (package keyspace) holds
// values; an archive converts between the two. A reading builds the values of a
// file in parallel, and yields them in the order of the file. [Loader] puts them
// into a keyspace: so the server loads its data. The tools of the command zsetd
// visit them one at a time, and are functions here: [Check], [Backup], [Restore], [Diff], [Compact],
// [Salvage], [ExportCommands], [ExportJSON], and [Import] (for commands
// server.ImportCommands, since running commands is above this package).
//
// A tool reads a file that does not change meanwhile, see [OpenSource], and a file
// that a tool has written is read back and compared before it gets its name.
package archive
