package protocol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Facts is the static metadata of a command: its row in the command table without
// the handler. [Compile] derives what follows from other fields: ACL categories
// from the group and the flags, the legacy triple of first key, last key and step
// from the key specs, and the argument tree from the syntax.
type Facts struct {
	Name  string // lower case; a subcommand is "config|get"
	Arity int    // number of words including the name; -3 means three or more
	Flags string // Redis's names, separated by spaces: "write denyoom fast"

	// Keys gives the positions and the access of the keys: key specs, separated by
	// semicolons, or "" for a command without keys. A spec is a position, Redis's
	// flags for the key, and an optional note in parentheses:
	//
	//	1 RW update                   one key, the first argument
	//	1..-1 RO access               from the first argument to the last
	//	1..-1/2 OW update             the same, every second argument
	//	1..+1 RO access               the first argument and one more
	//	2# RO access                  argument 2 is the number of keys, which follow it
	//	1/2# OW update                the same, every second argument that follows
	//	STORE@5 OW update             after the word STORE, searched from argument 5 on
	//	KEYS@-2..-1 RW access         after the word KEYS, searched backwards from the end
	//	STREAMS@1..-1%2 RO access     after STREAMS, the first half of the rest
	//	? OW update (why)             not expressible
	Keys string

	KeysBy KeyFinder // finds keys, or their flags, that Keys cannot express

	Channels  ChannelArgs  // the arguments that are pub/sub channels
	Databases DatabaseArgs // the databases, unless only the selected one

	Group      string // as in COMMAND DOCS: "sorted-set"
	Since      string // first version with the command
	Complexity string // "O(log(N))"
	Summary    string // one sentence

	// Syntax describes the arguments in the notation of redis.io, from which
	// COMMAND DOCS derives its tree. [ParseSyntax] specifies it.
	Syntax string

	History    []string // "6.2.0 Added …": a version, a space, the change
	Categories string   // ACL categories instead of those of the group: "keyspace dangerous", "none"
	Tips       string   // command tips, separated by spaces
	Deprecated string   // version that deprecated the command
	ReplacedBy string   // replacement: "`GEOSEARCH`"
	System     bool     // internal ("syscmd" in COMMAND DOCS)
}

// ChannelArgs says which arguments of a command name pub/sub channels that the ACL
// checks.
type ChannelArgs uint8

// The positions of channels.
const (
	NoChannels   ChannelArgs = iota
	FirstChannel             // the first argument
	EveryChannel             // all arguments
	EveryPattern             // all arguments, which are patterns of channels
)

// Of returns the channels in the words of a command, of which the first is its name.
func (a ChannelArgs) Of(argv [][]byte) [][]byte {
	switch {
	case a == NoChannels || len(argv) < 2:
		return nil
	case a == FirstChannel:
		return argv[1:2]
	}
	return argv[1:]
}

// Flags is the set of a command's flags.
type Flags uint64

// The flags, in the order of COMMAND INFO, which omits MayReplicate and Protected.
const (
	Write           Flags = 1 << iota // changes data
	ReadOnly                          // reads data
	DenyOOM                           // rejected when memory is exhausted
	Module                            // comes from a module
	Admin                             // administration: @admin and @dangerous
	PubSub                            // publish and subscribe
	NoScript                          // not allowed in scripts
	Blocking                          // may block
	Loading                           // allowed while data is loaded
	Stale                             // allowed on a replica with stale data
	SkipMonitor                       // hidden from MONITOR
	SkipSlowlog                       // excluded from the slow log
	Asking                            // implies ASKING in a cluster
	Fast                              // constant or logarithmic time
	NoAuth                            // allowed before authentication
	MayReplicate                      // may cause replication although it writes nothing
	NoMandatoryKeys                   // may have no keys in spite of its key specs
	Protected                         // needs a permission in the configuration
	NoAsyncLoading                    // not allowed during asynchronous loading
	NoMulti                           // not allowed in MULTI
	MovableKeys                       // first, last and step do not cover all keys; derived
	AllowBusy                         // allowed while a script exceeds its time limit
)

