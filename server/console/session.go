package console

import (
	"net"
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
	loginBurst    = 10              // failed logins of an address at once
	loginInterval = 6 * time.Second // time after which it may fail once more
	maxAddresses  = 10000           // addresses that are remembered
)

// limiter limits the failed logins of each address: a token bucket, which a failure empties
// by one. An address is remembered until its bucket is full again.
type limiter struct {
	mu   sync.Mutex
	full map[string]time.Time // the time at which the bucket is full
}

// allows reports whether an address may try to log in.
func (l *limiter) allows(address string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full[address].Sub(now) <= (loginBurst-1)*loginInterval
}

// failed records a failed login.
func (l *limiter) failed(address string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full == nil {
		l.full = map[string]time.Time{}
	}
	if _, known := l.full[address]; !known && len(l.full) >= maxAddresses {
		l.forget(now)
	}
	from := now
	if at := l.full[address]; at.After(now) {
		from = at
	}
	l.full[address] = from.Add(loginInterval)
}

// forget removes the addresses whose buckets are full; if there is none, an arbitrary tenth,
// so that the scan is rare.
func (l *limiter) forget(now time.Time) {
	for address, at := range l.full {
		if !at.After(now) {
			delete(l.full, address)
		}
	}
	for address := range l.full {
		if len(l.full) <= maxAddresses*9/10 {
			return
		}
		delete(l.full, address)
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
