package console

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/zsetd/zsetd/protocol"
)

const (
	logSize    = 200     // records of the log
	logEntries = "100"   // entries of the slow log and of ACL LOG
	logText    = 4 << 10 // bytes of a record
)

// Log keeps the last 200 records of a logger, for GET /log. Its zero value is empty. All
// methods are safe for concurrent use.
//
//	var kept console.Log
//	log := slog.New(kept.Handler(slog.NewTextHandler(os.Stdout, nil)))
//	srv, err := server.New(server.Options{Logger: log})
//	...
//	c, err := console.New(srv, console.Options{Logger: log, Log: &kept})
type Log struct {
	mu      sync.Mutex
	records []logRecord
}

// logRecord is a record of a log.
type logRecord struct {
	T     int64  `json:"t"` // milliseconds since 1970
	Level string `json:"level"`
	Text  string `json:"text"`
}

// Handler returns a handler that keeps the records from slog.LevelInfo on, and passes those
// that next is enabled for to next.
func (l *Log) Handler(next slog.Handler) slog.Handler { return &logHandler{log: l, next: next} }

// logHandler is a slog.Handler.
type logHandler struct {
	log    *Log
	next   slog.Handler
	attrs  string // of WithAttrs, formatted
	groups string // of WithGroup, each with a dot
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		var b strings.Builder
		b.WriteString(r.Message)
		b.WriteString(h.attrs)
		r.Attrs(func(a slog.Attr) bool {
			appendAttr(&b, h.groups, a)
			return true
		})
		text := strings.ToValidUTF8(b.String()[:min(b.Len(), logText)], "\uFFFD")
		h.log.mu.Lock()
		if len(h.log.records) >= logSize {
			h.log.records = slices.Delete(h.log.records, 0, 1)
		}
		h.log.records = append(h.log.records, logRecord{r.Time.UnixMilli(), r.Level.String(), text})
		h.log.mu.Unlock()
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

// appendAttr writes " name=value".
func appendAttr(b *strings.Builder, prefix string, a slog.Attr) {
	if a.Equal(slog.Attr{}) {
		return
	}
	b.WriteString(" " + prefix + a.Key + "=" + a.Value.String())
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		appendAttr(&b, h.groups, a)
	}
	return &logHandler{h.log, h.next.WithAttrs(attrs), h.attrs + b.String(), h.groups}
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.log, h.next.WithGroup(name), h.attrs, h.groups + name + "."}
}

// list returns the records, the newest first.
func (l *Log) list() []logRecord {
	if l == nil {
		return []logRecord{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	list := append([]logRecord{}, l.records...)
	slices.Reverse(list)
	return list
}

// slowCommand is an entry of the slow log.
type slowCommand struct {
	ID     any   `json:"id"`
	T      int64 `json:"t"` // milliseconds since 1970
	Us     any   `json:"us"`
	Args   any   `json:"args"`
	Client any   `json:"addr"`
	Name   any   `json:"name"`
}

// slowEvent is an event of LATENCY LATEST.
type slowEvent struct {
	Event any   `json:"event"`
	T     int64 `json:"t"` // milliseconds since 1970
	Ms    any   `json:"ms"`
	Max   any   `json:"max"` // ms
}

// logs serves GET /log. A part that the user may not read is empty, and errors has the reason.
func (c *Console) logs(w http.ResponseWriter, r *http.Request) {
	nc, _, err := c.open(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer nc.close()
	slow, latency, denied, events := []slowCommand{}, []slowEvent{}, []any{}, []logRecord{}
	failures := map[string]string{}
	ask := func(part string, args ...string) []any {
		reply, err := nc.must(args...)
		if err != nil {
			failures[part] = err.Error()
		}
		list, _ := reply.([]any)
		return list
	}
	for _, entry := range ask("slowlog", "SLOWLOG", "GET", logEntries) {
		if f, _ := entry.([]any); len(f) >= 6 {
			slow = append(slow, slowCommand{f[0], ms(f[1]), f[2], plain(f[3]), plain(f[4]), plain(f[5])})
		}
	}
	for _, entry := range ask("latency", "LATENCY", "LATEST") {
		if f, _ := entry.([]any); len(f) >= 4 {
			latency = append(latency, slowEvent{plain(f[0]), ms(f[1]), f[2], f[3]})
		}
	}
	for _, entry := range ask("acl", "ACL", "LOG", logEntries) {
		if m, ok := entry.(protocol.Map); ok {
			denied = append(denied, plain(m))
		}
	}
	if failures["slowlog"] == "" {
		events = c.o.Log.list()
	}
	respond(w, map[string]any{"slowlog": slow, "latency": latency, "acl": denied, "events": events, "errors": failures})
}
