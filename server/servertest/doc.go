// Package servertest starts zsetd inside a test, as net/http/httptest starts an
// HTTP server.
//
//	func TestLeaderboard(t *testing.T) {
//		srv := servertest.Run(t)
//		client := redis.NewClient(&redis.Options{Addr: srv.Addr()})
//		...
//		srv.Advance(24 * time.Hour) // every deadline within a day has passed now
//		...
//	}
//
// Every server is empty and belongs to one test, so tests may run in parallel. It
// is closed when the test ends; then its invariants are verified, and the test
// fails if one is broken. The server's log appears in the output of a test that
// fails.
//
// # Time
//
// The clock of the server runs, and the test can move it with Advance and
// [Server.SetTime]: keys expire and blocked clients time out without delay. After
// [Server.StopClock] it stands still, and moves only so.
//
// A script runs at one instant. The time of TIME moves in it once it has run for longer
// than busy-reply-threshold, as in Redis; deadlines and stream IDs stand still.
//
// Alternatively the whole test runs in a bubble of testing/synctest, whose clock
// advances as soon as all goroutines are blocked. A network cannot be used in a
// bubble: connect with Dialer or call Do, and do not use [Server.Addr]. The clock of a
// bubble stands still while a script runs, so there the script's instructions count:
// 20 000 for a millisecond of busy-reply-threshold.
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := servertest.Run(t)
//		srv.Must("SET", "session", "x", "EX", 3600)
//		time.Sleep(2 * time.Hour)
//		if srv.Must("GET", "session") != nil { ... }
//	})
//
// # Faults
//
// [Server.Inject] makes commands of clients fail, hang, or lose their connection, for a number of
// calls. [Server.Stop] and [Server.Start] are a restart at the same address, with the data, and
// [Server.StartEmpty] is one without. [Server.TLS] is an address with a certificate.
// [RunCluster] starts several nodes, which reply MOVED. [Server.Seed] makes random
// commands repeatable, and [Server.State] is the data as text, for the message of a test.
package servertest
