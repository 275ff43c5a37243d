package psync

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

const id = "0123456789abcdef0123456789abcdef01234567"

// primary is the other end of a connection. It answers commands by what they begin with
// and then sends bytes.
type primary struct {
	conn    net.Conn
	got     []string
	answers map[string]string
	then    string
	ended   chan struct{}
}

// connect returns a connection to a primary, which ends the connection when it has sent
// everything, after the command that has the answer with the key then.
func connect(t *testing.T, answers map[string]string, then string) (net.Conn, *primary) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p := &primary{conn: far, answers: answers, then: then, ended: make(chan struct{})}
	go p.serve()
	t.Cleanup(func() {
		near.Close()
		<-p.ended
		far.Close()
	})
	return near, p
}

func (p *primary) serve() {
	defer close(p.ended)
	r := bufio.NewReader(p.conn)
	for {
		v, err := protocol.DecodeFrom(r)
		if err != nil {
			return
		}
		line := strings.Trim(fmt.Sprint(v), "[]")
		p.got = append(p.got, line)
		word, _, _ := strings.Cut(line, " ")
		if answer, ok := p.answers[word]; !ok {
			io.WriteString(p.conn, "+OK\r\n")
		} else {
			io.WriteString(p.conn, answer)
		}
		if word == "SYNC" || word == "PSYNC" && p.answers["SYNC"] == "" {
			break
		}
	}
	io.WriteString(p.conn, p.then)
	p.conn.(*net.TCPConn).CloseWrite()
	for {
		v, err := protocol.DecodeFrom(r)
		if err != nil {
			return
		}
		p.got = append(p.got, strings.Trim(fmt.Sprint(v), "[]"))
	}
}

