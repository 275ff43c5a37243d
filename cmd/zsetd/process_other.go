//go:build !unix

package main

import "syscall"

func detached() *syscall.SysProcAttr { return nil }

// addressInUse is the error for a port that another program has: WSAEADDRINUSE.
const addressInUse = syscall.Errno(10048)
