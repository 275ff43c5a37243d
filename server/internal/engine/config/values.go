//lint:file-ignore ST1005 Errors of CONFIG SET have the wording of Redis.

package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

// maxmemoryClients is a number of bytes, or a percentage of maxmemory.
func maxmemoryClients() Parameter {
	field := func(c *Settings) *int64 { return &c.MaxmemoryClients }
	p := size("maxmemory-clients", 0, 0, math.MaxInt64, field).
		about("Memory limit of all clients together, in bytes or, with `%`, in percent of maxmemory; 0 means no limit. Above it " +
			"the server disconnects the largest clients.").
		accepts("a number of bytes, one with a unit such as 64mb, or a percentage such as 5%")
	p.Get = func(c *Settings) string {
		if c.MaxmemoryClients < 0 {
			return strconv.FormatInt(-c.MaxmemoryClients, 10) + "%"
		}
		return strconv.FormatInt(c.MaxmemoryClients, 10)
	}
	p.Set = func(c *Settings, s string) error {
		digits, percent := strings.CutSuffix(s, "%")
		n, ok := protocol.ParseInt([]byte(digits))
		if !percent {
			n, ok = ParseMemory(s)
		}
		switch {
		case !ok || n < 0:
			return errors.New("argument must be a memory or percent value")
		case percent && n > 100:
			return errors.New("percentage argument must be less or equal to 100")
		case percent:
			n = -n
		}
		c.MaxmemoryClients = n
		return nil
	}
	return p
}

// clockSteps is the parameter clock-steps.
func clockSteps() Parameter {
	return enum("clock-steps", "slew", func(c *Settings) *string { return &c.ClockSteps }, "slew", "follow").
		about("Reaction to a step of the system clock: `slew` follows it by 1 ms per second, so that keys expire neither early nor late; " +
			"`follow` follows it immediately, as Redis does.")
}

var errSaveRules = errors.New("Invalid save parameters")

// isHostname accepts names of hosts.
func isHostname(s string) error {
	if len(s) >= 256 {
		return errors.New("Hostnames must be less than 256 characters")
	}
	for _, c := range []byte(s) {
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.') {
			return errors.New("Hostnames may only contain alphanumeric characters, hyphens or dots")
		}
	}
	return nil
}

// isNodeName accepts names of nodes for people.
func isNodeName(s string) error {
	for _, c := range []byte(s) {
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-._", c) >= 0 || c >= 0x80) {
			return errors.New("Announced human node name contained invalid character")
		}
	}
	return nil
}

// slotStats is the parameter cluster-slot-stats-enabled.
func slotStats() Parameter {
	p := text("cluster-slot-stats-enabled", "no", func(c *Settings) *string { return &c.ClusterSlotStats }).words().
		about("What CLUSTER SLOT-STATS counts for each slot: some of `cpu`, `net` and `mem`, or `yes` for all, `no` for the number of keys only. `mem` cannot be added at run time.")
	p.Set = func(c *Settings, s string) error {
		kinds, ok := metrics.ParseSlotKinds(s)
		if !ok {
			return errors.New("argument(s) must be one of the following: no, yes, cpu, net, mem")
		}
		c.ClusterSlotStats = kinds.String()
		return nil
	}
	return p
}

// renames is the parameter of rename-command lines: pairs of words, in quotes.
func renames() Parameter {
	p := text("rename-command", "", func(c *Settings) *string { return &c.Renames }).immutable().hide().
		about("In configuration files: the name of a command and its new name, or `\"\"` to disable the command.")
	p.lines = true
	return p
}

// shutdownFlags is the parameter for the effect of SIGINT or SIGTERM.
func shutdownFlags(name string, field func(*Settings) *string) Parameter {
	p := text(name, "default", field).words().about("Shutdown options of the signal: `default` saves if there are save rules, `save` always, `nosave` never; `now` " +
		"closes connections immediately; `force` ignores an error of the save.")
	p.Set = func(c *Settings, s string) error {
		var words []string
		for _, word := range []string{"default", "save", "nosave", "now", "force"} { // Redis's order
			if slices.ContainsFunc(strings.Fields(s), func(w string) bool { return strings.EqualFold(w, word) }) {
				words = append(words, word)
			}
		}
		if len(words) != len(strings.Fields(s)) {
			return errors.New("argument(s) must be one of the following: default, save, nosave, now, force")
		}
		if slices.Contains(words, "save") && slices.Contains(words, "nosave") {
			return errors.New("shutdown options SAVE and NOSAVE can't be used simultaneously")
		}
		if len(words) > 1 {
			words = slices.DeleteFunc(words, func(w string) bool { return w == "default" })
		}
		if len(words) == 0 {
			return errors.New("argument(s) must be one of the following: default, save, nosave, now, force")
		}
		*field(c) = strings.Join(words, " ")
		return nil
	}
	return p
}

