//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// An owner is a worker whose keys no other worker touches, so that it knows each
// reply and the whole of its data at any time. It works in steps: a
// command, a pipeline, a transaction, a script. Of the last steps it knows how to
// take them back, newest first: when a connection breaks, or the server is killed,
// the data must be those of one of the moments between two steps.
type owner struct {
	*player
	model   map[string]*value
	tables  map[string][]operation
	history []*step
}

// ownerStats are counted over all owners of a stage.
type ownerStats struct {
	commands, steps, refused, lost, recovered, takenBack, adopted, compared atomic.Int64
}

const (
	edge  = 50  // milliseconds around a deadline in which the outcome is undefined
	guard = 400 // milliseconds before a deadline in which nothing is done to a key any more
)

func nowMs() int64 { return time.Now().UnixMilli() }

func newOwner(st *stage, n int) *owner {
	o := &owner{player: st.player("owner", n), model: map[string]*value{}, tables: tables()}
	o.name, o.hello = fmt.Sprint("o", n), n%2 == 1
	return o
}

func (o *owner) String() string { return "owner " + o.name }

// run works until the stage ends.
func (o *owner) run() {
	for o.st.enter() {
		err := o.work()
		o.st.leave()
		if err != nil {
			o.st.fail(o, err)
			return
		}
		o.st.pace(o.rng)
	}
	o.close()
}

// work does one step, with all that follows if the connection breaks.
func (o *owner) work() error {
	if o.c == nil {
		if err := o.connect(); err != nil {
			return err
		}
	}
	if o.one(2000) { // a client that comes and goes
		if o.one(2) {
			o.c.reset()
		}
		o.close()
		return nil
	}
	o.trim()
	if o.st.o.lie {
		v := newValue("string")
		v.put("a lie")
		o.model[o.name+":string:1"] = v
	}
	err := o.step()
	if err == nil {
		return nil
	}
	if r := (*mismatch)(nil); errors.As(err, &r) {
		return err
	}
	return o.lost(err) // connect finds out what was done
}

// mismatch is a difference from the model.
type mismatch struct{ key, text string }

func (m *mismatch) Error() string { return m.key + ": " + m.text }

