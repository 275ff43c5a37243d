package server

import (
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/keyspace"
	"github.com/zsetd/zsetd/server/script"
)

// A script runs in the commit scope of its command. The commands of redis.call are
// Calls of a separate session in that scope, so keyspace effects, notifications,
// journaling and statistics are the same as for commands that a client sends.
//
// The script holds the lock all the time. When it has run for longer than
// busy-reply-threshold, it releases the lock every few milliseconds, between two
// instructions or within long steps, so that other clients receive -BUSY and can
// kill it. Every other user of the lock waits in lock until the script has ended.

// scripting is the server's state of scripts and functions.
type scripting struct {
	state    *script.State // of EVAL; nil until first used
	cache    map[string]*evalScript
	bytes    int // of their sources
	session  *Session
	running  *scriptRun
	allowAll bool // DEBUG SET-DISABLE-DENY-SCRIPTS

	memoryLimit uint64                       // how much the process may grow while a script runs
	watched     atomic.Pointer[scriptMemory] // of the running script
	base        memoryUse                    // of the process at baseAt
	baseAt      time.Time                    // when base was read

	functions functions
}

// evalScript is a script in the cache.
type evalScript struct {
	name   string // its SHA-1
	source string
	flags  scriptFlags
	fn     *lua.LFunction
}

// scriptFlags are the declared flags of a script or a function.
type scriptFlags uint8

const (
	scriptNoWrites scriptFlags = 1 << iota
	scriptAllowOOM
	scriptAllowStale
	scriptNoCluster
	scriptCrossSlot
	scriptCompat // no flags declared: everything is allowed
)

// scriptFlagNames are the names of the flags, in Redis's order.
func scriptFlagNames() []string {
	return []string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}
}

func (f scriptFlags) has(g scriptFlags) bool { return f&g != 0 }

// effects returns the flags of a command. If it runs a script that declares flags,
// these determine the result.
func (c *Command) effects(srv *Server, argv [][]byte) protocol.Flags {
	flags := c.spec.Flags()
	if c.scriptFlags == nil || len(argv) < 2 {
		return flags
	}
	of := c.scriptFlags(srv, argv)
	if of.has(scriptCompat) {
		return flags
	}
	flags &^= protocol.Stale | protocol.DenyOOM | protocol.Write | protocol.MayReplicate
	if !of.has(scriptAllowOOM | scriptNoWrites) {
		flags |= protocol.DenyOOM
	}
	if !of.has(scriptNoWrites) {
		flags |= protocol.Write
	}
	if of.has(scriptAllowStale) {
		flags |= protocol.Stale
	}
	return flags
}

// scriptRun is a running script.
type scriptRun struct {
	srv      *Server
	state    *script.State
	caller   *Session
	row      *Command
	command  [][]byte // the command that runs it
	name     string   // of the function, or the script's SHA-1
	eval     bool
	readOnly bool
	flags    scriptFlags
	started  time.Time // by the running clock, not that of the commit scope
	wrote    bool
	busy     bool // has exceeded the threshold: other clients receive -BUSY
	killed   bool
	memory   scriptMemory
	slot     int // of the keys so far, in a cluster; -1 if there were none
}

const (
	errNoScript   = "NOSCRIPT No matching script. Please use EVAL."
	errBusyEval   = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	errBusyFcall  = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
	errNotBusy    = "NOTBUSY No scripts in execution right now."
	errUnkillable = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the " +
		"script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
	errScriptsMisconf = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Writable scripts are blocked. Use 'no-writes' flag for read only scripts."
)

// busyError is the reply to other clients while the script runs.
func (r *scriptRun) busyError() string {
	if r.eval {
		return errBusyEval
	}
	return errBusyFcall
}

