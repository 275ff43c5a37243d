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
// # How to read a row
//
//		{Facts: protocol.Facts{
//			Name: "zincrby", Arity: 4, Flags: "write denyoom fast",
//			Keys:   "1 RW access update",
//			Group:  "sorted-set", Since: "1.2.0",
//			Syntax: "key increment member",
//			...
//		}, Run: zincrby, Element: 3, Batching: ...}
//
//	  - Name and Arity: the words of a request, the name included; a negative arity is a minimum.
//	  - Flags: those of COMMAND INFO. Checks ask for flags and never for names: write is refused on
//	    replicas, denyoom while memory lacks; fast names the event of the latency monitor.
//	  - Keys: where the keys are, and how the command uses them (RO reads, RW reads and writes, OW
//	    overwrites, RM removes). Cluster slots, ACL rules, forwarding and migrations read this: see
//	    protocol.Facts.
//	  - Group: the ACL category, and the section of COMMANDS.md. Since: the version of Redis that has
//	    introduced the command, or process.ExtensionVersion for one of zsetd.
//	  - Syntax: the arguments of COMMAND DOCS, in the notation of protocol.ParseSyntax. Differential
//	    tests draw requests from it.
//	  - Element: which argument is the member or field, so that the table is looked up ahead in a
//	    pipeline. Named: the reply depends only on the members or fields from this argument on, so a
//	    live query is evaluated only if a change names one. Ranks: the reply is a rank, which live
//	    queries read many at once. Batching: whether the command may run in a
//	    fast batch (engine/fastbatch.go).
//	  - The other fields of engine.Command mark what is special; most rows have none.
//
// .github/CONTRIBUTING.md lists the files that a new command touches.
package data
