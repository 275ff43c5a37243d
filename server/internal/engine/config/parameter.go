//lint:file-ignore ST1005 Errors of CONFIG SET have the wording of Redis.

package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// Parameter is a row of the table.
type Parameter struct {
	Name, Alias string
	Initial     string // the default
	Doc         string
	Accepts     string   // the values that Set accepts, in words; empty if Doc says it
	Values      []string // those values, if they are a few words
	Fixed       bool     // can only be set before the server starts
	Protected   bool     // protected: would let a client act on the machine
	several     bool     // its value may be several words in a file
	lines       bool     // lines in a file accumulate
	Kept        bool     // accepted without effect
	Refused     bool     // accepts one value only
	Hidden      bool     // not matched by patterns
	FileOnly    bool     // CONFIG GET and SET do not know it
	form        form
	Secret      bool                   // not shown in the slow log and to MONITOR
	Get         func(*Settings) string // in the form that Set accepts
	Set         func(*Settings, string) error
	show        func(value string) string // as CONFIG GET shows it; nil: as it is
}

// Shown returns the value as CONFIG GET shows it.
func (p *Parameter) Shown(c *Settings) string {
	if p.show != nil {
		return p.show(p.Get(c))
	}
	return p.Get(c)
}

func (p Parameter) about(doc string) Parameter { p.Doc = doc; return p }

func (p Parameter) accepts(forms string) Parameter { p.Accepts = forms; return p }

func (p Parameter) also(alias string) Parameter { p.Alias = alias; return p }

func (p Parameter) words() Parameter { p.form, p.several = formWords, true; return p }

func (p Parameter) secret() Parameter { p.Secret = true; return p }

func (p Parameter) immutable() Parameter { p.Fixed = true; return p }

func (p Parameter) protect() Parameter { p.Fixed, p.Protected = true, true; return p }

func (p Parameter) check(ok func(string) error) Parameter {
	set := p.Set
	p.Set = func(c *Settings, s string) error {
		if err := ok(s); err != nil {
			return err
		}
		return set(c, s)
	}
	return p
}

func text(name, initial string, field func(*Settings) *string) Parameter {
	return Parameter{Name: name, Initial: initial, form: formQuoted,
		Get: func(c *Settings) string { return *field(c) },
		Set: func(c *Settings, s string) error { *field(c) = s; return nil }}
}

func number(name string, initial, lo, hi int64, field func(*Settings) *int64) Parameter {
	return Parameter{Name: name, Initial: strconv.FormatInt(initial, 10), Accepts: "a number " + bounds(lo, hi),
		Get: func(c *Settings) string { return strconv.FormatInt(*field(c), 10) },
		Set: func(c *Settings, s string) error {
			n, ok := protocol.ParseInt([]byte(s))
			if !ok {
				return errors.New("argument couldn't be parsed into an integer")
			}
			return within(field(c), n, lo, hi)
		}}
}

// size is a number that may be written with a unit: 1k, 1kb, 5MB, 1g.
func size(name string, initial, lo, hi int64, field func(*Settings) *int64) Parameter {
	p := number(name, initial, lo, hi, field)
	p.form = formBytes
	p.Accepts = "a number of bytes, or one with a unit: 1kb, 1mb or 1gb for powers of 1024; 1k, 1m or 1g for powers of 1000"
	p.Set = func(c *Settings, s string) error {
		n, ok := ParseMemory(s)
		if lo < 0 && !ok {
			n, ok = protocol.ParseInt([]byte(s))
		}
		if !ok {
			return errors.New("argument must be a memory value")
		}
		return within(field(c), n, lo, hi)
	}
	return p
}

// bounds describes the numbers from lo to hi in words.
func bounds(lo, hi int64) string {
	switch {
	case hi >= math.MaxUint32:
		return fmt.Sprintf("of at least %d", lo)
	case lo <= math.MinInt32:
		return fmt.Sprintf("of at most %d", hi)
	}
	return fmt.Sprintf("from %d to %d", lo, hi)
}

func within(field *int64, n, lo, hi int64) error {
	if n < lo || n > hi {
		return fmt.Errorf("argument must be between %d and %d inclusive", lo, hi)
	}
	*field = n
	return nil
}

func yesNo(name string, initial bool, field func(*Settings) *bool) Parameter {
	p := Parameter{Name: name, Initial: "no", Values: []string{"yes", "no"},
		Get: func(c *Settings) string {
			if *field(c) {
				return "yes"
			}
			return "no"
		},
		Set: func(c *Settings, s string) error {
			yes := strings.EqualFold(s, "yes")
			if !yes && !strings.EqualFold(s, "no") {
				return errors.New("argument must be 'yes' or 'no'")
			}
			*field(c) = yes
			return nil
		}}
	if initial {
		p.Initial = "yes"
	}
	return p
}

func enum(name, initial string, field func(*Settings) *string, words ...string) Parameter {
	p := text(name, initial, field)
	p.form, p.Values = formWords, words
	p.Set = func(c *Settings, s string) error {
		for _, word := range words {
			if strings.EqualFold(s, word) {
				*field(c) = word
				return nil
			}
		}
		return errors.New("argument(s) must be one of the following: " + strings.Join(words, ", "))
	}
	return p
}

// octal is a file mode; 0 leaves the mode that the system gives.
func octal(name string, field func(*Settings) *string) Parameter {
	p := text(name, "0", field)
	p.form, p.Accepts = formWords, "an octal number from 0 to 777"
	p.Set = func(c *Settings, s string) error {
		n, err := strconv.ParseUint(s, 8, 32)
		if err != nil || n > 0o777 {
			return errors.New("argument must be an octal number between 0 and 777")
		}
		*field(c) = strconv.FormatUint(n, 8)
		return nil
	}
	return p
}

// ParseMemory parses a number of bytes with an optional unit, as redis.conf defines
// them: k and kb differ.
func ParseMemory(s string) (int64, bool) {
	digits := strings.TrimRight(strings.ToLower(s), "kmgb")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits == "" {
		return 0, false
	}
	unit := int64(0)
	switch strings.ToLower(s)[len(digits):] {
	case "", "b":
		unit = 1
	case "k":
		unit = 1000
	case "kb":
		unit = 1 << 10
	case "m":
		unit = 1000 * 1000
	case "mb":
		unit = 1 << 20
	case "g":
		unit = 1000 * 1000 * 1000
	case "gb":
		unit = 1 << 30
	}
	if unit == 0 || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

// Defaults returns the settings of a server without a configuration.
func Defaults() Settings {
	var c Settings
	for _, p := range Parameters() {
		if err := p.Set(&c, p.Initial); err != nil {
			panic("BUG: parameter " + p.Name + ": " + err.Error())
		}
	}
	return c
}

// ForClients returns the parameters that CONFIG GET and CONFIG SET know.
func ForClients() []Parameter {
	return slices.DeleteFunc(Parameters(), func(p Parameter) bool { return p.FileOnly })
}

// Find returns the parameter of that name, ignoring case.
func Find(table []Parameter, name string) *Parameter {
	for i := range table {
		if p := &table[i]; strings.EqualFold(p.Name, name) || p.Alias != "" && strings.EqualFold(p.Alias, name) {
			return p
		}
	}
	return nil
}
