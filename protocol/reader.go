package protocol

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// The request parser.
//
// It is our own because redcon 1.6.2's, measured, dies before AUTH from 24 bytes (an overflowing
// length panics in redcon's goroutine), overflows its stack when four million bytes drip in one by
// one (it recurses once per read), spends 7.5 s of CPU on 3.7 MB of `*1000000` in 600-byte drips
// (it parses the whole buffer again on every read; Redis needs 0.4 s), holds 4.2 GB for a client
// that pipelines flat out and 5.0 times a 256 MB SET (its buffer only grows), and knows no limits.
//
// What keeps this one simple is that bytes are looked at once and arguments are hardly ever moved:
//
//   - A command that a read cut in two is remembered as offsets; the next read goes on where the
//     last one stopped, also in the middle of a line. The bytes so far are moved to the front of
//     the buffer, once, while they are few.
//   - If they are many, the buffer is not enlarged (that would copy them, and hold them twice) but
//     left behind: its arguments stay where they are, and a new, larger buffer takes what follows.
//   - A bulk of 8 KB or more that is not there as a whole gets an allocation of its own, into which
//     the transport reads directly. It grows fourfold as its bytes arrive, because the announced
//     length is only a promise: 512 MB that are announced and never sent hold 64 KB, and a whole
//     256 MB SET allocates 1.33 times its size, where doubling would take 2.
//
// So the buffer outgrows its 16 KB only for commands of very many arguments and for long lines, and
// it is dropped as soon as it is idle: keeping it for the next such command would save some
// microseconds out of hundreds, and cost every idle connection 64 KB or more.

const (
	bufferSize = 16 << 10  // of an idle reader
	minSpace   = 4 << 10   // that Space offers at least, outside a bulk of its own
	maxChunk   = 256 << 10 // of a buffer while a command of many arguments arrives
	bigBulk    = 8 << 10   // from which on an incomplete bulk gets its own allocation
	firstBig   = 64 << 10  // that such an allocation starts with at most
	keepArgs   = 1 << 10   // entries that the lists of an idle reader may keep
)

// Limits bounds what a client may send. In a field that is zero, the default applies; the zero
// value is Redis's configuration for a client that is logged in.
type Limits struct {
	// MaxBulk is the number of bytes in one argument: proto-max-bulk-len. Default 512 MB.
	MaxBulk int

	// MaxArgs is the number of arguments in one command, its name included. Default 1 048 576.
	// (Redis 7 allows 2 147 483 647.)
	MaxArgs int

	// MaxInline is the number of bytes in an inline command, before its newline, and in a line that
	// holds a length. Default 65 536.
	MaxInline int

	// Unauthenticated is set until a client has logged in, if it must. It may then send at most 10
	// arguments of 16 384 bytes.
	Unauthenticated bool
}

const (
	defaultMaxBulk   = 512 << 20
	defaultMaxArgs   = 1 << 20
	defaultMaxInline = 64 << 10

	unauthenticatedArgs = 10
	unauthenticatedBulk = 16 << 10
)

// Error says why a request cannot be parsed, in Redis's words. There is no way to find the next
// command behind it: the client is told "-ERR " and Text, and the connection is closed.
//
// Text is like "Protocol error: invalid bulk length". It has no CR or LF, but a byte of the client's may
// stand in it.
type Error struct{ Text string }

// Error returns Text.
func (e *Error) Error() string { return e.Text }

// Reader turns the bytes that a client sends into commands: arrays of bulk strings, or inline
// commands (a line of words). The zero value is ready to use. It does no I/O; a transport drives
// it:
//
//	n, err := conn.Read(r.Space())
//	r.Filled(n)
//	for {
//		args, ok, err := r.Next(args[:0])
//		...
//	}
//
// A Reader may be used by one goroutine at a time.
type Reader struct {
	// Limits may be changed at any time, and hold for every length that is parsed from then on.
	Limits Limits

	buf  []byte // len == cap; buf[at:end] is not parsed yet
	at   int
	end  int
	scan int // the line that starts at at is known not to end before here; at <= scan <= end

	// The command under way.
	left   int      // arguments that are still to come; 0 between commands
	bulk   int      // length of the one that is coming, -1 before its header
	big    []byte   // its own allocation, CR LF included, if it has one
	done   [][]byte // the first arguments: those outside buf, and those before them
	spans  []span   // the arguments after these, in buf
	pinned bool     // some of done lies in buf, so nothing in buf may move
	kept   int      // bytes of memory, other than buf, that done holds

	err *Error
}

