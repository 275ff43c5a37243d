// Package program has what the tests of this module run in processes: zsetd, which it builds,
// and the libraries of Node.js, which .ci/clients installs.
package program
