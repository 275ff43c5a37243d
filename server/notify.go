package server

import (
	"strconv"

	"github.com/zsetd/zsetd/server/keyspace"
)

// class is a set of kinds of keyspace events: the flags of the parameter
// notify-keyspace-events.
type class uint32

const (
	classKeyspace  class = 1 << iota // K: publish to __keyspace@<db>__:<key>
	classKeyevent                    // E: publish to __keyevent@<db>__:<event>
	classGeneric                     // g: del, expire, rename, …
	classString                      // $
	classList                        // l
	classSet                         // s
	classHash                        // h
	classZset                        // z
	classExpired                     // x: a key has expired
	classEvicted                     // e: a key was evicted
	classStream                      // t
	classMiss                        // m: a key that was asked for does not exist; not in A
	classModule                      // d
	classNew                         // n: a key was added; not in A
	classUnchanged                   // not a flag: the event changed nothing

	classAny = classGeneric | classString | classList | classSet | classHash | classZset |
		classExpired | classEvicted | classStream | classMiss | classModule | classNew
	classAll = classAny &^ (classMiss | classNew) // A
)

// classLetters are the flags in the order in which CONFIG GET lists them.
const classLetters = "g$lshzxetdnKEm"

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
	}
	return 0
}

// parseClasses reads the value of notify-keyspace-events.
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
		letters = "nKEm"
	}
	for i := range len(letters) {
		if set&classOf(letters[i]) != 0 {
			b = append(b, letters[i])
		}
	}
	return string(b)
}

// notifyKeyspace publishes an effect that somebody may listen to.
func (srv *Server) notifyKeyspace(e *effect) {
	db := strconv.Itoa(e.db)
	if srv.notify&classKeyspace != 0 {
		srv.deliver(channelMessage, "__keyspace@"+db+"__:"+e.key, e.event)
	}
	if srv.notify&classKeyevent != 0 {
		srv.deliver(channelMessage, "__keyevent@"+db+"__:"+e.event, e.key)
	}
}

// hooks connects the doors of the keyspace with the current unit.
func (srv *Server) hooks() keyspace.Hooks {
	u := &srv.unit
	return keyspace.Hooks{
		Expired: func(db *keyspace.DB, key string) {
			srv.expiredKeys++
			u.changed(db.ID(), key, classExpired, "expired")
		},
		Added: func(db *keyspace.DB, key string) { u.event(db.ID(), key, classNew, "new") },
		Missed: func(db *keyspace.DB, key []byte) {
			srv.keyspaceMisses++
			if srv.notify&classMiss != 0 { // the copy of the key is for them alone
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
