//go:build unix

package main

import "syscall"

// detached returns what makes a process leader of a session of its own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
