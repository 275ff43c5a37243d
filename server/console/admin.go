package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
	"github.com/zsetd/zsetd/server/internal/base/replyjson"
)

// parameterFacts is a parameter of the server in the response of GET /parameters.
type parameterFacts struct {
	Name     string   `json:"name"`
	Default  string   `json:"default"`
	Accepts  string   `json:"accepts,omitempty"`
	Values   []string `json:"values,omitempty"`
	Doc      string   `json:"doc"`
	Fixed    bool     `json:"fixed,omitempty"`    // CONFIG SET cannot change it
	NoEffect bool     `json:"noeffect,omitempty"` // it is accepted only
}

// parameters serves GET /parameters: what PARAMETERS.md says of each one, without the values of
// this server, which CONFIG GET has.
func (c *Console) parameters(w http.ResponseWriter, r *http.Request) {
	if _, err := c.currentUser(r); err != nil {
		c.refuse(w, r, err)
		return
	}
	list := []parameterFacts{}
	for _, p := range server.Parameters() {
		list = append(list, parameterFacts{p.Name, p.Default, p.Accepts, p.Values, p.Doc, p.Fixed, p.NoEffect})
	}
	respond(w, list)
}

// blocked serves GET /blocked: the keys that clients wait for, by their IDs, for users who may see
// the clients and, by MONITOR, names of all keys.
func (c *Console) blocked(w http.ResponseWriter, r *http.Request) {
	who, err := c.currentUser(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	for _, command := range [][]any{{"client", "list"}, {"monitor"}} {
		if err := c.mayRun(r, who, command); err != nil {
			fail(w, http.StatusForbidden, err.Error())
			return
		}
	}
	object := map[string]any{}
	for id, keys := range c.srv.Blocked() {
		list := []any{}
		for _, key := range keys {
			list = append(list, plain(key))
		}
		object[strconv.FormatInt(id, 10)] = list
	}
	respond(w, object)
}

// errBackupRuns is the error of a second backup at a time: each has a temporary file.
var errBackupRuns = errors.New("ERR another backup is sent: try again when it has ended")

// backup serves POST /backup. It is no GET, which a link on a page of another site could send.
func (c *Console) backup(w http.ResponseWriter, r *http.Request) {
	who, err := c.currentUser(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	// A backup saves, and has the data of all databases, as a transfer to a replica has them.
	for _, command := range [][]any{{"bgsave"}, {"psync", "?", "-1"}} {
		if err := c.mayRun(r, who, command); err != nil {
			fail(w, http.StatusForbidden, err.Error())
			return
		}
	}
	if !c.backups.TryLock() {
		fail(w, http.StatusTooManyRequests, errBackupRuns.Error())
		return
	}
	defer c.backups.Unlock()
	d := &download{w: newWriter(w), header: w.Header(), name: "zsetd-" + c.srv.Now().UTC().Format("20060102T150405Z") + ".db"}
	switch _, err := c.srv.Backup(r.Context(), d); {
	case err == nil:
	case d.begun:
		panic(http.ErrAbortHandler) // an incomplete file must not look like a complete one
	default:
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // the backup may have taken longer
		fail(w, http.StatusServiceUnavailable, "ERR "+err.Error())
	}
}

// mayRun returns an error if a user may not run a command, given by the name of Redis.
func (c *Console) mayRun(r *http.Request, user string, command []any) error {
	name, _ := command[0].(string)
	called := c.srv.CommandName(name)
	if called == "" {
		return fmt.Errorf("NOPERM the command %s is disabled", strings.ToUpper(name))
	}
	reply, err := c.ask(r.Context(), "ACL", append([]any{"DRYRUN", user, called}, command[1:]...)...)
	if err != nil {
		return err
	}
	if reply != protocol.Status("OK") {
		return fmt.Errorf("NOPERM %v", reply)
	}
	return nil
}

// download is the writer of a file that a browser keeps.
type download struct {
	w      *writer
	header http.Header
	name   string
	begun  bool
}

// Write implements io.Writer.
func (d *download) Write(p []byte) (int, error) {
	if !d.begun {
		d.begun = true
		d.header.Set("Content-Type", "application/octet-stream")
		d.header.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	}
	return d.w.Write(p)
}

// Bounds of POST /monitor.
const (
	monitorSeconds = 60
	monitorLines   = 10_000
)

// monitor serves POST /monitor: the commands of all clients for a time, as lines of JSON.
func (c *Console) monitor(w http.ResponseWriter, r *http.Request) {
	bound := func(name string, initial, most int) int {
		n, err := strconv.Atoi(cmp.Or(r.URL.Query().Get(name), strconv.Itoa(initial)))
		if err != nil || n < 1 || n > most {
			return 0
		}
		return n
	}
	seconds, lines := bound("seconds", 10, monitorSeconds), bound("count", 1000, monitorLines)
	if seconds == 0 || lines == 0 {
		fail(w, http.StatusBadRequest, fmt.Sprintf("ERR seconds are 1 to %d, and count is 1 to %d", monitorSeconds, monitorLines))
		return
	}
	nc, who, err := c.open(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer nc.close()
	leave, err := c.admitStream(r, who)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer leave()
	if _, err := nc.must("MONITOR"); err != nil {
		c.refuseSource(w, r, err)
		return
	}
	defer time.AfterFunc(time.Duration(seconds)*time.Second, nc.close).Stop()
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, control := newWriter(w), http.NewResponseController(w)
	control.Flush() // the client sees that it has begun
	var b []byte
	for n := 0; n < lines; n++ {
		v, err := nc.reply()
		if err != nil {
			break // the time is over
		}
		line, _ := v.(protocol.Status)
		b = append(append(b, replyjson.String(string(line))...), '\n')
		if nc.r.Buffered() == 0 || len(b) > writeChunk {
			if _, err := out.Write(b); err != nil || control.Flush() != nil {
				return
			}
			b = b[:0]
		}
	}
	out.Write(b) // an error is that of the connection
}