func TestHandshake(t *testing.T) {
	for name, c := range map[string]struct {
		o       Options
		answers map[string]string
		sent    string
		full    bool
		id      string
		offset  int64
		err     string
		later   bool
	}{
		"all data": {
			answers: map[string]string{"PING": "+PONG\r\n", "PSYNC": "\n\n+FULLRESYNC " + id + " 17\r\n"},
			sent:    "PING;REPLCONF capa eof capa psync2;REPLCONF version 9.0.0;PSYNC ? -1", full: true, id: id, offset: 17,
		},
		"everything announced": {
			o:       Options{User: "u", Password: "p", Port: 7, Address: "a", Capabilities: []string{"x"}, ID: id, Offset: 9},
			answers: map[string]string{"PING": "-NOAUTH Authentication required.\r\n", "REPLCONF": "-ERR what\r\n", "PSYNC": "+CONTINUE\r\n"},
			sent:    "PING;AUTH u p;REPLCONF listening-port 7;REPLCONF ip-address a;REPLCONF capa eof capa psync2 capa x;REPLCONF version 9.0.0;PSYNC " + id + " 10", id: id, offset: 9,
		},
		"new ID": {
			o:       Options{Password: "p", ID: strings.Repeat("e", 40), Offset: 1},
			answers: map[string]string{"PSYNC": "+CONTINUE " + id + "\r\n"},
			sent:    "PING;AUTH p;REPLCONF capa eof capa psync2;REPLCONF version 9.0.0;PSYNC " + strings.Repeat("e", 40) + " 2", id: id, offset: 1,
		},
		"failover": {
			o:       Options{ID: id, Offset: 1, Failover: true},
			answers: map[string]string{"PSYNC": "-ERR unknown command\r\n"}, sent: "PING;REPLCONF capa eof capa psync2;REPLCONF version 9.0.0;PSYNC " + id + " 2 FAILOVER",
			err: "PSYNC: the primary replied \"ERR unknown command\"",
		},
		"before 2.8": {
			answers: map[string]string{"PSYNC": "-ERR unknown command 'PSYNC'\r\n", "SYNC": "\n"},
			sent:    "PING;REPLCONF capa eof capa psync2;REPLCONF version 9.0.0;PSYNC ? -1;SYNC", full: true, offset: -1,
		},
		"wrong password": {
			o:       Options{Password: "p"},
			answers: map[string]string{"AUTH": "-WRONGPASS no\r\n"}, sent: "PING;AUTH p;REPLCONF capa eof capa psync2;REPLCONF version 9.0.0", err: `AUTH: the primary replied "WRONGPASS no"`,
		},
		"no link":        {answers: map[string]string{"PSYNC": "-NOMASTERLINK no\r\n"}, err: `PSYNC: the primary replied "NOMASTERLINK no"`, later: true},
		"loading":        {answers: map[string]string{"PSYNC": "-LOADING x\r\n"}, err: `PSYNC: the primary replied "LOADING x"`, later: true},
		"no permission":  {answers: map[string]string{"PSYNC": "-NOPERM x\r\n"}, err: `PSYNC: the primary replied "NOPERM x"`},
		"refused":        {answers: map[string]string{"PING": "-DENIED x\r\n"}, sent: "PING", err: `PING: the primary replied "DENIED x"`},
		"no offset":      {answers: map[string]string{"PSYNC": "+FULLRESYNC " + id + "\r\n"}, err: `PSYNC: the primary replied "+FULLRESYNC ` + id + `"`},
		"bad offset":     {answers: map[string]string{"PSYNC": "+FULLRESYNC " + id + " -1\r\n"}, err: `PSYNC: the primary replied "+FULLRESYNC ` + id + ` -1"`},
		"bad ID":         {answers: map[string]string{"PSYNC": "+FULLRESYNC x 1\r\n"}, err: `PSYNC: the primary replied "+FULLRESYNC x 1"`},
		"unasked":        {answers: map[string]string{"PSYNC": "+CONTINUE\r\n"}, err: `PSYNC: the primary replied "+CONTINUE"`},
		"closed":         {answers: map[string]string{"PSYNC": ""}, err: "PSYNC: unexpected EOF"},
		"spaces":         {answers: map[string]string{"PSYNC": "   \r\n"}, err: `PSYNC: the primary replied "   "`},
		"endless answer": {answers: map[string]string{"PSYNC": strings.Repeat("x", 70_000)}, err: `PSYNC: the primary has sent a line of more than 65536 bytes, which begins with "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"`},
	} {
		t.Run(name, func(t *testing.T) {
			conn, p := connect(t, c.answers, "")
			c.o.Timeout = time.Minute
			l, err := Handshake(conn, c.o)
			conn.Close()
			<-p.ended
			if got := strings.Join(p.got, ";"); c.sent != "" && got != c.sent {
				t.Errorf("sent %q, want %q", got, c.sent)
			}
			if c.err != "" {
				var refused *RefusedError
				if err == nil || err.Error() != c.err || c.later != (errors.As(err, &refused) && refused.Later) {
					t.Fatalf("error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if l.Full != c.full || l.ID != c.id || l.Offset != c.offset {
				t.Errorf("%v %s %d", l.Full, l.ID, l.Offset)
			}
		})
	}
}

// linkTo returns a link whose input is what follows the handshake.
func linkTo(in io.Reader, limit int) *Link {
	l := &Link{o: Options{MaxCommand: limit}, in: bufio.NewReaderSize(in, readerSize)}
	l.stream.reset()
	return l
}

func TestPayload(t *testing.T) {
	large := strings.Repeat(id[:39]+"x", 8_000)
	for name, c := range map[string]struct{ in, data, rest, err string }{
		"length":           {in: "\n\n$5\r\nhellorest", data: "hello", rest: "rest"},
		"empty":            {in: "$0\r\nrest", rest: "rest"},
		"mark":             {in: "$EOF:" + id + "\r\nhello" + id + "rest", data: "hello", rest: "rest"},
		"mark alone":       {in: "$EOF:" + id + "\r\n" + id + "rest", rest: "rest"},
		"beginning of it":  {in: "$EOF:" + id + "\r\nhello" + id[:39] + id + "rest", data: "hello" + id[:39], rest: "rest"},
		"large":            {in: "$EOF:" + id + "\r\n" + large + id + "rest", data: large, rest: "rest"},
		"large, measured":  {in: fmt.Sprintf("$%d\r\n%srest", len(large), large), data: large, rest: "rest"},
		"cut":              {in: "$5\r\nhell", data: "hell", err: "unexpected EOF"},
		"without its mark": {in: "$EOF:" + id + "\r\nhello" + id[:39], data: "hello", err: "unexpected EOF"},
		"refused":          {in: "-ERR x\r\n", err: `transfer of the data: the primary replied "ERR x"`},
		"no payload":       {in: "+OK\r\n", err: `the primary announces the data with "+OK"`},
		"short mark":       {in: "$EOF:abc\r\n", err: `the primary announces the data with "$EOF:abc", a mark of 3 bytes in place of 40`},
		"negative":         {in: "$-1\r\n", err: `the primary announces the data with "$-1"`},
		"too large":        {in: "$99999999999999999999\r\n", err: `the primary announces the data with "$99999999999999999999"`},
		"nothing":          {err: "waiting for the data: unexpected EOF"},
	} {
		for pieces, wrap := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "in bytes": iotest.OneByteReader} {
			t.Run(name+", "+pieces, func(t *testing.T) {
				l := linkTo(wrap(strings.NewReader(c.in)), 100)
				var data []byte
				r, _, err := l.Payload()
				if err == nil {
					data, err = io.ReadAll(r)
				}
				if c.err != "" {
					if err == nil || err.Error() != c.err || !strings.HasPrefix(c.data, string(data)) {
						t.Fatalf("error %v, want %s; data %q", err, c.err, data)
					}
					return
				}
				rest, _ := io.ReadAll(l.in)
				if err != nil || string(data) != c.data || string(rest) != c.rest {
					t.Fatalf("%.50q, rest %.50q, error %v", data, rest, err)
				}
			})
		}
	}
}

func TestStream(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	in := "*1\r\n$4\r\nPING\r\n\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$200000\r\n" + long + "\r\n*0\r\nSET b \"c d\"\r\n*2\r\n$0\r\n\r\n$1\r\n\n\r\n" + strings.Repeat("\n", 3*maxBatch)
	for pieces, wrap := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "in bytes": iotest.OneByteReader} {
		t.Run(pieces, func(t *testing.T) {
			l := linkTo(wrap(strings.NewReader(in)), 300_000)
			l.Offset = 7
			var raw []byte
			var got []string
			for {
				b, err := l.Next()
				if err != nil {
					if !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Fatal(err)
					}
					break
				}
				if at := l.Passed(0); at != 7+int64(len(raw)) {
					t.Fatalf("offset %d after %d bytes", at, len(raw))
				}
				raw = append(raw, b.Raw...)
				if at := l.Passed(len(b.Commands)); at != 7+int64(len(raw)) {
					t.Fatalf("offset %d after %d bytes", at, len(raw))
				}
				for _, c := range b.Commands {
					if len(c) > 0 {
						got = append(got, fmt.Sprintf("%.20q", c))
					}
				}
			}
			want := `["PING"] ["SET" "a" "xxxxxxxxxxxxxxxxxxxx"] ["SET" "b" "c d"] ["" "\n"]`
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s, want %s", s, want)
			}
			if string(raw) != in {
				t.Errorf("%d raw bytes of %d differ", len(raw), len(in))
			}
		})
	}
}

