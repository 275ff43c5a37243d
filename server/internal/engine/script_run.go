package engine

import (
	"bytes"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/clock"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
	"github.com/zsetd/zsetd/server/internal/lua"
	"github.com/zsetd/zsetd/server/internal/lua/script"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// A script runs in the commit scope of its command. The commands of redis.call are
// Calls of a separate session in that scope, so keyspace effects, notifications,
// journaling and statistics are the same as for commands that a client sends.
//
// The script holds the lock all the time. When it has run for longer than
// busy-reply-threshold, it releases the lock every few milliseconds, between two
// instructions or within long steps, so that other clients receive -BUSY and can
// kill it. lock.go says which other users of the lock wait until the script has ended.
//
// Time stands still in a script, for deadlines, stream IDs and TIME. Each time that it
// releases the lock, the time that TIME shows moves on, as in Redis, so that a script
// that waits for a time to come ends.

// scripting is the server's state of scripts and functions.
type scripting struct {
	State    *script.State // of EVAL; nil until first used
	Cache    scriptCache[*EvalScript]
	Session  *Session
	Running  *ScriptRun
	run      ScriptRun // used again for each script that runs
	Busy     bool      // a script has run for long and lends the lock, only for replies of -BUSY
	idle     sync.Cond // signaled when the script has ended
	AllowAll bool      // DEBUG SET-DISABLE-DENY-SCRIPTS

	MemoryLimit uint64        // how much the process may grow while a script runs
	LoadTime    time.Duration // time limit of each function library when data are loaded
	base        memoryUse     // of the process at baseAt
	baseAt      time.Time     // when base was read

	Functions Functions
}

// EvalScript is a script in the cache.
type EvalScript struct {
	Name     string // its SHA-1
	Source   string
	Flags    ScriptFlags
	Function *lua.Function
}

// ScriptFlags are the declared flags of a script or a function.
type ScriptFlags uint8

// ScriptNoWrites is a flag that scripts declare.
const (
	ScriptNoWrites ScriptFlags = 1 << iota
	scriptAllowOOM
	scriptAllowStale
	ScriptNoCluster
	scriptCrossSlot
	ScriptCompat // no flags declared: everything is allowed
)

// ScriptFlagNames are the names of the flags, in Redis's order.
func ScriptFlagNames() []string {
	return []string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}
}

// Has reports whether any of the flags g is set.
func (f ScriptFlags) Has(g ScriptFlags) bool { return f&g != 0 }

// effects returns the flags of a command. If it runs a script that declares flags,
// these determine the result.
func (c *Command) effects(srv *Engine, argv [][]byte) protocol.Flags {
	flags := c.Spec.Flags()
	if c.ScriptFlags == nil || len(argv) < 2 {
		return flags
	}
	of := c.ScriptFlags(srv, argv)
	if of.Has(ScriptCompat) {
		return flags &^ protocol.Stale
	}
	flags &^= protocol.Stale | protocol.DenyOOM | protocol.Write | protocol.MayReplicate
	if !of.Has(scriptAllowOOM | ScriptNoWrites) {
		flags |= protocol.DenyOOM
	}
	if !of.Has(ScriptNoWrites) {
		flags |= protocol.Write
	}
	if of.Has(scriptAllowStale) {
		flags |= protocol.Stale
	}
	return flags
}

// ScriptRun is a running script.
type ScriptRun struct {
	Engine   *Engine
	State    *script.State
	Session  *Session // runs the commands
	Caller   *Session
	Row      *Command
	Command  [][]byte // the command that runs it
	Name     string   // of the function, or the script's SHA-1
	Eval     bool
	ReadOnly bool
	Flags    ScriptFlags
	Watch    ScriptWatch
	Wrote    bool
	Atomic   bool              // of Tx: listeners learn nothing before its end
	Calling  bool              // runs a command
	Ask      func() *lua.Table // Interrupt
	busy     bool              // has exceeded the threshold: other clients receive -BUSY
	Killed   bool
	memory   ScriptMemory
	outer    clock.Held // around the script
	Slot     int        // of the keys so far, in a cluster; -1 if there were none
}

