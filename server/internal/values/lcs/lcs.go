package lcs

// Table holds the length of the longest common subsequence of every pair of
// prefixes of two strings.
type Table struct {
	a, b  []byte
	cells []uint32 // row i, column j: the length for a[:i] and b[:j]
}

// New computes the table of a and b, which must not change while it is in use. It
// takes O(len(a)·len(b)) time, and 4·(len(a)+1)·(len(b)+1) bytes of memory. The
// caller limits both.
func New(a, b []byte) *Table {
	t := &Table{a, b, make([]uint32, (len(a)+1)*(len(b)+1))}
	width := len(b) + 1
	for i := 1; i <= len(a); i++ {
		row, above := t.cells[i*width:(i+1)*width], t.cells[(i-1)*width:i*width]
		for j := 1; j <= len(b); j++ {
			if a[i-1] == b[j-1] {
				row[j] = above[j-1] + 1
			} else {
				row[j] = max(above[j], row[j-1])
			}
		}
	}
	return t
}

func (t *Table) at(i, j int) uint32 { return t.cells[i*(len(t.b)+1)+j] }

// Len returns the length of the longest common subsequence in bytes.
func (t *Table) Len() int { return int(t.at(len(t.a), len(t.b))) }

// Match is a run of Len bytes that one string has from A on and the other from B on.
type Match struct{ A, B, Len int }

// back walks from the end to the start, from cell to cell, and calls match for
// every common byte and miss for every other step.
func (t *Table) back(match func(i, j int), miss func()) {
	for i, j := len(t.a), len(t.b); i > 0 && j > 0; {
		switch {
		case t.a[i-1] == t.b[j-1]:
			i, j = i-1, j-1
			match(i, j)
		case t.at(i-1, j) > t.at(i, j-1):
			i--
			miss()
		default:
			j--
			miss()
		}
	}
}

// Subsequence returns the longest common subsequence. It takes O(len(a)+len(b)) time.
func (t *Table) Subsequence() []byte {
	n := t.Len()
	s := make([]byte, n)
	t.back(func(i, _ int) {
		n--
		s[n] = t.a[i]
	}, func() {})
	return s
}

// Matches returns the runs of at least atLeast bytes, the last one first. It takes
// O(len(a)+len(b)) time.
func (t *Table) Matches(atLeast int) (found []Match) {
	var run Match
	end := func() {
		if run.Len > 0 && run.Len >= atLeast {
			found = append(found, run)
		}
		run = Match{}
	}
	t.back(func(i, j int) {
		switch {
		case run.Len == 0:
			run = Match{i, j, 1}
		case run.A == i+1 && run.B == j+1:
			run = Match{i, j, run.Len + 1}
		default: // two runs that touch in one of the strings: Redis omits this byte
			end()
		}
		if run.Len > 0 && (run.A == 0 || run.B == 0) {
			end()
		}
	}, end)
	return found
}
