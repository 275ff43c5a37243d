package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

// sources returns how many connections read the sources of events.
func sources(srv *servertest.Server) int {
	return strings.Count(fmt.Sprint(srv.Must("CLIENT", "LIST")), "name=http:events")
}

// numsub returns how many clients are subscribed to a channel.
func numsub(srv *servertest.Server, channel string) any {
	return srv.Must("PUBSUB", "NUMSUB", channel).([]any)[1]
}

// TestOneConnection checks that the channels, patterns and keys of all viewers of a user come on
// one connection, which unsubscribes from what has no viewer left and closes with the last viewer.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"notify-keyspace-events": "SAK", "user": "ann on >pw ~* &a* +@all"})
	a := watch(t, web, "/events?channel=a&pattern=b*")
	raw := watch(t, web, "/events?channel=a&format=raw")
	key := watch(t, web, "/events?key=z")
	channel := watch(t, web, "/events?channel=__keyspace@0__:z")
	if n := sources(srv); n != 1 {
		t.Errorf("%d connections of one user", n)
	}
	ann := watch(t, web, "/events?channel=a", "Authorization: Bearer ann:pw")
	watch(t, web, "/events?channel=b", "Authorization: Bearer ann:pw").refused(403)
	if n := sources(srv); n != 2 {
		t.Errorf("%d connections of two users", n)
	}
	srv.Must("PUBLISH", "a", "1")
	srv.Must("PUBLISH", "b2", "2")
	srv.Must("ZADD", "z", "1", "m")
	a.expect(`data: {"channel":"a","message":"1"}`, `data: {"channel":"b2","pattern":"b*","message":"2"}`)
	raw.expect("data: 1")
	ann.expect(`data: {"channel":"a","message":"1"}`)
	key.expect(`data: {"channel":"__subkeyspace@0__:z","key":"z","event":"zadd","members":["m"],"message":"zadd|1:m"}`)
	channel.expect(`data: {"channel":"__keyspace@0__:z","message":"zadd"}`)

	a.cancel()
	wait.Until(t, "the pattern has no subscriber", func() bool { return srv.Must("PUBSUB", "NUMPAT") == int64(0) })
	srv.Must("PUBLISH", "a", "4")
	raw.expect("data: 4")
	ann.expect(`data: {"channel":"a","message":"4"}`)
	key.cancel()
	wait.Until(t, "the channel of the members has no subscriber", func() bool { return numsub(srv, "__subkeyspace@0__:z") == int64(0) })
	srv.Must("DEL", "z")
	channel.expect(`data: {"channel":"__keyspace@0__:z","message":"del"}`)

	srv.Must("ACL", "SETUSER", "ann", "resetchannels", "&b*")
	ann.expect("event: end\n" + `data: {"error":"the stream has ended: the user has lost the permission for it","reason":"permission"}`)
	watch(t, web, "/events?channel=a", "Authorization: Bearer ann:pw").refused(403)
	b := watch(t, web, "/events?channel=b", "Authorization: Bearer ann:pw")
	srv.Must("PUBLISH", "b", "5")
	b.expect(`data: {"channel":"b","message":"5"}`)
	for _, w := range []*watcher{raw, channel, b} {
		w.cancel()
	}
	wait.Until(t, "no connection is left", func() bool { return sources(srv) == 0 })
}

// TestNoUnsubscribe checks that the names do not accumulate that a user without the permission
// UNSUBSCRIBE has followed.
func TestNoUnsubscribe(t *testing.T) {
	t.Parallel()
	srv, web := serving(t, map[string]string{"user": "ann on >pw resetkeys resetchannels &* -@all +subscribe"})
	stays := watch(t, web, "/events?channel=stays", "Authorization: Bearer ann:pw")
	for i := range 250 {
		w := watch(t, web, fmt.Sprintf("/events?channel=%d", i), "Authorization: Bearer ann:pw")
		srv.Must("PUBLISH", fmt.Sprint(i), "here")
		w.expect(fmt.Sprintf(`data: {"channel":"%d","message":"here"}`, i))
		w.cancel()
	}
	wait.Until(t, "most channels have no subscriber", func() bool {
		return len(srv.Must("PUBSUB", "CHANNELS").([]any)) < 210
	})
	srv.Must("PUBLISH", "stays", "1")
	stays.expect(`data: {"channel":"stays","message":"1"}`)
	stays.cancel()
	wait.Until(t, "no channel has a subscriber", func() bool {
		return len(srv.Must("PUBSUB", "CHANNELS").([]any)) == 0
	})
}
