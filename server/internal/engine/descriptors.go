//lint:file-ignore ST1005 Errors at the start have the wording of Redis.

package engine

import (
	"fmt"

	"github.com/zsetd/zsetd/server/internal/config"
)

// reservedDescriptors is how many descriptors are reserved for purposes other than
// clients.
const reservedDescriptors = 32

// fitMaxclients lowers maxclients to the system's limit of descriptors. Then
// further clients receive an error, where they would otherwise wait until another
// client leaves.
func (srv *Engine) fitMaxclients() error {
	limit, wanted := maxDescriptors(), srv.Config.Maxclients
	switch fit := limit - reservedDescriptors; {
	case wanted <= fit:
		return nil
	case fit <= 0:
		return fmt.Errorf("zsetd: Your current 'ulimit -n' of %d is not enough for the server to start. "+
			"Please increase your open file limit to at least %d. Exiting.", limit, wanted+reservedDescriptors)
	default:
		srv.Log.Warn(fmt.Sprintf("You requested maxclients of %d requiring at least %d max file descriptors.", wanted, wanted+reservedDescriptors))
		srv.Log.Warn(fmt.Sprintf("Current maximum open files is %d. maxclients has been reduced to %d to compensate for low ulimit. "+
			"If you need higher maxclients increase 'ulimit -n'.", limit, fit))
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
