package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// written is a writer whose text may be read meanwhile.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestDemo starts two demonstrations side by side, reads the addresses that they print, and looks
// for moving data there.
func TestDemo(t *testing.T) {
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out := new(written)
		r := &toolRun{stdout: out, toolFlags: toolFlags{demoFlags: demoFlags{noBrowser: true}}}
		ended := make(chan error, 1)
		go func() { ended <- r.demo(ctx) }()
		defer func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		wait.Until(t, "the addresses", func() bool { return strings.Contains(out.String(), "SUBSCRIBE") })
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + regexp.MustCompile(`redis-cli -p (\d+)`).FindStringSubmatch(out.String())[1]})
		defer rdb.Close()
		pages := regexp.MustCompile(`(http://\S+/)keys\?key=(\S+)`).FindAllStringSubmatch(out.String(), -1)
		if len(pages) != 5 {
			t.Fatal(out)
		}
		for _, page := range pages {
			wait.Until(t, "the key "+page[2], func() bool { return rdb.ZCard(ctx, page[2]).Val() > 0 })
			response, err := http.Get(page[0])
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || response.StatusCode != 200 || !strings.Contains(string(b), "zsetd") {
				t.Errorf("%s: %s %v", page[0], response.Status, err)
			}
		}
	}
}

func TestDemoRefusesPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, option := range []string{"--port", "--http-port"} {
		if status, _, errs := call("", "demo", "--no-browser", option, port); status != 1 || !strings.HasPrefix(errs, "zsetd demo: listen tcp 127.0.0.1:"+port) {
			t.Errorf("%s: %d, %q", option, status, errs)
		}
	}
}
