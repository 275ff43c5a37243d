package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/snapshot"
)

// The tool restore. Package archive does the work.

func restoreTool() tool {
	return tool{
		name: "restore", args: "BACKUP FILE", files: 2, run: runRestore,
		summary: "put a backup in place of the file of a stopped server",
		details: "Verifies BACKUP as check does, copies it, verifies and syncs the copy, and puts it in place of\n" +
			"FILE, whose owner and mode it gets. The old FILE, which may be damaged, is kept under the\n" +
			"name that is printed. No server may have FILE open. Status: 0 done, 1 BACKUP is damaged or\n" +
			"not a file of zsetd, or FILE is in use, 2 files cannot be read or written. After a failure\n" +
			"FILE is unchanged.",
	}
}

func runRestore(r *toolRun) int {
	backup, path := r.files[0], r.files[1]
	out, err := archive.Restore(backup, path, time.Now(), r.progress)
	if err != nil {
		status := r.fail(err)
		if errors.Is(err, snapshot.ErrInUse) {
			fmt.Fprintf(r.stderr, "Stop the server first: zsetd cli SHUTDOWN\n")
		}
		return status
	}
	r.meter.end()
	fmt.Fprintf(r.stdout, "%s: %s with %d keys restored and verified\n", path, size(out.Size), out.Keys)
	if out.Kept != "" {
		fmt.Fprintf(r.stdout, "The old file is %s\n", out.Kept)
	}
	return statusOK
}
