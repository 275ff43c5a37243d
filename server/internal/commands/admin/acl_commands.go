package admin

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/acl"
)

// ACLCommands returns the rows of the ACL command.
func ACLCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "acl", Arity: -2,
			Group: "server", Since: "6.0.0", Complexity: "That of the subcommand",
			Summary: "Users, their rules and the log of denials",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "acl|cat", Arity: -2, Flags: "noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(N), N commands of the server",
				Summary: "Categories of commands, or the commands of one",
				Syntax:  "[category]",
			}, Run: aclCat},
			{Facts: protocol.Facts{
				Name: "acl|deluser", Arity: -3, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Tips: "request_policy:all_nodes response_policy:all_succeeded", Complexity: "O(U*N), U users given, N connections",
				Summary: "Delete users and close their connections",
				Syntax:  "username [username ...]",
			}, Run: aclDeluser},
			{Facts: protocol.Facts{
				Name: "acl|dryrun", Arity: -4, Flags: "admin noscript loading stale",
				Group: "server", Since: "7.0.0", Complexity: "O(R), R rules of the user",
				Summary: "Whether a user may run a command, which is not run",
				Syntax:  "username command [arg [arg ...]]",
			}, Run: aclDryrun},
			{Facts: protocol.Facts{
				Name: "acl|genpass", Arity: -2, Flags: "noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Make a random password of hexadecimal digits",
				Syntax:  "[bits]",
			}, Run: aclGenpass},
			{Facts: protocol.Facts{
				Name: "acl|getuser", Arity: 3, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0",
				Complexity: "O(R), R rules and passwords of the user",
				Summary:    "Flags, passwords and rules of a user",
				Syntax:     "username",
				History: []string{
					"6.2.0 Patterns of channels",
					"7.0.0 Selectors; patterns of keys and channels as rules instead of lists",
				},
			}, Run: aclGetuser},
			engine.HelpRow(protocol.Facts{Name: "acl|help", Group: "server", Since: "6.0.0"},
				"CAT [<category>]",
				"    The categories of commands, or the commands in <category>.",
				"DELUSER <username> [<username> ...]",
				"    Delete users and close their connections.",
				"DRYRUN <username> <command> [<arg> ...]",
				"    Tell whether a user may run <command>, without running it.",
				"GETUSER <username>",
				"    Flags, passwords and rules of a user.",
				"GENPASS [<bits>]",
				"    A random password of <bits> bits (default: 256), in hexadecimal.",
				"LIST",
				"    All users, each as a line of the ACL file.",
				"LOAD",
				"    Replace all users by those in the ACL file.",
				"LOG [<count> | RESET]",
				"    The latest <count> denials (default: 10), or RESET to forget all.",
				"SAVE",
				"    Write all users to the ACL file.",
				"SETUSER <username> <attribute> [<attribute> ...]",
				"    Apply rules to a user, which is created if absent.",
				"USERS",
				"    The names of all users.",
				"WHOAMI",
				"    The name of this connection's user."),
			{Facts: protocol.Facts{
				Name: "acl|list", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(R), R rules of all users",
				Summary: "Each user as a line of the ACL file",
			}, Run: aclList},
			{Facts: protocol.Facts{
				Name: "acl|load", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(R), R rules in the file",
				Summary: "Replace the users by those in the ACL file",
			}, Run: aclLoad},
			{Facts: protocol.Facts{
				Name: "acl|log", Arity: -2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(N), N entries returned",
				Summary: "Latest denials, or forget them",
				Syntax:  "operation:[count | RESET]",
				History: []string{"7.2.0 Fields `entry-id`, `timestamp-created`, `timestamp-last-updated`"},
			}, Run: aclLog},
			{Facts: protocol.Facts{
				Name: "acl|save", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Tips: "request_policy:all_nodes response_policy:all_succeeded", Complexity: "O(R), R rules of all users",
				Summary: "Write the users to the ACL file",
			}, Run: aclSave},
			{Facts: protocol.Facts{
				Name: "acl|setuser", Arity: -3, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Tips: "request_policy:all_nodes response_policy:all_succeeded", Complexity: "O(R), R rules given",
				Summary: "Change the rules of a user, or create it",
				Syntax:  "username [rule [rule ...]]",
				History: []string{
					"6.2.0 Patterns of channels",
					"7.0.0 Selectors, and permissions to read or write keys",
				},
			}, Run: aclSetuser, Secret: true},
			{Facts: protocol.Facts{
				Name: "acl|users", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(U log U), U users",
				Summary: "Names of all users",
			}, Run: aclUsers},
			{Facts: protocol.Facts{
				Name: "acl|whoami", Arity: 2, Flags: "noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Name of the user of this connection",
			}, Run: aclWhoami},
		}},
	}
}

