package console

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	sessionTime = 12 * time.Hour // a session without requests ends after this time
	maxSessions = 1000           // above it, the session that was unused for longest ends
)

// sessions are the logins of browsers. A session has the password, so that every request
// authenticates again: a changed password, or a removed user, ends it.
type sessions struct {
	mu   sync.Mutex
	list map[string]*session // by id
}

type session struct {
	who  identity
	used time.Time
}

// begin returns the id of a new session. It takes O(n) for n sessions.
func (s *sessions) begin(who identity, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		s.list = map[string]*session{}
	}
	oldest := ""
	for id, one := range s.list {
		if now.Sub(one.used) > sessionTime {
			delete(s.list, id)
		} else if oldest == "" || one.used.Before(s.list[oldest].used) {
			oldest = id
		}
	}
	if len(s.list) >= maxSessions {
		delete(s.list, oldest)
	}
	who.session = newID()
	s.list[who.session] = &session{who, now}
	return who.session
}

// find returns the user of a session.
func (s *sessions) find(id string, now time.Time) (identity, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.list[id]
	if one == nil {
		return identity{}, false
	}
	if now.Sub(one.used) > sessionTime {
		delete(s.list, id)
		return identity{}, false
	}
	one.used = now
	return one.who, true
}

// end ends a session, if there is one with this id.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.list, id)
}

const (
	loginBurst    = 10              // failed logins of a user from an address at once
	loginInterval = 6 * time.Second // time after which one more may fail
	maxLogins     = 10000           // users and addresses that are remembered
)

// limiter limits the failed logins of each user from each address: a token bucket, which a
// failure empties by one. It is remembered until it is full again. A password that has worked
// from an address passes, whatever others behind that address have tried.
type limiter struct {
	mu     sync.Mutex
	secret string                          // of the digests, so that they tell nothing
	full   map[[sha256.Size]byte]time.Time // the time at which the bucket is full
	worked map[[sha256.Size]byte]struct{}  // of address, user and password
}

// digest returns a digest of parts of a login. The lock is held.
func (l *limiter) digest(parts ...string) [sha256.Size]byte {
	if l.full == nil {
		l.secret, l.full, l.worked = newID(), map[[sha256.Size]byte]time.Time{}, map[[sha256.Size]byte]struct{}{}
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s %q", l.secret, parts))
}

// allows reports whether a client at an address may log in.
func (l *limiter) allows(address string, who identity, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, passes := l.worked[l.digest(address, who.name, who.password)]; passes {
		return true
	}
	return l.full[l.digest(address, who.name)].Sub(now) <= (loginBurst-1)*loginInterval
}

// succeeded records a login.
func (l *limiter) succeeded(address string, who identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.digest(address, who.name, who.password)
	if _, known := l.worked[d]; !known && len(l.worked) >= maxLogins {
		for one := range l.worked {
			delete(l.worked, one)
			break
		}
	}
	l.worked[d] = struct{}{}
}

// failed records a failed login.
func (l *limiter) failed(address string, who identity, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.worked, l.digest(address, who.name, who.password))
	d := l.digest(address, who.name)
	if _, known := l.full[d]; !known && len(l.full) >= maxLogins {
		l.forget()
	}
	from := now
	if at := l.full[d]; at.After(now) {
		from = at
	}
	l.full[d] = from.Add(loginInterval)
}

// forget removes the tenth with the fewest failures: names that are made up do not displace
// that of a user whose password is guessed.
func (l *limiter) forget() {
	list := slices.SortedFunc(maps.Keys(l.full), func(a, b [sha256.Size]byte) int { return l.full[a].Compare(l.full[b]) })
	for _, d := range list[:maxLogins/10] {
		delete(l.full, d)
	}
}

// networkOf returns the address of a client without its port. Of IPv6 it is the network of 64
// bits, which one client may own.
func networkOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	host, _, _ = strings.Cut(host, "%")
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}
