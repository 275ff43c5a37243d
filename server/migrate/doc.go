// Package migrate moves a data set while its clients go on: between servers, clusters
// of Redis or Valkey, and files. It is the command "zsetd migrate".
//
//	primary ──PSYNC──► data ───► RESTORE ──► server, or the primaries of a cluster
//	                   stream ─► script ───►
//
// The source is a primary, or each primary of a cluster. The move is one of its
// replicas: it receives all data as an RDB file, and then the stream of changes. It
// reads the file value by value, and holds in memory some megabytes and the largest
// value.
//
// # Nothing lost, nothing twice
//
// Changes of the stream are applied by a script, together with the offset in the stream
// that they reach. The offset is a key beside the data: one for each source at a
// server, and one for each slot at a cluster, in that slot. The script skips commands
// up to that offset. So a call that is repeated, because its reply was lost, because a
// slot has moved, or because the tool was killed and is started again, changes nothing.
// Those keys have names that begin with [StatePrefix], and are deleted at the end.
//
// A tool that is started again continues where the stream was. That needs a source that
// still has the rest of the stream (repl-backlog-size). If it has not, or if the first
// copy was not complete, the copy starts again: the target, which was empty when the
// move began, is emptied first. So the target must not have other writers before the
// end of the move.
//
// # Commands with several keys
//
// The keys of a command may be in several slots of the target if the source is no
// cluster. DEL, UNLINK, TOUCH, MSET, MSETNX and MSETEX are divided. RENAME, COPY, the commands
// that store a result, SMOVE, LMOVE and RPOPLPUSH are expressed by values that are read
// at the target at this point of the stream. A transaction is divided by slots.
//
// # Forwarding
//
// After the cut-over a source that is a zsetd can answer its remaining clients from the
// target (Options.Forward): the parameter forward-to, whose rules are in package forward
// of the server.
//
// # What does not move
//
// Messages (PUBLISH), users and parameters do not move. Neither do values of modules,
// and to a cluster, databases other than 0. [Survey] finds these before a move.
//
// # Deadlines of members and fields
//
// A zsetd sends deadlines of members of sorted sets and of fields of hashes as arguments of
// PING, which Redis ignores. A move reads them: at zsetd they become what they are, at Redis
// the sorted sets that the library of "zsetd functions" reads (companions), and deadlines of
// fields where the target supports them. From Redis to zsetd companions become deadlines.
//
// # Deadlines that are renewed
//
// A copy takes a while, and the stream is applied after it. A deadline that the source renews
// in time may have passed at the target before the renewal arrives: the key is gone there, or a
// field, or a member. What the stream does then has another effect than at the source: PEXPIREAT
// none, HSET makes a hash of one field. The script finds that the key is not there, and the
// key is doubtful. When the target is verified, keys that it lacks and that have a deadline at
// the source, and doubtful keys that differ, are repaired: the value is read at the source in one
// transaction with the offset of the stream, and is written to the target when the stream is
// applied up to that offset and not beyond. A difference that no deadline explains still ends the
// move. A key that is new in the stream is doubtful, too. So doubtful keys are compared
// whatever Options.Verify is, and if they become many while a source is followed, they are written
// again without a comparison. A move that is continued does not know which keys are doubtful, and
// compares the values of all.
//
// # The cut-over
//
// The target is verified while both sides change: all names and the chosen values are
// compared, and keys that the streams have changed since are compared again, until few are
// left. Then the sources refuse writes (CLIENT PAUSE WRITE), the rest of the streams is
// applied, and the keys that have changed last are compared, large values among them by their
// number of elements. So the pause takes some round trips, and does not depend on the size of
// the data. It is short, and renewed: if the tool dies, the sources accept writes again
// within 3 seconds.
package migrate
