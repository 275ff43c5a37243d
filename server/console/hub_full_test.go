package console

import "testing"

// TestFullHub checks that a hub that takes no further feeds starts those that it has taken before,
// or ends them where the user may not subscribe.
func TestFullHub(t *testing.T) {
	c := &Console{hubs: map[string]*hub{}, feeds: map[feedKey]*feed{}}
	h := &hub{c: c, user: "ann", feeds: map[subscription][]*feed{}}
	c.hubs["ann"] = h
	accepted, refused := newFeed(feedKey{kind: ofChannel, name: "a"}, nil), newFeed(feedKey{kind: ofChannel, name: "b"}, nil)
	for range maxStale + 1 {
		h.sent = append(h.sent, command("UNSUBSCRIBE", []subscription{{name: "stale"}}, nil))
	}
	for _, f := range []*feed{accepted, refused} {
		h.sent = append(h.sent, command("SUBSCRIBE", f.key.subscriptions(), f))
	}
	for range maxStale + 1 {
		h.answered(errEnded)
	}
	if c.hubs["ann"] != nil {
		t.Error("a full hub takes further feeds")
	}
	h.answered(nil)
	h.answered(errEnded)
	if !accepted.isStarted() || accepted.err != nil || !refused.isStarted() || refused.err == nil {
		t.Errorf("the accepted feed has started: %v, %v; the refused one: %v, %v", accepted.isStarted(), accepted.err, refused.isStarted(), refused.err)
	}
}
