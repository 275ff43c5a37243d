//go:build unix

package main

import "syscall"

// detached returns the attributes that make a process leader of a session of its
// own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// addressInUse is the error for a port or a socket that another program has.
const addressInUse = syscall.EADDRINUSE
