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
//	GET  /events      messages and keyspace events, as Server-Sent Events
//	GET  /rank        the rank of a member of a sorted set, likewise
//	GET  /stats       a sample of the server each second, after those of 15 minutes, likewise
//	GET  /log         the slow log, latency events, ACL LOG and the log of the server, as JSON
//	GET  /varz        INFO as JSON
//	GET  /metrics     metrics for Prometheus, with the names of redis_exporter
//	GET  /healthz     200 while the server answers, else 503; without a user
//	GET  /readyz      200 while it has its data, accepts writes, and follows its primary
//	POST /login       user and password to a session cookie; POST /logout ends it
//
// # Streams
//
// GET /events streams the messages of its parameters channel and pattern, the changes of its
// parameter key, which demand S, K and A in notify-keyspace-events, and the entries of its
// parameter stream. The parameter changes says that a key has changed, at most 50 times a
// second, and demands CLIENT TRACKING alone. All but stream may be given several times. The
// data of an event are
//
//	{"channel": …, "pattern": …, "message": …}                             of a message
//	{"channel": …, "key": …, "event": …, "members": […], "message": …}     of a change
//	{"key": …, "event": "change"}                                          of any change, in any database
//	{"stream": …, "id": …, "fields": [[name, value], …]}                   of an entry
//
// with state=1 an event named state before those of each key,
//
//	{"key": …, "type": …, "length": …, "value": …}                         of what the key has
//
// whose value is null for more than 10 000 elements or bytes; with db=N for the database of the
// key, and format=raw for the message, or the value of the first field, as it is. Entries have
// their id as the id of the event: a browser that connects again sends it as Last-Event-ID and
// receives all later entries first. The parameter last does the same for the first connection
// (0-0: all entries).
//
// GET /rank?key=K&member=M streams {"rank": …, "score": …, "card": …}: at once, and when the
// rank or the score has changed, at most rate times a second (1 by default, 20 at most), and
// at most 1200 times a second for all viewers of a set together. The rank is null while the member is not in the set; rev=1 counts from the highest score. The
// user needs CLIENT, ZCARD, ZRANGE, ZRANK and ZREVRANK. All viewers of a set cost one look
// at it for a change, at the rate of the fastest: no client polls.
//
// A stream that ends for a reason has a last event named end with {"error": …}. A comment line
// follows 25 seconds of silence. A viewer that is 4 MB behind, or takes nothing for 10 seconds, is
// disconnected. The channels, patterns and keys of all viewers with one user come on one
// connection to the server. If the user loses the permission for one of them, or the connection is
// closed, all these streams end. A stream of HTTP/1.1 takes over its connection, and costs less
// than 10 KB of memory. Each source of changes and stream has a connection of its own, of about 40
// KB, however many viewers with one user it has. The parameters http-streams-per-address and
// http-streams-per-user bound the streams; above them, and above maxclients, a request is refused.
//
// # Page
//
// The views are / (overview), /keys, /live (events) and /prompt. The files in assets are one
// template, one style sheet and ES modules without a library; all of it is under 150 KB.
//
//	app.js                 the views, the database, and the address of both
//	api.js, text.js        commands and streams; byte strings and numbers as text
//	dom.js, dialog.js      elements, lists of which only the rows in sight exist; edits
//	keys.js, key.js        the tree of keys; one key and the views of its value
//	values.js, zset.js     values in pages; leaderboard, timeline, deadlines
//	systems.js             live events, timeboxes, folder, waiting list
//	overview.js, plot.js   the state of the server; plots
//	live.js, prompt.js     messages and events; commands and their replies
//
// A byte of a key or a value reaches the page as a text node only. A change is a command that
// is shown before it runs, in a transaction on the condition that the value is as it was shown:
// the user needs WATCH, MULTI and EXEC. Bytes that a text field does not hold are there as
// escapes. What the views read is counted apart: see [server.Apart]. Live views read again what they show when /events?changes= reports a
// change, at most about ten times a second, and mark the members that /events?key= names. The
// view of a system, which names, scores and deadlines choose, follows all its keys. The timeline
// and the folder read each second, because time moves their members. A tree of up to 20 000 keys
// asks for their number each second, and reads the names again when it has changed, one of up to
// 500 in any case. The overview reads /log every five seconds. Large values are read in pages of
// about 1 MB, and the tree keeps at most 200 000 names. A page reads once more when its stream has
// begun, because a change may have come between.
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
// GET /events and GET /rank also take the parameters user and password, because an EventSource
// has no headers. An address is less secret than a header: proxies log it, and a page shows it
// to its readers. Make a user with the permission for those streams and nothing else:
//
//	ACL SETUSER viewer on >public resetkeys resetchannels &news -@all +subscribe
//	new EventSource("https://zsetd.example.org/events?channel=news&user=viewer&password=public")
//
// # Security
//
// In protected mode, without a password of the default user, only loopback addresses are
// served. A Host header must be an address, a name of the loopback or one of [Options].Hosts,
// so that a page of another site cannot reach the server under a name of its own (DNS
// rebinding). An Origin header must match it, except that the pages of
// [Options].Origins may read /events and /rank. No request with the method GET changes data,
// and only the content type application/json carries commands, which no form of another
// site can send. Failed logins are in ACL LOG. A user may fail ten times from an address, and
// then once in 6 seconds; a password that has worked from there passes meanwhile.
//
// # Cost
//
// Package server does not import this one. Without a Console nothing of it runs: commands
// execute the same instructions as without the package. A Console reads INFO and LATENCY
// HISTOGRAM each second, apart from the statistics; a sample of the 900 that it keeps has about 1 KB.
package console
