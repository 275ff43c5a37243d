package acl

import (
	"slices"
	"strconv"
	"strings"

	"github.com/zsetd/zsetd/protocol"
)

// databases is the set of databases that a selector permits. Valkey's rules restrict it:
// db=0,1 alldbs resetdbs. Without one, all are permitted, those of a new selector.
type databases struct {
	restricted bool
	list       []int // in ascending order, if restricted
}

// has reports whether d holds a database.
func (d *databases) has(id int) bool {
	_, found := slices.BinarySearch(d.list, id)
	return !d.restricted || found
}

// hasAll reports whether d holds the databases below count.
func (d *databases) hasAll(count int) bool {
	below, _ := slices.BinarySearch(d.list, count)
	return !d.restricted || below == count
}

// parseDatabases parses the rule db=0,1.
func parseDatabases(rule string) (d databases, err error) {
	d.restricted = true
	for text := range strings.SplitSeq(rule[len("db="):], ",") {
		text = strings.TrimLeft(text, " \t\n\v\f\r")
		digits := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+"), "0123456789")
		id, err := strconv.ParseInt(text, 10, 32)
		switch {
		case digits != "" || text == "" || text == "-" || text == "+":
			return databases{}, errRuleSyntax
		case err != nil || id < 0:
			return databases{}, errRuleDatabase
		}
		d.list = append(d.list, int(id))
	}
	slices.Sort(d.list)
	d.list = slices.Compact(d.list)
	return d, nil
}

// describe returns the rule that permits d: alldbs without a restriction.
func (d *databases) describe() string {
	if !d.restricted {
		return "alldbs"
	}
	if len(d.list) == 0 {
		return "resetdbs"
	}
	b := []byte("db=")
	for i, id := range d.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return string(b)
}

// DescribeDatabases returns the databases of a selector, as ACL GETUSER shows them: "" if
// there are none.
func (s *Selector) DescribeDatabases() string {
	if s.databases.restricted && len(s.databases.list) == 0 {
		return ""
	}
	return s.databases.describe()
}

// RestrictsDatabases reports whether a selector of u lacks databases.
func (u *User) RestrictsDatabases() bool {
	return slices.ContainsFunc(u.Selectors, func(s Selector) bool { return s.databases.restricted })
}

// Selected is the state of a session that decides which databases a command uses.
type Selected struct {
	ID    int // of the selected database
	Count int // of the server's databases
}

// permits reports whether d holds the databases of a command, and if not, which argument
// names another one: 0 if none does.
func (d *databases) permits(cmd *Command, argv [][]byte, db Selected) (ok bool, at int) {
	if !d.restricted {
		return true, 0
	}
	if cmd.Databases == protocol.AllDatabases && !d.hasAll(db.Count) {
		return false, 0
	}
	var few [4]protocol.DatabaseRef
	for _, ref := range cmd.Databases.Append(few[:0], argv, db.Count) {
		if !d.has(ref.ID) {
			return false, ref.Index
		}
	}
	return !cmd.usesSelected || d.has(db.ID), 0
}

// usesSelected reports whether a command uses the selected database: it reads or writes
// data, or has keys.
func usesSelected(cmd *protocol.Command) bool {
	return !cmd.Databases.Instead() && (cmd.Flags().Has(protocol.ReadOnly|protocol.Write) ||
		cmd.Categories().Has(protocol.CategoryKeyspace) ||
		slices.ContainsFunc(cmd.KeySpecs(), func(k protocol.KeySpec) bool { return !k.Flags.Has(protocol.KeyNot) }))
}
