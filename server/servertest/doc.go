// Package servertest starts zsetd inside a test, as net/http/httptest starts
// an HTTP server.
//
//	func TestLeaderboard(t *testing.T) {
//		srv := servertest.Run(t)
//		client := redis.NewClient(&redis.Options{Addr: srv.Addr()})
//		...
//		srv.Advance(24 * time.Hour) // what expires within a day has expired now
//		...
//	}
//
// Every server is empty and belongs to one test, so tests may run in parallel.
// It is closed when the test ends; then its invariants are verified, and the
// test fails if one is broken. What the server logs appears in the output of a
// test that fails.
//
// # Time
//
// The clock of the server runs, and the test can move it with Advance and
// [Server.SetTime]: keys expire, blocked clients time out, and nobody waits.
//
// Or the whole test lives in a bubble of testing/synctest, where time passes in
// no time whenever everybody waits. A network has no place in a bubble: connect
// with Dialer or call Do, and leave [Server.Addr] alone.
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := servertest.Run(t)
//		srv.Must("SET", "session", "x", "EX", 3600)
//		time.Sleep(2 * time.Hour)
//		if srv.Must("GET", "session") != nil { ... }
//	})
package servertest
