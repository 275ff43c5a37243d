package console

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zsetd/zsetd/server"
)

// Options configure a Console. The zero value serves loopback names and addresses only.
type Options struct {
	// Hosts are further names that a Host header may have, without a port. "*" allows
	// every name.
	Hosts []string

	// Origins are the sites whose pages may read GET /events, /live and /rank, as in
	// "https://example.org". Their requests have no session: they act as the default user, or
	// as the one that they name by the header Authorization or the parameters user and password.
	Origins []string

	// Secure marks session cookies for HTTPS only. It is implied by a request that
	// arrives over TLS; set it behind a proxy that ends TLS.
	Secure bool

	// Log, if not nil, is what GET /log shows of the server's log.
	Log *Log

	// Logger receives log records for the operator. The default discards them.
	Logger *slog.Logger
}

// Console is an [http.Handler] that serves one server. All methods are safe for concurrent
// use.
//
// POST /command executes one command, which the body has as a JSON array of strings and
// numbers. A string that is no UTF-8 is {"base64": "…"}. The response is {"result": …}, or
// {"error": "ERR …"} with status 400. Strings in results that are no UTF-8 have the form
// {"base64": "…"}, too. A body that is an array of such arrays is a pipeline, and its
// response an array of such objects. A body that is an object is a transaction on a condition:
//
//	{"watch": ["stock"], "if": [[["GET", "stock"], "5"]], "then": [["SET", "stock", "4"]]}
//
// runs the commands of then, which have their replies as a pipeline has, if each command of if
// has the reply that follows it: a string, a number as the server writes it, {"base64": …}, null,
// or an array of such values. No other client changes the keys of watch between these commands
// and those of then. If a reply differs, nothing is changed, and the response, with status 409,
// is {"error": …, "condition": index, "now": reply}. The user needs WATCH, MULTI and EXEC.
//
// Parameters of the query:
//
//	db     number of the database, 0 by default
//	types  1: a result is {"type": …, "value": …} with the type of RESP3 (simple, bulk,
//	       verbatim, integer, double, bignumber, boolean, null, array, set, map, push,
//	       error); a string that is no UTF-8 has "base64": true; a map is an array of
//	       pairs
//	view   1: commands that read are left out of the statistics; see [server.Apart]
//
// A command that blocks ends with its request. Commands that take over a connection, or
// authenticate it, are refused.
type Console struct {
	srv    *server.Server
	o      Options
	log    *slog.Logger
	hosts  map[string]bool
	mux    *http.ServeMux
	origin *http.CrossOriginProtection

	refused map[string]string // refusedCommands

	history  history
	backups  sync.Mutex // of the backup that is sent
	sessions sessions
	logins   limiter

	connections atomic.Int64 // of Serve
	maxClients  atomic.Int64 // the parameter maxclients when it was read last

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // requests and goroutines of the console

	mu      sync.Mutex
	closed  bool
	servers map[*http.Server]struct{}
	feeds   map[feedKey]*feed
	hubs    map[string]*hub // by user
	served  map[*stream]struct{}
	streams int            // with those that are about to open
	counts  map[string]int // streams by address and by user
	limits  streamLimits   // as read last

	replies atomic.Int64 // bytes of the newest replies of all queries
}

// errClosed is the error of a request after Close.
var errClosed = errors.New("the console is closed")

// defaultMaxClients bounds the connections until the parameter is read.
const defaultMaxClients = 100

// New returns a console of srv. The caller must call Close, before or after that of srv.
func New(srv *server.Server, o Options) (*Console, error) {
	c := &Console{srv: srv, o: o, log: o.Logger, hosts: map[string]bool{}, mux: http.NewServeMux(),
		origin: http.NewCrossOriginProtection(), servers: map[*http.Server]struct{}{}, feeds: map[feedKey]*feed{}, hubs: map[string]*hub{},
		served: map[*stream]struct{}{}, counts: map[string]int{}, limits: streamLimits{clients: defaultMaxClients}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	for _, host := range o.Hosts {
		if host != "*" && (host == "" || strings.ContainsAny(host, ":/ \t")) {
			return nil, errors.New("console: " + host + " is not the name of a host: write it without scheme and port")
		}
		c.hosts[strings.ToLower(host)] = true
	}
	for _, origin := range o.Origins {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || origin != u.Scheme+"://"+u.Host {
			return nil, errors.New("console: " + quoted(origin) + " is no origin: write https://example.org")
		}
	}
	c.refused = refusedCommands(srv)
	c.maxClients.Store(defaultMaxClients)
	c.ctx, c.cancel = context.WithCancel(server.Apart(context.Background()))
	c.mux.HandleFunc("POST /command", c.command)
	c.mux.HandleFunc("GET /events", c.events)
	c.mux.HandleFunc("GET /live", c.live)
	c.mux.HandleFunc("GET /rank", c.rank)
	c.mux.HandleFunc("GET /stats", c.stats)
	c.mux.HandleFunc("GET /log", c.logs)
	c.mux.HandleFunc("GET /parameters", c.parameters)
	c.mux.HandleFunc("GET /blocked", c.blocked)
	c.mux.HandleFunc("POST /backup", c.backup)
	c.mux.HandleFunc("POST /monitor", c.monitor)
	c.mux.HandleFunc("GET /varz", c.varz)
	c.mux.HandleFunc("GET /metrics", c.metrics)
	c.mux.HandleFunc("GET /healthz", c.healthz)
	c.mux.HandleFunc("GET /readyz", c.readyz)
	c.mux.HandleFunc("GET /login", c.loginForm)
	c.mux.HandleFunc("POST /login", c.login)
	c.mux.HandleFunc("POST /logout", c.logout)
	c.pages(c.mux)
	for _, one := range spans() {
		c.history.series = append(c.history.series, &series{span: one})
	}
	c.history.feed = newFeed(feedKey{}, nil)
	c.history.feed.interested = 1 // it never ends
	c.work.Go(c.sampling)
	return c, nil
}

// endTime is the time that streams have to write their last event when the console is closed.
const endTime = 500 * time.Millisecond

// Close ends all requests, and returns when they have ended. It always returns nil and may be
// called several times.
func (c *Console) Close() error {
	c.mu.Lock()
	c.closed = true
	streams := slices.Collect(maps.Keys(c.served))
	c.mu.Unlock()
	late := time.After(endTime)
	for _, s := range streams {
		s.end(errShutdown)
	}
	for _, s := range streams {
		select {
		case <-s.done:
		case <-late:
			late = nil
		}
		if late == nil {
			break
		}
	}
	c.mu.Lock()
	for s := range c.servers {
		s.Close()
	}
	c.mu.Unlock()
	c.cancel()
	for _, s := range streams {
		s.stop()
	}
	c.work.Wait()
	return nil
}

// begin registers a request. It returns false after Close.
func (c *Console) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Add(1)
	return true
}