// runScript runs a function for a command, and replies its result. keys and args
// are globals of a script, and arguments of a function.
func (c *Call) runScript(state *script.State, fn *lua.LFunction, r *scriptRun, keys, args [][]byte) {
	srv := c.srv
	sc := &srv.scripting
	if sc.running != nil { // only with DEBUG SET-DISABLE-DENY-SCRIPTS
		c.Reply.Error("ERR This Redis command is not allowed from script")
		return
	}
	if srv.cluster != nil {
		if r.flags.has(scriptNoCluster) {
			c.Reply.Error("ERR Can not run script on cluster, 'no-cluster' flag is set.")
			return
		}
		r.slot, _ = c.sess.misplaced(c.cmd, c.argv)
	}
	if !r.flags.has(scriptCompat) && !r.flags.has(scriptNoWrites) {
		switch {
		case srv.keeper.refuses():
			c.Reply.Error(errScriptsMisconf)
			return
		case r.readOnly:
			c.Reply.Error("ERR Can not execute a script with write flag using *_ro command.")
			return
		case srv.lacksReplicas():
			c.Reply.Error(errNoReplicas)
			return
		}
	}
	r.readOnly = r.readOnly || r.flags.has(scriptNoWrites)
	r.attach(c, state)
	s := srv.scriptSession()
	s.db, s.user, s.authenticated, s.multi = c.db, c.sess.user, true, false
	s.out.SetVersion(2)
	s.out.Truncate(0)
	s.out.SetLimit(int(srv.scripting.memoryLimit/8) + 1<<10) // a string of the greatest length, and its header
	sc.begin(r)
	defer srv.endScript(r)
	state.Running, state.Interrupt = true, r.interrupt
	k, a := stringTable(state, keys), stringTable(state, args)
	var result lua.LValue
	var failed *script.Error
	if r.eval {
		state.SetGlobal("KEYS", k)
		state.SetGlobal("ARGV", a)
		result, failed = state.Call(fn)
	} else {
		result, failed = state.Call(fn, k, a)
	}
	if failed != nil {
		c.scriptFailed(r, failed)
		return
	}
	w := luaReply{c: c, run: r, resp3: s.out.Version() == 3, start: c.Reply.Len()}
	if w.value(result, 2); w.ended != nil && !c.Reply.Over() {
		c.Reply.Truncate(w.start)
		c.scriptFailed(r, &script.Error{Value: w.ended})
	}
}

// attach records the command that runs a script.
func (r *scriptRun) attach(c *Call, state *script.State) {
	r.srv, r.state, r.caller, r.row, r.command, r.started = c.srv, state, c.sess, c.cmd, c.argv, time.Now()
}

// compileScript compiles a source for a command. It can be interrupted like the
// script itself, because compiling 100 MB takes seconds.
func (c *Call) compileScript(state *script.State, r *scriptRun, source, chunk string) (*lua.LFunction, error) {
	sc := &c.srv.scripting
	if sc.running != nil { // see runScript
		return state.Compile(source, chunk)
	}
	r.attach(c, state)
	sc.begin(r)
	defer c.srv.endScript(r)
	state.Interrupt = r.interrupt
	return state.Compile(source, chunk)
}

// begin makes r the running script.
func (sc *scripting) begin(r *scriptRun) {
	sc.running = r
	r.memory.begin(sc, r.srv.keys, r.started)
	sc.watched.Store(&r.memory)
}

// endScript reverses begin and resumes the waiters for the end of the script.
func (srv *Server) endScript(r *scriptRun) {
	sc := &srv.scripting
	r.state.Running, r.state.Interrupt = false, nil
	sc.watched.Store(nil)
	r.memory.end()
	sc.running = nil
	if sc.session != nil && sc.session.out.Cap() > maxKeptReply {
		sc.session.out.Swap(nil)
	}
	if r.busy {
		srv.busyEnded()
	}
}

// maxKeptReply is the largest reply buffer that is kept for the next script.
const maxKeptReply = 1 << 20

// scriptingMemory is the estimated memory of scripts and functions.
type scriptingMemory struct{ eval, functions, vmEval, vmFunctions int64 }

// The measured size of a machine with its libraries, and of a compiled script or
// function in addition to its source.
const (
	vmBytes     = 96 << 10
	scriptBytes = 4 << 10
)