// span is an argument in buf. (Offsets survive a move; and they are written without the garbage
// collector's barrier.)
type span struct{ off, n int }

// Space returns where the next bytes are to be read to: at least 4 KB, except in the middle of a
// large argument, where it is the free part of that argument's own memory and may be a single byte.
// Everything that Next has returned since the last call is invalid from now on. Call Filled before
// Space again.
func (r *Reader) Space() []byte {
	if r.big != nil {
		if len(r.big) < r.bulk+2 {
			return r.bigSpace()
		}
		r.endBig() // Next was not called since: the client has to wait
	}
	from := r.at // the first byte that is still needed
	if r.pinned {
		from = 0
	} else if len(r.spans) > 0 {
		from = r.spans[0].off
	}
	used, free := r.end-from, len(r.buf)-r.end
	switch {
	case used == 0:
		r.rehome(from)
		if r.left == 0 {
			r.trim()
		}
	case free >= minSpace:
	case used <= len(r.buf)/2 && !r.pinned:
		r.rehome(from)
	default:
		r.leave()
	}
	return r.buf[r.end:]
}

// Adopt gives a reader that has no buffer one that Release has returned, perhaps of another reader.
// It reports whether it takes it. A reader to which none is given makes one.
func (r *Reader) Adopt(buf []byte) bool {
	if r.buf != nil {
		return false
	}
	r.buf = buf
	return true
}

// Release takes the buffer away from a reader that needs nothing of what is in it: what has arrived
// ended with a whole command. It returns nil if there is something left, or the buffer is none of
// the usual size, which is dropped. Everything that Next has returned is invalid from then on. So
// connections that are idle need no buffer, and many can share a few.
func (r *Reader) Release() []byte {
	if r.Partial() || r.at != r.end || r.err != nil {
		return nil
	}
	buf := r.buf
	r.buf, r.at, r.end, r.scan = nil, 0, 0, 0
	r.trim()
	if len(buf) != bufferSize {
		return nil
	}
	return buf
}

// Apart reports whether an argument that Next has returned lies outside the buffer,
// in memory that the reader will not use again. Whoever keeps it needs no copy, if it
// is most of what it keeps alive by that: an argument that arrived in pieces and has
// 8 KB or more is alone.
func (r *Reader) Apart(arg []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(arg)))
	buf := uintptr(unsafe.Pointer(unsafe.SliceData(r.buf)))
	return at < buf || at >= buf+uintptr(len(r.buf))
}

// rehome moves buf[from:end] to the front, of a buffer of the usual size if that is enough.
func (r *Reader) rehome(from int) {
	to := r.buf
	if len(to) != bufferSize && r.end-from <= bufferSize/2 {
		to = make([]byte, bufferSize)
	}
	copy(to, r.buf[from:r.end])
	r.buf = to
	r.at, r.end, r.scan = r.at-from, r.end-from, r.scan-from
	for i := range r.spans {
		r.spans[i].off -= from
	}
}

// leave goes on in a new, larger buffer. The arguments so far stay in the old one.
func (r *Reader) leave() {
	if r.pinned || len(r.spans) > 0 {
		r.kept += len(r.buf)
	}
	r.settle()
	rest := r.buf[r.at:r.end]
	r.buf = make([]byte, max(min(2*len(r.buf), maxChunk), 2*len(rest)))
	copy(r.buf, rest)
	r.at, r.end, r.scan = 0, len(rest), r.scan-r.at
	r.pinned = false
}

