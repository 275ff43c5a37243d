package protocol

// RequestSize returns the bytes of a command as clients send it: an array of bulk strings.
// O(n) for n arguments.
func RequestSize(argv [][]byte) int64 {
	n := int64(3 + digits(len(argv)))
	for _, arg := range argv {
		n += int64(5 + digits(len(arg)) + len(arg))
	}
	return n
}

// digits returns how many decimal digits a number that is not negative has.
func digits(n int) (d int) {
	for d = 1; n >= 10; n /= 10 {
		d++
	}
	return d
}
