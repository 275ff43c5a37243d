//go:build !unix

package persist

// accessible returns an error if the process may not make files in a directory, where
// the system can be asked that.
func accessible(string) error { return nil }
