//go:build !amd64

package transport

import "unsafe"

func lines(unsafe.Pointer, int) {}
