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
	ConfigFile  string // the file that the parameters were read from
	StartMemory int64  // memory in use when the server was created
}

// RandomID returns 40 random hexadecimal digits.
func RandomID() string {
	var b [20]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("BUG: no randomness: " + err.Error())
	}
	return hex.EncodeToString(b[:])
}
