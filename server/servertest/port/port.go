package port

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range of the ports. It lies below those that systems choose for listeners on port 0
// and for outgoing connections: from 32768 (Linux) and from 49152 (others).
const (
	first = 11000
	count = 10000
)

// attempts is the number of ports that Free tries.
const attempts = 100

// Free returns a TCP port, as a decimal number, on which nothing listens at 127.0.0.1. The
// system gives the port to no other socket afterwards, unless a program names it: a server
// may stop and start again there. Two callers at the same time draw different ports, but
// for one time in ten thousand. The error says why no port can be opened. Any goroutine
// may call Free.
func Free() (string, error) {
	var failed error
	for range attempts {
		port := strconv.Itoa(first + rand.IntN(count))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return port, l.Close()
		}
		failed = err
	}
	return "", errors.Join(errors.New("no free port"), failed)
}
