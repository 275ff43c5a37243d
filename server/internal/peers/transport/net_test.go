package transport_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/commands/data"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/servertest/wait"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

func TestClosing(t *testing.T) {
	_, addr := enginetest.Start(t, nil)
	for _, test := range []struct{ name, in, want string }{
		{"commands before bad input are answered", "PING\r\n*1\r\n$x\r\nPING\r\n", "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n"},
		{"nothing runs after QUIT", "QUIT\r\nPING\r\n", "+OK\r\n"},
		{"HTTP", "POST / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n", ""},
		{"who kills himself in a transaction hears no more of it", "MULTI\r\nCLIENT KILL TYPE normal SKIPME no\r\nSET k v\r\nEXEC\r\nPING\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n"},
		{"nor who deletes his user", "ACL SETUSER u nopass on +@all ~*\r\nAUTH u p\r\nMULTI\r\nACL DELUSER u\r\nNOSUCH\r\nPING\r\nEXEC\r\nMULTI\r\nACL DELUSER u\r\nSET k v\r\nEXEC\r\n", "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n-ERR unknown command 'NOSUCH'\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of previous errors.\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n"},
		{"a length beyond all bounds", "*1\r\n$9223372036854775807\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := enginetest.Dial(t, addr)
			c.Send(test.in)
			if got := c.All(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A client may send a whole pipeline before it reads anything.
func TestPipelineBeforeReading(t *testing.T) {
	srv, addr := enginetest.Start(t, nil)
	const n = 20000
	echo := strings.Repeat("x", 500)
	in := strings.Repeat("ECHO "+echo+"\r\n", n) // 10 MB of replies
	for name, c := range map[string]*enginetest.Client{"tcp": enginetest.Dial(t, addr), "pipe": enginetest.Pipe(t, srv)} {
		t.Run(name, func(t *testing.T) {
			c.Send(in)
			for range n {
				if got := c.Reply(); got != echo {
					t.Fatalf("got %q", got)
				}
			}
		})
	}
}

// TestSlowSubscriber checks that a subscriber that does not read delays no client and is
// disconnected at its limit, and that one that reads receives all messages.
func TestSlowSubscriber(t *testing.T) {
	_, addr := enginetest.Start(t, map[string]string{"client-output-buffer-limit": "pubsub 1mb 0 0"})
	slow, good, publisher := enginetest.Dial(t, addr), enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	slow.Send("SUBSCRIBE news\r\n")
	good.Send("SUBSCRIBE news\r\n")
	good.Reply()
	slow.Reply()
	const n = 20000
	message := strings.Repeat("m", 1000)
	received := make(chan int)
	go func() {
		got := 0
		for ; got < n; got++ {
			v, err := protocol.DecodeFrom(good.R)
			if err != nil || v.([]any)[2] != message {
				break
			}
		}
		received <- got
	}()
	for range n {
		publisher.Send("PUBLISH news " + message + "\r\n")
		if got := publisher.Reply(); got != int64(2) && got != int64(1) {
			t.Fatalf("PUBLISH: %v", got)
		}
	}
	if got := <-received; got != n {
		t.Errorf("the good subscriber got %d messages of %d", got, n)
	}
	read, _ := io.Copy(io.Discard, slow.R)
	if read > 16<<20 {
		t.Errorf("the slow subscriber was sent %d bytes", read)
	}
	publisher.Send("PUBLISH news last\r\n")
	if got := publisher.Reply(); got != int64(1) {
		t.Errorf("subscribers after the slow one was disconnected: %v", got)
	}
}

func TestMaxclients(t *testing.T) {
	_, addr := enginetest.Start(t, map[string]string{"maxclients": "2"})
	a, b := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
	for _, c := range []*enginetest.Client{a, b} {
		c.Send("PING\r\n")
		if got := c.Reply(); got != protocol.Status("PONG") {
			t.Fatal(got)
		}
	}
	if got := enginetest.Dial(t, addr).All(); got != "-ERR max number of clients reached\r\n" {
		t.Errorf("the third client got %q", got)
	}
}

// TestAuthInPipeline checks that input beyond the limits before AUTH is accepted behind
// AUTH in the same packet.
func TestAuthInPipeline(t *testing.T) {
	_, addr := enginetest.Start(t, map[string]string{"requirepass": "secret"})
	c := enginetest.Dial(t, addr)
	c.Send("PING\r\nAUTH wrong\r\nAUTH secret\r\n*2\r\n$4\r\nECHO\r\n$20000\r\n" + strings.Repeat("x", 20000) + "\r\n")
	want := []string{"NOAUTH Authentication required.", "WRONGPASS invalid username-password pair or user is disabled.", "OK", strings.Repeat("x", 20000)}
	for _, w := range want {
		if got := fmt.Sprint(c.Reply()); got != w {
			t.Errorf("got %.80q, want %.80q", got, w)
		}
	}
	c = enginetest.Dial(t, addr)
	c.Send("*2\r\n$4\r\nECHO\r\n$20000\r\n")
	if got := c.All(); got != "-ERR Protocol error: unauthenticated bulk length\r\n" {
		t.Errorf("before AUTH: %q", got)
	}
}

// TestUnauthenticatedInput checks the limit of the input of a client that must log in.
func TestUnauthenticatedInput(t *testing.T) {
	for _, transport := range []string{"epoll", "net"} {
		_, addr := enginetest.Start(t, map[string]string{"requirepass": "secret", "transport": transport})
		command := "*2\r\n$4\r\nECHO\r\n$16000\r\n" + strings.Repeat("x", 16000) + "\r\n"
		c := enginetest.Dial(t, addr)
		c.Send("AUTH secret\r\n")
		c.Expect("OK")
		c.Send(strings.Repeat(command, 100))
		for range 100 {
			if got, _ := c.Reply().(string); len(got) != 16000 {
				t.Fatalf("%s: logged in: %.40q", transport, got)
			}
		}
	}
}

// TestQueueLimit checks that a transaction whose queue exceeds client-query-buffer-limit ends the
// client.
func TestQueueLimit(t *testing.T) {
	var log enginetest.LogBuffer
	srv, addr := enginetest.StartWith(t, engine.Options{Config: map[string]string{"client-query-buffer-limit": "1mb"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := enginetest.Dial(t, addr)
	c.Call("MULTI")
	command := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n" + strings.Repeat("x", 300000) + "\r\n"
	for range 3 {
		c.Send(command)
		c.Expect("QUEUED")
	}
	c.Send(command)
	if got := c.All(); strings.Contains(got, "-") {
		t.Errorf("a reply: %q", got)
	}
	enginetest.Must(t, srv, "EXISTS k -> 0")
	if got := enginetest.Info(t, srv, "client_query_buffer_limit_disconnections"); got != "1" {
		t.Errorf("%s clients were closed", got)
	}
	if want := "closing client: the transaction queue exceeds client-query-buffer-limit"; !strings.Contains(log.String(), want) {
		t.Errorf("want %s in %s", want, log.String())
	}
}

func TestDo(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	if got, err := srv.Do(ctx, "ECHO", 3.5); got != "3.5" || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	var e protocol.ReplyError
	if _, err := srv.Do(ctx, "MOVE", "a", 99); !errors.As(err, &e) || e.Error() != "ERR DB index is out of range" {
		t.Errorf("got %v", err)
	}
	if _, err := srv.Do(ctx, "NO", "SUCH", []byte("command")); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}

// TestShutdown checks that Shutdown sends pending replies, and disconnects idle and
// subscribed clients.
func TestShutdown(t *testing.T) {
	srv, err := enginetest.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	idle, busy := enginetest.Dial(t, l.Addr().String()), enginetest.Dial(t, l.Addr().String())
	idle.Send("SUBSCRIBE a\r\n")
	idle.Reply()
	big := strings.Repeat("x", 1<<20)
	busy.Send("*2\r\n$4\r\nECHO\r\n$1048576\r\n" + big + "\r\n")
	if _, err := busy.R.Peek(1); err != nil { // the reply is on its way
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(ctx) }()
	if got := busy.Reply(); got != big {
		t.Errorf("the reply was cut to %d bytes", len(fmt.Sprint(got)))
	}
	if rest := busy.All() + idle.All(); rest != "" {
		t.Errorf("unexpected %q", rest)
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; !errors.Is(err, engine.ErrServerClosed) {
		t.Errorf("Serve: %v", err)
	}
	if _, err := srv.Dialer()(ctx, "", ""); !errors.Is(err, engine.ErrServerClosed) {
		t.Errorf("Dialer after Shutdown: %v", err)
	}
}

// Idle clients are disconnected on time, others not. The bubble's clock makes
// the hour pass at once.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := enginetest.New(engine.Options{Config: map[string]string{"timeout": "3600"}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		dial := func() net.Conn {
			nc, err := srv.Dialer()(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			return nc
		}
		idle, listening := dial(), dial()
		started := time.Now()
		go func() {
			io.WriteString(listening, "SUBSCRIBE a\r\n")
			io.Copy(io.Discard, listening)
		}()
		if _, err := idle.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the idle client got %v", err)
		}
		if d := time.Since(started); d < time.Hour || d > time.Hour+2*time.Second {
			t.Errorf("disconnected after %v", d)
		}
		if got, err := srv.Do(t.Context(), "PUBSUB", "NUMSUB", "a"); err != nil || fmt.Sprint(got) != "[a 1]" {
			t.Errorf("the subscriber: %v, %v", got, err)
		}
	})
}

// TestIdleReader checks that a client which does not read its reply counts as idle once it has
// read nothing for the time of timeout, twice.
func TestIdleReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := enginetest.New(engine.Options{Config: map[string]string{"timeout": "3600"}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		enginetest.Must(t, srv, "SETRANGE big 100000 x")
		nc, err := srv.Dialer()(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		go io.WriteString(nc, "GET big\r\n")
		synctest.Wait()
		for hours, want := range []int{1, 1, 0} {
			srv.InTurn(func() {
				if n := len(srv.Clients.Sessions); n != want {
					t.Errorf("%d clients after %d hours, want %d", n, hours, want)
				}
			})
			wait.Elapse(3602 * time.Second)
		}
	})
}

func TestEventClassLetters(t *testing.T) {
	_, addr := enginetest.Start(t, nil)
	c := enginetest.Dial(t, addr)
	for in, want := range map[string]string{"": "", "KEA": "AKE", "g$lshzxetdKE": "AKE", "KEAmnoc": "AKEm", "KEnoc": "nocKE", "El": "lE", "Kx$": "$xK"} {
		if got := c.Call("CONFIG SET notify-keyspace-events \"" + in + "\""); fmt.Sprint(got) != "OK" {
			t.Errorf("%q: %v", in, got)
		}
		if got := c.Call("CONFIG GET notify-keyspace-events"); fmt.Sprint(got) != "[notify-keyspace-events "+want+"]" {
			t.Errorf("%q reads as %v; want %q", in, got, want)
		}
	}
	if got, ok := c.Call("CONFIG SET notify-keyspace-events KQ").(error); !ok {
		t.Errorf("an unknown class was accepted: %v", got)
	}
}

// TestLongValues checks that long values, which stay in their input buffer, are not
// changed by later input.
func TestLongValues(t *testing.T) {
	for _, transport := range []string{"epoll", "net"} {
		srv, addr := enginetest.Start(t, map[string]string{"transport": transport})
		c, other := enginetest.Dial(t, addr), enginetest.Dial(t, addr)
		value := func(i int) string {
			return strings.Repeat(string(rune('a'+i%26)), data.AdoptFrom+i%3*data.AdoptFrom)
		}
		set := func(i int) string {
			return fmt.Sprintf("*3\r\n$3\r\nSET\r\n$2\r\nk%d\r\n$%d\r\n%s\r\n", i, len(value(i)), value(i))
		}
		var all strings.Builder
		for i := range 8 {
			all.WriteString(set(i))
		}
		reply := func(c *enginetest.Client, want string) {
			t.Helper()
			c.SetReadDeadline(time.Now().Add(time.Minute))
			got := make([]byte, len(want))
			if _, err := io.ReadFull(c.R, got); err != nil || string(got) != want {
				t.Fatalf("%s: %.60q, %v", transport, got, err)
			}
		}
		check := func() {
			t.Helper()
			for i := range 8 {
				got, err := srv.Do(t.Context(), "GET", fmt.Sprint("k", i))
				if err != nil || fmt.Sprintf("%s", got) != value(i) {
					t.Fatalf("%s: k%d is not what it was set to: %v", transport, i, err)
				}
			}
		}
		// As they arrive: in pieces, or several at once.
		c.Send(all.String())
		reply(c, strings.Repeat("+OK\r\n", 8))
		check()
		c.Send(strings.Repeat("x", 1<<10) + "\r\n")
		c.R.ReadString('\n')
		check()
		// While the client waits, so that they are all in one buffer before the first of them
		// is looked at, and again in place of those that are there.
		c.Send("BZPOPMIN z 0\r\n" + all.String())
		enginetest.Until(t, srv, "it waits", func() bool { return srv.Stats.BlockedClients == 1 })
		other.Send("ZADD z 1 m\r\n")
		reply(other, ":1\r\n")
		reply(c, "*3\r\n$1\r\nz\r\n$1\r\nm\r\n$1\r\n1\r\n"+strings.Repeat("+OK\r\n", 8))
		check()
		// In a transaction, which copies its commands.
		c.Send("MULTI\r\n" + all.String() + "EXEC\r\n")
		reply(c, "+OK\r\n"+strings.Repeat("+QUEUED\r\n", 8)+"*8\r\n"+strings.Repeat("+OK\r\n", 8))
		check()
		// A change of one value does not affect its copies.
		c.Send("COPY k0 c0\r\nAPPEND k0 xyz\r\nSETRANGE k1 5 12345\r\n")
		reply(c, fmt.Sprintf(":1\r\n:%d\r\n:%d\r\n", len(value(0))+3, len(value(1))))
		if got, _ := srv.Do(t.Context(), "GET", "c0"); fmt.Sprintf("%s", got) != value(0) {
			t.Errorf("%s: the copy has changed", transport)
		}
		c.Send("SET k0 short\r\n" + set(1))
		reply(c, "+OK\r\n+OK\r\n")
		c.Send(set(0))
		reply(c, "+OK\r\n")
		check()
		if err := srv.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestInputBufferRaces runs two cases under the race detector: a command that CLIENT PAUSE
// has delayed runs while its connection reads, and must not access the input buffer; and
// the memory of a client is computed while other clients reuse its former buffers.
func TestInputBufferRaces(t *testing.T) {
	srv, err := enginetest.New(engine.Options{Config: map[string]string{"transport": "net", "maxmemory": "1gb"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l)
	const size = 2 * data.AdoptFrom
	var clients sync.WaitGroup
	for n := range 4 {
		clients.Go(func() {
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			r := bufio.NewReader(nc)
			for i := range 10 {
				fmt.Fprintf(nc, "CLIENT PAUSE 20 WRITE\r\n*3\r\n$3\r\nSET\r\n$2\r\nk%d\r\n$%d\r\n%s\r\nPING\r\n", n, size, strings.Repeat(strconv.Itoa(i), size))
				for _, want := range []string{"+OK\r\n", "+OK\r\n", "+PONG\r\n"} {
					if line, err := r.ReadString('\n'); err != nil || line != want {
						t.Errorf("reply %q, %v", line, err)
						return
					}
				}
			}
		})
	}
	clients.Wait()
}

// TestKilledWhileConnecting kills clients before the transport has served them.
func TestKilledWhileConnecting(t *testing.T) {
	for _, transport := range []string{"epoll", "net"} {
		srv, addr := enginetest.Start(t, map[string]string{"transport": transport})
		var killing sync.WaitGroup
		stop := make(chan struct{})
		killing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := srv.Do(context.Background(), "CLIENT", "KILL", "TYPE", "normal"); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for range 300 {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				break
			}
			io.WriteString(nc, "PING\r\n")
			nc.Close()
		}
		close(stop)
		killing.Wait()
		if reply, err := srv.Do(context.Background(), "PING"); err != nil || fmt.Sprint(reply) != "PONG" {
			t.Errorf("%s: %v %v", transport, reply, err)
		}
	}
}
