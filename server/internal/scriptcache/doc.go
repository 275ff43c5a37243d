// Package scriptcache is the cache of compiled scripts, by their SHA-1.
//
// Scripts that SCRIPT LOAD has added stay until the cache is cleared. Of those that only
// EVAL has added, the cache keeps the [MaxEvals] that were used last, as Redis does since
// 7.4: programs that put values into the text of scripts would fill the memory.
//
// A Cache has no lock; the server's lock protects it.
package scriptcache
