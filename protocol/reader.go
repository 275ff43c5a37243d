package protocol

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// The request parser.
//
//	buf    │ consumed │ arg │ arg │ partial line or bulk │ free │
//	                  └── spans ──┘ pos         scan    end
//	args   arguments that do not lie in buf, or lie before those in spans
//	large  │ incomplete bulk of 8 KB or more │ free │
//
// redcon 1.6.2 has a parser, too, which is rejected. Measurements: 24 bytes before
// AUTH crash it (an overflowing length panics in redcon's goroutine). Four million
// bytes that arrive one by one overflow its stack (it recurses once for each read).
// 3.7 MB of `*1000000` in pieces of 600 bytes take 7.5 s of CPU time (it parses the
// whole buffer again after each read; Redis needs 0.4 s). A client that pipelines
// without pause makes it hold 4.2 GB, and a SET of 256 MB makes it hold 5.0 times
// as much (its buffer only grows). It has no limits.
//
// Design: each byte is examined once, and arguments are hardly ever moved.
//
//   - The arguments of an incomplete command are stored as offsets. The next call
//     resumes where the last one stopped, even in the middle of a line. The bytes
//     of the command move to the front of the buffer once, while they are few.
//   - If they are many, the buffer is not enlarged, which would copy the bytes and
//     hold them twice. It is left to its arguments, and a new, larger buffer takes
//     the following bytes.
//   - An incomplete bulk string of 8 KB or more gets an allocation of its own, into
//     which the transport reads directly. The allocation grows fourfold as bytes
//     arrive, because a client may announce a length and not send it: an announced
//     bulk of 512 MB holds 64 KB, and a SET of 256 MB allocates 1.33 times its size
//     in total, where doubling allocates 2 times.
//
// So only commands with very many arguments, and long lines, enlarge the buffer
// beyond 16 KB. A larger buffer is dropped when it becomes idle: keeping it would
// save some microseconds out of hundreds for the next such command, and cost each
// idle connection 64 KB or more.

const (
	bufferSize    = 16 << 10  // buffer of an idle reader
	minSpace      = 4 << 10   // minimum size of the result of Space, except within a large bulk
	maxBuffer     = 256 << 10 // maximum size of a buffer for a command of many arguments
	minLarge      = 8 << 10   // minimum size of an incomplete bulk for its own allocation
	maxFirstLarge = 64 << 10  // maximum size of the first allocation for a large bulk
	maxIdleArgs   = 1 << 10   // maximum capacity of the argument lists of an idle reader
)

// Limits bounds the requests of a client. A zero field means the default; the zero
// value is Redis's configuration for an authenticated client.
type Limits struct {
	// MaxBulk is the maximum number of bytes of an argument (proto-max-bulk-len).
	// Default 512 MB.
	MaxBulk int

	// MaxArgs is the maximum number of arguments of a command, including its name.
	// Default 2 147 483 647, as in Redis 7: Size limits the memory.
	MaxArgs int

	// MaxInline is the maximum number of bytes of an inline command, without its
	// newline, and of a line with a length. Default 65 536.
	MaxInline int

	// Unauthenticated restricts a client that has to authenticate to 10 arguments
	// of at most 16 384 bytes.
	Unauthenticated bool

	// Valkey makes requests those of Valkey 9: each length and each bulk string must end with
	// CR LF, and a word of an inline command may have quotes anywhere.
	Valkey bool
}

const (
	defaultMaxBulk   = 512 << 20
	defaultMaxArgs   = math.MaxInt32
	defaultMaxInline = 64 << 10

	unauthenticatedArgs = 10
	unauthenticatedBulk = 16 << 10
)

// Error is a protocol error, with Redis's text. The parser cannot resynchronize
// after it: the server replies "-ERR " and Text, and closes the connection.
//
// Text is, for example, "Protocol error: invalid bulk length". It has no CR or LF,
// but may contain a byte that the client sent.
type Error struct{ Text string }

// Error returns Text.
func (e *Error) Error() string { return e.Text }

