package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Options is where a server is, and how to log in there. Flags sets the defaults.
type Options struct {
	Host, Port     string
	Socket         string // path of a unix socket, instead of Host and Port
	User, Password string
	DB             int
	RESP2, RESP3   bool // asks for this version of the protocol
	Secure         bool // TLS

	CACert, CACertDir, Cert, Key, ServerName string // files and name of TLS
	Insecure                                 bool   // the server's certificate is not verified
}

// passwordVariable is the environment variable with the password, as in redis-cli.
const passwordVariable = "REDISCLI_AUTH"

// Flags declares the flags of o, with the names that redis-cli has for them.
func (o *Options) Flags(f *flag.FlagSet) {
	o.Password = os.Getenv(passwordVariable)
	f.StringVar(&o.Host, "h", "127.0.0.1", "the `host` of the server")
	f.StringVar(&o.Port, "p", "6379", "its `port`")
	f.StringVar(&o.Socket, "s", "", "its unix `socket`, instead of host and port")
	password := func(s string) error { o.Password = s; return nil }
	f.Func("a", "the `password`; the variable REDISCLI_AUTH keeps it out of the list of processes", password)
	f.Func("pass", "the same as -a `password`", password)
	f.StringVar(&o.User, "user", "", "the `name` of the user; needs a password")
	f.IntVar(&o.DB, "n", 0, "the `number` of the database")
	f.Func("u", "the `address` as redis://[user:password@]host[:port][/database], or rediss://... with TLS", o.setURI)
	f.BoolVar(&o.Secure, "tls", false, "connect with TLS")
	f.StringVar(&o.CACert, "cacert", "", "the `file` of the authorities that sign the server's certificate")
	f.StringVar(&o.CACertDir, "cacertdir", "", "a `directory` of such files")
	f.StringVar(&o.Cert, "cert", "", "the `file` of the client's certificate")
	f.StringVar(&o.Key, "key", "", "the `file` of its key")
	f.StringVar(&o.ServerName, "sni", "", "the `name` in the server's certificate, if it is not the host")
	f.BoolVar(&o.Insecure, "insecure", false, "do not verify the server's certificate")
}

// setURI takes host, port, user, password, database and TLS from an address.
func (o *Options) setURI(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("invalid address") // the error of url.Parse shows the password
	}
	switch u.Scheme {
	case "redis":
	case "rediss":
		o.Secure = true
	default:
		return fmt.Errorf("unknown scheme %s://: want redis:// or rediss://", u.Scheme)
	}
	if host := u.Hostname(); host != "" {
		o.Host = host
	}
	if port := u.Port(); port != "" {
		o.Port = port
	}
	if u.User != nil {
		if password, ok := u.User.Password(); ok {
			o.User, o.Password = u.User.Username(), password
		} else {
			o.Password = u.User.Username()
		}
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if o.DB, err = strconv.Atoi(db); err != nil {
			return fmt.Errorf("invalid database %q", db)
		}
	}
	return nil
}

// Address returns the address without user and password: host and port, or the path of
// the socket.
func (o *Options) Address() string {
	if o.Socket != "" {
		return o.Socket
	}
	return net.JoinHostPort(o.Host, o.Port)
}

// tlsConfig reads the files of TLS.
func (o *Options) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{ServerName: o.ServerName, InsecureSkipVerify: o.Insecure}
	if config.ServerName == "" {
		config.ServerName = o.Host
	}
	files := []string{}
	if o.CACert != "" {
		files = append(files, o.CACert)
	}
	if o.CACertDir != "" {
		entries, err := os.ReadDir(o.CACertDir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.IsDir() {
				files = append(files, filepath.Join(o.CACertDir, e.Name()))
			}
		}
	}
	if len(files) > 0 {
		config.RootCAs = x509.NewCertPool()
	}
	found := false
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found = config.RootCAs.AppendCertsFromPEM(b) || found
	}
	if len(files) > 0 && !found {
		return nil, fmt.Errorf("%s: no certificate found", strings.Join(files, ", "))
	}
	if (o.Cert == "") != (o.Key == "") {
		return nil, errors.New("--cert and --key need each other")
	}
	if o.Cert != "" {
		own, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}
