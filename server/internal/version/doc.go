// Package version has the version of the program, and that of Redis as which it acts.
package version
