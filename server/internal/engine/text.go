package engine

// UntilNUL returns b as C prints it, up to the first NUL.
func UntilNUL(b []byte) string { return Clip(b, len(b)) }
