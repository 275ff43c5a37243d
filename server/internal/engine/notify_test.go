package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/zset"

	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
)

// follower knows the members of collections from the messages of one kind of
// channel, and from those about whole keys.
type follower map[string]map[string]bool

func (f follower) apply(t *testing.T, key, event string, members []string) {
	t.Helper()
	for _, m := range members {
		switch event {
		case "hset", "hincrby", "hincrbyfloat", "sadd", "zadd", "zincr", "sunionstore", "sinterstore", "sdiffstore",
			"zunionstore", "zinterstore", "zdiffstore", "zrangestore":
			if f[key] == nil {
				f[key] = map[string]bool{}
			}
			f[key][m] = true
		case "hdel", "srem", "spop", "zrem", "zremrangebyrank", "zremrangebyscore", "zremrangebylex", "zpopmin", "zpopmax":
			if !f[key][m] {
				t.Fatalf("%s of %q from %q, which is not there", event, m, key)
			}
			delete(f[key], m)
			if len(f[key]) == 0 {
				delete(f, key)
			}
		default:
			t.Fatalf("event %q names members", event)
		}
	}
}

// payload reads length-prefixed strings as a client does.
func payload(t *testing.T, s string) (members []string) {
	t.Helper()
	for {
		digits, rest, ok := strings.Cut(s, ":")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n > len(rest) {
			t.Fatalf("%q is not a list of members", s)
		}
		members = append(members, rest[:n])
		if s = rest[n:]; s == "" {
			return members
		}
		if s, ok = strings.CutPrefix(s, ","); !ok {
			t.Fatalf("%q after a member", s)
		}
	}
}

// collections returns the members of all collections, with their scores or
// values.
func collections(srv *engine.Engine, keys []string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, key := range keys {
		e := srv.Keys.DB(0).Peek([]byte(key))
		if e == nil {
			continue
		}
		state := map[string]string{}
		switch v := e.Value().(type) {
		case *keyspace.Hash:
			for field, value := range v.All() {
				state[strings.Clone(field)] = strings.Clone(value)
			}
		case *keyspace.Set:
			for m := range v.Members {
				state[strings.Clone(m.String())] = ""
			}
		case *zset.Set:
			for member, score := range v.All() {
				state[strings.Clone(member)] = strconv.FormatFloat(score, 'g', -1, 64)
			}
		}
		all[key] = state
	}
	return all
}