func (sc *scripting) memory() (m scriptingMemory) {
	m.eval = int64(sc.bytes + len(sc.cache)*scriptBytes)
	for _, l := range sc.functions.libraries {
		m.functions += int64(len(l.code) + len(l.functions)*scriptBytes)
	}
	if sc.state != nil {
		m.vmEval = vmBytes
	}
	if sc.functions.state != nil {
		m.vmFunctions = vmBytes
	}
	return m
}

// all returns the sum.
func (m scriptingMemory) all() int64 { return m.eval + m.functions + m.vmEval + m.vmFunctions }

// stringTable makes a table of arguments.
func stringTable(state *script.State, args [][]byte) *lua.LTable {
	t := state.L.CreateTable(len(args), 0)
	for _, a := range args {
		t.Append(lua.LString(a))
	}
	return t
}

// scriptSession returns the session that runs the commands of scripts.
func (srv *Server) scriptSession() *Session {
	sc := &srv.scripting
	if sc.session == nil {
		s := &Session{srv: srv, peer: peer{addr: "?:0", laddr: "?:0", fd: -1, wake: func() {}}, noBlock: true, script: true}
		s.call = Call{sess: s, srv: srv, Reply: &s.out, nested: true}
		sc.session = s
	}
	return sc.session
}

// scriptFailed replies the error that a script has raised.
func (c *Call) scriptFailed(r *scriptRun, failed *script.Error) {
	t, ok := failed.Value.(*lua.LTable)
	var msg string
	if !ok {
		text, isText := script.ToString(failed.Value)
		if !isText {
			text = luaText(failed.Value)
		}
		msg = "ERR " + text
	} else {
		msg, c.counted = errorOf(t)
	}
	msg = cText(msg)
	if failed.Known {
		msg += fmt.Sprintf(" script: %s, on %s:%d.", r.name, failed.Source, failed.Line)
	}
	c.Reply.Error(msg)
}

// luaText returns the result of tostring for a value other than a string.
func luaText(v lua.LValue) string {
	switch v := v.(type) {
	case *lua.LNilType:
		return "nil"
	case lua.LBool:
		return strconv.FormatBool(bool(v))
	}
	return v.String()
}

// errorOf returns the message of an error table, and whether the error was counted
// with the command that has raised it.
func errorOf(t *lua.LTable) (msg string, counted bool) {
	if s, ok := script.ToString(t.RawGetString("err")); ok {
		msg = s
	} else {
		msg = "ERR unknown error"
	}
	b, ok := t.RawGetString("ignore_error_stats_update").(lua.LBool)
	return msg, ok && bool(b)
}

// cText returns s as C would print it on a line.
func cText(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return strings.Trim(s, "\r\n")
}

// errorTable returns the table that represents an error in scripts. msg is an error
// line as clients receive it, with a code.
func errorTable(state *script.State, msg string, counted bool) *lua.LTable {
	t := state.Table()
	t.RawSetString("err", lua.LString(msg))
	if counted {
		t.RawSetString("ignore_error_stats_update", lua.LTrue)
	}
	return t
}

// interrupt is called by the machine at intervals. It returns the error that ends
// the script, or nil if the script continues.
func (r *scriptRun) interrupt() *lua.LTable {
	srv := r.srv
	if r.memory.outgrown() {
		return errorTable(r.state, "ERR not enough memory", false)
	}
	if threshold := srv.config.busyReplyThreshold; !r.busy && (threshold == 0 || time.Since(r.started).Milliseconds() < threshold) {
		return nil
	}
	if !r.busy {
		r.busy = true
		kill := "SCRIPT KILL"
		if !r.eval {
			kill = "FUNCTION KILL"
		}
		srv.log.Warn("slow script: still running", "milliseconds", time.Since(r.started).Milliseconds(), "script", r.name, "kill", kill)
	}
	srv.yieldLock()
	switch {
	case srv.mu.broken: // another goroutine has panicked meanwhile
		r.state.Bug(lockBroken{})
		return errorTable(r.state, errInternal, false)
	case srv.closed && r.wrote && !srv.ending.nosave:
		// A partial result of the script must not be saved.
		srv.ending.nosave = true
		srv.log.Warn("the shutdown ended a script that had changed data; unsaved changes are lost", "script", r.name)
		fallthrough
	case r.killed || srv.closed:
		srv.log.Warn("script killed", "script", r.name)
		return errorTable(r.state, "ERR Script killed by user with SCRIPT KILL...", false)
	}
	return nil
}

