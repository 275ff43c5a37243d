package differential

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// opponent returns what random commands are compared with: see -differential.judge.
func opponent() string { return judge.Opponent(*differentialJudge) }

// opponentKnows reports whether the server that random commands are compared with has what
// came with a version of Redis.
func opponentKnows(since string) bool {
	if opponent() == "valkey" {
		return since <= "7.2.9"
	}
	return since <= opponent()+".9"
}

// startCompared starts the server that random commands are compared with.
func startCompared(t *testing.T) (dial func() net.Conn) {
	t.Helper()
	return judge.StartOpponent(t, opponent())
}

// dialect is the dialect of the server that zsetd is compared with.
func dialect() string { return judge.Dialect(opponent()) }

// differsInValkey reports whether a command is left out of random commands, because Valkey
// is the server that zsetd is compared with, and has another reply by design: ACL LIST and GETUSER
// without sanitize-payload and with databases, and commands of a cluster without one.
func differsInValkey(name string) bool {
	if opponent() != "valkey" {
		return false
	}
	return name == "acl|list" || name == "acl|getuser" || name == "lolwut" || strings.HasPrefix(name, "cluster")
}

// lacksInValkey reports whether Valkey is the server that zsetd is compared with, and lacks
// a parameter.
func lacksInValkey(parameter string) bool { return opponent() == "valkey" && parameter == "dynamic-hz" }

// differsOnlyInValkey reports whether a line is left out, because Valkey is the server that
// zsetd is compared with: it has a word of options that Redis has since 8.0, or
// a number in hexadecimal digits, a type of BITFIELD with a NUL, or more arguments than
// CLIENT PAUSE and UNBLOCK take, or a negative offset (see differences), or a line end that FUNCTION LIST writes into its error there.
func differsOnlyInValkey(argv []string) bool {
	if opponent() != "valkey" {
		return false
	}
	if len(argv) > 4 && strings.EqualFold(argv[0], "client") && (strings.EqualFold(argv[1], "pause") || strings.EqualFold(argv[1], "unblock")) {
		return true
	}
	if i := slices.IndexFunc(argv, func(w string) bool { return strings.EqualFold(w, "LIMIT") }); i > 0 && i+1 < len(argv) && strings.HasPrefix(argv[i+1], "-") {
		return true
	}
	if judge.FullName(argv) == "function|list" && strings.Contains(strings.Join(argv, " "), "\r\n") {
		return true
	}
	return slices.ContainsFunc(argv, func(word string) bool {
		switch strings.ToUpper(word) {
		case "KEEPREF", "DELREF", "ACKED", "IDMP", "IDMPAUTO", "CLAIM", "DIFF", "DIFF1", "ANDOR", "ONE", "IFNE", "IFDEQ", "IFDNE", "0X1P3", "0X10", "I64\x00":
			return true
		}
		return false
	})
}

// client is a client of a server.
type client struct {
	*judge.Conn
	owes int // commands sent whose reply is still to come
}
