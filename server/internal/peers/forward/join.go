package forward

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/peers/remote"
)

// Commands on all keys of a cluster: the replies of its nodes make one.

// joined sends a request to all primaries, one after the other, and returns the sum or the
// elements of their replies.
func (u *upstream) joined(r *remote.Request) []byte {
	addrs, err := u.home.nodes()
	if err != nil {
		return u.unreached(err)
	}
	sum, body := int64(0), []byte(nil)
	for _, addr := range addrs {
		c, err := u.connect(addr, r)
		if err != nil {
			u.home.lost()
			return errorReply(fmt.Sprintf("FORWARD cannot reach %s: %v; there is no reply of all nodes", addr, err))
		}
		reply := u.exchange(c, r, false)
		if errorText(reply) != "" {
			return reply
		}
		head, rest, _ := bytes.Cut(reply, []byte("\r\n"))
		kind := byte(':')
		if r.Place == remote.ListOfNodes {
			kind = '*'
		}
		if len(head) == 0 || head[0] != kind {
			return errorReply(fmt.Sprintf("FORWARD the reply of %s is of another type: %.40q", addr, head))
		}
		n, _ := protocol.ParseInt(head[1:])
		sum += n
		if body = append(body, rest...); r.Limit > 0 && len(body) > r.Limit {
			return errorReply("FORWARD " + errTooLarge.Error())
		}
	}
	if r.Place == remote.ListOfNodes {
		return append(fmt.Appendf(nil, "*%d\r\n", sum), body...)
	}
	return fmt.Appendf(nil, ":%d\r\n", sum)
}

// oneOf sends a request to one primary, which it chooses by chance in proportion to the
// number of keys.
func (u *upstream) oneOf(r *remote.Request) []byte {
	addrs, err := u.home.nodes()
	if err != nil {
		return u.unreached(err)
	}
	total, chosen := int64(0), (*conn)(nil)
	count := *r
	count.Commands, count.Calls = [][]byte{encode("DBSIZE")}, nil
	for _, addr := range addrs {
		c, err := u.connect(addr, r)
		if err != nil {
			u.home.lost()
			return u.unreached(err)
		}
		reply := u.exchange(c, &count, false)
		if errorText(reply) != "" {
			return reply
		}
		n, _ := protocol.ParseInt(bytes.TrimSuffix(bytes.TrimPrefix(reply, []byte(":")), []byte("\r\n")))
		if total += n; chosen == nil || n > 0 && rand.Int64N(total) < n {
			chosen = c
		}
	}
	return u.exchange(chosen, r, false)
}

// A scan visits the nodes in the order of their lowest slots. Its cursor is that slot and
// the cursor of the node:
//
//	 0  14 bits  49 bits
//	┌─┬────────┬───────────────────┐
//	│0│  slot  │ cursor of the node │
//	└─┴────────┴───────────────────┘
//
// A cluster has 2^14 slots. Cursors of Redis are below the size of its hash table, since
// Redis 8 and Valkey 8 times the number of slots, so 2^49 of them are enough.
const cursorBits = 49

// scan sends a request with a cursor to the node that the cursor names, and returns the
// reply with the next cursor.
func (u *upstream) scan(r *remote.Request) []byte {
	before, word, after := wordAt(r.Commands[0], 1)
	cursor, err := strconv.ParseUint(string(word), 10, 63)
	if err != nil {
		return errorReply("ERR invalid cursor")
	}
	slot, next, err := u.home.scanned(int(cursor >> cursorBits))
	if err != nil {
		return u.unreached(err)
	}
	at := *r
	at.Slot = slot
	own := strconv.FormatUint(cursor&(1<<cursorBits-1), 10)
	at.Commands = [][]byte{append(fmt.Appendf(bytes.Clone(before), "$%d\r\n%s\r\n", len(own), own), after...)}
	c, err := u.toSlot(&at)
	if err != nil {
		return u.unreached(err)
	}
	reply := u.exchange(c, &at, false)
	if errorText(reply) != "" {
		return reply
	}
	before, word, after = wordAt(reply, 0)
	left, err := strconv.ParseUint(string(word), 10, cursorBits)
	switch {
	case before == nil || err != nil:
		return errorReply(fmt.Sprintf("FORWARD the cursor of %s is no number below 2^%d: %.40q", c.addr, cursorBits, word))
	case left != 0:
		left |= uint64(slot) << cursorBits
	case next >= 0:
		left = uint64(next) << cursorBits
	}
	text := strconv.FormatUint(left, 10)
	return append(fmt.Appendf(bytes.Clone(before), "$%d\r\n%s\r\n", len(text), text), after...)
}

// wordAt returns bulk string i of an array, and what is before and after it. before is nil
// if there is none.
func wordAt(b []byte, i int) (before, word, after []byte) {
	_, rest, _ := bytes.Cut(b, []byte("\r\n"))
	for ; ; i-- {
		head, body, _ := bytes.Cut(rest, []byte("\r\n"))
		if len(head) < 2 || head[0] != '$' {
			return nil, nil, nil
		}
		n, ok := protocol.ParseInt(head[1:])
		if !ok || n < 0 || n+2 > int64(len(body)) {
			return nil, nil, nil
		}
		if i == 0 {
			return b[:len(b)-len(rest)], body[:n], body[n+2:]
		}
		rest = body[n+2:]
	}
}
