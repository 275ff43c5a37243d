//go:build !linux

package packages

import "testing"

func inspect(t *testing.T, path string) {}

func install(t *testing.T, kind, before, after string) {
	t.Skip("not installed: an installation needs Linux")
}
