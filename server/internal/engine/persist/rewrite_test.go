package persist

import (
	"testing"

	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// The journals are dropped when they have reached a part of the bases, unless the file is
// small.
func TestOutgrown(t *testing.T) {
	for _, c := range []struct {
		percentage, least, journal, bases int64
		want                              bool
	}{
		{100, 64, 65, 0, true},
		{100, 64, 64, 0, false}, // not above the least size
		{100, 64, 33, 32, true},
		{100, 64, 40, 41, false},
		{50, 64, 21, 42, false},
		{50, 64, 22, 43, true},
		{300, 64, 299, 100, false},
		{300, 64, 300, 100, true},
		{0, 0, 1000, 1, false}, // never
		{1, 0, 1, 100, true},
		{100, 0, 0, 0, false}, // there is none
		{1 << 31, 0, 1 << 40, 1 << 62, false},
	} {
		k := Keeper{o: Options{Settings: &config.Settings{RewritePercentage: c.percentage, RewriteMinSize: c.least}}}
		k.Stats = Figures{Journal: c.journal, Bases: c.bases}
		if k.outgrown() != c.want {
			t.Errorf("%+v", c)
		}
	}
}
