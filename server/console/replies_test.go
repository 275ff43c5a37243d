package console

import (
	"bufio"
	"bytes"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// sink is a connection that takes all commands.
type sink struct{ net.Conn }

func (sink) Write(b []byte) (int, error) { return len(b), nil }

func (sink) Close() error { return nil }

// scripted returns a connection to a server that sends these replies and nothing more.
func scripted(replies string) *conn {
	return &conn{sink{}, bufio.NewReader(strings.NewReader(replies)), func() bool { return true }, func(string) string { return "" }}
}

// TestCommitReplies checks the result of a transaction for each reply that the server may
// give, and its error when the replies are cut.
func TestCommitReplies(t *testing.T) {
	c := &Console{}
	commit := func(replies string) (done bool, body string, err error) {
		w := httptest.NewRecorder()
		done, err = c.commit(w, scripted(replies), &transaction{commands: [][]string{{"GET", "a"}, {"GET", "b"}}}, false)
		return done, strings.TrimSpace(w.Body.String()), err
	}
	const queued = "+OK\r\n+QUEUED\r\n+QUEUED\r\n"
	for replies, want := range map[string]struct {
		done bool
		body string
		err  error
	}{
		queued + "*2\r\n$1\r\n1\r\n$1\r\n2\r\n":                        {true, `[{"result":"1"},{"result":"2"}]`, nil},
		queued + "_\r\n":                                               {},
		queued + "-EXECABORT no\r\n":                                   {err: protocol.ReplyError("EXECABORT no")},
		"-NOPERM no\r\n":                                               {err: protocol.ReplyError("NOPERM no")},
		"+OK\r\n-ERR unknown command\r\n":                              {err: protocol.ReplyError("ERR unknown command")},
		"+OK\r\n+QUEUED\r\n$1\r\n1\r\n":                                {err: errQueued},
		">1\r\n+push\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n-ERR no exec\r\n": {err: protocol.ReplyError("ERR no exec")},
	} {
		if done, body, err := commit(replies); done != want.done || body != want.body || err != want.err {
			t.Errorf("%q: %v, %s, %v, want %+v", replies, done, body, err, want)
		}
	}
	for i := range queued + "_" {
		if done, _, err := commit((queued + "_")[:i]); done || err == nil {
			t.Errorf("%q: %v, %v", queued[:i], done, err)
		}
	}
}

// written is a streamWriter that keeps what is written.
type written struct{ bytes.Buffer }

func (*written) Close() error { return nil }

func (*written) SetWriteDeadline(time.Time) error { return nil }

// TestStateReplies checks the event of the present state of a key, and that it is an error, and
// no part of an event, if the state cannot be read.
func TestStateReplies(t *testing.T) {
	state := func(replies string) (string, error) {
		var w written
		err := scripted(replies).state(&stream{out: &w}, feedKey{name: "k", db: "0"})
		return w.String(), err
	}
	for _, replies := range []string{"", "+OK\r\n", "+OK\r\n+hash\r\n", "+OK\r\n+hash\r\n:1\r\n"} {
		if event, err := state(replies + "-NOPERM no\r\n"); err != protocol.ReplyError("NOPERM no") || event != "" {
			t.Errorf("refused after %q: %q, %v", replies, event, err)
		}
		if event, err := state(replies); err == nil || event != "" {
			t.Errorf("cut after %q: %q, %v", replies, event, err)
		}
	}
	for replies, want := range map[string]string{
		"+none\r\n":                        `"type":"none","length":0,"value":null}`,
		"+hash\r\n:10001\r\n":              `"type":"hash","length":10001,"value":null}`,
		"+hash\r\n:10000\r\n%0\r\n":        `"type":"hash","length":10000,"value":[]}`,
		"+string\r\n:1\r\n$1\r\na\r\n":     `"type":"string","length":1,"value":"a"}`,
		"+list\r\n:1\r\n*1\r\n$1\r\na\r\n": `"type":"list","length":1,"value":["a"]}`,
	} {
		event, err := state("+OK\r\n" + replies)
		if err != nil || event != "event: state\ndata: {\"key\":\"k\","+want+"\n\n" {
			t.Errorf("%q: %s, %v", replies, event, err)
		}
	}
}
