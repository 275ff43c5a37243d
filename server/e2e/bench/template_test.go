//go:build linux

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	tmpl, err := parseTemplate("ZADD s:{key} {now} m:{r/3}:{r}\nZREMRANGEBYSCORE s:{key} -inf {old}\nPING {16}", limits{1000, 7, 50})
	if err != nil {
		t.Fatal(err)
	}
	if tmpl.commands != 3 {
		t.Errorf("%d commands, want 3", tmpl.commands)
	}
	request := tmpl.repeated(2)
	tmpl.fill(request, rand.New(rand.NewPCG(1, 1)))
	one := `\*4\r\n\$4\r\nZADD\r\n\$14\r\ns:00000000000[0-6]\r\n\$12\r\nNOW\r\n\$27\r\nm:00000000000[012]:000000000\d{3}\r\n` +
		`\*4\r\n\$16\r\nZREMRANGEBYSCORE\r\n\$14\r\ns:00000000000[0-6]\r\n\$4\r\n-inf\r\n\$12\r\nOLD\r\n` +
		`\*2\r\n\$4\r\nPING\r\n\$16\r\n0123456789abcdef\r\n`
	want := strings.NewReplacer("NOW", "000000000052", "OLD", "000000000002").Replace(one) + strings.NewReplacer("NOW", "000000000053", "OLD", "000000000003").Replace(one)
	if !regexp.MustCompile("^" + want + "$").Match(request) {
		t.Errorf("request: got %q, want %s", request, want)
	}
	keys := regexp.MustCompile(`s:\d+`).FindAllString(string(request), -1)
	if keys[0] != keys[1] || keys[2] != keys[3] {
		t.Errorf("different keys in one request: %q", keys)
	}
}

func TestTemplateErrors(t *testing.T) {
	for _, text := range []string{"GET {r", "GET {x/2}", "GET {y}", "GET {r/0}", "GET {r/a}", "GET {key/3}"} {
		if _, err := parseTemplate(text, limits{1, 1, 1}); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// TestWorks checks that every workload is a valid template.
func TestWorks(t *testing.T) {
	names := map[string]bool{}
	for _, w := range works(limits{1000, 10, 100}) {
		if names[w.title()] {
			t.Errorf("%s: a second workload with this title", w.title())
		}
		names[w.title()] = true
		if w.halfLoadOf != "" && !names[w.halfLoadOf] {
			t.Errorf("%s: %s, whose half load it has, does not precede it", w.title(), w.halfLoadOf)
		}
		tmpl, err := parseTemplate(w.command, limits{1000, 10, 100})
		if err != nil {
			t.Errorf("%s: %v", w.title(), err)
		} else if tmpl.commands == 0 {
			t.Errorf("%s: no command", w.title())
		}
	}
}

func TestSkipReply(t *testing.T) {
	for text, want := range map[string]string{
		"+OK\r\n": "", ":12\r\n": "", "$3\r\na\nb\r\n": "", "$-1\r\n": "", "*-1\r\n": "", "*0\r\n": "", "$0\r\n\r\n": "",
		"*2\r\n*1\r\n:1\r\n$1\r\nx\r\n":         "",
		"*3\r\n:1\r\n$-1\r\n*2\r\n+a\r\n+b\r\n": "",
		"-ERR no\r\n":                           "the server says: ERR no",
		"*1\r\n-ERR no\r\n":                     "the server says: ERR no",
		"$x\r\n":                                `not a reply: "$x\r\n"`,
		"%1\r\n":                                `not a reply: "%1\r\n"`,
		"*1\r\n":                                "EOF",
		"$5\r\nab":                              "EOF",
	} {
		r := bufio.NewReader(strings.NewReader(text + "+next\r\n"))
		if want == "EOF" {
			r = bufio.NewReader(strings.NewReader(text))
		}
		err := skipReply(r)
		if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
		if rest, _ := r.ReadString('\n'); err == nil && rest != "+next\r\n" {
			t.Errorf("%q: the remaining input is %q, want the next reply", text, rest)
		}
	}
}
