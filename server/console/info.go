package console

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/replyjson"
)

// infoSection is a section of INFO.
type infoSection struct {
	name   string
	fields []infoField
}

// infoField is a line of INFO.
type infoField struct{ name, value string }

// info is the reply of INFO: its sections in order, and their fields by name.
type info struct {
	sections []infoSection
	values   map[string]string
}

// parseInfo parses the reply of INFO. It takes O(n).
func parseInfo(text string) *info {
	in := &info{values: map[string]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if name, is := strings.CutPrefix(line, "# "); is {
			in.sections = append(in.sections, infoSection{name: name})
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || len(in.sections) == 0 {
			continue
		}
		s := &in.sections[len(in.sections)-1]
		s.fields = append(s.fields, infoField{name, value})
		in.values[name] = value
	}
	return in
}

// section returns the fields of a section.
func (in *info) section(name string) []infoField {
	for _, s := range in.sections {
		if s.name == name {
			return s.fields
		}
	}
	return nil
}

// number returns the value of a field, 0 if it is none.
func (in *info) number(name string) float64 {
	f, _ := strconv.ParseFloat(in.values[name], 64)
	return f
}

// parts parses "calls=1,usec=73". It returns nil if the value has another form.
func parts(value string) []infoField {
	var list []infoField
	for part := range strings.SplitSeq(value, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil
		}
		list = append(list, infoField{name, value})
	}
	return list
}

// part returns the number with a name in "calls=1,usec=73".
func part(value, name string) float64 {
	for _, p := range parts(value) {
		if p.name == name {
			f, _ := strconv.ParseFloat(p.value, 64)
			return f
		}
	}
	return 0
}

// askTime is the time within which a server that serves answers.
const askTime = 3 * time.Second

// askInfo returns INFO with all permissions. While data are loaded, it is an error.
func (c *Console) askInfo(ctx context.Context, sections ...any) (*info, error) {
	reply, err := c.ask(ctx, "INFO", sections...)
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	return parseInfo(text), nil
}

// info returns INFO with the permissions of a user.
func (c *conn) info() (*info, error) {
	reply, err := c.must("INFO", "everything")
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	return parseInfo(text), nil
}

// varz serves GET /varz.
func (c *Console) varz(w http.ResponseWriter, r *http.Request) {
	nc, _, err := c.open(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer nc.close()
	in, err := nc.info()
	if err != nil {
		c.refuseSource(w, r, err)
		return
	}
	object := map[string]map[string]any{}
	for _, s := range in.sections {
		fields := map[string]any{}
		for _, f := range s.fields {
			fields[f.name] = infoValue(f.value)
		}
		object[s.name] = fields
	}
	respond(w, object)
}

// respond writes a value as JSON.
func respond(w http.ResponseWriter, v any) { respondStatus(w, http.StatusOK, v) }

// respondStatus writes a status and a value as JSON.
func respondStatus(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: a value has no JSON: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	newWriter(w).Write(append(b, '\n'))
}

// infoValue converts a value of INFO: a number, an object of values, or text.
func infoValue(value string) any {
	if f, err := strconv.ParseFloat(value, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) && (value == "0" || !strings.HasPrefix(value, "0") || strings.HasPrefix(value, "0.")) {
		return json.Number(value)
	}
	list := parts(value)
	if list == nil {
		return strings.ToValidUTF8(value, "\uFFFD")
	}
	object := map[string]any{}
	for _, p := range list {
		object[p.name] = infoValue(p.value)
	}
	return object
}

// plain converts a reply for JSON: maps to objects, strings that are no UTF-8 to
// {"base64": …}.
func plain(v any) any {
	switch v := v.(type) {
	case string:
		return json.RawMessage(replyjson.String(v))
	case protocol.Status:
		return plain(string(v))
	case protocol.ReplyError:
		return map[string]any{"error": plain(string(v))}
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case protocol.Map:
		object := map[string]any{}
		for _, p := range v {
			name, _ := p.Key.(string)
			object[strings.ToValidUTF8(name, "\uFFFD")] = plain(p.Value)
		}
		return object
	}
	return v
}
