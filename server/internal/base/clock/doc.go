// Package clock is the server's clock: the system clock at start plus the elapsed
// monotonic time. So when the system clock is set (by an operator, NTP, a hypervisor), no
// deadline moves: no key expires early, late or twice, and no waiter waits longer or gives
// up earlier. A lasting difference from the system clock is corrected by a millisecond in
// each second, which changes a TTL by a thousandth. Time during which the machine was
// suspended counts on Linux, which can distinguish it from a step.
//
// The clock follows the system clock at once where that is the better guess: on request
// of the caller (the parameter clock-steps); while the
// machine has been up for less than ten minutes, since its clock is being set then; and
// while the clock shows a time before 2020. Waits for a time to pass, rather than for a
// time of day, keep their remaining time: the caller shifts them by [Change.Moved].
//
// The data file contains times of this clock. After a restart that is the system clock
// again, so a remaining difference takes effect at once.
//
// A reading costs half of time.Now, which reads both clocks of the system. These are
// compared at most ten times a second, when the caller asks [Clock.Due]. Rejected: to have
// the kernel report steps (timerfd), which takes a descriptor and a goroutine per server
// and works on Linux only. Therefore a server without activity sets its timer for ten
// seconds at most: after the machine was suspended no waiter waits for longer than that.
package clock
