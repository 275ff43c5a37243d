// Package commandlog has the handlers of SLOWLOG, and of COMMANDLOG of Valkey 8.1: logs of
// the commands that took long, and of those with large requests and large replies. The engine
// writes these logs under its lock ([engine.CommandLog]), and the log "slow" of COMMANDLOG is
// that of SLOWLOG.
package commandlog
