package migrate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// An Endpoint is one side of a move: a server, a cluster, or a file.
type Endpoint struct {
	path    string   // of a file; then the other fields are empty
	network string   // tcp or unix
	addrs   []string // of the server, or of some nodes of the cluster
	cluster bool
	secure  bool // TLS
	user    string
	pass    string
	db      int // the only database to move; anyDatabase for all
}

// anyDatabase is the database of an endpoint that names none.
const anyDatabase = -1

// ParseEndpoint reads an endpoint:
//
//	redis://[[user]:password@]host[:port][/database]
//	rediss://…                                        with TLS
//	redis://host:port,host:port,…?cluster             some nodes of a cluster
//	unix:/path/of/socket
//	any other text                                    the path of a file
func ParseEndpoint(text string) (Endpoint, error) {
	e := Endpoint{network: "tcp", db: anyDatabase}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		e.network, e.addrs = "unix", []string{strings.TrimPrefix(path, "//")}
		if path == "" || path == "//" {
			return e, errors.New("unix: lacks the path of the socket")
		}
		return e, nil
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		if text == "" {
			return e, errors.New("an empty path")
		}
		return Endpoint{path: text, db: anyDatabase}, nil
	}
	switch scheme {
	case "redis":
	case "rediss":
		e.secure = true
	default:
		return e, fmt.Errorf("unknown scheme %s://: want redis://, rediss://, unix: or a path", scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	switch query {
	case "":
	case "cluster":
		e.cluster = true
	default:
		return e, fmt.Errorf("unknown option ?%s: want ?cluster", query)
	}
	rest, db, _ := strings.Cut(rest, "/")
	if db != "" {
		n, err := strconv.Atoi(db)
		if err != nil || n < 0 || e.cluster && n > 0 {
			return e, fmt.Errorf("invalid database %q", db)
		}
		e.db = n
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, pass, ok := strings.Cut(rest[:i], ":")
		if !ok {
			return e, errors.New("a user needs a password: want user:password@host")
		}
		var errs [2]error
		e.user, errs[0] = url.PathUnescape(user)
		e.pass, errs[1] = url.PathUnescape(pass)
		if err := errors.Join(errs[:]...); err != nil {
			return e, err
		}
		rest = rest[i+1:]
	}
	for _, addr := range strings.Split(rest, ",") {
		if addr == "" {
			return e, errors.New("a host is missing")
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), "6379")
		}
		e.addrs = append(e.addrs, addr)
	}
	if len(e.addrs) > 1 && !e.cluster {
		return e, errors.New("several hosts need ?cluster")
	}
	return e, nil
}

// String returns the endpoint without its password.
func (e Endpoint) String() string {
	switch {
	case e.path != "":
		return e.path
	case e.network == "unix":
		return "unix:" + e.addrs[0]
	}
	text := "redis://"
	if e.secure {
		text = "rediss://"
	}
	text += strings.Join(e.addrs, ",")
	if e.db != anyDatabase {
		text += "/" + strconv.Itoa(e.db)
	}
	if e.cluster {
		text += "?cluster"
	}
	return text
}

// IsFile reports whether the endpoint is a file.
func (e Endpoint) IsFile() bool { return e.path != "" }

func (e Endpoint) tls() *tls.Config {
	if !e.secure {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}

// replyTimeout is how long a server may take to reply. A large value takes a while.
const replyTimeout = 30 * time.Second

// client returns a client of one server, at an address of the endpoint.
func (e Endpoint) client(addr string, db int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Network: e.network, Addr: addr, Username: e.user, Password: e.pass, DB: db, TLSConfig: e.tls(),
		Protocol: 2, ReadTimeout: replyTimeout, WriteTimeout: replyTimeout, DisableIdentity: true,
	})
}

// clusterClient returns a client of the cluster.
func (e Endpoint) clusterClient() *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: e.addrs, Username: e.user, Password: e.pass, TLSConfig: e.tls(),
		Protocol: 2, ReadTimeout: replyTimeout, WriteTimeout: replyTimeout, DisableIdentity: true,
		MaxRedirects: 8,
	})
}
