package remote

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Address is where another server, or a cluster, is, and how to log in there.
type Address struct {
	Network        string   // tcp or unix
	Addrs          []string // of the server, or of some nodes of the cluster
	Cluster        bool
	Secure         bool // TLS
	User, Password string
	DB             int // AnyDatabase if none is named
}

// AnyDatabase is the database of an address that names none.
const AnyDatabase = -1

// ParseAddress reads an address of one of the forms
//
//	redis://[[user]:password@]host[:port][/database]
//	rediss://…                                        with TLS
//	redis://host:port,host:port,…?cluster             some nodes of a cluster
//	unix:/path/of/socket
func ParseAddress(text string) (Address, error) {
	a := Address{Network: "tcp", DB: AnyDatabase}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		a.Network, a.Addrs = "unix", []string{strings.TrimPrefix(path, "//")}
		if path == "" || path == "//" {
			return a, errors.New("unix: lacks the path of the socket")
		}
		return a, nil
	}
	scheme, rest, _ := strings.Cut(text, "://")
	switch scheme {
	case "redis":
	case "rediss":
		a.Secure = true
	default:
		return a, fmt.Errorf("unknown scheme %s://: want unix:, redis:// or rediss://", scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	switch query {
	case "":
	case "cluster":
		a.Cluster = true
	default:
		return a, fmt.Errorf("unknown option ?%s: want ?cluster", query)
	}
	rest, db, _ := strings.Cut(rest, "/")
	if db != "" {
		n, err := strconv.Atoi(db)
		if err != nil || n < 0 || a.Cluster && n > 0 {
			return a, fmt.Errorf("invalid database %q", db)
		}
		a.DB = n
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, pass, ok := strings.Cut(rest[:i], ":")
		if !ok {
			return a, errors.New("a user needs a password: want user:password@host")
		}
		var errs [2]error
		a.User, errs[0] = url.PathUnescape(user)
		a.Password, errs[1] = url.PathUnescape(pass)
		if err := errors.Join(errs[:]...); err != nil {
			return a, err
		}
		rest = rest[i+1:]
	}
	for _, addr := range strings.Split(rest, ",") {
		if addr == "" {
			return a, errors.New("a host is missing")
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), "6379")
		}
		a.Addrs = append(a.Addrs, addr)
	}
	if len(a.Addrs) > 1 && !a.Cluster {
		return a, errors.New("several hosts need ?cluster")
	}
	return a, nil
}

// String returns the address without its password.
func (a Address) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Addrs[0]
	}
	text := "redis://"
	if a.Secure {
		text = "rediss://"
	}
	text += strings.Join(a.Addrs, ",")
	if a.DB != AnyDatabase {
		text += "/" + strconv.Itoa(a.DB)
	}
	if a.Cluster {
		text += "?cluster"
	}
	return text
}
