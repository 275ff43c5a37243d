//go:build unix

package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// file is a file of a suite, in one mode.
type file struct {
	name  string // unit/type/zset
	mode  mode
	part  string // of the file, if it runs in several parts
	edits []edit // which select the part
}

// edit is a change of the copy of a suite.
type edit struct{ file, old, with string }

// mode is the way in which the suite reaches its servers.
type mode uint8

const (
	external mode = iota // the program starts one server
	spawn                // the suite starts servers
	sentinel             // the framework for several instances does, beside Sentinels
)

func (f file) String() string {
	switch {
	case f.part != "":
		return f.name + " (" + f.part + ")"
	case f.mode == spawn:
		return f.name + " (spawn)"
	}
	return f.name
}

// edition is a test suite, and the server that it belongs to.
type edition struct {
	name     string // redis-8.6, as in exceptions.txt
	title    string
	programs string // the prefix of the names of its programs, and of its client in Tcl
	source   string // the folder of its source
	files    []file
	edits    []edit
	conf     string   // further lines of zsetd's redis.conf in external mode
	dialect  string   // zsetd's parameter dialect
	broken   []string // tests that are not run against any server
	least    int      // the minimum of tests that pass in a run of all files
}

// open returns the edition of the suite whose source is in a folder.
func open(source string) (*edition, error) {
	text, err := os.ReadFile(filepath.Join(source, "src", "version.h"))
	if err != nil {
		return nil, err
	}
	m := regexp.MustCompile(`define (REDIS|VALKEY)_VERSION "(\d+\.\d+)\.`).FindSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("no version in %s", text)
	}
	programs := strings.ToLower(string(m[1]))
	for _, ed := range editions() {
		if ed.name == programs+"-"+string(m[2]) {
			ed.programs, ed.source = programs, source
			return ed, nil
		}
	}
	return nil, fmt.Errorf("no suite of %s is known", text)
}

