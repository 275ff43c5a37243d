// Package lint checks this repository: the imports of each package, the map of the packages
// in the documentation of package server, declarations, names in comments, how tests wait,
// limits of time in tests, sentences of the log, and links and commands in documents. It has only tests. Each failure
// message gives the reason for its rule.
package lint
