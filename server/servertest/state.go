package servertest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zsetd/zsetd/server"
)

// The bounds of State.
const (
	stateKeys     = 200 // per database
	stateElements = 50  // per value
	stateBytes    = 200 // per key or element
)

// State returns the data of the server as text, for the message of a test that fails:
//
//	db 0, 2 keys
//	"board" zset, 2 elements: "ann" 1, "bob" 2.5
//	"session:42" string, 30m0s left: "ada"
//
// Keys, members of sets and fields of hashes are in the order of their names. Large data are cut: 200
// keys of a database, 50 elements of a value, 200 bytes of each. It has all permissions, and
// changes no data; statistics, access times and the cache of scripts count it as commands.
func (s *Server) State() string {
	ctx := server.Apart(context.WithoutCancel(s.t.Context()))
	var b strings.Builder
	for _, db := range s.Stats().Databases {
		var keys []string
		for key, err := range s.Keys(ctx, db.DB, "*") {
			if err != nil {
				return fmt.Sprintf("servertest: %v\n", err)
			}
			keys = append(keys, key)
		}
		slices.Sort(keys)
		fmt.Fprintf(&b, "db %d, %s\n", db.DB, counted(len(keys), "key"))
		for i, key := range keys {
			if i == stateKeys {
				fmt.Fprintf(&b, "and %d more\n", len(keys)-i)
				break
			}
			s.writeKey(ctx, &b, db.DB, key)
		}
	}
	if b.Len() == 0 {
		return "no keys\n"
	}
	return b.String()
}

// stateScript replies the type of a key, its time to live in ms, its length and elements.
const stateScript = `#!lua flags=no-writes,allow-stale,allow-oom,allow-cross-slot-keys
redis.call('SELECT', ARGV[1])
local key, last = ARGV[2], tonumber(ARGV[3]) - 1
local kind = redis.call('TYPE', key).ok
local ttl = redis.call('PTTL', key)
if kind == 'string' then return {kind, ttl, 1, {redis.call('GET', key)}} end
if kind == 'list' then return {kind, ttl, redis.call('LLEN', key), redis.call('LRANGE', key, 0, last)} end
if kind == 'set' then return {kind, ttl, redis.call('SCARD', key), redis.call('SMEMBERS', key)} end
if kind == 'zset' then return {kind, ttl, redis.call('ZCARD', key), redis.call('ZRANGE', key, 0, last, 'WITHSCORES')} end
if kind == 'hash' then return {kind, ttl, redis.call('HLEN', key), redis.call('HGETALL', key)} end
if kind == 'stream' then return {kind, ttl, redis.call('XLEN', key), redis.call('XRANGE', key, '-', '+', 'COUNT', last + 1)} end
return {kind, ttl, 0, {}}`

// writeKey writes the line of a key.
func (s *Server) writeKey(ctx context.Context, b *strings.Builder, db int, key string) {
	reply, err := s.Do(ctx, "EVAL", stateScript, 0, db, key, stateElements)
	list, _ := reply.([]any)
	if err != nil || len(list) != 4 {
		fmt.Fprintf(b, "%s: %v\n", shown(key), err)
		return
	}
	kind, _ := list[0].(string)
	ttl, _ := list[1].(int64)
	length, _ := list[2].(int64)
	elements, _ := list[3].([]any)
	if kind == "none" {
		return // it has expired meanwhile
	}
	fmt.Fprintf(b, "%s %s", shown(key), kind)
	if kind != "string" {
		fmt.Fprintf(b, ", %s", counted(int(length), "element"))
	}
	if ttl >= 0 {
		fmt.Fprintf(b, ", %v left", time.Duration(ttl)*time.Millisecond)
	}
	words := elementsOf(kind, elements)
	for i, word := range words[:min(len(words), stateElements)] {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(word)
	}
	if more := int(length) - stateElements; more > 0 {
		fmt.Fprintf(b, ", and %d more", more)
	}
	b.WriteByte('\n')
}

// elementsOf returns the elements of a value as text.
func elementsOf(kind string, list []any) (words []string) {
	switch kind {
	case "zset":
		for pair := range slices.Chunk(list, 2) {
			member, _ := pair[0].(string)
			score, _ := pair[1].(string)
			words = append(words, shown(member)+" "+score)
		}
	case "hash":
		for pair := range slices.Chunk(list, 2) {
			name, _ := pair[0].(string)
			value, _ := pair[1].(string)
			words = append(words, shown(name)+" "+shown(value))
		}
		slices.Sort(words)
	case "stream":
		for _, entry := range list {
			pair, _ := entry.([]any)
			if len(pair) != 2 {
				continue
			}
			id, _ := pair[0].(string)
			fields, _ := pair[1].([]any)
			for _, f := range fields {
				text, _ := f.(string)
				id += " " + shown(text)
			}
			words = append(words, id)
		}
	default:
		for _, e := range list {
			text, _ := e.(string)
			words = append(words, shown(text))
		}
		if kind == "set" {
			slices.Sort(words)
		}
	}
	return words
}

// shown quotes a text, and cuts a long one.
func shown(s string) string {
	if len(s) > stateBytes {
		return fmt.Sprintf("%s (%d bytes)", strconv.Quote(s[:stateBytes]+"…"), len(s))
	}
	return strconv.Quote(s)
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
