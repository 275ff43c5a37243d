package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/console"
	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// TestBackup downloads the data of a server and starts another one with them. A user needs what
// a replica and BGSAVE need, and pages of other sites are refused.
func TestBackup(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	srv.Must("SET", "k", "v")
	srv.Must("ACL", "SETUSER", "saver", "on", ">pw", "+@all", "-psync", "~*")
	srv.Must("ACL", "SETUSER", "copier", "on", ">pw", "+@all", "-bgsave", "~*")
	srv.Must("ACL", "SETUSER", "both", "on", ">pw", "-@all", "+bgsave", "+psync")
	for _, one := range []struct {
		user, header, value string
		status              int
		want                string
	}{
		{"saver", "", "", http.StatusForbidden, `"NOPERM User saver has no permissions to run the 'psync' command"`},
		{"copier", "", "", http.StatusForbidden, `"NOPERM User copier has no permissions to run the 'bgsave' command"`},
		{"both", "Sec-Fetch-Site", "cross-site", http.StatusForbidden, "another site"},
		{"both", "Origin", "https://example.org", http.StatusForbidden, "another site"},
	} {
		r := request(t, http.MethodPost, "/backup", "")
		r.SetBasicAuth(one.user, "pw")
		if one.header != "" {
			r.Header.Set(one.header, one.value)
		}
		if status, body := serve(c, r); status != one.status || !strings.Contains(body, one.want) {
			t.Errorf("%s %s: %d %s", one.user, one.header, status, body)
		}
	}
	if status, _ := serve(c, request(t, http.MethodGet, "/backup", "")); status != http.StatusMethodNotAllowed && status != http.StatusNotFound {
		t.Errorf("GET: status %d", status)
	}
	r := request(t, http.MethodPost, "/backup", "")
	r.SetBasicAuth("both", "pw")
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	if name := w.Header().Get("Content-Disposition"); w.Code != http.StatusOK || !strings.HasPrefix(name, `attachment; filename="zsetd-20`) {
		t.Fatalf("%d %q %.200s", w.Code, name, w.Body)
	}
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(file, w.Body.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := servertest.Run(t, server.Options{File: file}).Must("GET", "k"); got != "v" {
		t.Errorf("the copy has %v", got)
	}
}

// TestBackupDisabled refuses a backup where rename-command disables what it needs.
func TestBackupDisabled(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, map[string]string{"rename-command": `psync ""`})
	if status, body := serve(c, request(t, http.MethodPost, "/backup", "")); status != http.StatusForbidden || !strings.Contains(body, "PSYNC is disabled") {
		t.Errorf("%d %s", status, body)
	}
}

// stuckWriter is a response whose client takes nothing until it is released.
type stuckWriter struct {
	*httptest.ResponseRecorder
	begun, release chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	select {
	case w.begun <- struct{}{}:
	default:
	}
	<-w.release
	return w.ResponseRecorder.Write(p)
}

// TestBackupsOneByOne refuses a second backup while one is sent.
func TestBackupsOneByOne(t *testing.T) {
	t.Parallel()
	_, c := run(t, console.Options{}, nil)
	w := &stuckWriter{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.ServeHTTP(w, request(t, http.MethodPost, "/backup", ""))
	}()
	<-w.begun
	if status, body := serve(c, request(t, http.MethodPost, "/backup", "")); status != http.StatusTooManyRequests {
		t.Errorf("%d %.200s", status, body)
	}
	close(w.release)
	<-ended
	if status, body := serve(c, request(t, http.MethodPost, "/backup", "")); status != http.StatusOK {
		t.Errorf("after the first one: %d %.200s", status, body)
	}
}

// TestParameters gets the texts of the parameters, for users alone.
func TestParameters(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	_, body := serve(c, request(t, http.MethodGet, "/parameters", ""))
	var list []struct {
		Name, Default, Doc string
		Values             []string
		Fixed, NoEffect    bool
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for i, p := range list {
		found[p.Name] = i
	}
	if p := list[found["maxmemory-policy"]]; p.Default != "noeviction" || p.Doc == "" || len(p.Values) != 10 || p.Fixed {
		t.Errorf("%+v", p)
	}
	if p := list[found["http-port"]]; !p.Fixed {
		t.Errorf("%+v", p)
	}
	srv.Must("CONFIG", "SET", "requirepass", "secret")
	if status, body := serve(c, request(t, http.MethodGet, "/parameters", "")); status != http.StatusUnauthorized {
		t.Errorf("%d %s", status, body)
	}
}

// TestBlocked gets the keys that clients wait for, for users who may list clients.
func TestBlocked(t *testing.T) {
	t.Parallel()
	srv, c := run(t, console.Options{}, nil)
	srv.Must("ACL", "SETUSER", "ann", "on", ">pw", "+@all", "-client|list")
	nc, err := srv.Dialer()(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprint(nc, "BLPOP \"a\\xff\" <b> 0\r\n")
	wait.Until(t, "the client waits", func() bool { return srv.Stats().BlockedClients == 1 })
	if _, body := serve(c, request(t, http.MethodGet, "/blocked", "")); !strings.Contains(body, `:[{"base64":"Yf8="},"\u003cb\u003e"]}`) {
		t.Errorf("%s", body)
	}
	r := request(t, http.MethodGet, "/blocked", "")
	r.SetBasicAuth("ann", "pw")
	if status, body := serve(c, r); status != http.StatusForbidden || !strings.Contains(body, "client|list") {
		t.Errorf("%d %s", status, body)
	}
}

// TestMonitor shows the commands of other clients until the count is reached or the time is over.
func TestMonitor(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, nil)
	srv.Must("ACL", "SETUSER", "ann", "on", ">pw", "+@all", "-monitor")
	post := func(query, user string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/monitor?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if user != "" {
			r.SetBasicAuth(user, "pw")
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	for _, query := range []string{"seconds=0", "seconds=61", "count=10001", "count=x"} {
		if status := post(query, "").StatusCode; status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, status)
		}
	}
	if status := post("", "ann").StatusCode; status != http.StatusForbidden {
		t.Errorf("without the permission: %d", status)
	}
	lines := json.NewDecoder(post("seconds=60&count=2", "").Body)
	srv.Must("SET", "k", "<v>")
	srv.Must("GET", "k")
	srv.Must("GET", "more")
	for _, want := range []string{`] "SET" "k" "<v>"`, `] "GET" "k"`} {
		var line string
		if err := lines.Decode(&line); err != nil || !strings.HasSuffix(line, want) {
			t.Fatalf("%q, %v; want %q", line, err, want)
		}
	}
	if lines.More() {
		t.Error("more than two lines")
	}
	if _, err := io.Copy(io.Discard, post("seconds=1", "").Body); err != nil {
		t.Errorf("the end: %v", err)
	}
}
