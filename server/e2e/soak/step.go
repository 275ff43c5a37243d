//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// step is what is done or not done as a whole.
type step struct {
	sent, acked time.Time
	undo        []undo
	wild        []string // keys of which one cannot tell what was done to them, unless a reply came
	vague       bool     // it may have been refused in part
}

// undo is what a key was before.
type undo struct {
	key string
	was *value
}

// at returns the model's value of a key, or an empty one.
func (o *owner) at(key string) *value {
	if v := o.model[key]; v != nil {
		return v
	}
	return newValue(strings.Split(key, ":")[1])
}

// keep puts values into the model.
func (o *owner) keep(keys []string, values []*value) {
	for i, key := range keys {
		if delete(o.model, key); values[i].exists() == 1 {
			o.model[key] = values[i]
		}
	}
}

// step draws what is done next, and does it.
func (o *owner) step() error {
	way, n := "alone", 1
	switch d := o.int(100); {
	case d < 20:
		way, n = "pipeline", 2+o.int(10)
	case d < 30:
		way, n = "multi", 1+o.int(6)
	case d < 36:
		way = "eval"
	case d < 40:
		way = "fcall"
	case d < 41:
		return o.watched()
	}
	s := o.begin(way)
	for len(s.ops) < n {
		// Each is drawn for what those before it have made of the model.
		p := o.draw()
		if p == nil || p.effect == picks && way != "alone" || p.words[0] == "EVAL" && (way == "eval" || way == "fcall") {
			continue
		}
		s.add(p)
	}
	return s.end()
}

// watched changes a watched key from another connection, or does not.
func (o *owner) watched() error {
	d := o.drawing("string")
	if d.v == nil {
		return nil
	}
	if r, err := o.c.do("WATCH", d.key); err != nil || isError(r) {
		return err
	}
	if o.one(2) {
		p := d.from("string")
		if p == nil {
			return o.drain("UNWATCH")
		}
		return o.perform("multi", p)
	}
	other, life, err := o.st.dial()
	if err != nil {
		return err
	}
	defer other.close()
	if life != o.life {
		return fmt.Errorf("another server")
	}
	now := strconv.FormatInt(nowMs(), 10)
	mine := o.c
	o.c = other
	err = o.perform("alone", o.op(&o.tables["string"][0], words("SET", d.key, now)))
	o.c = mine
	if err != nil {
		return err
	}
	if o.at(d.key).str != now { // it was refused
		return o.drain("UNWATCH")
	}
	replies, err := o.c.ask(words("MULTI"), words("SET", d.key, "never"), words("EXEC"))
	if replies == nil {
		return err
	}
	if r := last(replies); isRefused(r) {
		return nil
	} else if r != nil {
		return &mismatch{d.key, "a watched key was changed, and EXEC has replied " + show(r)}
	}
	o.st.stats.steps.Add(1)
	return nil
}

func (o *owner) drain(command string) error { _, err := o.c.do(command); return err }

// stepper is a step that is put together.
type stepper struct {
	o       *owner
	way     string
	steps   []*step // one, or one for each command of a pipeline
	ops     []*op
	want    []any
	keys    []string // that it may change
	nearest int64    // deadline of what it changes or reads
}

func (o *owner) begin(way string) *stepper {
	return &stepper{o: o, way: way, nearest: math.MaxInt64}
}

// perform does an op as a step.
func (o *owner) perform(way string, p *op) error {
	s := o.begin(way)
	s.add(p)
	return s.end()
}

// add does an op to the model.
func (t *stepper) add(p *op) {
	o := t.o
	if t.way == "pipeline" || len(t.steps) == 0 {
		t.steps = append(t.steps, &step{})
	}
	s := t.steps[len(t.steps)-1]
	var values []*value
	for _, key := range p.keys {
		v := o.at(key)
		values = append(values, v)
		t.nearest = min(t.nearest, v.next())
		if p.effect == reads {
			continue
		}
		if !slices.Contains(t.keys, key) {
			t.keys = append(t.keys, key)
		}
		s.undo = append(s.undo, undo{key, o.model[key].clone()})
		if p.effect == picks {
			s.wild = append(s.wild, key)
		}
	}
	c := &call{name: p.words[0], args: p.words[1:]}
	var of []*value // in the order of the words
	for _, w := range c.args {
		if i := slices.Index(p.keys, w); i >= 0 {
			of = append(of, values[i])
		}
	}
	of = append(of, nil, nil)
	c.v, c.other, c.third = of[0], of[1], of[2]
	want := p.apply(c)
	if p.effect != reads {
		o.keep(p.keys, values)
	}
	for _, v := range values {
		t.nearest = min(t.nearest, v.next())
	}
	t.ops, t.want = append(t.ops, p), append(t.want, want)
	o.ring.add(t.way + " " + quoted(p.words))
}

