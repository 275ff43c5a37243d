package browser

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// example starts a program of server/examples and returns a function that opens another window of
// its page. It also checks that the program and its page are each on one screen of an editor.
func example(t *testing.T, name string) (window func() *page) {
	t.Helper()
	folder := filepath.Join("..", "..", "examples", name)
	for file, limit := range map[string]int{"main.go": 100, "index.html": 50} {
		b, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); n > limit {
			t.Errorf("%s of %s has %d lines; the limit is %d", file, name, n, limit)
		}
	}
	browser := startBrowser(t)
	path := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./server/examples/"+name)
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	// t.Context ends before the functions of Cleanup run: the browser is closed after the program.
	run := exec.CommandContext(t.Context(), path, "-addr", "127.0.0.1:0")
	run.Stderr = t.Output()
	stdout, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	origin := regexp.MustCompile(`http://[0-9.:]+`).FindString(line)
	if origin == "" {
		t.Fatalf("the program says %q: %v", line, err)
	}
	return func() *page { return tab(t, browser, origin) }
}

// leave leaves the page, which sends its last request then.
func (p *page) leave() {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"))
}

func TestExampleLiveEvents(t *testing.T) {
	t.Parallel()
	window := example(t, "liveevents")
	ann, ben := window(), window()
	for _, p := range []*page{ann, ben} {
		p.is(`document.querySelector('output').textContent === '2'`)
	}
	publish := func(text string) {
		t.Helper()
		ann.fill("input", text)
		ann.click("button", "Publish")
	}
	events := func(p *page, want string) {
		t.Helper()
		p.is(`[...document.querySelectorAll('li')].map(e => e.textContent).join('|') === '` + want + `'`)
	}
	publish("<b>first")
	events(ben, "<b>first")
	publish("second")
	events(ben, "second|<b>first")
	events(ann, "second|<b>first")
	publish("<b>first") // again
	events(ben, "<b>first|second")
	ann.leave()
	ben.is(`document.querySelector('output').textContent === '1'`)
	ben.picture("example-liveevents")
	events(ben, "<b>first") // 20 seconds after they came
	events(ben, "")
}

func TestExampleTimeboxes(t *testing.T) {
	t.Parallel()
	window := example(t, "timeboxes")
	ann, ben := window(), window()
	ann.is(`document.querySelector('output').textContent === '2'`)
	ann.click("button", "25 times")
	for _, p := range []*page{ann, ben} {
		p.is(`document.querySelector('output').textContent === '27'`)
		p.is(`[...document.querySelectorAll('#bars i')].reduce((n, e) => n + Number(e.title), 0) === 27`)
		p.is(`[...document.querySelectorAll('#bars i')].some(e => e.offsetHeight > 20)`)
	}
	ben.picture("example-timeboxes")
	// The bars move to the left while nothing happens.
	ben.script(`window.place = () => [...document.querySelectorAll('#bars i')].findIndex(e => e.title !== '0'); window.first = place()`)
	ben.is(`place() < first`)
}

func TestExampleFolder(t *testing.T) {
	t.Parallel()
	window := example(t, "folder")
	ann, ben := window(), window()
	ann.click("button", "cat")
	ann.click("button", "cat")
	ann.click("button", "sunset")
	ben.shows("#due", "cat, in ")
	ben.shows("#due", "sunset, in ")
	ben.picture("example-folder")
	for _, p := range []*page{ann, ben} {
		p.shows("#notices", "cat: 2 likes, by ")
		p.shows("#notices", "sunset: 1 likes, by ")
		p.is(`document.querySelector('#due').children.length === 0`)
	}
}

func TestExampleWaitingList(t *testing.T) {
	t.Parallel()
	window := example(t, "waitinglist")
	ann := window()
	ann.shows("#place", "You are inside")
	ben := window()
	ben.shows("#place", "You are inside")
	cid := window()
	cid.shows("#place", "Number 1 in line")
	dee := window()
	dee.shows("#place", "Number 2 in line")
	ann.shows("#all", "4")
	dee.picture("example-waitinglist")
	// A page reads its own place only.
	dee.script(`fetch('/live?q=ZRANGE+club+0+-1').then(async (r) => { window.refusal = r.status; })`)
	dee.is(`window.refusal >= 400`)
	ann.leave()
	cid.shows("#place", "You are inside")
	dee.shows("#place", "Number 1 in line")
	ben.click("button", "Leave")
	ben.shows("#place", "You have left")
	dee.shows("#place", "You are inside")
	dee.shows("#all", "2")
}
