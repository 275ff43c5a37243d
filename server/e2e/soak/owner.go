//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
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
	st      *stage
	name    string
	rng     *rand.Rand
	seed    uint64
	c       *client
	resp3   bool
	life    int // of the server: see stage.life
	model   map[string]*value
	tables  map[string][]operation
	history []*step
	ring    ring
	stats   *ownerStats
}

// ownerStats are counted over all owners of a stage.
type ownerStats struct {
	commands, steps, refused, lost, recovered, takenBack, adopted, compared atomic.Int64
}

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

const (
	edge  = 50  // milliseconds around a deadline in which the outcome is undefined
	guard = 400 // milliseconds before a deadline in which nothing is done to a key any more
)

func nowMs() int64 { return time.Now().UnixMilli() }

func newOwner(st *stage, n int, stats *ownerStats) *owner {
	o := &owner{st: st, name: fmt.Sprintf("o%d", n), model: map[string]*value{}, tables: tables(), stats: stats, resp3: n%2 == 1}
	o.rng, o.seed = st.random(uint64(n))
	return o
}

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
	if o.c != nil {
		o.c.close()
	}
}

// work does one step, with all that follows if the connection breaks.
func (o *owner) work() error {
	if o.c == nil {
		if err := o.connect(); err != nil {
			return err
		}
	}
	if o.rng.IntN(2000) == 0 { // a client that comes and goes
		if o.rng.IntN(2) == 0 {
			o.c.reset()
		} else {
			o.c.close()
		}
		o.c = nil
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
	if timedOut(err) {
		return fmt.Errorf("no reply within %v: %w", answerTime, err)
	}
	o.ring.add("connection lost: " + err.Error())
	o.stats.lost.Add(1)
	o.c.close()
	o.c = nil
	return nil // connect finds out what was done
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
		if o.resp3 {
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
	sure := len(o.history) // so many steps are done for certain
	whole := false
	for sure > 0 && o.history[sure-1].acked.IsZero() {
		sure--
	}
	if life != o.life {
		whole = true
		if from, lossy := o.st.lostSince(o.life, life); lossy {
			for sure > 0 && o.history[sure-1].acked.After(from) {
				sure--
			}
		}
	}
	if !whole && sure == len(o.history) {
		return nil
	}
	asked := map[string]bool{}
	wild := map[string]int{} // keys, and the first step from which on they are not known
	if whole {
		for key := range o.model {
			asked[key] = true
		}
	}
	for i := len(o.history) - 1; i >= sure; i-- {
		for _, u := range o.history[i].undo {
			asked[u.key] = true
		}
		if o.history[i].acked.IsZero() {
			for _, key := range o.history[i].wild {
				asked[key] = true
				wild[key] = i
			}
		}
	}
	if whole { // there must be no others
		found, err := keysOf(c, o.name+":")
		if err != nil {
			return err
		}
		for _, key := range found {
			asked[key] = true
		}
	}
	seen := map[string]sight{}
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		v, err := o.look(c, key)
		if err != nil {
			return err
		}
		seen[key] = v
	}
	o.stats.recovered.Add(1)
	at := len(o.history)
	differs := map[string]string{}
	compare := func(key string) {
		if i, ok := wild[key]; ok && i < at {
			delete(differs, key)
			return
		}
		if d := o.compare(key, seen[key]); d != "" {
			differs[key] = d
		} else {
			delete(differs, key)
		}
	}
	for key := range asked {
		compare(key)
	}
	first := maps.Clone(differs)
	back := 0
	for len(differs) > 0 {
		if at == sure {
			for key, d := range differs {
				return &mismatch{key, fmt.Sprintf("after the connection was lost (server %d, then %d), none of the last %d steps explains what is there. At the earliest of these moments: %s. As all done: %s",
					o.life, life, len(o.history)-sure, d, first[key])}
			}
		}
		at--
		back++
		for i := len(o.history[at].undo) - 1; i >= 0; i-- {
			u := o.history[at].undo[i]
			o.set(u.key, u.was)
		}
		for _, u := range o.history[at].undo {
			compare(u.key)
		}
		for _, key := range o.history[at].wild {
			compare(key)
		}
	}
	if whole {
		// The moment of which the data are: not before the last step that is
		// there was sent, and not after the first that is not was acknowledged.
		var lo, hi time.Time
		for i := at - 1; i >= 0; i-- { // steps that have changed nothing may be on either side
			if !o.history[i].vague && o.changed(o.history[i], nowMs()+edge) {
				lo = o.history[i].sent
				break
			}
		}
		if at < len(o.history) && !o.history[at].vague {
			hi = o.history[at].acked
		}
		if err := o.st.moment(o.life, life, o.name, lo, hi); err != nil {
			return err
		}
	}
	o.stats.takenBack.Add(int64(back))
	o.ring.add(fmt.Sprintf("recovered: server %d, then %d; %d steps of %d that were in doubt are not there", o.life, life, back, len(o.history)-sure))
	for key, i := range wild {
		if i < at {
			o.set(key, seen[key].v)
			o.stats.adopted.Add(1)
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

// compare compares the model's value of a key with what was seen. A value
// near its deadline cannot be judged.
func (o *owner) compare(key string, seen sight) string {
	o.stats.compared.Add(1)
	want, got := o.model[key].clone().purge(seen.begin-edge), seen.v.clone().purge(seen.begin-edge)
	near := func(at int64) bool { return at != 0 && at <= seen.end+edge }
	mayBeGone := func(v *value) bool { return v == nil || near(v.at) }
	if mayBeGone(want) && mayBeGone(got) && (want == nil || got == nil) {
		return ""
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
	return difference(want.purge(0), got.purge(0))
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
		if !seen[u.key] && difference(u.was.clone().purge(now), o.model[u.key].clone().purge(now)) != "" && !slices.Contains(s.wild, u.key) {
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
		o.stats.adopted.Add(1)
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
	if err := o.c.send(words("MULTI"), words("SET", d.key, "never"), words("EXEC")); err != nil {
		return err
	}
	var r any
	for range 3 {
		if r, err = o.c.read(); err != nil {
			return err
		}
	}
	if e, bad := r.(errorReply); bad && refused(e) {
		return nil
	}
	if r != nil {
		return &mismatch{d.key, "a watched key was changed, and EXEC has replied " + show(r)}
	}
	o.stats.steps.Add(1)
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
	o, s, steps, ops, want, keys, way, nearest := t.o, t.steps[0], t.steps, t.ops, t.want, t.keys, t.way, t.nearest
	var commands [][]string
	for _, p := range ops {
		switch way {
		case "eval":
			commands = append(commands, words("EVAL", "return redis.call(unpack(ARGV))", 0, p.words))
		case "fcall":
			commands = append(commands, words("FCALL", "soak_call", 0, p.words))
		default:
			commands = append(commands, p.words)
		}
	}
	skip := 0
	if way == "multi" {
		commands = slices.Concat([][]string{{"MULTI"}}, commands, [][]string{{"EXEC"}})
		skip = len(ops) + 1
	}
	now := time.Now()
	for _, s := range steps {
		s.sent = now
	}
	o.history = append(o.history, steps...)
	o.stats.steps.Add(1)
	o.stats.commands.Add(int64(len(commands)))
	if err := o.c.send(commands...); err != nil {
		return err
	}
	var replies []any
	for range skip {
		if _, err := o.c.read(); err != nil {
			return err
		}
	}
	if way == "multi" {
		r, err := o.c.read()
		if err != nil {
			return err
		}
		if e, bad := r.(errorReply); bad {
			if !refused(e) {
				return &mismatch{ops[0].keys[0], fmt.Sprintf("a transaction: %s", e)}
			}
			return o.takeBack(s)
		}
		if r == nil && time.Now().UnixMilli() >= nearest-edge { // a watched key has expired
			if err := o.takeBack(s); err != nil {
				return err
			}
			for _, key := range keys {
				if err := o.adopt(key); err != nil {
					o.history = append(o.history, &step{sent: time.Now(), wild: keys}) // of these nothing is known
					return err
				}
			}
			return nil
		}
		replies = list(r)
		if len(replies) != len(ops) {
			return &mismatch{ops[0].keys[0], fmt.Sprintf("a transaction of %d commands has replied %s", len(ops), show(r))}
		}
	} else {
		for i := range ops {
			r, err := o.c.read()
			if err != nil {
				if slices.ContainsFunc(replies, isError) { // some may have been refused, and those after them done
					s := steps[len(steps)-1]
					s.acked, s.wild = time.Time{}, keys
				}
				return err
			}
			replies = append(replies, r)
			if len(steps) == len(ops) {
				steps[i].acked = time.Now()
			}
		}
	}
	s.acked = time.Now()
	for i := range steps {
		steps[i].acked = s.acked
	}
	late := s.acked.UnixMilli() >= nearest-edge
	for i := range ops {
		r := replies[i]
		if e, bad := r.(errorReply); bad && refused(e) {
			if len(ops) == 1 {
				return o.takeBack(s)
			}
			late = true
			o.stats.refused.Add(1)
		}
	}
	if late { // the steps may have run before the deadline or after it
		for _, s := range steps {
			s.vague = true
		}
		for _, key := range keys {
			if err := o.adopt(key); err != nil {
				// Of these keys nothing is known until they were read.
				s := steps[len(steps)-1]
				s.acked, s.wild = time.Time{}, keys
				return err
			}
		}
		return nil
	}
	for i, p := range ops {
		if matches(want[i], replies[i]) {
			for _, key := range p.keys { // a reply that picks may have removed the last element
				if v := o.model[key]; v != nil && v.exists() == 0 {
					delete(o.model, key)
				}
			}
			continue
		}
		problem := between(want[i], replies[i])
		if problem == "" {
			problem = fmt.Sprintf("reply %s, must be %s", show(replies[i]), show(want[i]))
		}
		return &mismatch{p.keys[0], fmt.Sprintf("%s %s: %s", way, quoted(p.words), problem)}
	}
	return nil
}

// takeBack makes a step that was refused one that was not done.
func (o *owner) takeBack(s *step) error {
	o.stats.refused.Add(1)
	o.ring.add("refused")
	for i := len(s.undo) - 1; i >= 0; i-- {
		o.set(s.undo[i].key, s.undo[i].was)
	}
	if o.history[len(o.history)-1] != s {
		return errors.New("the last step is not the last")
	}
	o.history = o.history[:len(o.history)-1]
	return nil
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

// transient reports whether it is worth asking again.
func transient(e errorReply) bool {
	return refused(e) || strings.HasPrefix(string(e), "ERR max number of clients")
}

func isError(v any) bool { _, bad := v.(errorReply); return bad }

// keysOf lists the keys with a prefix.
func keysOf(c *client, prefix string) (keys []string, err error) {
	seen := map[string]bool{}
	for cursor := "0"; ; {
		r, err := c.do("SCAN", cursor, "MATCH", prefix+"*", "COUNT", "1000")
		if err != nil {
			return nil, err
		}
		if e, bad := r.(errorReply); bad {
			return nil, &refusal{[]string{"SCAN"}, e}
		}
		pair := list(r)
		for _, key := range list(pair[1]) {
			seen[text(key)] = true
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
	found, err := keysOf(c, o.name+":")
	if err != nil {
		return err
	}
	all := map[string]bool{}
	for _, key := range found {
		all[key] = true
	}
	for key := range o.model {
		all[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		v, err := o.look(c, key)
		if err != nil {
			return err
		}
		if d := o.compare(key, v); d != "" {
			return &mismatch{key, d}
		}
	}
	return nil
}

// ring has the last that a worker has done.
type ring struct {
	lines [400]string
	n     int
}

func (r *ring) add(line string) {
	r.lines[r.n%len(r.lines)] = time.Now().Format("15:04:05.000000 ") + line
	r.n++
}

// about returns the lines that name a key, and the last ones.
func (r *ring) about(key string) string {
	var b strings.Builder
	for i := max(0, r.n-len(r.lines)); i < r.n; i++ {
		line := r.lines[i%len(r.lines)]
		if r.n-i <= 8 || key != "" && strings.Contains(line, key+`"`) || key != "" && strings.Contains(line, key+":") || !strings.Contains(line, `"`) {
			fmt.Fprintln(&b, "   ", line)
		}
	}
	return b.String()
}

// tail returns the last n lines.
func (r *ring) tail(n int) string {
	var b strings.Builder
	for i := max(0, r.n-min(n, len(r.lines))); i < r.n; i++ {
		fmt.Fprintln(&b, "   ", r.lines[i%len(r.lines)])
	}
	return b.String()
}

func quoted(args []string) string {
	var b strings.Builder
	for i, a := range args {
		if len(a) > 40 {
			a = fmt.Sprintf("%s…%d", a[:30], len(a))
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		if i == 24 {
			fmt.Fprintf(&b, "… (%d in all)", len(args))
			break
		}
		b.WriteString(show(a))
	}
	return b.String()
}