// ErrNoScript is an error of script commands.
const (
	ErrNoScript        = "NOSCRIPT No matching script. Please use EVAL."
	ErrScriptUnknown   = "ERR Unknown Redis command called from script"
	ErrScriptArity     = "ERR Wrong number of args calling Redis command from script"
	ErrScriptForbidden = "ERR This Redis command is not allowed from script"

	ErrBusyEval   = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	ErrBusyFcall  = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
	ErrNotBusy    = "NOTBUSY No scripts in execution right now."
	ErrUnkillable = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the " +
		"script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
	ErrScriptsMisconf = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. " +
		"Writable scripts are blocked. Use 'no-writes' flag for read only scripts."
)

// busyError is the reply to other clients while the script runs.
func (r *ScriptRun) busyError() string {
	if r.Eval {
		return ErrBusyEval
	}
	return ErrBusyFcall
}

// NewRun returns the run of a script or function, valid until EndScript.
func (sc *scripting) NewRun(name string, eval, readOnly bool, flags ScriptFlags) *ScriptRun {
	r := &sc.run
	if r.Ask == nil {
		r.Ask = r.Interrupt
	}
	*r = ScriptRun{Ask: r.Ask, Name: name, Eval: eval, ReadOnly: readOnly, Flags: flags}
	return r
}

// Begin makes r the running script.
func (sc *scripting) Begin(r *ScriptRun) {
	if r.Caller.Transaction.execing == 0 {
		r.Caller.noteChanges()
	}
	sc.Running, r.outer = r, r.Engine.Turn.Scope.Shown.Hold(r.Engine.Turn.At)
	r.memory.Begin(sc, r.Engine.Keys, r.Watch.Started)
}

// EndScript reverses begin and resumes the waiters for the end of the script.
func (srv *Engine) EndScript(r *ScriptRun) {
	sc := &srv.Scripting
	r.State.Running, r.State.Interrupt = false, nil
	r.memory.End()
	sc.Running, srv.Turn.Scope.Shown = nil, r.outer
	if sc.Session != nil && sc.Session.Out.Cap() > MaxKeptReply {
		sc.Session.Out.Swap(nil)
	}
	r.Caller, r.Command = nil, nil // run keeps nothing of a client
	if r.busy {
		srv.busyEnded()
	}
}

// MaxKeptReply is the largest reply buffer that is kept for the next script.
const MaxKeptReply = 1 << 20

// scriptingMemory is the estimated memory of scripts and functions.
type scriptingMemory struct{ Eval, Functions, VMEval, VMFunctions int64 }

// The measured size of a machine with its libraries, and of a compiled script or
// function in addition to its source, of which closureBytes belong to the machine.
const (
	vmBytes      = 96 << 10
	scriptBytes  = 4 << 10
	closureBytes = 256
)

func (sc *scripting) Memory() (m scriptingMemory) {
	m.Eval = int64(sc.Cache.Bytes() + sc.Cache.Len()*scriptBytes)
	for _, l := range sc.Functions.Libraries {
		m.Functions += int64(len(l.Code) + len(l.Functions)*(scriptBytes-closureBytes))
		m.VMFunctions += int64(len(l.Functions) * closureBytes)
	}
	if sc.State != nil {
		m.VMEval = vmBytes
	}
	if sc.Functions.State != nil {
		m.VMFunctions += vmBytes
	}
	return m
}

// all returns the sum.
func (m scriptingMemory) all() int64 { return m.Eval + m.Functions + m.VMEval + m.VMFunctions }

// ErrorTable returns the table that represents an error in scripts. msg is an error
// line as clients receive it, with a code.
func ErrorTable(state *script.State, msg string, counted bool) *lua.Table {
	vm := state.Machine()
	t := lua.NewTable(0, 1)
	t.SetText(vm, "err", lua.Text(msg))
	if counted {
		t.SetText(vm, "ignore_error_stats_update", lua.True)
	}
	return t
}

