// Package table is a hash table of strings that can be cloned in constant time.
package table
