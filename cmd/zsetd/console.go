package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
)

// consolePort returns the parameter http-port, which is valid.
func consolePort(values map[string]string) int {
	port, err := strconv.Atoi(values["http-port"])
	if err != nil { // it is not set
		return 0
	}
	return port
}

// consoleLog returns what keeps the log for the console, nil without a console.
func consoleLog(values map[string]string) *console.Log {
	if consolePort(values) == 0 {
		return nil
	}
	return new(console.Log)
}

// startConsole serves the console if http-port is set. The function that it returns stops it.
// Its sockets are open, or the error says why not, when startConsole returns.
func startConsole(srv *server.Server, values map[string]string, log *slog.Logger, kept *console.Log) (stop func(), err error) {
	port := consolePort(values)
	if port == 0 {
		return func() {}, nil
	}
	bind, given := values["http-bind"]
	if !given {
		bind = "127.0.0.1 -::1"
	}
	var secure *tls.Config
	scheme := "http"
	if strings.EqualFold(values["http-tls"], "yes") {
		scheme = "https"
		if secure, err = srv.TLSConfig(); err != nil {
			return nil, err
		}
	}
	c, err := console.New(srv, console.Options{
		Hosts: strings.Fields(values["http-hosts"]), Origins: strings.Fields(values["http-origins"]), Logger: log, Log: kept,
	})
	if err != nil {
		return nil, fmt.Errorf("zsetd: %w", err)
	}
	ls, err := server.Listen(bind, port)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("zsetd: http-port: %w", err)
	}
	for _, l := range ls {
		log.Info("console", "url", consoleURL(scheme, l.Addr()))
		go func() {
			if err := c.Serve(l, secure); !errors.Is(err, http.ErrServerClosed) {
				log.Error("the console has stopped", "error", err)
			}
		}()
	}
	return func() { c.Close() }, nil
}

// consoleURL returns the URL at which a listener serves, on this machine.
func consoleURL(scheme string, addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return scheme + "://" + net.JoinHostPort("localhost", port) + "/"
	}
	return scheme + "://" + addr.String() + "/"
}