// Interrupt is called by the machine at intervals. It returns the error that ends
// the script, or nil if the script continues.
func (r *ScriptRun) Interrupt() *lua.Table {
	srv := r.Engine
	if r.memory.Outgrown() {
		return ErrorTable(r.State, "ERR not enough memory", false)
	}
	if r.Caller.Call.Observing { // it lends the lock to no one
		if r.Watch.Look() > ScriptQueryTime {
			return ErrorTable(r.State, "ERR live query: the script takes longer than "+ScriptQueryTime.String(), false)
		}
		return nil
	}
	if threshold := srv.Config.BusyReplyThreshold; !r.busy && (threshold == 0 || r.Watch.Look().Milliseconds() < threshold) {
		return nil
	}
	kill := "SCRIPT KILL"
	if !r.Eval {
		kill = "FUNCTION KILL"
	}
	first := !r.busy
	if first {
		r.busy = true
		srv.Log.Warn("slow script: still running", "milliseconds", r.Watch.Look().Milliseconds(), "script", r.Name, "kill", kill)
	}
	srv.lend()
	if !first { // a script with one slow command has one time, as in Redis, which looks at intervals of 100 000 instructions
		now := srv.Clock()
		srv.Turn.Scope.Shown.Move(now)
		r.outer.Move(now)
	}
	switch {
	case srv.Mu.broken: // another goroutine has panicked meanwhile
		r.State.Bug(lockBroken{})
		return ErrorTable(r.State, ErrInternal, false)
	case srv.Ending.closed && r.Wrote && !srv.Ending.Flags.Nosave:
		// A partial result of the script must not be saved.
		srv.Ending.Flags.Nosave = true
		srv.Log.Warn("the shutdown ended a script that had changed data; unsaved changes are lost", "script", r.Name)
		fallthrough
	case r.Killed || srv.Ending.closed:
		srv.Log.Warn("script killed", "script", r.Name)
		return ErrorTable(r.State, "ERR Script killed by user with "+srv.Config.Words("SCRIPT KILL", kill)+"...", false)
	}
	return nil
}

// IsBusy reports whether the script that runs has taken longer than busy-reply-threshold.
func (sc *scripting) IsBusy() bool {
	r := sc.Running
	return r != nil && r.busy
}

// ScriptWatch measures how long a script has run, by the clock of the process: that of the
// server can be moved. In a bubble of testing/synctest no time passes while a script runs;
// there each look counts as a millisecond, so that an endless script ends as anywhere else.
type ScriptWatch struct {
	Started time.Time
	last    time.Duration // at the last look
	still   time.Duration // for the looks at which no time had passed
}

// StartWatch returns a watch that begins now.
func StartWatch() ScriptWatch { return ScriptWatch{Started: time.Now()} }

// Look returns how long the script has run. The machine looks after each 20 000
// instructions or fewer, see package script.
func (w *ScriptWatch) Look() time.Duration {
	d := time.Since(w.Started)
	if d == w.last {
		w.still += time.Millisecond
	}
	w.last = d
	return d + w.still
}

// LibraryTime is the time in which FUNCTION LOAD compiles a library and runs its code, and a
// replica each library of its primary.
const LibraryTime = 500 * time.Millisecond

// defaultLoadTime is the limit unless a test sets another one. A library that FUNCTION
// LOAD has accepted took less than half a second; a busy machine may need more.
const defaultLoadTime = 10 * time.Second

// defaultScriptMemory is the limit unless a test sets another one. On a busy
// machine, where the collector lags behind, a step of the largest table exceeds it
// by 4 %; server/README.md promises 5 GB.
const defaultScriptMemory = 4 << 30

