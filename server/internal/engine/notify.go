package engine

import (
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/subscription"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
)

// EventClass is a set of kinds of keyspace events: the flags of the parameter
// notify-keyspace-events.
type EventClass uint32

const (
	classKeyspace    EventClass = 1 << iota // K: publish to __keyspace@<db>__:<key>
	classKeyevent                           // E: publish to __keyevent@<db>__:<event>
	ClassGeneric                            // g: del, expire, rename, …
	ClassString                             // $
	ClassList                               // l
	ClassSet                                // s
	ClassHash                               // h
	ClassZset                               // z
	classExpired                            // x: a key has expired
	classEvicted                            // e: a key was evicted
	ClassStream                             // t
	classMiss                               // m: a requested key does not exist; not in A
	classModule                             // d
	classNew                                // n: a key was added; not in A
	classOverwritten                        // o: a key got another value as a whole; not in A
	classTypeChanged                        // c: that value has another type; not in A

	// Messages that also name the members that an event has changed; not in A.
	classSubkeyspace      // S: publish to __subkeyspace@<db>__:<key>
	classSubkeyevent      // T: publish to __subkeyevent@<db>__:<event>
	classSubkeyspaceitem  // I: publish to __subkeyspaceitem@<db>__:<key>\n<member>
	classSubkeyspaceevent // V: publish to __subkeyspaceevent@<db>__:<event>|<key>

	classUnchanged // not a flag: the event changed nothing

	classAny = ClassGeneric | ClassString | ClassList | ClassSet | ClassHash | ClassZset |
		classExpired | classEvicted | ClassStream | classMiss | classModule | classNew | classOverwritten | classTypeChanged
	classAll = classAny &^ (classMiss | classNew | classOverwritten | classTypeChanged) // A

	classSubkeys  = classSubkeyspace | classSubkeyevent | classSubkeyspaceitem | classSubkeyspaceevent
	classChannels = classKeyspace | classKeyevent | classSubkeys
)

func classOf(letter byte) EventClass {
	switch letter {
	case 'A':
		return classAll
	case 'g':
		return ClassGeneric
	case '$':
		return ClassString
	case 'l':
		return ClassList
	case 's':
		return ClassSet
	case 'h':
		return ClassHash
	case 'z':
		return ClassZset
	case 'x':
		return classExpired
	case 'e':
		return classEvicted
	case 't':
		return ClassStream
	case 'd':
		return classModule
	case 'n':
		return classNew
	case 'o':
		return classOverwritten
	case 'c':
		return classTypeChanged
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

// classesOf returns the set that the letters of notify-keyspace-events denote.
func classesOf(letters string) (set EventClass) {
	for i := range len(letters) {
		set |= classOf(letters[i])
	}
	return set
}

// selectMemberEvents selects the events that record their members: those that are
// published with them, those of sorted sets while a client waits for a score, and those of
// hashes, sets and sorted sets while a live query names members.
func (srv *Engine) selectMemberEvents() {
	srv.events.subkeys = 0
	if srv.events.notify&classSubkeys != 0 {
		srv.events.subkeys = srv.events.notify & classAny
	}
	if srv.Waits.points > 0 {
		srv.events.subkeys |= ClassZset
	}
	if srv.Queries.named > 0 {
		srv.events.subkeys |= ClassHash | ClassSet | ClassZset
	}
}

// notifyKeyspace publishes an effect that may have subscribers, on the channels,
// and with the words, of Redis 8.8.
func (srv *Engine) notifyKeyspace(e *effect) {
	if srv.PubSub.Table.Len(subscription.Channels) == 0 && srv.PubSub.Table.Len(subscription.Patterns) == 0 {
		return
	}
	on, at := srv.events.notify, "@"+strconv.Itoa(e.db)+"__:"
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

// notifications are the event classes that have listeners.
type notifications struct {
	notify  EventClass
	subkeys EventClass // the event classes for which members must be recorded
}

// hooks connects the accessors of the keyspace with the current commit scope.
func (srv *Engine) hooks() keyspace.Hooks {
	u := &srv.Turn.Scope
	return keyspace.Hooks{
		Expired: func(db *keyspace.DB, key string) {
			srv.Stats.ExpiredKeys++
			u.changed(db.ID(), key, classExpired, "expired")
		},
		Dropped: srv.bytesFreed,
		ExpiredMembers: func(db *keyspace.DB, key string, value any, members []string, emptied bool) {
			srv.Stats.ExpiredMembers += int64(len(members))
			class, event := ClassZset, "zexpired"
			if keyspace.KindOf(value) == keyspace.KindHash {
				class, event = ClassHash, "hexpired"
			}
			for _, member := range members {
				u.touched(class, protocol.BytesOf(member))
			}
			u.changed(db.ID(), key, class, event)
			if emptied {
				u.followed(db.ID(), key, ClassGeneric, "del")
			}
		},
		Swept: func(deadline int64) {
			// A key exists through the millisecond of its deadline.
			srv.Stats.ExpiryLag.Add(srv.Turn.At.Sub(time.UnixMilli(deadline + 1)))
		},
		Added: func(db *keyspace.DB, key string) {
			u.event(db.ID(), key, classNew, "new")
			srv.Queries.replaced(db.ID(), protocol.BytesOf(key))
		},
		Missed: func(db *keyspace.DB, key []byte) {
			srv.Stats.KeyspaceMisses++
			if srv.events.notify&classMiss != 0 { // only then the key is copied
				u.event(db.ID(), string(key), classMiss, "keymiss")
			}
		},
	}
}

// touch marks the sessions that watch a key: their EXEC will fail.
func (w *waits) touch(db int, key string) {
	for s := range w.Watched[WaitKey{db, key}] {
		s.Transaction.touched = true
	}
}