func flagNames() []string {
	return []string{
		"write", "readonly", "denyoom", "module", "admin", "pubsub", "noscript", "blocking", "loading", "stale",
		"skip_monitor", "skip_slowlog", "asking", "fast", "no_auth", "may_replicate", "no_mandatory_keys",
		"protected", "no_async_loading", "no_multi", "movablekeys", "allow_busy",
	}
}

// Has reports whether f holds any of the flags of g.
func (f Flags) Has(g Flags) bool { return f&g != 0 }

// Names returns the flags as COMMAND INFO names them.
func (f Flags) Names() []string { return namesOf(uint64(f&^(MayReplicate|Protected)), flagNames()) }

// Categories is the set of a command's ACL categories.
type Categories uint64

// The ACL categories, in Redis's order.
const (
	CategoryKeyspace Categories = 1 << iota
	CategoryRead
	CategoryWrite
	CategorySet
	CategorySortedSet
	CategoryList
	CategoryHash
	CategoryString
	CategoryBitmap
	CategoryHyperLogLog
	CategoryGeo
	CategoryStream
	CategoryPubSub
	CategoryAdmin
	CategoryFast
	CategorySlow
	CategoryBlocking
	CategoryDangerous
	CategoryConnection
	CategoryTransaction
	CategoryScripting
)

// CategoryNames returns the names of all ACL categories in Redis's order, as
// ACL CAT lists them. The category with index i is the bit 1<<i.
func CategoryNames() []string {
	return []string{
		"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo",
		"stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
	}
}

// Has reports whether c holds any of the categories of d.
func (c Categories) Has(d Categories) bool { return c&d != 0 }

// Names returns the categories without the "@".
func (c Categories) Names() []string { return namesOf(uint64(c), CategoryNames()) }

// KeyFlags is the set of a command's operations on a key.
type KeyFlags uint32

// The flags of keys, in Redis's order.
const (
	KeyRO            KeyFlags = 1 << iota // reads the value
	KeyRW                                 // reads and changes the value
	KeyOW                                 // overwrites the value
	KeyRM                                 // removes the key
	KeyAccess                             // returns or copies the user's data
	KeyUpdate                             // changes existing data
	KeyInsert                             // adds data and changes none
	KeyDelete                             // deletes data in the value
	KeyNot                                // not a key, but routed like one (a shard channel)
	KeyIncomplete                         // the spec may miss keys
	KeyVariableFlags                      // the flags depend on other arguments
	KeyCompares                           // the outcome reveals the value; of zsetd only, and in no reply
)

func keyFlagNames() []string {
	return []string{
		"RO", "RW", "OW", "RM", "access", "update", "insert", "delete", "not_key", "incomplete", "variable_flags", "compares",
	}
}

// Has reports whether f holds any of the flags of g.
func (f KeyFlags) Has(g KeyFlags) bool { return f&g != 0 }

// Names returns the flags as COMMAND INFO names them.
func (f KeyFlags) Names() []string { return namesOf(uint64(f&^KeyCompares), keyFlagNames()) }

// KeySpec describes the positions of keys in a command. Index, or Keyword and From,
// give the begin of the search; Last, Step and Limit, or Numkeys, select the keys
// from there.
type KeySpec struct {
	Note    string
	Flags   KeyFlags
	Unknown bool   // the positions are not expressible
	Index   int    // begin of the search, unless Keyword is set
	Keyword string // the search begins after this word,
	From    int    // which is searched from here on; negative: backwards from the end
	Numkeys bool   // the first word is the number of keys that follow it
	Last    int    // last key: relative to the first; negative: relative to the end
	Step    int    // distance between keys
	Limit   int    // with Last -1: restricts the keys to this fraction of the rest (2: half)
}

