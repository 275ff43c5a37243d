//go:build !unix

package server

func withPrivateUmask(f func()) { f() }
