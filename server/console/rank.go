package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

const (
	defaultRate = 1  // events a second
	maxRate     = 20 // events a second
	// settleTime is the time between a change and its event: the replies to both queries arrive.
	settleTime = 10 * time.Millisecond
)

// standing is the place of a member, as JSON; "" while it is not known.
type standing struct{ rank, score, card string }

// rankViewer is a stream of a member's rank. It follows two queries: the rank with the score,
// and the length of the sorted set.
type rankViewer struct {
	*viewer
	interval   time.Duration
	now, shown standing
	settled    bool // settleTime has passed since a change
}

// rank serves GET /rank.
func (c *Console) rank(w http.ResponseWriter, r *http.Request) {
	nc, who, err := c.open(r)
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	nc.close()
	q, rate, db := r.URL.Query(), defaultRate, 0
	if text := q.Get("rate"); text != "" {
		rate, err = strconv.Atoi(text)
	}
	if text := q.Get("db"); text != "" && err == nil {
		db, err = strconv.Atoi(text)
	}
	if err != nil || rate < 1 || rate > maxRate || !q.Has("key") || !q.Has("member") {
		fail(w, http.StatusBadRequest, fmt.Sprintf("ERR key and member are needed, rate is between 1 and %d, and db is the number of a database", maxRate))
		return
	}
	v := &rankViewer{viewer: c.newViewer(w, r, who), interval: time.Second / time.Duration(rate)}
	if v.viewer == nil {
		return
	}
	defer v.s.abandon()
	v.s.arrived = make(chan struct{}, 1)
	v.s.take = v.take
	rank := "ZRANK"
	if q.Get("rev") == "1" {
		rank = "ZREVRANK"
	}
	for _, command := range [][]string{{rank, q.Get("key"), q.Get("member"), "WITHSCORE"}, {"ZCARD", q.Get("key")}} {
		key := queryKey(who.name, db, v.interval, protocol.JoinArgs(command))
		if err := c.join(r.Context(), v.viewer, key, who, nil); err != nil {
			c.refuseSource(w, r, err)
			return
		}
	}
	for {
		if err := v.read(); err != nil {
			c.refuseSource(w, r, err)
			return
		}
		if v.now.rank != "" && v.now.card != "" {
			break
		}
		select {
		case <-v.s.arrived:
		case <-r.Context().Done():
			return
		}
	}
	v.settled = true
	if v.s.begin(w, r) == nil {
		v.s.serve(r)
	}
}

// read sets the present standing to the replies that have arrived.
func (v *rankViewer) read() error {
	for i := range v.feeds {
		text, err := v.reply(i)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		var reply struct {
			Result json.RawMessage
			Error  string
		}
		if err := json.Unmarshal([]byte(text), &reply); err != nil {
			panic("BUG: the reply to a live query is no JSON: " + err.Error())
		}
		var pair [2]json.RawMessage
		switch {
		case reply.Error != "":
			return protocol.ReplyError(reply.Error)
		case i == 1:
			v.now.card = string(reply.Result)
		case json.Unmarshal(reply.Result, &pair) == nil && pair[0] != nil:
			v.now.rank, v.now.score = string(pair[0]), string(pair[1])
		default:
			v.now.rank, v.now.score = "null", "null"
		}
	}
	return nil
}

// take is that of its stream. The event of a change is written after settleTime, and the next one
// an interval later.
func (v *rankViewer) take() (event []byte, pause time.Duration, err error) {
	if err := v.read(); err != nil {
		return nil, 0, err
	}
	switch {
	case v.now == v.shown:
		v.settled = false
		return nil, 0, nil
	case !v.settled:
		v.settled = true
		return nil, settleTime, nil
	}
	v.shown, v.settled = v.now, false
	return fmt.Appendf(nil, "data: {\"rank\":%s,\"score\":%s,\"card\":%s}\n\n", v.now.rank, v.now.score, v.now.card), v.interval, nil
}
