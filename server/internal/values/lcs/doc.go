// Package lcs finds the longest common subsequence of two byte strings with the
// table of the lengths of all pairs of prefixes (Cormen, Leiserson, Rivest and
// Stein, Introduction to Algorithms, "Longest common subsequence"). If several
// subsequences are longest, it returns the one that the LCS command of Redis
// returns. It imports nothing.
package lcs
