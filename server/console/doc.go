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
//	GET  /live        the replies to commands when they change, as Server-Sent Events
//	GET  /events      messages and keyspace events, likewise
//	GET  /rank        the rank of a member of a sorted set, likewise
//	GET  /stats       a sample of the server each second, after those of up to 24 hours, likewise
//	GET  /log         the slow log, latency events, ACL LOG and the log of the server, as JSON
//	GET  /parameters  what the documents say of each parameter, as JSON
//	GET  /blocked     the keys that each blocked client waits for, by its ID, as JSON
//	POST /monitor     the commands of all clients for a time, as lines of JSON
//	POST /backup      a copy of all data, as a file
//	GET  /varz        INFO as JSON
//	GET  /metrics     metrics for Prometheus, with the names of redis_exporter; see Metrics
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
// GET /live?q=ZRANK+club+ann&q=ZRANGE+board+0+9 streams the replies to up to 100 commands, in one
// connection of the browser: the present replies, and each one that differs from the one before.
// The data of an event are one of
//
//	{"query": 0, "result": …}    a reply, as that of POST /command
//	{"query": 0, "error": …}     an error of the command, such as WRONGTYPE
//
// with the number of the query in the request. The commands are those that a live query may have:
// they read keys, and their reply depends on the data and the time alone; @now in a bound moves
// it. db=N is the database, and interval=250ms the shortest time between two replies to a query,
// 100 ms by default; 0s sends each change. The last reply always arrives. A viewer that is slow
// receives the newest replies. The user needs SUBSCRIBE, the commands, the keys, and
// the channels __query@*. A request with a command that is refused has no stream.
//
// GET /rank?key=K&member=M is a short form for ZRANK with the score, or ZREVRANK with rev=1, and
// ZCARD. It streams {"rank": …, "score": …, "card": …}: at once, and when one of them has
// changed, at most rate times a second (1 by default, 20 at most). The rank and the score are null
// while the member is not in the set.
//
// GET /stats streams the events history, an array of samples, and sample, one each second. With
// range=1h, 6h or 24h the history has 360 samples of that time; otherwise it has those of the last 15
// minutes. The events sample1h, sample6h and sample24h follow each 10 seconds, minute and 4 minutes. Rates are the means of a sample's time, and percentiles those of its commands.
//
// POST /monitor streams the lines of MONITOR for as many seconds as the parameter seconds says, 10
// by default and 60 at most, and for count lines, 1000 by default and 10 000 at most.
//
// A stream that ends for a reason has a last event named end with {"error": …, "reason": …}, where
// the reason is one of
//
//	expired       the signed link has expired
//	permission    the user has lost the permission for the stream, or has been removed
//	closed        the server has closed the connection that the stream shared with others
//	shutdown      the server or the console stops
//	slow          the viewer is 4 MB behind
//	error         another one, which the text says
//
// A comment line follows 25 seconds of silence. A viewer that takes nothing for 10 seconds is
// disconnected. The queries, channels, patterns and keys of all viewers with one user come on one
// connection to the server, equal ones once. If the user loses the permission for one of them, or
// the connection is closed, all these streams end; those that are still permitted begin again
// when the browser connects again. A stream of HTTP/1.1 takes over its connection, and costs less
// than 10 KB of memory; the newest replies of all queries have 256 MB at most. Each source of
// changes and stream has a connection of its own, of about 40 KB, however many viewers with one
// user it has. The parameters http-streams-per-address and http-streams-per-user bound the
// streams; above them, and above maxclients, a request is refused.
//
// # Metrics
//
// GET /metrics has a row of chosen keys with the parameters of redis_exporter: check-keys and
// check-single-keys for their size, memory and number, check-streams and check-single-streams for
// streams, their groups and consumers. They are keys or patterns, separated by commas; db3=key is
// one of database 3, and single means no pattern. The user needs SCAN and the permissions to read the
// keys. A request has 100 keys and 100 streams at most, with 100 groups of 100 consumers each, and
// its patterns look at 100 000 keys in all.
//
// In the folder prometheus are a dashboard for Grafana, and rules of alerts with their tests.
//
// # Signed links
//
// With the parameter http-link-secret, /live?q=…&exp=…&sig=… is served without a login for exactly
// these queries, database and interval, until exp, in seconds since 1970. It has the permissions
// of the user http-link-user, whatever else the request says. [Link] makes one and says what it
// signs; so does the program "zsetd link". A link that has expired, or whose signature is
// wrong, is refused with the status 403, and its open stream ends with the reason expired. A
// secret that is removed refuses its links from then on; open streams go on until they expire.
//
// # Page
//
// The views are / (overview), /keys, /messages (events), /server and /prompt. The files in assets are one
// template, one style sheet and ES modules without a library; all of it is under 250 KB.
//
//	app.js                 the views, the database, and the address of both
//	api.js, text.js        commands, streams and live queries; byte strings and numbers as text
//	dom.js, dialog.js      elements, lists of which only the rows in sight exist; edits
//	keys.js, key.js        the tree of keys; one key and the views of its value
//	bulk.js, memory.js     many keys at once; a map of memory and deadlines
//	values.js, zset.js     values in pages; leaderboard, timeline, deadlines
//	groups.js              streams: consumer groups, pending entries, entries
//	systems.js             live events, timeboxes, folder, waiting list
//	formats.js             JSON, gzip, MessagePack, base64 and times as text
//	transfer.js            values as files, and new keys of lines, JSON or such a file
//	overview.js, plot.js   the state of the server; plots
//	messages.js            messages, events, and the commands of clients
//	server.js              the parts of the view of the server, which follow
//	clients.js, users.js   clients and what they wait for; users and what they may do
//	parameters.js          parameters, their texts, and which differ from the default
//	functions.js           libraries and their source; a form that runs functions and scripts
//	hotkeys.js, backup.js  hot keys; the data file and a copy of it
//	prompt.js              commands and their replies
//	palette.js             one field that goes to views, keys and the prompt; the keyboard
//
// The parameters http-title and http-colour tell the pages of several servers apart. While the
// server is away, the page keeps what it shows, says so, and asks /healthz each second.
//
// A byte of a key or a value reaches the page as a text node only. A change is a command that is
// shown before it runs, in a transaction on the condition that the value is as it was shown: the
// user needs WATCH, MULTI and EXEC. Bytes that a text field does not hold are there as escapes.
// What the views read is counted apart: see [server.Apart]. A view shows the replies to its
// commands, which one stream of /live brings; a command that names the members in another reply
// is one of its queries. The view of a system, which names, scores and deadlines choose, follows
// all its keys. Time moves members of the timeline and groups of the folder, because the bounds
// of their queries move; the page draws them again each second. Where the server refuses the
// stream, where a view has more than 100 queries or a reply of more than 1 MB, and where a cursor
// chooses what is read, as in a set or a hash of more than a page, a view reads again when
// /events?changes= reports a change, at most about ten times a second. A tree of up to 20 000 keys
// asks for their number each second, and reads the names again when it has changed, one of up to 500 in any case. The
// overview reads /log every five seconds. Large values are read in pages of about 1 MB, and the
// tree keeps at most 200 000 names. A page that reads does so once more when its stream has
// begun, because a change may have come between.
//
// Many keys are deleted or expire by their names, which are counted first: at most 100 000 in one
// run, in batches of 500, between which it can be stopped. A batch has no condition: a key that
// another client makes again after the count has the same name. The map of memory and deadlines
// reads about 20 000 keys at most, and scales what they have. The page copies and saves values of up
// to 16 MB of memory, in the form of a line of "zsetd export" (a stream as [[id, [[field, value], …]],
// …]), and decodes up to 700 KB. No live query has the consumers and the pending entries of a group,
// because their idle times change by themselves: they are read again when the group changes, and
// every five seconds. A claim demands the idle time that the page shows, so that the claim of another
// client is not undone; XACK knows no such condition.
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
// GET /events, /live and /rank also take the parameters user and password, because an EventSource
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
// [Options].Origins may read /events, /live and /rank. No request with the method GET changes data,
// and only the content type application/json carries commands, which no form of another
// site can send; /backup and /monitor are POST, so that no link of another site starts them. A
// backup has the data of all databases, whatever the keys of its user: it needs the permission
// for BGSAVE, because the server saves first, and for PSYNC, as a replica that copies all data
// does. One is sent at a time, from a temporary file of its size. GET /blocked needs CLIENT LIST
// and, because it names keys, MONITOR, which POST /monitor needs, too. Failed logins are in ACL LOG. A user may fail ten times from an address, and
// then once in 6 seconds; a password that has worked from there passes meanwhile.
//
// # Cost
//
// Package server does not import this one. Without a Console nothing of it runs: commands
// execute the same instructions as without the package. A Console reads INFO and LATENCY
// HISTOGRAM each second, apart from the statistics. It keeps 900 samples of a second and 1080 coarser
// ones, each of about 1 KB: 2 MB after a day.
package console
