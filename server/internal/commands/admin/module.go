package admin

import (
	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
)

// Modules are libraries in C. This server has none, and MODULE replies accordingly.

// ModuleCommands returns the rows of the MODULE command.
func ModuleCommands() []engine.Command {
	return []engine.Command{
		{Facts: protocol.Facts{
			Name: "module", Arity: -2,
			Group: "server", Since: "4.0.0", Complexity: "That of the subcommand",
			Summary: "Modules, which zsetd does not support",
		}, Subcommands: []engine.Command{
			engine.HelpRow(protocol.Facts{Name: "module|help", Group: "server", Since: "5.0.0"},
				"LIST",
				"    The modules that are loaded: none.",
				"LOAD <path> [<arg> ...]",
				"    Loads a module; an error here, as modules are not supported.",
				"LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
				"    As LOAD, with parameters and arguments.",
				"UNLOAD <name>",
				"    Unloads a module; an error here."),
			{Facts: protocol.Facts{
				Name: "module|list", Arity: 2, Flags: "admin noscript",
				Group: "server", Since: "4.0.0", Tips: "nondeterministic_output_order",
				Complexity: "O(1)",
				Summary:    "Always an empty list",
			}, Run: moduleList},
			{Facts: protocol.Facts{
				Name: "module|load", Arity: -3, Flags: "admin noscript no_async_loading protected",
				Group: "server", Since: "4.0.0", Complexity: "O(1)",
				Summary: "Always an error: there are no modules",
				Syntax:  "path [arg [arg ...]]",
			}, Run: moduleLoad, EnabledBy: (*config.Settings).ModuleEnabled},
			{Facts: protocol.Facts{
				Name: "module|loadex", Arity: -3, Flags: "admin noscript no_async_loading protected",
				Group: "server", Since: "7.0.0", Complexity: "O(1)",
				Summary: "Always an error, as MODULE LOAD",
				Syntax:  "path configs:[CONFIG name value [CONFIG name value ...]] [ARGS args [args ...]]",
			}, Run: moduleLoadex, EnabledBy: (*config.Settings).ModuleEnabled},
			{Facts: protocol.Facts{
				Name: "module|unload", Arity: 3, Flags: "admin noscript no_async_loading protected",
				Group: "server", Since: "4.0.0", Complexity: "O(1)",
				Summary: "Always an error, as no module is loaded",
				Syntax:  "name",
			}, Run: moduleUnload, EnabledBy: (*config.Settings).ModuleEnabled},
		}},
	}
}

func moduleList(c *engine.Call) { c.Reply.Array(0) }

// moduleLoad fails as in Redis when a library cannot be loaded.
func moduleLoad(c *engine.Call) {
	path := c.String()
	c.Engine.Log.Warn("cannot load the module: modules are not supported", "path", path)
	c.Reply.Error("ERR Error loading the extension. Please check the server logs.")
}

func moduleLoadex(c *engine.Call) { moduleLoad(c) }

func moduleUnload(c *engine.Call) {
	c.Reply.Error("ERR Error unloading module: no such module with that name")
}
