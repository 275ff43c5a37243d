package engine

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/base/process"
	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// reservedDescriptors is how many descriptors are reserved for purposes other than
// clients.
const reservedDescriptors = 32

// fitMaxclients lowers maxclients to the system's limit of descriptors. Then
// further clients receive an error, where they would otherwise wait until another
// client leaves.
func (srv *Engine) fitMaxclients() error {
	limit, wanted := process.MaxDescriptors(), srv.Config.Maxclients
	switch fit := limit - reservedDescriptors; {
	case wanted <= fit:
		return nil
	case fit <= 0:
		return fmt.Errorf("zsetd: the limit of %d open files (ulimit -n) leaves none for clients: %d are needed for maxclients %d",
			limit, wanted+reservedDescriptors, wanted)
	default:
		srv.Log.Warn("maxclients is lowered to the limit of open files (ulimit -n)", "maxclients", fit, "wanted", wanted,
			"limit", limit, "needed", wanted+reservedDescriptors)
		srv.Config.Maxclients = fit
		srv.applyConfig()
		return nil
	}
}

// ListenConfig returns a copy of the parameters at the start of the listeners, with
// maxclients lowered to the system's limit.
func (srv *Engine) ListenConfig() (c config.Settings, err error) {
	srv.Mu.Lock()
	defer srv.Mu.Unlock()
	if err := srv.fitMaxclients(); err != nil {
		return c, err
	}
	return srv.Config, nil
}
