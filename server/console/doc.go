// Package console serves a server over HTTP: a web page, commands for scripts, metrics,
// health, and streams of events for browsers. It is an [http.Handler] that a program mounts,
// and the program zsetd serves it at the parameter http-port.
//
//	c, err := console.New(srv, console.Options{})
//	...
//	defer c.Close()
//	http.ListenAndServe("127.0.0.1:6380", c)
//
// # Routes
//
//	GET  /            the page
//	POST /command     one command, or a pipeline, as JSON; see [Console]
//	POST /login       user and password to a session cookie; POST /logout ends it
//
// # Users
//
// A request acts as a client of the Redis protocol does. Its commands run on a connection in
// memory that is authenticated as the request's user, so the ACL, limits, transactions and
// statistics are those of such a client. A program sends the user and the password as
// "Authorization: Basic", or as "Authorization: Bearer user:password" (without a colon: the
// password of the default user). A browser has a session cookie. Without any of these the
// request acts as the default user, if that needs no password.
//
// # Security
//
// In protected mode, without a password of the default user, only loopback addresses are
// served. A Host header must be an address, a name of the loopback or one of [Options].Hosts,
// so that a page of another site cannot reach the server under a name of its own (DNS
// rebinding). An Origin header must match it. No request with the method GET changes data,
// and only the content type application/json carries commands, which no form of another
// site can send. Failed logins are limited per address and are in ACL LOG.
//
// # Cost
//
// Package server does not import this one. Without a Console nothing of it runs: commands
// execute the same instructions as without the package.
package console