// ScriptMemory limits the memory that a script takes. While a script runs, the
// process must not grow by more than the limit, including garbage and the
// allocations of a single step: growth of a table copies it, which takes 1.9 GB for
// the largest one, and a string of 512 MB is made in a buffer that grows likewise.
// So a script may hold a quarter of the limit, garbage takes an eighth more, and
// the rest is for the step; a step of the largest table takes 3 GB including
// garbage that is collected too late. Data that the script stores in keys do not
// count: maxmemory limits them.
type ScriptMemory struct {
	limit        uint64
	keys         *keyspace.Keyspace
	stored       int64     // bytes of all keys when the script began
	base         memoryUse // when the script began
	collectAbove memoryUse // above it outgrown collects garbage before it decides

	tightened int64 // limit that tighten has set; 0: none
}

// memoryUse is the memory of the process: in heap objects, live or not, and mapped
// from the operating system.
type memoryUse struct{ objects, Mapped uint64 }

// ReadMemory reads the memory use of the process.
func ReadMemory() memoryUse {
	samples := [...]metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples[:])
	return memoryUse{samples[0].Value.Uint64(), samples[1].Value.Uint64() - samples[2].Value.Uint64()}
}

// baseAge is the greatest age of the base figures of a script: reading them takes
// microseconds.
const baseAge = 100 * time.Millisecond

// Begin starts the accounting of a script's memory.
func (m *ScriptMemory) Begin(sc *scripting, keys *keyspace.Keyspace, now time.Time) {
	if now.Sub(sc.baseAt) > baseAge {
		sc.base, sc.baseAt = ReadMemory(), now
	}
	m.limit, m.base, m.keys, m.stored = sc.MemoryLimit, sc.base, keys, keys.UsedBytes()
	m.collectAbove = memoryUse{m.base.objects + m.limit/4, m.base.Mapped + m.limit/4}
}

// BeginWithoutKeys is Begin for code that stores nothing in keys. It needs no lock.
func (m *ScriptMemory) BeginWithoutKeys(limit uint64) {
	m.limit, m.base, m.keys = limit, ReadMemory(), keyspace.New(1, keyspace.Hooks{})
	m.collectAbove = memoryUse{m.base.objects + m.limit/4, m.base.Mapped + m.limit/4}
}

// Outgrown reports whether the script has exceeded its memory limit. Garbage does
// not count, so it is collected, and returned to the operating system, before the
// decision.
func (m *ScriptMemory) Outgrown() bool {
	now := m.read()
	m.tighten(now.Mapped, m.keys.UsedBytes()-m.stored)
	if now.objects <= m.collectAbove.objects && now.Mapped <= m.collectAbove.Mapped {
		return false
	}
	debug.FreeOSMemory()
	now = m.read()
	m.collectAbove.objects = max(now.objects, m.base.objects+m.limit/4) + m.limit/8
	m.collectAbove.Mapped = max(now.Mapped, m.base.Mapped+m.limit/4) + m.limit/8
	return now.objects > m.base.objects+m.limit/4
}

// read is ReadMemory without the data that the script has stored in keys.
func (m *ScriptMemory) read() memoryUse {
	now := ReadMemory()
	if stored := m.keys.UsedBytes() - m.stored; stored > 0 {
		now.objects -= min(now.objects, uint64(stored))
		now.Mapped -= min(now.Mapped, uint64(stored))
	}
	return now
}

// tighten sets the memory limit of the garbage collector when a script has taken
// much memory: the collector then frees the garbage of a single step, such as the
// copies of a growing table, within the step. A limit that the embedding program, or
// another server in it, has set is kept.
func (m *ScriptMemory) tighten(mapped uint64, stored int64) {
	if mapped <= m.base.Mapped+m.limit/8 {
		return
	}
	limit := int64(m.base.Mapped+m.limit/2) + max(stored, 0)
	if now := debug.SetMemoryLimit(-1); now == math.MaxInt64 || now == m.tightened && limit > now+int64(m.limit/16) {
		debug.SetMemoryLimit(limit)
		m.tightened = limit
	}
}

// End is called when the script has ended.
func (m *ScriptMemory) End() {
	if m.tightened != 0 && debug.SetMemoryLimit(-1) == m.tightened {
		debug.SetMemoryLimit(math.MaxInt64)
	}
	m.tightened = 0
}

