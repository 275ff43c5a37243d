package console

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server"
)

// identity is the user of a request.
type identity struct {
	name, password string
	given          bool   // otherwise the default user without a password
	linked         bool   // by a signed link, which needs no password
	session        string // id of the session that it is from, if any
}

// Errors of authentication.
var (
	errNoAuth   = errors.New("NOAUTH Authentication required: log in, or send the header Authorization")
	errHeader   = errors.New("ERR the header Authorization is not understood: send Basic, or Bearer user:password")
	errLimited  = errors.New("ERR too many failed logins of this user from this address: wait a minute")
	errWrong    = errors.New("WRONGPASS invalid username-password pair or user is disabled")
	errCapacity = errors.New("ERR max number of clients reached")
)

// identify returns the user that a request names, without checking the password.
func (c *Console) identify(r *http.Request) (identity, error) {
	scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case !ok && scheme == "":
	case strings.EqualFold(scheme, "Basic"):
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
		name, password, ok := strings.Cut(string(b), ":")
		if err != nil || !ok {
			return identity{}, errHeader
		}
		return newIdentity(name, password), nil
	case strings.EqualFold(scheme, "Bearer") && rest != "":
		name, password, ok := strings.Cut(strings.TrimSpace(rest), ":")
		if !ok {
			name, password = "", name
		}
		return newIdentity(name, password), nil
	default:
		return identity{}, errHeader
	}
	if q := r.URL.Query(); isStream(r) && (q.Has("user") || q.Has("password")) {
		return newIdentity(q.Get("user"), q.Get("password")), nil
	}
	if cookie, err := r.Cookie(cookieName(r)); err == nil && !c.shares(r, r.Header.Get("Origin")) {
		if who, ok := c.sessions.find(cookie.Value, time.Now()); ok {
			return who, nil
		}
	}
	return identity{name: defaultUser}, nil
}

// defaultUser is the user of a connection that is not authenticated.
const defaultUser = "default"

func newIdentity(name, password string) identity {
	if name == "" {
		name = defaultUser
	}
	return identity{name: name, password: password, given: true}
}

// open returns a connection in memory that is authenticated as the request's user. It ends
// with the request.
func (c *Console) open(r *http.Request) (*conn, identity, error) {
	who, err := c.identify(r)
	if err != nil {
		return nil, who, err
	}
	nc, err := c.openAs(r.Context(), who, r.RemoteAddr)
	return nc, who, err
}

// openAs returns a connection in memory of a user, within the limit of failed logins of the
// client at addr. It ends with ctx.
func (c *Console) openAs(ctx context.Context, who identity, addr string) (*conn, error) {
	address, now := networkOf(addr), time.Now()
	isLogin := who.given && who.session == ""
	if isLogin && !c.logins.allows(address, who, now) {
		return nil, errLimited
	}
	nc, err := c.connect(ctx, who, "http:"+clientName(addr))
	switch {
	case err == errWrong:
		c.logins.failed(address, who, now)
		c.sessions.end(who.session)
	case err == nil && isLogin:
		c.logins.succeeded(address, who)
	}
	return nc, err
}

// connect returns a connection in memory of a user, with a name for CLIENT LIST.
func (c *Console) connect(ctx context.Context, who identity, name string) (*conn, error) {
	size := replyBuffer
	if name == feedName {
		size = feedBuffer
	}
	if who.linked {
		ctx = server.As(ctx, who.name)
	}
	nc, err := c.dial(ctx, size)
	if err != nil {
		return nil, err
	}
	hello := []string{"HELLO", "3"}
	if who.given {
		hello = append(hello, "AUTH", who.name, who.password)
	}
	reply, err := nc.do(hello...)
	refused, isReply := reply.(protocol.ReplyError)
	switch {
	case err != nil:
	case !isReply:
		_, err = nc.do("CLIENT", "SETNAME", name) // a user without the permission has no name
	case strings.HasPrefix(string(refused), "WRONGPASS"):
		err = errWrong
	case strings.HasPrefix(string(refused), "NOAUTH"):
		err = errNoAuth
	case strings.Contains(string(refused), "max number of clients"):
		err = errCapacity
	default:
		err = errors.New(string(refused))
	}
	if err != nil {
		nc.close()
		return nil, err
	}
	return nc, nil
}

