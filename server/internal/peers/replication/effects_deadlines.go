package replication

import (
	"bytes"
	"slices"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// Deadlines of members of sorted sets, and of fields of hashes.
//
// All replicas share one stream, as they share offsets and the backlog, and a replica
// passes it on verbatim. Redis has no deadlines of members, and those of fields only
// since 7.4, so the commands for them must do no harm in Redis. They are the argument of
// PING, which Redis ignores, as it ignores PING without one:
//
//	PING "zsetd:*6\r\n$10\r\nZPEXPIREAT\r\n..."
//
// Behind the prefix are commands, in the encoding of the stream, for the selected
// database: ZPEXPIREAT, ZPERSIST, HPEXPIREAT and HPERSIST; and XCFGSET and XIDMPRECORD, which
// Redis before 8.6 does not know (effects_stream.go). So a zsetd that follows a Redis
// which follows a zsetd has the deadlines, too. Alternatives that do harm are the commands
// themselves, for which a replica logs an error or stops, PUBLISH, which subscribers of
// patterns receive, and a second stream for replicas that understand the commands, with
// which a failover between the two kinds is a full synchronization.
//
// Redis 7.4 and Valkey 9 have deadlines of fields, and receive them if the parameter
// repl-field-deadlines says that all replicas are of that kind: then HPEXPIREAT and HPERSIST
// are commands of the stream, and hashes have the types of that kind in RDB files. These are
// unknown to earlier versions, and differ between the two; a transfer is shared by replicas
// of all kinds, and Redis does not announce its version. So by default they receive none: at
// the deadline they receive HDEL, and have the same fields, but HTTL says that these have no
// deadlines, and after a failover they stay. A partial synchronization would keep what a
// replica has received under another value of the parameter: so it is fixed while a server
// runs, and with another value than no the stream does not continue after a restart.
//
// In the RDB file the deadlines are AUX fields, which Redis skips, see package rdb.
//
// The order of fields with equal deadlines in a small hash may differ in a replica: a value
// that keeps its deadline is written as HSET, which removes it, and the deadline again.

// deadlinesPrefix begins an argument of PING that contains commands.
const deadlinesPrefix = "zsetd:"

// embedded returns the commands, in the encoding of the stream, that an argument of PING
// contains; ok is false if it contains none.
func embedded(arg []byte) (commands []byte, ok bool) {
	return bytes.CutPrefix(arg, []byte(deadlinesPrefix))
}

// inPing writes a command as the argument of PING, for zsetd alone.
func (w *writer) inPing(args ...any) {
	w.endBatch()
	command := appendArgs(appendHeader([]byte(deadlinesPrefix), '*', len(args)), args...)
	w.begin(2)
	w.buf = appendArgs(w.buf, "PING", command)
}

// timed is the deadlines of members of one key that are not written yet. They follow the
// commands that add the members.
type timed struct {
	kind    keyspace.Kind
	members []timedMember
	names   []byte // of the members: operations lend them for a short time
}

type timedMember struct {
	name []byte
	at   int64 // 0 for none
}

// index returns the index of a member, or -1.
func (t *timed) index(name []byte) int {
	return slices.IndexFunc(t.members, func(m timedMember) bool { return bytes.Equal(m.name, name) })
}

// forget drops the deadline of a member that is removed.
func (t *timed) forget(name []byte) {
	if i := t.index(name); i >= 0 {
		t.members = slices.Delete(t.members, i, i+1)
	}
}

// expire adds the deadline of a member, 0 for none.
func (w *writer) expire(key, name []byte, at int64) {
	t := &w.timed
	if i := t.index(name); i >= 0 {
		t.members[i].at = at
		return
	}
	if len(t.members) == batchElements || len(t.names) >= batchBytes {
		w.endBatch()
		w.endTimed(key)
	}
	start := len(t.names)
	t.names = append(t.names, name...)
	t.members = append(t.members, timedMember{t.names[start:], at})
}

// endTimed writes the deadlines. Members in a row with the same one share a command.
func (w *writer) endTimed(key []byte) {
	t := &w.timed
	if len(t.members) == 0 {
		return
	}
	set, remove, keyword := "ZPEXPIREAT", "ZPERSIST", "MEMBERS"
	if t.kind == keyspace.KindHash {
		set, remove, keyword = "HPEXPIREAT", "HPERSIST", "FIELDS"
	}
	plain := t.kind == keyspace.KindHash && w.fields
	commands := []byte(deadlinesPrefix)
	for rest := t.members; len(rest) > 0; {
		at, n := rest[0].at, 1
		for n < len(rest) && rest[n].at == at {
			n++
		}
		args := []any{set, key, at, keyword, int64(n)}
		if at == 0 {
			args = []any{remove, key, keyword, int64(n)}
		}
		for _, m := range rest[:n] {
			args = append(args, m.name)
		}
		if plain {
			w.begin(len(args))
			w.buf = appendArgs(w.buf, args...)
		} else {
			commands = appendArgs(appendHeader(commands, '*', len(args)), args...)
		}
		rest = rest[n:]
	}
	t.members, t.names = t.members[:0], t.names[:0]
	if !plain {
		w.begin(2)
		w.buf = appendArgs(w.buf, "PING", commands)
	}
}