// Reader parses the bytes of a client into commands: arrays of bulk strings, or
// inline commands (lines of words). The zero value is ready to use. A Reader does
// no I/O; a transport drives it:
//
//	n, err := conn.Read(r.Space())
//	r.Filled(n)
//	for {
//		args, ok, err := r.Next(args[:0])
//		...
//	}
//
// A Reader is not safe for concurrent use.
type Reader struct {
	// Limits may change at any time. They apply to each length that is parsed
	// afterwards.
	Limits Limits

	buf  []byte // len == cap; buf[pos:end] is not parsed yet
	pos  int
	end  int
	scan int // the line that starts at pos does not end before scan; pos <= scan <= end

	// The incomplete command.
	remaining int      // arguments still to come; 0 between commands
	bulkLen   int      // length of the next argument, -1 before its header
	large     []byte   // allocation of a large argument, with CR LF, or nil
	args      [][]byte // first arguments: all that lie outside buf, and those before them
	spans     []span   // the arguments after args, in buf
	pinned    bool     // args refers to buf, so buf must not move
	retained  int      // bytes of memory other than buf that args retains

	err *Error
}

// span is an argument in buf. Offsets stay valid when the bytes move, and storing
// them needs no write barrier.
type span struct{ off, n int }

// Space returns the buffer to read the next bytes into: at least 4 KB, or within a
// large argument the free part of its allocation, possibly a single byte. It
// invalidates all arguments that Next returned. Each call must be followed by
// Filled before the next call.
func (r *Reader) Space() []byte {
	if r.large != nil {
		if len(r.large) < r.bulkLen+2 {
			return r.largeSpace()
		}
		r.finishLarge() // Next has not run since the argument became complete: the transport applies backpressure; it returns the error
	}
	from := r.pos // first byte that is still in use
	if r.pinned {
		from = 0
	} else if len(r.spans) > 0 {
		from = r.spans[0].off
	}
	used, free := r.end-from, len(r.buf)-r.end
	switch {
	case used == 0:
		r.moveToFront(from)
		if r.remaining == 0 {
			r.shrinkLists()
		}
	case free >= minSpace:
	case used <= len(r.buf)/2 && !r.pinned:
		r.moveToFront(from)
	default:
		r.newBuffer()
	}
	return r.buf[r.end:]
}

// Adopt gives the reader a buffer that Release returned, possibly from another
// reader. It returns false, without effect, if the reader has a buffer. A reader
// without a buffer allocates one.
func (r *Reader) Adopt(buf []byte) bool {
	if r.buf != nil {
		return false
	}
	r.buf = buf
	return true
}

// Release detaches and returns the buffer of a reader that has no unparsed bytes,
// so that idle connections share a few buffers. It returns nil if the reader has
// unparsed bytes or has failed, or if the buffer does not have the usual size; such
// a buffer is dropped. It invalidates all arguments that Next returned.
func (r *Reader) Release() []byte {
	if r.Partial() || r.pos != r.end || r.err != nil {
		return nil
	}
	buf := r.buf
	r.buf, r.pos, r.end, r.scan = nil, 0, 0, 0
	r.shrinkLists()
	if len(buf) != bufferSize {
		return nil
	}
	return buf
}

// Apart reports whether an argument that Next returned lies outside the buffer, in
// memory that the reader does not reuse. The caller may retain such an argument
// without a copy. An argument of 8 KB or more that arrived in pieces has an
// allocation of its own; a smaller one may retain more memory than its own bytes.
func (r *Reader) Apart(arg []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(arg)))
	buf := uintptr(unsafe.Pointer(unsafe.SliceData(r.buf)))
	return at < buf || at >= buf+uintptr(len(r.buf))
}

// moveToFront moves buf[from:end] to the front, and into a buffer of the usual size if
// that suffices.
func (r *Reader) moveToFront(from int) {
	to := r.buf
	if len(to) != bufferSize && r.end-from <= bufferSize/2 {
		to = make([]byte, bufferSize)
	}
	copy(to, r.buf[from:r.end])
	r.buf = to
	r.pos, r.end, r.scan = r.pos-from, r.end-from, r.scan-from
	for i := range r.spans {
		r.spans[i].off -= from
	}
}

// newBuffer continues in a new, larger buffer. The arguments so far stay in the old
// one.
func (r *Reader) newBuffer() {
	if r.pinned || len(r.spans) > 0 {
		r.retained += len(r.buf)
	}
	r.resolveSpans()
	rest := r.buf[r.pos:r.end]
	r.buf = make([]byte, max(min(2*len(r.buf), maxBuffer), 2*len(rest)))
	copy(r.buf, rest)
	r.pos, r.end, r.scan = 0, len(rest), r.scan-r.pos
	r.pinned = false
}

