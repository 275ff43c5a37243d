package config

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// backupParameters returns the parameters of the backups that the server makes by itself. They are hidden
// for the same reason as transport.
func backupParameters() []Parameter {
	return []Parameter{
		interval("backup-every", func(c *Settings) *int64 { return &c.BackupEvery }).hide().
			about("Time between two backups, such as `6h` or `30m`, which the server writes and verifies by itself; 0 means none. The first one is made at once, unless the directory has one that is newer. A failure is tried again after a minute, or after `backup-every` if that is less."),
		number("backup-keep", 7, 0, math.MaxInt32, func(c *Settings) *int64 { return &c.BackupKeep }).hide().
			about("Number of backups to keep: after a new one is complete, older ones are removed; 0 keeps all."),
		text("backup-dir", "", func(c *Settings) *string { return &c.BackupDir }).immutable().hide().
			about("Directory of the backups, which is created if it does not exist; empty means `backups` in `dir`. Their names begin with that of `dbfilename`: servers that share a directory have different ones."),
		text("backup-hook", "", func(c *Settings) *string { return &c.BackupHook }).immutable().hide().
			about("Program that is run with the path of each new backup as its argument, to copy it elsewhere. It has ten minutes, or `backup-every` if that is longer; if it fails, the backup counts as failed and stays. It cannot be set at run time: a client with the permission for CONFIG SET could run any program otherwise."),
	}
}

// interval is a time of whole seconds, with a unit.
func interval(name string, field func(*Settings) *int64) Parameter {
	return Parameter{Name: name, Initial: "0", Accepts: "0, or a time with a unit, of a second at least: 30m, 6h, 1h30m",
		Get: func(c *Settings) string {
			switch n := *field(c); {
			case n == 0:
				return "0"
			case n%3600 == 0:
				return strconv.FormatInt(n/3600, 10) + "h"
			case n%60 == 0:
				return strconv.FormatInt(n/60, 10) + "m"
			default:
				return strconv.FormatInt(n, 10) + "s"
			}
		},
		Set: func(c *Settings, s string) error {
			d, err := time.ParseDuration(s)
			if err != nil || d < 0 || d%time.Second != 0 {
				return errors.New("argument must be 0 or a time such as 30m or 6h")
			}
			*field(c) = int64(d / time.Second)
			return nil
		}}
}
