package console

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Rows of keys that a request of /metrics selects, with the parameters and the metrics of
// redis_exporter. Each takes keys or patterns, separated by commas, with the database in front
// of them if it is not 0:
//
//	check-keys, check-single-keys          size, memory, and value if that is a number
//	check-streams, check-single-streams    streams, their groups and consumers
//
// The names with single take no patterns: no SCAN searches for them.

// The bounds of one request. A series of each key, group and consumer costs Prometheus memory.
const (
	selectedKeys      = 100    // for each of keys and streams
	selectedScan      = 100000 // keys that all patterns of a request look at
	selectedGroups    = 100    // of a stream
	selectedConsumers = 100    // of a group
	selectedDigits    = 40     // of a value that may be a number
)

// selected is a key in a database.
type selected struct{ db, key string }

// collectSelected adds the rows of the keys and streams that a request names.
func (e *reading) collectSelected(nc *conn, query map[string][]string) error {
	left := selectedScan
	for _, part := range []struct {
		patterns, single string
		add              func(*conn, selected) error
	}{
		{"check-keys", "check-single-keys", e.collectKey},
		{"check-streams", "check-single-streams", e.collectStream},
	} {
		keys, err := nc.selectKeys(query[part.patterns], &left)
		if err != nil {
			return err
		}
		single, err := nc.selectKeys(query[part.single], nil)
		if err != nil {
			return err
		}
		seen := map[selected]bool{}
		for _, k := range append(single, keys...) {
			if seen[k] || len(seen) == selectedKeys {
				continue
			}
			seen[k] = true
			if _, err := nc.must("SELECT", k.db); err != nil {
				return err
			}
			err := part.add(nc, k)
			if reply, is := errors.AsType[protocol.ReplyError](err); is && !strings.HasPrefix(string(reply), "NOPERM") {
				continue // the key, or its group, is gone or has another type since it was looked at
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// selectKeys returns the keys that words name: db0=key, or key for one of database 0. Patterns
// are searched for among as many keys as are left of those that the request may look at; without left
// there are no patterns.
func (c *conn) selectKeys(lists []string, left *int) (keys []selected, err error) {
	for _, list := range lists {
		for word := range strings.SplitSeq(list, ",") {
			db, key, numbered := strings.Cut(strings.TrimSpace(word), "=")
			if db = strings.TrimPrefix(db, "db"); !numbered {
				db, key = "0", strings.TrimSpace(word)
			}
			switch {
			case key == "" || len(keys) >= selectedKeys:
			case left != nil && strings.ContainsAny(key, `*?[\`):
				found, err := c.scan(db, key, selectedKeys-len(keys), left)
				if err != nil {
					return nil, err
				}
				keys = append(keys, found...)
			default:
				keys = append(keys, selected{db, key})
			}
		}
	}
	return keys, nil
}

// scan returns up to n keys of a database that match a pattern, in the order of their names among those found.
func (c *conn) scan(db, pattern string, n int, left *int) (keys []selected, err error) {
	if _, err := c.must("SELECT", db); err != nil {
		return nil, err
	}
	const step = 1000
	cursor := "0"
	for *left > 0 {
		*left -= step
		reply, err := c.must("SCAN", cursor, "MATCH", pattern, "COUNT", strconv.Itoa(step))
		if err != nil {
			return nil, err
		}
		pair, _ := reply.([]any)
		if len(pair) != 2 {
			break
		}
		names, _ := pair[1].([]any)
		for _, name := range names {
			if text, ok := name.(string); ok && len(keys) < n {
				keys = append(keys, selected{db, text})
			}
		}
		if cursor, _ = pair[0].(string); cursor == "0" || len(keys) == n {
			break
		}
	}
	slices.SortFunc(keys, func(a, b selected) int { return strings.Compare(a.key, b.key) })
	return keys, nil
}

// collectKey adds the rows of a key. One that does not exist has none.
func (e *reading) collectKey(nc *conn, k selected) error {
	reply, err := nc.must("TYPE", k.key)
	if err != nil {
		return err
	}
	kind, _ := reply.(protocol.Status)
	length := map[protocol.Status]string{
		"string": "STRLEN", "list": "LLEN", "set": "SCARD", "zset": "ZCARD", "hash": "HLEN", "stream": "XLEN",
	}[kind]
	if length == "" {
		return nil
	}
	labels := []string{"db", "db" + k.db, "key", k.key}
	n, err := nc.count(length, k.key)
	if err != nil {
		return err
	}
	e.gauge("redis_key_size", "Elements of a key, or bytes of a string.", n, labels...)
	used, err := nc.count("MEMORY", "USAGE", k.key)
	if err != nil {
		return err
	}
	e.gauge("redis_key_memory_usage_bytes", "Memory of a key.", used, labels...)
	if kind != "string" || n > selectedDigits {
		return nil
	}
	if reply, err = nc.must("GET", k.key); err != nil {
		return err
	}
	text, _ := reply.(string)
	if value, err := strconv.ParseFloat(text, 64); err == nil {
		e.gauge("redis_key_value", "Value of a key that is a number.", value, labels...)
	}
	return nil
}

// count returns a reply that is an integer.
func (c *conn) count(args ...string) (float64, error) {
	reply, err := c.must(args...)
	n, _ := reply.(int64)
	return float64(n), err
}

// collectStream adds the rows of a stream, its groups and their consumers.
func (e *reading) collectStream(nc *conn, k selected) error {
	reply, err := nc.must("TYPE", k.key)
	if kind, _ := reply.(protocol.Status); err != nil || kind != "stream" {
		return err
	}
	if reply, err = nc.must("XINFO", "STREAM", k.key); err != nil {
		return err
	}
	stream, labels := fieldsOf(reply), []string{"db", "db" + k.db, "stream", k.key}
	for _, m := range []struct{ name, field, help string }{
		{"length", "length", "Entries of a stream."},
		{"radix_tree_keys", "radix-tree-keys", "Keys of the radix tree that a stream would be in Redis."},
		{"radix_tree_nodes", "radix-tree-nodes", "Nodes of the radix tree that a stream would be in Redis."},
		{"last_generated_id", "last-generated-id", "Newest ID of a stream, in ms since 1970."},
		{"groups", "groups", "Groups of a stream."},
		{"max_deleted_entry_id", "max-deleted-entry-id", "Highest ID that was deleted of a stream, in ms since 1970."},
		{"first_entry_id", "first-entry", "ID of the first entry of a stream, in ms since 1970."},
		{"last_entry_id", "last-entry", "ID of the last entry of a stream, in ms since 1970."},
	} {
		e.gauge("redis_stream_"+m.name, m.help, streamNumber(stream[m.field]), labels...)
	}
	if reply, err = nc.must("XINFO", "GROUPS", k.key); err != nil {
		return err
	}
	groups, _ := reply.([]any)
	for _, one := range groups[:min(len(groups), selectedGroups)] {
		group := fieldsOf(one)
		name, _ := group["name"].(string)
		labels := append(labels[:len(labels):len(labels)], "group", name)
		e.gauge("redis_stream_group_consumers", "Consumers of a group.", streamNumber(group["consumers"]), labels...)
		e.gauge("redis_stream_group_messages_pending", "Entries of a group that are not acknowledged.", streamNumber(group["pending"]), labels...)
		e.gauge("redis_stream_group_last_delivered_id", "Newest ID that a group has read, in ms since 1970.", streamNumber(group["last-delivered-id"]), labels...)
		e.gauge("redis_stream_group_entries_read", "Entries that a group has read.", streamNumber(group["entries-read"]), labels...)
		if lag, known := group["lag"].(int64); known {
			e.gauge("redis_stream_group_lag", "Entries that a group has not read.", float64(lag), labels...)
		}
		if reply, err = nc.must("XINFO", "CONSUMERS", k.key, name); err != nil {
			return err
		}
		consumers, _ := reply.([]any)
		for _, one := range consumers[:min(len(consumers), selectedConsumers)] {
			consumer := fieldsOf(one)
			name, _ := consumer["name"].(string)
			labels := append(labels[:len(labels):len(labels)], "consumer", name)
			e.gauge("redis_stream_group_consumer_messages_pending", "Entries of a consumer that are not acknowledged.", streamNumber(consumer["pending"]), labels...)
			e.gauge("redis_stream_group_consumer_idle_seconds", "Time since a consumer has asked for entries.", streamNumber(consumer["idle"])/1000, labels...)
		}
	}
	return nil
}

// fieldsOf returns the values of a map by their names.
func fieldsOf(reply any) map[string]any {
	fields := map[string]any{}
	m, _ := reply.(protocol.Map)
	for _, p := range m {
		if name, ok := p.Key.(string); ok {
			fields[name] = p.Value
		}
	}
	return fields
}

// streamNumber returns a number, the milliseconds of an ID, or those of an entry.
func streamNumber(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case string:
		ms, _, _ := strings.Cut(v, "-")
		f, _ := strconv.ParseFloat(ms, 64)
		return f
	case []any:
		if len(v) > 0 {
			return streamNumber(v[0])
		}
	}
	return 0
}
