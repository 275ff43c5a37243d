// Package wiring puts an engine together: the rows of all families of commands, replication,
// forwarding and a transport. Package server and the tests of the packages below it make
// their engines here.
package wiring
