// Package config holds the parameters of the server by Redis's names: their values, how
// these are read and written, their limits and their documentation.
//
// One table, [Parameters], is the source of redis.conf, the command line flags, CONFIG GET
// and SET, and the documentation. A row reads and writes a field of [Settings], which the
// rest of the server reads. The package applies nothing: the effect of a value is the
// matter of its readers, and a change of settings is a new Settings, which the engine
// applies as a whole or not at all.
//
// A new parameter is a field of Settings, a row of the table (table.go), and its use.
// Parameters of Redis without an equivalent in this server are in kept.go.
//
// [ReadArgs] reads a command line and configuration files. [Settings.Rewrite] updates a
// configuration file as CONFIG REWRITE does: a parameter in the file is changed in its
// line, comments and order stay, and a parameter that is not in the file and differs from
// its default is appended.
package config
