package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/archive"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/values/keyspace"
	"github.com/zsetd/zsetd/server/rdb"
)

// ImportCommands makes a file at path, which must not exist, from commands as
// clients send them, in RESP or inline: the exports of archive.ExportCommands,
// append-only files, and any other commands that write data. An RDB file may
// precede them, as in an append-only file. The commands run on a separate server,
// so that each has the same meaning as for a client.
//
// Commands that wait or subscribe, and commands about the server or the connection,
// cannot be imported, except SELECT and transactions. databases is the number of
// databases that the commands may use, 0 for the usual 16. The data are held in
// memory. A source without a byte is an error.
func ImportCommands(r io.Reader, path string, databases int, o *archive.Import) (archive.Imported, error) {
	source := bufio.NewReaderSize(r, rdb.ReadSize)
	if _, err := source.Peek(1); errors.Is(err, io.EOF) {
		return archive.Imported{}, archive.ErrNothing
	}
	return importCommands(path, databases, o, func(srv *engine.Engine, out *archive.Imported) error {
		return runSource(srv, source, o, out)
	})
}

// ImportManifest is ImportCommands for the append-only file of several parts that a
// manifest lists: the base, and the increments in their order. The parts are in the
// manifest's folder.
func ImportManifest(manifest, path string, databases int, o *archive.Import) (archive.Imported, error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return archive.Imported{}, err
	}
	parts, err := rdb.ManifestFiles(text)
	if err != nil {
		return archive.Imported{}, fmt.Errorf("%s: %w", manifest, err)
	}
	return importCommands(path, databases, o, func(srv *engine.Engine, out *archive.Imported) error {
		for _, name := range parts {
			if err := runFile(srv, filepath.Join(filepath.Dir(manifest), name), o, out); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// importCommands makes a file of the data that run leaves in a server.
func importCommands(path string, databases int, o *archive.Import, run func(*engine.Engine, *archive.Imported) error) (out archive.Imported, err error) {
	values := map[string]string{"save": "", "proto-max-bulk-len": "4294967296"}
	if databases != 0 {
		values["databases"] = strconv.Itoa(databases)
	}
	srv, err := New(Options{Config: values})
	if err != nil {
		return out, err
	}
	defer srv.Close()
	if err := run(srv.engine, &out); err != nil {
		return out, err
	}
	srv.engine.InTurn(func() {
		var keys int
		keys, err = archive.Save(path, srv.engine.Keys, o.Progress)
		out.Keys = int64(keys)
	})
	return out, err
}

// runFile imports a regular file. It refuses others: a pipe that a manifest names could block the
// import without limit.
func runFile(srv *engine.Engine, path string, o *archive.Import, out *archive.Imported) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	o.Size = info.Size()
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return runSource(srv, f, o, out)
}

// runSource runs the commands of a source in one session, after the RDB file that
// it may begin with.
func runSource(srv *engine.Engine, r io.Reader, o *archive.Import, out *archive.Imported) error {
	s := srv.NewSession(engine.Peer{FD: -1, Wake: func() {}})
	defer s.Close()
	s.SetOwner()
	source := bufio.NewReaderSize(o.Meter(r), rdb.ReadSize)
	if head, _ := source.Peek(rdbHead); rdb.IsFile(head) {
		if err := loadValues(s, source, o, out); err != nil {
			return err
		}
	}
	return runCommands(s, source, o, out)
}

// rdbHead is the number of bytes that identify an RDB file.
const rdbHead = 9

// loadValues puts the content of an RDB file into the keyspace.
func loadValues(s *engine.Session, r *bufio.Reader, o *archive.Import, out *archive.Imported) error {
	srv := s.Engine
	return o.Values(r, out, func(v archive.Value) (err error) {
		if v.DB == keyspace.InternalDB {
			code := v.Value.(*keyspace.String).Content()
			_, err = runImported(s, [][]byte{[]byte("FUNCTION"), []byte("LOAD"), []byte("REPLACE"), code}, nil)
			if err != nil {
				return o.Fail(out, fmt.Errorf("library %.100q: %w", v.Key, err))
			}
			return nil
		}
		if v.DB >= srv.Keys.Len() {
			return o.Fail(out, fmt.Errorf("key %.100q: database %d does not exist: there are %d databases", v.Key, v.DB, srv.Keys.Len()))
		}
		srv.InTurn(func() {
			if db := srv.Keys.DB(v.DB); db.Peek([]byte(v.Key)) == nil {
				db.Restore(v.Key, v.Value, v.Deadline)
			} else {
				err = fmt.Errorf("duplicate key %.100q in database %d", v.Key, v.DB)
			}
		})
		return err
	})
}

// runCommands runs the commands of a source.
func runCommands(s *engine.Session, source io.Reader, o *archive.Import, out *archive.Imported) error {
	r := protocol.Reader{Limits: protocol.Limits{MaxBulk: 4 << 30}}
	var args [][]byte
	var replies []byte
	read, at := int64(0), int64(0) // bytes from the source, and those of whole commands
	for {
		n, err := source.Read(r.Space())
		r.Filled(n)
		read += int64(n)
		for {
			var ok bool
			var bad error
			if args, ok, bad = r.Next(args[:0]); bad != nil {
				return fmt.Errorf("the command at byte %d: %w", at, bad)
			}
			if !ok {
				break
			}
			begin := at
			if at = read - int64(r.Buffered()); len(args) == 0 || len(args[0]) > 0 && args[0][0] == '#' {
				continue // in append-only files, # begins a line without a command
			}
			if replies, bad = runImported(s, args, replies); bad != nil {
				bad = fmt.Errorf("command %d, %.40s at byte %d: %w", out.Done+out.Failed+1, args[0], begin, bad)
				if bad = o.Fail(out, bad); bad != nil {
					return bad
				}
				continue
			}
			out.Done++
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	switch {
	case r.Partial(): // at < read alone may be blank lines
		return o.Fail(out, fmt.Errorf("unexpected end of the source within the command at byte %d", at))
	case s.Transaction.Multi:
		return o.Fail(out, errors.New("unexpected end of the source within a transaction"))
	}
	return nil
}

// runImported runs a command and returns the error of its reply. spare is a buffer
// for the reply, and is returned for reuse.
func runImported(s *engine.Session, args [][]byte, spare []byte) ([]byte, error) {
	if cmd, _ := s.Engine.Table.Find(args); cmd != nil && !importable(s, cmd) {
		return spare, errors.New("the command cannot be imported")
	}
	_, out, ending := s.Turn([][][]byte{args}, spare[:0])
	if out == nil || ending {
		return nil, errors.New("the command has no reply")
	}
	s.Written()
	if out[0] != '-' && out[0] != '*' {
		return out, nil
	}
	reply, _, err := protocol.Decode(out)
	if err != nil {
		return out, err
	}
	return out, firstError(reply)
}

// importable reports whether a command changes data, or does nothing.
func importable(s *engine.Session, cmd *engine.Command) bool {
	flags := cmd.Spec.Flags()
	return cmd.Importable || cmd.Group != "connection" && !flags.Has(protocol.Admin|protocol.PubSub) && (s.Transaction.Multi || !flags.Has(protocol.Blocking))
}

// firstError returns the first error in a reply, including the replies within that
// of EXEC.
func firstError(reply any) error {
	switch r := reply.(type) {
	case protocol.ReplyError:
		return r
	case []any:
		for _, x := range r {
			if err := firstError(x); err != nil {
				return err
			}
		}
	}
	return nil
}
