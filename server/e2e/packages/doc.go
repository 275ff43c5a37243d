// Package packages has the tests of the ways in which users get zsetd: the version that a
// build knows, from a checkout, from a module and from a release; and the files that
// .goreleaser.yaml describes. The deb and the rpm are installed, started with the command
// line of their unit, upgraded and removed.
//
// "make release-check" runs all of them. "make test" runs those that need no goreleaser, whose
// compilation takes minutes: the variable ZSETD_GORELEASER has its path.
//
// An installation changes nothing on the machine. A child process has mount, PID and
// network namespaces of its own. Its root directory is an overlay of the machine's, whose
// changes are in memory and vanish with the process. This needs Linux, and root
// or a sudo that asks for no password.
package packages
