// Package data has the handlers of the commands on data: strings, lists, sets,
// hashes, sorted sets, geo, HyperLogLog, and the generic commands on keys. Those of streams
// are in package stream.
//
// One file has one family. Its function XxxCommands returns the rows: facts and
// handlers. A handler is a function of an engine.Call, and sees nothing else: it reads
// all its arguments, checks c.OK, opens the keys that it needs (engine.Read, engine.Edit,
// engine.Create), modifies the values, calls c.Changed once per changed key, and writes
// exactly one reply.
//
// To add a command, write its row and its handler in the file of its family, and a
// transcript in server/testdata. The tables of the documents are generated from the
// rows.
package data