// defaultScriptMemory is the limit unless a test sets another one. On a busy
// machine, where the collector lags behind, a step of the largest table exceeds it
// by 4 %; server/README.md promises 5 GB.
const defaultScriptMemory = 4 << 30

// scriptMemory limits the memory that a script takes. While a script runs, the
// process must not grow by more than the limit, including garbage and the
// allocations of a single step: growth of a table copies it, which takes 1.9 GB for
// the largest one, and a string of 512 MB is made in a buffer that grows likewise.
// So a script may hold a quarter of the limit, garbage takes an eighth more, and
// the rest is for the step; a step of the largest table takes 3 GB including
// garbage that is collected too late. Data that the script stores in keys do not
// count: maxmemory limits them.
type scriptMemory struct {
	limit        uint64
	keys         *keyspace.Keyspace
	stored       int64     // bytes of all keys when the script began
	base         memoryUse // when the script began
	collectAbove memoryUse // above it outgrown collects garbage before it decides

	stage     atomic.Int32
	mu        sync.Mutex // guards tightened
	tightened int64      // limit that tighten has set; 0: none
}

// Stages of scriptMemory. A script that never gets tight takes no lock.
const (
	memoryAmple int32 = iota
	memoryTight       // tighten may set a limit
	memoryEnded       // the script has ended: the limit is what it was before
)

// memoryUse is the memory of the process: in heap objects, live or not, and mapped
// from the operating system.
type memoryUse struct{ objects, mapped uint64 }

func readMemory() memoryUse {
	samples := [...]metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples[:])
	return memoryUse{samples[0].Value.Uint64(), samples[1].Value.Uint64() - samples[2].Value.Uint64()}
}

// baseAge is the greatest age of the base figures of a script: reading them takes
// microseconds.
const baseAge = 100 * time.Millisecond

func (m *scriptMemory) begin(sc *scripting, keys *keyspace.Keyspace, now time.Time) {
	if now.Sub(sc.baseAt) > baseAge {
		sc.base, sc.baseAt = readMemory(), now
	}
	m.limit, m.base, m.keys, m.stored = sc.memoryLimit, sc.base, keys, keys.UsedBytes()
	m.collectAbove = memoryUse{m.base.objects + m.limit/4, m.base.mapped + m.limit/4}
}

// outgrown reports whether the script has exceeded its memory limit. Garbage does
// not count, so it is collected, and returned to the operating system, before the
// decision.
func (m *scriptMemory) outgrown() bool {
	now := m.read()
	m.tighten(now.mapped, m.keys.UsedBytes()-m.stored)
	if now.objects <= m.collectAbove.objects && now.mapped <= m.collectAbove.mapped {
		return false
	}
	debug.FreeOSMemory()
	now = m.read()
	m.collectAbove.objects = max(now.objects, m.base.objects+m.limit/4) + m.limit/8
	m.collectAbove.mapped = max(now.mapped, m.base.mapped+m.limit/4) + m.limit/8
	return now.objects > m.base.objects+m.limit/4
}

// read is readMemory without the data that the script has stored in keys.
func (m *scriptMemory) read() memoryUse {
	now := readMemory()
	if stored := m.keys.UsedBytes() - m.stored; stored > 0 {
		now.objects -= min(now.objects, uint64(stored))
		now.mapped -= min(now.mapped, uint64(stored))
	}
	return now
}

