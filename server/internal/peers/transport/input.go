package transport

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync/atomic"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
)

// input is the data that a connection has read and its session has not run yet.
type input struct {
	sess   *engine.Session
	reader protocol.Reader

	held        *held // nil until input waits
	lists       *lists
	batch       [][][]byte // the rest of lists.commands
	holds       bool       // the result of space is of held
	kept        bool       // batch no longer refers to the reader's buffer
	weighedSize int        // size of the input buffer at the session's last weighing; see filled

	buffer  atomic.Uint64 // size and used bytes of the input buffer; see InputBuffer
	arrived atomic.Int64  // total bytes

	state    connState
	measured bool // unread is valid
	unread   int  // bytes that had arrived at finish and are still to be read
}

// lists holds the storage of a batch of commands.
type lists struct {
	arena    [][]byte   // the arguments, one after the other
	commands [][][]byte // slices of arena, or of the smaller one that it was before it grew
}

// forget drops the references to the arguments. It does not keep a large arena.
func (l *lists) forget() {
	if cap(l.arena) > keepArena {
		l.arena = nil
	}
	clear(l.arena)
	clear(l.commands)
	l.arena, l.commands = l.arena[:0], l.commands[:0]
}

// release takes the input buffer from a connection that has run all its input. none
// is false if the connection needs the buffer for a partial command. The lists of
// commands are empty in either case.
func (c *input) release() (buf []byte, none bool) {
	if c.lists != nil {
		c.lists.forget()
		c.batch = nil
	}
	if c.reader.Partial() {
		return nil, false
	}
	buf = c.reader.Release()
	c.note()
	return buf, true
}

// keepBatch copies the rest of a stalled session's batch before the reader's buffer
// is reused for new input. Other sessions may stall a session at any time, so the
// end of its turn would be too early to decide.
func (c *input) keepBatch() {
	if len(c.batch) == 0 || c.kept {
		return
	}
	for i, argv := range c.batch {
		c.batch[i] = protocol.CopyArgs(argv)
	}
	c.kept = true
}

// space returns the memory to read the next input into. While the session runs no
// commands, all beyond a full buffer is held.
func (c *input) space() []byte {
	c.holds = c.held.buffered() > 0 || c.reader.Buffered() >= heldBlock && c.reader.Missing() == 0 && c.waits()
	if c.holds {
		if c.held == nil {
			c.held = new(held)
		}
		return c.held.space()
	}
	c.keepBatch()
	return c.reader.Space()
}

// waits reports whether the session runs no commands for now.
func (c *input) waits() bool { return c.sess.Queue.ExceedsLimit() || c.sess.Stall.Stalled.Load() }

// reads reports whether to read further input. A client whose commands do not run, because
// it has not read their replies or another client must act first, may have to write all of a
// pipeline before it or its program continues: its input is read up to the limit of
// filled. Any other wait ends by itself, and then little is read.
func (c *input) reads() bool {
	switch {
	case c.sess.Queue.ExceedsLimit():
		return !c.sess.InputExceedsLimit(c.size())
	case c.sess.Stall.Stalled.Load():
		return c.buffered() <= maxUnread || c.sess.WaitsForOthers()
	}
	return true
}

// size returns the memory of the input buffer, and buffered how much of that input fills.
func (c *input) size() int     { return c.reader.Size() + c.held.memory() }
func (c *input) buffered() int { return c.reader.Buffered() + c.held.buffered() }

// note publishes the size and fill of the input buffer, for InputBuffer.
func (c *input) note() int {
	size := c.size()
	const most = math.MaxUint32
	c.buffer.Store(uint64(min(size, most))<<32 | uint64(min(c.buffered(), most)))
	return size
}

// filled records that n bytes were read into the memory from space. It returns
// false if the input exceeds the client's limit.
func (c *input) filled(n int) bool {
	if c.holds {
		c.held.filled(n)
		c.holds = false // a read that is interrupted early fills nothing, and has no space
	} else {
		c.reader.Filled(n)
	}
	c.arrived.Store(c.arrived.Load() + int64(n)) // only this goroutine writes it
	size := c.note()
	weighed, ok := c.sess.InputGrew(c.weighedSize, size, c.held.buffered() > 0)
	if weighed {
		c.weighedSize = size
	}
	return ok
}

// parse parses the next commands, at most as many as a turn runs, and those of many
// arguments only until their list is half of what a connection keeps: a list that is
// dropped after each turn grows from nothing for the next. It feeds the reader what is
// held; if that is part of a long command it feeds maxFed bytes, and leaves the batch empty.
func (c *input) parse() (err error) {
	defer func() {
		if p := recover(); p != nil {
			lostClient(c.sess, p)
			c.forget() // possibly damaged: do not reuse
			err = errParsing
		}
	}()
	limit := 0
	c.reader.Limits, limit = c.sess.ReaderLimits()
	if c.lists == nil {
		c.lists = new(lists)
	}
	l := c.lists
	l.forget()
	c.batch, c.kept = nil, false
	fed := 0
	for len(l.commands) < limit && len(l.arena) < keepArena/2 {
		args, ok, err := c.reader.Next(l.arena)
		if err != nil && len(l.commands) == 0 {
			c.held = nil
			return err
		}
		if !ok && len(l.commands) == 0 && c.held.buffered() > 0 && fed < maxFed {
			fed += c.held.feed(&c.reader)
			c.note()
			continue
		}
		if !ok {
			break
		}
		l.commands = append(l.commands, args[len(l.arena):len(args):len(args)])
		l.arena = args
	}
	c.batch = l.commands
	return nil
}

// forget drops all input.
func (c *input) forget() {
	c.reader, c.held, c.lists, c.batch = protocol.Reader{}, nil, nil, nil
}

// errParsing is the reply to a client whose input triggers a bug in the parser.
var errParsing = errors.New("internal error: closing the connection, see the server's log")

// InputBuffer returns the used and the free bytes of the input buffer, as of the
// last note.
func (c *input) InputBuffer() (used, free int) {
	b := c.buffer.Load()
	used = int(b & math.MaxUint32)
	return used, max(int(b>>32)-used, 0)
}

// Arrived returns how many bytes have been read.
func (c *input) Arrived() int64 { return c.arrived.Load() }

// lostClient logs that a client must be disconnected after a panic that has damaged
// no other state.
func lostClient(s *engine.Session, p any) {
	s.Engine.Log.Error("closing client after a panic", "panic", fmt.Sprint(p), "client", s.Peer.Addr, "stack", string(debug.Stack()))
}
