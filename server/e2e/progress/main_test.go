package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRun checks the output and the exit status for every kind of result.
func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		status int
		want   []string
		not    []string
	}{
		"pass": {
			`func TestA(t *testing.T) { t.Log("quiet"); t.Run("sub", func(t *testing.T) {}) }
			func TestB(t *testing.T) { t.Skip() }`,
			0,
			[]string{"ok  \texample/p\t", "1 packages, 1 tests passed, 1 skipped"},
			[]string{"quiet", "=== RUN", "PASS", "failed"},
		},
		"fail": {
			`func TestA(t *testing.T) { t.Log("quiet") }
			func TestB(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("loud") }) }`,
			1,
			[]string{"loud\n", "--- FAIL: TestB/sub", "FAIL\texample/p\t", "1 tests passed", "failed:\n\texample/p TestB/sub\n\texample/p TestB\n"},
			[]string{"quiet", "=== RUN", "\texample/p\n"},
		},
		"panic": {
			`func TestA(t *testing.T) { t.Log("quiet") }
			func TestB(t *testing.T) { panic("loud") }`,
			1,
			[]string{"panic: loud", "goroutine ", "FAIL\texample/p\t", "example/p TestB\n"},
			[]string{"quiet"},
		},
		"exit": {
			`func TestA(t *testing.T) { println("last words"); os.Exit(3) }
			var _ = os.Exit`,
			1,
			[]string{"last words", "FAIL\texample/p\t", "failed:\n\texample/p"},
			nil,
		},
		"build": {
			`func TestA(t *testing.T) { undefined() }`,
			1,
			[]string{"undefined: undefined", "FAIL\texample/p [build failed]", "failed:\n\texample/p\n"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			imports := `import "testing"`
			if strings.Contains(test.source, "os.") {
				imports = `import ("os"; "testing")`
			}
			for file, text := range map[string]string{
				"go.mod":       "module example\n\ngo 1.26\n",
				"p/p_test.go":  "package p\n\n" + imports + "\n\n" + test.source + "\n",
				"none/none.go": "package none\n",
			} {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			status, err := run(&out, dir, time.Hour, 5, []string{"-count", "1", "./p"})
			if err != nil {
				t.Fatal(err)
			}
			if status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output has no %q", want)
				}
			}
			for _, not := range test.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("the output has %q", not)
				}
			}
			if t.Failed() {
				t.Logf("output:\n%s", out.String())
			}
		})
	}
}

func TestReport(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	var out bytes.Buffer
	p := newProgress(&out, begin)
	p.report(begin.Add(10 * time.Second))
	for _, line := range []string{
		`{"Time":"2026-01-02T03:04:10Z","Action":"start","Package":"m/a"}`,
		`{"Time":"2026-01-02T03:04:10Z","Action":"start","Package":"m/b"}`,
		`{"Time":"2026-01-02T03:04:10Z","Action":"run","Package":"m/a","Test":"TestOne"}`,
		`{"Time":"2026-01-02T03:04:11Z","Action":"pause","Package":"m/a","Test":"TestOne"}`,
		`{"Time":"2026-01-02T03:04:11Z","Action":"run","Package":"m/a","Test":"TestTwo"}`,
		`{"Time":"2026-01-02T03:04:12Z","Action":"run","Package":"m/b","Test":"TestThree"}`,
		`{"Time":"2026-01-02T03:04:15Z","Action":"pass","Package":"m/b","Test":"TestThree","Elapsed":3}`,
		`{"Time":"2026-01-02T03:04:15Z","Action":"output","Package":"m/b","Output":"ok  \tm/b\t5.0s\n"}`,
		`{"Time":"2026-01-02T03:04:15Z","Action":"pass","Package":"m/b","Elapsed":5}`,
	} {
		p.line([]byte(line + "\n"))
	}
	p.report(begin.Add(20 * time.Second))
	p.end(begin.Add(30*time.Second), 5)
	const want = "  10 s: 0 packages and 0 tests done; compiling\n" +
		"ok  \tm/b\t5.0s\n" +
		"  20 s: 1 packages and 1 tests done; in a TestTwo (9 s)\n" +
		"1 packages, 1 tests passed, 0 skipped, in 30 s\n" +
		"slowest: b TestThree (3 s)\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}