func aclCat(c *engine.Call) {
	if c.Len() > 1 {
		c.BadSubcommand()
		return
	}
	names := protocol.CategoryNames()
	if c.Len() == 1 {
		category, ok := acl.Category(protocol.View(c.Peek(0)))
		if !ok {
			c.Reply.Error("ERR Unknown category '" + engine.Clip(c.Peek(0), 128) + "'")
			return
		}
		names = nil
		for _, cmd := range c.Engine.ACL.Commands.All() {
			if cmd.Categories().Has(category) {
				names = append(names, cmd.Name)
			}
		}
	}
	c.Reply.Array(len(names))
	for _, name := range names {
		c.Reply.BulkString(name)
	}
}

func aclDeluser(c *engine.Call) {
	for i := 2; i < len(c.Argv); i++ {
		c.Redact(i)
	}
	a, names := c.Engine.ACL, c.Rest()
	for _, name := range names {
		if string(name) == acl.DefaultUser {
			c.Reply.Error("ERR The 'default' user cannot be removed")
			return
		}
	}
	deleted := int64(0)
	for _, name := range names {
		u := a.Users[string(name)]
		if u == nil {
			continue
		}
		deleted++
		delete(a.Users, u.Name)
		c.Engine.DropSessions(u, c.Session)
	}
	c.Reply.Int(deleted)
}

func aclDryrun(c *engine.Call) {
	name, argv := c.Bytes(), c.Rest()
	u := c.Engine.ACL.Users[string(name)]
	if u == nil {
		c.Reply.Error("ERR User '" + engine.Clip(name, len(name)) + "' not found")
		return
	}
	cmd, names := c.Engine.Table.Find(argv)
	if cmd == nil || cmd.ByArg != nil && names < len(argv) {
		c.Reply.Error("ERR Command '" + engine.Clip(argv[0], len(argv[0])) + "' not found")
		return
	}
	if !cmd.Spec.ArityOK(len(argv)) {
		c.Reply.Error(cmd.WrongArity())
		return
	}
	switch d, at := u.Permits(cmd.Access, argv, c.Session.Selected()); d {
	case acl.Permitted:
		c.Reply.OK()
	case acl.DeniedCommand:
		c.Reply.BulkString(d.Refusal(u.Name, cmd.Name))
	case acl.DeniedDatabase:
		c.Reply.BulkString("User " + u.Name + " has no permissions to access database " + engine.Clip(argv[at], len(argv[at])))
	default:
		c.Reply.BulkString("User " + u.Name + " has no permissions to access the '" + engine.Clip(argv[at], len(argv[at])) + "' " + d.String())
	}
}

// maxPassBits is the length of the longest password that GENPASS makes.
const maxPassBits = 4096

func aclGenpass(c *engine.Call) {
	if c.Len() > 1 {
		c.BadSubcommand()
		return
	}
	bits := int64(256)
	if c.Len() == 1 {
		bits = c.Int()
	}
	if bits <= 0 || bits > maxPassBits {
		c.Fail(fmt.Sprintf("ERR ACL GENPASS argument must be the number of bits for the output password, "+
			"a positive number up to %d", maxPassBits))
	}
	if !c.OK() {
		return
	}
	// Not the random source of commands: a password must be unpredictable.
	var b [maxPassBits / 8]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("BUG: no randomness: " + err.Error())
	}
	c.Reply.BulkString(hex.EncodeToString(b[:])[:(bits+3)/4])
}

func aclGetuser(c *engine.Call) {
	c.Redact(2)
	u := c.Engine.ACL.Users[c.String()]
	r := c.Reply
	if u == nil {
		r.Null()
		return
	}
	valkey := c.Engine.Config.Valkey()
	databases := u.RestrictsDatabases() || valkey
	fields, ofSelector := 6, 3
	if databases {
		fields, ofSelector = fields+1, ofSelector+1
	}
	r.Map(fields)
	r.BulkString("flags")
	flags := u.Flags(!valkey)
	r.Set(len(flags))
	for _, f := range flags {
		r.BulkString(f)
	}
	r.BulkString("passwords")
	r.Array(len(u.Passwords))
	for _, p := range u.Passwords {
		r.BulkString(hex.EncodeToString(p[:]))
	}
	reply(&u.Selectors[0], r, databases)
	r.BulkString("selectors")
	r.Array(len(u.Selectors) - 1)
	for i := range u.Selectors[1:] {
		r.Map(ofSelector)
		reply(&u.Selectors[1+i], r, databases)
	}
}

