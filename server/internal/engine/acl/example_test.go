package acl_test

import (
	"fmt"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
)

// commands returns a few commands.
func commands() *acl.Commands {
	var specs []*protocol.Command
	for _, facts := range []protocol.Facts{
		{Name: "get", Arity: 2, Flags: "readonly fast", Keys: "1 RO access", Group: "string"},
		{Name: "set", Arity: -3, Flags: "write denyoom", Keys: "1 OW update", Group: "string"},
		{Name: "publish", Arity: 3, Flags: "pubsub", Channels: protocol.FirstChannel, Group: "pubsub"},
		{Name: "psubscribe", Arity: -2, Flags: "pubsub", Channels: protocol.EveryPattern, Group: "pubsub"},
		{Name: "select", Arity: 2, Flags: "fast", Databases: protocol.FirstDatabase, Group: "connection"},
	} {
		spec, err := protocol.Compile(facts)
		if err != nil {
			panic(err)
		}
		specs = append(specs, spec)
	}
	return acl.NewCommands(specs)
}

func Example() {
	list := acl.New(commands())
	u := list.NewUser("reader")
	for _, rule := range strings.Fields("on >password +@read ~cache:* +publish &news") {
		if err := list.Apply(u, rule); err != nil {
			fmt.Println(err)
		}
	}
	u.DeriveFields()
	fmt.Println("logs in:", u.Accepts([]byte("password")))
	for _, line := range []string{"GET cache:1", "SET cache:1 x", "GET other", "PUBLISH news x", "PUBLISH secrets x"} {
		argv := argv(line)
		denial, at := u.Permits(list.Commands.Named(string(argv[0])), argv, acl.Selected{Count: 16})
		fmt.Printf("%s: %v (argument %d)\n", line, denial, at)
	}
	fmt.Println(u.Selectors[0].DescribeCommands())
	// Output:
	// logs in: true
	// GET cache:1: permitted (argument 0)
	// SET cache:1 x: command (argument 0)
	// GET other: key (argument 1)
	// PUBLISH news x: permitted (argument 0)
	// PUBLISH secrets x: channel (argument 1)
	// -@all +@read +publish
}

func argv(line string) [][]byte {
	var words [][]byte
	for word := range strings.FieldsSeq(line) {
		words = append(words, []byte(word))
	}
	return words
}
