package console

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zsetd/zsetd/server/internal/base/replyjson"

	"github.com/zsetd/zsetd/server"
)

// Errors of POST /command.
var (
	errContentType = errors.New("ERR the content type of a command is application/json")
	errBody        = errors.New("ERR the body is no JSON array of strings, nor an array of such arrays")
	errUTF8        = errors.New(`ERR the body is no UTF-8: send other bytes as {"base64": "…"}`)
	errSurrogate   = errors.New(`ERR the body has an escape of half a character: send other bytes as {"base64": "…"}`)
	errEmpty       = errors.New("ERR empty command")
	errArguments   = errors.New("ERR a request has at most 1048576 arguments")
)

// command serves POST /command.
func (c *Console) command(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, errContentType.Error())
		return
	}
	nc, _, err := c.open(r) // first of all: only users may send a large body
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	defer nc.close()
	limit, err := c.bodyLimit(r)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, "ERR "+err.Error())
		return
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, newBody(w, r), limit))
	if err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		fail(w, status, "ERR "+err.Error())
		return
	}
	var conditional transaction
	var commands [][]string
	var pipeline bool
	if isObject := bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("{")); isObject {
		conditional, err = c.parseTransaction(b)
	} else {
		commands, pipeline, err = c.parseCommands(b)
	}
	if err == nil && r.FormValue("db") != "" {
		err = nc.selectDB(r.FormValue("db"))
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	types := r.FormValue("types") == "1"
	if commands == nil {
		c.transact(r.Context(), w, nc, &conditional, types)
		return
	}
	c.execute(w, nc, commands, pipeline, types)
}

// bodyLimit returns the largest body of a request in bytes: client-query-buffer-limit. The
// server is only asked when the body may be larger than the smallest value of that.
func (c *Console) bodyLimit(r *http.Request) (int64, error) {
	const smallest = 1 << 20
	if 0 <= r.ContentLength && r.ContentLength <= smallest {
		return smallest, nil
	}
	value, err := c.parameter(r.Context(), "client-query-buffer-limit")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(value, 10, 64)
}

// selectDB chooses the database of a connection.
func (c *conn) selectDB(number string) error {
	reply, err := c.do("SELECT", number)
	if refused, is := reply.(error); is && err == nil {
		err = refused
	}
	return err
}

// execute sends commands and writes their replies as JSON.
func (c *Console) execute(w http.ResponseWriter, nc *conn, commands [][]string, pipeline, types bool) {
	// The replies of the first commands may come before the last command is sent.
	c.work.Go(func() {
		out := bufio.NewWriter(nc.nc)
		var b []byte
		for _, args := range commands {
			b = appendCommand(b[:0], args)
			if _, err := out.Write(b); err != nil {
				return // the reader notices it
			}
		}
		out.Flush()
	})
	c.respondAll(w, nc, len(commands), pipeline, types)
}

