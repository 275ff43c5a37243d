package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestState checks that a stream of a key begins with its value, and goes on with its changes.
func TestState(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"notify-keyspace-events": "SAK"})
	for _, command := range [][]any{{"SET", "s", "a\r\n\xff"}, {"RPUSH", "l", "a", "b"}, {"SADD", "set", "m"}, {"HSET", "h", "f", "v"}, {"ZADD", "z", 1.5, "m", "inf", "n"}, {"XADD", "x", "1-1", "f", "v"}} {
		srv.Must(command...)
	}
	for i := range 10001 {
		srv.Must("RPUSH", "long", i)
	}
	for key, want := range map[string]string{
		"s":    `"type":"string","length":4,"value":{"base64":"YQ0K/w=="}`,
		"l":    `"type":"list","length":2,"value":["a","b"]`,
		"set":  `"type":"set","length":1,"value":["m"]`,
		"h":    `"type":"hash","length":1,"value":[["f","v"]]`,
		"z":    `"type":"zset","length":2,"value":[["m",1.5],["n","inf"]]`,
		"x":    `"type":"stream","length":1,"value":[["1-1",["f","v"]]]`,
		"none": `"type":"none","length":0,"value":null`,
		"long": `"type":"list","length":10001,"value":null`,
	} {
		w := watch(t, web, "/events?state=1&key="+key)
		w.expect("event: state\n" + `data: {"key":"` + key + `",` + want + `}`)
		srv.Must("DEL", key)
		if key != "none" {
			w.expect(fmt.Sprintf(`data: {"channel":"__keyspace@0__:%[1]s","key":"%[1]s","event":"del","members":[],"message":"del"}`, key))
		}
		w.cancel()
	}
	// A database, several keys, and none without the parameter.
	w := watch(t, web, "/events?state=1&key=a&key=b&channel=c&db=3")
	w.expect("event: state\n"+`data: {"key":"a","type":"none","length":0,"value":null}`, "event: state\n"+`data: {"key":"b","type":"none","length":0,"value":null}`)
	w = watch(t, web, "/events?key=a")
	srv.Must("SET", "a", "1")
	w.expect(`data: {"channel":"__keyspace@0__:a","key":"a","event":"set","members":[],"message":"set"}`)
	// A user without permission for the value.
	for _, denied := range []string{"get", "strlen", "type", "select"} {
		srv.Must("ACL", "SETUSER", "ann", "reset", "on", ">pw", "allkeys", "allchannels", "+@all", "-"+denied)
		w := watch(t, web, "/events?state=1&key=a", "Authorization: Bearer ann:pw")
		if got := w.next(); w.res.StatusCode != http.StatusOK || !strings.HasPrefix(got, "event: end\n"+`data: {"error":"NOPERM`) || !strings.Contains(got, denied) {
			t.Errorf("without %s: %d %s", denied, w.res.StatusCode, got)
		}
		w.cancel()
	}
}

// TestStreamLimits checks the limits of the streams of an address and of a user.
func TestStreamLimits(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"http-streams-per-address": "3", "user": "ann on >pw +@all &*"})
	srv.Must("CONFIG", "SET", "http-streams-per-user", 2)
	srv.Must("XADD", "x", "1-1", "f", "v")
	a := watch(t, web, "/events?channel=a")
	watch(t, web, "/rank?key=z&member=m").expect(`data: {"rank":null,"score":null,"card":0}`)
	for _, path := range []string{"/events?channel=a", "/rank?key=z&member=m", "/stats"} {
		if got := watch(t, web, path).refused(http.StatusTooManyRequests); got != `{"error":"ERR too many streams of this user: http-streams-per-user is 2"}`+"\n" {
			t.Errorf("%s: %s", path, got)
		}
	}
	ann := watch(t, web, "/events?channel=a", "Authorization: Bearer ann:pw")
	if ann.res.StatusCode != http.StatusOK {
		t.Errorf("another user: %d", ann.res.StatusCode)
	}
	if got := watch(t, web, "/stats", "Authorization: Bearer ann:pw").refused(http.StatusTooManyRequests); got != `{"error":"ERR too many streams to this address: http-streams-per-address is 3"}`+"\n" {
		t.Errorf("the address: %s", got)
	}
	// One that is refused for another reason, or has ended, does not count.
	a.cancel()
	settled := func(path string, status int) {
		t.Helper()
		for {
			w := watch(t, web, path)
			if w.res.StatusCode != http.StatusTooManyRequests {
				if w.res.StatusCode != status {
					t.Errorf("%s: %d, want %d", path, w.res.StatusCode, status)
				}
				w.cancel()
				return
			}
		}
	}
	for range 5 {
		settled("/events", http.StatusBadRequest)
		settled("/events?key=k", http.StatusConflict)
		settled("/rank?key=x&member=m", http.StatusBadRequest)
		settled("/events?stream=x&last=0", http.StatusOK)
		settled("/stats", http.StatusOK)
	}
	srv.Must("CONFIG", "SET", "http-streams-per-user", 0, "http-streams-per-address", 0)
	for range 5 {
		watch(t, web, "/events?channel=a").res.Header.Get("Content-Type")
	}
	if got := watch(t, web, "/events?channel=a").res.StatusCode; got != http.StatusOK {
		t.Errorf("without limits: %d", got)
	}
}
