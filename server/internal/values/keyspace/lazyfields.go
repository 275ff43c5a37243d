package keyspace

import "math"

// FieldUse is what a command does with fields of hashes that are past their deadline, while
// these stay in memory (see LazyFields).
type FieldUse uint8

const (
	FieldsStay    FieldUse = iota // it counts, copies and replaces them as others
	FieldsRead                    // it removes those that its arguments name
	FieldsWritten                 // as FieldsRead; an emptied hash stays for it
	FieldsHidden                  // it sees none of them
	FieldsSwept                   // it removes all of them
)

// visibility decides which data past their deadline commands see.
type visibility struct {
	frozen   bool
	standby  bool // frozen by Standby
	revealed bool
	exposed  bool // revealed by Expose
	lazy     bool // see LazyFields

	// Of the running command: its use of fields past their deadline, and its arguments.
	use  FieldUse
	args [][]byte
}

// LazyFields decides whether fields of hashes past their deadline stay until a command
// names them, as in a Redis whose active expiry is late or off. A hash exists until it has lost
// its last field then.
func (ks *Keyspace) LazyFields(on bool) {
	ks.lazy = on
	ks.forgetViews()
}

// HasLazyFields reports whether LazyFields is on.
func (ks *Keyspace) HasLazyFields() bool { return ks.lazy }

// UseFields announces a command and its arguments. It matters while LazyFields is on.
func (ks *Keyspace) UseFields(use FieldUse, args [][]byte) { ks.use, ks.args = use, args }

// keepsFields reports whether expired members of e are fields that stay.
func (db *DB) keepsFields(e *Entry) bool { return db.ks.lazy && e.kind() == isHash }

// withoutExpired removes the expired members of e that the running command must not find. It
// returns what the command sees of e, nil if no member remains.
func (db *DB) withoutExpired(e *Entry) *Entry {
	emptied := false
	switch use := db.ks.use; {
	case !db.keepsFields(e) || use == FieldsSwept:
		_, emptied = db.purge(e, math.MaxInt)
	case use == FieldsHidden:
		return db.withoutDue(e)
	case use != FieldsStay:
		emptied = db.purgeFields(e, db.ks.args, use == FieldsWritten)
	}
	if emptied {
		return nil
	}
	return e
}

// purgeFields removes those of fields from the hash of e that are expired, and then, unless
// keep is true, an emptied hash. O(len(fields)).
func (db *DB) purgeFields(e *Entry, fields [][]byte, keep bool) (emptied bool) {
	h := e.Value().(*Hash)
	var expired []string
	for _, field := range fields {
		if at, _ := h.DeadlineBytes(field); at != 0 && at < db.ks.due {
			db.purging(e)
			h.Delete(field)
			expired = append(expired, string(field))
		}
	}
	if expired == nil {
		return false
	}
	delete(db.views, e.Key())
	if emptied = h.Len() == 0 && !keep; emptied {
		db.remove(e.Key())
	} else {
		db.schedule(e)
	}
	if hook := db.ks.hooks.ExpiredMembers; hook != nil {
		hook(db, e.Key(), h, expired, emptied)
	}
	return emptied
}