// respondAll responds with the replies of n commands, an array of them if they are a pipeline.
func (c *Console) respondAll(w http.ResponseWriter, nc *conn, n int, pipeline, types bool) {
	body := bufio.NewWriter(newWriter(w))
	t := &replyjson.Transcoder{R: nc.r, W: body, Types: types}
	failed, err := t.IsError()
	if err != nil {
		fail(w, http.StatusBadRequest, "ERR the server has closed the connection: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if failed && !pipeline {
		w.WriteHeader(http.StatusBadRequest)
	}
	if pipeline {
		body.WriteByte('[')
	}
	for i := range n {
		if i > 0 {
			body.WriteByte(',')
		}
		if err := t.Response(); err != nil {
			panic(http.ErrAbortHandler) // an incomplete body must not look like a complete one
		}
	}
	if pipeline {
		body.WriteByte(']')
	}
	body.WriteByte('\n')
	if body.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
}

// maxArguments bounds the arguments of a request, as the server bounds those of a command.
const maxArguments = 1 << 20

// parseCommands parses the body of POST /command: one command, or a pipeline of commands. Its
// memory is proportional to that of the body.
func (c *Console) parseCommands(b []byte) (commands [][]string, pipeline bool, err error) {
	if !utf8.Valid(b) {
		return nil, false, errUTF8
	}
	left := maxArguments
	var args []string
	err = eachElement(b, func(element json.RawMessage) error {
		if len(commands) == 0 && len(args) == 0 {
			pipeline = element[0] == '['
		}
		if pipeline {
			command, err := c.parseCommand(element, &left)
			commands = append(commands, command)
			return err
		}
		args, err = appendArgument(args, element, &left)
		return err
	})
	switch {
	case err != nil:
		return nil, false, err
	case pipeline:
		return commands, true, nil
	}
	return [][]string{args}, false, c.allowed(args)
}

// parseCommand returns the arguments of a command of a pipeline.
func (c *Console) parseCommand(b []byte, left *int) (args []string, err error) {
	err = eachElement(b, func(element json.RawMessage) error {
		args, err = appendArgument(args, element, left)
		return err
	})
	if err == nil {
		err = c.allowed(args)
	}
	return args, err
}

// eachElement calls yield with the elements of a JSON array.
func eachElement(b []byte, yield func(json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errBody
	}
	for d.More() {
		var element json.RawMessage
		if d.Decode(&element) != nil {
			return errBody
		}
		if err := yield(element); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errBody
	}
	if _, err := d.Token(); err != io.EOF {
		return errBody
	}
	return nil
}

// appendArgument appends an argument, unless there are too many.
func appendArgument(args []string, element json.RawMessage, left *int) ([]string, error) {
	if *left--; *left < 0 {
		return nil, errArguments
	}
	arg, err := parseArgument(element)
	return append(args, arg), err
}

// parseArgument converts a string, a number or {"base64": "…"}.
func parseArgument(element json.RawMessage) (arg string, err error) {
	switch element[0] {
	case '"':
		if json.Unmarshal(element, &arg) != nil {
			return "", errBody
		}
		if strings.Count(arg, "\uFFFD") != bytes.Count(element, []byte("\uFFFD"))+bytes.Count(bytes.ToLower(element), []byte(`\ufffd`)) {
			return "", errSurrogate
		}
		return arg, nil
	case '{':
		var object map[string]string
		if json.Unmarshal(element, &object) != nil || len(object) != 1 {
			return "", errBody
		}
		text, ok := object["base64"]
		b, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil {
			return "", errBody
		}
		return string(b), nil
	case 'n', 't', 'f', '[':
		return "", errBody
	}
	return string(element), nil // a number, as it is written
}

// allowed returns an error for a command that does not fit a request: one that takes over its
// connection, has no reply, or authenticates it past the limit of failed logins. It knows them
// by the names that they have after rename-command.
func (c *Console) allowed(args []string) error {
	if len(args) == 0 {
		return errEmpty
	}
	called := strings.ToLower(args[0])
	name := c.refused[called]
	switch name {
	case "":
		return nil
	case "sync", "psync", "replconf":
		return fmt.Errorf("ERR %s is for connections of replicas", strings.ToUpper(called))
	case "auth", "hello":
		return fmt.Errorf("ERR %s is not for requests: log in, or send the header Authorization", strings.ToUpper(called))
	case "client":
		if len(args) > 1 && strings.EqualFold(args[1], "REPLY") {
			return errors.New("ERR CLIENT REPLY is not for requests: each has its response")
		}
		return nil
	}
	return fmt.Errorf("ERR %s takes over its connection: GET /events streams messages and events", strings.ToUpper(called))
}

// refusedCommands returns the commands that do not fit a request, by the names that clients
// call them.
func refusedCommands(srv *server.Server) map[string]string {
	list := map[string]string{}
	for _, name := range []string{"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "monitor",
		"sync", "psync", "replconf", "auth", "hello", "client"} {
		if called := srv.CommandName(name); called != "" {
			list[called] = name
		}
	}
	return list
}
