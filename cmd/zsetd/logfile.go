package main

import (
	"os"
	"path/filepath"
)

// logFile is the log file. As with Redis, which opens it for each line, another
// program may rename or remove it at any time. Lines are written one at a time.
type logFile struct {
	path string
	file *os.File
	info os.FileInfo
}

func openLog(path string) (*logFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	l := &logFile{path: path}
	return l, l.open()
}

// open opens the file, or makes it. After an error the previous one stays in use.
func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.info = f, info
	return nil
}

func (l *logFile) Write(line []byte) (int, error) {
	if now, err := os.Stat(l.path); err != nil || !os.SameFile(now, l.info) {
		l.open() // after an error the line goes to the previous file
	}
	return l.file.Write(line)
}

func (l *logFile) Close() error { return l.file.Close() }
