//go:build unix

package engine

import (
	"os"
	program "os/exec"
	"syscall"
)

// killsGroup makes the end of the context of a command, which has not started, kill the program and
// what that has started, but for programs in a process group of their own.
func killsGroup(cmd *program.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != syscall.ESRCH {
			return err
		}
		return os.ErrProcessDone
	}
}
