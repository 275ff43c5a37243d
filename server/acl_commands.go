package server

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/zsetd/zsetd/protocol"
)

func aclCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "acl", Arity: -2,
			Group: "server", Since: "6.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for Access List Control commands ",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "acl|cat", Arity: -2, Flags: "noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(1) since the categories and commands are a fixed set.",
				Summary: "List the ACL categories or the commands inside a category",
				Syntax:  "[categoryname]",
			}, run: aclCat},
			{Facts: protocol.Facts{
				Name: "acl|deluser", Arity: -3, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(1) amortized time considering the typical user.",
				Summary: "Remove the specified ACL users and the associated rules",
				Syntax:  "username [username ...]",
			}, run: aclDeluser},
			{Facts: protocol.Facts{
				Name: "acl|dryrun", Arity: -4, Flags: "admin noscript loading stale",
				Group: "server", Since: "7.0.0", Complexity: "O(1).",
				Summary: "Returns whether the user can execute the given command without executing the command.",
				Syntax:  "username command [arg [arg ...]]",
			}, run: aclDryrun},
			{Facts: protocol.Facts{
				Name: "acl|genpass", Arity: -2, Flags: "noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Generate a pseudorandom secure password to use for ACL users",
				Syntax:  "[bits]",
			}, run: aclGenpass},
			{Facts: protocol.Facts{
				Name: "acl|getuser", Arity: 3, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0",
				Complexity: "O(N). Where N is the number of password, command and pattern rules that the user has.",
				Summary:    "Get the rules for a specific ACL user",
				Syntax:     "username",
				History: []string{
					"6.2.0 Added Pub/Sub channel patterns.",
					"7.0.0 Added selectors and changed the format of key and channel patterns from a list to their rule representation.",
				},
			}, run: aclGetuser},
			{Facts: protocol.Facts{
				Name: "acl|help", Arity: 2, Flags: "loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: aclHelp},
			{Facts: protocol.Facts{
				Name: "acl|list", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(N). Where N is the number of configured users.",
				Summary: "List the current ACL rules in ACL config file format",
			}, run: aclList},
			{Facts: protocol.Facts{
				Name: "acl|load", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(N). Where N is the number of configured users.",
				Summary: "Reload the ACLs from the configured ACL file",
			}, run: aclLoad},
			{Facts: protocol.Facts{
				Name: "acl|log", Arity: -2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(N) with N being the number of entries shown.",
				Summary: "List latest events denied because of ACLs in place",
				Syntax:  "operation:[count | RESET]",
				History: []string{"7.2.0 Added entry ID, timestamp created, and timestamp last updated."},
			}, run: aclLog},
			{Facts: protocol.Facts{
				Name: "acl|save", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(N). Where N is the number of configured users.",
				Summary: "Save the current ACL rules in the configured ACL file",
			}, run: aclSave},
			{Facts: protocol.Facts{
				Name: "acl|setuser", Arity: -3, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(N). Where N is the number of rules provided.",
				Summary: "Modify or create the rules for a specific ACL user",
				Syntax:  "username [rule [rule ...]]",
				History: []string{
					"6.2.0 Added Pub/Sub channel patterns.",
					"7.0.0 Added selectors and key based permissions.",
				},
			}, run: aclSetuser},
			{Facts: protocol.Facts{
				Name: "acl|users", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(N). Where N is the number of configured users.",
				Summary: "List the username of all the configured ACL rules",
			}, run: aclUsers},
			{Facts: protocol.Facts{
				Name: "acl|whoami", Arity: 2, Flags: "noscript loading stale",
				Group: "server", Since: "6.0.0", Complexity: "O(1)",
				Summary: "Return the name of the user associated to the current connection",
			}, run: aclWhoami},
		}},
	}
}

func aclCat(c *Call) {
	if c.Len() > 1 {
		c.badSubcommand()
		return
	}
	names := protocol.CategoryNames()
	if c.Len() == 1 {
		i := slices.Index(names, lowered(protocol.View(c.Peek(0))))
		if i < 0 {
			c.Reply.Error("ERR Unknown category '" + clip(c.Peek(0), 128) + "'")
			return
		}
		names = nil
		c.srv.acl.table.each(func(cmd *Command) {
			if cmd.spec.Categories().Has(1 << i) {
				names = append(names, cmd.Name)
			}
		})
	}
	c.Reply.Array(len(names))
	for _, name := range names {
		c.Reply.BulkString(name)
	}
}

func aclDeluser(c *Call) {
	a, names := c.srv.acl, c.Rest()
	for _, name := range names {
		if string(name) == defaultUser {
			c.Reply.Error("ERR The 'default' user cannot be removed")
			return
		}
	}
	deleted := int64(0)
	for _, name := range names {
		u := a.users[string(name)]
		if u == nil {
			continue
		}
		deleted++
		delete(a.users, u.name)
		c.srv.dropSessions(u, c.sess)
	}
	c.Reply.Int(deleted)
}

func aclDryrun(c *Call) {
	name, argv := c.Bytes(), c.Rest()
	u := c.srv.acl.users[string(name)]
	if u == nil {
		c.Reply.Error("ERR User '" + clip(name, len(name)) + "' not found")
		return
	}
	cmd, names := c.srv.table.find(argv)
	if cmd == nil || cmd.byArg != nil && names < len(argv) {
		c.Reply.Error("ERR Command '" + clip(argv[0], len(argv[0])) + "' not found")
		return
	}
	if !cmd.spec.ArityOK(len(argv)) {
		c.Reply.Error(cmd.wrongArity())
		return
	}
	switch d, at := u.permits(cmd, argv); d {
	case permitted:
		c.Reply.OK()
	case deniedCommand:
		c.Reply.BulkString("This user has no permissions to run the '" + cmd.Name + "' command")
	default:
		c.Reply.BulkString("This user has no permissions to access the '" + clip(argv[at], len(argv[at])) + "' " + d.String())
	}
}

