package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/snapshot"
)

// What helps after an error of a start. The server's errors are those of an embedded one,
// too, so the parameters of the command line are named here.

// advise adds to an error of a start the parameters that help, if it knows some.
func advise(err error, values map[string]string) error {
	opening, isSocket := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, snapshot.ErrInUse):
		return fmt.Errorf("%w; a second server beside that one needs a file of its own, as with --dbfilename other.db, and its own --port and --http-port", err)
	case isSocket && errors.Is(err, addressInUse):
		by := ""
		if addr, ok := opening.Addr.(*net.TCPAddr); ok {
			by = portOwner(addr.Port)
		}
		return fmt.Errorf("%w%s; %s", err, by, socketAdvice(opening.Addr, values))
	case strings.Contains(values["user"], `"`) && strings.Contains(err.Error(), "ACL usernames"), strings.Contains(err.Error(), "Error in user declaration"):
		return fmt.Errorf("%w; the name and each rule are words of their own: --user page on '>password' '~key*' '&channel*' +@read", err)
	}
	return err
}

// socketAdvice names the parameter with which an address that is in use can be changed.
func socketAdvice(addr net.Addr, values map[string]string) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return "--unixsocket chooses another path"
	}
	used := strconv.Itoa(tcp.Port)
	switch {
	case used == values["tls-port"]:
		return "--tls-port chooses another port"
	case used == values["http-port"]:
		return "--http-port chooses another port for the console, --http-port 0 starts without it (make run: HTTP=8380, HTTP=0)"
	}
	return "--port chooses another port"
}