// resolveSpans converts the spans to slices of buf, which must not move from then on.
func (r *Reader) resolveSpans() {
	if len(r.spans) == 0 {
		return
	}
	r.args = appendSpans(r.args, r.buf, r.spans)
	r.spans = r.spans[:0]
	r.pinned = true
}

func appendSpans(dst [][]byte, buf []byte, spans []span) [][]byte {
	dst = slices.Grow(dst, len(spans))
	for _, s := range spans {
		dst = append(dst, buf[s.off:s.off+s.n:s.off+s.n])
	}
	return dst
}

// shrinkLists drops argument lists that a command of very many arguments enlarged.
func (r *Reader) shrinkLists() {
	if cap(r.args) > maxIdleArgs {
		r.args = nil
	}
	if cap(r.spans) > maxIdleArgs {
		r.spans = nil
	}
}

// startLarge gives the current bulk an allocation of its own.
func (r *Reader) startLarge() {
	have := r.buf[r.pos:r.end]
	r.large = make([]byte, len(have), allocSize(len(have), r.bulkLen+2))
	copy(r.large, have)
	r.end, r.scan = r.pos, r.pos
}

func (r *Reader) largeSpace() []byte {
	if have, whole := len(r.large), r.bulkLen+2; have == cap(r.large) && have < whole {
		b := make([]byte, have, allocSize(have, whole))
		copy(b, r.large)
		r.large = b
	}
	return r.large[len(r.large):cap(r.large)]
}

// finishLarge completes the argument of a large bulk that has arrived, or sets err.
func (r *Reader) finishLarge() {
	if !r.endsBulk(r.large[r.bulkLen:]) {
		r.fail(errLineEnd)
		return
	}
	r.resolveSpans()
	r.args = append(r.args, r.large[:r.bulkLen:r.bulkLen])
	r.retained += cap(r.large)
	r.large = nil
	r.remaining--
	r.bulkLen = -1
}

// allocSize returns the number of bytes to allocate when have bytes out of whole have
// arrived: whole divided by a power of four, so that the last allocation has the
// exact size.
func allocSize(have, whole int) int {
	for whole > maxFirstLarge && (whole+3)/4 > have {
		whole = (whole + 3) / 4
	}
	return whole
}

// Filled notes that n bytes were read into the result of Space. It panics if n
// exceeds the length of that.
func (r *Reader) Filled(n int) {
	switch {
	case n < 0, r.large == nil && n > len(r.buf)-r.end, r.large != nil && n > cap(r.large)-len(r.large):
		panic("BUG: protocol.Reader.Filled: n exceeds the result of Space")
	case r.err != nil:
	case r.large != nil:
		r.large = r.large[:len(r.large)+n]
	default:
		r.end += n
	}
}

// Buffered returns the number of received bytes that are not yet arguments:
// complete commands that Next has not returned, and an incomplete argument or line
// at the end.
func (r *Reader) Buffered() int { return r.end - r.pos + len(r.large) }

// Partial reports whether the received bytes end within a command. Call it when
// Next has returned no command.
func (r *Reader) Partial() bool { return r.remaining > 0 || r.Buffered() > 0 || len(r.args) > 0 }

// Missing returns the number of bytes that are missing of a large argument with an
// allocation of its own, or 0 if there is none.
func (r *Reader) Missing() int {
	if r.large == nil {
		return 0
	}
	return r.bulkLen + 2 - len(r.large)
}

// Size returns the memory of the reader in bytes, including the arguments of an
// incomplete command. A limit on a client's memory should use it, because a command
// can be as large as MaxArgs times MaxBulk.
func (r *Reader) Size() int {
	return len(r.buf) + cap(r.large) + r.retained + 24*cap(r.args) + 16*cap(r.spans)
}