// TestSubkeyFollowers checks that the messages of one kind of channel are sufficient to
// follow the members of every collection, for all commands, and that an event names
// exactly the changed members, each once.
func TestSubkeyFollowers(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 8))
			c := enginetest.NewSession(t)
			srv := c.S.Engine
			sub := &enginetest.Session{T: t, S: srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})}
			c.Do("CONFIG SET notify-keyspace-events KSTIVA")
			sub.Do("PSUBSCRIBE __*")
			zsets := []string{"z", "|z,1:a", "z\nz", ""}
			hashes := []string{"h", "h\x00:"}
			sets := []string{"s", "s|1", "s\n"}
			keys := slices.Concat(zsets, hashes, sets)
			one := func(of []string) string { return of[r.IntN(len(of))] }
			member := func() string {
				if r.IntN(4) == 0 {
					return one([]string{"", ",", "1:a", "|", "\n", "\r\n", "\x00\xff", "007", "-1", strings.Repeat("long", 20)})
				}
				return strconv.Itoa(r.IntN(40))
			}
			score := func() string { return strconv.Itoa(r.IntN(30)) }
			number := func(n int) string { return strconv.Itoa(r.IntN(n)) }
			several := func(args []string, what ...func() string) []string {
				for range 1 + r.IntN(6) {
					for _, f := range what {
						args = append(args, f())
					}
				}
				return args
			}
			command := func() []string {
				switch z, h, s := one(zsets), one(hashes), one(sets); r.IntN(26) {
				case 0, 1, 2:
					return several([]string{"ZADD", z}, score, member)
				case 3:
					return several([]string{"ZADD", z, one([]string{"NX", "XX", "GT", "LT", "CH"})}, score, member)
				case 4:
					return []string{"ZINCRBY", z, number(3), member()}
				case 5:
					return several([]string{"ZREM", z}, member)
				case 6:
					return []string{"ZREMRANGEBYSCORE", z, score(), score()}
				case 7:
					return []string{"ZREMRANGEBYRANK", z, number(10), number(10)}
				case 8:
					return []string{"ZREMRANGEBYLEX", z, "[" + member(), "(" + member()}
				case 9:
					return []string{one([]string{"ZPOPMIN", "ZPOPMAX"}), z, number(4)}
				case 10:
					return []string{"ZMPOP", "2", z, one(zsets), "MAX", "COUNT", "2"}
				case 11:
					return []string{one([]string{"ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"}), z, "2", one(zsets), one(sets)}
				case 12:
					return []string{"ZRANGESTORE", z, one(zsets), number(5), number(20)}
				case 13, 14, 15:
					return several([]string{"HSET", h}, member, member)
				case 16:
					return []string{"HINCRBYFLOAT", h, member(), number(3)}
				case 17:
					return []string{"HINCRBY", h, member(), number(3)}
				case 18:
					return several([]string{"HDEL", h}, member)
				case 19:
					return []string{"HSETNX", h, member(), member()}
				case 20, 21:
					return several([]string{"SADD", s}, member)
				case 22:
					return several([]string{"SREM", s}, member)
				case 23:
					return []string{"SPOP", s, number(6)}
				case 24:
					return []string{"SMOVE", s, one(sets), member()}
				}
				if r.IntN(3) == 0 {
					return []string{"DEL", one(keys)}
				}
				return []string{one([]string{"SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE"}), one(sets), one(sets), one(sets)}
			}
			followers := map[string]follower{"S": {}, "T": {}, "I": {}, "V": {}}
			listen := func() (named map[string][]string) {
				named = map[string][]string{}
				out, _, _ := sub.S.Take()
				sub.S.Written()
				for len(out) > 0 {
					v, n, err := protocol.Decode(out)
					if err != nil {
						t.Fatal(err)
					}
					out = out[n:]
					m := v.([]any)
					kind, name, _ := strings.Cut(m[2].(string), "@0__:")
					text := m[3].(string)
					switch kind {
					case "__keyspace":
						if text == "del" || strings.HasSuffix(text, "store") {
							for _, f := range followers {
								delete(f, name)
							}
						}
					case "__subkeyspace":
						event, list, _ := strings.Cut(text, "|")
						members := payload(t, list)
						followers["S"].apply(t, name, event, members)
						named[name] = append(named[name], members...)
					case "__subkeyevent":
						digits, rest, _ := strings.Cut(text, ":")
						n, _ := strconv.Atoi(digits)
						followers["T"].apply(t, rest[:n], name, payload(t, rest[n+1:]))
					case "__subkeyspaceitem":
						key, member, _ := strings.Cut(name, "\n")
						followers["I"].apply(t, key, text, []string{member})
					case "__subkeyspaceevent":
						event, key, _ := strings.Cut(name, "|")
						followers["V"].apply(t, key, event, payload(t, text))
					default:
						t.Fatalf("channel %q", m[2])
					}
				}
				return named
			}
			before := collections(srv, keys)
			for range 2000 {
				var batch [][][]byte
				add := func(words ...string) {
					var argv [][]byte
					for _, w := range words {
						argv = append(argv, []byte(w))
					}
					batch = append(batch, argv)
				}
				first := command()
				whole := first[0] == "DEL" || strings.HasSuffix(first[0], "STORE")
				multi := r.IntN(8) == 0
				if multi {
					add("MULTI")
					add(first...)
					for range r.IntN(4) {
						add(command()...)
					}
					add("EXEC")
				} else {
					add(first...)
				}
				c.Run(batch)
				named := listen()
				after := collections(srv, keys)
				for _, key := range keys {
					if !multi && !whole {
						changed := map[string]bool{}
						for m, v := range before[key] {
							if now, there := after[key][m]; !there || now != v {
								changed[m] = true
							}
						}
						for m := range after[key] {
							if _, there := before[key][m]; !there {
								changed[m] = true
							}
						}
						told := map[string]bool{}
						for _, m := range named[key] {
							if told[m] {
								t.Fatalf("%q: %q is named twice: %q", first, m, named[key])
							}
							told[m] = true
							if !changed[m] && !slices.Contains(hashes, key) { // HSET may write what was there
								t.Fatalf("%q: %q of %q is named, and has not changed", first, m, key)
							}
						}
						for m := range changed {
							if !told[m] {
								t.Fatalf("%q: %q of %q has changed, and is not named", first, m, key)
							}
						}
					}
					for kind, f := range followers {
						if kind == "I" && strings.Contains(key, "\n") {
							continue // there are no such messages
						}
						if got, want := slices.Sorted(maps.Keys(f[key])), slices.Sorted(maps.Keys(after[key])); !slices.Equal(got, want) {
							t.Fatalf("%q: a follower of %s has %q = %q, want %q", first, kind, key, got, want)
						}
					}
				}
				before = after
			}
		})
	}
}

// A large range that is removed in one command is one message, and the buffer
// that held it is not kept.
func TestSubkeysOfManyMembers(t *testing.T) {
	c := enginetest.NewSession(t)
	srv := c.S.Engine
	const members = 50_000
	var batch [][]byte
	batch = append(batch, []byte("ZADD"), []byte("z"))
	for i := range members {
		batch = append(batch, strconv.AppendInt(nil, int64(i), 10), fmt.Appendf(nil, "member %d", i))
	}
	c.Run([][][]byte{batch})
	c.Do("CONFIG SET notify-keyspace-events Vz", "HELLO 3", "PSUBSCRIBE *")
	out := c.Do("ZREMRANGEBYSCORE z 0 49998")
	reply, n, err := protocol.Decode([]byte(out))
	if err != nil || reply != int64(members-1) {
		t.Fatal(reply, err)
	}
	v, _, err := protocol.Decode([]byte(out[n:]))
	if err != nil {
		t.Fatal(err)
	}
	named := payload(t, v.(protocol.Push)[3].(string))
	if len(named) != members-1 || named[0] != "member 0" || named[members-2] != "member 49998" {
		t.Errorf("%d members, from %q", len(named), named[0])
	}
	if cap(srv.Turn.Scope.Members) > engine.KeepMembers || srv.Turn.Scope.MembersTaken != 0 {
		t.Errorf("a buffer of %d bytes is kept", cap(srv.Turn.Scope.Members))
	}
}
