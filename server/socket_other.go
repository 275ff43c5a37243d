//go:build !unix

package server

func withoutOthers(f func()) { f() }
