// Command progress runs go test and reports how far it is:
//
//	progress [-dir DIR] [-every 10s] [-slow 5] [--] [flags and packages of go test]
//
// go test prints the packages in the order of its list, so one that takes
// minutes holds back the lines of all that come after it, and a failure in it is
// not seen before its end. progress reads the events of go test -json instead
// and prints
//
//   - the closing line of each package ("ok", "FAIL", "?") when the package ends,
//   - the output of a test that fails when the test fails,
//   - what does not compile, and all that a package without a result has printed,
//   - every few seconds how many packages and tests are done, and what is running,
//   - at the end the number of tests, the slowest, and the names of those that failed.
//
// The exit status is that of go test.
package main
