package browser

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest"
)

const linkSecret = "a-secret-of-16-bytes-or-more"

// liveServer is a server with a console at one address, which can start again.
type liveServer struct {
	t             *testing.T
	file, address string
	srv           *server.Server
	stop          func()
}

// start starts the server with the data of its file.
func (s *liveServer) start(origins ...string) {
	s.t.Helper()
	srv, err := server.New(server.Options{File: s.file, Config: map[string]string{"requirepass": "pw", "http-link-secret": linkSecret}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := srv.Ready(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	c, err := console.New(srv, console.Options{Origins: origins})
	if err != nil {
		s.t.Fatal(err)
	}
	if s.address == "" {
		s.address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address, s.srv = l.Addr().String(), srv
	go c.Serve(l, nil)
	s.stop = func() {
		c.Close()
		srv.Close()
	}
}

func (s *liveServer) do(args ...any) {
	s.t.Helper()
	if _, err := s.srv.Do(s.t.Context(), args...); err != nil {
		s.t.Fatal(err)
	}
}

// link returns the address of a link that expires after a time.
func (s *liveServer) link(after time.Duration, queries ...string) string {
	s.t.Helper()
	path, err := console.Link(linkSecret, time.Now().Add(after), console.LiveQueries{Queries: queries})
	if err != nil {
		s.t.Fatal(err)
	}
	return "http://" + s.address + path
}

// site serves a page of its own origin.
func site(t *testing.T, page string) (origin string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, page)
	})}
	go web.Serve(l)
	t.Cleanup(func() { web.Close() })
	return "http://" + l.Addr().String()
}

// tab opens a page of a site.
func tab(t *testing.T, browser context.Context, origin string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, ctx: ctx, base: origin + "/"}
	p.visit("")
	return p
}

// TestLeaderboard opens the page for a first look, which has at most 40 lines, and sees its rows
// move. Only the address of the console is another one.
func TestLeaderboard(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../examples/leaderboard.html")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(file, []byte("\n")); n > 40 {
		t.Errorf("%d lines; the limit is 40", n)
	}
	browser := startBrowser(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	origin := site(t, strings.Replace(string(file), "127.0.0.1:8379", l.Addr().String(), 1))
	srv := servertest.Run(t)
	c, err := console.New(srv.Server, console.Options{Origins: []string{origin}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go c.Serve(l, nil)
	p := tab(t, browser, origin)
	p.shows("output", "live")
	shows := func(rows string) {
		t.Helper()
		p.is(`[...document.querySelectorAll('li')].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
			.map(e => [...e.children].map(c => c.textContent).join(' ')).join(', ') === ` + strconv.Quote(rows))
	}
	srv.Must("ZADD", "board", 120, "ann", 80, "<i>ben")
	shows("1 ann 120, 2 <i>ben 80")
	srv.Must("ZINCRBY", "board", 50, "<i>ben")
	shows("1 <i>ben 130, 2 ann 120")
	srv.Must("ZREM", "board", "<i>ben")
	shows("1 ann 120")
}

// TestLive shows live queries on two pages of another site, by signed links, while the server
// starts again; then a link that expires, and a site that may not read it.
func TestLive(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	const empty = "<!DOCTYPE html><title>a page</title>"
	allowed, foreign := site(t, empty), site(t, empty)
	s := &liveServer{t: t, file: filepath.Join(t.TempDir(), "data.db")}
	s.start(allowed)
	t.Cleanup(func() { s.stop() })
	// open opens a page of a site, which follows a link: window.replies has the newest replies,
	// window.end the reason for the end, window.closed whether the browser has given up.
	open := func(origin, link string) *page {
		t.Helper()
		p := tab(t, browser, origin)
		p.script(`window.replies = {}; window.opened = 0; window.end = '';
			window.source = new EventSource(` + strconv.Quote(link) + `);
			source.onopen = () => opened++;
			source.onmessage = ({ data }) => { const { query, ...reply } = JSON.parse(data); replies[query] = JSON.stringify(reply); };
			source.addEventListener('end', ({ data }) => { end = JSON.parse(data).reason; });`)
		return p
	}
	s.do("ZADD", "club", 1, "ben", 2, "ann")
	ann := open(allowed, s.link(time.Hour, "ZRANK club ann", "ZCARD club"))
	ben := open(allowed, s.link(time.Hour, "ZRANGE club 0 -1"))
	ann.is(`replies[0] === '{"result":1}' && replies[1] === '{"result":2}'`)
	ben.is(`replies[0] === '{"result":["ben","ann"]}'`)
	s.do("ZREM", "club", "ben")
	ann.is(`replies[0] === '{"result":0}' && replies[1] === '{"result":1}'`)
	ben.is(`replies[0] === '{"result":["ann"]}'`)

	s.stop()
	ann.is(`end === 'shutdown' && source.readyState === EventSource.CONNECTING`)
	ben.is(`end === 'shutdown'`)
	s.start(allowed)
	s.do("ZADD", "club", 0, "cid")
	for _, p := range []*page{ann, ben} {
		p.is(`opened === 2`)
	}
	ann.is(`replies[0] === '{"result":1}' && replies[1] === '{"result":2}'`)
	ben.is(`replies[0] === '{"result":["cid","ann"]}'`)

	short := open(allowed, s.link(5*time.Second, "ZCARD club"))
	short.is(`end === 'expired' || opened === 0 && source.readyState === EventSource.CLOSED`) // a busy machine is late
	short.is(`source.readyState === EventSource.CLOSED`)                                      // the next request is refused
	expired := s.link(-time.Second, "ZCARD club")
	short.script(`fetch(` + strconv.Quote(expired) + `).then(async (r) => { window.refusal = r.status + (await r.json()).error; })`)
	short.is(`window.refusal === '403ERR the link has expired'`)

	other := open(foreign, s.link(time.Hour, "ZCARD club"))
	other.is(`source.readyState === EventSource.CLOSED && opened === 0 && !(0 in replies)`)
}
