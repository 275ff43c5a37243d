package psync

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Options are what a replica announces, and the limits of a link.
type Options struct {
	User, Password string // for AUTH; without a password there is none, without a user the default one

	Port         int64    // that the replica listens on; 0 announces none
	Address      string   // that others reach it at; empty announces none
	Capabilities []string // beside eof and psync2

	ID       string // replication ID of the stream to continue; empty asks for all data
	Offset   int64  // bytes of that stream that the replica has
	Failover bool   // ask the primary, which must be a replica of this server, to take over

	Timeout    time.Duration // of each read and write; 0 is none
	MaxCommand int           // bytes of one command of the stream; 0 is 1 GB
}

// Link is a connection to a primary that has accepted a replica.
//
// One goroutine at a time reads from a Link; Acknowledge and KeepAlive may be called
// concurrently with it.
type Link struct {
	Full   bool   // the primary sends all data; otherwise the stream continues
	ID     string // of the stream; empty for a primary without PSYNC
	Offset int64  // bytes of the stream up to the next one of Next; -1 for a primary without PSYNC

	conn net.Conn
	o    Options
	in   *bufio.Reader
	stream
}

// RefusedError is the error of a primary that has not accepted the replica.
type RefusedError struct {
	Step  string // the command that was refused
	Reply string // the primary's reply, without the sign

	// Later reports that the primary is itself not ready: it loads its data, or has no
	// link to its own primary.
	Later bool
}

// Error names the step and the reply.
func (e *RefusedError) Error() string { return e.Step + ": the primary replied " + quote(e.Reply) }

// quote shortens and quotes what a primary has sent.
func quote(s string) string { return fmt.Sprintf("%.200q", s) }

// readerSize is the size of the input buffer. It exceeds every line of the handshake.
const readerSize = 64 << 10

// Handshake introduces a replica to the primary at the other end of a connection, and
// asks for the data or the rest of a stream. The connection stays the caller's, who
// closes it; closing it ends a call that waits. The error is a *RefusedError if the
// primary has refused.
func Handshake(conn net.Conn, o Options) (*Link, error) {
	if o.MaxCommand == 0 {
		o.MaxCommand = defaultMaxCommand
	}
	l := &Link{conn: conn, o: o}
	l.in = bufio.NewReaderSize(timedReader{l}, readerSize)
	l.stream.reset()
	if err := l.greet(); err != nil {
		return nil, err
	}
	if err := l.introduce(); err != nil {
		return nil, err
	}
	if err := l.ask(); err != nil {
		return nil, err
	}
	return l, nil
}

// timedReader reads from the connection with a deadline.
type timedReader struct{ l *Link }

// Read implements io.Reader.
func (r timedReader) Read(b []byte) (int, error) {
	if t := r.l.o.Timeout; t > 0 {
		if err := r.l.conn.SetReadDeadline(time.Now().Add(t)); err != nil {
			return 0, err
		}
	}
	return r.l.conn.Read(b)
}

// write sends bytes with a deadline.
func (l *Link) write(b []byte) error {
	if t := l.o.Timeout; t > 0 {
		if err := l.conn.SetWriteDeadline(time.Now().Add(t)); err != nil {
			return err
		}
	}
	_, err := l.conn.Write(b)
	return err
}

// appendCommand appends a command.
func appendCommand(b []byte, words ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// readLine returns the next line that is not empty: empty ones only show that the
// primary is alive.
func (l *Link) readLine() (string, error) {
	for {
		line, err := l.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return "", fmt.Errorf("the primary has sent a line of more than %d bytes, which begins with %s", readerSize, quote(string(line[:40])))
		}
		if err != nil {
			return "", noEOF(err)
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			return string(line), nil
		}
	}
}

// noEOF returns the error of an input that ends where it must not.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// greet sends PING. A primary that demands a password refuses it, and AUTH follows.
func (l *Link) greet() error {
	if err := l.write(appendCommand(nil, "PING")); err != nil {
		return err
	}
	reply, err := l.readLine()
	if err != nil {
		return fmt.Errorf("PING: %w", err)
	}
	for _, good := range []string{"+", "-NOAUTH", "-NOPERM", "-ERR operation not permitted"} {
		if strings.HasPrefix(reply, good) {
			return nil
		}
	}
	return refused("PING", reply)
}

