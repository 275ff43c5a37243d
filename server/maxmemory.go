package server

import (
	"errors"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// The limit of memory, maxmemory, is held by refusing commands that may need
// more, Redis's policy noeviction. What counts is what the garbage collector has
// found alive when it last ran: what it has yet to free does not keep anybody
// from writing. When the heap is larger than the limit it is called more often,
// so that this is known soon; between two looks the heap may exceed the limit.

// memoryLimit is what is known of it, guarded by the server's lock.
type memoryLimit struct {
	over   bool
	looked time.Time
}

// memoryLook is how old that may be.
const memoryLook = time.Millisecond

const errOOM = "OOM command not allowed when used memory > 'maxmemory'."

// lacksMemory reports whether commands that may need memory are refused.
func (srv *Server) lacksMemory() bool {
	limit := srv.config.maxmemory
	if limit == 0 {
		return false
	}
	m := &srv.memoryLimit
	if since := srv.at.Sub(m.looked); 0 <= since && since < memoryLook {
		return m.over
	}
	m.looked = srv.at
	if m.over = usedMemory() > limit; m.over {
		live := liveMemory()
		m.over = live == 0 || live > limit
		srv.freeing.run()
	}
	return m.over
}

// needsMemory reports whether a command is refused while memory is short.
// Nothing is queued then that may need some later.
func (s *Session) needsMemory(cmd *Command, argv [][]byte) bool {
	if s.multi && (!runsInMulti(cmd.Name) || cmd.Name == "watch") {
		return true
	}
	return s.effectsOf(cmd, argv).Has(protocol.DenyOOM)
}

const notEvicting = "zsetd evicts nothing: maxmemory goes with the policy noeviction only"

// maxmemory is refused as long as a policy asks for keys to be evicted, and such
// a policy while there is a limit: nothing would be done of it.
func maxmemory() parameter {
	p := size("maxmemory", 0, 0, 1<<63-1, func(c *config) *int64 { return &c.maxmemory })
	set := p.set
	p.set = func(c *config, s string) error {
		before := c.maxmemory
		if err := set(c, s); err != nil {
			return err
		}
		if policy := c.kept["maxmemory-policy"]; c.maxmemory != 0 && policy != "" && policy != "noeviction" {
			c.maxmemory = before
			return errors.New(notEvicting)
		}
		return nil
	}
	return p
}

func maxmemoryPolicy() parameter {
	p := keptEnum("maxmemory-policy", "noeviction", noEviction, "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
		"allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction").check(notLFU)
	set := p.set
	p.set = func(c *config, s string) error {
		policy := strings.ToLower(s)
		if c.maxmemory != 0 && (strings.HasPrefix(policy, "volatile-") || strings.HasPrefix(policy, "allkeys-")) {
			return errors.New(notEvicting)
		}
		return set(c, s)
	}
	return p
}
