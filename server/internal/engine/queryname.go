package engine

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/values/score"
)

// The name of a live query is
//
//	__query@<db>[,<interval>]__:<command>
//
// where the interval is a duration such as 250ms, and the command is split into words as an
// inline command is.

const (
	queryPrefix  = "__query@"
	maxQueryName = 64 << 10
	// maxQueryInterval bounds the interval of a query.
	maxQueryInterval = 24 * time.Hour
)

// Errors of live queries.
const (
	errQueryForm     = "ERR a live query is a channel of the form __query@<db>__:<command> or __query@<db>,<interval>__:<command>"
	errQueryLong     = "ERR a live query has at most 65536 bytes"
	errQueryDB       = "ERR live query: DB index is out of range"
	errQueryInterval = "ERR live query: the interval is a duration of at most 24h, such as 250ms"
	errQueryQuotes   = "ERR live query: unbalanced quotes"
	errQueryNoKey    = "ERR live query: the command names no key"
	errQueryPattern  = "ERR live query: SORT_RO with a pattern reads keys that it does not name"
	errQueryCached   = "ERR live query: use EVAL_RO: a script in the cache may be gone later"
	errQueryBlocks   = "ERR live query: BLOCK is not allowed"
	errQueryMax      = "ERR live query: there are as many subscriptions as query-max allows"

	// ErrQueryPublish is the error of PUBLISH to the channel of a query.
	ErrQueryPublish = "ERR only the server sends messages to the channel of a live query"
	errQueryShard   = "ERR a live query is no shard channel: use SUBSCRIBE"
)

// parsedQuery is the name of a live query, parsed.
type parsedQuery struct {
	db       int
	interval time.Duration
	text     int // where the command begins in the name
	cmd      *Command
	names    int // words of its name
	keys     [][]byte
	members  [][]byte // of the key, if the command reads only those
	member   int      // where the name has the member whose rank is asked for, if it is there as it is
	moving   bool     // a word may be a bound that moves
}

// parseQuery parses and checks the name of a live query. refusal is the error of a subscription
// to it.
func (s *Session) parseQuery(name string) (q parsedQuery, refusal string) {
	srv := s.Engine
	if len(name) > maxQueryName {
		return q, errQueryLong
	}
	if refusal = q.parseHead(name, srv.Keys.Len()); refusal != "" {
		return q, refusal
	}
	argv, ok := protocol.SplitArgs(nil, []byte(name[q.text:]))
	switch {
	case !ok:
		return q, errQueryQuotes
	case len(argv) == 0:
		return q, errQueryForm
	case srv.Forwarding.forwarder != nil:
		return q, srv.queriesMoved()
	}
	q.cmd, q.names = srv.Table.Find(argv)
	if refusal = q.refusesCommand(srv, argv); refusal != "" {
		return q, refusal
	}
	at := acl.Selected{ID: q.db, Count: srv.Keys.Len()}
	if d, _ := s.Login.User.Permits(q.cmd.Access, argv, at); d != acl.Permitted {
		s.LogDenial(d, s.DenialContext(), q.cmd.Name, s.Login.User.Name)
		return q, "NOPERM " + d.Refusal(s.Login.User.Name, q.cmd.Name)
	}
	if srv.Cluster != nil {
		if _, wrong := s.Misplaced(q.cmd, argv); wrong != "" {
			return q, wrong
		}
	}
	if last := protocol.View(argv[len(argv)-1]); q.cmd.Ranks != 0 && len(argv) == 3 && strings.HasSuffix(name, last) {
		q.member = len(name) - len(last)
	}
	for _, arg := range argv[q.names:] {
		if _, moves := score.ParseTime(bytes.TrimPrefix(arg, []byte("("))); moves {
			q.moving = true
		}
	}
	return q, ""
}

// parseHead parses what is before the command.
func (q *parsedQuery) parseHead(name string, databases int) (refusal string) {
	head, _, ok := strings.Cut(name[len(queryPrefix):], "__:")
	if !ok {
		return errQueryForm
	}
	q.text = len(queryPrefix) + len(head) + len("__:")
	number, interval, has := strings.Cut(head, ",")
	db, ok := protocol.ParseInt(protocol.BytesOf(number))
	switch {
	case !ok:
		return errQueryForm
	case db < 0 || db >= int64(databases):
		return errQueryDB
	}
	q.db = int(db)
	if has {
		d, err := time.ParseDuration(interval)
		if err != nil || d < 0 || d > maxQueryInterval {
			return errQueryInterval
		}
		q.interval = d
	}
	return ""
}

// refusesCommand returns why a command cannot be a live query, or "". It sets the keys.
func (q *parsedQuery) refusesCommand(srv *Engine, argv [][]byte) string {
	switch {
	case q.cmd == nil:
		return srv.unknownCommand(argv)
	case q.cmd.Run == nil || q.cmd.ByArg != nil && len(argv) > 1:
		return "ERR live query: " + strings.ToUpper(q.cmd.Name) + " has no such subcommand"
	case !q.cmd.arityOK(len(argv)):
		return q.cmd.WrongArity()
	}
	if reason := q.cmd.unfitAsQuery(argv); reason != "" {
		return reason
	}
	var few [8]protocol.KeyRef
	for _, ref := range q.cmd.Spec.AppendKeys(few[:0], argv) {
		if key := argv[ref.Index]; !slices.ContainsFunc(q.keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
			q.keys = append(q.keys, key)
		}
	}
	if len(q.keys) == 0 {
		return errQueryNoKey
	}
	if q.cmd.Named > 0 {
		q.members = argv[q.cmd.Named:]
	}
	return ""
}

// unfitAsQuery returns why the reply to a command cannot be followed, or "".
func (c *Command) unfitAsQuery(argv [][]byte) string {
	flags := c.Spec.Flags()
	name := strings.ToUpper(strings.ReplaceAll(c.Name, "|", " "))
	switch {
	case !flags.Has(protocol.ReadOnly) || flags.Has(protocol.Write):
		return "ERR live query: " + name + " is not a command that only reads"
	case c.Varies():
		return "ERR live query: the reply to " + name + " differs for the same data"
	case c.ScriptFlags != nil && strings.HasPrefix(c.Name, "evalsha"):
		return errQueryCached
	}
	for i, arg := range argv {
		switch {
		case c.KeysBy == protocol.KeysOfSort && i+1 < len(argv) && (protocol.EqualFold(arg, "BY") || protocol.EqualFold(arg, "GET")) && bytes.IndexByte(argv[i+1], '*') >= 0:
			return errQueryPattern
		case flags.Has(protocol.Blocking) && protocol.EqualFold(arg, "STREAMS"):
			return ""
		case flags.Has(protocol.Blocking) && protocol.EqualFold(arg, "BLOCK"):
			return errQueryBlocks
		}
	}
	return ""
}

// Varies reports whether the reply differs for the same data: it is random, shows time that
// passes, or the way of a cursor.
func (c *Command) Varies() bool {
	return c.Touches || slices.Contains(strings.Fields(c.Tips), "nondeterministic_output")
}
