package admin

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/glob"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// ConfigCommands returns the rows of the CONFIG command.
func ConfigCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "config", Arity: -2,
			Group: "server", Since: "2.0.0", Complexity: "That of the subcommand",
			Summary: "Parameters of the server",
		}, Subcommands: []engine.Command{
			{Facts: protocol.Facts{
				Name: "config|get", Arity: -3, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.0.0", Complexity: "O(N*M), N patterns given, M parameters",
				Summary: "Values of the parameters that match patterns",
				Syntax:  "parameter [parameter ...]",
				History: []string{"7.0.0 Several patterns"},
			}, Run: configGet},
			engine.HelpRow(protocol.Facts{Name: "config|help", Group: "server", Since: "5.0.0"},
				"GET <pattern>",
				"    The parameters whose names match <pattern>, with their values.",
				"SET <directive> <value>",
				"    Change a parameter, or several at once.",
				"RESETSTAT",
				"    Set the counters of INFO to 0.",
				"REWRITE",
				"    Write changed parameters to the configuration file."),
			{Facts: protocol.Facts{
				Name: "config|resetstat", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.0.0", Tips: "request_policy:all_nodes response_policy:all_succeeded", Complexity: "O(N), N commands of the server",
				Summary: "Set the counters of INFO to 0",
			}, Run: configResetstat},
			{Facts: protocol.Facts{
				Name: "config|rewrite", Arity: 2, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.8.0", Tips: "request_policy:all_nodes response_policy:all_succeeded", Complexity: "O(N), N lines of the file",
				Summary: "Write the parameters that differ from their defaults to the configuration file",
			}, Run: configRewrite},
			{Facts: protocol.Facts{
				Name: "config|set", Arity: -4, Flags: "admin noscript loading stale",
				Group: "server", Since: "2.0.0", Tips: "request_policy:all_nodes response_policy:all_succeeded",
				Complexity: "O(N), N parameters given",
				Summary:    "Change parameters, all of them or none",
				Syntax:     "data:(parameter value)...",
				History:    []string{"7.0.0 Several parameters"},
			}, Run: configSet, Secret: true},
		}},
	}
}

func configGet(c *engine.Call) {
	type named struct {
		name string
		p    *config.Parameter
	}
	table := config.ForClients()
	byName := map[string]*config.Parameter{}
	var unseen []named // names that patterns may still match
	for i := range table {
		p := &table[i]
		for _, name := range []string{p.Name, p.Alias} {
			if name == "" {
				continue
			}
			byName[name] = p
			if !p.Hidden {
				unseen = append(unseen, named{name, p})
			}
		}
	}
	var found [][2]string
	seen, tried := map[string]bool{}, map[string]bool{} // names found, and patterns
	add := func(name string, p *config.Parameter) {
		if lower := strings.ToLower(name); !seen[lower] {
			seen[lower] = true
			found = append(found, [2]string{name, p.Shown(&c.Engine.Config)})
		}
	}
	for c.More() {
		name := c.Bytes()
		if p := byName[strings.ToLower(protocol.View(name))]; p != nil {
			add(string(name), p)
			continue
		}
		if tried[string(name)] || !bytes.ContainsAny(name, `*?[\`) {
			continue
		}
		tried[string(name)] = true
		pattern := glob.Compile(name, true)
		unseen = slices.DeleteFunc(unseen, func(n named) bool {
			if !seen[n.name] && pattern.Match(protocol.BytesOf(n.name)) {
				add(n.name, n.p)
			}
			return seen[n.name]
		})
	}
	slices.SortFunc(found, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	c.Reply.Map(len(found))
	for _, f := range found {
		c.Reply.BulkString(f[0])
		c.Reply.BulkString(f[1])
	}
}

// configSet changes all of the parameters or none.
func configSet(c *engine.Call) {
	if c.Len()%2 != 0 {
		c.Fail(protocol.ErrSyntax)
	}
	table := config.ForClients()
	next := c.Engine.Config
	type setting struct {
		name, value string
		own         string // the name as the client spells it
		p           *config.Parameter
	}
	var given []setting
	refuse := func(name, why string) {
		c.Fail("ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why)
	}
	at := c.Pos() + 2 // CONFIG SET takes two words
	for pair := range slices.Chunk(c.Rest(), 2) {
		if len(pair) < 2 {
			break
		}
		at += 2
		s := setting{name: string(pair[0]), value: string(pair[1])}
		s.p = config.Find(table, s.name)
		switch p := s.p; {
		case p == nil:
			c.Fail("ERR Unknown option or number of arguments for CONFIG SET - '" + engine.UntilNUL(pair[0]) + "'")
			continue // a secret value must be redacted even so
		case p.Secret:
			c.Redact(at - 1)
		}
		if s.own = s.p.Name; strings.EqualFold(s.name, s.p.Alias) {
			s.own = s.p.Alias // an alias counts as a separate name
		}
		switch p := s.p; {
		case p.Name == "dir" && c.Engine.Keeper.Loading != nil:
			c.Fail(engine.ErrLoading)
		case p.Protected:
			refuse(s.name, "can't set protected config")
		case p.Fixed:
			refuse(s.name, "can't set immutable config")
		case slices.ContainsFunc(given, func(o setting) bool { return o.own == s.own }):
			refuse(s.name, "duplicate parameter")
		}
		given = append(given, s)
	}
	if !c.OK() {
		return
	}
	for _, s := range given {
		if err := s.p.Set(&next, s.value); err != nil {
			refuse(s.own, err.Error())
		}
	}
	if !c.OK() {
		return
	}
	names := make([]string, len(given))
	for i, s := range given {
		names[i] = s.own
	}
	if name, why := c.Engine.Reconfigure(&next, names); why != "" {
		refuse(name, why)
		c.OK()
		return
	}
	c.Reply.OK()
}

func configResetstat(c *engine.Call) {
	c.Engine.ResetStats()
	c.Engine.Replication.ResetStats()
	c.Reply.OK()
}

func configRewrite(c *engine.Call) { rewriteConfig(c, false) }

// debugConfigRewriteForceAll is the handler of DEBUG CONFIG-REWRITE-FORCE-ALL.
func debugConfigRewriteForceAll(c *engine.Call) { rewriteConfig(c, true) }

// rewriteConfig rewrites the configuration file; with all, every parameter is written.
func rewriteConfig(c *engine.Call, all bool) {
	if c.Engine.Identity.ConfigFile == "" {
		c.Reply.Error("ERR The server is running without a config file")
		return
	}
	if err := c.Engine.Config.RewriteFile(c.Engine.Identity.ConfigFile, c.Engine.UserLines(), all); err != nil {
		c.Engine.Log.Error("cannot write the configuration file", "error", err)
		c.Reply.Error(fmt.Sprint("ERR Rewriting config file: ", err))
		return
	}
	c.Engine.Log.Info("configuration file written", "file", c.Engine.Identity.ConfigFile)
	c.Reply.OK()
}
