package data_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server/servertest"
)

// TestMembersOfNewKeyExpire checks that members that the command adds that creates the key
// expire without another access to the key.
func TestMembersOfNewKeyExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := servertest.Run(t)
		srv.Must("ZADDEX", "z", "PX", 100, "MEMBERS", 1, 1, "a")
		srv.Must("HSETEX", "h", "PX", 100, "FIELDS", 1, "f", "v")
		time.Sleep(150 * time.Millisecond)
		if n := srv.Must("DBSIZE"); n != int64(0) {
			t.Errorf("%v keys are left", n)
		}
	})
}
