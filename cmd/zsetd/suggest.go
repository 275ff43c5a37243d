package main

import (
	"slices"
	"strings"
)

// similar returns the names, three at most, for which word is probably meant: those with
// the fewest differences from it if these are few, else those that begin with it.
func similar(word string, names []string) []string {
	word = strings.ToLower(word)
	best := 1 + len(word)/4
	var found []string
	for _, name := range names {
		switch n := distance(word, name); {
		case n > best || n >= len(word):
		case n < best:
			found, best = []string{name}, n
		default:
			found = append(found, name)
		}
	}
	if found == nil && len(word) > 1 {
		for _, name := range names {
			if strings.HasPrefix(name, word) {
				found = append(found, name)
			}
		}
	}
	return found[:min(3, len(found))]
}

// distance returns how many bytes must be inserted, deleted, replaced or exchanged with
// their neighbour to make b of a: the optimal string alignment distance (Boytsov, Indexing
// methods for approximate dictionary searching, 2011, section 2.1).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// didYouMean returns a question, as a line of its own, about the names similar to word,
// each with a prefix; "" if there are none.
func didYouMean(word, prefix string, names []string) string {
	found := similar(word, names)
	if len(found) == 0 {
		return ""
	}
	for i := range found {
		found[i] = prefix + found[i]
	}
	last := len(found) - 1
	list := found[last]
	if last > 0 {
		list = strings.Join(found[:last], ", ") + " or " + list
	}
	return "Did you mean " + list + "?\n"
}

// startWords are the names by which other programs call the start of a server.
func startWords() []string { return []string{"serve", "server", "start", "run"} }

// commandHint returns what helps after an unknown command, in lines.
func commandHint(word string) string {
	if slices.Contains(startWords(), strings.ToLower(word)) {
		return "zsetd without a command starts the server: zsetd [redis.conf] [--name value ...]\n"
	}
	return didYouMean(word, "", commandNames())
}