// Command is compiled metadata: validated, with all derived fields. It is
// immutable, so concurrent use is safe.
type Command struct {
	Facts

	flags       Flags
	categories  Categories
	tips        []string
	keys        []KeySpec
	first       int // legacy key triple
	last        int
	step        int
	arguments   []Argument
	subcommands []*Command
}

// Compile validates the facts of a command and derives the rest. It returns an
// error for facts that it cannot parse.
func Compile(f Facts, subcommands ...*Command) (*Command, error) {
	c := &Command{Facts: f, tips: strings.Fields(f.Tips), subcommands: subcommands}
	fail := func(err error) (*Command, error) { return nil, fmt.Errorf("command %q: %w", f.Name, err) }
	if f.Name == "" || f.Name != strings.ToLower(f.Name) || f.Arity == 0 {
		return fail(fmt.Errorf("bad name or arity %d", f.Arity))
	}
	bits, err := bitsOf(f.Flags, flagNames())
	if err != nil {
		return fail(err)
	}
	c.flags = Flags(bits)
	if c.keys, err = parseKeySpecs(f.Keys); err != nil {
		return fail(err)
	}
	c.setLegacyKeys()
	if c.categories, err = c.deriveCategories(); err != nil {
		return fail(err)
	}
	if c.arguments, err = ParseSyntax(f.Syntax, len(c.keys)); err != nil {
		return fail(err)
	}
	return c, nil
}

// Flags returns the flags, including MovableKeys.
func (c *Command) Flags() Flags { return c.flags }

// Categories returns the ACL categories.
func (c *Command) Categories() Categories { return c.categories }

// Tips returns the command tips for COMMAND INFO.
func (c *Command) Tips() []string { return c.tips }

// KeySpecs returns the key specs. The caller must not modify them.
func (c *Command) KeySpecs() []KeySpec { return c.keys }

// LegacyKeys returns the first key, the last key (negative: relative to the end)
// and the step between keys, as far as these three numbers can express the key
// positions.
func (c *Command) LegacyKeys() (first, last, step int) { return c.first, c.last, c.step }

// Arguments returns the argument tree of COMMAND DOCS. The caller must not modify
// it.
func (c *Command) Arguments() []Argument { return c.arguments }

// Subcommands returns the subcommands of a container command.
func (c *Command) Subcommands() []*Command { return c.subcommands }

// DocFlags returns the flags of COMMAND DOCS.
func (c *Command) DocFlags() []string {
	var names []string
	if c.Deprecated != "" {
		names = append(names, "deprecated")
	}
	if c.System {
		names = append(names, "syscmd")
	}
	return names
}

// EachHistory calls f for each version that changed the command, in order.
func (c *Command) EachHistory(f func(version, change string)) {
	for _, h := range c.History {
		version, change, _ := strings.Cut(h, " ")
		f(version, change)
	}
}

// ArityOK reports whether n is a valid number of words, including the name (of a
// subcommand, both names).
func (c *Command) ArityOK(n int) bool {
	if c.Arity > 0 {
		return n == c.Arity
	}
	return n >= -c.Arity
}

// HasKeys reports whether the command can have keys. If not, COMMAND GETKEYS
// replies "The command has no key arguments".
func (c *Command) HasKeys() bool {
	for i := range c.keys {
		if !c.keys[i].Flags.Has(KeyNot) {
			return true
		}
	}
	return false
}

// setLegacyKeys derives first, last and step from the specs that are ranges, and
// sets MovableKeys if these do not cover all keys.
func (c *Command) setLegacyKeys() {
	if len(c.keys) == 1 && c.keys[0].isRange() {
		s := c.keys[0]
		c.first, c.last, c.step = s.Index, s.Last, s.Step
		if s.Last >= 0 {
			c.last += s.Index
		}
		if s.Flags.Has(KeyIncomplete) {
			c.flags |= MovableKeys
		}
		return
	}
	for _, s := range c.keys {
		if !s.isRange() || s.Step != 1 || c.last != 0 && c.last != s.Index-1 {
			c.flags |= MovableKeys
			continue
		}
		if s.Flags.Has(KeyIncomplete) {
			c.flags |= MovableKeys
		}
		last := s.Last
		if last >= 0 {
			last += s.Index
		}
		if c.first == 0 || s.Index < c.first {
			c.first = s.Index
		}
		if c.last >= 0 && (last < 0 || last > c.last) { // a position relative to the end is beyond all others
			c.last = last
		}
		c.step = 1
	}
}

