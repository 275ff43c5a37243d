package transport

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine"
)

// TestPanicWhileParsing checks that a panic of the parser disconnects only its client.
func TestPanicWhileParsing(t *testing.T) {
	var log bytes.Buffer
	e := newTransport(t, engine.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}).engine
	s := e.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer s.Close()
	s.Login.Authenticated = false
	c := &input{sess: s}
	feed := func() error {
		copy(c.reader.Space(), "PING\r\n")
		c.reader.Filled(6)
		return c.parse()
	}
	users := e.ACL
	e.ACL = nil // its limits of the input of unauthenticated clients panic
	err := feed()
	e.ACL = users
	if err != errParsing || !strings.Contains(log.String(), "parse(") || len(c.batch) > 0 {
		t.Errorf("%v, %d commands; log: %s", err, len(c.batch), &log)
	}
	if err := feed(); err != nil || len(c.batch) != 1 || e.Err() != nil {
		t.Errorf("%v, %d commands, %v", err, len(c.batch), e.Err())
	}
}
