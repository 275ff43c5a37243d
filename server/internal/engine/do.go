package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Do executes one command without a connection and returns its reply, decoded. Do of package
// server says what arguments may be, and when it returns.
func (srv *Engine) Do(ctx context.Context, args ...any) (reply any, err error) {
	argv, err := srv.directArguments(args)
	if err != nil {
		return nil, err
	}
	replies, err := srv.direct(ctx, [][][]byte{argv}, nil)
	if err != nil {
		return nil, err
	}
	if e, ok := replies[0].(protocol.ReplyError); ok {
		return nil, e
	}
	return replies[0], nil
}

// DoMany executes the commands of a pipeline, and returns their replies in order. An error reply is
// an element. If err is not nil, replies are those of the commands that have completed.
func (srv *Engine) DoMany(ctx context.Context, commands ...[]any) (replies []any, err error) {
	batch := make([][][]byte, len(commands))
	for i, args := range commands {
		if batch[i], err = srv.directArguments(args); err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
	}
	if len(batch) == 0 {
		return nil, nil
	}
	return srv.direct(ctx, batch, nil)
}

// directArguments returns the arguments of a command that Do can run.
func (srv *Engine) directArguments(args []any) ([][]byte, error) {
	argv, err := srv.Arguments(args)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 {
		return nil, errors.New("zsetd: no command")
	}
	if cmd, _ := srv.Table.Find(argv); cmd != nil && cmd.OfConnection {
		return nil, fmt.Errorf("zsetd: %s needs a connection: use Server.Dialer",
			strings.ToUpper(strings.ReplaceAll(cmd.Name, "|", " ")))
	}
	return argv, nil
}

// enterCall registers a call of Do, which Close and Shutdown wait for before they
// save. It returns false if the server is stopping.
func (e *ending) enterCall() bool {
	e.lifecycle.Lock()
	defer e.lifecycle.Unlock()
	if e.stopping {
		return false
	}
	e.running.Add(1)
	return true
}

// direct executes commands in a session of its own, and returns their replies, decoded. If it returns
// an error, the replies are those of the commands that have completed. With a program, it is the
// handler of the command.
func (srv *Engine) direct(ctx context.Context, batch [][][]byte, program func(*Call)) (replies []any, err error) {
	defer srv.setClosedError(&err)
	if err := srv.Ready(ctx); err != nil {
		return nil, err
	}
	if !srv.Ending.enterCall() {
		return nil, srv.closedError()
	}
	defer srv.Ending.running.Done()
	woken := make(chan struct{}, 1)
	s := srv.newDirect(Peer{FD: -1, Wake: func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}, Conn: caller{ctx, program}}, IsApart(ctx))
	take := func(out []byte) (err error) {
		for len(out) > 0 && err == nil {
			var reply any
			var n int
			if reply, n, err = protocol.Decode(out); err == nil {
				replies, out = append(replies, reply), out[n:]
			}
		}
		return err
	}
	defer func() {
		// A reply that has arrived meanwhile takes precedence: the command has run,
		// and an element that it took exists nowhere else.
		if last := s.leave(); err != nil && take(last) == nil && len(replies) == len(batch) {
			err = nil
		}
	}()
	done, out, ending := 0, []byte(nil), false
	turn := func() {
		var n int
		n, out, ending = s.Turn(batch[done:], nil)
		done += n
	}
	turn()
	for stopped := srv.Ending.Stopped; ; {
		progress := out != nil
		for ; out != nil; out = s.Written() {
			if err := take(out); err != nil {
				return replies, fmt.Errorf("zsetd: reply: %w", err)
			}
			if len(replies) == len(batch) {
				return replies, nil
			}
		}
		switch {
		case ending && ctx.Err() != nil:
			return replies, ctx.Err()
		case ending:
			return replies, s.noReply()
		case progress && done < len(batch) && !s.Stall.Stalled.Load():
			turn()
			continue
		case stopped == nil && s.WaitsForOthers():
			return replies, srv.closedError()
		}
		select {
		case <-woken:
		case <-srv.fault.broken:
			return replies, srv.closedError()
		case <-stopped:
			stopped = nil // a command that waits only for the file still completes
			continue
		case <-ctx.Done():
			return replies, ctx.Err()
		}
		if done < len(batch) && !s.Stall.Stalled.Load() {
			turn()
			continue
		}
		var killed bool
		out, killed, ending = s.Take()
		ending = ending || killed
	}
}

// newDirect returns a session for one call of Do. Apart leaves its commands out of the statistics.
func (srv *Engine) newDirect(p Peer, apart bool) (s *Session) {
	srv.Mu.Lock() // also while a script lends the lock
	defer srv.Mu.Unlock()
	srv.addSession(&s, p)
	s.SetOwner()
	s.Modes.direct, s.Peer.Apart = true, apart
	s.Out.SetVersion(3)
	s.Weigh()
	return s
}

// leave is Close that does not wait for a script that lends the lock. A session that has
// waited since before the script is removed after it, and served nothing by then: see
// caller.Ended.
func (s *Session) leave() (out []byte) {
	srv := s.Engine
	srv.Mu.Lock()
	switch {
	case !srv.Scripting.Busy:
		srv.maintainLocked(func() { out = s.remove() })
	case s.Stall.Blocked == nil && s.Stall.postponed == nil && !s.blockedUpstream():
		srv.guarded(func() { out = s.remove() })
		srv.unlock()
	default:
		srv.Ending.running.Add(1)
		srv.Mu.Unlock()
		go func() {
			defer srv.Ending.running.Done()
			srv.Attempt(func() { s.Close() })
		}()
	}
	return out
}

// caller is the connection of a session of Do: it ends with the context of the call. program is the
// handler of its command, or nil if the command is in the table.
type caller struct {
	ctx     context.Context
	program func(*Call)
}

// Ended implements Conn.
func (c caller) Ended() bool { return c.ctx.Err() != nil }

// InputBuffer implements Conn.
func (caller) InputBuffer() (used, free int) { return 0, 0 }

// Arrived implements Conn.
func (caller) Arrived() int64 { return 0 }

// Untaken implements Conn.
func (caller) Untaken() int64 { return 0 }

// noReply returns the reason why a session of Do has ended without a reply.
func (s *Session) noReply() error {
	srv := s.Engine
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	switch failed := srv.Keeper.Failed; {
	case srv.Ending.closed || s.End != Killed: // SHUTDOWN never replies
		return srv.closedError()
	case failed != nil:
		return fmt.Errorf("zsetd: cannot save the changes of the command: %w", failed)
	}
	return errors.New("zsetd: the command was ended by CLIENT KILL")
}