func (s *KeySpec) isRange() bool { return !s.Unknown && s.Keyword == "" && !s.Numkeys }

// deriveCategories returns the categories of the group, or those that the facts
// give instead, plus those that follow from flags.
func (c *Command) deriveCategories() (Categories, error) {
	var cat Categories
	switch {
	case c.Facts.Categories != "":
		names := c.Facts.Categories
		if names == "none" {
			names = ""
		}
		bits, err := bitsOf(names, CategoryNames())
		if err != nil {
			return 0, err
		}
		cat = Categories(bits)
	case len(c.subcommands) > 0: // a container does no work itself
	default:
		cat = groupCategory(c.Group)
	}
	if c.flags.Has(Write) {
		cat |= CategoryWrite
	}
	if c.flags.Has(ReadOnly) && !cat.Has(CategoryScripting) {
		cat |= CategoryRead
	}
	if c.flags.Has(Admin) {
		cat |= CategoryAdmin | CategoryDangerous
	}
	if c.flags.Has(PubSub) {
		cat |= CategoryPubSub
	}
	if c.flags.Has(Blocking) {
		cat |= CategoryBlocking
	}
	if c.flags.Has(Fast) {
		cat |= CategoryFast
	} else {
		cat |= CategorySlow
	}
	return cat, nil
}

func groupCategory(group string) Categories {
	switch group {
	case "generic":
		return CategoryKeyspace
	case "set":
		return CategorySet
	case "sorted-set":
		return CategorySortedSet
	case "list":
		return CategoryList
	case "hash":
		return CategoryHash
	case "string":
		return CategoryString
	case "bitmap":
		return CategoryBitmap
	case "hyperloglog":
		return CategoryHyperLogLog
	case "geo":
		return CategoryGeo
	case "stream":
		return CategoryStream
	case "connection":
		return CategoryConnection
	case "transactions":
		return CategoryTransaction
	case "scripting":
		return CategoryScripting
	}
	return 0
}

