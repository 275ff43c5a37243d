package zset

import (
	"iter"
	"math"
	"slices"

	"github.com/zsetd/zsetd/zset/table"
)

// Source is an operand of Union, Inter, InterCard and Diff: a *Set, or any
// collection of distinct members with scores.
type Source interface {
	Len() int
	Score(member string) (float64, bool)
	All() iter.Seq2[string, float64]
}

// Input is a source with a factor for its scores. A nil Source is an empty set.
type Input struct {
	Source Source
	Weight float64
}

// Aggregate combines the scores of a member that occurs in several inputs.
type Aggregate uint8

const (
	Sum   Aggregate = iota // the sum of the scores
	Min                    // the lowest score
	Max                    // the highest score
	Count                  // the sum of the weights of the inputs that have the member
)

// of combines two scores as Redis does: a sum that is NaN, such as +Inf plus -Inf,
// becomes 0. In an intersection b can be NaN because of its weight; Min and Max
// then ignore it.
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

// contribution returns what an input adds for a member with the given score, which is NaN for
// an infinite score with the weight 0.
func (agg Aggregate) contribution(score, weight float64) float64 {
	if agg == Count {
		return weight
	}
	return score * weight
}

// number returns x, or 0 for NaN.
func number(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// bySize returns the inputs in ascending order of cardinality, with empty sets in
// place of nil. Redis adds scores in this order, which determines the last bit of
// sums.
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

// same reports whether a and b are the same set, in which case b has all members of
// a.
func same(a, b Source) bool {
	s, ok := a.(*Set)
	return ok && b == Source(s)
}

// Union returns the members of all inputs. O(n log n) for n elements in total.
func Union(agg Aggregate, in ...Input) *Set {
	var sum table.Table[float64]
	for _, input := range bySize(in) {
		for member, score := range input.Source.All() {
			score = number(agg.contribution(score, input.Weight))
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

// Inter returns the members that occur in every input. O(n k + m log m) for n
// elements in the smallest of k inputs and m results.
func Inter(agg Aggregate, in ...Input) *Set {
	sorted := bySize(in)
	if len(sorted) == 0 {
		return new(Set)
	}
	var elements []Element
next:
	for member, first := range sorted[0].Source.All() {
		score := number(agg.contribution(first, sorted[0].Weight))
		for _, input := range sorted[1:] {
			other, ok := first, true
			if !same(sorted[0].Source, input.Source) {
				other, ok = input.Source.Score(member)
			}
			if !ok {
				continue next
			}
			score = agg.of(score, agg.contribution(other, input.Weight))
		}
		elements = append(elements, Element{member, score})
	}
	return Load(elements)
}

// InterCard returns the number of members that occur in every source, but at most
// limit if limit is above 0. O(n k) for n elements in the smallest of k sources.
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

// Diff returns the elements of the first source whose members occur in no other
// source. O(min(n k, s) + m log m) for n elements in the first of k sources, s
// elements in all sources, and m results.
func Diff(in ...Source) *Set {
	if len(in) == 0 || in[0] == nil {
		return new(Set)
	}
	first, total := in[0], 0
	var others []Source
	var seen map[*Set]struct{}
	for _, source := range in[1:] {
		set, isSet := source.(*Set)
		_, again := seen[set]
		switch {
		case source == nil || source.Len() == 0 || again:
		case same(first, source):
			return new(Set)
		default:
			if isSet && len(in) > 2 {
				if seen == nil {
					seen = map[*Set]struct{}{}
				}
				seen[set] = struct{}{}
			}
			others = append(others, source)
			total += source.Len()
		}
	}
	// Few large sources are asked for the members of the first; the members of many small
	// ones are gathered.
	var excluded map[string]struct{}
	if len(others) > 1 && total < first.Len()*len(others)/2 {
		excluded = make(map[string]struct{}, min(total, first.Len()))
		for _, source := range others {
			for member := range source.All() {
				if _, ok := first.Score(member); ok {
					excluded[member] = struct{}{}
				}
			}
		}
		others = nil
	}
	var elements []Element
next:
	for member, score := range first.All() {
		if _, ok := excluded[member]; ok {
			continue
		}
		for _, source := range others {
			if _, ok := source.Score(member); ok {
				continue next
			}
		}
		elements = append(elements, Element{member, score})
	}
	return Load(elements)
}
