package console

import (
	"fmt"
	"testing"
	"time"
)

// TestSessions checks that a session ends when it is not used, or when there are too many.
func TestSessions(t *testing.T) {
	var s sessions
	now := time.Unix(1e9, 0)
	first := s.begin(newIdentity("ann", "pw"), now)
	if who, ok := s.find(first, now.Add(sessionTime)); !ok || who.name != "ann" || who.password != "pw" || who.session != first {
		t.Errorf("after the longest time: %v %v", who, ok)
	}
	if _, ok := s.find(first, now.Add(2*sessionTime)); !ok {
		t.Error("its use does not count")
	}
	if _, ok := s.find(first, now.Add(3*sessionTime+1)); ok || len(s.list) != 0 {
		t.Errorf("after that: %v, %d sessions", ok, len(s.list))
	}
	if _, ok := s.find("", now); ok {
		t.Error("there is a session without an id")
	}
	// Those that have ended are forgotten, then the one that was unused for longest.
	s.begin(newIdentity("", ""), now.Add(-sessionTime-1))
	first = s.begin(newIdentity("", ""), now)
	if len(s.list) != 1 {
		t.Errorf("%d sessions", len(s.list))
	}
	second := s.begin(newIdentity("", ""), now.Add(time.Second))
	s.find(first, now.Add(2*time.Second))
	for range maxSessions - 1 {
		s.begin(newIdentity("", ""), now.Add(3*time.Second))
	}
	if s.list[second] != nil || s.list[first] == nil || len(s.list) != maxSessions {
		t.Errorf("%v %v, %d sessions", s.list[first], s.list[second], len(s.list))
	}
	s.end(first)
	if s.list[first] != nil {
		t.Error("an ended session is there")
	}
}

// TestLimiter checks the limit of failed logins, and that made-up names do not displace others.
func TestLimiter(t *testing.T) {
	var l limiter
	now := time.Unix(1e9, 0)
	ann := newIdentity("ann", "guess")
	for i := range loginBurst {
		if !l.allows("a", ann, now) {
			t.Errorf("login %d is refused", i)
		}
		l.failed("a", ann, now)
	}
	if l.allows("a", ann, now) || l.allows("a", ann, now.Add(loginInterval-1)) || !l.allows("a", ann, now.Add(loginInterval)) {
		t.Error("after the burst")
	}
	if !l.allows("b", ann, now) || !l.allows("a", newIdentity("ben", "guess"), now) {
		t.Error("another address or user is refused")
	}
	l.succeeded("a", newIdentity("ann", "pw"))
	if !l.allows("a", newIdentity("ann", "pw"), now) || l.allows("a", ann, now) || l.allows("a", newIdentity("", "annpw"), now) == l.allows("a", ann, now) {
		t.Error("after a login")
	}
	for i := range maxLogins + 10 {
		l.failed("a", newIdentity(fmt.Sprint(i), "x"), now)
	}
	if l.allows("a", ann, now) || len(l.full) > maxLogins {
		t.Errorf("after many names, of which %d are kept", len(l.full))
	}
	for i := range maxLogins + 10 {
		l.succeeded("b", newIdentity(fmt.Sprint(i), "x"))
	}
	if len(l.worked) != maxLogins {
		t.Errorf("%d logins are kept", len(l.worked))
	}
	l.failed("b", newIdentity("7", "x"), now)
	l.failed("a", newIdentity("ann", "pw"), now)
	if l.allows("a", newIdentity("ann", "pw"), now) {
		t.Error("a password that has failed passes")
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		clientName("1.2.3.4:5 \x00\x7fé~!"):         "1.2.3.4:5____~!",
		networkOf("192.0.2.1:5"):                    "192.0.2.1",
		networkOf("[2001:db8::1:2:3:4]:5"):          "2001:db8::",
		networkOf("[fe80::1%eth0]:5"):               "fe80::",
		networkOf("@"):                              "@",
		contentType("a.js"):                         "text/javascript; charset=utf-8",
		contentType("a.svg"):                        "image/svg+xml",
		contentType("a"):                            "",
		fmt.Sprint(memberList("3:ann,4:b,en")):      "[ann b,en]",
		fmt.Sprint(memberList("3:ann,9:ben")):       "[ann]",
		fmt.Sprint(memberList("-1:a")):              "[]",
		fmt.Sprint(memberList("ann")):               "[]",
		fmt.Sprint(part("a=1,b=2.5", "b")):          "2.5",
		fmt.Sprint(part("a=1,b=2.5", "c")):          "0",
		fmt.Sprint(parts("text")):                   "[]",
		fmt.Sprint(parseInfo("a:1\n").section("x")): "[]",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSample checks the rates of a sample, also after CONFIG RESETSTAT.
func TestSample(t *testing.T) {
	at := time.Unix(1e9, 0)
	read := func(seconds int, text string, calls map[string]int64) *counters {
		in := parseInfo("# x\r\n" + text)
		return &counters{at.Add(time.Duration(seconds) * time.Second), in, calls, map[int64]int64{2: int64(10 * seconds), 4: 0}}
	}
	was := read(1, "total_commands_processed:100\r\nkeyspace_hits:50\r\ncheckpoint_histogram_usec:count=1,sum=5000\r\n", map[string]int64{"get": 10, "set": 5})
	is := read(3, "total_commands_processed:300\r\nkeyspace_hits:20\r\ncheckpoint_histogram_usec:count=3,sum=9000\r\nrdb_last_bgsave_status:ok\r\naof_last_write_status:err\r\n", map[string]int64{"get": 30, "set": 5})
	s := newSample(was, is)
	if s.Ops != 100 || s.Hits != 10 || s.Commands["get"] != 10 || len(s.Commands) != 1 || s.CheckMs == nil || *s.CheckMs != 2 || s.SaveOK || s.P50 == nil || *s.P50 != 1.5 || s.T != at.Add(3*time.Second).UnixMilli() {
		t.Errorf("%+v", s)
	}
	if s := newSample(is, is); s.CheckMs != nil || s.P50 != nil || s.Ops != 0 {
		t.Errorf("without anything: %+v", s)
	}
}
