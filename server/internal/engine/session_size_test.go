package engine

import (
	"testing"
	"unsafe"
)

// TestSessionSize keeps a session within its size class of the allocator: the next one has
// 1152 bytes, for each of the clients.
func TestSessionSize(t *testing.T) {
	if size := unsafe.Sizeof(Session{}); size > 1024 {
		t.Errorf("a session has %d bytes", size)
	}
}
