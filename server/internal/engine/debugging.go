package engine

import "github.com/zsetd/zsetd/server/internal/values/keyspace"

// Debugging is what DEBUG has changed for tests of the server.
type Debugging struct {
	ActiveExpire bool // the timer removes what is past its deadline
	CronPaused   bool // it closes no idle clients, and trims no tables
	Checked      bool // all data are verified after each command
}

// debugged reports whether each single command is run by runDebugged.
func (srv *Engine) debugged() bool { return srv.Timers.Checked || srv.Keys.HasLazyFields() }

// runDebugged is the execution of a handler while keyspace.LazyFields is on or all data are
// verified after each command. A violation of an invariant is a bug, so it panics.
func (c *Call) runDebugged(cmd *Command, args [][]byte) {
	keys := c.Engine.Keys
	keys.UseFields(cmd.Fields, args)
	cmd.Run(c)
	c.RemoveEmpty()
	keys.UseFields(keyspace.FieldsStay, nil)
	if c.Engine.Timers.Checked {
		if err := keys.Check(); err != nil {
			panic("BUG: after " + cmd.Name + ": " + err.Error())
		}
	}
}
