package server

import (
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/config"
	"github.com/zsetd/zsetd/server/internal/wiring"
)

// Commands returns the metadata of all commands that a server has by default, by
// their names in lower case. Subcommands are in those of their containers.
func Commands() map[string]*protocol.Command {
	all := map[string]*protocol.Command{}
	for _, c := range engine.NewTable(wiring.Families()).Rows {
		all[c.Name] = c.Spec
	}
	return all
}

// Parameter describes a parameter of the configuration.
type Parameter struct {
	Name, Alias string   // Alias is a second name, of older versions of Redis, or ""
	Default     string   // as in redis.conf, without quotes
	Accepts     string   // the values that it accepts, in words; empty if Doc says it
	Values      []string // those values, if they are a few words
	Doc         string   // what it does; of one without effect, the reason
	Fixed       bool     // CONFIG SET cannot change it
	NoEffect    bool     // it is accepted, and CONFIG GET returns it, as in Redis
}

// Parameters returns the parameters of redis.conf and of the command line, in the order of
// PARAMETERS.md in this directory. Two declarations are not among them: user and include.
func Parameters() []Parameter {
	plain := strings.NewReplacer("`", "", "[What differs](README.md#what-differs-from-redis)", "What differs from Redis in server/README.md")
	var all []Parameter
	for _, p := range config.Parameters() {
		all = append(all, Parameter{
			Name: p.Name, Alias: p.Alias, Default: p.Initial, Accepts: p.Accepts, Values: p.Values, Doc: plain.Replace(p.Doc),
			Fixed: p.Fixed, NoEffect: p.Kept,
		})
	}
	return all
}