// Next appends the arguments of the next command to dst. If ok is false, it
// appended nothing: the rest of the command is missing or, if err is not nil, the
// client has sent an invalid request. err is nil or an *Error. It follows all
// commands before the invalid bytes, and every later call returns it again. Empty
// commands (`*0`, `*-1`, a blank line) are skipped.
//
// Arguments are slices of the reader's memory that are valid until Space is called;
// the caller may modify their bytes. Several calls with the previous result as dst
// parse a batch. Commands that change Limits (AUTH, HELLO, CONFIG SET) must run
// before Next parses the following command, so the server does not batch
// unauthenticated clients.
//
// A caller that reuses dst should clear it, because it retains the memory of its
// arguments. Next takes linear time in the number of bytes received, in total over
// all calls.
func (r *Reader) Next(dst [][]byte) (args [][]byte, ok bool, err error) {
	if r.err != nil {
		return dst, false, r.err
	}
	for r.remaining == 0 && len(r.args) == 0 { // Space may have completed the last argument
		if r.pos == r.end {
			return dst, false, nil
		}
		if args, ok := r.fastNext(dst); ok {
			return args, true, nil
		}
		if r.buf[r.pos] != '*' {
			args, ok := r.parseInline(dst)
			if !ok {
				return dst, false, r.errOrNil()
			}
			if len(args) == len(dst) {
				continue
			}
			return args, true, nil
		}
		if !r.parseCount() {
			return dst, false, r.errOrNil()
		}
	}
	if !r.parseBulks() {
		return dst, false, r.errOrNil()
	}
	if len(r.args) > 0 {
		dst = append(dst, r.args...)
		clear(r.args)
		r.args = r.args[:0]
		r.pinned, r.retained = false, 0
	}
	dst = appendSpans(dst, r.buf, r.spans)
	r.spans = r.spans[:0]
	return dst, true, nil
}

// parseCount parses the number of arguments of a command. It returns false if that is incomplete,
// or not valid.
func (r *Reader) parseCount() bool {
	n, ok := r.parseLength('*')
	switch {
	case !ok:
		return false
	case n > int64(orDefault(r.Limits.MaxArgs, defaultMaxArgs)):
		r.fail(errMultibulk)
		return false
	case n > unauthenticatedArgs && r.Limits.Unauthenticated:
		r.fail(errUnauthenticatedMultibulk)
		return false
	case n > 0:
		r.remaining, r.bulkLen = int(n), -1
		if cap(r.spans) == 0 {
			r.spans = make([]span, 0, min(max(r.remaining, 8), maxIdleArgs))
		}
	}
	return true
}

// parseBulks parses the remaining arguments of a command. It returns false if one is incomplete, or
// not valid.
func (r *Reader) parseBulks() bool {
	for r.remaining > 0 {
		if r.bulkLen < 0 && !r.parseBulkLength() {
			return false
		}
		n := r.bulkLen
		switch {
		case r.large != nil:
			if len(r.large) < n+2 {
				return false
			}
			if r.finishLarge(); r.err != nil {
				return false
			}
			continue
		case r.end-r.pos < n+2:
			if n >= minLarge {
				r.startLarge()
			}
			return false
		case !r.endsBulk(r.buf[r.pos+n:]):
			r.fail(errLineEnd)
			return false
		}
		r.spans = append(r.spans, span{r.pos, n})
		r.pos += n + 2
		r.scan = r.pos
		r.remaining--
		r.bulkLen = -1
	}
	return true
}

// parseBulkLength parses the length of an argument, as parseCount the number of arguments.
func (r *Reader) parseBulkLength() bool {
	n, ok := r.parseLength('$')
	switch {
	case !ok:
		return false
	case n < 0, n > int64(min(orDefault(r.Limits.MaxBulk, defaultMaxBulk), math.MaxInt-2)):
		r.fail(errBulk)
		return false
	case n > unauthenticatedBulk && r.Limits.Unauthenticated:
		r.fail(errUnauthenticatedBulk)
		return false
	}
	r.bulkLen = int(n)
	return true
}

// endsBulk reports whether two bytes may end a bulk string: any may, as in Redis, unless
// Limits.Valkey is set.
func (r *Reader) endsBulk(b []byte) bool { return !r.Limits.Valkey || b[0] == '\r' && b[1] == '\n' }