// sum is a checksum of what the results of the real server depend on: its version, the
// files of the suite, their changes, and the tags.
func (ed *edition) sum(tags string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, ed.title, tags, ed.edits, ed.broken)
	for _, path := range []string{"src/version.h", "tests"} {
		err := filepath.WalkDir(filepath.Join(ed.source, path), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || filepath.Base(filepath.Dir(path)) == "tmp" {
				return err
			}
			text, err := os.ReadFile(path)
			fmt.Fprintln(h, filepath.Base(path), len(text))
			h.Write(text)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%.8x", h.Sum(nil)), nil
}

// program returns the path of a program of the edition, such as server: that beside its
// source, or that of the system.
func (ed *edition) program(name string) (string, error) {
	name = ed.programs + "-" + name
	if path, err := filepath.Abs(filepath.Join(ed.source, "src", name)); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}

// editions returns the suites that are known.
func editions() []*edition { return []*edition{redis86(), valkey91(), redis70()} }

// list is the files of folders, each in a mode.
type list []file

func (l *list) add(m mode, folder, names string) {
	for name := range strings.FieldsSeq(names) {
		*l = append(*l, file{name: folder + name, mode: m})
	}
}

// redis86 is the suite of Redis 8.6. Absent are the files of modules and vector sets, of TLS
// between servers of the suite, and of clusters with several nodes (unit/cluster, but for
// slot-stats), which zsetd does not have; and those that read or write Redis's files
// (integration/aof, rdb, convert, dismiss-mem, corrupt-dump) or its log (integration/logging).
func redis86() *edition {
	var l list
	l.add(external, "unit/", `type/zset type/string type/incr type/list type/list-3 type/set type/hash type/hash-field-expire
		type/stream type/stream-cgroups keyspace scan pubsub protocol dump sort geo bitops bitfield hyperloglog scripting
		functions introspection introspection-2 info-command info-keysizes tracking slowlog latency-monitor lazyfree
		expire multi networking other pause quit querybuf replybufsize violations`)
	// External mode leaves out tests that start servers, as replicas.
	l.add(spawn, "unit/", `auth acl acl-v2 pubsubshard info limits introspection maxmemory memefficiency obuf-limits
		client-eviction expire multi functions bitfield pause hotkeys wait scan sort type/stream-cgroups
		type/hash-field-expire info-keysizes cluster/slot-stats`)
	l.add(spawn, "integration/", `replication replication-2 replication-3 replication-4 replication-psync replication-iothreads
		replication-buffer psync2 psync2-reg psync2-pingoff psync2-master-restart block-repl failover redis-cli
		redis-benchmark`)
	l.add(sentinel, "sentinel/", sentinelFiles)
	return &edition{name: "redis-8.6", title: "Redis 8.6", files: l, dialect: "redis", edits: append(withoutPipe(), nextMillisecond(), neverPaused()), broken: brokenTests(), least: 4010}
}

// withoutPipe are changes of the tests with replicas that leave during a transfer: they do not
// look in the log for the pipe from a child process, which only Redis has.
func withoutPipe() (list []edit) {
	for _, end := range []string{"last replica dropped, killing fork child", "done reading from pipe, 2 replicas still up",
		"done reading from pipe, 1 replicas still up", "done reading from pipe, 1 replicas still up"} {
		list = append(list, edit{"tests/integration/replication.tcl",
			"wait_for_log_messages -2 {\"*Diskless rdb transfer, " + end + "*\"} $loglines 1 1\n", "\n"})
	}
	return list
}

// nextMillisecond lets a test that wants two entries to have two identifiers wait until the
// clock goes on: on a fast machine a server executes the ten commands between them in one
// millisecond.
func nextMillisecond() edit {
	return edit{"tests/unit/type/stream.tcl", "$db0 FLUSHALL\n", "$db0 FLUSHALL\n        after 2\n"}
}

// neverPaused lets unit/maxmemory go on behind the tests that pause a replica, which are
// broken: outside of them it waits until the replica is paused, to resume it, and fails.
func neverPaused() edit {
	return edit{"tests/unit/maxmemory.tcl", "        resume_process $slave_pid\n", "\n"}
}

const sentinelFiles = `00-base 01-conf-update 02-slaves-reconf 03-runtime-reconf 04-slave-selection 05-manual 06-ckquorum
	07-down-conditions 08-hostname-conf 09-acl-support 10-replica-priority 11-port-0 12-master-reboot
	13-info-command 14-debug-command 15-config-set-config-get`

// valkey91 is the suite of Valkey 9.1. Absent are the files of modules, of TLS, of multipath
// TCP, of clusters with several nodes and of Valkey's files and log, as in [redis86].
func valkey91() *edition {
	var l list
	l.add(external, "unit/", `type/zset type/string type/incr type/list type/list-2 type/list-3 type/set type/hash type/stream
		type/stream-cgroups bitfield bitops commandlog dump fuzzer geo hyperloglog info-command introspection-2 keyspace
		latency-monitor lazyfree networking other protocol pubsub querybuf quit replybufsize slowlog tracking violations`)
	// External mode leaves out tests that start servers, as replicas.
	l.add(spawn, "unit/", `auth acl acl-v2 pubsubshard info limits introspection maxmemory memefficiency obuf-limits
		client-eviction expire hashexpire multi functions pause wait scan sort shutdown type/stream-cgroups`)
	l.add(spawn, "unit/cluster/", `scripting slot-stats sharded-pubsub multi-slot-operations clusterscan multidb cluster-flush-slot`)
	for _, api := range []string{"redis", "server"} {
		for _, m := range []mode{external, spawn} {
			f := file{name: "unit/scripting", mode: m, edits: []edit{{"tests/unit/scripting.tcl", "foreach script_compatibility_api {server redis} {",
				"foreach script_compatibility_api {" + api + "} {"}}}
			if api == "server" {
				f.part = "server."
			}
			if m == spawn && f.part != "" {
				f.part = "server., spawn"
			}
			l = append(l, f)
		}
	}
	l.add(spawn, "integration/", `replication replication-2 replication-3 replication-4 replication-psync replication-buffer
		psync2 psync2-reg psync2-pingoff psync2-master-restart block-repl failover valkey-cli valkey-benchmark
		replica-redirect scan-family-consistency`)
	l.add(sentinel, "sentinel/", `00-base 01-conf-update 02-replicas-reconf 03-runtime-reconf 05-manual 06-ckquorum
		07-down-conditions 08-hostname-conf 09-acl-support 10-replica-priority 11-port-0 12-primary-reboot 13-info-command
		14-debug-command 15-sentinel-deprecated-commands 16-config-set-config-get 17-manual-coordinated`)
	return &edition{
		name: "valkey-9.1", title: "Valkey 9.1", files: l, dialect: "valkey", broken: brokenTests(), least: 4450,
		// A node that meets no others fails the tests of a cluster, and not those that follow.
		edits: []edit{{"tests/support/cluster_util.tcl", "            R 0 CLUSTER MEET [srv -$i host] [srv -$i port]\n",
			"            if {[catch {R 0 CLUSTER MEET [srv -$i host] [srv -$i port]} e]} { error \"assertion:$e\" }\n"}},
	}
}

// redis70 is the suite of Redis 7.0, of Debian's stable suite.
func redis70() *edition {
	var l list
	l.add(external, "unit/", `type/zset type/string type/incr type/list type/list-2 type/list-3 type/set type/hash
		type/stream keyspace scan pubsub protocol dump sort geo bitops hyperloglog scripting introspection
		introspection-2 info-command tracking slowlog latency-monitor lazyfree other quit querybuf
		replybufsize violations`)
	// External mode leaves out tests that start servers, as replicas.
	l.add(spawn, "unit/", `auth acl acl-v2 pubsubshard info limits introspection maxmemory obuf-limits client-eviction
		expire multi functions bitfield pause type/stream-cgroups wait`)
	l.add(spawn, "integration/", `replication replication-2 replication-3 replication-4 replication-psync
		replication-buffer psync2 psync2-reg psync2-pingoff psync2-master-restart block-repl failover
		redis-cli`)
	l.add(sentinel, "sentinel/", `00-base 01-conf-update 02-slaves-reconf 03-runtime-reconf 05-manual 06-ckquorum
		07-down-conditions 08-hostname-conf 09-acl-support 10-replica-priority 11-port-0 12-master-reboot
		13-info-command`)
	return &edition{
		name: "redis-7.0", title: "Redis 7.0", files: l, dialect: "redis", broken: brokenTests(), least: 2350,
		conf: "set-max-listpack-entries 0\n", // as in 7.0
		// From 7.2 on, short lists are listpacks, and so are sets unless configured
		// otherwise. In 7.0 they are always quicklists.
		edits: []edit{{"tests/support/test.tcl", "    assert_match $enc $val\n",
			"    if {$enc eq {quicklist} && $val eq {listpack}} return\n    assert_match $enc $val\n"}},
	}
}

// brokenTests are skipped for every server. The first fails for all servers in
// external mode and leaves a changed configuration, because it expects a server
// started by the suite. The others measure replication to a stopped replica for
// minutes, and fail on a busy machine.
func brokenTests() []string {
	return []string{
		"SRANDMEMBER with a dict containing long chain",
		"slave buffer are counted correctly", "replica buffer don't induce eviction",
	}
}

// long reports whether a file takes minutes, mostly with waiting. It runs only if it is
// named.
func (f file) long() bool {
	return f.name == "integration/replication" || f.name == "integration/replication-psync" || f.name == "unit/cluster/slot-stats"
}

// startsEarly reports whether a file takes long and should start early.
func (f file) startsEarly() bool {
	return f.mode == sentinel || slices.Contains([]string{"integration/psync2", "integration/replication-4", "unit/hyperloglog", "unit/maxmemory", "unit/type/list-3", "unit/obuf-limits", "unit/dump", "unit/geo", "unit/type/list"}, f.name)
}