// parseKeySpecs parses the notation of [Facts].
func parseKeySpecs(text string) ([]KeySpec, error) {
	if text == "" {
		return nil, nil
	}
	var specs []KeySpec
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		s := KeySpec{Step: 1}
		if before, note, ok := strings.Cut(part, " ("); ok {
			if s.Note, ok = strings.CutSuffix(note, ")"); !ok {
				return nil, fmt.Errorf("key spec %q: the note has no end", part)
			}
			part = before
		}
		position, flags, _ := strings.Cut(part, " ")
		bits, err := bitsOf(flags, keyFlagNames())
		if err != nil {
			return nil, err
		}
		s.Flags = KeyFlags(bits)
		if err := s.parsePosition(position); err != nil {
			return nil, fmt.Errorf("key spec %q: %w", part, err)
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func (s *KeySpec) parsePosition(position string) (err error) {
	number := func(t string) int {
		n, e := strconv.Atoi(t)
		if e != nil {
			err = e
		}
		return n
	}
	if position == "?" {
		s.Unknown = true
		return nil
	}
	if rest, ok := strings.CutSuffix(position, "#"); ok {
		s.Numkeys, position = true, rest
	}
	if rest, limit, ok := strings.Cut(position, "%"); ok {
		s.Limit, position = number(limit), rest
	}
	if rest, step, ok := strings.Cut(position, "/"); ok {
		s.Step, position = number(step), rest
	}
	if rest, last, ok := strings.Cut(position, ".."); ok {
		s.Last, position = number(last), rest
	}
	if word, from, ok := strings.Cut(position, "@"); ok {
		s.Keyword, s.From = word, number(from)
	} else {
		s.Index = number(position)
	}
	if err == nil && s.Step < 1 {
		err = fmt.Errorf("bad step %d", s.Step)
	}
	return err
}

// KeyRef is a key in a concrete command line.
type KeyRef struct {
	Index int      // index in argv
	Flags KeyFlags // operations on the key
}

// AppendKeys appends the positions of the keys in argv, which begins with the
// command's name, to dst. A malformed command has no keys; the caller decides
// whether that is an error (see [NoMandatoryKeys]). It does not allocate if dst has
// capacity. O(len(argv)).
//
// The results equal those of Redis, also for malformed commands: a number of keys
// such as "1x" counts as 1, and the flags are then empty. The exceptions are
// appendSetKeys and appendGeoradiusKeys.
func (c *Command) AppendKeys(dst []KeyRef, argv [][]byte) []KeyRef {
	n := len(dst)
	switch c.KeysBy {
	case KeysOfSet, KeysOfDelex, KeysOfBitfield, KeysOfGeoradius:
		return c.appendSpecial(dst, argv)
	}
	for i := range c.keys {
		s := &c.keys[i]
		if s.Flags.Has(KeyNot) {
			continue
		}
		var ok bool
		if dst, ok = s.appendKeys(dst, argv); !ok {
			return c.appendSpecial(dst[:n], argv)
		}
	}
	return dst
}

// AppendHashed is AppendKeys plus the arguments that are no keys and have a slot of
// a cluster: sharded channels.
func (c *Command) AppendHashed(dst []KeyRef, argv [][]byte) []KeyRef {
	dst = c.AppendKeys(dst, argv)
	for i := range c.keys {
		if s := &c.keys[i]; s.Flags.Has(KeyNot) {
			dst, _ = s.appendKeys(dst, argv)
		}
	}
	return dst
}

// appendKeys appends the keys of s. It returns false if s cannot determine all of
// them.
func (s *KeySpec) appendKeys(dst []KeyRef, argv [][]byte) ([]KeyRef, bool) {
	if s.Unknown {
		return dst, false
	}
	first, last := s.Index, 0
	if s.Keyword != "" {
		if first = s.find(argv); first == 0 {
			return dst, true
		}
	}
	switch {
	case s.Numkeys:
		if first >= len(argv) {
			return dst, false
		}
		n, ok := ParseInt(argv[first])
		if !ok {
			return dst, false
		}
		first++
		last = first + (int(int32(n))-1)*s.Step // truncated to 32 bits, as in Redis
	case s.Last >= 0:
		last = first + s.Last
	case s.Limit == 0:
		last = len(argv) + s.Last
	default:
		last = first + (len(argv)-first)/s.Limit + s.Last
	}
	if last >= len(argv) || last < first || first >= len(argv) {
		return dst, false
	}
	for i := first; i <= last; i += s.Step {
		dst = append(dst, KeyRef{i, s.Flags})
	}
	return dst, !s.Flags.Has(KeyIncomplete)
}

// find returns the index after the keyword, or 0. As in Redis, the last word is not
// a candidate and, in a backward search, neither is the first argument.
func (s *KeySpec) find(argv [][]byte) int {
	if s.From > 0 {
		for i := s.From; i < len(argv)-1; i++ {
			if EqualFold(argv[i], s.Keyword) {
				return i + 1
			}
		}
		return 0
	}
	for i := len(argv) + s.From; i > 1; i-- {
		if EqualFold(argv[i], s.Keyword) {
			return i + 1
		}
	}
	return 0
}

// KeyFinder is a rule for keys, or their flags, that key specs cannot express.
type KeyFinder uint8

// The rules: each is that of one family of commands.
const (
	KeysBySpecs KeyFinder = iota
	KeysOfSet
	KeysOfDelex
	KeysOfBitfield
	KeysOfSort
	KeysOfMigrate
	KeysOfStreams
	KeysOfGeoradius
)

// appendSpecial appends keys, or their flags, that the specs cannot express.
func (c *Command) appendSpecial(dst []KeyRef, argv [][]byte) []KeyRef {
	switch c.KeysBy {
	case KeysOfSet:
		return appendSetKeys(dst, argv)
	case KeysOfDelex:
		return appendDelexKeys(dst, argv)
	case KeysOfBitfield:
		return appendBitfieldKeys(dst, argv)
	case KeysOfSort:
		return appendSortKeys(dst, argv, c.flags.Has(Write))
	case KeysOfMigrate:
		return appendMigrateKeys(dst, argv)
	case KeysOfStreams:
		return appendStreamsKeys(dst, argv)
	case KeysOfGeoradius:
		return appendGeoradiusKeys(dst, argv, c.keys[1].From)
	}
	store, numkeys := 0, 0
	for i := range c.keys {
		if c.keys[i].Numkeys && c.keys[i].Step == 1 {
			numkeys = c.keys[i].Index
		} else {
			store = c.keys[i].Index
		}
	}
	if numkeys == 0 || numkeys >= len(argv) {
		return dst
	}
	first, n := numkeys+1, leadingInt(argv[numkeys])
	if n < 1 || n > len(argv)-first {
		return dst
	}
	for i := range n {
		dst = append(dst, KeyRef{Index: first + i})
	}
	if store != 0 {
		dst = append(dst, KeyRef{Index: store})
	}
	return dst
}

// appendSetKeys distinguishes SET with GET, which reads, and SET with a comparison from
// plain SET.
func appendSetKeys(dst []KeyRef, argv [][]byte) []KeyRef {
	if len(argv) < 2 {
		return dst
	}
	flags := KeyOW | KeyUpdate
	for _, arg := range argv[min(3, len(argv)):] {
		switch {
		case EqualFold(arg, "GET"):
			return append(dst, KeyRef{1, KeyRW | KeyAccess | KeyUpdate})
		case isComparison(arg):
			flags = KeyRW | KeyUpdate | KeyCompares
		}
	}
	return append(dst, KeyRef{1, flags})
}

// appendDelexKeys distinguishes DELEX with a comparison from DEL.
func appendDelexKeys(dst []KeyRef, argv [][]byte) []KeyRef {
	if len(argv) < 2 {
		return dst
	}
	if slices.ContainsFunc(argv[2:], isComparison) {
		return append(dst, KeyRef{1, KeyRW | KeyDelete | KeyCompares})
	}
	return append(dst, KeyRef{1, KeyRM | KeyDelete})
}

// isComparison reports whether an argument begins a comparison of SET and DELEX.
func isComparison(arg []byte) bool {
	return EqualFold(arg, "IFEQ") || EqualFold(arg, "IFNE") || EqualFold(arg, "IFDEQ") || EqualFold(arg, "IFDNE")
}

// appendGeoradiusKeys finds the key that GEORADIUS writes: that of the last STORE or
// STOREDIST from position from. The specs find the first of each; Redis up to 8.6
// checks the permissions for that key, but writes the last one. Valkey 9 agrees with
// this function.
func appendGeoradiusKeys(dst []KeyRef, argv [][]byte, from int) []KeyRef {
	if len(argv) < 2 {
		return dst
	}
	dst = append(dst, KeyRef{1, KeyRO | KeyAccess})
	store := 0
	for i := from; i < len(argv)-1; i++ {
		if EqualFold(argv[i], "STORE") || EqualFold(argv[i], "STOREDIST") {
			i++
			store = i
		}
	}
	if store != 0 {
		dst = append(dst, KeyRef{store, KeyOW | KeyUpdate})
	}
	return dst
}

// appendBitfieldKeys determines whether a BITFIELD is read-only.
func appendBitfieldKeys(dst []KeyRef, argv [][]byte) []KeyRef {
	if len(argv) < 2 {
		return dst
	}
	for i := 2; i < len(argv); i++ {
		left := len(argv) - i - 1
		switch {
		case EqualFold(argv[i], "GET") && left >= 2:
			i += 2
		case EqualFold(argv[i], "OVERFLOW") && left >= 1:
			i++
		default: // it writes, or is malformed
			return append(dst, KeyRef{1, KeyRW | KeyAccess | KeyUpdate})
		}
	}
	return append(dst, KeyRef{1, KeyRO | KeyAccess})
}

// appendSortKeys finds the STORE option of SORT; the last one applies.
func appendSortKeys(dst []KeyRef, argv [][]byte, mayStore bool) []KeyRef {
	if len(argv) < 2 {
		return dst
	}
	dst = append(dst, KeyRef{1, KeyRO | KeyAccess})
	if !mayStore {
		return dst
	}
	store := 0
	for i := 2; i < len(argv); i++ {
		switch {
		case EqualFold(argv[i], "LIMIT"):
			i += 2
		case EqualFold(argv[i], "GET"), EqualFold(argv[i], "BY"):
			i++
		case EqualFold(argv[i], "STORE") && i+1 < len(argv):
			store = i + 1
		}
	}
	if store != 0 {
		dst = append(dst, KeyRef{store, KeyOW | KeyUpdate})
	}
	return dst
}

// appendMigrateKeys distinguishes the word KEYS from a password "KEYS".
func appendMigrateKeys(dst []KeyRef, argv [][]byte) []KeyRef {
	if len(argv) < 4 {
		return dst
	}
	first, last := 3, 3
	for i := 6; i < len(argv); i++ {
		switch {
		case EqualFold(argv[i], "KEYS"):
			if len(argv[3]) > 0 {
				return dst // both a key and KEYS
			}
			first, last = i+1, len(argv)-1
			i = last
		case EqualFold(argv[i], "AUTH"):
			i++
		case EqualFold(argv[i], "AUTH2"):
			i += 2
		}
	}
	for i := first; i <= last; i++ {
		dst = append(dst, KeyRef{i, KeyRW | KeyAccess | KeyDelete})
	}
	return dst
}

// appendStreamsKeys handles XREADGROUP with the word STREAMS before the position
// that its spec assumes.
func appendStreamsKeys(dst []KeyRef, argv [][]byte) []KeyRef {
	for i := 1; i < len(argv); i++ {
		switch {
		case EqualFold(argv[i], "BLOCK"), EqualFold(argv[i], "COUNT"):
			i++
		case EqualFold(argv[i], "GROUP"):
			i += 2
		case EqualFold(argv[i], "NOACK"):
		case EqualFold(argv[i], "STREAMS"):
			n := len(argv) - i - 1
			if n%2 != 0 {
				return dst
			}
			for range n / 2 {
				i++
				dst = append(dst, KeyRef{Index: i})
			}
			return dst
		default:
			return dst
		}
	}
	return dst
}

// leadingInt parses a number as C's atoi does, up to the first byte that is not a
// digit. It returns 0 for values beyond 32 bits.
func leadingInt(b []byte) int {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] >= '\t' && b[i] <= '\r') {
		i++
	}
	if i < len(b) && b[i] == '+' {
		i++
	}
	n := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if n = n*10 + int(b[i]-'0'); n > 1<<31-1 {
			return 0
		}
	}
	return n
}

// namesOf returns the names of the bits in set.
func namesOf(set uint64, names []string) []string {
	var list []string
	for i, name := range names {
		if set>>i&1 != 0 {
			list = append(list, name)
		}
	}
	return list
}

// bitsOf returns the bits of the names in text.
func bitsOf(text string, names []string) (set uint64, err error) {
next:
	for word := range strings.FieldsSeq(text) {
		for i, name := range names {
			if word == name {
				set |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("unknown word %q in %q", word, text)
	}
	return set, nil
}
