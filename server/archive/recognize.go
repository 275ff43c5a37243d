package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zsetd/zsetd/server/rdb"
	"github.com/zsetd/zsetd/snapshot"
)

// Recognize adds to the error of reading the file at path what kind of file it is,
// and that it can be imported: an RDB file, an append-only file, or an export.
// Other errors, and those of other files, are returned unchanged.
func Recognize(path string, err error) error {
	if !errors.Is(err, snapshot.ErrForeign) {
		return err
	}
	f, openErr := os.Open(path)
	if openErr != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	head = head[:n]
	what, flag := rdb.Describe(head), ""
	if bytes.HasPrefix(head, []byte(`{"db":`)) || bytes.HasPrefix(head, []byte(`{"library":`)) {
		what, flag = "lines of JSON, as zsetd export writes them", " --json"
	}
	if what == "" {
		return err
	}
	return fmt.Errorf("%w, but %s: `zsetd import%s %s NEW` makes a snapshot of it", err, what, flag, path)
}
