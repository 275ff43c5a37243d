package console_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestRecipe runs the stream of the page in PATTERNS.md, as the user that is declared there.
func TestRecipe(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../PATTERNS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## In a browser\n")
	section, _, _ = strings.Cut(section, "\n## ")
	urls := regexp.MustCompile(`new EventSource\('([^']+)'\)`).FindAllStringSubmatch(section, -1)
	user := regexp.MustCompile(`127.0.0.1:6379> (ACL SETUSER .*)`).FindStringSubmatch(section)
	if len(urls) != 1 || user == nil {
		t.Fatalf("%d streams, user %q", len(urls), user)
	}
	srv, web := serving(t, nil)
	var acl []any
	for word := range strings.FieldsSeq(user[1]) {
		acl = append(acl, word)
	}
	srv.Must(acl...)
	const page = "Authorization: Basic cGFnZTpzZWNyZXQ="
	w := watch(t, web, urls[0][1], page)
	w.expect(`data: {"query":0,"result":null}`, `data: {"query":1,"result":[]}`)
	srv.Must("ZADDEX", "club", "EX", 20, "MEMBERS", 1, "*", "ann")
	w.expect(`data: {"query":0,"result":0}`)
	srv.Must("ZADDEX", "live:123:news", "EX", 20, "MEMBERS", 1, 1, `{"url":"/n/1"}`)
	w.expect(`data: {"query":1,"result":["{\"url\":\"/n/1\"}"]}`)
	for _, path := range regexp.MustCompile("\\| `(/[^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		watch(t, web, path[1]).next()
	}
	watch(t, web, "/rank?key=club&member=ann", page).next()
	watch(t, web, "/rank?key=other&member=a", page).refused(403)
	watch(t, web, "/events?channel=other", page).refused(403)
	watch(t, web, "/varz", page).refused(403)
}

// TestLinkRecipes runs the functions of PATTERNS.md that sign links.
func TestLinkRecipes(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../PATTERNS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n### Signed links\n")
	section, _, _ = strings.Cut(section, "\n## ")
	srv, web := serving(t, map[string]string{"http-link-secret": linkSecret})
	srv.Must("SET", "k ü", "x", "EX", 1000)
	for _, one := range []struct{ language, program, option, before, after string }{
		{"python", "python3", "-c", "import hmac, time, urllib.parse\n",
			"\nimport sys\nprint(link(sys.argv[1], sys.argv[2:]), link(sys.argv[1], sys.argv[2:], 60, '0', '1s'))"},
		{"js", "node", "-e", "const crypto = require('node:crypto');\n",
			"\nconst [secret, ...queries] = process.argv.slice(1);\nconsole.log(link(secret, queries), link(secret, queries, 60, '0', '1s'))"},
	} {
		t.Run(one.language, func(t *testing.T) {
			_, code, found := strings.Cut(section, "```"+one.language+"\n")
			code, _, _ = strings.Cut(code, "```")
			if !found {
				t.Fatal("it is not in the document")
			}
			path, err := exec.LookPath(one.program)
			if err != nil {
				t.Skip(one.program + " is missing")
			}
			out, err := exec.CommandContext(t.Context(), path, one.option, one.before+code+one.after, linkSecret, `GET "k ü"`, "GET a+b%20&c").CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			links := strings.Fields(string(out))
			if len(links) != 2 {
				t.Fatalf("%s", out)
			}
			for _, link := range links {
				watch(t, web, link).expect(`data: {"query":0,"result":"x"}`, `data: {"query":1,"result":null}`)
			}
		})
	}
}
