package zset

import (
	"iter"
	"math"
	"slices"

	"github.com/zsetd/zsetd/zset/table"
)

// Source is what sets are computed from: a *Set, or anything else that has members,
// each of them once.
type Source interface {
	Len() int
	Score(member string) (float64, bool)
	All() iter.Seq2[string, float64]
}

// Input is a source whose scores count Weight times. A nil Source is an empty set.
type Input struct {
	Source Source
	Weight float64
}

// Aggregate says what becomes of the scores of a member that several inputs have.
type Aggregate uint8

const (
	Sum Aggregate = iota // they are added
	Min                  // the lowest counts
	Max                  // the highest counts
)

// of is Redis's arithmetic: a sum that would be NaN, as of +Inf and -Inf, is 0. A NaN
// from a weight in b, which only an intersection lets come here, is passed over by
// Min and Max.
func (agg Aggregate) of(a, b float64) float64 {
	switch agg {
	case Min:
		if b < a {
			return b
		}
		return a
	case Max:
		if b > a {
			return b
		}
		return a
	}
	return number(a + b)
}

// number is x, or 0 for NaN.
func number(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// bySize puts empty sets for nil and sorts by cardinality, the order in which Redis
// adds scores up (which decides their last bit).
func bySize(in []Input) []Input {
	sorted := make([]Input, len(in))
	for i, input := range in {
		if input.Source == nil {
			input.Source = new(Set)
		}
		sorted[i] = input
	}
	slices.SortStableFunc(sorted, func(a, b Input) int { return a.Source.Len() - b.Source.Len() })
	return sorted
}

// same reports whether a and b are one set, so that what a has need not be looked up in b.
func same(a, b Source) bool {
	s, ok := a.(*Set)
	return ok && b == Source(s)
}

// Union returns the members that any input has. O(n log n) for n elements in total.
func Union(agg Aggregate, in ...Input) *Set {
	var sum table.Table[float64]
	for _, input := range bySize(in) {
		for member, score := range input.Source.All() {
			score = number(score * input.Weight)
			if have := sum.Ref(member); have != nil {
				*have = agg.of(*have, score)
			} else {
				sum.Set(member, score)
			}
		}
	}
	elements := make([]Element, 0, sum.Len())
	for member, score := range sum.All() {
		elements = append(elements, Element{member, score})
	}
	return Load(elements)
}

// Inter returns the members that all inputs have. O(n k + m log m) for the n elements
// of the smallest of k inputs and a result of m.
func Inter(agg Aggregate, in ...Input) *Set {
	sorted := bySize(in)
	if len(sorted) == 0 {
		return new(Set)
	}
	var elements []Element
next:
	for member, first := range sorted[0].Source.All() {
		score := number(first * sorted[0].Weight)
		for _, input := range sorted[1:] {
			other, ok := first, true
			if !same(sorted[0].Source, input.Source) {
				other, ok = input.Source.Score(member)
			}
			if !ok {
				continue next
			}
			score = agg.of(score, other*input.Weight)
		}
		elements = append(elements, Element{member, score})
	}
	return Load(elements)
}

// InterCard counts the members that all sources have, up to limit if that is above 0.
// O(n k) for the n elements of the smallest of k sources.
func InterCard(limit int, in ...Source) int {
	inputs := make([]Input, len(in))
	for i, source := range in {
		inputs[i].Source = source
	}
	sorted := bySize(inputs)
	if len(sorted) == 0 {
		return 0
	}
	others := slices.DeleteFunc(sorted[1:], func(in Input) bool { return same(sorted[0].Source, in.Source) })
	n := 0
next:
	for member := range sorted[0].Source.All() {
		for _, input := range others {
			if _, ok := input.Source.Score(member); !ok {
				continue next
			}
		}
		if n++; n == limit {
			break
		}
	}
	return n
}

// Diff returns the elements of the first source whose members no other source has.
// O(n k + m log m) for the n elements of the first of k sources and a result of m.
func Diff(in ...Source) *Set {
	if len(in) == 0 || in[0] == nil {
		return new(Set)
	}
	if slices.ContainsFunc(in[1:], func(s Source) bool { return same(in[0], s) }) {
		return new(Set)
	}
	var elements []Element
next:
	for member, score := range in[0].All() {
		for _, source := range in[1:] {
			if source == nil {
				continue
			}
			if _, ok := source.Score(member); ok {
				continue next
			}
		}
		elements = append(elements, Element{member, score})
	}
	return Load(elements)
}
