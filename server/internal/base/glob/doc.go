// Package glob matches names against patterns as Redis does in KEYS, SCAN, PSUBSCRIBE,
// CONFIG GET and ACL rules: "*", "?", "[abc]", "[^a-z]" and "\" before a literal byte.
//
// A match takes time linear in the product of the two lengths at worst, without
// recursion: after a mismatch only the last "*" is tried again, at the next byte.
package glob
