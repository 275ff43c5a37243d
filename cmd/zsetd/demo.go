package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"github.com/zsetd/zsetd/cmd/zsetd/internal/demo"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
)

// demoFlags are the flags of the tool demo.
type demoFlags struct {
	port, httpPort int
	noBrowser      bool
}

func demoTool() tool {
	return tool{
		name: "demo", args: "[--port N] [--http-port N] [--no-browser]", session: true, run: runDemo,
		summary: "start a server with data that move, and show its console",
		details: "Starts a server with its console on this machine, fills it with data that change as those\n" +
			"of an application do (live events, counters, folded events, a waiting list, and more), and\n" +
			"opens the console in a browser, on a desktop. The data are in memory: no file is read or\n" +
			"written. Ctrl-C ends it. Status: 0 it was interrupted, 1 it cannot start or has failed, 2 the\n" +
			"command line is wrong.",
		flags: func(f *flag.FlagSet, t *toolFlags) {
			f.IntVar(&t.port, "port", 0, "`port` of the server; by default 6379, or a free one if that is in use")
			f.IntVar(&t.httpPort, "http-port", 0, "`port` of the console; by default 8379, or a free one")
			f.BoolVar(&t.noBrowser, "no-browser", false, "open no browser")
		},
	}
}

func runDemo(r *toolRun) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := r.demo(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(r.stderr, "zsetd demo:", err)
		return statusBad
	}
	return statusOK
}

// demo serves the demonstration until ctx ends, or it fails.
func (r *toolRun) demo(ctx context.Context) error {
	commands, err := demoListen(r.port, 6379)
	if err != nil {
		return err
	}
	defer commands.Close()
	pages, err := demoListen(r.httpPort, 8379)
	if err != nil {
		return err
	}
	defer pages.Close()
	srv, err := server.New(server.Options{Listeners: []net.Listener{commands}})
	if err != nil {
		return err
	}
	defer srv.Close()
	c, err := console.New(srv, console.Options{})
	if err != nil {
		return err
	}
	defer c.Close()

	ended := make(chan error, 3)
	go func() { ended <- srv.ListenAndServe() }()
	go func() {
		if err := c.Serve(pages, nil); !errors.Is(err, http.ErrServerClosed) {
			ended <- err
		}
	}()
	go func() { ended <- demo.Run(ctx, srv, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))) }()
	url := consoleURL("http", pages.Addr())
	_, port, _ := net.SplitHostPort(commands.Addr().String()) // the address of a listener is valid
	fmt.Fprintf(r.stdout, demoText, url, port)
	if !r.noBrowser {
		openBrowser(url)
	}
	return <-ended
}

// demoText says where to look; its values are the address of the console and the port of the server.
const demoText = `A server with data that move, in memory. Ctrl-C ends it.

  console       %[1]s
  prompt        zsetd cli -p %[2]s, or redis-cli -p %[2]s

  live events   %[1]skeys?key=live:home:news
  counters      %[1]skeys?key=hits:/front
  folder        %[1]skeys?key=due
  waiting list  %[1]skeys?key=club
  leaderboard   %[1]skeys?key=board

At the prompt, a query whose reply comes again when it differs:
  SUBSCRIBE "__query@0,1s__:ZRANGE board 0 2 REV WITHSCORES"
`

// demoListen opens a port of this machine: the given one, or without one the usual, if that is free.
func demoListen(port, usual int) (net.Listener, error) {
	if port == 0 {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(usual))); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// openBrowser opens an address in the browser of the user's desktop. It does nothing where there is
// no desktop: the address is on the screen.
func openBrowser(url string) {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return
		}
	}
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = detached() // the browser outlives an interrupt
	if cmd.Start() == nil {
		go cmd.Wait()
	}
}
