package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// generalHelp is the text of help without a topic.
const generalHelp = `  help COMMAND     describe a command
  help @GROUP      describe the commands of a group, such as help @sorted-set
  help <tab>       list the topics
  N COMMAND        run a command N times
  connect H P      connect to another server
  :set nohints     show no arguments while you type; :set hints shows them
  clear            clear the screen
  quit, exit       leave

A word in double quotes may have \n, \r, \t, \b, \a, \", \\ and \x00. REDISCLI_HISTFILE
names the file of the history, ~/.zsetdcli_history without it.
`

// help returns the text about a topic: "" for a general one, the name of a command or
// @group. colors marks it for a terminal.
func (all commands) help(words []string, colors bool) string {
	topic := strings.ToLower(strings.Join(words, " "))
	if topic == "" {
		return generalHelp
	}
	var found []*command
	for name, c := range all {
		group, isGroup := strings.CutPrefix(topic, "@")
		switch {
		case isGroup && c.group == group:
		case !isGroup && (name == topic || strings.HasPrefix(name, topic+" ")):
		default:
			continue
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for _, c := range found {
		mark := func(code, text string) string {
			if !colors {
				return text
			}
			return "\x1b[" + code + "m" + text + "\x1b[0m"
		}
		fmt.Fprintf(&b, "\n  %s", mark("1", strings.ToUpper(c.name)))
		if usage := protocol.Usage(c.arguments); usage != "" {
			fmt.Fprintf(&b, " %s", mark("90", usage))
		}
		fmt.Fprintf(&b, "\n  %s %s\n", mark("33", "summary:"), c.summary)
		fmt.Fprintf(&b, "  %s %s\n  %s %s\n", mark("33", "since:"), c.since, mark("33", "group:"), c.group)
	}
	return b.String() + "\n"
}
