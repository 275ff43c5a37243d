package config

import "time"

// keyDelaySlice is the longest time in which a KeyDelay does not look at its parameter.
const keyDelaySlice = 20 * time.Millisecond

// KeyDelay waits after a number of keys, as the parameters rdb-key-save-delay and
// key-load-delay say: some microseconds for each key, or of -n one for n keys. each returns
// the parameter, and is called again and again, so that a change of it counts at once;
// false ends the wait. KeyDelay returns false then.
func KeyDelay(keys int, each func() (microseconds int64, wanted bool)) bool {
	for began := time.Now(); ; {
		n, wanted := each()
		pause := time.Duration(n) * time.Microsecond * time.Duration(keys)
		if n < 0 {
			pause = time.Microsecond * time.Duration(keys) / time.Duration(-n)
		}
		switch left := pause - time.Since(began); {
		case !wanted:
			return false
		case left <= 0:
			return true
		default:
			time.Sleep(min(left, keyDelaySlice))
		}
	}
}
