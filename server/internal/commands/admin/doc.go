// Package admin has the handlers of the commands on the server and its connections:
// CLIENT, ACL, INFO, MEMORY, LATENCY, SLOWLOG, COMMAND, CLUSTER, DEBUG and the commands
// on the connection itself. Their state is in package engine, which counts, logs and
// enforces; this package reads and shows it. SLOWLOG is the log
// "slow" of COMMANDLOG of Valkey 8.1.
package admin
