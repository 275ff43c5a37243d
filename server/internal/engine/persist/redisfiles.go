package persist

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// Files of Redis in the folder of the data file. A redis.conf that was written for
// Redis names an RDB file as dbfilename, and its folder may hold data.

// warnOfName logs that a data file has the name of an RDB file.
func (k *Keeper) warnOfName() {
	if strings.EqualFold(filepath.Ext(k.Path), ".rdb") {
		k.o.Log.Warn("dbfilename has the name of an RDB file, but the file is in zsetd's own format, which Redis cannot read",
			"file", k.Path, "hint", "set dbfilename to zsetd.db; zsetd export --format rdb writes an RDB file")
	}
}

// warnOfData logs that a server begins empty in a folder with data of Redis.
func (k *Keeper) warnOfData() {
	table := config.Parameters()
	value := func(parameter string) string {
		p := config.Find(table, parameter)
		return cmp.Or(p.Get(k.o.Settings), p.Initial)
	}
	file, dir := value("appendfilename"), value("appenddirname")
	for _, path := range []string{filepath.Join(dir, file+".manifest"), file, "dump.rdb"} {
		path = filepath.Join(filepath.Dir(k.Path), path)
		if _, err := os.Stat(path); err == nil && path != k.Path {
			k.o.Log.Warn("starting without data: the directory has a file of Redis, which is not loaded",
				"file", k.Path, "redis", path, "hint", "stop the server, remove its data file and create it with zsetd import")
			return
		}
	}
}
