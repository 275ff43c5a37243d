// Package archive moves keyspaces into and out of snapshot files.
//
// A file (package snapshot) knows records, a keyspace (package keyspace) knows
// values; an archive brings the two together. A reading puts the values of a file
// together, in parallel, and hands them on in the order of the file. [Loader]
// gives them to a keyspace: so the server loads its data. The tools of the
// command zsetd look at them one at a time, and are functions here: [Check],
// [Backup], [Compact], [Salvage], [ExportCommands], [ExportJSON], and [Import] (for commands
// server.ImportCommands, since running commands is above this package).
//
// A tool reads a file that does not change meanwhile, see [OpenSource], and a
// file that a tool has written was read back and compared before it got its name.
package archive
