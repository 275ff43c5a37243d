//go:build !linux

package main

// shedText does nothing: see text_linux.go.
func shedText() {}
