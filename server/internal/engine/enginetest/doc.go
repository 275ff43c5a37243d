// Package enginetest is for tests of package engine and of the packages that an engine is made
// of: engines with a transport, and what tests send to them.
package enginetest