// turnWhileBusy is the variant of Turn for the time while a script is busy. The
// lock is held on entry, and not on return. The commands that it runs affect
// sessions only.
func (s *Session) turnWhileBusy(batch [][][]byte) (done int, out []byte, ending bool) {
	done, out, ending = s.workWhileBusy(batch)
	s.Engine.unlock()
	return done, out, ending
}

// workWhileBusy is the part of turnWhileBusy that holds the lock.
func (s *Session) workWhileBusy(batch [][][]byte) (done int, out []byte, ending bool) {
	srv := s.Engine
	defer srv.guard()
	srv.Turn.current = s
	for done < len(batch) && !s.Stall.Stalled.Load() && s.End == Serving {
		s.Exec(batch[done])
		s.checkOutput()
		done++
	}
	srv.Turn.Scope.Commit()
	srv.Turn.current = nil
	if s.waiting() > 0 && !s.Stall.withheld && s.End != Killed && s.Queue.claim() {
		out = s.next(nil)
	}
	s.Call.Argv, s.Call.Args = nil, protocol.Args{} // as in work
	return done, out, s.End != Serving
}

// Call runs a command for the script. failed is the error line, with its code, of a
// command that is refused; the error is counted.
func (r *ScriptRun) Call(argv [][]byte) (reply []byte, failed string) {
	cmd, names := r.Engine.Table.Find(argv)
	return r.CallCommand(cmd, argv, names)
}

// CallCommand is Call for a command that is known, or its container, or nil; names is how many of argv
// are its name.
func (r *ScriptRun) CallCommand(cmd *Command, argv [][]byte, names int) (reply []byte, failed string) {
	srv := r.Engine
	if r.Caller.Call.Observing {
		return r.observe(cmd, argv, names)
	}
	if failed = r.refuses(cmd, argv); failed != "" {
		if cmd != nil {
			cmd.Stats.Rejected++
		}
		srv.countError(failed, false)
		return nil, failed
	}
	if cmd.Spec.Flags().Has(protocol.Write) {
		r.Wrote = true
	}
	s := r.Session
	c := &s.Call
	s.Out.Truncate(0)
	s.Modes.NoTouch = r.Caller.Modes.NoTouch
	start, effects := srv.Turn.At, len(srv.Turn.Scope.effects)
	c.execute(cmd, argv, names, s.DB, 0)
	if r.Caller.cache != nil && cmd.reads() {
		r.Caller.trackKeys(cmd, argv)
	}
	srv.recordCall(c, start)
	if r.Atomic {
		srv.Turn.Scope.own(effects)
	} else {
		srv.Turn.Scope.apply()
	}
	r.Caller.Activity.ran++
	if s.Out.Over() {
		return nil, "ERR not enough memory for the reply"
	}
	return s.Out.Bytes(), ""
}

// observe is Call for the script of a live query: it may run what could be a live query, on
// the keys that are named.
func (r *ScriptRun) observe(cmd *Command, argv [][]byte, names int) (reply []byte, failed string) {
	if failed = r.refuses(cmd, argv); failed == "" {
		failed = cmd.unfitAsQuery(argv)
	}
	if failed != "" {
		return nil, failed
	}
	var few, more [8]protocol.KeyRef
	named := r.Row.Spec.AppendKeys(few[:0], r.Command)
	for _, ref := range cmd.Spec.AppendKeys(more[:0], argv) {
		if !slices.ContainsFunc(named, func(n protocol.KeyRef) bool { return bytes.Equal(r.Command[n.Index], argv[ref.Index]) }) {
			return nil, "ERR live query: the script reads a key that it does not name"
		}
	}
	s := r.Session
	s.Out.Truncate(0)
	s.Call.Observing = true
	s.Call.observe(cmd, argv, names, s.DB)
	s.Call.Observing = false
	if s.Out.Over() {
		return nil, "ERR not enough memory for the reply"
	}
	return s.Out.Bytes(), ""
}

