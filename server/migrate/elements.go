package migrate

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/archive"
)

// Large values are compared some elements at a time: DUMP of such a value would keep its
// server from other commands for as long.

const (
	// chunkElements and chunkBytes are what one call reads.
	chunkElements = 500
	chunkBytes    = 64 << 10
)

// side is one side of a comparison.
type side struct {
	c  redis.UniversalClient
	at product
}

// largeComparison is a comparison of a large value.
type largeComparison struct {
	m           *move
	here, there side
	db          int
	key         string
}

// settle repeats a comparison until it returns true, and waits before it does so until what
// the source has sent is applied. A value that changes all the time need not become equal: it
// is compared again by its length. Otherwise it reports that the values differ.
func (l *largeComparison) settle(ctx context.Context, equal func() (bool, error)) (same bool, err error) {
	pause := firstRecheck
	for try := 0; ; try++ {
		same, err = equal()
		if err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
			same, err = false, nil // at one side
		}
		if err != nil || same {
			return same, err
		}
		if try == recheck {
			return l.m.changes.has(keyAt{l.db, l.key}), nil
		}
		if err := l.m.catchUp(ctx); err != nil {
			return false, err
		}
		if err := sleep(ctx, pause); err != nil {
			return false, err
		}
		pause *= 2
	}
}

// compare reports whether both sides have the same elements.
func (l *largeComparison) compare(ctx context.Context, kind string) (bool, error) {
	var same bool
	var err error
	switch kind {
	case "string", "list", "stream":
		same, err = l.sequence(ctx, kind)
	default:
		same, err = l.collection(ctx, kind)
	}
	if err != nil || !same {
		return same, err
	}
	return l.settle(ctx, func() (bool, error) {
		p, q := l.here.c.Pipeline(), l.there.c.Pipeline()
		a, b := p.Do(ctx, lengths()[kind], l.key), q.Do(ctx, lengths()[kind], l.key)
		at, bt := p.PTTL(ctx, l.key), q.PTTL(ctx, l.key)
		if _, err := p.Exec(ctx); err != nil {
			return false, err
		}
		if _, err := q.Exec(ctx); err != nil {
			return false, err
		}
		return fmt.Sprint(a.Val()) == fmt.Sprint(b.Val()) && (at.Val() < 0) == (bt.Val() < 0), nil
	})
}

// sequence compares the parts of a value in their order.
func (l *largeComparison) sequence(ctx context.Context, kind string) (bool, error) {
	from, next := 0, "-"
	for {
		var part []any
		switch kind {
		case "string":
			part = []any{"GETRANGE", l.key, from, from + chunkBytes - 1}
			from += chunkBytes
		case "list":
			part = []any{"LRANGE", l.key, from, from + chunkElements - 1}
			from += chunkElements
		default:
			part = []any{"XRANGE", l.key, next, "+", "COUNT", chunkElements}
		}
		var reply any
		same, err := l.settle(ctx, func() (bool, error) {
			var err error
			if reply, err = l.here.c.Do(ctx, part...).Result(); err != nil {
				return false, err
			}
			there, err := l.there.c.Do(ctx, part...).Result()
			return fmt.Sprint(reply) == fmt.Sprint(there), err
		})
		if err != nil || !same {
			return false, err
		}
		list, _ := reply.([]any)
		if text, ok := reply.(string); ok && text == "" || !ok && len(list) == 0 {
			return true, nil
		}
		if kind == "stream" {
			entry, _ := list[len(list)-1].([]any)
			id, _ := entry[0].(string)
			ms, n, _ := strings.Cut(id, "-")
			seq, err := strconv.ParseUint(n, 10, 64)
			if err != nil {
				return false, err
			}
			next = fmt.Sprintf("%s-%d", ms, seq+1)
		}
	}
}

// collection compares elements by their names, which it reads at the source.
func (l *largeComparison) collection(ctx context.Context, kind string) (bool, error) {
	scan := map[string]string{"set": "SSCAN", "zset": "ZSCAN", "hash": "HSCAN"}[kind]
	step := 2
	if kind == "set" {
		step = 1
	}
	for cursor := "0"; ; {
		reply, err := l.here.c.Do(ctx, scan, l.key, cursor, "COUNT", chunkElements).Slice()
		if err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
			return true, nil // it has changed
		}
		if err != nil || len(reply) != 2 {
			return false, err
		}
		cursor, _ = reply[0].(string)
		list, _ := reply[1].([]any)
		var names []string
		for i := 0; i < len(list); i += step {
			names = append(names, fmt.Sprint(list[i]))
		}
		same, err := l.settle(ctx, func() (bool, error) {
			if len(names) == 0 {
				return true, nil
			}
			a, err := l.elements(ctx, l.here, kind, names)
			if err != nil {
				return false, err
			}
			b, err := l.elements(ctx, l.there, kind, names)
			if err != nil {
				return false, err
			}
			var left []string
			for i, name := range names {
				if a[i] != b[i] {
					left = append(left, name)
				}
			}
			names = left
			return len(left) == 0, nil
		})
		if err != nil || !same || cursor == "0" {
			return same, err
		}
	}
}

// elements returns the values or scores of elements, with their deadlines as far as both sides
// have them, as text; "" for elements that do not exist, or are past their deadlines.
func (l *largeComparison) elements(ctx context.Context, s side, kind string, names []string) ([]string, error) {
	p := s.c.Pipeline()
	replies := make([]*redis.Cmd, len(names))
	word := map[string]string{"set": "SISMEMBER", "zset": "ZSCORE", "hash": "HGET"}[kind]
	for i, name := range names {
		replies[i] = p.Do(ctx, word, l.key, name)
	}
	var times *redis.Cmd
	var scores []*redis.FloatCmd
	list := append([]any{len(names)}, anyOf(names)...)
	switch {
	case kind == "zset" && s.at.name == "zsetd":
		times = p.Do(ctx, append([]any{"ZPEXPIRETIME", l.key, "MEMBERS"}, list...)...)
	case kind == "zset" && l.m.translates() && l.m.t.companions.Load():
		for _, name := range names {
			scores = append(scores, p.ZScore(ctx, archive.CompanionOf(l.key), name))
		}
	case kind == "hash" && l.here.at.form().FieldDeadlines() && l.there.at.form().FieldDeadlines():
		times = p.Do(ctx, append([]any{"HPEXPIRETIME", l.key, "FIELDS"}, list...)...)
	}
	if _, err := p.Exec(ctx); err != nil && err != redis.Nil {
		return nil, err
	}
	var deadlines []any
	if times != nil {
		deadlines, _ = times.Slice()
	}
	texts := make([]string, len(names))
	now := time.Now().UnixMilli()
	for i, r := range replies {
		at := int64(0)
		if i < len(deadlines) {
			at, _ = deadlines[i].(int64)
		}
		if i < len(scores) {
			at = int64(scores[i].Val())
		}
		if r.Err() != nil || at > 0 && at <= now {
			continue
		}
		texts[i] = fmt.Sprint(r.Val(), " ", max(0, at))
		if kind == "zset" {
			score, _ := strconv.ParseFloat(fmt.Sprint(r.Val()), 64)
			texts[i] = fmt.Sprint(score, " ", max(0, at))
		}
	}
	return texts, nil
}

func anyOf(names []string) []any {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}
