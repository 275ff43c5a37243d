// Package archive moves keyspaces into and out of snapshot files.
//
// A file (package snapshot) knows records, a keyspace (package keyspace) knows
// values; an archive brings the two together: [Loader] restores a keyspace from
// a file, in parallel. The server loads its data with it, and the tools of the
// command zsetd look into files with it.
package archive
