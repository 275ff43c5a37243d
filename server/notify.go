package server

import (
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/server/keyspace"
)

// class is a set of kinds of keyspace events: the flags of the parameter
// notify-keyspace-events.
type class uint32

const (
	classKeyspace class = 1 << iota // K: publish to __keyspace@<db>__:<key>
	classKeyevent                   // E: publish to __keyevent@<db>__:<event>
	classGeneric                    // g: del, expire, rename, …
	classString                     // $
	classList                       // l
	classSet                        // s
	classHash                       // h
	classZset                       // z
	classExpired                    // x: a key has expired
	classEvicted                    // e: a key was evicted
	classStream                     // t
	classMiss                       // m: a requested key does not exist; not in A
	classModule                     // d
	classNew                        // n: a key was added; not in A

	// Messages that also name the members that an event has changed; not in A.
	classSubkeyspace      // S: publish to __subkeyspace@<db>__:<key>
	classSubkeyevent      // T: publish to __subkeyevent@<db>__:<event>
	classSubkeyspaceitem  // I: publish to __subkeyspaceitem@<db>__:<key>\n<member>
	classSubkeyspaceevent // V: publish to __subkeyspaceevent@<db>__:<event>|<key>

	classUnchanged // not a flag: the event changed nothing

	classAny = classGeneric | classString | classList | classSet | classHash | classZset |
		classExpired | classEvicted | classStream | classMiss | classModule | classNew
	classAll = classAny &^ (classMiss | classNew) // A

	classSubkeys  = classSubkeyspace | classSubkeyevent | classSubkeyspaceitem | classSubkeyspaceevent
	classChannels = classKeyspace | classKeyevent | classSubkeys
)

// classLetters are the flags in the order in which CONFIG GET lists them.
const classLetters = "g$lshzxetdnKEmSTIV"

func classOf(letter byte) class {
	switch letter {
	case 'A':
		return classAll
	case 'g':
		return classGeneric
	case '$':
		return classString
	case 'l':
		return classList
	case 's':
		return classSet
	case 'h':
		return classHash
	case 'z':
		return classZset
	case 'x':
		return classExpired
	case 'e':
		return classEvicted
	case 't':
		return classStream
	case 'd':
		return classModule
	case 'n':
		return classNew
	case 'K':
		return classKeyspace
	case 'E':
		return classKeyevent
	case 'm':
		return classMiss
	case 'S':
		return classSubkeyspace
	case 'T':
		return classSubkeyevent
	case 'I':
		return classSubkeyspaceitem
	case 'V':
		return classSubkeyspaceevent
	}
	return 0
}

// parseClasses parses the value of notify-keyspace-events.
func parseClasses(s string) (class, bool) {
	var set class
	for i := range len(s) {
		c := classOf(s[i])
		if c == 0 {
			return 0, false
		}
		set |= c
	}
	return set, true
}

// String writes a set of classes as CONFIG GET does.
func (set class) String() string {
	var b []byte
	letters := classLetters
	if set&classAll == classAll {
		b = append(b, 'A')
		letters = "nKEmSTIV"
	}
	for i := range len(letters) {
		if set&classOf(letters[i]) != 0 {
			b = append(b, letters[i])
		}
	}
	return string(b)
}

// selectMemberEvents selects the events that record their members: those that are
// published with them, and those of sorted sets while a client waits for a score.
func (srv *Server) selectMemberEvents() {
	srv.subkeys = 0
	if srv.notify&classSubkeys != 0 {
		srv.subkeys = srv.notify & classAny
	}
	if srv.points > 0 {
		srv.subkeys |= classZset
	}
}

