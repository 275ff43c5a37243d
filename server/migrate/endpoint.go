package migrate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/peers/remote"
)

// An Endpoint is one side of a move: a server, a cluster, or a file.
type Endpoint struct {
	path string // of a file; then the other fields are empty
	url  string // with the password
	at   remote.Address
}

// anyDatabase is the database of an endpoint that names none.
const anyDatabase = remote.AnyDatabase

// ParseEndpoint reads an endpoint:
//
//	redis://[[user]:password@]host[:port][/database]
//	rediss://…                                        with TLS
//	redis://host:port,host:port,…?cluster             some nodes of a cluster
//	unix:/path/of/socket
//	any other text                                    the path of a file
func ParseEndpoint(text string) (Endpoint, error) {
	if !strings.HasPrefix(text, "unix:") && !strings.Contains(text, "://") {
		if text == "" {
			return Endpoint{}, errors.New("an empty path")
		}
		return Endpoint{path: text, at: remote.Address{DB: anyDatabase}}, nil
	}
	a, err := remote.ParseAddress(text)
	return Endpoint{url: text, at: a}, err
}

// String returns the endpoint without its password.
func (e Endpoint) String() string {
	if e.IsFile() {
		return e.path
	}
	return e.at.String()
}

// IsFile reports whether the endpoint is a file.
func (e Endpoint) IsFile() bool { return e.path != "" }

func (e Endpoint) tls() *tls.Config {
	if !e.at.Secure {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}

// replyTimeout is how long a server may take to reply. A large value takes a while.
const replyTimeout = 30 * time.Second

// client returns a client of one server, at an address of the endpoint.
func (e Endpoint) client(addr string, db int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Network: e.at.Network, Addr: addr, Username: e.at.User, Password: e.at.Password, DB: db, TLSConfig: e.tls(),
		Protocol: 2, ReadTimeout: replyTimeout, WriteTimeout: replyTimeout, DisableIdentity: true,
	})
}

// clusterClient returns a client of the cluster.
func (e Endpoint) clusterClient() *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: e.at.Addrs, Username: e.at.User, Password: e.at.Password, TLSConfig: e.tls(),
		Protocol: 2, ReadTimeout: replyTimeout, WriteTimeout: replyTimeout, DisableIdentity: true,
		MaxRedirects: 8,
	})
}

// checkCluster returns an error if the nodes that the endpoint names are not those of a
// cluster that has all slots. A client of the cluster would wait for them.
func (e Endpoint) checkCluster(ctx context.Context) error {
	var failed error
	for _, addr := range e.at.Addrs {
		c := e.client(addr, 0)
		text, err := c.ClusterInfo(ctx).Result()
		err = errors.Join(err, c.Close())
		if err != nil {
			if strings.Contains(err.Error(), "cluster support disabled") {
				err = errors.New("the server is no node of a cluster: omit ?cluster")
			}
			failed = errors.Join(failed, fmt.Errorf("%s: %w", addr, err))
			continue
		}
		fields := fieldsOf(text)
		if n, _ := strconv.Atoi(fields["cluster_slots_assigned"]); n != keyslot.Count {
			return fmt.Errorf("%s: the nodes of the cluster have %d of its %d slots", e, n, keyslot.Count)
		}
		if fields["cluster_state"] != "ok" {
			return fmt.Errorf("%s: the cluster is down (cluster_state is %s)", e, fields["cluster_state"])
		}
		return nil
	}
	return failed
}