func classes() Parameter {
	return Parameter{
		Name: "notify-keyspace-events", form: formQuoted,
		Get: func(c *Settings) string { return c.Notify },
		show: func(letters string) string { // n, o and c are not shown beside A, as in Redis
			if others, all := strings.CutPrefix(letters, "A"); all {
				return "A" + strings.TrimLeft(others, "noc")
			}
			return letters
		},
		Set: func(c *Settings, s string) error {
			letters, ok := sortClasses(s)
			if !ok {
				return errors.New("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
			}
			c.Notify = letters
			return nil
		},
	}
}

// The letters of event classes in the order in which CONFIG GET lists them. A stands for
// classesOfA.
const (
	classesOfA   = "g$lshzxetd"
	otherClasses = "nocKEmSTIV"
)

// sortClasses returns the letters of a set of event classes, each once, in the order of
// CONFIG GET.
func sortClasses(s string) (sorted string, ok bool) {
	s = strings.ReplaceAll(s, "A", classesOfA)
	if strings.Trim(s, classesOfA+otherClasses) != "" {
		return "", false
	}
	var b strings.Builder
	for _, letter := range classesOfA + otherClasses {
		if strings.ContainsRune(s, letter) {
			b.WriteRune(letter)
		}
	}
	sorted = b.String()
	if rest, all := strings.CutPrefix(sorted, classesOfA); all {
		sorted = "A" + rest
	}
	return sorted, true
}

func outputLimitParameter() Parameter {
	names := []string{"normal", "slave", "pubsub"}
	return Parameter{
		Name: "client-output-buffer-limit", lines: true, several: true,
		Initial: "normal 1073741824 1048576 60 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
		Doc: "Limits of the output queue of a client: class, hard limit and soft limit in bytes, and the time in seconds that it may be above the soft limit; " +
			"0 means no limit. A client that exceeds them is disconnected. The time of a `normal` client restarts whenever it " +
			"reads output. Redis's default is `normal 0 0 0`: see [What differs](README.md#what-differs-from-redis).",
		Get: func(c *Settings) string {
			var b []string
			for i, l := range c.OutputLimits {
				b = append(b, fmt.Sprintf("%s %d %d %d", names[i], l.Hard, l.Soft, l.Seconds))
			}
			return strings.Join(b, " ")
		},
		Set: func(c *Settings, s string) error {
			words := strings.Fields(s)
			if len(words)%4 != 0 {
				return errors.New("Wrong number of arguments in buffer limit configuration.")
			}
			limits := c.OutputLimits
			for ; len(words) > 0; words = words[4:] {
				class := -1
				for i, name := range names {
					if strings.EqualFold(words[0], name) || i == ReplicaClient && strings.EqualFold(words[0], "replica") {
						class = i
					}
				}
				if class < 0 {
					return errors.New("Invalid client class specified in buffer limit configuration.")
				}
				hard, ok1 := ParseMemory(words[1])
				soft, ok2 := ParseMemory(words[2])
				seconds, err := strconv.ParseInt(words[3], 10, 32)
				if !ok1 || !ok2 || err != nil || seconds < 0 {
					return errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
				}
				limits[class] = OutputLimit{hard, soft, seconds}
			}
			c.OutputLimits = limits
			return nil
		},
	}
}

func percentiles() Parameter {
	return Parameter{
		Name: "latency-tracking-info-percentiles", several: true, Initial: "50 99 99.9",
		Doc: "Percentiles that INFO latencystats reports, from 0 to 100.",
		Get: func(c *Settings) string {
			var b []string
			for _, p := range c.LatencyPercentiles {
				b = append(b, strconv.FormatFloat(p, 'g', -1, 64))
			}
			return strings.Join(b, " ")
		},
		Set: func(c *Settings, s string) error {
			var list []float64
			for _, word := range strings.Fields(s) {
				p, ok := protocol.ParseFloat([]byte(word))
				if !ok || p < 0 || p > 100 {
					return errors.New("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
				}
				list = append(list, p)
			}
			c.LatencyPercentiles = list
			return nil
		},
	}
}

// saveRules is the parameter save.
func saveRules() Parameter {
	return Parameter{
		Name: "save", lines: true, several: true,
		Doc: "Save rules: pairs of an interval in seconds and a number of changes. `1 1` saves every second if there is a change; " +
			"empty disables saving. The default is `1 1` if there is a data file.",
		Get: func(c *Settings) string {
			var words []string
			for _, r := range c.Save {
				words = append(words, strconv.FormatInt(r.Seconds, 10), strconv.FormatInt(r.Changes, 10))
			}
			return strings.Join(words, " ")
		},
		Set: func(c *Settings, s string) error {
			words := strings.Fields(s)
			var rules []SaveRule
			for i := 0; i < len(words); i += 2 {
				if i+1 == len(words) {
					return errSaveRules
				}
				seconds, ok1 := protocol.ParseInt([]byte(words[i]))
				changes, ok2 := protocol.ParseInt([]byte(words[i+1]))
				if !ok1 || !ok2 || seconds < 1 || seconds > math.MaxInt32 || changes < 0 {
					return errSaveRules
				}
				rules = append(rules, SaveRule{seconds, changes})
			}
			c.Save = rules
			return nil
		},
	}
}

// directory is the parameter dir.
func directory() Parameter {
	p := text("dir", ".", func(c *Settings) *string { return &c.Dir })
	p.Get = func(c *Settings) string {
		if path, err := filepath.Abs(c.Dir); err == nil {
			return path
		}
		return c.Dir
	}
	return p.check(func(s string) error {
		if info, err := os.Stat(s); err != nil {
			return err
		} else if !info.IsDir() {
			return fmt.Errorf("%s: not a directory", s)
		}
		return nil
	})
}

// isFileName refuses paths.
func isFileName(s string) error {
	if s != "" && (s != filepath.Base(s) || s == "." || s == "..") {
		return errors.New("dbfilename can't be a path, just a filename")
	}
	return nil
}
