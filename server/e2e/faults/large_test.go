//go:build linux

package faults

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestPipe checks that a client that sends commands at full speed and reads their
// replies, as redis-cli --pipe does, causes little memory use beyond the data.
func TestPipe(t *testing.T) {
	const total, keys, size = 300 << 20, 1000, 1000
	value := bytes.Repeat([]byte("v"), size)
	run(t, all, func(t *testing.T, k kind) {
		p := k.start(t)
		nc, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		p.watch()
		begin := time.Now()
		var one []byte
		set := func(i int) []byte {
			one = fmt.Appendf(one[:0], "*3\r\n$3\r\nSET\r\n$7\r\nkey:%03d\r\n$%d\r\n%s\r\n", i%keys, size, value)
			return one
		}
		n := total / len(set(0))
		read := make(chan error, 1)
		go func() {
			nc.SetReadDeadline(time.Now().Add(2 * time.Minute))
			b, err := io.ReadAll(io.LimitReader(nc, int64(n*len("+OK\r\n"))))
			if err == nil && bytes.Count(b, []byte("+OK\r\n")) != n {
				err = fmt.Errorf("not %d times OK: %.100q", n, b)
			}
			read <- err
		}()
		w := bufio.NewWriterSize(nc, 64<<10)
		for i := range n {
			w.Write(set(i))
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s in %v, CPU %v", p.name, mb(total), time.Since(begin).Round(time.Millisecond), p.cpu())
		atMost(p, "peak of memory", p.peak(), keys*size+32<<20)
		p.alive()
	})
}

// A value of 256 MB takes 2.2 times as much at most while it arrives, and as much as
// it is when it is there. All its memory is released: neither the server nor the
// sessions of the clients that have sent or read it keep any of it.
func TestLargeValue(t *testing.T) {
	const size = 256 << 20
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	run(t, all, func(t *testing.T, k kind) {
		p := k.start(t)
		set := func(c *client, key string, pause time.Duration) { // in it, with three quarters sent
			t.Helper()
			c.write(fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n", len(key), key, size))
			for i := range size / len(chunk) {
				if i == size/len(chunk)*3/4 {
					wait.Pace(pause)
				}
				c.write(chunk)
			}
			c.write([]byte("\r\n"))
			if got := c.receive(); got != "OK" {
				t.Fatal(got)
			}
		}
		idle := p.rss()
		writer, reader, deleter := p.dial(), p.dial(), p.dial() // none of which is closed
		defer writer.close()
		defer reader.close()
		defer deleter.close()
		p.watch()
		set(writer, "k", 0)
		atMost(p, "SET: peak of memory", p.peak(), size*22/10)
		p.expectMemory("with the value", size+64<<20, patience)
		p.watch()
		set(writer, "k", 2*time.Second) // for which it looks as if there were nothing to be freed
		atMost(p, "SET in place of it: peak of memory", p.peak(), size*32/10)
		p.expectMemory("with the value", size+64<<20, patience)
		p.watch()
		reader.send("GET", "k")
		reader.SetReadDeadline(time.Now().Add(patience))
		if line, err := reader.r.ReadString('\n'); err != nil || line != "$"+strconv.Itoa(size)+"\r\n" {
			t.Fatalf("%.100q, %v", line, err)
		}
		if n, err := io.Copy(io.Discard, io.LimitReader(reader.r, size+2)); n != size+2 {
			t.Fatalf("%d bytes, %v", n, err)
		}
		atMost(p, "GET: peak of memory", p.peak(), size*22/10)
		p.expectMemory("when it is read", size+64<<20, patience)
		deleter.want(int64(1), "DEL", "k")
		p.expectMemory("when it is deleted", 64<<20, patience)
		t.Logf("%s: %s before all that", p.name, mb(idle))
		// An incomplete command of a client that disconnects is released at once, too.
		p.watch()
		writer.write(fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n", size))
		for range size / len(chunk) / 2 {
			writer.write(chunk)
		}
		writer.close()
		atMost(p, "half a SET: peak of memory", p.peak(), size*15/10)
		p.expectMemory("when its client is gone", 64<<20, patience)
		p.alive()
	})
}
