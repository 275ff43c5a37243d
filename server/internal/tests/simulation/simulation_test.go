package simulation

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zsetd/zsetd/server/internal/engine"
	"github.com/zsetd/zsetd/server/internal/engine/enginetest"
	"github.com/zsetd/zsetd/server/internal/peers/transport"
	"github.com/zsetd/zsetd/server/internal/wiring"
	"github.com/zsetd/zsetd/server/servertest/wait"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed of TestSimulation")
	seeds     = flag.Uint64("seeds", 1, "number of seeds of TestSimulation")
	length    = flag.Duration("length", time.Hour, "simulated time of a run")
)

// TestSimulation runs the simulation with each seed.
func TestSimulation(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { simulate(t, seed, *length) })
	}
}

// TestRepeats checks that a seed repeats a run.
func TestRepeats(t *testing.T) {
	first := simulate(t, *firstSeed, 20*time.Minute)
	again := simulate(t, *firstSeed, 20*time.Minute)
	for i := range min(len(first), len(again)) {
		if first[i] != again[i] {
			t.Fatalf("event %d of %d: %v; at the second time: %v", i, len(first), first[i], again[i])
		}
	}
	if len(first) != len(again) {
		t.Errorf("%d events; at the second time %d", len(first), len(again))
	}
}

// replicaLimit is the limit of the output queue of a replica in bytes.
const replicaLimit = 1 << 20

// simulate runs a simulation and returns its traffic.
func simulate(t *testing.T, seed uint64, length time.Duration) (traffic []event) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{
			T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 2)), network: newNetwork(seed), dir: t.TempDir(),
			promised: map[string]bool{}, replied: map[string]bool{}, start: time.Now(),
			always: seed%2 == 0, follows: seed%4 < 2,
		}
		s.run(length)
		traffic = s.network.traffic
		slices.SortStableFunc(traffic, func(a, b event) int { // those of an instant have no order
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
		})
	})
	return traffic
}

// simulation is a run: three nodes, clients, and a supervisor, which is the goroutine of
// the test.
type simulation struct {
	*testing.T
	seed    uint64
	always  bool       // a write is on the disk before its reply, else a second later
	follows bool       // the clock of a server follows steps of the system clock
	random  *rand.Rand // of the supervisor
	network *network
	dir     string
	start   time.Time
	nodes   []*node

	mu       sync.Mutex
	primary  *node
	reign    int             // number of primaries so far
	promised map[string]bool // additions that must not get lost
	replied  map[string]bool // additions that the present primary has executed, as clients know
	attempts int

	stop        chan struct{}
	paused      atomic.Bool // clients change nothing
	clients     sync.WaitGroup
	subscribers []*subscriber
	following   sync.WaitGroup // the goroutines of subscribers
	faults      map[string]int
}

// node is a server, or the place of one that was killed.
type node struct {
	name     string
	life     int          // number of starts
	step     atomic.Int64 // nanoseconds that the system clock is ahead
	followed atomic.Bool  // it has been a replica
	srv      *enginetest.Server
	*machine
	file string
	done sync.WaitGroup // the goroutine that serves
}

func (s *simulation) log(format string, args ...any) {
	s.Logf("%10.3f %s", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

func (s *simulation) run(length time.Duration) {
	s.stop, s.faults = make(chan struct{}), map[string]int{}
	for _, name := range []string{"a", "b", "c"} {
		s.nodes = append(s.nodes, &node{name: name})
	}
	s.primary = s.nodes[0]
	for _, n := range s.nodes {
		s.boot(n)
	}
	defer func() {
		for _, n := range s.nodes {
			s.shut(n)
		}
	}()
	for i := range 4 {
		c := &client{simulation: s, name: fmt.Sprint("client", i), random: rand.New(rand.NewPCG(s.random.Uint64(), 3))}
		s.clients.Go(c.run)
	}
	for _, n := range s.nodes {
		u := &subscriber{simulation: s, node: n, random: rand.New(rand.NewPCG(s.random.Uint64(), 4))}
		s.subscribers = append(s.subscribers, u)
		s.following.Go(u.run)
	}
	defer func() {
		for _, u := range s.subscribers {
			u.end()
		}
		s.following.Wait()
	}()
	for time.Since(s.start) < length && !s.Failed() {
		wait.Pace(s.between(time.Second, 2*time.Minute))
		s.fault()
		s.bounded()
		s.observe()
	}
	for _, n := range s.nodes {
		if n.srv == nil {
			s.boot(n)
		}
	}
	close(s.stop)
	s.clients.Wait()
	for _, n := range s.nodes {
		n.step.Store(0) // servers that do not follow need a time
	}
	s.verify()
	wait.Pace(time.Minute) // deadlines pass
	s.observe()
	s.log("%d additions, %d promised, faults %v", s.attempts, len(s.promised), s.faults)
}

// between returns a random time.
func (s *simulation) between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.random.Int64N(int64(high-low)))
}

