package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/replyjson"
)

// transaction is the body of POST /command that is an object: commands that run in a
// transaction if the replies of others are those that the client has seen.
type transaction struct {
	watch      []string
	conditions []condition
	commands   [][]string
}

// condition is a command and its reply: a string, nil, or a list of such values. Numbers are
// as they are written.
type condition struct {
	args []string
	want any
}

// Errors of a transaction.
var (
	errTransaction = errors.New(`ERR the body is no object {"watch": [key, …], "if": [[command, value], …], "then": [command, …]}`)
	errQueued      = errors.New("ERR a command of a transaction was not queued")
	errBusy        = errors.New("ERR the keys change all the time: nothing was changed")
)

// maxAttempts bounds how often a transaction is tried whose keys change while its conditions
// hold.
const maxAttempts = 100

// parseTransaction parses the body of a transaction. Its memory is proportional to that of the
// body.
func (c *Console) parseTransaction(b []byte) (t transaction, err error) {
	if !utf8.Valid(b) {
		return t, errUTF8
	}
	var parts struct{ Watch, If, Then []json.RawMessage }
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if d.Decode(&parts) != nil || d.More() || len(parts.Watch) == 0 || len(parts.If) == 0 || len(parts.Then) == 0 {
		return t, errTransaction
	}
	left := maxArguments
	for _, element := range parts.Watch {
		if t.watch, err = appendArgument(t.watch, element, &left); err != nil {
			return t, err
		}
	}
	for _, element := range parts.If {
		var pair []json.RawMessage
		if json.Unmarshal(element, &pair) != nil || len(pair) != 2 {
			return t, errTransaction
		}
		one := condition{}
		if one.args, err = c.parseStep(pair[0], &left); err != nil {
			return t, err
		}
		if one.want, err = parseValue(pair[1], &left, maxValueDepth); err != nil {
			return t, err
		}
		t.conditions = append(t.conditions, one)
	}
	for _, element := range parts.Then {
		args, err := c.parseStep(element, &left)
		if err != nil {
			return t, err
		}
		t.commands = append(t.commands, args)
	}
	return t, nil
}

// parseStep returns the arguments of a command of a transaction, which must not end it.
func (c *Console) parseStep(b []byte, left *int) ([]string, error) {
	args, err := c.parseCommand(b, left)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"multi", "exec", "discard", "watch", "unwatch", "reset", "quit"} {
		if strings.EqualFold(args[0], c.srv.CommandName(name)) {
			return nil, fmt.Errorf("ERR %s is not for transactions on conditions", strings.ToUpper(args[0]))
		}
	}
	return args, nil
}

// maxValueDepth bounds the nesting of the value of a condition.
const maxValueDepth = 8

// parseValue converts the value of a condition, nested up to depth.
func parseValue(b json.RawMessage, left *int, depth int) (any, error) {
	switch {
	case string(b) == "null":
		return nil, nil
	case depth == 0:
		return nil, errTransaction
	case b[0] != '[':
		if *left--; *left < 0 {
			return nil, errArguments
		}
		return parseArgument(b)
	}
	list := []any{}
	err := eachElement(b, func(element json.RawMessage) error {
		v, err := parseValue(element, left, depth-1)
		list = append(list, v)
		return err
	})
	return list, err
}

// holds reports whether a reply is the value of a condition.
func holds(want, reply any) bool {
	list, isList := want.([]any)
	text, isText := want.(string)
	switch reply := reply.(type) {
	case nil:
		return want == nil
	case string:
		return isText && text == reply
	case protocol.Status:
		return isText && text == string(reply)
	case int64:
		return isText && text == strconv.FormatInt(reply, 10)
	case float64:
		f, err := strconv.ParseFloat(text, 64)
		return isText && err == nil && math.Float64bits(f) == math.Float64bits(reply)
	case []any:
		if !isList || len(list) != len(reply) {
			return false
		}
		for i := range list {
			if !holds(list[i], reply[i]) {
				return false
			}
		}
		return true
	}
	return false
}

// transact runs a transaction and responds. The keys are watched while the conditions are
// checked, so that no other client changes them between that and the commands; if one has, the
// conditions are checked again.
func (c *Console) transact(ctx context.Context, w http.ResponseWriter, nc *conn, t *transaction, types bool) {
	for range maxAttempts {
		if _, err := nc.must(append([]string{"WATCH"}, t.watch...)...); err != nil {
			c.refuseTransaction(w, err)
			return
		}
		for i, one := range t.conditions {
			reply, err := nc.ask(one.args...)
			if refused, is := reply.(protocol.ReplyError); is && !strings.HasPrefix(string(refused), "WRONGTYPE") {
				err = refused
			}
			if err != nil {
				c.refuseTransaction(w, err)
				return
			}
			if !holds(one.want, reply) {
				respondStatus(w, http.StatusConflict, map[string]any{
					"error": "CONFLICT the reply of a condition is another value: nothing was changed", "condition": i, "now": plain(reply)})
				return
			}
		}
		done, err := c.commit(w, nc, t, types)
		if err != nil {
			c.refuseTransaction(w, err)
			return
		}
		if done || ctx.Err() != nil {
			return
		}
	}
	c.refuseTransaction(w, errBusy)
}

// refuseTransaction responds that nothing was changed.
func (c *Console) refuseTransaction(w http.ResponseWriter, err error) {
	if _, is := errors.AsType[protocol.ReplyError](err); !is && err != errBusy && err != errQueued {
		err = fmt.Errorf("ERR the server has closed the connection: %w", err)
	}
	fail(w, http.StatusBadRequest, err.Error())
}

// commit runs the commands of a transaction and responds with their replies. It returns false,
// without a response, if a key has changed since it was watched.
func (c *Console) commit(w http.ResponseWriter, nc *conn, t *transaction, types bool) (bool, error) {
	if _, err := nc.must("MULTI"); err != nil {
		return false, err
	}
	for _, args := range t.commands {
		reply, err := nc.ask(args...)
		if refused, is := reply.(protocol.ReplyError); is && err == nil {
			return false, refused
		}
		if err == nil && reply != protocol.Status("QUEUED") {
			err = errQueued
		}
		if err != nil {
			return false, err
		}
	}
	if err := nc.send("EXEC"); err != nil {
		return false, err
	}
	failed, err := (&replyjson.Transcoder{R: nc.r}).IsError()
	if err != nil {
		return false, err
	}
	if first, err := nc.r.Peek(1); failed || err != nil || first[0] != '*' {
		reply, err := protocol.DecodeFrom(nc.r)
		if refused, is := reply.(protocol.ReplyError); is && err == nil {
			err = refused
		}
		return false, err
	}
	if _, err := nc.r.ReadSlice('\n'); err != nil {
		return false, err
	}
	c.respondAll(w, nc, len(t.commands), true, types)
	return true, nil
}
