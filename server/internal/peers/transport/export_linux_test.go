package transport

// Unsettled says whether clients of all servers go from loop to loop.
const Unsettled = unsettled

// Unsettle makes clients go from loop to loop after each of their events. It is called before
// the first client connects.
func (t *Transport) Unsettle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loops.unsettled = true
}