// boot starts the server of a node, from the file of its previous life. It is a replica
// unless it is the primary.
func (s *simulation) boot(n *node) {
	previous := n.file
	n.life++
	n.file = filepath.Join(s.dir, fmt.Sprintf("%s%d.db", n.name, n.life))
	if previous != "" {
		if err := os.Rename(previous+".killed", n.file); err != nil {
			s.Fatal(err)
		}
	}
	config := map[string]string{
		"enable-debug-command": "yes", "save": "1 1", "clock-steps": "slew", "repl-diskless-sync-delay": "0", "repl-backlog-size": "65536", "repl-timeout": "30",
		"client-output-buffer-limit": fmt.Sprintf("replica %d 0 0", replicaLimit),
	}
	if s.always {
		config["appendonly"], config["appendfsync"] = "yes", "always"
	}
	if s.follows {
		config["clock-steps"] = "follow"
	}
	if n != s.primary {
		n.followed.Store(true)
		config["replicaof"] = s.primary.name + " 6379"
	}
	n.machine = newMachine(s.seed, n.name, n.life, func() time.Duration { return time.Duration(n.step.Load()) })
	o := engine.Options{File: n.file, Config: config, Logger: slog.New(slog.NewTextHandler(&lines{s, n.name}, nil)), Machine: n.machine.parts()}
	e, t, err := wiring.New(o, transport.Options{Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
		host, _, _ := strings.Cut(address, ":")
		return s.network.dial(ctx, n.name, host)
	}}, nil)
	if err != nil {
		s.Fatal(err)
	}
	srv := &enginetest.Server{Engine: e, Transport: t}
	n.srv = srv
	l := s.network.listen(n.name)
	n.done.Go(func() { srv.Serve(l) })
	if err := srv.Ready(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// shut ends a server and checks its invariants.
func (s *simulation) shut(n *node) {
	if n.srv == nil {
		return
	}
	n.machine.end()
	if err := n.srv.Close(); err != nil {
		s.Errorf("%s: %v", n.name, err)
	}
	n.done.Wait()
	if err := n.srv.Check(); err != nil {
		s.Errorf("%s: %v", n.name, err)
	}
	n.srv = nil
}

// kill ends a server as kill -9 does: the file of its next life is that of this instant.
func (s *simulation) kill(n *node) {
	tell := s.random.IntN(2) == 0
	s.log("kill %s, tell %v", n.name, tell)
	s.network.remove(n.name, tell)
	synctest.Wait()
	b, err := os.ReadFile(n.file)
	if err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(n.file+".killed", b, 0o600); err != nil {
		s.Fatal(err)
	}
	s.shut(n)
}

// lines writes the log of a node to that of the test.
type lines struct {
	s    *simulation
	name string
}

func (l *lines) Write(b []byte) (int, error) {
	_, text, _ := bytes.Cut(b, []byte(" "))
	l.s.log("%s: %s", l.name, bytes.TrimSpace(text))
	return len(b), nil
}

// replicas returns the nodes that are not the primary.
func (s *simulation) replicas() []*node {
	return slices.DeleteFunc(slices.Clone(s.nodes), func(n *node) bool { return n == s.primary })
}

// fault does one thing that goes wrong, and what repairs it.
func (s *simulation) fault() {
	replica := s.replicas()[s.random.IntN(2)]
	all := []string{"reset", "stall", "one way", "kill replica", "kill primary", "restart primary", "isolate primary", "no client", "switch", "disk", "disk", "clock", "cut transfer", "no subscriber", "stale"}
	kind := all[s.random.IntN(len(all))]
	s.faults[kind]++
	s.log("fault: %s", kind)
	switch kind {
	case "reset":
		s.network.reset(s.primary.name, replica.name)
	case "stall":
		s.network.stall(s.primary.name, replica.name)
		wait.Pace(s.between(time.Second, 3*time.Minute))
		s.network.heal(s.primary.name, replica.name)
	case "one way":
		from, to := s.primary.name, replica.name
		if s.random.IntN(2) == 0 {
			from, to = to, from
		}
		s.network.stallWay(from, to)
		wait.Pace(s.between(time.Second, 3*time.Minute))
		s.network.heal(from, to)
	case "cut transfer":
		s.cutTransfer(replica)
	case "kill replica":
		s.killReplica(replica)
	case "kill primary":
		s.killPrimary()
	case "restart primary":
		s.restartPrimary()
	case "disk":
		s.disk(s.nodes[s.random.IntN(3)])
	case "clock":
		n, step := s.nodes[s.random.IntN(3)], s.between(-300*time.Millisecond, 300*time.Millisecond)
		if s.follows {
			step = s.between(-time.Hour, time.Hour)
		}
		s.log("the clock of %s steps to %v", n.name, step)
		n.step.Store(int64(step))
	case "isolate primary":
		old, others := s.primary, []string{"client0", "client1"}
		for _, n := range s.replicas() {
			others = append(others, n.name)
		}
		for _, o := range others {
			s.network.stall(old.name, o)
		}
		wait.Pace(s.between(0, time.Minute))
		if s.whole() {
			s.failover(s.replicas())
			wait.Pace(s.between(0, time.Minute))
			s.follow(old)
		}
		for _, o := range others {
			s.network.heal(old.name, o)
		}
	case "no client":
		s.network.stall(s.primary.name, "client2")
		wait.Pace(s.between(time.Second, time.Minute))
		s.network.heal(s.primary.name, "client2")
	case "no subscriber":
		u := s.subscribers[s.random.IntN(3)]
		if s.random.IntN(2) == 0 {
			s.network.reset(u.name(), u.node.name)
			break
		}
		s.network.stall(u.name(), u.node.name)
		wait.Pace(s.between(time.Second, time.Minute))
		s.network.heal(u.name(), u.node.name)
	case "stale":
		s.do(replica, "CONFIG", "SET", "replica-serve-stale-data", "no")
		s.network.reset(s.primary.name, replica.name)
		s.network.stall(s.primary.name, replica.name)
		wait.Pace(s.between(0, time.Minute))
		s.observe()
		s.network.heal(s.primary.name, replica.name)
		wait.Pace(s.between(0, 10*time.Second))
		s.do(replica, "CONFIG", "SET", "replica-serve-stale-data", "yes")
	case "switch":
		if s.whole() {
			old := s.primary
			s.failover(s.nodes)
			if s.primary != old {
				s.follow(old)
			}
		}
	}
}

// cutTransfer makes a replica receive all data, and cuts that at some points, at the last of
// which the replica may be killed. At each point it has all elements that it had before or, once
// it has received all, these and more; so has its file.
func (s *simulation) cutTransfer(n *node) {
	if s.info(n, "replication")["master_link_status"] != "up" {
		return
	}
	s.do(n, "REPLICAOF", "NO", "ONE") // its stream ends here, and the primary does not know its ID
	saved := s.save(n)
	before, own := s.present(n), s.info(n, "replication")["master_replid"]
	check := func(where string) (whole bool) {
		was := s.info(n, "replication")["master_replid"] == own
		now := s.present(n)
		was = was && s.info(n, "replication")["master_replid"] == own
		for element := range before {
			if !now[element] {
				s.Errorf("%s: %s has lost %s in a transfer", where, n.name, element)
				break
			}
		}
		if was && len(now) != len(before) {
			s.Errorf("%s: %s has %d elements in a transfer, before it had %d", where, n.name, len(now), len(before))
		}
		return !was
	}
	s.network.slowWay(s.primary.name, n.name) // so that a transfer takes time
	defer s.network.heal(s.primary.name, n.name)
	if s.random.IntN(2) == 0 { // the snapshot takes time, too; the order of the keys is by chance, so they go to a file
		s.do(s.primary, "CONFIG", "SET", "repl-diskless-sync", "no", "rdb-key-save-delay", 500+s.random.IntN(2000))
		defer s.do(s.primary, "CONFIG", "SET", "repl-diskless-sync", "yes", "rdb-key-save-delay", 0)
	}
	kill := s.random.IntN(2) == 0
	for cuts := 1 + s.random.IntN(6); cuts > 0 && !check("cut"); cuts-- {
		s.follow(n) // at once, also if it waits after a cut
		wait.Pace(s.between(0, 300*time.Millisecond))
		check("transfer")
		if cuts > 1 || !kill {
			s.network.reset(s.primary.name, n.name)
			synctest.Wait() // both ends know of it before the replica is killed or follows again
		}
	}
	s.log("the data of %s are whole: %v", n.name, check("end"))
	if !kill {
		s.follow(n)
		return
	}
	s.kill(n)
	s.network.stall(s.primary.name, n.name)
	wait.Pace(s.between(0, time.Second))
	s.boot(n)
	if own = ""; saved {
		check("start")
	}
}

// killReplica kills a replica and starts it again.
func (s *simulation) killReplica(n *node) {
	s.kill(n)
	wait.Pace(s.between(0, time.Minute))
	s.boot(n)
}

// killPrimary kills the primary, promotes a replica, and starts the old primary again.
func (s *simulation) killPrimary() {
	old := s.primary
	if !s.whole() {
		return
	}
	s.kill(old)
	wait.Pace(s.between(0, 10*time.Second))
	s.failover(s.replicas())
	wait.Pace(s.between(0, time.Minute))
	s.boot(old)
}

// restartPrimary kills the primary and starts it again, as the primary. It must have all
// additions that it has replied to or, if it writes to the disk later, those before a save
// that has succeeded.
func (s *simulation) restartPrimary() {
	n := s.primary
	s.mu.Lock()
	must := maps.Clone(s.replied)
	s.mu.Unlock()
	if !s.always && !s.save(n) {
		must = nil
	}
	n.machine.set(s.random.IntN(2) == 0, nil) // so that writes are on their way to the disk
	wait.Pace(s.between(0, 10*time.Second))
	if s.always {
		s.mu.Lock()
		must = maps.Clone(s.replied)
		s.mu.Unlock()
	}
	s.kill(n)
	wait.Pace(s.between(0, 10*time.Second))
	s.boot(n)
	present := s.present(s.primary)
	for _, element := range slices.Sorted(maps.Keys(must)) {
		if !present[element] {
			s.Errorf("%s was on the disk of %s and is lost", element, n.name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for element := range s.promised { // the replicas follow the data of the disk
		if !must[element] && !present[element] {
			delete(s.promised, element)
		}
	}
	maps.DeleteFunc(s.replied, func(element string, _ bool) bool { return !present[element] })
}

// save makes a server save, and reports whether it has.
func (s *simulation) save(n *node) bool {
	s.do(n, "BGSAVE", "SCHEDULE")
	for range 600 {
		wait.Pace(100 * time.Millisecond)
		if i := s.info(n, "persistence"); i["rdb_bgsave_in_progress"] == "0" {
			return i["rdb_last_bgsave_status"] == "ok"
		}
	}
	return false
}

// disk makes the disk of a node slow, full or broken. Meanwhile the server may be killed.
func (s *simulation) disk(n *node) {
	m, broken := n.machine, []error{nil, errFull, errBroken}[s.random.IntN(3)]
	s.log("disk of %s: %v", n.name, broken)
	m.set(true, broken)
	wait.Pace(s.between(0, time.Minute))
	if broken != nil && s.random.IntN(2) == 0 { // for a moment, so that a later write succeeds
		m.set(true, nil)
		wait.Pace(s.between(0, 20*time.Second))
	}
	switch s.random.IntN(3) {
	case 0:
		if n != s.primary {
			s.killReplica(n)
		} else {
			s.killPrimary()
		}
	case 1:
		if n == s.primary {
			s.restartPrimary()
		}
	}
	m.set(false, nil)
}

// bounded checks that the output queues of replicas are within their limits.
func (s *simulation) bounded() {
	for _, n := range s.nodes {
		if n.srv == nil {
			continue
		}
		size, err := strconv.Atoi(s.info(n, "memory")["mem_clients_slaves"])
		if err != nil || size > 2*replicaLimit+1<<20 {
			s.Errorf("%s: replicas take %d bytes, %v", n.name, size, err)
		}
	}
}

// whole reports whether both replicas have data of the primary's history.
func (s *simulation) whole() bool {
	id := s.info(s.primary, "replication")["master_replid"]
	for _, n := range s.replicas() {
		if i := s.info(n, "replication"); i["master_replid"] != id || i["master_sync_in_progress"] != "0" {
			return false
		}
	}
	return true
}

// failover promotes the node of some that has the most of the primary's history, and
// makes the other replicas follow it.
func (s *simulation) failover(nodes []*node) {
	best, most := (*node)(nil), int64(-1)
	for _, n := range nodes {
		i := s.info(n, "replication")
		offset, err := strconv.ParseInt(i["master_repl_offset"], 10, 64)
		if err != nil {
			s.Fatalf("%s: %v", n.name, i)
		}
		if offset > most || offset == most && s.random.IntN(2) == 0 {
			best, most = n, offset
		}
	}
	if best == s.primary {
		return
	}
	old := s.primary
	s.log("promote %s with %d bytes", best.name, most)
	s.mu.Lock()
	s.primary = best
	s.reign++
	clear(s.replied)
	s.mu.Unlock()
	for _, n := range s.replicas() {
		if n != old {
			s.follow(n) // first: it must acknowledge nothing that best does not receive
		}
	}
	s.do(best, "REPLICAOF", "NO", "ONE")
}

// follow makes a node follow the primary.
func (s *simulation) follow(n *node) {
	n.followed.Store(true)
	s.do(n, "REPLICAOF", s.primary.name, 6379)
}

// do executes a command on a node, not through the network.
func (s *simulation) do(n *node, args ...any) any {
	reply, err := n.srv.Do(s.Context(), args...)
	if err != nil {
		s.Fatalf("%s: %v: %v", n.name, args, err)
	}
	return reply
}

// info returns the fields of a section of INFO.
func (s *simulation) info(n *node, section string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(fmt.Sprint(s.do(n, "INFO", section))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// differences logs the keys that differ.
func (s *simulation) differences() {
	keys := map[string]bool{}
	for _, n := range s.nodes {
		all, _ := s.do(n, "KEYS", "*").([]any)
		for _, key := range all {
			keys[fmt.Sprint(key)] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		var text []string
		for _, n := range s.nodes {
			text = append(text, fmt.Sprint(s.do(n, "DEBUG", "DIGEST-VALUE", key), " expires ", s.do(n, "PEXPIRETIME", key),
				" ", s.do(n, "TYPE", key)))
		}
		if len(slices.Compact(slices.Clone(text))) > 1 {
			s.log("key %s:\n%s", key, strings.Join(text, "\n"))
			for _, n := range s.nodes {
				switch fmt.Sprint(s.do(n, "TYPE", key)) {
				case "hash":
					s.log("%s: %v %v", n.name, s.do(n, "HGETALL", key), s.do(n, "HPEXPIRETIME", key, "FIELDS", 9, 0, 1, 2, 3, 4, 5, 6, 7, 8))
				case "zset":
					s.log("%s: %v", n.name, s.do(n, "ZRANGE", key, 0, 50, "WITHSCORES"))
				case "stream":
					s.log("%s: %v", n.name, s.do(n, "XINFO", "STREAM", key))
				case "set":
					s.log("%s: %v", n.name, s.do(n, "SORT_RO", key, "LIMIT", 0, 50, "ALPHA"))
				}
			}
		}
	}
}

// present returns the elements that a node has.
func (s *simulation) present(n *node) map[string]bool {
	present := map[string]bool{}
	for _, k := range kinds {
		for _, element := range k.elements(s, n) {
			present[element] = true
		}
	}
	return present
}

// verify checks that all nodes become equal and have all that was promised.
func (s *simulation) verify() {
	if s.Failed() {
		return
	}
	state := func() (same bool, text string) {
		same = true
		var digest any
		offset := s.info(s.primary, "replication")["master_repl_offset"]
		for _, n := range append([]*node{s.primary}, s.replicas()...) {
			i := s.info(n, "replication")
			d := s.do(n, "DEBUG", "DIGEST")
			if n == s.primary {
				digest = d
			} else if i["master_link_status"] != "up" {
				same = false
			}
			same = same && d == digest && i["master_repl_offset"] == offset
			text += fmt.Sprintf("%s: %s, link %s, offset %s, digest %v\n", n.name, i["role"], i["master_link_status"], i["master_repl_offset"], d)
		}
		return same, text
	}
	end := time.Now().Add(10 * time.Minute)
	for {
		same, text := state()
		if same {
			break
		}
		if time.Now().After(end) {
			s.differences()
			s.Fatalf("not equal after ten minutes:\n%s", text)
		}
		wait.Pace(time.Second)
	}
	present := s.present(s.primary)
	for _, element := range slices.Sorted(maps.Keys(s.promised)) {
		if !present[element] {
			s.Errorf("%s was promised and is lost", element)
		}
	}
	if s.attempts > 100 && len(s.promised) < s.attempts/10 {
		s.Errorf("%d of %d additions were promised", len(s.promised), s.attempts)
	}
}
