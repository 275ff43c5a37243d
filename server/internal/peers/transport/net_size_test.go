package transport

import (
	"testing"
	"unsafe"
)

// TestConnSize keeps a netConn below the size class of the allocator in which the runtime has
// its goroutines. These stay when they have ended: beside them, the memory of connections
// that are closed cannot be returned.
func TestConnSize(t *testing.T) {
	if size := unsafe.Sizeof(netConn{}); size > 448 {
		t.Errorf("a netConn has %d bytes", size)
	}
}
