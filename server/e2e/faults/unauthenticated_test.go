//go:build linux

package faults

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestUnauthenticated checks that a client that has not authenticated can use neither
// much memory nor much time of the server.
func TestUnauthenticated(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 1<<20)
	// until sends until the server closes the connection, or so many bytes are sent.
	until := func(p *process, begin string, repeat []byte, limit int) int {
		c := p.dial()
		defer c.close()
		c.write([]byte(begin))
		sent := len(begin)
		for sent < limit {
			c.SetWriteDeadline(time.Now().Add(patience))
			n, err := c.Write(repeat)
			if sent += n; err != nil {
				break
			}
		}
		return sent
	}
	// keep sends, until the server closes the connection, and stays.
	keep := func(p *process, begin string, rest []byte) *client {
		c := p.dial()
		c.SetWriteDeadline(time.Now().Add(patience))
		c.Write(append([]byte(begin), rest...)) // fails when the server has closed it
		return c
	}
	attacks := []struct {
		name string
		cpu  time.Duration // at most, several times what is usual
		run  func(t *testing.T, p *process) (while []*client)
	}{
		{"a gigabyte without a newline", 250 * time.Millisecond, func(t *testing.T, p *process) []*client {
			t.Logf("%s: closed after %s", p.name, mb(int64(until(p, "", long, 1<<30))))
			return nil
		}},
		{"counts and lengths", 250 * time.Millisecond, func(t *testing.T, p *process) []*client {
			numbers := []string{"-9223372036854775808", "-1", "0", "1", "10", "11", "1024", "16384", "16385", "1048576", "1048577", "536870912",
				"536870913", "1000000000", "2147483647", "2147483648", "4294967296", "9223372036854775807", "18446744073709551615", "18446744073709551620"}
			for _, n := range numbers {
				until(p, "*"+n+"\r\n", long, 2<<20)
				for _, count := range []string{"1", "10"} {
					until(p, "*"+count+"\r\n$"+n+"\r\n", long, 2<<20)
				}
			}
			return nil
		}},
		{"half commands", 500 * time.Millisecond, func(t *testing.T, p *process) (held []*client) {
			half := []byte("*10\r\n" + strings.Repeat(fmt.Sprintf("$16384\r\n%s\r\n", long[:16384]), 9) + "$16384\r\n" + string(long[:16383]))
			for range 40 {
				c := p.dial()
				c.write(half)
				held = append(held, c)
			}
			for range 200 {
				c := p.dial()
				c.write([]byte("*10\r\n$16384\r\nx"))
				held = append(held, c)
			}
			return held
		}},
		{"half commands that are too large", 500 * time.Millisecond, func(t *testing.T, p *process) (held []*client) {
			many := bytes.Repeat([]byte("$1\r\nx\r\n"), len(long)/7)
			for range 40 {
				held = append(held, keep(p, "*2\r\n$4\r\nAUTH\r\n$536870912\r\n", long), keep(p, "*1000000\r\n", many))
			}
			return held
		}},
		{"one byte at a time", time.Second, func(t *testing.T, p *process) []*client {
			c := p.dial()
			c.write([]byte("*10\r\n$16384\r\n"))
			for range 16384 {
				c.write([]byte("x"))
			}
			c.write([]byte("\r\n$16384\r\n"))
			for range 16384 {
				c.write([]byte("x"))
			}
			return []*client{c}
		}},
		{"replies that are not read", 2 * time.Second, func(t *testing.T, p *process) []*client {
			t.Logf("%s: %s sent", p.name, mb(int64(until(p, "", bytes.Repeat([]byte("PING\r\n"), 5000), 64<<20))))
			return nil
		}},
	}
	run(t, all, func(t *testing.T, k kind) {
		for _, a := range attacks {
			t.Run(a.name, func(t *testing.T) {
				p := k.start(t, "--requirepass", "secret")
				master := p.dial()
				defer master.close()
				master.want("OK", "AUTH", "secret")
				before := p.state(master)
				p.watch()
				held := a.run(t, p)
				wait.Elapse(100 * time.Millisecond) // for data in transit
				cpu, peak := p.cpu(), p.peak()
				p.alive("secret")
				for _, c := range held {
					c.close()
				}
				p.returns(before, 2*time.Second+lateness(t), master)
				atMost(p, "peak of memory", peak, 32<<20)
				atMost(p, "CPU", cpu, a.cpu)
			})
		}
	})
}
