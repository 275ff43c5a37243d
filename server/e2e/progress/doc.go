// Command progress runs go test and reports its progress:
//
//	progress [-dir DIR] [-every 10s] [-slow 5] [--] [flags and packages of go test]
//
// go test prints the packages in the order of its list, so a package that takes
// minutes delays the lines of all later ones, and its failures appear only at its
// end. progress reads the events of go test -json instead and prints
//
//   - the closing line of each package ("ok", "FAIL", "?") when the package ends,
//   - the output of a test that fails when the test fails,
//   - compiler errors, and the output of a package without a result,
//   - every few seconds how many packages and tests are done, and which are running,
//   - at the end the number of tests, the slowest, and the names of those that failed.
//
// The exit status is that of go test.
package main
