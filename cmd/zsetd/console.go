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

// startConsole serves the console if http-port is set. The function that it returns stops it.
// Its sockets are open, or the error says why not, when startConsole returns.
func startConsole(srv *server.Server, values map[string]string, log *slog.Logger) (stop func(), err error) {
	port, err := strconv.Atoi(values["http-port"])
	if err != nil || port == 0 { // the parameter is valid: there is none
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
	c, err := console.New(srv, console.Options{Hosts: strings.Fields(values["http-hosts"]), Logger: log})
	if err != nil {
		return nil, fmt.Errorf("zsetd: http-hosts: %w", err)
	}
	ls, err := console.Listen(bind, port)
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
