package transport

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// alarm is the server's timer as a descriptor among the events of a loop
// (timerfd_create(2)). It fires within microseconds. A timer of the runtime fires up to a
// millisecond late while the process is idle, since the runtime waits in milliseconds,
// and costs a switch of threads: its goroutine wakes the loop.
type alarm struct {
	fd      int
	dropped sync.Once
}

// newAlarm returns an alarm that create has made the descriptor of, as an event of an epoll.
func newAlarm(epoll int, create func() (fd int, err error)) (*alarm, error) {
	fd, err := create()
	if err != nil {
		return nil, err
	}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &alarm{fd: fd}, nil
}

func createTimer() (fd int, err error) {
	return unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
}

// Reset implements engine.Alarm.
func (a *alarm) Reset(d time.Duration) bool {
	a.set(max(d, 1)) // 0 would stop it
	return true
}

// Stop implements engine.Alarm.
func (a *alarm) Stop() bool {
	a.set(0)
	return true
}

func (a *alarm) set(d time.Duration) {
	to := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(a.fd, 0, &to, nil); err != nil {
		panic("BUG: timerfd_settime: " + err.Error())
	}
}

// useAlarm makes a loop keep the server's timer. If the system has no timer descriptors, or
// none is left, the server keeps that of the runtime. A server whose lock is broken needs no timer,
// and CloseAfterPanic closes the loop.
func (l *loop) useAlarm(create func() (fd int, err error)) {
	a, err := newAlarm(l.epoll, create)
	if err != nil {
		l.t.engine.Log.Debug("no timer descriptor; deadlines may be a millisecond late", "error", err)
		return
	}
	l.alarm = a
	l.t.engine.Attempt(func() { l.t.engine.UseAlarm(a) })
}

// fire runs what the timer was set for.
func (l *loop) fire() {
	var b [8]byte
	unix.Read(l.alarm.fd, b[:])
	if !l.t.engine.OnTimerUnlessBusy() {
		l.t.loops.gone.Go(l.t.engine.OnTimer)
	}
}

// dropAlarm ends useAlarm. The loop has ended.
func (l *loop) dropAlarm() {
	if l.alarm != nil {
		l.alarm.dropped.Do(func() {
			l.t.engine.Attempt(func() { l.t.engine.UseAlarm(nil) })
		})
	}
}