// tighten sets the memory limit of the garbage collector when a script has taken
// much memory: the collector then frees the garbage of a single step, such as the
// copies of a growing table, within the step. Any goroutine may call it. A limit
// that the embedding program, or another server in it, has set is kept.
func (m *scriptMemory) tighten(mapped uint64, stored int64) {
	if mapped <= m.base.mapped+m.limit/8 {
		return
	}
	m.stage.CompareAndSwap(memoryAmple, memoryTight)
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := int64(m.base.mapped+m.limit/2) + max(stored, 0)
	if now := debug.SetMemoryLimit(-1); m.stage.Load() == memoryTight && (now == math.MaxInt64 || now == m.tightened && limit > now+int64(m.limit/16)) {
		debug.SetMemoryLimit(limit)
		m.tightened = limit
	}
}

// tick is called by another goroutine each millisecond while a script runs, also
// within a step.
func (sc *scripting) tick() {
	if m := sc.watched.Load(); m != nil {
		m.tighten(readMemory().mapped, 0)
	}
}

// end is called when the script has ended.
func (m *scriptMemory) end() {
	if m.stage.CompareAndSwap(memoryAmple, memoryEnded) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stage.Store(memoryEnded)
	if m.tightened != 0 && debug.SetMemoryLimit(-1) == m.tightened {
		debug.SetMemoryLimit(math.MaxInt64)
	}
}

// yieldLock releases the lock to its waiters, and takes it again. In between no
// commit scope begins: sessions run the commands that are allowed while a script is
// busy, in turnWhileBusy, and every other goroutine waits in lock.
func (srv *Server) yieldLock() {
	if len(srv.scope.wake) > 0 && srv.keeper.holds() {
		srv.holdWoken()
	}
	u, at, instant, current, before := srv.scope, srv.at, srv.instant, srv.current, srv.keeper.turnSequence
	srv.scope = commitScope{srv: srv, changes: u.changes, wake: u.wake} // sessions with new output are woken now
	u.wake = nil
	srv.current, srv.busy = nil, true
	if srv.looping != nil {
		srv.looping.replace() // a new goroutine must read the loop's other clients
	}
	if srv.pausedUntil == 0 {
		srv.keys.Freeze()
	}
	srv.unlock()
	time.Sleep(busyYieldTime)
	srv.mu.Mutex.Lock()
	if srv.mu.broken {
		return // return to interrupt, which ends the script
	}
	u.changes = srv.scope.changes
	srv.scope, srv.at, srv.instant, srv.current = u, at, instant, current
	srv.keeper.turnSequence = before
	if srv.pausedUntil == 0 {
		srv.keys.Thaw()
	}
}

// busyYieldTime is how long the lock is free each time.
const busyYieldTime = 200 * time.Microsecond

// busyEnded resumes the goroutines that wait for the end of a script.
func (srv *Server) busyEnded() {
	srv.busy = false
	srv.idle.Broadcast()
}

// turnWhileBusy is the variant of turn for the time while a script is busy. The
// lock is held on entry, and not on return. The commands that it runs affect
// sessions only.
func (s *Session) turnWhileBusy(batch [][][]byte) (done int, out []byte, ending bool) {
	done, out, ending = s.workWhileBusy(batch)
	srv := s.srv
	wake := srv.scope.wake
	srv.scope.wake = nil
	for _, w := range wake {
		w.waking = false
	}
	srv.mu.Unlock()
	for _, w := range wake {
		w.wake()
	}
	return done, out, ending
}

// workWhileBusy is the part of turnWhileBusy that holds the lock.
func (s *Session) workWhileBusy(batch [][][]byte) (done int, out []byte, ending bool) {
	srv := s.srv
	defer srv.guard()
	srv.current = s
	for done < len(batch) && !s.stalled.Load() && !s.closing && !s.killed {
		s.exec(batch[done])
		s.checkOutput()
		done++
	}
	srv.scope.commit()
	srv.current = nil
	if s.waiting() > 0 && !s.held && !s.killed && s.claim() {
		out = s.next(nil)
	}
	s.call.argv, s.call.Args = nil, protocol.Args{} // as in work
	return done, out, s.closing || s.killed
}

