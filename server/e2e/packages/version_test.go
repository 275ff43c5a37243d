package packages

import (
	"archive/zip"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/wait"
)

// module is the path that "go install" has before the @.
const module = "github.com/zsetd/zsetd"

// versionOf returns the version and the revision in the output of zsetd --version.
func versionOf(t *testing.T, binary string) (version, revision string) {
	t.Helper()
	lines := run(t, ".", nil, binary, "--version")
	m := regexp.MustCompile(`^zsetd (\S+)\nzsetd server .* sha=(\S+) .* zsetd=(\S+) `).FindStringSubmatch(lines)
	if m == nil || m[1] != m[3] {
		t.Fatalf("zsetd --version: %q", lines)
	}
	return m[3], m[2]
}

// The version of the program is that of the tag, of the module, or (devel) where git knows
// nothing; changes that are not committed are marked.
func TestVersion(t *testing.T) {
	for _, tool := range []string{"git", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("make builds a program without a suffix")
	}
	dir := copySource(t)
	binary := filepath.Join(dir, "bin", "zsetd")
	build := func(version, revision string) {
		t.Helper()
		run(t, dir, nil, "make", "build")
		if v, r := versionOf(t, binary); v != version || r != revision {
			t.Errorf("zsetd --version: version %s, revision %s; want %s, %s", v, r, version, revision)
		}
	}
	build("(devel)", "00000000:0") // an archive of the sources
	revision := commit(t, dir, "v1.2.3")
	build("v1.2.3", revision[:8]+":0")
	logAndInfo(t, binary, "v1.2.3")
	appendTo(t, filepath.Join(dir, "LICENSE"), "")
	build("v1.2.3+dirty", revision[:8]+":1")
	t.Run("go install", func(t *testing.T) {
		cache := strings.TrimSpace(run(t, dir, nil, "go", "env", "GOMODCACHE"))
		proxies := "file://" + publish(t, dir, "v1.3.0") + ",file://" + filepath.Join(cache, "cache", "download") + "," +
			strings.TrimSpace(run(t, dir, nil, "go", "env", "GOPROXY"))
		bin, own := t.TempDir(), t.TempDir()
		// A cache of its own: the version exists in this test only.
		run(t, bin, []string{
			"GOBIN=" + bin, "GOMODCACHE=" + own, "GOFLAGS=-trimpath -modcacherw", "GOPROXY=" + proxies, "GONOSUMDB=" + module, "GOSUMDB=off", "GONOPROXY=none",
		}, "go", "install", module+"/cmd/zsetd@v1.3.0")
		if v, r := versionOf(t, filepath.Join(bin, "zsetd")); v != "v1.3.0" || r != "00000000:0" {
			t.Errorf("zsetd --version: version %s, revision %s", v, r)
		}
	})
}

// publish makes a module proxy in a folder that has one version of the module: the files
// that git tracks in dir.
func publish(t *testing.T, dir, version string) (proxy string) {
	t.Helper()
	proxy = t.TempDir()
	at := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for name := range strings.FieldsSeq(run(t, dir, nil, "git", "ls-files")) {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		w, err := z.Create(module + "@" + version + "/" + name)
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"list": version + "\n", version + ".mod": string(mod), version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, commitDate)} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}

// logAndInfo checks the version in the start log, and in INFO.
func logAndInfo(t *testing.T, binary, version string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "zsetd") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	var log strings.Builder
	cmd := exec.CommandContext(t.Context(), binary, "--port", "0", "--unixsocket", socket, "--dbfilename", "", "--log-format", "logfmt")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environment(), &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var nc net.Conn
	wait.Until(t, "the server listens", func() bool { nc, err = net.Dial("unix", socket); return err == nil })
	defer nc.Close()
	fmt.Fprint(nc, "INFO server\r\nSHUTDOWN\r\n")
	info, _ := io.ReadAll(nc)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server: %v\n%s", err, &log)
	}
	if want := "\r\nzsetd_version:" + version + "\r\n"; !strings.Contains(string(info), want) {
		t.Errorf("INFO has no %q:\n%s", want, info)
	}
	first, _, _ := strings.Cut(log.String(), "\n")
	if !strings.Contains(first, "starting zsetd") || !strings.Contains(first, " version="+version+" ") {
		t.Errorf("the log begins with %q, without version=%s", first, version)
	}
}
