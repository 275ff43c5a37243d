package enginetest

import (
	"bytes"
	"sync"
)

// LogBuffer is a log buffer for concurrent reads and writes.
type LogBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends what is logged.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was logged.
func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