// refused returns the error of a step with a reply.
func refused(step, reply string) error {
	text := strings.TrimPrefix(reply, "-")
	later := false
	for _, code := range []string{"NOMASTERLINK", "LOADING", "BUSY", "MASTERDOWN"} {
		later = later || strings.HasPrefix(reply, "-"+code)
	}
	return &RefusedError{Step: step, Reply: text, Later: later}
}

// valkeyVersion is the oldest version of Valkey with all that package rdb reads. Valkey
// sends nothing that an older one does not read, and no data at all if a hash has fields
// with deadlines. Redis ignores it.
const valkeyVersion = "9.0.0"

// introduce sends AUTH and the facts of the replica. Primaries refuse facts that they do
// not know, which does not matter.
func (l *Link) introduce() error {
	var out []byte
	var steps []string
	send := func(step string, words ...string) {
		out = appendCommand(out, words...)
		steps = append(steps, step)
	}
	switch o := &l.o; {
	case o.Password == "":
	case o.User == "":
		send("AUTH", "AUTH", o.Password)
	default:
		send("AUTH", "AUTH", o.User, o.Password)
	}
	if l.o.Port != 0 {
		send("REPLCONF", "REPLCONF", "listening-port", strconv.FormatInt(l.o.Port, 10))
	}
	if l.o.Address != "" {
		send("REPLCONF", "REPLCONF", "ip-address", l.o.Address)
	}
	capabilities := []string{"REPLCONF", "capa", "eof", "capa", "psync2"}
	for _, c := range l.o.Capabilities {
		capabilities = append(capabilities, "capa", c)
	}
	send("REPLCONF", capabilities...)
	send("REPLCONF", "REPLCONF", "version", valkeyVersion)
	if err := l.write(out); err != nil {
		return err
	}
	for _, step := range steps {
		reply, err := l.readLine()
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		if step == "AUTH" && reply[0] != '+' {
			return refused(step, reply)
		}
	}
	return nil
}

// ask sends PSYNC, or SYNC to a primary without it, and reads the answer.
func (l *Link) ask() error {
	id, next := "?", "-1"
	if l.o.ID != "" {
		id, next = l.o.ID, strconv.FormatInt(l.o.Offset+1, 10)
	}
	words := []string{"PSYNC", id, next}
	if l.o.Failover {
		words = append(words, "FAILOVER")
	}
	if err := l.write(appendCommand(nil, words...)); err != nil {
		return err
	}
	reply, err := l.readLine()
	if err != nil {
		return fmt.Errorf("PSYNC: %w", err)
	}
	fields := strings.Fields(reply)
	switch {
	case len(fields) == 0:
		return refused("PSYNC", reply)
	case fields[0] == "+FULLRESYNC":
		if len(fields) != 3 || len(fields[1]) != idSize {
			return refused("PSYNC", reply)
		}
		if l.Offset, err = strconv.ParseInt(fields[2], 10, 64); err != nil || l.Offset < 0 {
			return refused("PSYNC", reply)
		}
		l.Full, l.ID = true, fields[1]
	case fields[0] == "+CONTINUE":
		if l.o.ID == "" || len(fields) > 2 || len(fields) == 2 && len(fields[1]) != idSize {
			return refused("PSYNC", reply)
		}
		l.ID, l.Offset = l.o.ID, l.o.Offset
		if len(fields) == 2 {
			l.ID = fields[1]
		}
	case !strings.HasPrefix(reply, "-ERR unknown command") || l.o.Failover:
		return refused("PSYNC", reply)
	default:
		l.Full, l.Offset = true, -1
		return l.write(appendCommand(nil, "SYNC"))
	}
	return nil
}

// idSize is the length of a replication ID.
const idSize = 40

// Acknowledge tells the primary how many bytes of the stream the replica has, and how many of
// them are on its disk; saved is -1 for a replica that does not say. After Payload it also
// asks for the stream. A primary expects it every second.
func (l *Link) Acknowledge(offset, saved int64) error {
	words := []string{"REPLCONF", "ACK", strconv.FormatInt(offset, 10)}
	if saved >= 0 {
		words = append(words, "FACK", strconv.FormatInt(saved, 10))
	}
	return l.write(appendCommand(nil, words...))
}

// KeepAlive tells the primary that the replica lives, while it loads the data and has
// nothing to acknowledge.
func (l *Link) KeepAlive() error { return l.write([]byte("\n")) }
