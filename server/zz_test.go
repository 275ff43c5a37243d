package server_test

import (
	"fmt"
	"regexp"
	"sort"
	"testing"
)

func TestZZStats(t *testing.T) {
	_, ours, _, r := luaPeers(t)
	n := map[string]int{}
	digits := regexp.MustCompile(`[0-9]+`)
	name := regexp.MustCompile(`'[^']*'`)
	ln := 0
	for range 3000 {
		src := r.program()
		ln += len(src)
		got := ours.do("EVAL", src, "0")
		k := got[:min(1, len(got))]
		if k == "-" {
			k = name.ReplaceAllString(digits.ReplaceAllString(got[:min(100, len(got))], "N"), "'X'")
			k = k[:min(75, len(k))]
		}
		n[k]++
	}
	keys := []string{}
	for k := range n {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return n[keys[i]] > n[keys[j]] })
	for _, k := range keys[:min(60, len(keys))] {
		fmt.Println(n[k], k)
	}
	fmt.Println(ln / 3000)
}