// clientName returns an address without the bytes that a name of a client may not have.
func clientName(addr string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, addr)
}

// currentUser returns the name of the request's user if its login is valid.
func (c *Console) currentUser(r *http.Request) (string, error) {
	nc, who, err := c.open(r)
	if err != nil {
		return "", err
	}
	nc.close()
	return who.name, nil
}

// refuse responds to a request whose connection could not be opened.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusServiceUnavailable
	switch err {
	case errNoAuth, errWrong, errHeader:
		status = http.StatusUnauthorized
		// A browser would show a dialog of its own, and keep what was typed there.
		if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="zsetd", charset="UTF-8"`)
		}
	case errLimited:
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "60")
	}
	switch err.(type) {
	case limitError:
		status = http.StatusTooManyRequests
	case linkError:
		status = http.StatusForbidden
	}
	fail(w, status, err.Error())
}

// protected reports whether only the loopback is served: the default user has no password
// and protected-mode is on. When the server does not answer, it is.
func (c *Console) protected(ctx context.Context) bool {
	mode, err := c.parameter(ctx, "protected-mode")
	if err != nil {
		return true
	}
	if mode == "no" {
		return false
	}
	reply, err := c.ask(ctx, "ACL", "GETUSER", defaultUser)
	fields, ok := reply.(protocol.Map)
	if err != nil || !ok {
		return true
	}
	for _, f := range fields {
		if f.Key == "flags" {
			return strings.Contains(fmt.Sprint(f.Value), "nopass")
		}
	}
	return true
}

// parameter returns a parameter of the server.
func (c *Console) parameter(ctx context.Context, name string) (string, error) {
	reply, err := c.ask(ctx, "CONFIG", "GET", name)
	if err != nil {
		return "", err
	}
	if m, ok := reply.(protocol.Map); ok && len(m) == 1 {
		value, _ := m[0].Value.(string)
		return value, nil
	}
	return "", errors.New("no parameter " + name)
}

// loginForm shows the form.
func (c *Console) loginForm(w http.ResponseWriter, r *http.Request) {
	c.refuseLogin(w, r, http.StatusOK, "")
}

// maxForm bounds the body of a login in bytes.
const maxForm = 16 << 10

// login checks the user and the password of a form and begins a session.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, newBody(w, r), maxForm)
	if err := r.ParseForm(); err != nil {
		c.refuseLogin(w, r, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	who := newIdentity(r.PostForm.Get("user"), r.PostForm.Get("password"))
	nc, err := c.openAs(r.Context(), who, r.RemoteAddr)
	switch {
	case err == errLimited:
		w.Header().Set("Retry-After", "60")
		c.refuseLogin(w, r, http.StatusTooManyRequests, "Too many failed logins of this user from this address. Wait a minute.")
		return
	case err == errWrong:
		c.refuseLogin(w, r, http.StatusUnauthorized, "The user or the password is wrong.")
		return
	case err != nil:
		c.refuseLogin(w, r, http.StatusServiceUnavailable, err.Error())
		return
	}
	nc.close()
	if old, err := r.Cookie(cookieName(r)); err == nil {
		c.sessions.end(old.Value)
	}
	http.SetCookie(w, c.cookie(r, c.sessions.begin(who, time.Now()), 0))
	redirect(w, "./")
}

// logout ends the session.
func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		c.sessions.end(cookie.Value)
	}
	http.SetCookie(w, c.cookie(r, "", -1))
	redirect(w, "login")
}

// cookieName returns the name of the session cookie. Browsers do not distinguish the ports of
// a host, so the name does.
func cookieName(r *http.Request) string {
	name := "zsetd-session"
	if i := strings.LastIndexByte(r.Host, ':'); i >= 0 && !strings.HasSuffix(r.Host, "]") {
		name += "-" + clientName(strings.Trim(r.Host[i+1:], `";,=`))
	}
	return name
}

func (c *Console) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: cookieName(r), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true,
		Secure: c.o.Secure || r.TLS != nil, SameSite: http.SameSiteStrictMode}
}

// newID returns 128 random bits as text.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}
