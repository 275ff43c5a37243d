package differential

import "slices"

// shrink returns the fewest scenarios it finds that lead to a mismatch like m.
func (d *differ) shrink(scenarios []scenario, version int, m *mismatch) ([]scenario, *mismatch) {
	best := m
	tries := 0
	try := func(candidate []scenario) bool {
		tries++
		n := d.play(candidate, version, max(1, len(candidate)))
		if n == nil || n.name != m.name {
			return false
		}
		scenarios, best = candidate[:n.scenario+1], n
		return true
	}
	scenarios = scenarios[:m.scenario+1]
	again := try(scenarios)
	// Most scenarios have nothing to do with the keys.
	var about []scenario
	for i, u := range scenarios {
		if i == len(scenarios)-1 || slices.ContainsFunc(u.steps, func(s step) bool {
			return slices.ContainsFunc(s.argv[1:], func(a string) bool { return slices.Contains(best.keys, a) })
		}) {
			about = append(about, u)
		}
	}
	if !again {
		m.text += "\n(it did not happen again: these are the commands about the keys)"
		return about, m
	}
	if len(about) < len(scenarios) {
		try(about)
	}
	for size := max(1, len(scenarios)/2); size >= 1 && tries < 1000; size /= 2 {
		for end := len(scenarios); end > 0 && tries < 1000; end -= size {
			end = min(end, len(scenarios))
			start := max(0, end-size)
			try(append(slices.Clone(scenarios[:start]), scenarios[end:]...))
		}
	}
	// Fewer lines, where a scenario has many that do not belong together.
	for i := range scenarios {
		for at := len(scenarios[i].steps) - 1; i < len(scenarios) && !scenarios[i].plain() && at >= 0 && len(scenarios[i].steps) > 1 && tries < 1500; at-- {
			candidate := slices.Clone(scenarios)
			candidate[i].steps = slices.Delete(slices.Clone(scenarios[i].steps), at, at+1)
			try(candidate)
		}
	}
	// Fewer words, where a command has many.
	for i := range scenarios {
		for size := 64; size >= 1 && tries < 1500; size /= 2 {
			for at := 0; i < len(scenarios) && scenarios[i].plain() && len(scenarios[i].steps) == 1 && len(scenarios[i].steps[0].argv) > 1+at+size && tries < 1500; {
				argv := scenarios[i].steps[0].argv
				candidate := slices.Clone(scenarios)
				candidate[i].steps = []step{{argv: append(slices.Clone(argv[:1+at]), argv[1+at+size:]...), how: scenarios[i].steps[0].how}}
				if !try(candidate) {
					at += size
				}
			}
		}
	}
	return scenarios, best
}
