// Package transcript reads, writes and compares transcripts: text files of commands and the exact
// replies to them. Only tests import it.
//
//	# a comment
//	--- a section: an empty server and new clients
//	> ZADD k 1 "a b"
//	:1
//	> ZRANGE k 0 -1 WITHSCORES
//	*["a b" "1"]
//	2> BZPOPMIN empty 0
//	> ZADD empty 5 x
//	:1
//	2< *["empty" "x" "5"]
//
// # Commands
//
// "> " sends a line on client 1, "2> " on client 2; lines are split into words as redis-cli does.
// The replies follow, each beginning on a line of its own: none if no reply comes now, several if
// several come. "(closed)" in place of a reply means that the server closes the connection. "2< "
// and a reply is what client 2 receives later.
//
// # Replies
//
// A reply is written in a compact notation with one meaning to the byte. The first character is
// that of RESP; bulk strings and nulls are written without it.
//
//	+OK                         simple string
//	-ERR syntax error           error
//	:1  (12345678901234567890   integer, big number
//	,1.5  #t  _                 double, boolean, null of RESP3
//	"a b\r\n\x00"               bulk string
//	="txt:Some string"          verbatim string
//	!"ERR syntax error"         bulk error
//	null  *null                 null bulk string $-1, null array *-1
//	*["a" :1 *[] null]          array
//	~["a" "b"]  >["message" …]  set, push
//	%{"key" :1 "other" :2}      map: keys and values in turn
//	|{"ttl" :3600} "value"      attributes, and the reply that they belong to
//
// The texts of the first six rows extend to the end of the line. Within an array, set, push, map
// or attribute such a text ends at white space or a bracket, and is quoted if it contains any:
// *[+OK -"ERR syntax error"]. A reply that does not fit on a line of 120 characters is broken
// between its elements, which are indented. In quotes and in texts that extend to the end of the
// line, a backslash begins an escape: \r, \n, \t, \a, \b, \", \\ and \xHH. Every byte that is not
// printable ASCII is escaped, and so is a space at the end of a line.
//
// # Directives
//
// Directives stand alone on a line before a command:
//
//	@any            any reply is right
//	@unordered      its elements in any order; "@unordered 2": its pairs
//	@near 5         an integer, or those in a list, each differing by at most 5
//	@zsetd          a real redis-server is not compared: Redis 7.0 lacks it, or zsetd differs on purpose
//	@raw            the line is sent as it is (with \r\n and the like), not as a command
//	@advance 1500ms the clock moves forward by so much; no command follows
//
// and these for a whole section, anywhere in it, or for the whole file, before its first command
// and title:
//
//	@noMODE         the section is not run in this mode: plain, pipelined, multi, resp3, reload, script
//	@zsetd          (as a part of the title "--- title @zsetd", or for the file)
//
// [Parse] reads a file and [File.String] writes it; the files in server/testdata are exactly as
// String writes them. [Notation] and [ParseReply] convert a single reply. [Item.Matches] compares.
package transcript