// refuses returns why a script may not run a command, "" if it may.
func (r *ScriptRun) refuses(cmd *Command, argv [][]byte) string {
	if cmd == nil || cmd.ByArg != nil && len(argv) > 1 {
		return ErrScriptUnknown
	}
	if !cmd.Spec.ArityOK(len(argv)) {
		return ErrScriptArity
	}
	flags := cmd.Spec.Flags()
	if flags.Has(protocol.NoScript) && !r.Engine.Scripting.AllowAll {
		return ErrScriptForbidden
	}
	if d := r.Caller.permitOn(r.Session, cmd, argv, acl.InScript); d != acl.Permitted {
		return "ERR ACL failure in script: " + d.Refusal(r.Caller.Login.User.Name, cmd.Name)
	}
	switch {
	case r.Engine.Stale() && !flags.Has(protocol.Stale) && !r.Caller.Modes.Primary:
		return "ERR Can not execute the command on a stale replica"
	case r.ReadOnly && flags.Has(protocol.Write|protocol.MayReplicate):
		return "ERR Write commands are not allowed from read-only scripts."
	case !flags.Has(protocol.Write) || r.Wrote: // a script that has written runs to its end
	case r.Engine.Keeper.Refuses():
		return ErrNotSaved
	case r.Engine.LacksReplicas():
		return ErrNoReplicas
	case r.Engine.ReadOnly() && !r.Caller.Modes.Primary:
		return ErrReadOnly
	}
	if flags.Has(protocol.DenyOOM) && !r.Wrote && !r.Flags.Has(scriptAllowOOM) && r.Engine.Config.Maxmemory != 0 && r.Engine.Memory.lacking {
		return errOOM
	}
	if r.Engine.Cluster != nil {
		if wrong := r.misplaced(cmd, argv); wrong != "" {
			return "ERR " + wrong
		}
	}
	return ""
}

// misplaced returns why a node of a cluster does not run a command for the script,
// or "".
func (r *ScriptRun) misplaced(cmd *Command, argv [][]byte) string {
	slot, refusal := r.Caller.Misplaced(cmd, argv)
	r.Caller.Metered.scriptUses(slot)
	switch {
	case refusal == errClusterReadOnly:
		return "Script attempted to execute a write command while the cluster is down and readonly"
	case refusal == errClusterDown:
		return "Script attempted to execute a command while the cluster is down"
	case refusal != "":
		return "Script attempted to access a non local key in a cluster node"
	case slot < 0 || r.Flags.Has(ScriptCompat|scriptCrossSlot):
	case r.Slot < 0:
		r.Slot = slot
	case r.Slot != slot:
		return "Script attempted to access keys that do not hash to the same slot"
	}
	return ""
}

// Functions holds the libraries and their registered functions.
type Functions struct {
	State     *script.State // nil until first used
	Libraries map[string]*Library
	ByName    map[string]*Function // by lower-case name
}

// LibraryLimits are the limits of compiling a library, and of its registration of functions.
type LibraryLimits struct {
	Time   time.Duration
	Memory uint64      // how much the process may grow
	Ended  func() bool // ends it early
	Valkey bool        // errors are in the dialect of Valkey
}

// LibraryLimits returns limits with a time. The lock is held.
func (srv *Engine) LibraryLimits(t time.Duration) LibraryLimits {
	return LibraryLimits{Time: t, Memory: srv.Scripting.MemoryLimit, Ended: func() bool { return false }, Valkey: srv.Config.Valkey()}
}

// loadLibraries compiles the libraries of the data. The lock is held.
func (srv *Engine) loadLibraries() {
	srv.Scripting.Functions = srv.compileLibraries(srv, srv.Keys, srv.LibraryLimits(srv.Scripting.LoadTime))
}

// Library is a library of functions.
type Library struct {
	Name, Code string
	Functions  map[string]*Function
}

// Function is a function of a library.
type Function struct {
	Name        string
	Description *string
	Flags       ScriptFlags
	Compiled    *lua.Function
}