// settle turns the spans into slices of buf, which must then stay where it is.
func (r *Reader) settle() {
	if len(r.spans) == 0 {
		return
	}
	r.done = appendSpans(r.done, r.buf, r.spans)
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

// trim drops lists that a command of very many arguments has left behind.
func (r *Reader) trim() {
	if cap(r.done) > keepArgs {
		r.done = nil
	}
	if cap(r.spans) > keepArgs {
		r.spans = nil
	}
}

// startBig gives the bulk that is coming an allocation of its own.
func (r *Reader) startBig() {
	have := r.buf[r.at:r.end]
	r.big = make([]byte, len(have), step(len(have), r.bulk+2))
	copy(r.big, have)
	r.end, r.scan = r.at, r.at
}

func (r *Reader) bigSpace() []byte {
	if have, whole := len(r.big), r.bulk+2; have == cap(r.big) && have < whole {
		b := make([]byte, have, step(have, whole))
		copy(b, r.big)
		r.big = b
	}
	return r.big[len(r.big):cap(r.big)]
}

// endBig makes an argument of a bulk that is there as a whole.
func (r *Reader) endBig() {
	r.settle()
	r.done = append(r.done, r.big[:r.bulk:r.bulk])
	r.kept += cap(r.big)
	r.big = nil
	r.left--
	r.bulk = -1
}

// step returns how much to allocate when have bytes of whole are there: whole divided by a power of
// four, so that the last step is exact.
func step(have, whole int) int {
	for whole > firstBig && (whole+3)/4 > have {
		whole = (whole + 3) / 4
	}
	return whole
}

// Filled says that n bytes were read into what the last call of Space returned. It panics if that
// is more than there was room for.
func (r *Reader) Filled(n int) {
	switch {
	case n < 0, r.big == nil && n > len(r.buf)-r.end, r.big != nil && n > cap(r.big)-len(r.big):
		panic("BUG: protocol.Reader.Filled: more than Space gave")
	case r.err != nil:
	case r.big != nil:
		r.big = r.big[:len(r.big)+n]
	default:
		r.end += n
	}
}

// Buffered returns the number of bytes that have arrived and are not yet arguments: whole commands
// that Next was not asked for, and the part of an argument or a line at the end.
func (r *Reader) Buffered() int { return r.end - r.at + len(r.big) }

// Partial reports, once Next has found no more commands, whether what has arrived ends within one.
func (r *Reader) Partial() bool { return r.left > 0 || r.Buffered() > 0 || len(r.done) > 0 }

// Missing returns how many bytes of a large argument are still to come: one that was found
// incomplete, and has memory of its own. It is 0 if there is none.
func (r *Reader) Missing() int {
	if r.big == nil {
		return 0
	}
	return r.bulk + 2 - len(r.big)
}

// Size returns the bytes of memory that the reader holds, the arguments of a command that has not
// fully arrived included. It is what a limit on a client's memory should look at: a command may be
// as large as MaxArgs times MaxBulk.
func (r *Reader) Size() int {
	return len(r.buf) + cap(r.big) + r.kept + 24*cap(r.done) + 16*cap(r.spans)
}

// Next appends the arguments of the next command to dst. If ok is false, no whole command is left:
// nothing was appended, and more bytes are needed, unless err says that the client must go. err is
// nil or an *Error. It comes after all commands that precede the bad bytes, and from then on every
// call returns it. Commands without any argument (`*0`, `*-1`, a blank line) are skipped.
//
// Arguments are slices of the reader's memory, valid until Space is called, and the caller may
// change their bytes. So a batch is parsed by calling Next several times with what it returned. A
// Next that follows a command which changes the Limits (AUTH, HELLO, CONFIG SET) should come after
// that command has run; Unauthenticated clients are therefore served without batching.
//
// A caller that keeps dst should clear it now and then: what it refers to, a large argument for
// instance, cannot be freed.
func (r *Reader) Next(dst [][]byte) (args [][]byte, ok bool, err error) {
	if r.err != nil {
		return dst, false, r.err
	}
	for r.left == 0 && len(r.done) == 0 { // whose last argument Space may have ended
		if r.at == r.end {
			return dst, false, nil
		}
		if args, ok := r.whole(dst); ok {
			return args, true, nil
		}
		if r.buf[r.at] != '*' {
			args, ok := r.inline(dst)
			if !ok {
				return dst, false, r.failure()
			}
			if len(args) == len(dst) {
				continue
			}
			return args, true, nil
		}
		n, ok := r.length('*')
		if !ok {
			return dst, false, r.failure()
		}
		switch {
		case n > int64(or(r.Limits.MaxArgs, defaultMaxArgs)):
			return dst, false, r.fail(errMultibulk)
		case n > unauthenticatedArgs && r.Limits.Unauthenticated:
			return dst, false, r.fail(errUnauthenticatedMultibulk)
		case n > 0:
			r.left, r.bulk = int(n), -1
			if cap(r.spans) == 0 {
				r.spans = make([]span, 0, min(max(r.left, 8), keepArgs))
			}
		}
	}
	for r.left > 0 {
		if r.bulk < 0 {
			n, ok := r.length('$')
			if !ok {
				return dst, false, r.failure()
			}
			switch {
			case n < 0, n > int64(min(or(r.Limits.MaxBulk, defaultMaxBulk), math.MaxInt-2)):
				return dst, false, r.fail(errBulk)
			case n > unauthenticatedBulk && r.Limits.Unauthenticated:
				return dst, false, r.fail(errUnauthenticatedBulk)
			}
			r.bulk = int(n)
		}
		n := r.bulk
		// The two bytes behind a bulk are skipped unseen, as in Redis.
		switch {
		case r.big != nil:
			if len(r.big) < n+2 {
				return dst, false, nil
			}
			r.endBig()
			continue
		case r.end-r.at < n+2:
			if n >= bigBulk {
				r.startBig()
			}
			return dst, false, nil
		default:
			r.spans = append(r.spans, span{r.at, n})
			r.at += n + 2
			r.scan = r.at
		}
		r.left--
		r.bulk = -1
	}
	if len(r.done) > 0 {
		dst = append(dst, r.done...)
		clear(r.done)
		r.done = r.done[:0]
		r.pinned, r.kept = false, 0
	}
	dst = appendSpans(dst, r.buf, r.spans)
	r.spans = r.spans[:0]
	return dst, true, nil
}

// whole is Next for most commands there are: up to nine arguments of up to 999 bytes,
// all of which have arrived. It is one pass over the headers, without a word of
// state: 20 ns for a ZADD, where what follows in Next takes 75 (it does so for the
// beginning of a command that a read has cut in two, too, but only once: the rest
// of such a command is not for whole).
func (r *Reader) whole(dst [][]byte) (args [][]byte, ok bool) {
	b := r.buf[r.at:r.end]
	if len(b) < 4 || b[0] != '*' || b[2] != '\r' || r.Limits.tight() {
		return dst, false
	}
	n := int(b[1] - '0')
	if n < 1 || n > 9 {
		return dst, false
	}
	args = slices.Grow(dst, n)
	at := 4
	for range n {
		h := b[at:]
		if len(h) < 6 || h[0] != '$' {
			return dst, false
		}
		size, digits := int(h[1]-'0'), 1
		if size > 9 {
			return dst, false
		}
		for h[1+digits] != '\r' {
			d := int(h[1+digits] - '0')
			if d > 9 || digits == 3 || size == 0 {
				return dst, false
			}
			size = 10*size + d
			digits++
		}
		at += 3 + digits
		end := at + size
		if end+2 > len(b) {
			return dst, false
		}
		args = append(args, b[at:end:end])
		at = end + 2
	}
	r.at += at
	r.scan = r.at
	return args, true
}

// tight reports whether the limits forbid what whole takes without asking.
func (l *Limits) tight() bool {
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
	errQuotes                   = "Protocol error: unbalanced quotes in request"
)

// fail ends the parsing for good and drops what there is; only the arguments already returned stay
// as they are.
func (r *Reader) fail(text string) error {
	r.err = &Error{text}
	r.at, r.scan = r.end, r.end
	r.left, r.big, r.done, r.spans, r.pinned, r.kept = 0, nil, nil, nil, false, 0
	return r.err
}

// failure is err as an interface that is nil if there is none.
func (r *Reader) failure() error {
	if r.err != nil {
		return r.err
	}
	return nil
}

func or(limit, otherwise int) int {
	if limit == 0 {
		return otherwise
	}
	return limit
}

// length parses the line at at, which must be kind (`*` or `$`) and a number, and steps over it. If
// it is not complete, or not valid (then err is set), ok is false. That a line starts with `*` the
// caller has seen.
func (r *Reader) length(kind byte) (n int64, ok bool) {
	if r.scan == r.at { // nothing is known of this line yet: most often it is whole, and of a few digits
		line := r.buf[r.at:r.end]
		i := 1
		for ; i < len(line) && i < 8; i++ {
			c := line[i] - '0'
			if c > 9 {
				break
			}
			n = n*10 + int64(c)
		}
		if i+1 < len(line) && line[i] == '\r' && line[0] == kind && i > 1 && (line[1] != '0' || i == 2) {
			r.at += i + 2
			r.scan = r.at
			return n, true
		}
	}
	invalid, tooBig := errMultibulk, errBigMultibulk
	if kind == '$' {
		invalid, tooBig = errBulk, errBigBulk
	}
	// As in Redis, the line ends with CR and any other byte, and is looked at when it is whole.
	cr, ok := r.find('\r', tooBig)
	if !ok || cr+1 == r.end {
		return 0, false
	}
	if first := r.buf[r.at]; first != kind {
		if first == '\r' || first == '\n' {
			first = ' '
		}
		r.fail("Protocol error: expected '$', got '" + string([]byte{first}) + "'")
		return 0, false
	}
	if n, ok = ParseInt(r.buf[r.at+1 : cr]); !ok {
		r.fail(invalid)
		return 0, false
	}
	r.at = cr + 2
	r.scan = r.at
	return n, true
}

// find looks for the byte that ends the line at at, from where it stopped the last time.
func (r *Reader) find(c byte, tooBig string) (i int, ok bool) {
	most := or(r.Limits.MaxInline, defaultMaxInline)
	line := r.buf[r.scan:min(r.end, r.at+most+1)]
	if i := bytes.IndexByte(line, c); i >= 0 {
		r.scan += i
		return r.scan, true
	}
	r.scan += len(line)
	if r.scan-r.at > most {
		r.fail(tooBig)
	}
	return 0, false
}

// inline appends the words of the line at at.
func (r *Reader) inline(dst [][]byte) (args [][]byte, ok bool) {
	lf, ok := r.find('\n', errBigInline)
	if !ok {
		return dst, false
	}
	line := r.buf[r.at:lf]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if args, ok = SplitArgs(dst, line); !ok {
		r.fail(errQuotes)
		return dst, false
	}
	r.at = lf + 1
	r.scan = r.at
	return args, true
}

// SplitArgs splits a line into words as Redis does for inline commands and for its configuration
// file, and appends them to dst.
//
// Words are separated by white space. Within double quotes \n, \r, \t, \b, \a and \xHH stand for
// the bytes that they name, and a backslash before any other byte for that byte; within single
// quotes \' stands for a quote. A closing quote ends its word and must be followed by white space
// or the end. If it is not, or if there is none, ok is false and dst is returned as it was.
//
// The words are slices of line, whose bytes are overwritten where there were quotes (never beyond
// the quoted text, so nothing is allocated).
func SplitArgs(dst [][]byte, line []byte) (args [][]byte, ok bool) {
	args = dst
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, true
		}
		start := i
		// \v and \f are skipped between words but do not end one: so it is in Redis.
		for i < len(line) && line[i] != '"' && line[i] != '\'' && !endsWord(line[i]) {
			i++
		}
		end := i
		if i < len(line) && !endsWord(line[i]) {
			var n int
			if n, i = unquote(line[end:end], line, i); n < 0 {
				return dst, false
			}
			end += n
		}
		args = append(args, line[start:end:end])
	}
}

// unquote appends to dst what the quotes that open at line[i] enclose. It returns how many bytes
// that was, -1 if the quotes are not balanced, and where it ended.
func unquote(dst, line []byte, i int) (n, next int) {
	quote := line[i]
	for i++; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			i++
			if i < len(line) && !isSpace(line[i]) {
				return -1, i
			}
			return len(dst), i
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