// end sends a step and compares the replies.
func (t *stepper) end() error {
	o, last := t.o, t.steps[len(t.steps)-1]
	commands := t.commands()
	now := time.Now()
	for _, s := range t.steps {
		s.sent = now
	}
	o.history = append(o.history, t.steps...)
	o.st.stats.steps.Add(1)
	o.st.stats.commands.Add(int64(len(commands)))
	if err := o.c.send(commands...); err != nil {
		return err
	}
	replies, err := t.replies()
	if err != nil {
		return err
	}
	now = time.Now()
	for _, s := range t.steps {
		s.acked = now
	}
	late := now.UnixMilli() >= t.nearest-edge // the commands may have run before the deadline or after it
	for _, r := range replies {
		if isRefused(r) {
			if len(replies) == 1 {
				return o.takeBack(last)
			}
			late = true
			o.st.stats.refused.Add(1)
		}
	}
	if !late {
		return t.judge(replies)
	}
	for _, s := range t.steps {
		s.vague = true
	}
	for _, key := range t.keys {
		if err := o.adopt(key); err != nil {
			last.acked, last.wild = time.Time{}, t.keys // nothing is known of these keys until they are read
			return err
		}
	}
	return nil
}

// commands returns what is sent.
func (t *stepper) commands() (l [][]string) {
	for _, p := range t.ops {
		switch t.way {
		case "eval":
			l = append(l, words("EVAL", "return redis.call(unpack(ARGV))", 0, p.words))
		case "fcall":
			l = append(l, words("FCALL", "soak_call", 0, p.words))
		default:
			l = append(l, p.words)
		}
	}
	if t.way == "multi" {
		l = slices.Concat([][]string{{"MULTI"}}, l, [][]string{{"EXEC"}})
	}
	return l
}

// replies reads a reply for each op, or one error that refuses all, or none if a watched
// key has expired.
func (t *stepper) replies() (l []any, err error) {
	if t.way != "multi" {
		for range t.ops {
			r, err := t.o.c.read()
			if err != nil {
				if slices.ContainsFunc(l, isRefused) { // those behind a refused one may have been done
					s := t.steps[len(t.steps)-1]
					s.acked, s.wild = time.Time{}, t.keys
				}
				return nil, err
			}
			if l = append(l, r); len(t.steps) == len(t.ops) {
				t.steps[len(l)-1].acked = time.Now()
			}
		}
		return l, nil
	}
	var r any
	for range len(t.ops) + 2 {
		if r, err = t.o.c.read(); err != nil {
			return nil, err
		}
	}
	switch l = list(r); {
	case isRefused(r):
		return []any{r}, nil
	case r == nil && nowMs() >= t.nearest-edge, len(l) == len(t.ops):
		return l, nil
	}
	return nil, &mismatch{t.ops[0].keys[0], fmt.Sprintf("a transaction of %d commands has replied %s", len(t.ops), show(r))}
}

// judge compares the replies with those that must come.
func (t *stepper) judge(replies []any) error {
	for i, p := range t.ops {
		want, got := t.want[i], replies[i]
		if matches(want, got) {
			for _, key := range p.keys { // the check of a reply may have removed the last element
				if v := t.o.model[key]; v != nil && v.exists() == 0 {
					delete(t.o.model, key)
				}
			}
			continue
		}
		problem := fmt.Sprintf("reply %s, must be %s", show(got), show(want))
		switch want.(type) {
		case bag, hashed, ranked:
			problem = unlike(want, got)
		}
		return &mismatch{p.keys[0], fmt.Sprintf("%s %s: %s", t.way, quoted(p.words), problem)}
	}
	return nil
}

// takeBack makes a step that was refused one that was not done.
func (o *owner) takeBack(s *step) error {
	o.st.stats.refused.Add(1)
	o.ring.add("refused")
	o.undo(s)
	if o.history[len(o.history)-1] != s {
		return errors.New("the last step is not the last")
	}
	o.history = o.history[:len(o.history)-1]
	return nil
}
