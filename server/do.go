package server

import (
	"context"
	"fmt"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
)

// Do executes one command without a connection and returns its reply as
// [protocol.Decode] gives it, in RESP3: nil, int64, float64, bool, string,
// []any, protocol.Map and so on. An error reply is returned as an error of type
// protocol.ReplyError. A blocking command waits until it is served, its
// timeout passes, or ctx ends. While the data are being loaded Do waits.
//
// Every call is a session of its own: database 0, no transaction, no
// subscriptions. It may do everything, whatever the rules for users say. For a
// connection use [Server.Dialer] with a client library.
//
// Arguments may be strings, []byte, integers, floats and bools (1 or 0).
func (srv *Server) Do(ctx context.Context, args ...any) (reply any, err error) {
	defer srv.fallen(&err)
	argv := make([][]byte, len(args))
	for i, a := range args {
		b, err := argument(a)
		if err != nil {
			return nil, fmt.Errorf("zsetd: argument %d: %w", i, err)
		}
		argv[i] = b
	}
	if len(argv) == 0 {
		return nil, fmt.Errorf("zsetd: no command")
	}
	if err := srv.Ready(ctx); err != nil {
		return nil, err
	}
	woken := make(chan struct{}, 1)
	s := srv.newSession(peer{fd: -1, wake: func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}})
	defer s.close()
	s.trust()
	s.direct = true
	s.out.SetVersion(3)
	done, out, ending := s.turn([][][]byte{argv}, nil)
	for out == nil && !ending || done == 0 {
		select {
		case <-woken:
		case <-srv.buried:
			return nil, srv.closedError()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if done == 0 && !s.stalled.Load() {
			done, out, ending = s.turn([][][]byte{argv}, nil)
			continue
		}
		var killed bool
		out, killed, ending = s.take()
		ending = ending || killed
	}
	if out == nil {
		return nil, ErrServerClosed
	}
	reply, _, err = protocol.Decode(out)
	if err != nil {
		return nil, fmt.Errorf("zsetd: reply: %w", err)
	}
	if e, ok := reply.(protocol.ReplyError); ok {
		return nil, e
	}
	return reply, nil
}

func argument(a any) ([]byte, error) {
	switch a := a.(type) {
	case string:
		return []byte(a), nil
	case []byte:
		return a, nil
	case int:
		return strconv.AppendInt(nil, int64(a), 10), nil
	case int64:
		return strconv.AppendInt(nil, a, 10), nil
	case int32:
		return strconv.AppendInt(nil, int64(a), 10), nil
	case uint64:
		return strconv.AppendUint(nil, a, 10), nil
	case float64:
		return protocol.AppendFloat(nil, a), nil
	case bool:
		if a {
			return []byte("1"), nil
		}
		return []byte("0"), nil
	}
	return nil, fmt.Errorf("cannot send a %T", a)
}
