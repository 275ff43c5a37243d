// Package tracking is the state of client-side caching, CLIENT TRACKING: which clients may
// have which keys in their caches. It sends nothing: the caller passes the changes of keys,
// and receives the clients whose caches they invalidate.
//
//	Table   key ─► ids of clients, ascending          clients that have read it
//	        prefix ─► clients, keys that changed      broadcast mode
//	Client  the modes and prefixes of one client
//
// A key leaves the table at the instant it changes. The id of a client that has disconnected
// or stopped tracking stays until the key changes, as in Redis: a search for its entries
// takes too long. Changes of keys that begin with a prefix are collected until the caller
// asks for the broadcasts, which are one message for each client and prefix.
//
// Nothing in the package may be called concurrently.
package tracking
