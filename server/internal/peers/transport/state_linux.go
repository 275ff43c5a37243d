package transport

// phase is how far a connection of a loop has come. It only advances. It belongs to the
// holder of the connection.
type phase uint8

const (
	receiving  phase = iota
	halfClosed       // the client sends no more: is closed once all is run and all output is written
	draining         // runs no more commands: is closed once all output is written
	lingering        // is closed once the client has taken all output
	closed
)

// The holder of a connection is the goroutine that its fields belong to.
const (
	loopHolds   int32 = iota
	scriptHolds       // a script of the connection runs outside the loop
	scriptEnded       // the loop is to take the connection back
)

// inLoop reports whether the loop may handle the connection. It reads the phase only if
// the loop holds the connection.
func (c *polled) inLoop() bool { return c.holder.Load() == loopHolds && c.phase != closed }

// advance moves the connection to a phase, unless it has passed it.
func (c *polled) advance(p phase) { c.phase = max(c.phase, p) }
