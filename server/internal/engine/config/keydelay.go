package config

import "time"

// KeyDelaySlice is the longest time in which a wait for a number of keys does not look at its
// parameter.
const KeyDelaySlice = 20 * time.Millisecond

// KeyPause returns the time that a number of keys takes by rdb-key-save-delay or
// key-load-delay: some microseconds for each key, or of -n one for n keys.
func KeyPause(keys int, parameter int64) time.Duration {
	if parameter < 0 {
		return time.Microsecond * time.Duration(keys) / time.Duration(-parameter)
	}
	return time.Duration(parameter) * time.Microsecond * time.Duration(keys)
}

// KeyDelay waits for KeyPause after a number of keys. each returns the parameter, and is called again and again, so that a change of it counts at once;
// false ends the wait. KeyDelay returns false then.
func KeyDelay(keys int, each func() (microseconds int64, wanted bool)) bool {
	for began := time.Now(); ; {
		n, wanted := each()
		switch left := KeyPause(keys, n) - time.Since(began); {
		case !wanted:
			return false
		case left <= 0:
			return true
		default:
			time.Sleep(min(left, KeyDelaySlice))
		}
	}
}