// fastNext is the fast path of Next for most commands: up to nine arguments of up to
// 999 bytes that have all arrived. It is one pass without parser state, which loads the
// header of an argument as one word. It also examines the beginning of an incomplete
// command, but only once: the rest of such a command takes the general path.
func (r *Reader) fastNext(dst [][]byte) (args [][]byte, ok bool) {
	b, have := r.buf[r.pos:], r.end-r.pos
	if have < 4 || b[0] != '*' || b[2] != '\r' || r.Limits.belowFastPath() {
		return dst, false
	}
	strict := r.Limits.Valkey
	n := int(b[1] - '0')
	if n < 1 || n > 9 || strict && b[3] != '\n' {
		return dst, false
	}
	if cap(dst)-len(dst) < n {
		dst = slices.Grow(dst, n)
	}
	args = dst[:len(dst)+n]
	at := 4
	for i := len(dst); i < len(args); i++ {
		// The word may reach beyond the bytes that have arrived. A header that does, too,
		// belongs to an argument that has not arrived.
		if len(b)-at < 8 {
			return dst, false
		}
		h := binary.LittleEndian.Uint64(b[at:])
		digit := byte(h>>8) - '0'
		if byte(h) != '$' || digit > 9 {
			return dst, false
		}
		size := int(digit)
		at += 4
		if c := byte(h >> 16); c != '\r' {
			if digit = c - '0'; digit > 9 || size == 0 {
				return dst, false
			}
			size = 10*size + int(digit)
			at++
			if c := byte(h >> 24); c != '\r' {
				if digit = c - '0'; digit > 9 || byte(h>>32) != '\r' {
					return dst, false
				}
				size = 10*size + int(digit)
				at++
			}
		}
		end := at + size
		if end+2 > have || strict && (b[at-1] != '\n' || b[end] != '\r' || b[end+1] != '\n') {
			return dst, false // the general path waits, or finds the error
		}
		args[i] = b[at:end:end]
		at = end + 2
	}
	r.pos += at
	r.scan = r.pos
	return args, true
}

// belowFastPath reports whether the limits are stricter than the bounds of the fast path.
func (l *Limits) belowFastPath() bool {
	return l.Unauthenticated || uint(l.MaxArgs-1) < 9 || uint(l.MaxBulk-1) < 999
}

const (
	errBigInline                = "Protocol error: too big inline request"
	errBigMultibulk             = "Protocol error: too big mbulk count string"
	errBigBulk                  = "Protocol error: too big bulk count string"
	errMultibulk                = "Protocol error: invalid multibulk length"
	errBulk                     = "Protocol error: invalid bulk length"
	errUnauthenticatedMultibulk = "Protocol error: unauthenticated multibulk length"
	errUnauthenticatedBulk      = "Protocol error: unauthenticated bulk length"
	errLineEnd                  = "Protocol error: invalid CRLF in request"
	errQuotes                   = "Protocol error: unbalanced quotes in request"
)

// fail stores the error, which is permanent, and drops all buffered bytes.
// Arguments that Next returned stay valid.
func (r *Reader) fail(text string) {
	r.err = &Error{text}
	r.pos, r.scan = r.end, r.end
	r.remaining, r.large, r.args, r.spans, r.pinned, r.retained = 0, nil, nil, nil, false, 0
}

// errOrNil returns err as an error interface, nil if there is none.
func (r *Reader) errOrNil() error {
	if r.err != nil {
		return r.err
	}
	return nil
}

func orDefault(limit, otherwise int) int {
	if limit == 0 {
		return otherwise
	}
	return limit
}

// parseLength parses the line at pos, kind (`*` or `$`) and a number, and advances past
// it. ok is false if the line is incomplete, or invalid, in which case it sets err.
// The caller has checked a leading `*`.
func (r *Reader) parseLength(kind byte) (n int64, ok bool) {
	if r.scan == r.pos { // first look at this line: most lines are complete and have few digits
		line := r.buf[r.pos:r.end]
		i := 1
		for ; i < len(line) && i < 8; i++ {
			c := line[i] - '0'
			if c > 9 {
				break
			}
			n = n*10 + int64(c)
		}
		if i+1 < len(line) && line[i] == '\r' && (line[i+1] == '\n' || !r.Limits.Valkey) && line[0] == kind && i > 1 && (line[1] != '0' || i == 2) {
			r.pos += i + 2
			r.scan = r.pos
			return n, true
		}
	}
	invalid, tooBig := errMultibulk, errBigMultibulk
	if kind == '$' {
		invalid, tooBig = errBulk, errBigBulk
	}
	// As in Redis, the line ends with CR and an arbitrary byte, in Valkey LF, and is validated
	// when it is complete.
	cr, ok := r.findLineEnd('\r', tooBig)
	if !ok || cr+1 == r.end {
		return 0, false
	}
	if first := r.buf[r.pos]; first != kind {
		if first == '\r' || first == '\n' {
			first = ' '
		}
		r.fail("Protocol error: expected '$', got '" + string([]byte{first}) + "'")
		return 0, false
	}
	if r.Limits.Valkey && r.buf[cr+1] != '\n' {
		r.fail(errLineEnd)
		return 0, false
	}
	if n, ok = ParseInt(r.buf[r.pos+1 : cr]); !ok {
		r.fail(invalid)
		return 0, false
	}
	r.pos = cr + 2
	r.scan = r.pos
	return n, true
}