// maxPassBits is the length of the longest password that GENPASS makes.
const maxPassBits = 4096

func aclGenpass(c *Call) {
	if c.Len() > 1 {
		c.badSubcommand()
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
	if !c.ok() {
		return
	}
	// Not the random source of commands: a password must be unpredictable.
	var b [maxPassBits / 8]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("BUG: no randomness: " + err.Error())
	}
	c.Reply.BulkString(hex.EncodeToString(b[:])[:(bits+3)/4])
}

func aclGetuser(c *Call) {
	u := c.srv.acl.users[c.String()]
	r := c.Reply
	if u == nil {
		r.Null()
		return
	}
	r.Map(6)
	r.BulkString("flags")
	flags := u.flags()
	r.Set(len(flags))
	for _, f := range flags {
		r.BulkString(f)
	}
	r.BulkString("passwords")
	r.Array(len(u.passwords))
	for _, p := range u.passwords {
		r.BulkString(hex.EncodeToString(p[:]))
	}
	u.selectors[0].reply(r)
	r.BulkString("selectors")
	r.Array(len(u.selectors) - 1)
	for i := range u.selectors[1:] {
		r.Map(3)
		u.selectors[1+i].reply(r)
	}
}

// reply writes the three fields of a selector in the reply of GETUSER.
func (s *selector) reply(r *protocol.Reply) {
	r.BulkString("commands")
	r.BulkString(s.describeCommands())
	r.BulkString("keys")
	r.BulkString(s.describeKeys())
	r.BulkString("channels")
	r.BulkString(s.describeChannels())
}

func aclHelp(c *Call) {
	c.help("CAT [<category>]",
		"    List all commands that belong to <category>, or all command categories",
		"    when no category is specified.",
		"DELUSER <username> [<username> ...]",
		"    Delete a list of users.",
		"DRYRUN <username> <command> [<arg> ...]",
		"    Returns whether the user can execute the given command without executing the command.",
		"GETUSER <username>",
		"    Get the user's details.",
		"GENPASS [<bits>]",
		"    Generate a secure 256-bit user password. The optional `bits` argument can",
		"    be used to specify a different size.",
		"LIST",
		"    Show users details in config file format.",
		"LOAD",
		"    Reload users from the ACL file.",
		"LOG [<count> | RESET]",
		"    Show the ACL log entries.",
		"SAVE",
		"    Save the current config to the ACL file.",
		"SETUSER <username> <attribute> [<attribute> ...]",
		"    Create or modify a user with the specified attributes.",
		"USERS",
		"    List all the registered usernames.",
		"WHOAMI",
		"    Return the current connection username.")
}

func aclList(c *Call) {
	lines := c.srv.acl.lines()
	c.Reply.Array(len(lines))
	for _, line := range lines {
		c.Reply.BulkString(line)
	}
}

const errNoACLFile = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the " +
	"ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order " +
	"to store users in the Redis configuration."

func aclLoad(c *Call) {
	if c.srv.config.aclFile == "" {
		c.Reply.Error(errNoACLFile)
		return
	}
	if problems := c.srv.loadUsersFile(c.sess); problems != "" {
		c.Reply.Error("ERR " + problems)
		return
	}
	c.Reply.OK()
}

func aclSave(c *Call) {
	if c.srv.config.aclFile == "" {
		c.Reply.Error(errNoACLFile)
		return
	}
	if err := c.srv.saveUsersFile(); err != nil {
		c.srv.log.Warn("ACL SAVE", "error", err)
		c.Reply.Error("ERR There was an error trying to save the ACLs. Please check the server logs for more information")
		return
	}
	c.Reply.OK()
}

// aclSetuser applies all rules or none.
func aclSetuser(c *Call) {
	for i := 2; i < len(c.argv); i++ {
		c.redact(i)
	}
	a, name := c.srv.acl, c.String()
	if hasSpace(name) {
		c.Reply.Error("ERR Usernames can't contain spaces or null characters")
		return
	}
	rules, open := mergeSelectors(stringsOf(c.Rest()))
	if open != "" {
		c.Reply.Error("ERR Unmatched parenthesis in acl selector starting at '" + clip([]byte(open), len(open)) + "'.")
		return
	}
	u := a.users[name]
	var next *user
	if u == nil {
		next = a.newUser(name)
	} else {
		next = u.copy()
	}
	for _, rule := range rules {
		if err := a.apply(next, rule); err != nil {
			c.Reply.Error("ERR Error in ACL SETUSER modifier '" + clip([]byte(rule), len(rule)) + "': " + err.Error())
			return
		}
	}
	next.deriveFields()
	if u == nil {
		a.users[name] = next
	} else {
		c.srv.dropSubscribers(u, next, c.sess)
		*u = *next
	}
	a.changed()
	c.Reply.OK()
}

func aclUsers(c *Call) {
	users := c.srv.acl.sorted()
	c.Reply.Array(len(users))
	for _, u := range users {
		c.Reply.BulkString(u.name)
	}
}

func aclWhoami(c *Call) {
	if c.sess.user == c.srv.acl.owner {
		c.Reply.Null()
		return
	}
	c.Reply.BulkString(c.sess.user.name)
}
