package main

import (
	"strings"
	"testing"
)

func TestSkips(t *testing.T) {
	const events = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:10: looking for redis-server\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:12: no redis-server\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB/x","Output":"    b_test.go:7: wants Linux,\n"}
{"Action":"output","Package":"p","Test":"TestB/x","Output":"        with epoll\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:7: a line of a test that passes\n"}
{"Action":"skip","Package":"p","Test":"TestB/x"}
{"Action":"pass","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"skip","Package":"without tests"}
{"Action":"skip","Package":"p","Test":"TestD"}
`
	other := ""
	for _, name := range []string{"TestA", "TestE", "TestF"} { // TestA of another package is another test
		other += `{"Action":"output","Package":"q","Test":"` + name + `","Output":"    q_test.go:1: no redis-server\n"}` + "\n" +
			`{"Action":"skip","Package":"q","Test":"` + name + `"}` + "\n"
	}
	reasons := map[string][]string{}
	for _, text := range []string{events, other} {
		if err := read(reasons, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	print(&out, reasons)
	const want = `
skipped tests: 6
    4  no redis-server (TestA, TestA, TestE, ...)
    1  no reason is given (TestD)
    1  wants Linux, with epoll (TestB/x)
`
	if out.String() != want {
		t.Errorf("got:%s\nwant:%s", &out, want)
	}
	out.Reset()
	if print(&out, nil); out.Len() > 0 {
		t.Errorf("no test is skipped: %q", &out)
	}
	if err := read(reasons, strings.NewReader("ok\n")); err == nil {
		t.Error("a file that is not JSON is accepted")
	}
}
