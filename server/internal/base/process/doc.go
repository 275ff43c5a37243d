// Package process has facts of this process: its version, that of Redis as which it acts, the
// processor time that it has used, and its limit of open files. The functions may be called
// concurrently.
package process
