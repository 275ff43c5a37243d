package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// pingTime is the time that a server has to answer.
const pingTime = 3 * time.Second

// runPing asks the server that runs with these arguments whether it serves: a
// health check where there is no redis-cli, as in the image. It needs no password:
// a server that asks for one serves.
func runPing(args []string, stdout, stderr io.Writer) int {
	values, err := readArgs(args)
	if err != nil {
		argumentError(stderr, "ping", args, err)
		return statusUsage
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingTime)
	defer cancel()
	reply, err := ping(ctx, values)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "zsetd: no answer:", err)
		return statusBad
	case strings.HasPrefix(reply, "+PONG"), strings.HasPrefix(reply, "-NOAUTH"):
		fmt.Fprintln(stdout, "zsetd: ready")
		return statusOK
	}
	fmt.Fprintln(stderr, "zsetd: not ready:", strings.TrimSpace(reply))
	return statusBad
}

// ping returns the first line of the server's reply to PING.
func ping(ctx context.Context, values map[string]string) (string, error) {
	nc, err := dialServer(ctx, values)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	if at, ok := ctx.Deadline(); ok {
		nc.SetDeadline(at)
	}
	if _, err := io.WriteString(nc, "PING\r\n"); err != nil {
		return "", err
	}
	return bufio.NewReader(nc).ReadString('\n')
}

// dialServer connects to the server that runs with these parameters: by its unix
// socket, its port or its port for TLS, whichever it has.
func dialServer(ctx context.Context, values map[string]string) (net.Conn, error) {
	var d net.Dialer
	if path := values["unixsocket"]; path != "" {
		return d.DialContext(ctx, "unix", path)
	}
	port, secure := values["port"], false
	if port == "" {
		port = "6379"
	}
	if port == "0" {
		if port, secure = values["tls-port"], true; port == "" || port == "0" {
			return nil, errors.New("no unixsocket, port or tls-port is configured")
		}
	}
	addr := net.JoinHostPort(reachable(values["bind"]), port)
	if !secure {
		return d.DialContext(ctx, "tcp", addr)
	}
	// The issuer and the name of the server's certificate are not verified: the name need not be
	// that of this machine, and PING has no secret.
	config := &tls.Config{InsecureSkipVerify: true}
	if file := values["tls-cert-file"]; file != "" { // then it must be that of the file
		own, err := tls.LoadX509KeyPair(file, values["tls-key-file"])
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
		config.VerifyConnection = func(s tls.ConnectionState) error {
			if !bytes.Equal(s.PeerCertificates[0].Raw, own.Certificate[0]) {
				return errors.New("the server's certificate differs from tls-cert-file")
			}
			return nil
		}
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
}

// reachable returns one of the addresses that bind names.
func reachable(bind string) string {
	for _, addr := range strings.Fields(bind) {
		switch addr = strings.TrimPrefix(addr, "-"); addr {
		case "*", "0.0.0.0":
			return "127.0.0.1"
		case "::*", "::":
			return "::1"
		default:
			return addr
		}
	}
	return "127.0.0.1"
}
