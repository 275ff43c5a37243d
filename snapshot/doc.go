// Package snapshot is records in a bbolt file.
package snapshot
