package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/zsetd/zsetd/server"
)

// The formats of the log, by the parameter log-format. The default is that of
// Redis, for which tools and operators have patterns:
//
//	4242:M 22 Nov 2026 13:07:13.883 * Ready to accept connections tcp addr=127.0.0.1:6379
//
// It is the process ID, M for a master or S for a replica, the local time, the level (. debug,
//   - verbose, * notice, # warning and error), the message, and its attributes. A
// stack comes last, on lines of its own. All other unprintable characters are
// escaped, so that clients cannot forge lines.

// newLogHandler returns a handler that writes to out in a format: logfmt, json or,
// by default, Redis's, which has the role of the server.
func newLogHandler(out io.Writer, form string, level slog.Leveler, role *logRole) slog.Handler {
	switch form {
	case "logfmt":
		return slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})
	case "json":
		return slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level})
	}
	return &redisLog{out: &logOutput{out: out}, level: level, role: role, head: strconv.AppendInt(nil, int64(os.Getpid()), 10)}
}

// redisLog writes records in Redis's format.
type redisLog struct {
	out   *logOutput
	level slog.Leveler
	role  *logRole
	head  []byte // the process ID
	attrs []byte // the attributes of WithAttrs, formatted
	group string // the prefix of names, with its dot
}

// logRole is the role of the server in log entries.
type logRole struct {
	replicaOf string                        // the parameter replicaof
	server    atomic.Pointer[server.Server] // nil until there is one: the parameter decides
}

// sign returns Redis's sign of the role. Signs C and X do not occur: there are no child
// processes, and a Sentinel is a program of its own.
func (r *logRole) sign() byte {
	replica := len(strings.Fields(r.replicaOf)) == 2 && !strings.EqualFold(r.replicaOf, "no one")
	if srv := r.server.Load(); srv != nil {
		replica = srv.IsReplica()
	}
	if replica {
		return 'S'
	}
	return 'M'
}

// logOutput is the state that all handlers of a log share.
type logOutput struct {
	sync.Mutex
	out  io.Writer
	line []byte // the entry under construction
}

// stackKey is the attribute that keeps its line breaks.
const stackKey = "stack"

func (h *redisLog) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

func (h *redisLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = append([]byte(nil), h.attrs...)
	for _, a := range attrs {
		next.attrs = appendAttr(next.attrs, h.group, a)
	}
	return &next
}

func (h *redisLog) WithGroup(name string) slog.Handler {
	next := *h
	if name != "" {
		next.group += name + "."
	}
	return &next
}

func (h *redisLog) Handle(_ context.Context, r slog.Record) error {
	h.out.Lock()
	defer h.out.Unlock()
	b := append(h.out.line[:0], h.head...)
	b = append(b, ':', h.role.sign(), ' ')
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	b = r.Time.Local().AppendFormat(b, "02 Jan 2006 15:04:05.000")
	b = append(b, ' ', levelSign(r.Level), ' ')
	b = appendMessage(b, r.Message)
	b = append(b, h.attrs...)
	stack := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == stackKey && a.Value.Kind() == slog.KindString {
			stack = a.Value.String()
		} else {
			b = appendAttr(b, h.group, a)
		}
		return true
	})
	b = append(b, '\n')
	if stack != "" {
		b = append(b, stack...)
		if stack[len(stack)-1] != '\n' {
			b = append(b, '\n')
		}
	}
	if h.out.line = b; cap(b) > 16<<10 {
		h.out.line = nil
	}
	_, err := h.out.out.Write(b)
	return err
}

// levelSign returns Redis's sign of a level.
func levelSign(level slog.Level) byte {
	switch {
	case level <= slog.LevelDebug:
		return '.'
	case level < slog.LevelInfo:
		return '-'
	case level < slog.LevelWarn:
		return '*'
	}
	return '#'
}

// appendMessage appends a message; it escapes characters that would end or hide the
// line.
func appendMessage(b []byte, message string) []byte {
	for i, r := range message {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			b = utf8.AppendRune(b, r)
			continue
		}
		_, n := utf8.DecodeRuneInString(message[i:])
		quoted := strconv.Quote(message[i : i+n])
		b = append(b, quoted[1:len(quoted)-1]...)
	}
	return b
}

// appendAttr appends " name=value". A value of more than one word is quoted.
func appendAttr(b []byte, prefix string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range v.Group() {
			b = appendAttr(b, prefix, inner)
		}
		return b
	}
	if a.Equal(slog.Attr{}) {
		return b
	}
	b = append(b, ' ')
	b = appendWord(b, prefix+a.Key)
	b = append(b, '=')
	switch v.Kind() {
	case slog.KindInt64:
		return strconv.AppendInt(b, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(b, v.Uint64(), 10)
	case slog.KindFloat64:
		return strconv.AppendFloat(b, v.Float64(), 'g', -1, 64)
	case slog.KindBool:
		return strconv.AppendBool(b, v.Bool())
	case slog.KindTime:
		return v.Time().AppendFormat(b, time.RFC3339Nano)
	}
	return appendWord(b, v.String())
}

func appendWord(b []byte, s string) []byte {
	if isWord(s) {
		return append(b, s...)
	}
	return strconv.AppendQuote(b, s)
}

// isWord reports whether s needs no quotes.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	return s != ""
}
