package packages

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source is the root of the repository.
const source = "../../.."

// copySource copies the files of the module of zsetd to a new folder: without the history
// of the repository, and the modules below it.
func copySource(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		switch base := d.Name(); {
		case base == ".git" || rel == "bin" || rel != "." && d.IsDir() && exists(filepath.Join(name, "go.mod")):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil // of a linked working tree
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular() || strings.HasSuffix(base, ".db") || strings.HasSuffix(base, ".test"):
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// commitDate is the time of all commits, from which a release takes its own.
const commitDate = "2026-11-23T12:00:00Z"

// environment returns the variables of the programs that the tests run. With -trimpath
// the compiled packages are in the build cache, whatever the folder.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "ZSETD_OPTIONS=") })
	return append(env, "GOFLAGS=-trimpath", "GOWORK=off", "CGO_ENABLED=0",
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.org", "GIT_AUTHOR_DATE="+commitDate,
		"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.org", "GIT_COMMITTER_DATE="+commitDate)
}

// run runs a program in dir, with variables besides those of environment, and returns
// its output.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(environment(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// commit makes the folder a repository if it is none, and commits and tags its files.
func commit(t *testing.T, dir, tag string) (revision string) {
	t.Helper()
	if !exists(filepath.Join(dir, ".git")) {
		run(t, dir, nil, "git", "init", "-q", "-b", "main")
		run(t, dir, nil, "git", "remote", "add", "origin", "https://github.com/zsetd/zsetd.git")
	}
	run(t, dir, nil, "git", "add", "-A")
	run(t, dir, nil, "git", "commit", "-q", "-m", tag)
	run(t, dir, nil, "git", "tag", tag)
	return strings.TrimSpace(run(t, dir, nil, "git", "rev-parse", "HEAD"))
}

// appendTo appends a line to a file.
func appendTo(t *testing.T, path, line string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(b, line+"\n"...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
