package archive

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/zset"
)

// Companions: deadlines of members in files of Redis. Redis has no deadlines of
// members of sorted sets. There, the library that `zsetd functions` prints keeps
// the deadlines of a key as the scores of a companion, another sorted set. Exports
// for Redis write companions; imports turn them into deadlines again. The name of a
// companion must be the same as in cmd/zsetd/zsetd.lua.

// CompanionPrefix begins the names of companions.
const CompanionPrefix = "zsetd:deadlines:"

// CompanionOf returns the name of the companion of a key. It lies in the key's slot
// of a cluster, by the hash tag of the key or else by the key itself. No two keys
// have the same companion: that of the key {a}, which is entirely a hash tag, has
// one colon more than that of the key a.
func CompanionOf(key string) string {
	switch {
	case !hasTag(key):
		return CompanionPrefix + "{" + key + "}"
	case isTag(strings.TrimLeft(key, ":")):
		return CompanionPrefix + ":" + key
	}
	return CompanionPrefix + key
}

// hasTag reports whether a key has a hash tag: a non-empty text between its first {
// and the first } behind that.
func hasTag(key string) bool {
	_, rest, ok := strings.Cut(key, "{")
	return ok && strings.IndexByte(rest, '}') > 0
}

func isTag(key string) bool {
	return strings.HasPrefix(key, "{") && strings.HasSuffix(key, "}")
}

// OwnerOf returns the key whose companion has a name; ok is false if it is no such name.
func OwnerOf(name string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(name, CompanionPrefix)
	if !ok {
		return "", false
	}
	for _, key := range []string{rest, strings.TrimPrefix(rest, ":"), strings.TrimSuffix(strings.TrimPrefix(rest, "{"), "}")} {
		if CompanionOf(key) == name {
			return key, true
		}
	}
	return "", false
}

// companion returns the key that a value is the companion of, and its deadlines; ok
// is false if the value is no companion.
func companion(v Value) (owner id, deadlines *zset.Set, ok bool) {
	key, named := OwnerOf(v.Key)
	s, sorted := v.Value.(*zset.Set)
	if !named || !sorted || v.DB == keyspace.InternalDB || s.Deadlines() != nil {
		return owner, nil, false
	}
	for _, at := range s.All() {
		if at < 1 || at > lastDeadline || at != math.Trunc(at) {
			return owner, nil, false
		}
	}
	return id{uint64(v.DB), key}, s, true // the database instead of the space
}

// lastDeadline is the latest deadline that the commands accept.
const lastDeadline = 1<<46 - 1

// withDeadlines returns a value whose members have the deadlines in a companion. A
// companion may name members that no longer exist.
func withDeadlines(v Value, deadlines *zset.Set) Value {
	s := v.Value.(*zset.Set).Clone()
	for member, at := range deadlines.All() {
		s.SetDeadline(member, int64(at))
	}
	v.Value = s
	return v
}

// foldCompanions removes from values the companions of sorted sets among them, and
// sets the deadlines in those sets.
func foldCompanions(values []Value) []Value {
	at := map[id]int{}
	for _, v := range values {
		if owner, _, ok := companion(v); ok {
			at[owner] = -1
		}
	}
	if len(at) == 0 {
		return values
	}
	for i, v := range values {
		k := id{uint64(v.DB), v.Key}
		if _, wanted := at[k]; wanted && v.DB != keyspace.InternalDB && v.Type() == "zset" {
			at[k] = i
		}
	}
	for _, v := range values {
		if owner, deadlines, ok := companion(v); ok && at[owner] >= 0 {
			values[at[owner]] = withDeadlines(values[at[owner]], deadlines)
		}
	}
	return slices.DeleteFunc(values, func(v Value) bool {
		owner, _, ok := companion(v)
		return ok && at[owner] >= 0
	})
}

// companionNames are the companions that an export writes (true), and the exported
// keys that have such names already (false): Redis does not load a file that has a
// key twice.
type companionNames map[id]bool // false: an exported key

// note records an exported key, and its companion if it has one. It returns an
// error if a key and a companion have the same name.
func (n companionNames) note(v Value) error {
	if strings.HasPrefix(v.Key, CompanionPrefix) {
		if err := n.reserve(id{uint64(v.DB), v.Key}, false); err != nil {
			return err
		}
	}
	if s, ok := v.Value.(*zset.Set); ok && s.Deadlines() != nil {
		return n.reserve(id{uint64(v.DB), CompanionOf(v.Key)}, true)
	}
	return nil
}

// reserve records that a key has a name, which is that of a companion if made is set.
func (n companionNames) reserve(k id, made bool) error {
	if was, twice := n[k]; twice && was != made {
		owner, _ := OwnerOf(k.key)
		return fmt.Errorf("the member deadlines of key %.100q of database %d are exported as key %.100q, which exists already: rename it",
			owner, k.space, k.key)
	}
	n[k] = made
	return nil
}

// live returns a value without the members or fields that are past their deadlines;
// ok is false if none is left.
func (v Value) live(now int64) (_ Value, ok bool) {
	switch x := v.Value.(type) {
	case *zset.Set:
		if x.Due(now) > 0 {
			x = x.Clone()
			x.Expire(now, math.MaxInt, nil)
			v.Value = x
		}
		return v, x.Len() > 0
	case *keyspace.Hash:
		if d := x.Deadlines(); d != nil {
			var due []string
			for field, at := range d.All() {
				if int64(at) >= now {
					break
				}
				due = append(due, strings.Clone(field))
			}
			if len(due) > 0 {
				x = x.Clone()
				for _, field := range due {
					x.Delete([]byte(field))
				}
				v.Value = x
			}
			return v, x.Len() > 0
		}
	}
	return v, true
}