// connect connects, and compares what is in doubt.
func (o *owner) connect() error {
	for {
		c, life, err := o.st.dial()
		if err != nil {
			return err
		}
		if o.hello {
			if r, err := c.do("HELLO", "3"); err != nil || isError(r) {
				c.close()
				continue
			}
		}
		err = o.recover(c, life)
		if err == nil {
			o.c = c
			return nil
		}
		c.close()
		if r := (*mismatch)(nil); errors.As(err, &r) {
			return err
		}
		if r := (*refusal)(nil); errors.As(err, &r) && !transient(r.reply) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// recover finds out how much of what was sent has been done.
func (o *owner) recover(c *client, life int) error {
	whole := life != o.life // all data were loaded
	sure := o.sure(life)    // so many steps are done for certain
	if !whole && sure == len(o.history) {
		return nil
	}
	wild := map[string]int{} // keys, and the first step from which on they are not known
	asked := map[string]bool{}
	for i := len(o.history) - 1; i >= sure; i-- {
		for _, u := range o.history[i].undo {
			asked[u.key] = true
		}
		if o.history[i].acked.IsZero() {
			for _, key := range o.history[i].wild {
				asked[key], wild[key] = true, i
			}
		}
	}
	if whole {
		if err := o.all(c, asked); err != nil {
			return err
		}
	}
	seen := map[string]sight{}
	first := map[string]string{} // the differences if all steps are done
	differs := map[string]bool{}
	for key := range asked {
		var err error
		if seen[key], err = o.look(c, key); err != nil {
			return err
		}
		if _, ok := wild[key]; !ok {
			if first[key] = o.compare(key, seen[key]).String(); first[key] != "" {
				differs[key] = true
			}
		}
	}
	o.st.stats.recovered.Add(1)
	at := len(o.history)
	for len(differs) > 0 {
		if at == sure {
			key := slices.Sorted(maps.Keys(differs))[0]
			return &mismatch{key, fmt.Sprintf("after the connection was lost (server %d, then %d), none of the last %d steps explains what is there. At the earliest of these moments: %s. As all done: %s",
				o.life, life, len(o.history)-sure, o.compare(key, seen[key]), first[key])}
		}
		at--
		s := o.history[at]
		o.undo(s)
		keys := slices.Clone(s.wild)
		for _, u := range s.undo {
			keys = append(keys, u.key)
		}
		for _, key := range keys {
			delete(differs, key)
			if i, ok := wild[key]; (!ok || i >= at) && !o.compare(key, seen[key]).same() {
				differs[key] = true
			}
		}
	}
	if whole {
		if err := o.moment(at, life); err != nil {
			return err
		}
	}
	back := len(o.history) - at
	o.st.stats.takenBack.Add(int64(back))
	o.ring.add(fmt.Sprintf("recovered: server %d, then %d; %d steps of %d that were in doubt are not there", o.life, life, back, len(o.history)-sure))
	for key, i := range wild {
		if i < at {
			o.set(key, seen[key].v)
			o.st.stats.adopted.Add(1)
		}
	}
	o.life = life
	if o.history = o.history[:at]; whole {
		o.history = nil // the data were loaded
	}
	for _, s := range o.history { // the outcome is known now, but a crash may still lose it
		if s.acked.IsZero() {
			s.acked, s.wild = time.Now(), nil
		}
	}
	return nil
}

// sure returns how many steps are done for certain.
func (o *owner) sure(life int) int {
	from, lossy := o.st.lostSince(o.life, life)
	n := len(o.history)
	for n > 0 && (o.history[n-1].acked.IsZero() || lossy && o.history[n-1].acked.After(from)) {
		n--
	}
	return n
}

// all adds the keys of the model, and of the server.
func (o *owner) all(c *client, keys map[string]bool) error {
	found, err := keysOf(c, o.name+":")
	for _, key := range slices.AppendSeq(found, maps.Keys(o.model)) {
		keys[key] = true
	}
	return err
}

// moment tells the stage of what moment the data are, of which the first n steps are
// there: not before the last of these was sent, and not after the next one was
// acknowledged.
func (o *owner) moment(n, life int) error {
	var lo, hi time.Time
	for i := n - 1; i >= 0; i-- { // steps that have changed nothing may be on either side
		if !o.history[i].vague && o.changed(o.history[i], nowMs()+edge) {
			lo = o.history[i].sent
			break
		}
	}
	if n < len(o.history) && !o.history[n].vague {
		hi = o.history[n].acked
	}
	return o.st.moment(o.life, life, o.name, lo, hi)
}

// undo makes the model what it was before a step.
func (o *owner) undo(s *step) {
	for i := len(s.undo) - 1; i >= 0; i-- {
		o.set(s.undo[i].key, s.undo[i].was)
	}
}

// sight is what was seen of a key, and when.
type sight struct {
	v          *value
	begin, end int64
}

func (o *owner) look(c *client, key string) (s sight, err error) {
	s.begin = nowMs()
	s.v, err = observe(c, key)
	s.end = nowMs()
	return s, err
}

// comparison is a value that must be there, and the one that is.
type comparison struct{ want, got *value }

func (c comparison) same() bool     { return same(c.want, c.got) }
func (c comparison) String() string { return difference(c.want, c.got) }

// compare compares the model's value of a key with what was seen. It leaves out what is
// near its deadline and cannot be judged.
func (o *owner) compare(key string, seen sight) comparison {
	o.st.stats.compared.Add(1)
	want, got := o.model[key].clone().purge(seen.begin-edge), seen.v.clone().purge(seen.begin-edge)
	near := func(at int64) bool { return at != 0 && at <= seen.end+edge }
	mayBeGone := func(v *value) bool { return v == nil || near(v.at) }
	if mayBeGone(want) && mayBeGone(got) && (want == nil || got == nil) {
		return comparison{}
	}
	for _, v := range []*value{want, got} {
		if v == nil {
			continue
		}
		for m, at := range v.due {
			mayBeGone := func(v *value) bool { return v == nil || !v.has(m) || near(v.due[m]) }
			if near(at) && mayBeGone(want) && mayBeGone(got) {
				want.drop(m)
				got.drop(m)
			}
		}
	}
	return comparison{want.purge(0), got.purge(0)}
}

func (o *owner) set(key string, v *value) {
	if v == nil {
		delete(o.model, key)
		return
	}
	o.model[key] = v.clone()
}

// changed reports whether a step after which nothing was changed has changed anything
// that can still be seen.
func (o *owner) changed(s *step, now int64) bool {
	seen := map[string]bool{}
	for _, u := range s.undo {
		if !seen[u.key] && !same(u.was.clone().purge(now), o.model[u.key].clone().purge(now)) && !slices.Contains(s.wild, u.key) {
			return true
		}
		seen[u.key] = true
	}
	return false
}

// adopt takes a key as the server has it, when its expected value is unknown.
func (o *owner) adopt(key string) error {
	for {
		seen, err := o.look(o.c, key)
		if r := (*refusal)(nil); errors.As(err, &r) && transient(r.reply) && !o.st.failed.Load() {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		if seen.v.next() <= seen.end+edge {
			time.Sleep(edge * time.Millisecond)
			continue
		}
		o.st.stats.adopted.Add(1)
		o.ring.add("adopted " + key + ": " + seen.v.String())
		o.set(key, seen.v)
		return nil
	}
}

// trim forgets how to take back steps that cannot be lost any more.
func (o *owner) trim() {
	if len(o.history) < 64 {
		return
	}
	keep := o.st.mayLose()
	n := 0
	for n < len(o.history) && !o.history[n].acked.IsZero() && time.Since(o.history[n].acked) > keep {
		n++
	}
	if n > 0 {
		o.history = slices.Delete(o.history, 0, n)
	}
}

// usable reports whether a key is far from all of its deadlines, and removes from
// the model what has expired.
func (o *owner) usable(key string) bool {
	v, ok := o.model[key]
	if !ok {
		return true
	}
	now := nowMs()
	if next := v.next(); next <= now-edge {
		if v = v.purge(now - edge); v == nil {
			delete(o.model, key)
			return true
		}
	}
	return v.next() > now+guard
}

// refused reports whether an error says that nothing was done, for a reason that
// this program has made: a limit of memory, a script that runs, a function that a
// crash has taken away.
func refused(e errorReply) bool {
	for _, prefix := range []string{"OOM ", "BUSY ", "EXECABORT ", "NOSCRIPT ", "ERR Function not found", "LOADING "} {
		if strings.HasPrefix(string(e), prefix) {
			return true
		}
	}
	return strings.Contains(string(e), "OOM command not allowed")
}

// isRefused reports whether a reply is an error that says so.
func isRefused(r any) bool {
	e, bad := r.(errorReply)
	return bad && refused(e)
}

// transient reports whether it is worth asking again.
func transient(e errorReply) bool {
	return refused(e) || strings.HasPrefix(string(e), "ERR max number of clients")
}

func isError(v any) bool { _, bad := v.(errorReply); return bad }

// keysOf lists the keys with a prefix.
func keysOf(c *client, prefix string) ([]string, error) {
	seen := map[string]bool{}
	for cursor := "0"; ; {
		r, err := c.ask(words("SCAN", cursor, "MATCH", prefix+"*", "COUNT", 1000))
		if err != nil {
			return nil, err
		}
		pair := list(r[0])
		for _, key := range texts(pair[1]) {
			seen[key] = true
		}
		if cursor = text(pair[0]); cursor == "0" {
			return slices.Sorted(maps.Keys(seen)), nil
		}
	}
}

// compareAll compares all that an owner has with what the server has. No
// worker runs meanwhile.
func (o *owner) compareAll(c *client, life int) error {
	if err := o.recover(c, life); err != nil {
		return err
	}
	all := map[string]bool{}
	if err := o.all(c, all); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		v, err := o.look(c, key)
		if err != nil {
			return err
		}
		if c := o.compare(key, v); !c.same() {
			return &mismatch{key, c.String()}
		}
	}
	return nil
}