func TestStreamRefused(t *testing.T) {
	for in, want := range map[string]string{
		"*x\r\n":           `stream at offset 0: an array of "x" arguments`,
		"*-1\r\n":          `stream at offset 0: an array of "-1" arguments`,
		"*2000000\r\n":     `stream at offset 0: an array of "2000000" arguments`,
		"*1\r\n:5\r\n":     `stream at offset 0: an argument that begins with ":5", where its length is expected, which is at most 100`,
		"\n*1\r\n$101\r\n": `stream at offset 1: an argument that begins with "$101", where its length is expected, which is at most 100`,
		"*2\r\n$60\r\n" + strings.Repeat("x", 60):                 "unexpected EOF",
		"*2\r\n$60\r\n" + strings.Repeat("x", 60) + "\r\n$60\r\n": "stream at offset 0: a command of more than 100 bytes",
		"*1\r\n$1\r\nxyz":          "stream at offset 0: an argument of 1 bytes without its end",
		"\"x\r\n":                  `stream at offset 0: "\"x" is no command`,
		strings.Repeat("x", 70000): "stream at offset 0: a line of more than 65536 bytes",
	} {
		l := linkTo(strings.NewReader(in), 100)
		var err error
		for err == nil {
			_, err = l.Next()
		}
		if err.Error() != want {
			t.Errorf("%.40q: %v, want %s", in, err, want)
		}
	}
}

func TestAsksToAcknowledge(t *testing.T) {
	if !AsksToAcknowledge([][]byte{[]byte("replconf"), []byte("GetAck"), []byte("*")}) || AsksToAcknowledge([][]byte{[]byte("REPLCONF")}) {
		t.Error("REPLCONF GETACK is not recognized")
	}
}

// FuzzPrimary feeds a link any bytes: it ends with an error, yields what it was sent, and
// holds little more than that.
func FuzzPrimary(f *testing.F) {
	f.Add([]byte("+PONG\r\n+OK\r\n+FULLRESYNC " + id + " 1\r\n$3\r\nabc*1\r\n$4\r\nPING\r\n"))
	f.Add([]byte("+PONG\r\n+OK\r\n+FULLRESYNC " + id + " 1\r\n$EOF:" + id + "\r\nabc" + id + "*1\r\n$4\r\nPING\r\n\n"))
	f.Add([]byte("+PONG\r\n+OK\r\n+CONTINUE\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\nx"))
	f.Add([]byte("-NOAUTH\r\n-x\r\n-LOADING\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, o := range []Options{{}, {ID: id}} {
			l, err := Handshake(replay{Reader: bytes.NewReader(in)}, o)
			if err != nil {
				continue
			}
			if l.Full {
				r, _, err := l.Payload()
				if err != nil {
					continue
				}
				if _, err := io.Copy(io.Discard, r); err != nil {
					continue
				}
			}
			for {
				b, err := l.Next()
				if err != nil {
					break
				}
				if !bytes.Contains(in, b.Raw) {
					t.Fatalf("%q was not sent", b.Raw)
				}
			}
			if n := cap(l.buf); n > 4*len(in)+2*firstBuffer {
				t.Fatalf("a buffer of %d bytes after %d", n, len(in))
			}
		}
	})
}

// replay is a connection with a recorded input.
type replay struct {
	io.Reader
	net.Conn
}

func (r replay) Read(b []byte) (int, error)  { return r.Reader.Read(b) }
func (r replay) Write(b []byte) (int, error) { return len(b), nil }
