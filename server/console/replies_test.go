package console

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
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

// standingsOf returns standings of members that are not read yet.
func standingsOf(members ...string) map[string]*standing {
	m := map[string]*standing{}
	for _, member := range members {
		m[member] = &standing{}
	}
	return m
}

// TestRankReplies checks what the readers of ranks make of replies, and that they return the
// error of replies that are cut or have another form.
func TestRankReplies(t *testing.T) {
	readSet := func(replies string) (map[string]*standing, error) {
		all := standingsOf("a", "bb", "c")
		return all, scripted(replies).readSet(rankKey{key: "k"}, all)
	}
	readRanks := func(replies string) (map[string]*standing, error) {
		all := standingsOf("a")
		return all, scripted(replies).readRanks(rankKey{key: "k"}, all)
	}
	const set = "*3\r\n*2\r\n$1\r\na\r\n,-1.5\r\n*2\r\n$3\r\nnew\r\n,2\r\n*2\r\n$2\r\nbb\r\n,inf\r\n"
	all, err := readSet(set)
	if err != nil {
		t.Fatal(err)
	}
	for member, want := range map[string]standing{"a": {there: true, score: -1.5}, "bb": {there: true, rank: 2, score: math.Inf(1)}, "c": {}} {
		if *all[member] != want {
			t.Errorf("%s: %+v, want %+v", member, *all[member], want)
		}
	}
	const rank = "*2\r\n:7\r\n,2.5\r\n"
	all, err = readRanks(">1\r\n$4\r\npush\r\n" + rank)
	if err != nil || *all["a"] != (standing{there: true, rank: 7, score: 2.5}) {
		t.Errorf("a: %+v, %v", *all["a"], err)
	}
	if all, err = readRanks("_\r\n"); err != nil || *all["a"] != (standing{}) {
		t.Errorf("a that is not there: %+v, %v", *all["a"], err)
	}

	for i := range set {
		if _, err := readSet(set[:i]); err == nil {
			t.Errorf("no error for %q", set[:i])
		}
	}
	for i := range rank {
		if _, err := readRanks(rank[:i]); err == nil {
			t.Errorf("no error for %q", rank[:i])
		}
	}
	for _, replies := range []string{
		"+OK\r\n", "*x\r\n", "*-1\r\n", "*2147483648\r\n", "*1\r\n$1\r\na\r\n", "*1\r\n*2\r\n:1\r\n", "*1\r\n*2\r\n$-1\r\n",
		"*1\r\n*2\r\n$1\r\na\r\n:1\r\n", "*1\r\n*2\r\n$1\r\na\r\n,x\r\n", "*1\r\n*2\r\n$1\r\na\r\n,\r\n",
	} {
		if _, err := readSet(replies); !errors.Is(err, errReply) {
			t.Errorf("%q: %v", replies, err)
		}
	}
	const refusal = "WRONGTYPE Operation against a key holding the wrong kind of value"
	for _, read := range []func(string) (map[string]*standing, error){readSet, readRanks} {
		if _, err := read("-" + refusal + "\r\n"); err != protocol.ReplyError(refusal) {
			t.Errorf("a refusal: %v", err)
		}
	}
}

// TestRanksRefused checks that a reader of ranks ends when one is refused, while commands that
// the server does not read are left to send.
func TestRanksRefused(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go io.WriteString(there, "-NOPERM no\r\n")
	c := &conn{here, bufio.NewReader(here), func() bool { return true }, nil}
	if err := c.readRanks(rankKey{key: "k"}, standingsOf("a", "b")); err != protocol.ReplyError("NOPERM no") {
		t.Error(err)
	}
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
