package browser

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// startBrowser returns the context of a new browser without a profile, or skips the test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		// Some systems have a script of that name that says how to install it.
		found, err := exec.LookPath(name)
		if err == nil && exec.CommandContext(t.Context(), found, "--version").Run() == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("Chromium is missing: .ci/chromium installs it where apt can")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		chromedp.Cancel(ctx) // waits for the browser, which still writes to its folder
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	return ctx
}

// page is a tab of the browser, and the server that it shows.
type page struct {
	t    *testing.T
	ctx  context.Context
	srv  *servertest.Server
	base string
	web  *http.Server

	mu       sync.Mutex
	problems []string // exceptions, and what the browser refused
}

// open starts a server and opens a tab for it. Parameters are pairs of names and values.
func open(t *testing.T, browser context.Context, parameters ...string) *page {
	t.Helper()
	config := map[string]string{}
	for i := 0; i < len(parameters); i += 2 {
		config[parameters[i]] = parameters[i+1]
	}
	var kept console.Log
	log := slog.New(kept.Handler(slog.NewTextHandler(t.Output(), nil)))
	srv := servertest.Run(t, server.Options{Config: config, Logger: log})
	c, err := console.New(srv.Server, console.Options{Logger: log, Log: &kept})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: c}
	go web.Serve(l)
	p := &page{t: t, srv: srv, web: web, base: "http://" + l.Addr().String() + "/"}
	t.Cleanup(func() { p.web.Close() })
	var cancel context.CancelFunc
	p.ctx, cancel = chromedp.NewContext(browser, chromedp.WithListener(func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			p.problem(fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
		case *cdplog.EventEntryAdded:
			// Chromium reports each response with an error status, which some tests want.
			if e.Entry.Source != cdplog.EntrySourceNetwork {
				p.problem(e.Entry.Text)
			}
		}
	}))
	t.Cleanup(cancel)
	if err := chromedp.Do(p.ctx); err != nil { // without a limit of time: it would end the tab
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			t.Errorf("the browser reports: %s", problem)
		}
	})
	p.size(1280, 800)
	return p
}

func (p *page) problem(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, text)
}

// do runs actions in the tab.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, actionTime)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// actionTime ends a test whose browser hangs.
const actionTime = 2 * time.Minute

// eval returns the value of an expression in JavaScript.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, actionTime)
	defer cancel()
	for {
		value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
		if err == nil {
			return value
		}
		// The page of the expression may end while it is evaluated: the next one answers.
		if gone := regexp.MustCompile("navigated or closed|context was destroyed|Cannot find context"); !gone.MatchString(err.Error()) || ctx.Err() != nil {
			p.t.Fatalf("%s: %v", expression, err)
		}
		wait.Pace(5 * time.Millisecond)
	}
}

// script runs a statement in JavaScript.
func (p *page) script(statement string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](statement))
}

// keys types into an element. A line end is the key Enter.
func (p *page) keys(selector, keys string) {
	p.t.Helper()
	p.do(chromedp.WaitVisible(chromedp.CSS(selector)))
	for i, part := range strings.Split(keys, "\n") {
		if i > 0 {
			p.do(chromedp.Func(enter))
		}
		if part != "" {
			p.do(chromedp.SendKeys(chromedp.CSS(selector), part))
		}
	}
}

// enter presses Enter as a keyboard does: the page can keep it from inserting a line end.
func enter(ctx context.Context, t *chromedp.Target) error {
	for _, e := range []input.DispatchKeyEventParams{
		{Type: input.DispatchKeyEventTypeKeyDown, Text: "\r"}, {Type: input.DispatchKeyEventTypeKeyUp},
	} {
		e.Key, e.Code, e.WindowsVirtualKeyCode, e.NativeVirtualKeyCode = "Enter", "Enter", 13, 13
		if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, e); err != nil {
			return err
		}
	}
	return nil
}

func (p *page) size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// visit loads an address below that of the console.
func (p *page) visit(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.base + path))
}

// text returns the text of an element as it is shown, "" if there is none.
func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, `[...document.querySelectorAll(`+strconv.Quote(selector)+`)].map(e => e.innerText || e.textContent).join('\n')`)
}

// holds evaluates a condition in JavaScript.
func (p *page) holds(condition string) bool {
	p.t.Helper()
	return eval[bool](p, `!!(`+condition+`)`)
}

// shows waits until an element has a text in it.
func (p *page) shows(selector, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%s shows %q", selector, text), func() bool { return strings.Contains(p.text(selector), text) })
}

// until waits for a condition, and says what the page shows when it does not hold.
func (p *page) until(what string, done func() bool) {
	p.t.Helper()
	failed := p.t.Failed()
	defer func() {
		if p.t.Failed() && !failed {
			p.t.Logf("the page:\n%s", p.text("main, dialog"))
		}
	}()
	wait.Until(p.t, what, done)
}

// is waits for a condition in JavaScript.
func (p *page) is(condition string) {
	p.t.Helper()
	p.until(condition, func() bool { return p.holds(condition) })
}

// click clicks the first visible element of a selector with a text in it.
func (p *page) click(selector, text string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%q)].find(e => e.textContent.includes(%q) && e.offsetParent !== null && !e.disabled)`, selector, text)
	p.is(find)
	p.script(find + `.click()`)
}

// fill sets the value of a field as typing does.
func (p *page) fill(selector, value string) {
	p.t.Helper()
	p.is(fmt.Sprintf(`document.querySelector(%q)`, selector))
	p.script(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q; for (const n of ['input', 'change']) e.dispatchEvent(new Event(n, {bubbles: true})); })()`, selector, value))
}

// picture writes a picture of the page, as WebP, if the environment asks for it.
func (p *page) picture(name string) {
	p.t.Helper()
	folder := os.Getenv("ZSETD_SCREENSHOTS")
	if folder == "" {
		return
	}
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		r, err := cdp.Call(ctx, t, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Format: cdppage.CaptureScreenshotFormatWebp, Quality: new(int64(70))})
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, name+".webp"), r.Data, 0o644)
	}))
}
