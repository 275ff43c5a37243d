//go:build linux

package faults

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// valid are the commands from which the malformed input is made. Neither they nor
// their variants with a few wrong bytes make the data grow without limit.
var valid = [][]string{
	{"PING"}, {"GET", "k1"}, {"SET", "k1", "some value"}, {"SET", "k2", strings.Repeat("v", 3000)}, {"DEL", "k1", "k2", "k3"},
	{"ZADD", "z", "1", "a", "2.5", "b"}, {"ZRANGE", "z", "0", "-1", "WITHSCORES"}, {"HSET", "h", "f", "v"}, {"HGETALL", "h"},
	{"MSET", "a", "1", "b", "2", "c", "3"}, {"INCR", "n"}, {"EXPIRE", "k1", "100"}, {"HELLO", "3"}, {"MULTI"}, {"EXEC"}, {"WATCH", "k1"},
	{"EVAL", "return redis.call('get', KEYS[1])", "1", "n"}, {"SUBSCRIBE", "ch"}, {"BZPOPMIN", "none", "0"}, {"CLIENT", "SETNAME", "x"},
	{"SCAN", "0", "MATCH", "*a*[b-", "COUNT", "10"}, {"AUTH", "a", "b"}, {"SELECT", "1"}, {"XADD", "x", "MAXLEN", "10", "*", "f", "v"},
}

// nasty are pieces that have killed servers, or that they have taken for something
// else.
var nasty = []string{
	"*1\r\n$9223372036854775807\r\n", "*9223372036854775807\r\n", "*2147483648\r\n", "*1048577\r\n", "*1000000\r\n", "*-9223372036854775808\r\n",
	"$18446744073709551620\r\n", "$-9223372036854775808\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "*00\r\n", "*+1\r\n", "* 1\r\n", "*1\n$4\nPING\n",
	"*1\r\n$\r\n", "*\r\n", "$536870912\r\n", "$536870913\r\n", "$4294967296\r\n", "$2147483647\r\n", "*1\r\n$100000000\r\n", "*1\r\n:4\r\n",
	"\r\n", "\n", "\r", "\x00", "\xff\xfe", "\"", "'", "\"\\x", "PING \"\"\r\n", "set k \"\\xff\\x00\"\r\n", "GET 'k\\'\r\n", "POST / HTTP/1.1\r\n", "Host: x\r\n",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "%2\r\n", "~1\r\n", ">1\r\n", "|1\r\n+k\r\n", "(3492890328409238509324850943850943825024385\r\n", "!5\r\nSHORT\r\n",
}

// malformed writes some input for one connection: commands, most of them damaged.
func malformed(rnd *rand.Rand) []byte {
	var b []byte
	for range 1 + rnd.IntN(60) {
		f := command(valid[rnd.IntN(len(valid))]...)
		if rnd.IntN(4) == 0 {
			f = []byte(strings.Join(valid[rnd.IntN(len(valid))], " ") + "\r\n") // inline
		}
		if rnd.IntN(3) > 0 {
			for range 1 + rnd.IntN(3) {
				f = damage(rnd, f)
			}
		}
		b = append(b, f...)
	}
	return b
}

func damage(rnd *rand.Rand, f []byte) []byte {
	if len(f) == 0 {
		return f
	}
	at := rnd.IntN(len(f))
	switch rnd.IntN(8) {
	case 0:
		f[at] ^= 1 << rnd.IntN(8)
	case 1:
		f[at] = byte(rnd.Uint32())
	case 2:
		return f[:at]
	case 3:
		end := at + rnd.IntN(len(f)-at)
		return append(f[:at:at], f[end:]...)
	case 4:
		return append(f[:at:at], append([]byte(nasty[rnd.IntN(len(nasty))]), f[at:]...)...)
	case 5:
		return append([]byte(nasty[rnd.IntN(len(nasty))]), f...)
	case 6: // another number in place of one
		for i := range f {
			if j := (at + i) % len(f); f[j] >= '0' && f[j] <= '9' {
				return append(f[:j:j], append(fmt.Append(nil, rnd.Int64()>>rnd.IntN(63)), f[j+1:]...)...)
			}
		}
	default:
		junk := make([]byte, rnd.IntN(200))
		for i := range junk {
			junk[i] = byte(rnd.Uint32())
		}
		return append(f[:at:at], append(junk, f[at:]...)...)
	}
	return f
}

// TestMalformed checks that malformed input, in pieces of any size, affects only the
// client that sends it.
func TestMalformed(t *testing.T) {
	const senders, seed = 8, 7
	run(t, all, func(t *testing.T, k kind) {
		total := 50 << 20
		if !k.ours() {
			total = 10 << 20 // to compare with that is enough
		}
		p := k.start(t)
		before := p.state()
		p.watch()
		var wg sync.WaitGroup
		var connections, held [senders]int
		var stay [senders][]net.Conn // with what they have sent
		for s := range senders {
			rnd := rand.New(rand.NewPCG(seed, uint64(s)))
			wg.Go(func() {
				for sent := 0; sent < total/senders; {
					nc, err := net.DialTimeout("tcp", p.addr, patience)
					if err != nil {
						t.Error(err)
						return
					}
					connections[s]++
					n, err := sendPieces(rnd, nc, malformed(rnd))
					sent += n
					switch {
					case errors.Is(err, errTooSlow):
						t.Error(err)
						return
					case len(stay[s]) < 20 && err == nil:
						stay[s] = append(stay[s], nc)
						held[s]++
					default:
						if rnd.IntN(2) == 0 {
							nc.(*net.TCPConn).SetLinger(0)
						}
						nc.Close()
					}
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			p.alive()
			return
		}
		p.alive()
		for _, list := range stay {
			for _, nc := range list {
				nc.Close()
			}
		}
		p.alive()
		p.returns(before, 2*time.Second+lateness(t))
		n, open := 0, 0
		for s := range senders {
			n, open = n+connections[s], open+held[s]
		}
		t.Logf("%s: %s, seed %d, %d connections, %d of them left open, CPU %v", p.name, mb(int64(total)), seed, n, open, p.cpu())
		atMost(p, "peak of memory", p.peak(), 64<<20)
	})
}

var errTooSlow = errors.New("the server takes nothing for very long")

// sendPieces writes b in pieces, and reads what is answered, until the server closes
// the connection.
func sendPieces(rnd *rand.Rand, nc net.Conn, b []byte) (sent int, err error) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(io.Discard, nc)
	}()
	nc.SetDeadline(time.Now().Add(patience))
	largest := 1 << (4 + rnd.IntN(10)) // many small pieces for some, few large ones for others
	for len(b) > 0 {
		n, err := nc.Write(b[:min(len(b), 1+rnd.IntN(largest))])
		sent += n
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				return sent, errTooSlow
			}
			return sent, err
		}
		b = b[n:]
	}
	select {
	case <-read:
		return sent, io.EOF
	default:
		return sent, nil
	}
}
