package engine

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// identity is what INFO shows of the server itself.
type identity struct {
	Start       time.Time
	RunID       string
	ReplID      string // replication ID
	ReplID2     string // ID under which the stream up to offset Repl2End is the same; NoReplID for none
	Repl2End    int64  // in bytes
	ConfigFile  string // the file that the parameters were read from
	StartMemory int64  // memory in use when the server was created
}

// NoReplID is the replication ID of no stream.
const NoReplID = "0000000000000000000000000000000000000000"

// NewReplID gives the stream of replication a new ID. If it continues the one before, up
// to an offset, replicas of that one may continue with it.
func (id *identity) NewReplID(continues bool, offset int64) {
	id.ReplID2, id.Repl2End = NoReplID, -1
	if continues {
		id.ReplID2, id.Repl2End = id.ReplID, offset
	}
	id.ReplID = RandomID()
}

// RandomID returns 40 random hexadecimal digits.
func RandomID() string {
	var b [20]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("BUG: no randomness: " + err.Error())
	}
	return hex.EncodeToString(b[:])
}