// notifyKeyspace publishes an effect that may have subscribers, on the channels,
// and with the words, of Redis 8.8.
func (srv *Server) notifyKeyspace(e *effect) {
	if len(srv.pubsub.channels) == 0 && len(srv.pubsub.patterns) == 0 {
		return
	}
	on, at := srv.notify, "@"+strconv.Itoa(e.db)+"__:"
	if on&classKeyspace != 0 {
		srv.deliver(channelMessage, "__keyspace"+at+e.key, e.event)
	}
	if on&classKeyevent != 0 {
		srv.deliver(channelMessage, "__keyevent"+at+e.event, e.key)
	}
	if e.members == "" {
		return
	}
	if on&classSubkeyspace != 0 {
		srv.deliver(channelMessage, "__subkeyspace"+at+e.key, e.event+"|"+e.members)
	}
	if on&classSubkeyevent != 0 {
		srv.deliver(channelMessage, "__subkeyevent"+at+e.event,
			strconv.Itoa(len(e.key))+":"+e.key+"|"+e.members)
	}
	// A newline ends the key in the name of such a channel.
	if on&classSubkeyspaceitem != 0 && strings.IndexByte(e.key, '\n') < 0 {
		prefix := "__subkeyspaceitem" + at + e.key + "\n"
		for member := range eachMember(e.members) {
			srv.deliver(channelMessage, prefix+member, e.event)
		}
	}
	if on&classSubkeyspaceevent != 0 {
		srv.deliver(channelMessage, "__subkeyspaceevent"+at+e.event+"|"+e.key, e.members)
	}
}

// The members that an event has changed are collected in the form that messages
// have, 3:abc,1:d. So they are copied once, into a buffer that the commit scope has
// anyway, and their memory may be reused before the commit.
//
// The handlers name them, because they know which members belong to which event,
// and in which order. The journal's reports from the values do not suffice: an HSET
// that leaves a field unchanged is an event, too, and a set that is stored as a
// whole reports none of its members.

func appendMember[T string | []byte](dst []byte, first bool, member T) []byte {
	if !first {
		dst = append(dst, ',')
	}
	dst = strconv.AppendInt(dst, int64(len(member)), 10)
	return append(append(dst, ':'), member...)
}

// eachMember yields the members that appendMember has written.
func eachMember(members string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for members != "" {
			length, rest, _ := strings.Cut(members, ":")
			n, err := strconv.Atoi(length)
			if err != nil {
				panic("BUG: members of an event without a length")
			}
			if !yield(rest[:n]) {
				return
			}
			members = strings.TrimPrefix(rest[n:], ",")
		}
	}
}

// hooks connects the accessors of the keyspace with the current commit scope.
func (srv *Server) hooks() keyspace.Hooks {
	u := &srv.scope
	return keyspace.Hooks{
		Expired: func(db *keyspace.DB, key string) {
			srv.expiredKeys++
			u.changed(db.ID(), key, classExpired, "expired")
		},
		Dropped: srv.bytesFreed,
		ExpiredMembers: func(db *keyspace.DB, key string, value any, members []string, emptied bool) {
			srv.expiredMembers += int64(len(members))
			class, event := classZset, "zexpired"
			if kindOf(value) == kindHash {
				class, event = classHash, "hexpired"
			}
			for _, member := range members {
				u.touched(class, bytesOf(member))
			}
			u.changed(db.ID(), key, class, event)
			if emptied {
				u.changed(db.ID(), key, classGeneric, "del")
			}
		},
		Swept: func(deadline int64) {
			// A key exists through the millisecond of its deadline.
			srv.expiryLag.add(srv.at.Sub(time.UnixMilli(deadline + 1)))
		},
		Added: func(db *keyspace.DB, key string) { u.event(db.ID(), key, classNew, "new") },
		Missed: func(db *keyspace.DB, key []byte) {
			srv.keyspaceMisses++
			if srv.notify&classMiss != 0 { // only then the key is copied
				u.event(db.ID(), string(key), classMiss, "keymiss")
			}
		},
	}
}

// touch marks the sessions that watch a key: their EXEC will fail.
func (srv *Server) touch(db int, key string) {
	for s := range srv.watched[waitKey{db, key}] {
		s.touched = true
	}
}
