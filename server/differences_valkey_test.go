package server_test

import (
	"regexp"
	"slices"
	"strings"
)

// inWordsOf returns a reply of zsetd, which has the words of Redis 8.6, as the server that
// it is compared with writes it.
func inWordsOf(opponent, reply string) string {
	if opponent != "valkey" {
		return reply
	}
	for _, d := range valkeyWords {
		reply = d.ours.ReplaceAllString(reply, d.valkey)
	}
	return reply
}

// differsInValkey reports whether a command is left out of random commands, because Valkey
// is the server that zsetd is compared with, and has another reply by design: ACL LIST and GETUSER
// without sanitize-payload and with databases, and commands of a cluster without one.
func differsInValkey(name string) bool {
	if opponent() != "valkey" {
		return false
	}
	return name == "acl|list" || name == "acl|getuser" || name == "hello" || name == "readonly" || name == "readwrite" || strings.HasPrefix(name, "cluster")
}

// namesRedisOnly reports whether a line has a word of options that Redis has since 8.0, if
// Valkey is the server that zsetd is compared with.
func namesRedisOnly(argv []string) bool {
	return opponent() == "valkey" && slices.ContainsFunc(argv, func(word string) bool {
		switch strings.ToUpper(word) {
		case "KEEPREF", "DELREF", "ACKED", "IDMP", "IDMPAUTO", "CLAIM", "DIFF", "DIFF1", "ANDOR", "ONE", "IFNE", "IFDEQ", "IFDNE":
			return true
		}
		return false
	})
}

// valkeyWords are the replies that Valkey 9.1 words in another way than Redis 8.6.
var valkeyWords = []struct {
	ours   *regexp.Regexp
	valkey string
}{
	{regexp.MustCompile(`script: [0-9a-f]{40}, on`), "script: on"},
	{regexp.MustCompile(`Unknown Redis command called`), "Unknown command called"},
	{regexp.MustCompile(`args calling Redis command`), "args calling command"},
	{regexp.MustCompile(`This Redis command is not allowed`), "This Valkey command is not allowed"},
	{regexp.MustCompile(`redis\.(register_function|log|setresp|set_repl|acl_check_cmd|call)`), "server.$1"},
	{regexp.MustCompile(`No matching script\. Please use EVAL\.`), "No matching script."},
	{regexp.MustCompile(`an ID, '\+', or '\$' must`), "an ID or '$$' must"},
	{regexp.MustCompile(`MULTI calls can not be nested`), "Command 'multi' not allowed inside a transaction"},
	{regexp.MustCompile(`WATCH inside MULTI is not allowed`), "Command 'watch' not allowed inside a transaction"},
	{regexp.MustCompile(` sanitize-payload`), ""},
	{regexp.MustCompile(`this redis lib call`), "this call"},
	{regexp.MustCompile(`Lua redis lib command arguments`), "Command arguments"},
}
