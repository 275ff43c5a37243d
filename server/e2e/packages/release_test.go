package packages

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// releaser returns the path of goreleaser, or skips the test.
func releaser(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ZSETD_GORELEASER")
	if path == "" {
		t.Skip("ZSETD_GORELEASER is not set: make release-check sets it")
	}
	return path
}

// release builds all that .goreleaser.yaml describes for the tag of the repository in dir,
// but for the images and the SBOMs, and returns the folder of the files.
func release(t *testing.T, dir string, skip string) (dist string) {
	t.Helper()
	run(t, dir, []string{"GITHUB_TOKEN=", "HOMEBREW_TAP_TOKEN="}, releaser(t),
		"release", "--clean", "--skip=publish,announce,docker,sbom"+skip)
	return filepath.Join(dir, "bin", "dist")
}

// A release has archives with the program and its files, checksums, packages and a cask.
// Then the packages of two versions are installed.
func TestRelease(t *testing.T) {
	releaser(t)
	dir := copySource(t)
	systems, skip := []string{"linux", "darwin", "windows"}, ""
	if testing.Short() { // make cross compiles for the others
		systems, skip = systems[:1], ",homebrew"
		limitTo(t, filepath.Join(dir, ".goreleaser.yaml"), systems[0])
	}
	revision := commit(t, dir, "v1.0.0")
	dist := release(t, dir, skip)
	t.Run("archives", func(t *testing.T) { archives(t, dist, revision, systems) })
	t.Run("checksums", func(t *testing.T) { checksums(t, dist, 2*len(systems)) })
	if skip == "" {
		t.Run("cask", func(t *testing.T) { cask(t, dist) })
	}

	kept := t.TempDir()
	for _, path := range packagesIn(t, dist) {
		if err := os.Rename(path, filepath.Join(kept, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	// The next version has another configuration file.
	appendTo(t, filepath.Join(dir, "cmd", "zsetd", "zsetd.conf"), "# A line of the next version.")
	commit(t, dir, "v1.1.0")
	dist = release(t, dir, ",archive,homebrew")
	before, after := packagesIn(t, kept), packagesIn(t, dist)
	if len(before) != 4 || len(after) != 4 {
		t.Fatalf("packages %q and %q, want a deb and an rpm of two architectures", before, after)
	}
	for _, kind := range []string{".deb", ".rpm"} {
		t.Run(kind[1:], func(t *testing.T) {
			inspect(t, own(t, before, kind))
			install(t, kind[1:], own(t, before, kind), own(t, after, kind))
		})
	}
}

// limitTo makes a configuration of goreleaser build for one system.
func limitTo(t *testing.T, path, system string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const all = "goos: [linux, darwin, windows]"
	if bytes.Count(b, []byte(all)) != 1 {
		t.Fatalf("%s has not %q", path, all)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte(all), []byte("goos: ["+system+"]"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}

// packagesIn returns the paths of the packages in a folder.
func packagesIn(t *testing.T, dir string) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"*.deb", "*.rpm"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	return paths
}

// own returns the package of a kind for the architecture of this machine.
func own(t *testing.T, paths []string, kind string) string {
	t.Helper()
	rpm := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	i := slices.IndexFunc(paths, func(p string) bool {
		return strings.HasSuffix(p, "_"+runtime.GOARCH+kind) || rpm != "" && strings.HasSuffix(p, "."+rpm+kind)
	})
	if i < 0 {
		t.Skipf("no package for %s", runtime.GOARCH)
	}
	return paths[i]
}

// archives checks the names, contents, owners and times in the archives, and runs the
// program for this machine.
func archives(t *testing.T, dist, revision string, systems []string) {
	stamp, err := time.Parse(time.RFC3339, commitDate)
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range systems {
		for _, arch := range []string{"amd64", "arm64"} {
			name, binary, read := fmt.Sprintf("zsetd_1.0.0_%s_%s", system, arch), "zsetd", readTar
			path := filepath.Join(dist, name+".tar.gz")
			if system == "windows" {
				path, binary, read = filepath.Join(dist, name+".zip"), "zsetd.exe", readZip
			}
			var names []string
			err := read(path, func(file string, at time.Time, owner string, content io.Reader) error {
				names = append(names, file)
				if !at.Equal(stamp) || owner != "root" {
					t.Errorf("%s: %s has the time %v and the owner %q", name, file, at, owner)
				}
				if filepath.Base(file) != binary || system != runtime.GOOS || arch != runtime.GOARCH {
					return nil
				}
				return runOnce(t, content, binary, revision)
			})
			if err != nil {
				t.Error(err)
			}
			for _, file := range []string{binary, "LICENSE", "README.md", "zsetd.conf", "zsetd.service", "zsetd.socket"} {
				if !slices.Contains(names, name+"/"+file) {
					t.Errorf("%s has no %s: %q", name, file, names)
				}
			}
		}
	}
}

// runOnce checks what the program of an archive says about its version.
func runOnce(t *testing.T, content io.Reader, name, revision string) error {
	path := filepath.Join(t.TempDir(), name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if v, r := versionOf(t, path); v != "v1.0.0" || r != revision[:8]+":0" {
		t.Errorf("zsetd --version: version %s, revision %s; want v1.0.0, %s:0", v, r, revision[:8])
	}
	return nil
}

func readTar(path string, visit func(name string, at time.Time, owner string, content io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visit(h.Name, h.ModTime, h.Uname, r)
		}
		if err != nil {
			return err
		}
	}
}

// readZip passes root as the owner: a zip file has none.
func readZip(path string, visit func(name string, at time.Time, owner string, content io.Reader) error) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		if err := errors.Join(visit(f.Name, f.Modified, "root", r), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// checksums compares the files of the release, so many archives and the packages, with
// checksums.txt.
func checksums(t *testing.T, dist string, archives int) {
	f, err := os.Open(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		b, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(b)) != sum {
			t.Errorf("%s: the checksum is not %s (%v)", name, sum, err)
		}
	}
	if n != archives+4 {
		t.Errorf("checksums of %d files, want %d archives and 4 packages", n, archives)
	}
}

// cask checks that the Homebrew cask names the archives of macOS, with their checksums.
func cask(t *testing.T, dist string) {
	b, err := os.ReadFile(filepath.Join(dist, "homebrew", "Casks", "zsetd.rb"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if strings.HasPrefix(name, "zsetd_1.0.0_darwin_") {
			n++
			if !strings.Contains(string(b), sum) {
				t.Errorf("the cask has no checksum of %s:\n%s", name, b)
			}
		}
	}
	for _, want := range []string{`cask "zsetd"`, `version "1.0.0"`, `binary "`, "com.apple.quarantine"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the cask has no %s:\n%s", want, b)
		}
	}
	if n != 2 {
		t.Errorf("archives of macOS: %d", n)
	}
}
