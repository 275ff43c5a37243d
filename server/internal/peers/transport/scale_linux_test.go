package transport

import (
	"slices"
	"testing"
)

// machine is a model of a machine whose clients send as fast as they receive.
type machine struct {
	cores   int
	clients int
	alone   float64 // commands per second of one loop
	lock    float64 // that the engine's lock allows
	offered float64 // that clients send at most; 0: no limit
	cost    float64 // core seconds of clients on the machine and of the kernel, per second of one loop
	slower  float64 // by which part each further loop increases the time of a command
}

// load returns the load with n loops.
func (m machine) load(n int) load {
	one := m.alone / (1 + m.slower*float64(n-1))
	rate := min(float64(n)*one, m.lock)
	if used := rate / one * (1 + m.cost); used > float64(m.cores) { // loops and clients share the cores
		rate *= float64(m.cores) / used
	}
	busy := float64(n) // loops that wait for the lock or a core are awake
	if m.offered > 0 && rate >= m.offered {
		rate = m.offered
		busy = rate / one
	}
	working := rate / one * (1 + m.cost)
	return load{busy: busy, rate: rate, idle: max(float64(m.cores)-working, 0), clients: m.clients, procs: m.cores}
}

// TestScaler has a load of which the machine is the only limit, and others that further loops
// do not help.
func TestScaler(t *testing.T) {
	for _, test := range []struct {
		name        string
		m           machine
		least, most int // loops at the end
	}{
		{"8 cores, PING from other machines", machine{cores: 8, clients: 50, alone: 200e3, lock: 4.5e6, cost: 0.1}, 6, 7},
		{"16 cores, PING", machine{cores: 16, clients: 200, alone: 200e3, lock: 4.5e6, cost: 0.1}, 12, 15},
		{"32 cores, PING", machine{cores: 32, clients: 500, alone: 200e3, lock: 4.5e6, cost: 0.1}, 20, 28},
		{"8 cores, SET under the lock for a sixth", machine{cores: 8, clients: 50, alone: 125e3, lock: 770e3, cost: 0.1}, 6, 7},
		{"32 cores, SET", machine{cores: 32, clients: 50, alone: 125e3, lock: 770e3, cost: 0.1}, 6, 9},
		{"32 cores, large ZADD", machine{cores: 32, clients: 50, alone: 100e3, lock: 230e3, cost: 0.1}, 2, 4},
		{"8 cores, pipelines at the ceiling of the lock", machine{cores: 8, clients: 50, alone: 1.5e6, lock: 1.6e6}, 1, 1},
		{"8 cores, 3 clients", machine{cores: 8, clients: 3, alone: 200e3, lock: 4.5e6}, 3, 3},
		{"8 cores, a load of two and a half loops", machine{cores: 8, clients: 50, alone: 200e3, lock: 4.5e6, offered: 500e3}, 4, 4},
		{"8 cores, half a loop", machine{cores: 8, clients: 50, alone: 200e3, lock: 4.5e6, offered: 90e3}, 1, 1},
		{"2 cores", machine{cores: 2, clients: 50, alone: 200e3, lock: 4.5e6}, 1, 1},
		{"8 cores that the clients occupy", machine{cores: 8, clients: 50, alone: 200e3, lock: 4.5e6, cost: 7}, 1, 1},
		{"8 cores that the clients share", machine{cores: 8, clients: 50, alone: 200e3, lock: 4.5e6, cost: 1}, 3, 4},
		{"8 cores, loops hinder each other", machine{cores: 8, clients: 50, alone: 200e3, lock: 4.5e6, slower: 0.9}, 1, 1},
	} {
		s := newScaler(1)
		var steps []int
		for range 10_000 {
			n := s.loops
			got, enough := s.next(test.m.load(n))
			if enough {
				break
			}
			if got != n {
				steps = append(steps, got)
			}
		}
		for s.trial != nil || s.settle {
			s.next(test.m.load(s.loops))
		}
		if s.loops < test.least || s.loops > test.most {
			t.Errorf("%s: %d loops, by way of %v", test.name, s.loops, steps)
		}
		if len(steps) > 200 {
			t.Errorf("%s: %d changes", test.name, len(steps))
		}
		t.Log(test.name, s.loops, len(steps), steps[:min(len(steps), 20)])
	}
}

// TestScalerShrinks checks that a number of loops stays while the load is about the same, falls
// with the load after a while, and that the scaler ends with one loop.
func TestScalerShrinks(t *testing.T) {
	for _, test := range []struct {
		busy  float64
		loops int // at the end, of 8
	}{{7, 8}, {6.4, 8}, {5, 8}, {3.6, 8}, {3.4, 7}, {1.2, 3}, {0.6, 2}, {0.4, 1}, {0, 1}} {
		s := newScaler(8)
		l := load{busy: test.busy, clients: 50, procs: 9, rate: 1}
		windows, enough := 0, false
		for ; windows < 50 && !enough; windows++ {
			if windows < calmWindows && s.loops != 8 {
				t.Errorf("busy %v: %d loops after %d windows", test.busy, s.loops, windows)
			}
			_, enough = s.next(l)
		}
		if s.loops != test.loops || enough != (test.loops == 1) {
			t.Errorf("busy %v: %d loops, enough: %v", test.busy, s.loops, enough)
		}
	}
}

func TestBalance(t *testing.T) {
	for _, test := range []struct {
		clients []int
		n       int
		want    []int // clients afterwards
	}{
		{[]int{50, 0}, 2, []int{25, 25}},
		{[]int{25, 26}, 2, []int{25, 26}},
		{[]int{25, 25, 0}, 3, []int{17, 17, 16}},
		{[]int{20, 30, 1}, 2, []int{26, 25, 0}},
		{[]int{3, 4, 7, 5}, 1, []int{19, 0, 0, 0}},
		{[]int{4, 6, 5}, 3, []int{4, 6, 5}},
		{[]int{1, 9, 5}, 3, []int{5, 5, 5}},
		{[]int{0, 0}, 2, []int{0, 0}},
		{[]int{1, 0, 0}, 3, []int{1, 0, 0}},
	} {
		give := balance(test.clients, test.n)
		got := slices.Clone(test.clients)
		for from, row := range give {
			for to, k := range row {
				got[from] -= k
				got[to] += k
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("balance(%v, %d) = %v, want %v", test.clients, test.n, got, test.want)
		}
	}
}
