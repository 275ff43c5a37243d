//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The floor is a server that only replies: an epoll loop in one thread, with one read and
// one write for each request. A server that reads each request with a system call and
// replies with another one cannot take less: at P16, not even for a command that does nothing.

// floorCommand is the first argument of this program when it is the floor.
const floorCommand = "floor"

// aimFloor is the target: the maximum CPU per PING, relative to the floor.
const aimFloor = 1.12

// floorRow is CPU per PING of the floor and of all targets.
type floorRow struct {
	clients int
	row
}

// floorRows returns the numbers of clients and of commands in a request, without results.
func (o options) floorRows() []floorRow {
	rows := []floorRow{{clients: o.clients}, {clients: 10 * o.clients}, {clients: o.clients}}
	for i, pipeline := range []int{1, 1, 16} {
		rows[i].work = work{name: "PING", pipeline: pipeline, command: "PING"}
	}
	return rows
}

// measureFloor applies PING alternately to the floor and to one server of each kind.
func (r *report) measureFloor(ctx context.Context, l limits) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var servers []*server
	for _, t := range append([]target{{name: floorCommand, binary: self, command: floorCommand, env: []string{"GODEBUG=asyncpreemptoff=1"}}}, r.targets...) {
		s, err := t.start(ctx)
		if err != nil {
			return err
		}
		defer s.stop()
		servers = append(servers, s)
	}
	fmt.Println(aligned(r.floorColumns()))
	for _, row := range r.options.floorRows() {
		var err error
		if row.row, err = r.alternate(ctx, servers, row.work, l, row.clients, 0); err != nil {
			return err
		}
		r.floor = append(r.floor, row)
		fmt.Println(aligned(r.floorCells(row)))
	}
	return nil
}

func (r *report) floorColumns() []string {
	out := []string{"PING", "floor µs"}
	for _, name := range r.names() {
		out = append(out, name+" µs")
	}
	for _, name := range r.names() {
		out = append(out, name+" : floor")
	}
	return out
}

func (r *report) floorCells(row floorRow) []string {
	out := []string{fmt.Sprintf("%d clients, P%d", row.clients, row.work.pipeline)}
	for i := range row.samples {
		out = append(out, micros(row.cpu(i)))
	}
	for i := range r.targets {
		out = append(out, fmt.Sprintf("%.2f", row.ratio(i+1, 0)))
	}
	return out
}

// floorReplies returns the replies to n commands.
func floorReplies(n int) []byte { return bytes.Repeat([]byte("+PONG\r\n"), n) }

// serveFloor replies +PONG to each array that arrives at a port of the loopback. It ends
// with an error only.
func serveFloor(port string) error {
	runtime.LockOSThread()
	addr, err := netip.ParseAddrPort("127.0.0.1:" + port)
	if err != nil {
		return err
	}
	listener, err1 := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	loop, err2 := syscall.EpollCreate1(0)
	if err := errors.Join(err1, err2,
		syscall.SetsockoptInt(listener, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(listener, &syscall.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}),
		syscall.Listen(listener, 512),
		watchInput(loop, listener)); err != nil {
		return err
	}
	const most = 64 // commands in a request
	replies, buffer, events := floorReplies(most), make([]byte, 64<<10), make([]syscall.EpollEvent, 256)
	// The system calls bypass Go's scheduler, which would wake another thread while this one
	// waits. No other goroutine has work.
	for {
		n, _, failed := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(loop), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), ^uintptr(0), 0, 0)
		if failed == syscall.EINTR {
			continue
		}
		if failed != 0 {
			return failed
		}
		for i := range int(n) {
			fd := int(events[i].Fd)
			if fd == listener {
				if fd, _, err = syscall.Accept(listener); err != nil {
					return err
				}
				if err := errors.Join(syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1), watchInput(loop, fd)); err != nil {
					return err
				}
				continue
			}
			got, _, failed := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), 0, 0, 0)
			if failed != 0 || got == 0 {
				syscall.Close(fd)
				continue
			}
			commands := min(max(bytes.Count(buffer[:got], []byte("*")), 1), most)
			size := commands * len(replies) / most
			syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&replies[0])), uintptr(size), 0, 0, 0)
		}
	}
}

func watchInput(loop, fd int) error {
	return syscall.EpollCtl(loop, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}
