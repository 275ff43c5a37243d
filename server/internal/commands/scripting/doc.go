// Package scripting runs EVAL, FCALL and the function libraries: compilation, the
// cache of scripts, the library "redis" that scripts call, and the conversion between
// Lua values and replies.
//
// A script is part of the commit scope of its command. Each redis.call is a Call of a
// separate session in that scope, so that notifications, the journal and refusals are
// those of any command. The engine knows of a script only that one runs, for how long,
// and whether it has written: see engine.ScriptRun, which also lends the lock to
// transports while a script exceeds busy-reply-threshold.
package scripting