// call runs a command for the script. failed is the error line, with its code, of a
// command that is refused; the error is counted.
func (r *scriptRun) call(argv [][]byte) (reply []byte, failed string) {
	srv := r.srv
	cmd, names := srv.table.find(argv)
	if failed = r.refuses(cmd, argv); failed != "" {
		if cmd != nil {
			cmd.stats.rejected++
		}
		srv.countError(failed)
		return nil, failed
	}
	if cmd.spec.Flags().Has(protocol.Write) {
		r.wrote = true
	}
	s := srv.scripting.session
	c := &s.call
	c.Args = protocol.NewArgs(argv[names:])
	c.cmd, c.argv, c.db, c.secret, c.counted = cmd, argv, s.db, nil, false
	s.out.Truncate(0)
	start := srv.at
	srv.keys.NoTouch = r.caller.noTouch && cmd.Name != "touch"
	cmd.run(c)
	c.cmd, c.argv = cmd, argv
	c.removeEmpty()
	if r.caller.cache != nil && cmd.reads() {
		r.caller.trackKeys(r.row, r.command) // all keys passed to the script, and no others
	}
	srv.recordCall(c, 0, start)
	if s.out.Over() {
		return nil, "ERR not enough memory for the reply"
	}
	return s.out.Bytes(), ""
}

// refuses returns why a script may not run a command, "" if it may.
func (r *scriptRun) refuses(cmd *Command, argv [][]byte) string {
	if cmd == nil || cmd.byArg != nil && len(argv) > 1 {
		return "ERR Unknown Redis command called from script"
	}
	if !cmd.spec.ArityOK(len(argv)) {
		return "ERR Wrong number of args calling Redis command from script"
	}
	flags := cmd.spec.Flags()
	if flags.Has(protocol.NoScript) && !r.srv.scripting.allowAll {
		return "ERR This Redis command is not allowed from script"
	}
	if d := r.caller.permit(cmd, argv, deniedInScript); d != permitted {
		return "ERR " + d.inScript()
	}
	switch {
	case r.readOnly && flags.Has(protocol.Write|protocol.MayReplicate):
		return "ERR Write commands are not allowed from read-only scripts."
	case !flags.Has(protocol.Write) || r.wrote: // a script that has written runs to its end
	case r.srv.keeper.refuses():
		return errNotSaved
	case r.srv.lacksReplicas():
		return errNoReplicas
	}
	if flags.Has(protocol.DenyOOM) && !r.wrote && !r.flags.has(scriptAllowOOM) && r.srv.config.maxmemory != 0 && r.srv.memoryLimit.lacking {
		return errOOM
	}
	if r.srv.cluster != nil {
		if wrong := r.misplaced(cmd, argv); wrong != "" {
			return "ERR " + wrong
		}
	}
	return ""
}

// misplaced returns why a node of a cluster does not run a command for the script,
// or "".
func (r *scriptRun) misplaced(cmd *Command, argv [][]byte) string {
	slot, refusal := r.caller.misplaced(cmd, argv)
	switch {
	case refusal == errClusterReadOnly:
		return "Script attempted to execute a write command while the cluster is down and readonly"
	case refusal == errClusterDown:
		return "Script attempted to execute a command while the cluster is down"
	case refusal != "":
		return "Script attempted to access a non local key in a cluster node"
	case slot < 0 || r.flags.has(scriptCompat|scriptCrossSlot):
	case r.slot < 0:
		r.slot = slot
	case r.slot != slot:
		return "Script attempted to access keys that do not hash to the same slot"
	}
	return ""
}

// killScript ends the running script, for SCRIPT KILL or FUNCTION KILL.
func (c *Call) killScript(eval bool) {
	r := c.srv.scripting.running
	switch {
	case r == nil:
		c.Reply.Error(errNotBusy)
	case r.wrote:
		c.Reply.Error(errUnkillable)
	case eval && !r.eval:
		c.Reply.Error(errBusyFcall)
	case !eval && r.eval:
		c.Reply.Error(errBusyEval)
	default:
		r.killed = true
		c.Reply.OK()
	}
}
