//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// durableWorks returns the workloads whose replies wait for the disk.
func durableWorks() (list []work) {
	for _, pipeline := range []int{1, 16} {
		list = append(list, work{name: "durable ZADD", pipeline: pipeline, command: "ZADD set:{key} {r} member:{r/100}", data: smallSets})
	}
	return list
}

// measureDurable applies workloads alternately to servers that have each write on the disk
// before its reply. All of them keep their files on the disk of the temporary files.
func (r *report) measureDurable(ctx context.Context, list []work, l limits) error {
	var servers []*server
	for _, t := range r.targets {
		s, err := t.durable().start(ctx)
		if err != nil {
			return err
		}
		defer s.stop()
		servers = append(servers, s)
	}
	fmt.Println(aligned(r.durableColumns()))
	for _, w := range list {
		row, err := r.alternate(ctx, servers, w, l, r.options.clients, 0)
		if err != nil {
			return err
		}
		r.durable = append(r.durable, row)
		fmt.Println(aligned(r.durableCells(row)))
	}
	return nil
}

// durable returns the target with its data in files, written before each reply.
func (t target) durable() target {
	t.flags = append(slices.Clone(t.flags), "--appendonly", "yes", "--appendfsync", "always")
	if t.name == "zsetd" {
		t.flags = append(t.flags, "--dbfilename", "zsetd.db")
	}
	return t
}

func (r *report) durableColumns() []string { return append(r.columns(), "flushes/s") }

func (r *report) durableCells(w row) []string {
	var flushes []string
	for i := range r.targets {
		flushes = append(flushes, fmt.Sprintf("%.0f", median(w.samples[i], (*sample).flushesPerSec)))
	}
	return append(r.cells(w), strings.Join(flushes, " · "))
}

func (s *sample) flushesPerSec() float64 { return float64(s.flushes) / s.elapsed.Seconds() }

// diskFlushes returns the number of flush requests that the disk of a directory has
// completed; 0 if the system does not count them. Those of other processes are among them.
func diskFlushes(dir string) int64 {
	info, err := os.Stat(dir)
	if err != nil {
		return 0
	}
	device := info.Sys().(*syscall.Stat_t).Dev
	number := fmt.Sprintf("%d:%d", device>>8&0xfff, device&0xff|device>>12&0xfff00)
	text, err := os.ReadFile(filepath.Join("/sys/dev/block", number, "stat"))
	if err != nil {
		return 0
	}
	return parseFlushes(string(text))
}

// parseFlushes returns the field of a disk's stat that counts flush requests, 0 if there is
// none. Linux 5.5 has added it.
func parseFlushes(text string) int64 {
	const field = 15
	fields := strings.Fields(text)
	if len(fields) <= field {
		return 0
	}
	n, _ := strconv.ParseInt(fields[field], 10, 64)
	return n
}