// contentPolicy lets a page load nothing from elsewhere and no inline script, so that text of
// keys and values that reached the markup could do nothing.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements [http.Handler].
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer, browsers send "Origin: null" with the login form.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	// The deadline of an earlier request of the connection may have passed. Not every
	// ResponseWriter has deadlines.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	if !c.begin() {
		fail(w, http.StatusServiceUnavailable, errClosed.Error())
		return
	}
	defer c.work.Done()
	defer c.logPanic()
	parent := r.Context()
	if r.URL.Path != "/command" || r.URL.Query().Get("view") == "1" {
		parent = server.Apart(parent)
	}
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	r = r.WithContext(ctx)
	if status, reason := c.admit(r); status != 0 {
		fail(w, status, reason)
		return
	}
	if origin := r.Header.Get("Origin"); c.shares(r, origin) {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Vary", "Origin")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		if r.Method == http.MethodOptions { // a request with the header Authorization is about to come
			h.Set("Access-Control-Allow-Methods", http.MethodGet)
			h.Set("Access-Control-Allow-Headers", "Authorization, Cache-Control, Last-Event-ID")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	c.mux.ServeHTTP(w, r)
}

// logPanic logs a panic of a handler, which ends the request. http.ErrAbortHandler is no bug.
func (c *Console) logPanic() {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		panic(p)
	default:
		c.log.Error("panic in the console", "error", p, "stack", string(debug.Stack()))
		panic(http.ErrAbortHandler)
	}
}

// isStream reports whether a request is one for which Options.Origins and users in the address
// are, or asks for the permission of such a request, as a browser does.
func isStream(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodOptions) && slices.Contains([]string{"/events", "/live", "/rank"}, r.URL.Path)
}

// shares reports whether the response to a request is for pages of another origin, too.
func (c *Console) shares(r *http.Request, origin string) bool {
	return isStream(r) && slices.Contains(c.o.Origins, origin)
}

// admit checks a request before its user: its Host, its origin and its address. It returns
// the status and the reason of a refusal, or 0.
func (c *Console) admit(r *http.Request) (status int, reason string) {
	if !c.allowsHost(r.Host) {
		return http.StatusMisdirectedRequest, "the host " + quoted(r.Host) + " is not served: add its name to http-hosts"
	}
	if origin := r.Header.Get("Origin"); origin != "" && !sameOrigin(origin, r.Host) && !c.shares(r, origin) {
		return http.StatusForbidden, "the origin " + quoted(origin) + " is another site"
	}
	// A page of another site may link to the console, and nothing else.
	foreign := r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate" && !c.shares(r, r.Header.Get("Origin"))
	if foreign || c.origin.Check(r) != nil {
		return http.StatusForbidden, "the request comes from another site"
	}
	if !isLoopback(r.RemoteAddr) && c.protected(r.Context()) {
		return http.StatusForbidden, "protected-mode is on and the default user has no password: only the loopback is served. " +
			"Set requirepass, or protected-mode no"
	}
	return 0, ""
}

// allowsHost reports whether a Host header names this server: by an address, which no other
// site can make a browser send, by a name of the loopback, or by a configured name.
func (c *Console) allowsHost(hostport string) bool {
	host := hostname(hostport)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil || c.hosts[host] || c.hosts["*"]
}

// hostname returns the lower-case name or address in a Host header.
func hostname(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// sameOrigin reports whether an Origin header has the host and the port of a Host header. The
// scheme does not count: a proxy may end TLS.
func sameOrigin(origin, host string) bool {
	_, rest, ok := strings.Cut(origin, "://")
	return ok && strings.EqualFold(rest, host)
}

// isLoopback reports whether a client is on this machine. The address of a unix socket is.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr == "" || addr[0] == '@' || addr[0] == '/'
	}
	host, _, _ = strings.Cut(host, "%")
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
