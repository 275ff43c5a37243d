package engine

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// Files of Redis in the folder of the data file. A redis.conf that was written for
// Redis names an RDB file as dbfilename, and its folder may hold data.

// warnOfName logs that a data file has the name of an RDB file.
func (k *Keeper) warnOfName() {
	if strings.EqualFold(filepath.Ext(k.Path), ".rdb") {
		k.srv.Log.Warn("dbfilename has the name of an RDB file, but the file is in zsetd's own format, which Redis cannot read",
			"file", k.Path, "hint", "set dbfilename to zsetd.db; zsetd export --format rdb writes an RDB file")
	}
}

// warnOfData logs that a server begins empty in a folder with data of Redis.
func (k *Keeper) warnOfData() {
	c := k.srv.Config
	name := func(parameter, initial string) string { return cmp.Or(c.kept[parameter], initial) }
	file, dir := name("appendfilename", "appendonly.aof"), name("appenddirname", "appendonlydir")
	for _, path := range []string{filepath.Join(dir, file+".manifest"), file, "dump.rdb"} {
		path = filepath.Join(filepath.Dir(k.Path), path)
		if _, err := os.Stat(path); err == nil && path != k.Path {
			k.srv.Log.Warn("starting without data: the directory has a file of Redis, which is not loaded",
				"file", k.Path, "redis", path, "hint", "stop the server, remove its data file and create it with zsetd import")
			return
		}
	}
}