// findLineEnd searches the byte c that ends the line at pos, from where the last search
// stopped. As in Redis, which searches a C string, a line that contains a NUL has no
// end: the reader waits for more until the line is too long.
func (r *Reader) findLineEnd(c byte, tooBig string) (i int, ok bool) {
	most := orDefault(r.Limits.MaxInline, defaultMaxInline)
	line := r.buf[r.scan:min(r.end, r.pos+most+1)]
	if hidden := len(line) > 0 && line[0] == 0; !hidden { // otherwise a search has stopped at a NUL
		i := bytes.IndexByte(line, c)
		if i >= 0 {
			line = line[:i]
		}
		nul := bytes.IndexByte(line, 0)
		switch {
		case nul >= 0:
			r.scan += nul
		case i >= 0:
			r.scan += i
			return r.scan, true
		default:
			r.scan += len(line)
		}
	}
	if r.end-r.pos > most {
		r.fail(tooBig)
	}
	return 0, false
}

// parseInline appends the words of the line at pos.
func (r *Reader) parseInline(dst [][]byte) (args [][]byte, ok bool) {
	lf, ok := r.findLineEnd('\n', errBigInline)
	if !ok {
		return dst, false
	}
	line := r.buf[r.pos:lf]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if args, ok = splitArgs(dst, line, r.Limits.Valkey); !ok {
		r.fail(errQuotes)
		return dst, false
	}
	r.pos = lf + 1
	r.scan = r.pos
	return args, true
}

// SplitArgs splits a line into words, as Redis does for inline commands and its
// configuration file, and appends them to dst.
//
// Words are separated by white space. Within double quotes \n, \r, \t, \b, \a and
// \xHH denote the bytes that they name, and a backslash before any other byte
// denotes that byte; within single quotes \' denotes a quote. A closing quote ends
// its word and must be followed by white space or the end of the line. Otherwise,
// and without a closing quote, ok is false and dst is returned unchanged.
//
// The words are slices of line. SplitArgs overwrites bytes of line within quoted
// text instead of allocating. O(len(line)).
func SplitArgs(dst [][]byte, line []byte) (args [][]byte, ok bool) {
	return splitArgs(dst, line, false)
}

// splitArgs splits an inline command. If mixed is set, a word may go on after a closing quote.
func splitArgs(dst [][]byte, line []byte, mixed bool) (args [][]byte, ok bool) {
	args = dst
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, true
		}
		start, end := i, i // of the word, and of what it denotes so far
		// \v and \f are skipped between words but do not end a word, as in Redis.
		for i < len(line) && !endsWord(line[i]) {
			var n int
			if line[i] == '"' || line[i] == '\'' {
				if n, i = unquote(line[end:end], line, i); n < 0 || !mixed && i < len(line) && !isSpace(line[i]) {
					return dst, false
				}
				end += n
				if !mixed {
					break
				}
				continue
			}
			from := i
			for i < len(line) && line[i] != '"' && line[i] != '\'' && !endsWord(line[i]) {
				i++
			}
			if n = i - from; end < from {
				copy(line[end:], line[from:i])
			}
			end += n
		}
		args = append(args, line[start:end:end])
	}
}

// unquote appends the content of the quotes that open at line[i] to dst. It returns
// the number of bytes, -1 if a quote does not close them, and the index after them.
func unquote(dst, line []byte, i int) (n, next int) {
	quote := line[i]
	for i++; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			return len(dst), i + 1
		case c == '\\' && i+1 < len(line) && quote == '\'':
			if line[i+1] == '\'' {
				c = '\''
				i++
			}
		case c == '\\' && i+3 < len(line) && line[i+1] == 'x' && hex(line[i+2]) >= 0 && hex(line[i+3]) >= 0:
			c = byte(hex(line[i+2])<<4 | hex(line[i+3]))
			i += 3
		case c == '\\' && i+1 < len(line):
			i++
			c = line[i]
			if at := strings.IndexByte("nrtba", c); at >= 0 {
				c = "\n\r\t\b\a"[at]
			}
		}
		dst = append(dst, c)
	}
	return -1, i
}

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
