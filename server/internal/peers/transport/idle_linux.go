package transport

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// idleTime returns how long the processors that this process may use have had no work since the
// start of the machine, together; ok is false if the system does not report it. Its resolution is
// 10 ms.
func idleTime() (idle time.Duration, ok bool) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return 0, false
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, is := strings.CutPrefix(lines.Text(), "cpu")
		if !is {
			break
		}
		fields := strings.Fields(line) // N user nice system idle iowait; the first line has no N
		if line == "" || line[0] == ' ' || len(fields) < 6 {
			continue
		}
		if cpu, err := strconv.Atoi(fields[0]); err != nil || !allowed.IsSet(cpu) {
			continue
		}
		for _, f := range fields[4:6] {
			ticks, _ := strconv.ParseInt(f, 10, 64)
			idle += time.Duration(ticks) * 10 * time.Millisecond
		}
		ok = true
	}
	return idle, ok
}
