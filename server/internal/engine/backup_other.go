//go:build !unix

package engine

import program "os/exec"

// killsGroup leaves a command as it is: the end of its context kills the program, but not what that has started.
func killsGroup(*program.Cmd) {}
