package engine

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// Arguments encodes the arguments of a command that a Go program gives to Do.
//
// Times and durations need a unit, which differs between commands and even between
// the words of one command. It follows from the argument's name in the syntax of the
// command ("seconds", "unix-time-milliseconds", …), so a wrong unit cannot be sent.
func (srv *Engine) Arguments(args []any) ([][]byte, error) {
	argv := make([][]byte, 0, len(args))
	for i, a := range args {
		var b []byte
		var err error
		switch a := a.(type) {
		case []string:
			for _, s := range a {
				argv = append(argv, []byte(s))
			}
			continue
		case string:
			b = []byte(a)
		case []byte:
			b = a
		case time.Duration:
			b, err = srv.duration(argv, a)
		case time.Time:
			b, err = srv.instant(argv, a)
		case encoding.BinaryMarshaler:
			if v := reflect.ValueOf(a); v.Kind() == reflect.Pointer && v.IsNil() {
				err = fmt.Errorf("cannot send a nil %s", v.Type())
			} else {
				b, err = a.MarshalBinary()
			}
		default:
			v := reflect.ValueOf(a)
			if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String {
				for j := range v.Len() {
					argv = append(argv, []byte(v.Index(j).String()))
				}
				continue
			}
			b, err = argument(v)
		}
		if err != nil {
			return nil, fmt.Errorf("zsetd: argument %d: %w", i, err)
		}
		argv = append(argv, b)
	}
	return argv, nil
}

// argument encodes an argument whose form does not depend on the command, by its kind.
func argument(v reflect.Value) ([]byte, error) {
	switch {
	case v.Kind() == reflect.String:
		return []byte(v.String()), nil
	case v.CanInt():
		return strconv.AppendInt(nil, v.Int(), 10), nil
	case v.CanUint():
		return strconv.AppendUint(nil, v.Uint(), 10), nil
	case v.Kind() == reflect.Float32: // as few digits as identify it among numbers of its size
		short, _ := strconv.ParseFloat(strconv.FormatFloat(v.Float(), 'g', -1, 32), 64)
		return protocol.AppendFloat(nil, short), nil
	case v.CanFloat():
		return protocol.AppendFloat(nil, v.Float()), nil
	case v.Kind() == reflect.Bool && v.Bool():
		return []byte("1"), nil
	case v.Kind() == reflect.Bool:
		return []byte("0"), nil
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return v.Bytes(), nil
	case !v.IsValid():
		return nil, errors.New("cannot send nil")
	}
	return nil, fmt.Errorf("cannot send a %s", v.Type())
}

// duration encodes a duration that follows the arguments in argv.
func (srv *Engine) duration(argv [][]byte, d time.Duration) ([]byte, error) {
	a, name := srv.argumentAfter(argv)
	switch {
	case a == nil:
	case a.Name == "seconds":
		if d%time.Second != 0 {
			return nil, fmt.Errorf("%s takes whole seconds here, and %v is not: use the variant in milliseconds", name, d)
		}
		return strconv.AppendInt(nil, int64(d/time.Second), 10), nil
	case a.Name == "timeout" && a.Type == "double":
		return strconv.AppendFloat(nil, d.Seconds(), 'f', -1, 64), nil
	case a.Name == "milliseconds", a.Name == "ms", a.Name == "min-idle-time", a.Name == "ttl", a.Name == "timeout":
		ms := d.Milliseconds()
		if d > time.Duration(ms)*time.Millisecond {
			ms++
		}
		return strconv.AppendInt(nil, ms, 10), nil
	}
	return nil, fmt.Errorf("%s takes no duration here: send %v as a number or a string", name, d)
}

// instant encodes a time that follows the arguments in argv.
func (srv *Engine) instant(argv [][]byte, t time.Time) ([]byte, error) {
	a, name := srv.argumentAfter(argv)
	switch {
	case name == "":
		return nil, errors.New("a time cannot be the name of a command")
	case a == nil:
		return protocol.AppendFloat(nil, float64(t.UnixMicro())/1e6), nil
	case a.Name == "unix-time-seconds":
		return strconv.AppendInt(nil, t.Unix(), 10), nil
	case a.Name == "unix-time-milliseconds", a.Name == "ttl":
		return strconv.AppendInt(nil, t.UnixMilli(), 10), nil
	}
	return nil, fmt.Errorf("%s takes a duration here, not a time", name)
}

// argumentAfter returns the argument that stands after argv in the syntax of the
// command, if it is a time or a duration, and the command's name.
func (srv *Engine) argumentAfter(argv [][]byte) (a *protocol.Argument, name string) {
	if len(argv) == 0 {
		return nil, ""
	}
	cmd, names := srv.Table.Find(argv)
	if cmd == nil {
		return nil, strings.ToUpper(Clip(argv[0], 128))
	}
	name = strings.ToUpper(strings.ReplaceAll(cmd.Name, "|", " "))
	syntax := cmd.Spec.Arguments()
	if a = afterToken(syntax, argv[len(argv)-1]); a != nil {
		return a, name
	}
	fixed := true // all arguments so far occur exactly once
	for i := range syntax {
		a = &syntax[i]
		if !a.HasToken() && isTime(a) && (!fixed || names+i == len(argv)) {
			return a, name
		}
		fixed = fixed && !a.Optional && !a.Multiple
	}
	return nil, name
}

// afterToken returns the time or duration in a syntax that follows the given token.
func afterToken(syntax []protocol.Argument, token []byte) *protocol.Argument {
	for i := range syntax {
		a := &syntax[i]
		if isTime(a) && a.HasToken() && protocol.EqualFold(token, a.Token) {
			return a
		}
		if in := afterToken(a.Arguments, token); in != nil {
			return in
		}
	}
	return nil
}

// isTime reports whether an argument is a time or a duration.
func isTime(a *protocol.Argument) bool {
	switch a.Name {
	case "seconds", "milliseconds", "ms", "min-idle-time", "ttl", "timeout", "unix-time-seconds", "unix-time-milliseconds":
		return true
	}
	return false
}
