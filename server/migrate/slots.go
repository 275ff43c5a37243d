package migrate

import (
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/server/internal/base/keyslot"
)

// StatePrefix begins the names of the keys in which a move keeps its progress at the
// target.
const StatePrefix = "zsetd:migrate:"

// progressKey is the hash with the progress of the whole move.
const progressKey = StatePrefix + "progress"

// isState reports whether a key belongs to a move.
func isState(key string) bool { return strings.HasPrefix(key, StatePrefix) }

// slotTags returns a hash tag for each slot of a cluster.
func slotTags() []string {
	tags := make([]string, keyslot.Count)
	for i, left := 0, len(tags); left > 0; i++ {
		tag := strconv.Itoa(i)
		if slot := keyslot.Of(tag); tags[slot] == "" {
			tags[slot] = tag
			left--
		}
	}
	return tags
}
