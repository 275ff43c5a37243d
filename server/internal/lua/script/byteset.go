package script

// byteSet is a set of bytes, as 256 bits.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

// insert adds the bytes from lo to hi.
func (s *byteSet) insert(lo, hi byte) {
	for c := int(lo); c <= int(hi); c++ {
		s[c>>6] |= 1 << (c & 63)
	}
}

// include adds the bytes of a set.
func (s *byteSet) include(t byteSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s byteSet) complement() byteSet { return byteSet{^s[0], ^s[1], ^s[2], ^s[3]} }

// classSet returns the class of patterns for a letter, in the locale of C; false if it
// stands for itself.
func classSet(letter byte) (set byteSet, ok bool) {
	const (
		digits        = 0x3ff << '0'
		letters       = 1<<26 - 1 // from a position on, in the second half of ASCII
		upper         = letters << ('A' - 64)
		lower         = letters << ('a' - 64)
		controls, del = 1<<' ' - 1, 1 << (127 - 64)
	)
	switch letter | 32 {
	case 'a':
		set = byteSet{0, upper | lower}
	case 'c':
		set = byteSet{controls, del}
	case 'd':
		set = byteSet{digits}
	case 'l':
		set = byteSet{0, lower}
	case 'p':
		set = byteSet{^uint64(controls | digits | 1<<' '), ^uint64(upper | lower | del)}
	case 's':
		set.insert('\t', '\r')
		set.insert(' ', ' ')
	case 'u':
		set = byteSet{0, upper}
	case 'w':
		set = byteSet{digits, upper | lower}
	case 'x':
		set = byteSet{digits, 0x3f<<('A'-64) | 0x3f<<('a'-64)}
	case 'z':
		set = byteSet{1}
	default:
		return set, false
	}
	if letter < 'a' {
		set = set.complement()
	}
	return set, true
}
