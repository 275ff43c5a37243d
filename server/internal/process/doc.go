// Package process reads what the operating system knows of this process: the processor
// time that it has used, and its limit of open files. The functions may be called
// concurrently.
package process
