// Command skips lists why tests were skipped, from the output of go test -json:
//
//	go run ./skips FILE.json ...
//
// make test calls it at its end. Tests with the same reason are one line, with their number
// and some of their names, and the reasons of most tests come first. A reason is what the
// test has said last.
package main
