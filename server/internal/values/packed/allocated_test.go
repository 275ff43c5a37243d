package packed

import (
	"slices"
	"testing"
)

// TestSizeClasses checks the size classes of Go's allocator on which weights and
// packed entries depend. If a new version of Go has other classes, then Allocated,
// the layouts of entries, and this list need a revision.
func TestSizeClasses(t *testing.T) {
	want := []int{
		8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256,
		288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024,
		1152, 1280, 1408, 1536, 1792, 2048,
	}
	var got []int
	for n := 1; n <= 40<<10; n++ {
		class := cap(append([]byte(nil), make([]byte, n)...))
		if n <= 2048 && !slices.Contains(got, class) {
			got = append(got, class)
		}
		// Allocated adds the average waste above 2 KB, and counts tiny allocations
		// by their share of a block.
		if a := Allocated(n); n > 8 && n <= 2048 && a != class || n > 8 && (a < class-class/8 || a > class+class/8 && a > class+8) {
			t.Errorf("an allocation of %d bytes takes %d, Allocated returns %d", n, class, a)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the size classes are %v", got)
	}
}
