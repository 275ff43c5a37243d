package server

import "github.com/zsetd/zsetd/protocol"

// Modules are libraries in C. This server has none, and MODULE replies accordingly.

func moduleCommands() []Command {
	return []Command{
		{Facts: protocol.Facts{
			Name: "module", Arity: -2,
			Group: "server", Since: "4.0.0", Complexity: "Depends on subcommand.",
			Summary: "A container for module commands",
		}, subcommands: []Command{
			{Facts: protocol.Facts{
				Name: "module|help", Arity: 2, Flags: "loading stale",
				Group: "server", Since: "5.0.0", Complexity: "O(1)",
				Summary: "Show helpful text about the different subcommands",
			}, run: moduleHelp},
			{Facts: protocol.Facts{
				Name: "module|list", Arity: 2, Flags: "admin noscript",
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output_order",
				Complexity: "O(N) where N is the number of loaded modules.",
				Summary:    "List all modules loaded by the server",
			}, run: moduleList},
			{Facts: protocol.Facts{
				Name: "module|load", Arity: -3, Flags: "admin noscript no_async_loading protected",
				Group: "server", Since: "4.0.0", Complexity: "O(1)",
				Summary: "Load a module",
				Syntax:  "path [arg [arg ...]]",
			}, run: moduleLoad},
			{Facts: protocol.Facts{
				Name: "module|loadex", Arity: -3, Flags: "admin noscript no_async_loading protected",
				Group: "server", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Load a module with extended parameters",
				Syntax:  "path configs:[CONFIG name value [CONFIG name value ...]] [ARGS args:(arg)...]",
			}, run: moduleLoadex},
			{Facts: protocol.Facts{
				Name: "module|unload", Arity: 3, Flags: "admin noscript no_async_loading protected",
				Group: "server", Since: "4.0.0", Complexity: "O(1)",
				Summary: "Unload a module",
				Syntax:  "name",
			}, run: moduleUnload},
		}},
	}
}

func moduleHelp(c *Call) {
	c.help("LIST",
		"    Return a list of loaded modules.",
		"LOAD <path> [<arg> ...]",
		"    Load a module library from <path>, passing to it any optional arguments.",
		"LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
		"    Load a module library from <path>, while passing it module configurations and optional arguments.",
		"UNLOAD <name>",
		"    Unload a module.")
}

func moduleList(c *Call) { c.Reply.Array(0) }

// moduleLoad fails as in Redis when a library cannot be loaded.
func moduleLoad(c *Call) {
	path := c.String()
	c.srv.log.Warn("cannot load the module: modules are not supported", "path", path)
	c.Reply.Error("ERR Error loading the extension. Please check the server logs.")
}

func moduleLoadex(c *Call) { moduleLoad(c) }

func moduleUnload(c *Call) {
	c.Reply.Error("ERR Error unloading module: no such module with that name")
}
