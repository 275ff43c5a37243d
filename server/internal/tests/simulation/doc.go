// Package simulation contains no code of the program. Its tests run servers, their
// replicas, clients and data files in one process, in a bubble of testing/synctest: on a
// clock that moves when all goroutines wait, on a network in memory whose delays, stalls
// and broken connections follow from a seed, and on disks whose delays and errors do. A
// seed repeats a run.
//
//	make simulate SEED=7             one seed
//	make simulate SEED=1 SEEDS=1000  a thousand from 1 on
//
// Operations of a disk take time, and servers are killed before or after one, never within
// it. Tests of package snapshot and of server/e2e/faults do that.
//
// A run is an hour of simulated time. Clients add elements to all types of data, wait for
// replicas with WAIT, and remember which additions were acknowledged. Meanwhile links
// stall, in one direction or both, or break; disks are slow, full or broken; system clocks
// step; servers are killed and start again from the file that they had at that instant; and
// a supervisor promotes the replica that has the most. With an even seed a write is on the
// disk before its reply (appendfsync always), otherwise about a second later. The run
// verifies that a primary that starts again has
//
//   - with an even seed, each addition that it has replied to,
//   - otherwise each addition before a save that has succeeded.
//
// Transfers of all data are cut at some points, or the replica is killed there. The run
// verifies that a replica has one whole state at each of them, the old one or the new one,
// and so has its file.
//
// Each node has a subscriber to live queries, which connects again when its connection is lost.
// After each fault the clients pause, and the run verifies that the latest message of each query is
// the present reply of the node to its command, or its error. No message shows half a transaction,
// and none has an error that the command cannot have there.
//
// At the end links and disks are whole and clocks agree, and the run verifies
//
//   - that each addition which WAIT promised to be on two of three servers is there;
//   - that all servers have the same data;
//   - that the invariants of each server's memory hold;
//   - that the output queues of replicas stay within their limit.
//
// # What a seed determines
//
// All random choices of the network, of the faults and of the clients. Goroutines that
// run at the same instant are ordered by the Go scheduler, which has one processor in a
// simulation. The order of keys in a hash table is by chance, so nothing may follow from it.
// TestRepeats compares the traffic of two runs.
package simulation
