package engine

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/engine/persist"
)

// CheckConfig returns the error with which a start with these options would fail.
func CheckConfig(o Options, p Parts) error {
	srv, err := configured(o, p)
	if err != nil {
		return err
	}
	for _, p := range []struct{ name, path string }{
		{"logfile", srv.Config.Logfile}, {"pidfile", srv.Config.Pidfile},
	} {
		if p.path == "" {
			continue
		}
		if err := persist.Writable(p.path); err != nil {
			return fmt.Errorf("zsetd: %s: %w", p.name, err)
		}
	}
	if path := srv.Config.Unixsocket; path != "" {
		if err := persist.Creatable(path); err != nil {
			return fmt.Errorf("zsetd: unixsocket: %w", err)
		}
	}
	return persist.Check(&srv.Config)
}
