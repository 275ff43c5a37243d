package console_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/console"
)

// TestPage gets each view, and all that the page loads.
func TestPage(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, nil)
	total := 0
	loaded := map[string]bool{}
	var load func(name string)
	reference := regexp.MustCompile(`(?:src|href)="(assets/[^"]+)"|from '\./([^']+)'`)
	load = func(name string) {
		if loaded[name] {
			return
		}
		loaded[name] = true
		status, body := serve(c, request(t, http.MethodGet, "/"+name, ""))
		if status != http.StatusOK {
			t.Errorf("%s: status %d", name, status)
		}
		total += len(body)
		for _, m := range reference.FindAllStringSubmatch(body, -1) {
			if m[1] != "" {
				load(m[1])
			} else {
				load("assets/" + m[2])
			}
		}
	}
	for _, view := range []string{"", "keys", "messages", "server", "prompt"} {
		status, body := serve(c, request(t, http.MethodGet, "/"+view, ""))
		if status != http.StatusOK || strings.Count(body, `aria-current="page"`) != 1 {
			t.Errorf("/%s: status %d, or not one view is current", view, status)
		}
	}
	load("")
	t.Logf("%d bytes", total)
	if limit := 250_000; total > limit || len(loaded) < 10 {
		t.Errorf("the page and the %d files that it loads have %d bytes; the limit is %d", len(loaded), total, limit)
	}
	for _, name := range []string{"assets/", "assets/nosuch.js", "page.templ"} {
		if status, _ := serve(c, request(t, http.MethodGet, "/"+name, "")); status != http.StatusNotFound {
			t.Errorf("%s: status %d", name, status)
		}
	}
}

// response returns the response to a request.
func response(t *testing.T, c http.Handler, r *http.Request) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Result()
}

// TestPageIsCached verifies that a browser loads an asset once.
func TestPageIsCached(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, nil)
	first := response(t, c, request(t, http.MethodGet, "/assets/app.js", ""))
	again := request(t, http.MethodGet, "/assets/app.js", "")
	again.Header.Set("If-None-Match", first.Header.Get("ETag"))
	if second := response(t, c, again); second.StatusCode != http.StatusNotModified {
		t.Errorf("status %d", second.StatusCode)
	}
	if kind := first.Header.Get("Content-Type"); kind != "text/javascript; charset=utf-8" {
		t.Errorf("Content-Type %q", kind)
	}
}

// TestAssetsHaveNoMarkup rejects what could turn text of keys and values into markup or
// script, and what the content security policy forbids.
func TestAssetsHaveNoMarkup(t *testing.T) {
	t.Parallel()
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|createContextualFragment|srcdoc|javascript:|setAttribute\('(?:style|on)|<style|<script>|\sstyle="|\son\w+="|https?://`)
	names, err := filepath.Glob("assets/*")
	names = append(names, "page.templ")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d assets, %v", len(names), err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(b), "\n") {
			if strings.HasSuffix(name, ".js") && strings.Count(line, "`")%2 != 0 {
				t.Errorf("%s:%d: a string of several lines", name, i+1)
			}
		}
		text := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "")
		if m := forbidden.FindString(text); m != "" {
			t.Errorf("%s has %q", name, m)
		}
	}
}
