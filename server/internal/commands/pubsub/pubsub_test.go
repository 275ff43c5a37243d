package pubsub_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// TestPublishReachesSubscribers checks with random subscriptions that each client receives
// a message once for every matching channel and pattern.
func TestPublishReachesSubscribers(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	const clients = 12
	rnd := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c"}
	sessions := make([]*engine.Session, clients)
	mine := make([]map[string]bool, clients)
	run := func(s *engine.Session, line string) string {
		var argv [][]byte
		for _, word := range strings.Fields(line) {
			argv = append(argv, []byte(word))
		}
		out, _ := enginetest.Turn(s, argv)
		s.Written()
		return string(out)
	}
	join := func(i int) {
		sessions[i] = srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
		mine[i] = map[string]bool{}
		if i%2 == 1 {
			run(sessions[i], "HELLO 3")
		}
	}
	for i := range clients {
		join(i)
	}
	publisher := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer publisher.Close()
	for range 4000 {
		i, name := rnd.IntN(clients), names[rnd.IntN(len(names))]
		switch rnd.IntN(9) {
		case 0, 1, 2:
			run(sessions[i], "SUBSCRIBE "+name)
			mine[i][name] = true
		case 3:
			run(sessions[i], "UNSUBSCRIBE "+name)
			delete(mine[i], name)
		case 4:
			run(sessions[i], "PSUBSCRIBE ?")
			mine[i]["?"] = true
		case 5:
			run(sessions[i], "PUNSUBSCRIBE")
			delete(mine[i], "?")
		case 6:
			if rnd.IntN(10) == 0 {
				sessions[i].Close()
				join(i)
			}
		default:
			n := 0
			for i := range mine {
				for _, by := range []string{name, "?"} {
					if mine[i][by] {
						n++
					}
				}
			}
			if got, want := run(publisher, "PUBLISH "+name+" x"), fmt.Sprintf(":%d\r\n", n); got != want {
				t.Fatalf("PUBLISH %s: %q, want %q", name, got, want)
			}
			for i, s := range sessions {
				kind, want := byte('*'), ""
				if i%2 == 1 {
					kind = '>'
				}
				if mine[i][name] {
					want += fmt.Sprintf("%c3\r\n$7\r\nmessage\r\n$1\r\n%s\r\n$1\r\nx\r\n", kind, name)
				}
				if mine[i]["?"] {
					want += fmt.Sprintf("%c4\r\n$8\r\npmessage\r\n$1\r\n?\r\n$1\r\n%s\r\n$1\r\nx\r\n", kind, name)
				}
				out, _, _ := s.Take()
				if s.Queue.Flushing.Load() != 0 {
					s.Written()
				}
				if string(out) != want {
					t.Fatalf("client %d got %q, want %q", i, out, want)
				}
			}
		}
		if rnd.IntN(50) == 0 {
			if err := srv.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range sessions {
		s.Close()
	}
	if n := srv.PubSub.Table.Len(subscription.Channels) + srv.PubSub.Table.Len(subscription.Patterns); n != 0 {
		t.Errorf("%d names have subscribers after all clients have closed", n)
	}
}

// TestManyTooFarBehind checks that one message disconnects all subscribers that exceed
// their output limit, and reaches the others.
func TestManyTooFarBehind(t *testing.T) {
	srv, addr := enginetest.Start(t, map[string]string{"client-output-buffer-limit": "pubsub 100kb 0 0"})
	lazy := make([]*engine.Session, 6)
	for i := range lazy {
		lazy[i] = srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
		defer lazy[i].Close()
		lazy[i].Turn([][][]byte{{[]byte("SUBSCRIBE"), []byte("news")}}, nil) // its output is never written
	}
	c, publisher := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	c.Send("SUBSCRIBE news\r\n")
	c.Expect("[subscribe news 1]")
	message := strings.Repeat("m", 1000)
	for i := range 200 {
		publisher.Send("PUBLISH news " + message + "\r\n")
		want := int64(len(lazy) + 1)
		if got := publisher.Reply(); got != want && (i < 50 || got != int64(1)) {
			t.Fatalf("message %d reaches %v", i, got)
		}
		c.Expect("[message news " + message + "]")
	}
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	if slices.ContainsFunc(lazy, func(s *engine.Session) bool { return s.End != engine.Killed }) || srv.Stats.OutputLimitDisconnections != int64(len(lazy)) {
		t.Errorf("%d were disconnected", srv.Stats.OutputLimitDisconnections)
	}
}

// TestMessageAfterLarge checks that a message is sent alone after one that is larger than the
// buffer that is kept, in both versions of the protocol and for each kind of message.
func TestMessageAfterLarge(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, version := range []string{"2", "3"} {
		for name, test := range map[string]struct{ subscribe, publish string }{
			"channel": {"SUBSCRIBE c", "PUBLISH"}, "pattern": {"PSUBSCRIBE *", "PUBLISH"}, "shard": {"SSUBSCRIBE c", "SPUBLISH"},
		} {
			c := enginetest.Pipe(t, srv)
			c.Send("HELLO " + version + "\r\n" + test.subscribe + "\r\n")
			c.Reply()
			c.Reply()
			for _, n := range []int{1, 200, 70_000, 2, 300_000, 3, 65_500, 65_536, 4} {
				message := strings.Repeat("m", n)
				enginetest.Must(t, srv, test.publish+" c "+message+" -> 1")
				reply := c.Reply()
				got, _ := reply.([]any)
				if push, ok := reply.(protocol.Push); ok {
					got = push
				}
				if len(got) < 3 || len(got) > 4 || got[len(got)-1] != message {
					t.Fatalf("RESP%s, %s: a message of %d bytes arrives as %.100v", version, name, n, got)
				}
			}
			c.Close()
			wait.Until(t, "the subscription ends", func() bool { return enginetest.Say(srv, test.publish+" c x") == "0" })
		}
	}
}
