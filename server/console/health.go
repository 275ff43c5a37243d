package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/zsetd/zsetd/protocol"
)

// healthz serves GET /healthz: whether the server answers. It needs no user.
func (c *Console) healthz(w http.ResponseWriter, r *http.Request) {
	c.report(w, r, func(ctx context.Context) error {
		nc, err := c.dial(ctx, feedBuffer)
		if err != nil {
			return err
		}
		defer nc.close()
		reply, err := nc.do("PING")
		if ctx.Err() != nil {
			return fmt.Errorf("no answer within %v", askTime)
		}
		if _, refused := reply.(protocol.ReplyError); refused {
			return nil // no login, or too many clients, or loading: it answers
		}
		return err
	})
}

// readyz serves GET /readyz: whether the server has its data, accepts writes and, as a
// replica, follows its primary. It needs no user.
func (c *Console) readyz(w http.ResponseWriter, r *http.Request) {
	c.report(w, r, c.unready)
}

// report responds 200 and ok, or 503 and the error.
func (c *Console) report(w http.ResponseWriter, r *http.Request, check func(context.Context) error) {
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := check(ctx); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, "ok")
}

// loadTime is how long readyz waits for data that are being loaded.
const loadTime = 50 * time.Millisecond

// unready returns why the server is not ready, or nil.
func (c *Console) unready(ctx context.Context) error {
	loading, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	if err := c.srv.Ready(loading); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return errors.New("loading data")
		}
		return err
	}
	in, err := c.askInfo(ctx, "persistence", "replication", "memory")
	if err != nil {
		return err
	}
	return whyUnready(in, func(name string) (string, error) { return c.parameter(ctx, name) })
}

// whyUnready returns why a server with an INFO is not ready, or nil. It asks for parameters only
// where they decide.
func whyUnready(in *info, parameter func(name string) (string, error)) error {
	if in.values["loading"] == "1" {
		return errors.New("loading data")
	}
	if in.values["role"] == "slave" {
		if in.values["master_link_status"] != "up" {
			return errors.New("the replica has no link to its primary")
		}
		if in.values["master_sync_in_progress"] == "1" {
			return errors.New("the replica receives the data of its primary")
		}
		return nil
	}
	if in.values["rdb_last_bgsave_status"] != "ok" || in.values["aof_last_write_status"] != "ok" {
		if rejected, err := rejectsUnsaved(in, parameter); err != nil || rejected {
			return errors.Join(errors.New("writes are rejected: the data could not be saved"), err)
		}
	}
	if good, there := in.values["min_slaves_good_slaves"]; there {
		wanted, err := parameter("min-replicas-to-write")
		if err != nil {
			return err
		}
		if in.number("min_slaves_good_slaves") < parseInfo("# x\nn:"+wanted).number("n") {
			return fmt.Errorf("writes are rejected: %s of %s replicas are connected", good, wanted)
		}
	}
	if limit := in.number("maxmemory"); limit > 0 && in.values["maxmemory_policy"] == "noeviction" && in.number("used_memory") > limit {
		return errors.New("writes are rejected: used memory exceeds maxmemory")
	}
	return nil
}

// rejectsUnsaved reports whether a server rejects writes after a failed save: one that saves only
// by request does not.
func rejectsUnsaved(in *info, parameter func(name string) (string, error)) (bool, error) {
	if stop, err := parameter("stop-writes-on-bgsave-error"); err != nil || stop != "yes" {
		return false, err
	}
	if rules, err := parameter("save"); err != nil || rules != "" || in.values["aof_enabled"] != "1" {
		return rules != "", err
	}
	fsync, err := parameter("appendfsync")
	return fsync == "always", err
}