// reply writes the fields of a selector in the reply of GETUSER: three, and the databases
// if a rule of the user restricts them, or in the dialect of Valkey.
func reply(s *acl.Selector, r *protocol.Reply, databases bool) {
	r.BulkString("commands")
	r.BulkString(s.DescribeCommands())
	r.BulkString("keys")
	r.BulkString(s.DescribeKeys())
	r.BulkString("channels")
	r.BulkString(s.DescribeChannels())
	if databases {
		r.BulkString("databases")
		r.BulkString(s.DescribeDatabases())
	}
}

func aclList(c *engine.Call) {
	lines := c.Engine.ACL.Lines(!c.Engine.Config.Valkey())
	c.Reply.Array(len(lines))
	for _, line := range lines {
		c.Reply.BulkString(line)
	}
}

const errNoACLFile = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the " +
	"ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order " +
	"to store users in the Redis configuration."

func aclLoad(c *engine.Call) {
	if c.Engine.Config.ACLFile == "" {
		c.Reply.Error(errNoACLFile)
		return
	}
	if problems := c.Engine.LoadUsersFile(c.Session); problems != "" {
		c.Reply.Error("ERR " + problems)
		return
	}
	c.Reply.OK()
}

func aclLog(c *engine.Call) {
	a := c.Engine.ACL
	if c.Len() > 1 {
		c.BadSubcommand()
		return
	}
	count := int64(10)
	if c.Len() == 1 {
		if protocol.EqualFold(c.Peek(0), "RESET") {
			a.Log = nil
			c.Reply.OK()
			return
		}
		count = max(0, c.Int())
	}
	if !c.OK() {
		return
	}
	r := c.Reply
	entries := a.Log[:min(count, int64(len(a.Log)))]
	r.Array(len(entries))
	for _, e := range entries {
		r.Map(10)
		r.BulkString("count")
		r.Int(e.Count)
		r.BulkString("reason")
		r.BulkString(e.Reason.String())
		r.BulkString("context")
		r.BulkString(string(e.Context))
		r.BulkString("object")
		r.BulkString(e.Object)
		r.BulkString("username")
		r.BulkString(e.Username)
		r.BulkString("age-seconds")
		r.Double(float64(c.Now()-e.Updated) / 1000)
		r.BulkString("client-info")
		r.BulkString(e.Client)
		r.BulkString("entry-id")
		r.Int(e.ID)
		r.BulkString("timestamp-created")
		r.Int(e.Created)
		r.BulkString("timestamp-last-updated")
		r.Int(e.Updated)
	}
}

func aclSave(c *engine.Call) {
	if c.Engine.Config.ACLFile == "" {
		c.Reply.Error(errNoACLFile)
		return
	}
	if err := c.Engine.SaveUsersFile(); err != nil {
		c.Engine.Log.Warn("ACL SAVE", "error", err)
		c.Reply.Error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
		return
	}
	c.Reply.OK()
}

// aclSetuser applies all rules or none.
func aclSetuser(c *engine.Call) {
	for i := 2; i < len(c.Argv); i++ {
		c.Redact(i)
	}
	a, name := c.Engine.ACL, c.String()
	if acl.HasSpace(name) {
		c.Reply.Error("ERR Usernames can't contain spaces or null characters")
		return
	}
	rules, open := acl.MergeSelectors(c.Rest())
	if open != "" {
		c.Reply.Error("ERR Unmatched parenthesis in acl selector starting at '" + engine.Clip([]byte(open), len(open)) + "'.")
		return
	}
	u := a.Users[name]
	var next *acl.User
	if u == nil {
		next = a.NewUser(name)
	} else {
		next = u.Copy()
	}
	for _, rule := range rules {
		if err := a.Apply(next, rule); err != nil {
			c.Reply.Error("ERR Error in ACL SETUSER modifier '" + engine.Clip([]byte(rule), len(rule)) + "': " + err.Error())
			return
		}
	}
	next.DeriveFields()
	if u == nil {
		a.Users[name] = next
	} else {
		c.Engine.Clients.DropSubscribers(u, next, c.Session)
		*u = *next
	}
	a.Changed()
	c.Reply.OK()
}

func aclUsers(c *engine.Call) {
	users := c.Engine.ACL.Sorted()
	c.Reply.Array(len(users))
	for _, u := range users {
		c.Reply.BulkString(u.Name)
	}
}

func aclWhoami(c *engine.Call) {
	if c.Session.Login.User == c.Engine.ACL.Owner {
		c.Reply.Null()
		return
	}
	c.Reply.BulkString(c.Session.Login.User.Name)
}
