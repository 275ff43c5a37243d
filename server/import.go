package server

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/archive"
)

// ImportCommands makes a file at path, which must not exist, of commands as
// clients send them, in RESP or inline: what archive.ExportCommands writes, and
// whatever else writes data. They run on a server of their own, so that each
// command has one meaning.
//
// Commands that wait, that subscribe or that are about the server or the
// connection cannot be imported, but for SELECT and transactions. databases is
// how many databases the commands may use, 0 for the usual 16. The data are
// held in memory.
func ImportCommands(r io.Reader, path string, databases int, o *archive.Import) (out archive.Imported, err error) {
	values := map[string]string{"save": "", "proto-max-bulk-len": "4294967296"}
	if databases != 0 {
		values["databases"] = strconv.Itoa(databases)
	}
	srv, err := New(Options{Config: values})
	if err != nil {
		return out, err
	}
	defer srv.Close()
	if err := srv.runCommands(o.Meter(r), o, &out); err != nil {
		return out, err
	}
	srv.do(func() {
		var keys int
		keys, err = archive.Save(path, srv.keys, o.Progress)
		out.Keys = int64(keys)
	})
	return out, err
}

// runCommands runs what a source holds in one session.
func (srv *Server) runCommands(source io.Reader, o *archive.Import, out *archive.Imported) error {
	s := srv.newSession(peer{fd: -1, wake: func() {}})
	defer s.close()
	s.trust()
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
			if at = read - int64(r.Buffered()); len(args) == 0 {
				continue
			}
			if replies, bad = s.runImported(args, replies); bad != nil {
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
		return fmt.Errorf("the source ends within a command, which begins at byte %d", at)
	case s.multi:
		return errors.New("the source ends within a transaction")
	}
	return nil
}

// runImported runs a command and returns the error that it answered. spare is
// memory for the reply, and is returned as such.
func (s *Session) runImported(args [][]byte, spare []byte) ([]byte, error) {
	if cmd, _ := s.srv.table.find(args); cmd != nil && !s.importable(cmd) {
		return spare, errors.New("it is not one that can be imported")
	}
	_, out, ending := s.turn([][][]byte{args}, spare[:0])
	if out == nil || ending {
		return nil, errors.New("it has no reply")
	}
	s.written()
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
func (s *Session) importable(cmd *Command) bool {
	flags := cmd.spec.Flags()
	switch cmd.Name {
	case "select", "ping", "echo", "publish", "spublish":
		return true
	}
	return cmd.Group != "connection" && !flags.Has(protocol.Admin|protocol.PubSub) && (s.multi || !flags.Has(protocol.Blocking))
}

// firstError returns the first error in a reply, which in that of EXEC may be
// within.
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
