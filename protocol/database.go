package protocol

// DatabaseArgs says which databases a command uses besides the selected one, or instead
// of it, so that an ACL can restrict them.
type DatabaseArgs uint8

// The databases of a command.
const (
	NoDatabases     DatabaseArgs = iota
	FirstDatabase                // the first argument, instead of the selected one
	FirstDatabases               // the first two arguments, instead of the selected one
	SecondDatabase               // the second argument
	OptionDatabases              // the arguments after each word DB, from the third argument on, as in COPY
	AllDatabases                 // every database
)

// DatabaseRef is a database that an argument of a command names.
type DatabaseRef struct {
	Index int // of the argument; the name of the command has 0
	ID    int
}

// Instead reports whether the databases in the arguments replace the selected one.
func (a DatabaseArgs) Instead() bool { return a == FirstDatabase || a == FirstDatabases }

// Append appends the databases that the words of a command name to list and returns it.
// argv begins with the name of the command, and count is the number of databases. It
// appends nothing if one of them is no database, or if an option of COPY is unknown: then
// the command fails.
func (a DatabaseArgs) Append(list []DatabaseRef, argv [][]byte, count int) []DatabaseRef {
	switch a {
	case FirstDatabase:
		return appendDatabases(list, argv, count, 1)
	case FirstDatabases:
		return appendDatabases(list, argv, count, 1, 2)
	case SecondDatabase:
		return appendDatabases(list, argv, count, 2)
	case OptionDatabases:
		var at []int
		for i := 3; i < len(argv); i++ {
			switch {
			case EqualFold(argv[i], "DB"):
				i++
				at = append(at, i)
			case !EqualFold(argv[i], "REPLACE"):
				return list
			}
		}
		return appendDatabases(list, argv, count, at...)
	}
	return list
}

// appendDatabases appends the databases in the arguments at.
func appendDatabases(list []DatabaseRef, argv [][]byte, count int, at ...int) []DatabaseRef {
	before := len(list)
	for _, i := range at {
		if i >= len(argv) {
			return list[:before]
		}
		id, ok := ParseInt(argv[i])
		if !ok || id < 0 || id >= int64(count) {
			return list[:before]
		}
		list = append(list, DatabaseRef{i, int(id)})
	}
	return list
}
