package process

import (
	"runtime/debug"
	"strings"
)

// RedisVersion is the version of Redis whose commands and replies zsetd implements. Clients read it
// to find out which features they may use.
const RedisVersion = "8.6.3"

// ExtensionVersion is the version in COMMAND DOCS for commands that Redis does not have: the version
// of zsetd that introduced them.
const ExtensionVersion = "zsetd 0.1.0"

// Build returns the version that the program was built from, as far as known.
func Build() (number, revision, dirty string) {
	const module = "github.com/zsetd/zsetd"
	number, revision, dirty = "unknown", strings.Repeat("0", 40), "0"
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return number, revision, dirty
	}
	if build.Main.Path != module {
		for _, dep := range build.Deps {
			if dep.Path == module {
				number = dep.Version
			}
		}
		return number, revision, dirty
	}
	number = build.Main.Version
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 16:
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "1"
		}
	}
	return number, revision, dirty
}
