package remote

import (
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
)

// Request is a command for another server, or a transaction. It is not safe for concurrent
// use.
type Request struct {
	Name     string   // for errors
	Commands [][]byte // encoded: one, or those between MULTI and EXEC
	Calls    [][]byte // the same, for a server that has those of zsetd as functions; nil if there are none
	Purges   [][]byte // calls that remove members past their deadlines from the keys, for such a server
	Bytes    int      // of Commands
	DB       int
	Version  int   // of the protocol
	Limit    int   // bytes of the reply; 0 for no limit
	Slot     int   // of the first key; -1 without keys
	Spread   bool  // of a transaction: it has keys of several slots
	Place    Place // without keys, in a cluster
	Kind     Kind
	Watched  bool // of a transaction: keys were watched by a request of kind Watch
	Blocking bool // it may wait for other clients
	Mute     bool // the client wants no reply
}

// Kind is the kind of a request.
type Kind uint8

// The kinds of requests.
const (
	Command     Kind = iota
	Watch            // WATCH
	Unwatch          // UNWATCH, where keys were watched
	Transaction      // MULTI, Commands, EXEC
)

// Place is where a request without keys runs in a cluster.
type Place uint8

// The places.
const (
	AnyNode     Place = iota // the node of the previous request, or any
	AllNodes                 // all primaries, of which one replies
	SumOfNodes               // all primaries; the reply is the sum of theirs
	ListOfNodes              // all primaries; the reply is the elements of theirs
	ScanOfNodes              // one primary after the other, as the cursor in the first argument says
	OneOfNodes               // one primary by chance, more often if it has more keys
	NoNode                   // it concerns all keys and has one reply: refused
)

// Joins reports whether the replies of several nodes make one. Transactions have no such
// commands.
func (p Place) Joins() bool { return p >= SumOfNodes }

// Add adds a command, of which keys are the arguments that decide on its slot. function:
// the command has one key, and servers other than zsetd have it as a function of its name.
func (r *Request) Add(spec *protocol.Command, argv [][]byte, keys []protocol.KeyRef, function bool) {
	b := encode(argv)
	if function {
		for len(r.Calls) < len(r.Commands) {
			r.Calls = append(r.Calls, r.Commands[len(r.Calls)])
		}
		call := slices.Concat([][]byte{[]byte("FCALL"), []byte(spec.Name), []byte("1")}, argv[1:])
		r.Calls = append(r.Calls, encode(call))
	} else if r.Calls != nil {
		r.Calls = append(r.Calls, b)
	}
	r.Commands = append(r.Commands, b)
	r.Bytes += len(b)
	r.Blocking = r.Blocking || spec.Flags().Has(protocol.Blocking)
	if len(keys) == 0 {
		r.Place = max(r.Place, placeWithoutKeys(spec))
		return
	}
	if r.Slot < 0 {
		r.Slot = keyslot.Of(argv[keys[0].Index])
	}
	if r.Kind == Transaction {
		for _, k := range keys {
			r.Spread = r.Spread || keyslot.Of(argv[k.Index]) != r.Slot
		}
	}
}

// Purge adds a key of which a command may show members. A server that is no zsetd removes
// members past their deadlines only where a function opens their key: zpurge does.
func (r *Request) Purge(key []byte) {
	r.Purges = append(r.Purges, encode([][]byte{[]byte("FCALL"), []byte("zpurge"), []byte("1"), key}))
}

// encode returns a command in the encoding of the protocol.
func encode(argv [][]byte) []byte {
	n := 16
	for _, a := range argv {
		n += len(a) + 16
	}
	b := append(protocol.AppendInt(append(make([]byte, 0, n), '*'), int64(len(argv))), "\r\n"...)
	for _, a := range argv {
		b = append(protocol.AppendInt(append(b, '$'), int64(len(a))), "\r\n"...)
		b = append(append(b, a...), "\r\n"...)
	}
	return b
}

// placeWithoutKeys returns where a command without keys runs in a cluster.
func placeWithoutKeys(spec *protocol.Command) Place {
	switch f := spec.Flags(); {
	case f.Has(protocol.Write) || strings.Contains(spec.Name, "|") && spec.Group == "scripting":
		return AllNodes
	case !f.Has(protocol.ReadOnly) || spec.Keys != "":
		return AnyNode
	}
	place := NoNode
	for _, tip := range spec.Tips() {
		switch tip {
		case "response_policy:agg_sum":
			return SumOfNodes
		case "nondeterministic_output_order":
			return ListOfNodes
		case "request_policy:special":
			return ScanOfNodes
		case "request_policy:all_shards":
			place = OneOfNodes // unless another tip says how replies are joined
		}
	}
	return place
}
