//go:build !linux

package snapshot

import "os"

// dataSync is empty: see datasync_linux.go.
type dataSync struct{}

func (s *dataSync) sync(*os.File) (done bool, err error)         { return false, nil }
func (s *dataSync) syncInThread(*os.File) (done bool, err error) { return false, nil }
func (s *dataSync) close()                                       {}
